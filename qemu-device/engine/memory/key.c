/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: memory keys in use. A key is an object number, of a region or of
 * a window, and a variant byte; whoever uses it is checked here, each time
 * (conformance F-004).
 */
#include "memory.h"

struct qhca_mr *qhca_mr_by_number(const struct qhca_engine *e, uint32_t key)
{
    return qhca_table_get(&e->memory->mr, key >> 8);
}

struct qhca_mr *qhca_mr_get(const struct qhca_engine *e, uint32_t key)
{
    struct qhca_mr *mr = qhca_mr_by_number(e, key);

    return mr && mr->key == key ? mr : NULL;
}

/* Covers every address, has no memory of its own, serves no peer. */
static bool is_everywhere(const struct qhca_mr *mr)
{
    return mr->type == QHCA_MR_DMA || mr->type == QHCA_MR_NULL;
}

bool qhca_mr_in_range(const struct qhca_mr *mr, uint64_t addr, uint64_t len)
{
    if (is_everywhere(mr)) {
        return len - 1 <= UINT64_MAX - addr;
    }
    return addr >= mr->iova && addr - mr->iova < mr->length &&
           len <= mr->length - (addr - mr->iova);
}

/*
 * Whether @user may use the object at all. It must be valid; a type 2 window
 * serves the QP it was bound on; all but type 2A need the same PD (F-045 to
 * F-047).
 */
static bool accepts(const struct qhca_mr *mr, const struct qhca_key_user *user)
{
    if (!mr->valid || (mr->window != QHCA_MW_2A && mr->pd != user->pd)) {
        return false;
    }
    return mr->window <= QHCA_MW_1 || mr->binder->qpn == user->qpn;
}

static bool permits(const struct qhca_mr *mr, uint16_t access)
{
    if (access & QHCA_ACCESS_REMOTE ? is_everywhere(mr) : mr->window) {
        return false;
    }
    return (mr->access & access) == access;
}

/* What @key stands for if it gives @user that access, or NULL. */
static struct qhca_mr *lookup(const struct qhca_engine *e,
                              const struct qhca_key_user *user, uint32_t key,
                              uint16_t access)
{
    struct qhca_mr *mr = qhca_mr_get(e, key);

    if (key == QHCA_RESERVED_LKEY) {
        mr = user->reserved ? &e->memory->reserved_mr : NULL;
    } else if (key == QHCA_NULL_LKEY) {
        mr = &e->memory->null_mr;
    } else if (mr && !accepts(mr, user)) {
        mr = NULL;
    }
    return mr && permits(mr, access) ? mr : NULL;
}

/* The same for a range; NULL also if that is not inside. */
static struct qhca_mr *lookup_range(const struct qhca_engine *e,
                                    const struct qhca_key_user *user,
                                    uint32_t key, uint64_t addr, uint64_t len,
                                    uint16_t access)
{
    struct qhca_mr *mr = lookup(e, user, key, access);

    return mr && qhca_mr_in_range(mr, addr, len) ? mr : NULL;
}

struct qhca_mr *qhca_mr_check(struct qhca_engine *e,
                              const struct qhca_key_user *user, uint32_t key,
                              uint64_t addr, uint64_t len, uint16_t access)
{
    struct qhca_mr *mr = lookup_range(e, user, key, addr, len, access);

    if (!mr) {
        qhca_count(e, QHCA_CNT_BAD_KEY);
    }
    return mr;
}

const struct qhca_mr *qhca_mr_find(const struct qhca_engine *e,
                                   const struct qhca_key_user *user,
                                   uint32_t key, uint64_t addr, uint64_t len,
                                   uint16_t access)
{
    return lookup_range(e, user, key, addr, len, access);
}

struct qhca_mr *qhca_mr_check_whole(struct qhca_engine *e,
                                    const struct qhca_key_user *user,
                                    uint32_t key, uint16_t access)
{
    struct qhca_mr *mr = lookup(e, user, key, access);

    if (!mr) {
        qhca_count(e, QHCA_CNT_BAD_KEY);
    }
    return mr;
}

/* The region behind a window, and what @addr is there. */
static const struct qhca_mr *resolve(const struct qhca_mr *mr, uint64_t *addr)
{
    if (mr->window) {
        *addr = *addr - mr->iova + mr->base;
        return mr->region;
    }
    return mr;
}

/* Offset in mr->mem. */
static uint64_t mem_offset(const struct qhca_mr *mr, uint64_t addr)
{
    return addr - mr->iova + mr->offset;
}

static enum qhca_mem_result result_of(bool done)
{
    return done ? QHCA_MEM_OK : QHCA_MEM_DMA;
}

