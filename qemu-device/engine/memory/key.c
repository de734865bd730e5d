/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the use of memory keys. A key consists of an object number, of a
 * region or a window, and a variant byte; every use is checked here
 * (conformance F-004).
 */
#include "../rules/rules.h"
#include "memory.h"

struct vhca_mr *vhca_mr_by_number(const struct qhca_engine *e, uint32_t key)
{
    return vhca_table_get(&e->memory->mr, key >> 8);
}

struct vhca_mr *vhca_mr_get(const struct qhca_engine *e, uint32_t key)
{
    struct vhca_mr *mr = vhca_mr_by_number(e, key);

    return mr && mr->key == key ? mr : NULL;
}

/* Whether @mr covers every address; such a region serves no peer. */
static bool is_everywhere(const struct vhca_mr *mr)
{
    return mr->type == QHCA_MR_DMA || mr->type == QHCA_MR_NULL;
}

bool vhca_mr_in_range(const struct vhca_mr *mr, uint64_t addr, uint64_t len)
{
    if (is_everywhere(mr)) {
        return len - 1 <= UINT64_MAX - addr;
    }
    return addr >= mr->iova && addr - mr->iova < mr->length &&
           len <= mr->length - (addr - mr->iova);
}

/*
 * Whether @user may use the object at all. It must be valid and of the same PD;
 * a type 2 window serves only the QP it was bound on (F-045, F-047).
 */
static bool accepts(const struct vhca_mr *mr, const struct vhca_key_user *user)
{
    return mr->valid && mr->pd == user->pd &&
           (mr->window <= QHCA_MW_1 || mr->binder->qpn == user->qpn);
}

static bool permits(const struct vhca_mr *mr, uint16_t access)
{
    if (access & VHCA_ACCESS_REMOTE ? is_everywhere(mr) : mr->window) {
        return false;
    }
    return (mr->access & access) == access;
}

/* Return the object of @key if it gives @user that access, or NULL. */
static struct vhca_mr *lookup(const struct qhca_engine *e,
                              const struct vhca_key_user *user, uint32_t key,
                              uint16_t access)
{
    struct vhca_mr *mr = vhca_mr_get(e, key);

    if (key == VHCA_RESERVED_LKEY) {
        mr = user->reserved ? &e->memory->reserved_mr : NULL;
    } else if (key == VHCA_NULL_LKEY) {
        mr = &e->memory->null_mr;
    } else if (mr && !accepts(mr, user)) {
        mr = NULL;
    }
    return mr && permits(mr, access) ? mr : NULL;
}

struct vhca_mr *vhca_mr_find(const struct qhca_engine *e,
                             const struct vhca_key_user *user, uint32_t key,
                             uint64_t addr, uint64_t len, uint16_t access)
{
    struct vhca_mr *mr = lookup(e, user, key, access);

    return mr && vhca_mr_in_range(mr, addr, len) ? mr : NULL;
}

struct vhca_mr *vhca_mr_check(struct qhca_engine *e,
                              const struct vhca_key_user *user, uint32_t key,
                              uint64_t addr, uint64_t len, uint16_t access)
{
    struct vhca_mr *mr = vhca_mr_find(e, user, key, addr, len, access);

    if (!mr) {
        vhca_count(e, QHCA_CNT_BAD_KEY);
    }
    return mr;
}

struct vhca_mr *vhca_mr_check_whole(struct qhca_engine *e,
                                    const struct vhca_key_user *user,
                                    uint32_t key, uint16_t access)
{
    struct vhca_mr *mr = lookup(e, user, key, access);

    if (!mr) {
        vhca_count(e, QHCA_CNT_BAD_KEY);
    }
    return mr;
}

/* Return the region behind @mr, and translate @addr to it. */
static const struct vhca_mr *resolve(const struct vhca_mr *mr, uint64_t *addr)
{
    if (mr->window) {
        *addr = *addr - mr->iova + mr->base;
        return mr->region;
    }
    return mr;
}

static uint64_t mem_offset(const struct vhca_mr *mr, uint64_t addr)
{
    return addr - mr->iova + mr->offset;
}

