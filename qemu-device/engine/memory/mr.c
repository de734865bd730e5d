/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: memory regions: commands, fast registration, invalidation. The
 * use of their keys is in key.c.
 */
#include <stdlib.h>

#include "memory.h"

/* Whether a region can have @access; remote writes need local write. */
static bool access_ok(uint16_t access)
{
    if (access & ~(QHCA_ACCESS_MASK | QHCA_ACCESS_ZERO_BASED)) {
        return false;
    }
    return !(access & (QHCA_ACCESS_REMOTE_WRITE | QHCA_ACCESS_REMOTE_ATOMIC)) ||
           (access & QHCA_ACCESS_LOCAL_WRITE);
}

bool vhca_mr_add_key(struct qhca_engine *e, struct vhca_mr *mr)
{
    uint32_t number = vhca_table_add(&e->memory->mr, mr);

    if (!number) {
        return false;
    }
    mr->key = number << 8 | (e->ops->random(e->opaque) & 0xff);
    mr->pd->users++;
    e->memory->num_odp += !mr->window && mr->type == QHCA_MR_ODP;
    return true;
}

/* Check where a region begins: its range, and its offset in the first block. */
static int check_place(const struct qhca_cmd_reg_mr *r)
{
    uint64_t iova = le64toh(r->iova);
    uint64_t length = le64toh(r->length);

    if ((length && length - 1 > UINT64_MAX - iova) ||
        r->buf.block_shift > QHCA_BLOCK_SHIFT_MAX ||
        le32toh(r->offset) >= 1ull << r->buf.block_shift) {
        return QHCA_ERR_PARAM;
    }
    return QHCA_OK;
}

/* For type MEM; the import of its memory checks the blocks. */
static int check_translation(const struct qhca_cmd_reg_mr *r)
{
    return le64toh(r->length) > VHCA_MAX_MR_SIZE ? QHCA_ERR_LIMIT :
                                                   check_place(r);
}

/* For type ODP, whose pages come later. */
static int check_odp(const struct qhca_cmd_reg_mr *r)
{
    uint64_t length = le64toh(r->length);

    if (!length || length > QHCA_ODP_SIZE_MAX - le32toh(r->offset)) {
        return QHCA_ERR_LIMIT;
    }
    return r->buf.block_shift < QHCA_BLOCK_SHIFT_MIN ? QHCA_ERR_PARAM :
                                                       check_place(r);
}

/* For a region of type FAST the length is a number of blocks. */
static int check_fast(const struct qhca_cmd_reg_mr *r)
{
    if (!r->length || r->access) {
        return QHCA_ERR_PARAM;
    }
    return le64toh(r->length) > VHCA_MAX_FAST_REG ? QHCA_ERR_LIMIT : QHCA_OK;
}

int vhca_mr_check_reg(const struct qhca_cmd_reg_mr *r)
{
    uint16_t access = le16toh(r->access);

    if (!access_ok(access)) {
        return QHCA_ERR_PARAM;
    }
    switch (r->type) {
    case QHCA_MR_MEM:
        return check_translation(r);
    case QHCA_MR_DMA:
        return access & ~QHCA_ACCESS_LOCAL_WRITE ? QHCA_ERR_PARAM : QHCA_OK;
    case QHCA_MR_FAST:
        return check_fast(r);
    case QHCA_MR_ODP:
        return check_odp(r);
    default:
        return QHCA_ERR_PARAM;
    }
}

static void set_place(struct vhca_mr *mr, const struct qhca_cmd_reg_mr *r)
{
    mr->iova = le64toh(r->iova);
    mr->length = le64toh(r->length);
    mr->offset = le32toh(r->offset);
}

/* Import the memory of the command; on success it belongs to @mr. */
static int set_translation(struct qhca_engine *e, struct vhca_cmd_ctx *c,
                           struct vhca_mr *mr)
{
    const struct qhca_cmd_reg_mr *r = &c->cmd->reg_mr;
    int status;

    set_place(mr, r);
    status = vhca_import(e, &c->import[0], &r->buf, mr->offset + mr->length);
    if (status == QHCA_OK) {
        mr->mem = vhca_import_take(&c->import[0]);
    }
    return status;
}