enum qhca_mem_result qhca_mr_read(struct qhca_engine *e,
                                  const struct qhca_mr *mr, uint64_t addr,
                                  void *buf, size_t len)
{
    mr = resolve(mr, &addr);
    switch (mr->type) {
    case QHCA_MR_NULL:
        memset(buf, 0, len);
        return QHCA_MEM_OK;
    case QHCA_MR_DMA:
        return result_of(qhca_dma_read(e, addr, buf, len));
    default:
        return result_of(qhca_mem_read(e, &mr->mem, mem_offset(mr, addr), buf,
                                       len));
    }
}

bool qhca_mr_try_write(struct qhca_engine *e, const struct qhca_mr *mr,
                       uint64_t addr, const void *buf, size_t len)
{
    mr = resolve(mr, &addr);
    switch (mr->type) {
    case QHCA_MR_NULL:
        return true;
    case QHCA_MR_DMA:
        return qhca_dma_try_write(e, addr, buf, len);
    default:
        return qhca_mem_try_write(e, &mr->mem, mem_offset(mr, addr), buf, len);
    }
}

enum qhca_mem_result qhca_mr_write(struct qhca_engine *e,
                                   const struct qhca_mr *mr, uint64_t addr,
                                   const void *buf, size_t len)
{
    bool done = qhca_mr_try_write(e, mr, addr, buf, len);

    return result_of(qhca_dma_counted(e, done));
}

enum qhca_mem_result qhca_key_read(struct qhca_engine *e,
                                   const struct qhca_key_user *user,
                                   uint32_t key, uint64_t addr, void *buf,
                                   size_t len, uint16_t access)
{
    const struct qhca_mr *mr = qhca_mr_check(e, user, key, addr, len, access);

    return mr ? qhca_mr_read(e, mr, addr, buf, len) : QHCA_MEM_DENIED;
}

enum qhca_mem_result qhca_key_write(struct qhca_engine *e,
                                    const struct qhca_key_user *user,
                                    uint32_t key, uint64_t addr,
                                    const void *buf, size_t len,
                                    uint16_t access)
{
    const struct qhca_mr *mr = qhca_mr_check(e, user, key, addr, len, access);

    return mr ? qhca_mr_write(e, mr, addr, buf, len) : QHCA_MEM_DENIED;
}

bool qhca_key_view(struct qhca_engine *e, const struct qhca_key_user *user,
                   uint32_t key, uint64_t addr, size_t len, uint16_t access,
                   struct qhca_view *view)
{
    const struct qhca_mr *mr = lookup_range(e, user, key, addr, len, access);

    qhca_spend(e, 1);
    if (!mr) {
        return false;
    }
    mr = resolve(mr, &addr);
    switch (mr->type) {
    case QHCA_MR_NULL:
        return false;
    case QHCA_MR_DMA:
        return qhca_dma_view(e, addr, len, view);
    default:
        return qhca_mem_view(e, &mr->mem, mem_offset(mr, addr), len, view);
    }
}

/* ---- 8 bytes at once, for the peer: so there is memory behind the key ---- */

static uint64_t dma_addr(const struct qhca_mr *mr, uint64_t addr)
{
    mr = resolve(mr, &addr);
    return qhca_mem_addr(&mr->mem, mem_offset(mr, addr));
}

/* What became of an atomic: the callback said @done. */
static enum qhca_mem_result counted(struct qhca_engine *e, bool done)
{
    qhca_spend(e, 1);
    return result_of(qhca_dma_counted(e, done));
}

enum qhca_mem_result qhca_mr_cas(struct qhca_engine *e,
                                 const struct qhca_mr *mr, uint64_t addr,
                                 uint64_t compare, uint64_t swap, uint64_t *old)
{
    return counted(e, qhca_running(e) &&
                      e->ops->atomic_cas(e->opaque, dma_addr(mr, addr), compare,
                                         swap, old));
}

enum qhca_mem_result qhca_mr_add(struct qhca_engine *e,
                                 const struct qhca_mr *mr, uint64_t addr,
                                 uint64_t add, uint64_t *old)
{
    return counted(e, qhca_running(e) &&
                      e->ops->atomic_add(e->opaque, dma_addr(mr, addr), add,
                                         old));
}

enum qhca_mem_result qhca_mr_store(struct qhca_engine *e,
                                   const struct qhca_mr *mr, uint64_t addr,
                                   const uint8_t *bytes)
{
    return counted(e, qhca_running(e) &&
                      e->ops->atomic_store(e->opaque, dma_addr(mr, addr),
                                           bytes));
}
