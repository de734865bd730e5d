/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: memory windows (IBTA 10.6.7). A window is an object in the table
 * of regions: it has a key, rights and a range, and while it is bound it refers
 * to a region, which cannot be destroyed.
 */
#include <stdlib.h>

#include "memory.h"

int vhca_do_alloc_mw(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const struct qhca_cmd_alloc_mw *r = &c->cmd->alloc_mw;
    struct vhca_holder *pd = vhca_table_get(&e->memory->pd, le32toh(r->pdn));
    struct vhca_mr *mw;

    if (r->type != QHCA_MW_1 && r->type != QHCA_MW_2B) {
        return QHCA_ERR_PARAM;
    }
    if (!pd) {
        return QHCA_ERR_OBJ;
    }
    if (e->memory->num_mw >= VHCA_MAX_MW) {
        return QHCA_ERR_NO_RESOURCE;
    }
    mw = calloc(1, sizeof(*mw));
    if (!mw) {
        return QHCA_ERR_NO_RESOURCE;
    }
    mw->window = r->type;
    mw->pd = pd;
    vhca_list_init(&mw->bound);
    if (!vhca_mr_add_key(e, mw)) {
        free(mw);
        return QHCA_ERR_NO_RESOURCE;
    }
    e->memory->num_mw++;
    c->obj = mw->key;
    return QHCA_OK;
}

void vhca_mw_unbind(struct vhca_mr *mw)
{
    if (!mw->valid) {
        return;
    }
    vhca_list_del(&mw->bound);
    mw->region->windows--;
    mw->region = NULL;
    mw->binder = NULL;
    mw->valid = false;
}

static void free_mw(struct qhca_engine *e, struct vhca_mr *mw)
{
    vhca_mw_unbind(mw);
    vhca_mr_del_key(e, mw);
    e->memory->num_mw--;
    free(mw);
}

/* The driver may deallocate a window that is bound (F-052). */
int vhca_do_dealloc_mw(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    /* The driver does not know the variant: user space chose it. */
    struct vhca_mr *mw = vhca_mr_by_number(e, le32toh(c->cmd->obj.obj));

    if (!mw || !mw->window) {
        return QHCA_ERR_OBJ;
    }
    free_mw(e, mw);
    return QHCA_OK;
}

void vhca_mw_free_all(struct qhca_engine *e)
{
    struct vhca_mr *mw;

    vhca_table_each(&e->memory->mr, mw) {
        if (mw->window) {
            vhca_list_init(&mw->bound);     /* its QP has been freed */
            free_mw(e, mw);
        }
    }
}

/* ---- binding ---- */

/* C10-73 to C10-75; F-039. A window grants nothing its region lacks. */
static bool region_ok(const struct vhca_mr *mr,
                      const struct vhca_key_user *user,
                      const struct vhca_memop *op)
{
    const uint16_t writes = QHCA_ACCESS_REMOTE_WRITE |
                            QHCA_ACCESS_REMOTE_ATOMIC;
    const uint16_t flushes = QHCA_ACCESS_FLUSH_GLOBAL |
                             QHCA_ACCESS_FLUSH_PERSISTENT;

    return mr && !mr->window && mr->valid && mr->type != QHCA_MR_DMA &&
           mr->pd == user->pd && (mr->access & QHCA_ACCESS_MW_BIND) &&
           !(mr->access & QHCA_ACCESS_ZERO_BASED) &&
           (!(op->access & writes) ||
            (mr->access & QHCA_ACCESS_LOCAL_WRITE)) &&
           !(op->access & flushes & ~mr->access) &&
           vhca_mr_in_range(mr, op->addr, op->length);
}

/* Check PD and rights of a binding, wherever the window is bound. */
static bool rights_ok(const struct vhca_mr *mw,
                      const struct vhca_key_user *user,
                      const struct vhca_memop *op)
{
    const uint16_t zero_based = mw->window == QHCA_MW_1 ?
                                0 : QHCA_ACCESS_ZERO_BASED;

    return mw->pd == user->pd &&
           !(op->access & ~(VHCA_ACCESS_REMOTE | zero_based));
}

bool vhca_mw_binding_ok(const struct vhca_mr *mw, const struct vhca_mr *mr,
                        const struct vhca_key_user *user,
                        const struct vhca_memop *op)
{
    return rights_ok(mw, user, op) && op->length && region_ok(mr, user, op);
}

/* F-036 to F-039 */
static bool may_bind(const struct vhca_mr *mw, const struct vhca_mr *mr,
                     const struct vhca_key_user *user,
                     const struct vhca_memop *op)
{
    if (!mw || !mw->window) {
        return false;
    }
    if (mw->window == QHCA_MW_1) {
        /* Binding again must invalidate the old key. */
        return mw->key != op->key &&
               (op->length ? vhca_mw_binding_ok(mw, mr, user, op) :
                             rights_ok(mw, user, op));
    }
    return !mw->valid && vhca_mw_binding_ok(mw, mr, user, op);
}

enum qhca_cqe_status vhca_mw_bind(struct qhca_engine *e,
                                  struct vhca_key_user *user,
                                  const struct vhca_memop *op)
{
    struct vhca_mr *mw = vhca_mr_by_number(e, op->key);
    struct vhca_mr *mr = vhca_mr_get(e, op->mr_key);

    if (!may_bind(mw, mr, user, op)) {
        vhca_count(e, QHCA_CNT_BAD_KEY);
        return QHCA_WC_MW_BIND_ERR;
    }
    vhca_late_finish(e, VHCA_EVERY_QP);
    vhca_mw_unbind(mw);
    mw->key = op->key;
    if (!op->length) {
        return QHCA_WC_SUCCESS;
    }
    mw->access = op->access & VHCA_ACCESS_REMOTE;
    mw->base = op->addr;
    mw->iova = op->access & QHCA_ACCESS_ZERO_BASED ? 0 : op->addr;
    mw->length = op->length;
    mw->region = mr;
    mw->valid = true;
    mr->windows++;
    if (mw->window != QHCA_MW_1) {
        mw->binder = user;
        vhca_list_add_tail(&user->windows, &mw->bound);
    }
    return QHCA_WC_SUCCESS;
}

int vhca_mw_release_user(struct qhca_engine *e, struct vhca_key_user *user)
{
    while (!vhca_list_empty(&user->windows)) {
        if (!vhca_may_go_on(e)) {
            return VHCA_AGAIN;
        }
        vhca_spend(e, 1);
        for (unsigned n = VHCA_UNIT_OBJECTS;
             n > 0 && !vhca_list_empty(&user->windows); n--) {
            vhca_mw_unbind(container_of(user->windows.next, struct vhca_mr,
                                        bound));
        }
    }
    return QHCA_OK;
}
