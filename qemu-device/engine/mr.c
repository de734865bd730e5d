/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: memory regions. A key is an object number and a variant byte;
 * whoever uses it is checked here, each time (conformance F-004).
 */
#include <stdlib.h>

#include "internal.h"

#define ACCESS_REMOTE   (QHCA_ACCESS_REMOTE_WRITE | QHCA_ACCESS_REMOTE_READ | \
                         QHCA_ACCESS_REMOTE_ATOMIC)

static struct qhca_mr *mr_by_key(struct qhca_engine *e, uint32_t key)
{
    struct qhca_mr *mr = qhca_table_get(&e->mr, key >> 8);

    return mr && mr->key == key ? mr : NULL;
}

/* A variant other than the last one this slot had (F-007). */
static uint32_t new_key(struct qhca_engine *e, uint32_t number)
{
    uint8_t *variant = &e->mr_variant[number & e->mr.slot_mask];

    *variant = (uint8_t)(*variant + 1 + qhca_random(&e->rng) % 255);
    return number << 8 | *variant;
}

/* F-002: a peer's write is a write of the local memory. */
static bool access_ok(uint16_t access)
{
    if (access & ~QHCA_ACCESS_MASK) {
        return false;
    }
    return !(access & (QHCA_ACCESS_REMOTE_WRITE | QHCA_ACCESS_REMOTE_ATOMIC)) ||
           (access & QHCA_ACCESS_LOCAL_WRITE);
}

/* Reads @r's translation into @mr; @mr->mem is empty on error. */
static int set_translation(struct qhca_engine *e, struct qhca_mr *mr,
                           const struct qhca_cmd_reg_mr *r)
{
    uint64_t iova = le64toh(r->iova);
    uint64_t length = le64toh(r->length);
    uint32_t offset = le32toh(r->offset);

    if (length > QHCA_MAX_MR_SIZE) {
        return QHCA_ERR_LIMIT;
    }
    if (length == 0 || length - 1 > UINT64_MAX - iova ||
        r->buf.block_shift > QHCA_BLOCK_SHIFT_MAX ||
        offset >= 1ull << r->buf.block_shift) {
        return QHCA_ERR_PARAM;
    }
    mr->iova = iova;
    mr->length = length;
    mr->offset = offset;
    return qhca_mem_import(e, &mr->mem, &r->buf, offset + length);
}

static int init_mr(struct qhca_engine *e, struct qhca_mr *mr,
                   const struct qhca_cmd_reg_mr *r)
{
    mr->pd = qhca_table_get(&e->pd, le32toh(r->pdn));
    mr->access = le16toh(r->access);
    mr->type = r->type;
    if (!mr->pd) {
        return QHCA_ERR_OBJ;
    }
    if (!access_ok(mr->access)) {
        return QHCA_ERR_PARAM;
    }
    switch (mr->type) {
    case QHCA_MR_MEM:
        return set_translation(e, mr, r);
    case QHCA_MR_DMA:
        return mr->access & ACCESS_REMOTE ? QHCA_ERR_PARAM : QHCA_OK;
    default:
        return QHCA_ERR_PARAM;
    }
}

/**
 * qhca_cmd_reg_mr() - REG_MR
 * @e: the engine
 * @c: the command
 */
int qhca_cmd_reg_mr(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    struct qhca_mr *mr = calloc(1, sizeof(*mr));
    uint32_t number;
    int status;

    if (!mr) {
        return QHCA_ERR_NO_RESOURCE;
    }
    status = init_mr(e, mr, &c->cmd->reg_mr);
    if (status != QHCA_OK) {
        free(mr);
        return status;
    }
    number = qhca_table_add(&e->mr, mr);
    if (!number) {
        qhca_mem_release(e, &mr->mem);
        free(mr);
        return QHCA_ERR_NO_RESOURCE;
    }
    mr->key = new_key(e, number);
    mr->pd->users++;
    c->obj = mr->key;
    return QHCA_OK;
}

