/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: scatter/gather lists. They are addressed by byte offset, because
 * packets do not end where segments do.
 */
#include "memory.h"

/* Whether a segment extends beyond the end of the address space. */
static bool wraps(const struct vhca_seg *seg)
{
    return seg->length - 1 > UINT64_MAX - seg->addr;
}

/* Count nothing but failures to read memory. */
static enum vhca_mem_result copy(struct qhca_engine *e, uint32_t qpn,
                                 const struct vhca_key_user *user,
                                 const struct vhca_seg *segs, unsigned n,
                                 uint64_t off, uint8_t *buf, size_t len,
                                 bool write)
{
    enum vhca_mem_result result = VHCA_MEM_OK;

    for (; n > 0 && len > 0 && result == VHCA_MEM_OK; segs++, n--) {
        if (off >= segs->length) {
            off -= segs->length;
            continue;
        }

        size_t part = (size_t)MIN_OF(segs->length - off, (uint64_t)len);
        uint64_t addr = segs->addr + off;
        const struct vhca_mr *mr = wraps(segs) ? NULL :
            vhca_mr_find(e, user, segs->lkey, addr, part,
                         write ? QHCA_ACCESS_LOCAL_WRITE : 0);

        result = !mr ? VHCA_MEM_DENIED :
                 write ? vhca_mr_write(e, qpn, mr, addr, buf, part) :
                         vhca_mr_read(e, mr, addr, buf, part);
        if (result == VHCA_MEM_FAULT) {
            vhca_miss_extend(e, segs->length - off - part);
        }
        off = 0;
        buf += part;
        len -= part;
    }
    return result;
}

enum vhca_mem_result vhca_segs_read(struct qhca_engine *e,
                                    const struct vhca_key_user *user,
                                    const struct vhca_seg *segs, unsigned n,
                                    uint64_t off, void *buf, size_t len)
{
    enum vhca_mem_result result = copy(e, 0, user, segs, n, off, buf, len,
                                       false);

    if (result == VHCA_MEM_DENIED) {
        vhca_count(e, QHCA_CNT_BAD_KEY);
    }
    return result;
}

enum vhca_mem_result vhca_segs_write(struct qhca_engine *e, uint32_t qpn,
                                     const struct vhca_key_user *user,
                                     const struct vhca_seg *segs, unsigned n,
                                     uint64_t off, const void *buf, size_t len)
{
    return copy(e, qpn, user, segs, n, off, (uint8_t *)buf, len, true);
}

void vhca_segs_view(struct qhca_engine *e, const struct vhca_key_user *user,
                    const struct vhca_seg *segs, unsigned n, uint64_t off,
                    size_t len, struct vhca_view *view)
{
    for (; n > 0 && len > 0; segs++, n--) {
        if (off >= segs->length) {
            off -= segs->length;
            continue;
        }

        size_t part = (size_t)MIN_OF(segs->length - off, (uint64_t)len);

        if (wraps(segs) || !vhca_key_view(e, user, segs->lkey, segs->addr + off,
                                          part, 0, view)) {
            break;
        }
        off = 0;
        len -= part;
    }
}

enum vhca_mem_result vhca_segs_probe(struct qhca_engine *e,
                                     const struct vhca_key_user *user,
                                     const struct vhca_seg *segs, unsigned n,
                                     uint64_t off, uint64_t len)
{
    enum vhca_mem_result result = VHCA_MEM_OK;

    for (; n > 0 && len > 0 && result == VHCA_MEM_OK; segs++, n--) {
        if (off >= segs->length) {
            off -= segs->length;
            continue;
        }

        uint64_t part = MIN_OF(segs->length - off, len);
        const struct vhca_mr *mr = wraps(segs) ? NULL :
            vhca_mr_find(e, user, segs->lkey, segs->addr + off, part,
                         QHCA_ACCESS_LOCAL_WRITE);

        if (mr) {
            result = vhca_mr_probe(e, mr, segs->addr + off, part);
        }
        off = 0;
        len -= part;
    }
    return result;
}

bool vhca_segs_paged(const struct qhca_engine *e, const struct vhca_seg *segs,
                     unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct vhca_mr *mr = vhca_mr_get(e, segs[i].lkey);

        if (mr && mr->type == QHCA_MR_ODP) {
            return true;
        }
    }
    return false;
}

bool vhca_segs_check(struct qhca_engine *e, const struct vhca_key_user *user,
                     const struct vhca_seg *segs, unsigned n, uint16_t access)
{
    for (unsigned i = 0; i < n; i++) {
        if (segs[i].length > 0 &&
            !vhca_mr_check(e, user, segs[i].lkey, segs[i].addr, segs[i].length,
                           access)) {
            return false;
        }
    }
    return true;
}

uint64_t vhca_segs_parse(struct vhca_seg *segs, const uint8_t *src, unsigned n)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < n; i++) {
        struct qhca_sge sge;

        memcpy(&sge, src + i * sizeof(sge), sizeof(sge));
        segs[i].addr = le64toh(sge.addr);
        segs[i].length = le32toh(sge.length);
        segs[i].lkey = le32toh(sge.lkey);
        sum += segs[i].length;
    }
    return sum;
}

void vhca_segs_format(uint8_t *dst, const struct vhca_seg *segs, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct qhca_sge sge = {
            .addr = htole64(segs[i].addr),
            .length = htole32(segs[i].length),
            .lkey = htole32(segs[i].lkey),
        };

        memcpy(dst + i * sizeof(sge), &sge, sizeof(sge));
    }
}
