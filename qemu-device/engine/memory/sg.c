/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: scatter/gather lists. A list is walked by byte offset, because
 * packets know nothing of segment boundaries.
 */
#include "memory.h"

/* struct sg_walk - the part of a list that a copy touches, piece by piece */
struct sg_walk {
    const struct qhca_seg *seg;
    unsigned segs_left;
    uint64_t off;               /* in *seg */
    size_t left;
};

static void walk_start(struct sg_walk *w, const struct qhca_seg *segs,
                       unsigned n, uint64_t off, size_t len)
{
    w->seg = segs;
    w->segs_left = n;
    w->off = off;
    w->left = len;
}

/* The next piece: its address in @addr; its length, 0 at the end. */
static size_t walk_next(struct sg_walk *w, uint64_t *addr)
{
    size_t n;

    while (w->segs_left > 0 && w->off >= w->seg->length) {
        w->off -= w->seg->length;
        w->seg++;
        w->segs_left--;
    }
    if (w->segs_left == 0 || w->left == 0) {
        return 0;
    }
    n = (size_t)MIN_OF(w->seg->length - w->off, (uint64_t)w->left);
    *addr = w->seg->addr + w->off;
    return n;
}

static void walk_advance(struct sg_walk *w, size_t n)
{
    w->off += n;
    w->left -= n;
}

/* A segment that runs past the end of the address space has no such address. */
static bool wraps(const struct sg_walk *w)
{
    return w->seg->length - 1 > UINT64_MAX - w->seg->addr;
}

static struct qhca_mr *walk_check(struct qhca_engine *e,
                                  const struct qhca_key_user *user,
                                  const struct sg_walk *w, uint64_t addr,
                                  size_t n, uint16_t access)
{
    if (wraps(w)) {
        qhca_count(e, QHCA_CNT_BAD_KEY);
        return NULL;
    }
    return qhca_mr_check(e, user, w->seg->lkey, addr, n, access);
}

enum qhca_seg_result qhca_segs_read(struct qhca_engine *e,
                                    const struct qhca_key_user *user,
                                    const struct qhca_seg *segs, unsigned n,
                                    uint64_t off, void *buf, size_t len)
{
    uint8_t *p = buf;
    struct sg_walk w;
    struct qhca_mr *mr;
    uint64_t addr;
    size_t part;

    walk_start(&w, segs, n, off, len);
    while ((part = walk_next(&w, &addr)) > 0) {
        mr = walk_check(e, user, &w, addr, part, 0);
        if (!mr) {
            return QHCA_SEG_KEY;
        }
        if (!qhca_mr_read(e, mr, addr, p, part)) {
            return QHCA_SEG_DMA;
        }
        p += part;
        walk_advance(&w, part);
    }
    return QHCA_SEG_OK;
}

enum qhca_seg_result qhca_segs_write(struct qhca_engine *e,
                                     const struct qhca_key_user *user,
                                     const struct qhca_seg *segs, unsigned n,
                                     uint64_t off, const void *buf, size_t len)
{
    const uint8_t *p = buf;
    struct sg_walk w;
    struct qhca_mr *mr;
    uint64_t addr;
    size_t part;

    walk_start(&w, segs, n, off, len);
    while ((part = walk_next(&w, &addr)) > 0) {
        mr = walk_check(e, user, &w, addr, part, QHCA_ACCESS_LOCAL_WRITE);
        if (!mr) {
            return QHCA_SEG_KEY;
        }
        if (!qhca_mr_write(e, mr, addr, p, part)) {
            return QHCA_SEG_DMA;
        }
        p += part;
        walk_advance(&w, part);
    }
    return QHCA_SEG_OK;
}

bool qhca_segs_check(struct qhca_engine *e, const struct qhca_key_user *user,
                     const struct qhca_seg *segs, unsigned n, uint16_t access)
{
    unsigned i;

    for (i = 0; i < n; i++) {
        if (segs[i].length > 0 &&
            !qhca_mr_check(e, user, segs[i].lkey, segs[i].addr, segs[i].length,
                           access)) {
            return false;
        }
    }
    return true;
}

uint64_t qhca_segs_parse(struct qhca_seg *segs, const uint8_t *src, unsigned n)
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