/* Whether the range is inside, as callers must have checked (D-065). */
static bool covers(const struct vhca_mr *mr, uint64_t addr, size_t len)
{
    return is_everywhere(mr) ||
           (len <= mr->length && addr - mr->iova <= mr->length - len);
}

static enum vhca_mem_result result_of(bool done)
{
    return done ? VHCA_MEM_OK : VHCA_MEM_DMA;
}

/* Data that are held back for these bytes go first. */
static void meet_held(struct qhca_engine *e, const struct vhca_mr *mr,
                      uint64_t addr, size_t len)
{
    if (__builtin_expect(e->late_data, 0)) {
        vhca_late_meet(e, mr, addr, len);
    }
}

bool vhca_mr_run(struct qhca_engine *e, const struct vhca_mr *mr,
                 uint64_t addr, size_t *len, bool write, uint64_t *at)
{
    mr = resolve(mr, &addr);
    switch (mr->type) {
    case QHCA_MR_NULL:
        return false;
    case QHCA_MR_DMA:
        *at = addr;
        return true;
    case QHCA_MR_ODP:
        return vhca_pages_run(e, mr, mem_offset(mr, addr), len, write, at);
    default:
        *at = vhca_mem_run(&mr->mem, mem_offset(mr, addr), len);
        vhca_spend(e, (unsigned)((*len >> mr->mem.block_shift) /
                                 VHCA_UNIT_RUN));
        return true;
    }
}

enum vhca_mem_result vhca_mr_read(struct qhca_engine *e,
                                  const struct vhca_mr *mr, uint64_t addr,
                                  void *buf, size_t len)
{
    mr = resolve(mr, &addr);
    VHCA_ASSERT(covers(mr, addr, len));
    meet_held(e, mr, addr, len);
    switch (mr->type) {
    case QHCA_MR_NULL:
        memset(buf, 0, len);
        return VHCA_MEM_OK;
    case QHCA_MR_DMA:
        return result_of(vhca_dma_read(e, addr, buf, len));
    case QHCA_MR_ODP:
        return vhca_pages_copy(e, mr, mem_offset(mr, addr), buf, len, false);
    default:
        return result_of(vhca_mem_read(e, &mr->mem, mem_offset(mr, addr), buf,
                                       len));
    }
}

enum vhca_mem_result vhca_mr_put(struct qhca_engine *e,
                                 const struct vhca_mr *mr, uint64_t addr,
                                 const void *buf, size_t len)
{
    switch (mr->type) {
    case QHCA_MR_NULL:
        return VHCA_MEM_OK;
    case QHCA_MR_DMA:
        return result_of(vhca_dma_try_write(e, addr, buf, len));
    case QHCA_MR_ODP:
        return vhca_pages_copy(e, mr, mem_offset(mr, addr), (uint8_t *)buf, len,
                               true);
    default:
        return result_of(vhca_mem_try_write(e, &mr->mem, mem_offset(mr, addr),
                                            buf, len));
    }
}

enum vhca_mem_result vhca_mr_write(struct qhca_engine *e, uint32_t qpn,
                                   const struct vhca_mr *mr, uint64_t addr,
                                   const void *buf, size_t len)
{
    mr = resolve(mr, &addr);
    VHCA_ASSERT(covers(mr, addr, len));
    meet_held(e, mr, addr, len);
    return vhca_rules_at(e, VHCA_RULE_PORT) && e->rules->disorder ?
           vhca_late_write(e, qpn, mr, addr, buf, len) :
           vhca_mr_put(e, mr, addr, buf, len);
}

enum vhca_mem_result vhca_mr_probe(struct qhca_engine *e,
                                   const struct vhca_mr *mr, uint64_t addr,
                                   uint64_t len)
{
    mr = resolve(mr, &addr);
    return mr->type == QHCA_MR_ODP ?
           vhca_pages_probe(e, mr, mem_offset(mr, addr), len) : VHCA_MEM_OK;
}