static int init_mr(struct qhca_engine *e, struct vhca_cmd_ctx *c,
                   struct vhca_mr *mr)
{
    const struct qhca_cmd_reg_mr *r = &c->cmd->reg_mr;
    int status;

    mr->pd = vhca_table_get(&e->memory->pd, le32toh(r->pdn));
    mr->access = le16toh(r->access);
    mr->type = r->type;
    mr->valid = mr->type != QHCA_MR_FAST;
    if (!mr->pd) {
        return QHCA_ERR_OBJ;
    }
    status = vhca_mr_check_reg(r);
    if (status != QHCA_OK || mr->type == QHCA_MR_DMA) {
        return status;
    }
    if (mr->type == QHCA_MR_ODP) {
        set_place(mr, r);
        vhca_pages_init(&mr->pages, mr->offset + mr->length,
                        r->buf.block_shift);
        return QHCA_OK;
    }
    /*
     * Reserve room for the addresses, so that REG_MR cannot run out of memory.
     */
    return mr->type == QHCA_MR_MEM ? set_translation(e, c, mr) :
           vhca_mem_reserve(e, &mr->mem, (uint32_t)le64toh(r->length));
}

int vhca_do_reg_mr(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    struct vhca_mr *mr;
    int status;

    if (e->memory->mr.used - e->memory->num_mw >= VHCA_MAX_MR) {
        return QHCA_ERR_NO_RESOURCE;
    }
    mr = calloc(1, sizeof(*mr));
    if (!mr) {
        return QHCA_ERR_NO_RESOURCE;
    }
    status = init_mr(e, c, mr);
    if (status != QHCA_OK) {
        free(mr);
        return status;
    }
    if (!vhca_mr_add_key(e, mr)) {
        vhca_mem_release(e, &mr->mem);
        free(mr);
        return QHCA_ERR_NO_RESOURCE;
    }
    c->obj = mr->key;
    return QHCA_OK;
}

/* Make @mr, a copy, what it will be after REREG_MR. */
static int prepare_rereg(struct qhca_engine *e, struct vhca_cmd_ctx *c,
                         struct vhca_mr *mr)
{
    const struct qhca_cmd_reg_mr *r = &c->cmd->reg_mr;

    if (r->rereg & QHCA_REREG_PD) {
        mr->pd = vhca_table_get(&e->memory->pd, le32toh(r->pdn));
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
        int status = check_translation(r);

        return status == QHCA_OK ? set_translation(e, c, mr) : status;
    }
    return QHCA_OK;
}

/* Everything changes, or nothing. */
int vhca_do_rereg_mr(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const struct qhca_cmd_reg_mr *r = &c->cmd->reg_mr;
    const uint8_t all = QHCA_REREG_TRANS | QHCA_REREG_PD | QHCA_REREG_ACCESS;
    struct vhca_mr *mr = vhca_mr_get(e, le32toh(r->key));
    struct vhca_mr next;
    int status;

    if (!mr || mr->window) {
        return QHCA_ERR_OBJ;
    }
    if (r->rereg == 0 || r->rereg & ~all ||
        (mr->type != QHCA_MR_MEM &&
         (mr->type != QHCA_MR_ODP || r->rereg & QHCA_REREG_TRANS))) {
        return QHCA_ERR_PARAM;
    }
    if (mr->windows) {
        return QHCA_ERR_BUSY;
    }
    next = *mr;
    status = prepare_rereg(e, c, &next);
    if (status != QHCA_OK) {
        return status;
    }
    if (r->rereg & QHCA_REREG_TRANS) {
        vhca_mem_release(e, &mr->mem);
    }
    mr->pd->users--;
    next.pd->users++;
    *mr = next;
    c->obj = mr->key;
    return QHCA_OK;
}

void vhca_mr_del_key(struct qhca_engine *e, struct vhca_mr *mr)
{
    vhca_table_del(&e->memory->mr, mr->key >> 8);
    mr->pd->users--;
    e->memory->num_odp -= !mr->window && mr->type == QHCA_MR_ODP;
}

static void free_mr(struct qhca_engine *e, struct vhca_mr *mr)
{
    vhca_mr_del_key(e, mr);
    if (mr->type == QHCA_MR_ODP) {
        vhca_pages_clear(e, &mr->pages, 0, mr->pages.num, true);
    } else {
        vhca_mem_release(e, &mr->mem);
    }
    free(mr);
}

