/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: creation and destruction of the Ethernet queues. */
#include "eth.h"

/* Queue numbers: two for each index, from 1 on, so that 0 is none. */
struct vhca_ethq *vhca_ethq_get(struct qhca_engine *e, uint32_t number)
{
    if (number == 0 || number > VHCA_MAX_ETHQ ||
        !e->eth->queue[number - 1].used) {
        return NULL;
    }
    return &e->eth->queue[number - 1];
}

static void free_ethq(struct qhca_engine *e, struct vhca_ethq *q)
{
    unsigned i = (q->number - 1) / 2;

    if (q == vhca_ethq_at(e, i, QHCA_ETH_TX)) {
        e->eth->gather[i].active = false;
        e->eth->gather[i].tso.active = false;
        e->eth->tx_busy &= ~(1u << i);
    }
    vhca_mem_release(e, &q->mem);
    q->cq->users--;
    q->used = false;
}

static bool frags_ok(const struct qhca_cmd_create_ethq *r)
{
    return r->dir == QHCA_ETH_RX && r->frags >= 1 &&
           r->frags <= QHCA_ETH_MAX_FRAGS && r->frags <= 1u << r->log_size;
}

int vhca_ethq_check_create(struct qhca_engine *e,
                           const struct qhca_cmd_create_ethq *r)
{
    if (r->dir > QHCA_ETH_RX ||
        r->flags & ~(QHCA_ETHQ_REPLACE | QHCA_ETHQ_SCATTER)) {
        return QHCA_ERR_PARAM;
    }
    if (r->log_size > VHCA_ETHQ_LOG_MAX || r->index >= e->cfg.eth_queues) {
        return QHCA_ERR_LIMIT;
    }
    if (le32toh(r->pi) > 1u << r->log_size ||
        (r->flags & QHCA_ETHQ_SCATTER && !frags_ok(r))) {
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
    if (vhca_ethq_at(e, r->index, r->dir)->used &&
        !(r->flags & QHCA_ETHQ_REPLACE)) {
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
    q = vhca_ethq_at(e, r->index, r->dir);
    if (q->used) {
        free_ethq(e, q);
    }
    *q = (struct vhca_ethq) {
        .used = true,
        .log_size = r->log_size,
        .frags = r->flags & QHCA_ETHQ_SCATTER ? r->frags : 1,
        .number = 2u * r->index + r->dir + 1,
        .pi = le32toh(r->pi),
        .cq = vhca_cq_get(e, le32toh(r->cqn)),
        .mem = vhca_import_take(&c->import[0]),
    };
    q->cq->users++;
    vhca_eth_tx_wake(e, q);
    c->obj = q->number;
    return QHCA_OK;
}

int vhca_do_destroy_ethq(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    struct vhca_ethq *q = vhca_ethq_get(e, le32toh(c->cmd->obj.obj));

    if (!q) {
        return QHCA_ERR_OBJ;
    }
    if (vhca_rss_uses(e, q)) {
        return QHCA_ERR_BUSY;
    }
    free_ethq(e, q);
    return QHCA_OK;
}

static void eth_reset(struct qhca_engine *e)
{
    for (unsigned i = 0; i < VHCA_MAX_ETHQ; i++) {
        if (e->eth->queue[i].used) {
            free_ethq(e, &e->eth->queue[i]);
        }
    }
    e->eth->tx_next = 0;
    memset(e->eth->rss, 0, sizeof(e->eth->rss));
}

static unsigned eth_holdings(const struct qhca_engine *e,
                             struct qhca_holding *h)
{
    unsigned n = 0;

    for (unsigned i = 0; i < VHCA_MAX_ETHQ; i++) {
        n += e->eth->queue[i].used;
    }
    /* They are members of the engine, and cost nothing extra. */
    h[0] = (struct qhca_holding) {
        "Ethernet queue", true, 0, 2 * e->cfg.eth_queues, n
    };
    return 1;
}

const struct vhca_room vhca_eth_room = {
    .reset = eth_reset, .holdings = eth_holdings,
    .section = "eth", .version = 1, .walk = vhca_eth_walk,
};