enum vhca_mem_result vhca_write_counted(struct qhca_engine *e,
                                        enum vhca_mem_result result)
{
    if (result == VHCA_MEM_DENIED) {
        vhca_count(e, QHCA_CNT_BAD_KEY);
    }
    vhca_dma_counted(e, result != VHCA_MEM_DMA);
    return result;
}

bool vhca_key_view(struct qhca_engine *e, const struct vhca_key_user *user,
                   uint32_t key, uint64_t addr, size_t len, uint16_t access,
                   struct vhca_view *view)
{
    const struct vhca_mr *mr = vhca_mr_find(e, user, key, addr, len, access);

    vhca_spend(e, 1);
    if (!mr) {
        return false;
    }
    mr = resolve(mr, &addr);
    meet_held(e, mr, addr, len);
    switch (mr->type) {
    case QHCA_MR_NULL:
        return false;
    case QHCA_MR_DMA:
        return vhca_dma_view(e, addr, len, view);
    case QHCA_MR_ODP:
        return vhca_pages_view(e, mr, mem_offset(mr, addr), len, view);
    default:
        return vhca_mem_view(e, &mr->mem, mem_offset(mr, addr), len, view);
    }
}

/* ---- 8-byte atomics, remote only: the region of the key has memory ---- */

/*
 * Find where the word is in memory. In a region of pieces the word can be in
 * two of them, or not be aligned. It can be unaligned in any region whose
 * addresses count from an unaligned byte.
 */
static enum vhca_mem_result find_word(struct qhca_engine *e,
                                      const struct vhca_mr *mr, uint64_t addr,
                                      uint64_t *dma)
{
    uint64_t off;

    mr = resolve(mr, &addr);
    off = mem_offset(mr, addr);
    meet_held(e, mr, addr, sizeof(uint64_t));
    if (mr->type != QHCA_MR_ODP && vhca_mem_is_word(&mr->mem, off)) {
        *dma = vhca_mem_addr(&mr->mem, off);
        return VHCA_MEM_OK;
    }
    /* Blocks and pages are aligned, so where in one the word is decides. */
    if (mr->type == QHCA_MR_ODP && !(off & 7)) {
        return vhca_pages_addr(e, mr, off, dma);
    }
    vhca_count(e, QHCA_CNT_BAD_KEY);
    return VHCA_MEM_DENIED;
}

/* Charge and count an atomic whose callback returned @done. */
static enum vhca_mem_result counted(struct qhca_engine *e, bool done)
{
    vhca_spend(e, 1);
    return result_of(vhca_dma_counted(e, done));
}

enum vhca_mem_result vhca_mr_cas(struct qhca_engine *e,
                                 const struct vhca_mr *mr, uint64_t addr,
                                 uint64_t compare, uint64_t swap, uint64_t *old)
{
    uint64_t dma;
    enum vhca_mem_result result = find_word(e, mr, addr, &dma);

    if (result == VHCA_MEM_OK) {
        result = counted(e, vhca_running(e) &&
                            e->ops->atomic_cas(e->opaque, dma,
                                               vhca_word(e, compare),
                                               vhca_word(e, swap), old));
    }
    if (result == VHCA_MEM_OK) {
        *old = vhca_word(e, *old);
    }
    return result;
}

enum vhca_mem_result vhca_mr_add(struct qhca_engine *e,
                                 const struct vhca_mr *mr, uint64_t addr,
                                 uint64_t add, uint64_t *old)
{
    uint64_t dma;
    enum vhca_mem_result result = find_word(e, mr, addr, &dma);

    return result != VHCA_MEM_OK ? result :
           counted(e, vhca_running(e) &&
                      e->ops->atomic_add(e->opaque, dma, add, old));
}

enum vhca_mem_result vhca_mr_store(struct qhca_engine *e,
                                   const struct vhca_mr *mr, uint64_t addr,
                                   const uint8_t *bytes)
{
    uint64_t dma;
    enum vhca_mem_result result = find_word(e, mr, addr, &dma);

    return result != VHCA_MEM_OK ? result :
           counted(e, vhca_running(e) &&
                      e->ops->atomic_store(e->opaque, dma, bytes));
}