int vhca_do_dereg_mr(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    uint32_t key = le32toh(c->cmd->obj.obj);
    struct vhca_mr *mr = vhca_mr_by_number(e, key);

    /* The driver need not know the variant of a FAST region. */
    if (!mr || mr->window || (mr->key != key && mr->type != QHCA_MR_FAST)) {
        return QHCA_ERR_OBJ;
    }
    if (mr->windows) {
        return QHCA_ERR_BUSY;           /* F-009 */
    }
    /*
     * While this goes on, a work request can bind a window, and then the region
     * stays. The pages that it has lost come again by faults.
     */
    if (mr->type == QHCA_MR_ODP &&
        vhca_pages_clear(e, &mr->pages, 0, mr->pages.num, false) != QHCA_OK) {
        return VHCA_AGAIN;
    }
    free_mr(e, mr);
    return QHCA_OK;
}

void vhca_mr_free_all(struct qhca_engine *e)
{
    struct vhca_mr *mr;

    vhca_table_each(&e->memory->mr, mr) {
        free_mr(e, mr);
    }
}

/* ---- work requests ---- */

/* A list of pieces has two words for each, and begins with the region. */
static bool list_ok(const struct vhca_memop *op)
{
    if (!op->block_shift) {
        return op->num_blocks % 2 == 0 && !op->offset;
    }
    return op->block_shift >= QHCA_BLOCK_SHIFT_MIN &&
           op->block_shift <= QHCA_BLOCK_SHIFT_MAX &&
           op->offset < 1ull << op->block_shift &&
           op->offset + op->length <=
           (uint64_t)op->num_blocks << op->block_shift;
}

/* F-026 */
bool vhca_mr_fast_reg_ok(const struct vhca_mr *mr, const struct vhca_memop *op)
{
    return access_ok(op->access) &&
           op->num_blocks <= mr->mem.num_blocks && op->length &&
           op->length <= VHCA_MAX_MR_SIZE &&
           op->length - 1 <= UINT64_MAX - op->addr && list_ok(op);
}

enum qhca_cqe_status vhca_mr_fast_reg(struct qhca_engine *e,
                                      const struct vhca_key_user *user,
                                      const struct vhca_memop *op)
{
    struct vhca_mr *mr = vhca_mr_by_number(e, op->key);
    int status = QHCA_ERR_PARAM;

    /* F-025 */
    if (mr && !mr->window && mr->type == QHCA_MR_FAST && !mr->valid &&
        mr->pd == user->pd && vhca_mr_fast_reg_ok(mr, op)) {
        status = vhca_mem_fill(e, &mr->mem, op->table, op->num_blocks,
                               op->block_shift, op->length);
    }
    switch (status) {
    case QHCA_OK:
        mr->key = op->key;
        mr->iova = op->addr;
        mr->length = op->length;
        mr->offset = op->offset;
        mr->access = op->access;
        mr->valid = true;
        return QHCA_WC_SUCCESS;
    case QHCA_ERR_DMA:
        return QHCA_WC_LOC_PROT_ERR;
    default:
        vhca_count(e, QHCA_CNT_BAD_KEY);
        return QHCA_WC_MW_BIND_ERR;
    }
}

/* F-028, F-029, F-049, F-050 */
static bool may_invalidate(const struct vhca_mr *mr,
                           const struct vhca_key_user *user, bool remote)
{
    switch (mr->window) {
    case 0:
        return mr->type == QHCA_MR_FAST && mr->pd == user->pd && !mr->windows &&
               (!remote || (mr->access & VHCA_ACCESS_REMOTE));
    case QHCA_MW_1:
        return false;
    default:
        return mr->pd == user->pd &&
               (!mr->valid || mr->binder->qpn == user->qpn);
    }
}

bool vhca_mr_invalidate(struct qhca_engine *e, const struct vhca_key_user *user,
                        uint32_t key, bool remote)
{
    struct vhca_mr *mr = vhca_mr_get(e, key);

    if (!mr || !may_invalidate(mr, user, remote)) {
        vhca_count(e, QHCA_CNT_BAD_KEY);
        return false;
    }
    vhca_late_finish(e, VHCA_EVERY_QP);
    if (mr->window) {
        vhca_mw_unbind(mr);
    }
    mr->valid = false;
    return true;
}