/* What @mr would be after the REREG_MR @r; nothing has changed yet. */
static int prepare_rereg(struct qhca_engine *e, struct qhca_mr *mr,
                         const struct qhca_cmd_reg_mr *r)
{
    if (r->rereg & QHCA_REREG_PD) {
        mr->pd = qhca_table_get(&e->pd, le32toh(r->pdn));
        if (!mr->pd) {
            return QHCA_ERR_OBJ;
        }
    }
    if (r->rereg & QHCA_REREG_ACCESS) {
        mr->access = le16toh(r->access);
        if (!access_ok(mr->access)) {
            return QHCA_ERR_PARAM;
        }
    }
    if (r->rereg & QHCA_REREG_TRANS) {
        return set_translation(e, mr, r);
    }
    return QHCA_OK;
}

/**
 * qhca_cmd_rereg_mr() - REREG_MR: all of it, or nothing
 * @e: the engine
 * @c: the command
 */
int qhca_cmd_rereg_mr(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    const struct qhca_cmd_reg_mr *r = &c->cmd->reg_mr;
    const uint8_t all = QHCA_REREG_TRANS | QHCA_REREG_PD | QHCA_REREG_ACCESS;
    struct qhca_mr *mr = mr_by_key(e, le32toh(r->key));
    struct qhca_mr next;
    int status;

    if (!mr) {
        return QHCA_ERR_OBJ;
    }
    if (r->rereg == 0 || r->rereg & ~all || mr->type != QHCA_MR_MEM) {
        return QHCA_ERR_PARAM;
    }
    next = *mr;
    status = prepare_rereg(e, &next, r);
    if (status != QHCA_OK) {
        return status;
    }
    if (r->rereg & QHCA_REREG_TRANS) {
        qhca_mem_release(e, &mr->mem);
    }
    mr->pd->users--;
    next.pd->users++;
    *mr = next;
    c->obj = mr->key;
    return QHCA_OK;
}

static void free_mr(struct qhca_engine *e, struct qhca_mr *mr)
{
    qhca_table_del(&e->mr, mr->key >> 8);
    mr->pd->users--;
    qhca_mem_release(e, &mr->mem);
    free(mr);
}

/**
 * qhca_cmd_dereg_mr() - DEREG_MR
 * @e: the engine
 * @c: the command
 */
int qhca_cmd_dereg_mr(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    struct qhca_mr *mr = mr_by_key(e, le32toh(c->cmd->obj.obj));

    if (!mr) {
        return QHCA_ERR_OBJ;
    }
    free_mr(e, mr);
    return QHCA_OK;
}

/**
 * qhca_mr_free_all() - frees every MR (reset)
 * @e: the engine
 */
void qhca_mr_free_all(struct qhca_engine *e)
{
    struct qhca_mr *mr;
    uint32_t i;

    for (i = 0; i < e->mr.size && e->mr.used > 0; i++) {
        mr = qhca_table_at(&e->mr, i);
        if (mr) {
            free_mr(e, mr);
        }
    }
}

/* Byte-exact, and without the sum of two guest values that could wrap. */
static bool in_range(const struct qhca_mr *mr, uint64_t addr, uint64_t len)
{
    if (mr->type == QHCA_MR_DMA) {
        return len - 1 <= UINT64_MAX - addr;
    }
    return addr >= mr->iova && addr - mr->iova < mr->length &&
           len <= mr->length - (addr - mr->iova);
}

static bool permits(const struct qhca_mr *mr, uint64_t addr, uint64_t len,
                    uint16_t access)
{
    return (mr->access & access) == access &&
           !(mr->type == QHCA_MR_DMA && access & ACCESS_REMOTE) &&
           in_range(mr, addr, len);
}

