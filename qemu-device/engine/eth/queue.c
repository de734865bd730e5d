/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: creation and destruction of the Ethernet queues. */
#include "eth.h"

/* Queue numbers: direction plus one, so that 0 is none. */
struct vhca_ethq *vhca_ethq_get(struct qhca_engine *e, uint32_t number)
{
    if (number == 0 || number > QHCA_MAX_ETHQ ||
        !e->eth->queue[number - 1].used) {
        return NULL;
    }
    return &e->eth->queue[number - 1];
}

static void free_ethq(struct qhca_engine *e, struct vhca_ethq *q)
{
    if (q == &e->eth->queue[QHCA_ETH_TX]) {
        e->eth->gather.active = false;
        e->eth->gather.tso.active = false;
    }
    vhca_mem_release(e, &q->mem);
    q->cq->users--;
    q->used = false;
}

int vhca_ethq_check_create(struct qhca_engine *e,
                           const struct qhca_cmd_create_ethq *r)
{
    if (r->dir >= QHCA_MAX_ETHQ || r->flags & ~QHCA_ETHQ_REPLACE) {
        return QHCA_ERR_PARAM;
    }
    if (r->log_size > QHCA_ETHQ_LOG_MAX) {
        return QHCA_ERR_LIMIT;
    }
    if (le32toh(r->pi) > 1u << r->log_size) {
        return QHCA_ERR_PARAM;
    }
    return vhca_cq_get(e, le32toh(r->cqn)) ? QHCA_OK : QHCA_ERR_OBJ;
}

/* Check what may prevent the creation at present. */
static int check_new(struct qhca_engine *e,
                     const struct qhca_cmd_create_ethq *r)
{
    if (vhca_cq_get(e, le32toh(r->cqn))->state != QHCA_CQ_OK) {
        return QHCA_ERR_STATE;
    }
    if (e->eth->queue[r->dir].used && !(r->flags & QHCA_ETHQ_REPLACE)) {
        return QHCA_ERR_NO_RESOURCE;
    }
    return QHCA_OK;
}

int vhca_do_create_ethq(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const struct qhca_cmd_create_ethq *r = &c->cmd->create_ethq;
    int status = vhca_ethq_check_create(e, r);
    struct vhca_ethq *q;

    if (status == QHCA_OK) {
        status = check_new(e, r);
    }
    if (status == QHCA_OK) {
        status = vhca_import(e, &c->import[0], &r->buf,
                             sizeof(struct qhca_eth_wqe) << r->log_size);
    }
    if (status != QHCA_OK) {
        return status;
    }
    q = &e->eth->queue[r->dir];
    if (q->used) {
        free_ethq(e, q);
    }
    *q = (struct vhca_ethq) {
        .used = true,
        .log_size = r->log_size,
        .number = r->dir + 1u,
        .pi = le32toh(r->pi),
        .cq = vhca_cq_get(e, le32toh(r->cqn)),
        .mem = vhca_import_take(&c->import[0]),
    };
    q->cq->users++;
    c->obj = q->number;
    return QHCA_OK;
}

int vhca_do_destroy_ethq(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    struct vhca_ethq *q = vhca_ethq_get(e, le32toh(c->cmd->obj.obj));

    if (!q) {
        return QHCA_ERR_OBJ;
    }
    free_ethq(e, q);
    return QHCA_OK;
}

static void reset(struct qhca_engine *e)
{
    for (unsigned i = 0; i < QHCA_MAX_ETHQ; i++) {
        if (e->eth->queue[i].used) {
            free_ethq(e, &e->eth->queue[i]);
        }
    }
}

static unsigned holdings(const struct qhca_engine *e, struct qhca_holding *h)
{
    unsigned n = 0;

    for (unsigned i = 0; i < QHCA_MAX_ETHQ; i++) {
        n += e->eth->queue[i].used;
    }
    /* They are members of the engine, and cost nothing extra. */
    h[0] = (struct qhca_holding) {
        "Ethernet queue", true, 0, QHCA_MAX_ETHQ, n
    };
    return 1;
}

const struct vhca_room vhca_eth_room = {
    .reset = reset, .holdings = holdings,
    .section = "eth", .version = 1, .walk = vhca_eth_walk,
};