/**
 * qhca_mr_check() - whether a key gives access to a range
 * @e: the engine
 * @user: who uses it
 * @key: the key
 * @addr: first byte
 * @len: bytes, not 0
 * @access: QHCA_ACCESS_*, 0 for local read
 *
 * Return: the region, or NULL.
 */
struct qhca_mr *qhca_mr_check(struct qhca_engine *e,
                              const struct qhca_key_user *user, uint32_t key,
                              uint64_t addr, uint64_t len, uint16_t access)
{
    struct qhca_mr *mr;

    if (key == QHCA_RESERVED_LKEY) {
        if (user->reserved && permits(&e->reserved_mr, addr, len, access)) {
            return &e->reserved_mr;
        }
    } else {
        mr = mr_by_key(e, key);
        if (mr && mr->pd == user->pd && permits(mr, addr, len, access)) {
            return mr;
        }
    }
    qhca_count(e, QHCA_CNT_BAD_KEY);
    return NULL;
}

/* Offset in mr->mem. */
static uint64_t mem_offset(const struct qhca_mr *mr, uint64_t addr)
{
    return addr - mr->iova + mr->offset;
}

/**
 * qhca_mr_read() - copies from a checked range
 * @e: the engine
 * @mr: as qhca_mr_check() returned it
 * @addr: first byte
 * @buf: where to put it
 * @len: bytes
 */
bool qhca_mr_read(struct qhca_engine *e, struct qhca_mr *mr, uint64_t addr,
                  void *buf, size_t len)
{
    if (mr->type == QHCA_MR_DMA) {
        return qhca_dma_read(e, addr, buf, len);
    }
    return qhca_mem_read(e, &mr->mem, mem_offset(mr, addr), buf, len);
}

/**
 * qhca_mr_write() - copies to a checked range
 * @e: the engine
 * @mr: as qhca_mr_check() returned it
 * @addr: first byte
 * @buf: what to write
 * @len: bytes
 */
bool qhca_mr_write(struct qhca_engine *e, struct qhca_mr *mr, uint64_t addr,
                   const void *buf, size_t len)
{
    if (mr->type == QHCA_MR_DMA) {
        return qhca_dma_write(e, addr, buf, len);
    }
    return qhca_mem_write(e, &mr->mem, mem_offset(mr, addr), buf, len);
}

static uint64_t dma_addr(const struct qhca_mr *mr, uint64_t addr)
{
    if (mr->type == QHCA_MR_DMA) {
        return addr;
    }
    return qhca_mem_addr(&mr->mem, mem_offset(mr, addr));
}

/**
 * qhca_mr_cas() - compare-and-swap of 8 bytes in a checked range
 * @e: the engine
 * @mr: as qhca_mr_check() returned it
 * @addr: 8-byte aligned
 * @compare: value to find
 * @swap: value to put
 * @old: value found
 */
bool qhca_mr_cas(struct qhca_engine *e, struct qhca_mr *mr, uint64_t addr,
                 uint64_t compare, uint64_t swap, uint64_t *old)
{
    if (!qhca_running(e)) {
        return false;
    }
    if (!e->ops->atomic_cas(e->opaque, dma_addr(mr, addr), compare, swap,
                            old)) {
        qhca_count(e, QHCA_CNT_DMA_ERR);
        return false;
    }
    return true;
}

/**
 * qhca_mr_add() - fetch-and-add of 8 bytes in a checked range
 * @e: the engine
 * @mr: as qhca_mr_check() returned it
 * @addr: 8-byte aligned
 * @add: what to add
 * @old: value found
 */
bool qhca_mr_add(struct qhca_engine *e, struct qhca_mr *mr, uint64_t addr,
                 uint64_t add, uint64_t *old)
{
    if (!qhca_running(e)) {
        return false;
    }
    if (!e->ops->atomic_add(e->opaque, dma_addr(mr, addr), add, old)) {
        qhca_count(e, QHCA_CNT_DMA_ERR);
        return false;
    }
    return true;
}
