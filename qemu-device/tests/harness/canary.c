/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "canary.h"

#define MESSAGE     3000
#define SEED        77

/* Whole structures, padding included. */
#define SAVE(saved, obj) memcpy((saved), (obj), sizeof(*(saved)))
#define SAME(obj, saved) ((obj) && !memcmp((obj), (saved), sizeof(*(saved))))

static struct guest *guest_of(const struct canary *c)
{
    return c->n.g;
}

static struct gcq *cq_of(struct canary *c, unsigned i)
{
    return i & 1 ? &c->qp[i / 2].rcq : &c->qp[i / 2].scq;
}

void canary_begin(struct canary *c, const struct node *n)
{
    struct guest *g = n->g;
    struct rc_opts o = RC_OPTS;

    g->in_bank = true;
    c->n = *n;
    c->n.pdn = pd_create(g);
    c->n.mr = mr_create(g, c->n.pdn, NODE_MEM,
                        REMOTE_ALL | QHCA_ACCESS_LOCAL_WRITE);
    o.uar = CANARY_UAR;
    for (unsigned i = 0; i < 2; i++) {
        c->qp[i] = rc_create(&c->n, &o);
    }
    rc_connect(&c->qp[0], &c->qp[1]);
    g->in_bank = false;
    for (unsigned i = 0; i < 2; i++) {
        rc_recv(&c->qp[i], i, NODE_MEM / 2, MESSAGE);
        cq_arm(&c->qp[i].rcq, false);
    }
    guest_fill(g, c->n.mr.addr, MESSAGE, SEED);
    for (unsigned i = 0; i < 2; i++) {
        SAVE(&c->qps[i], vhca_qp_get(g->e, c->qp[i].qpn));
    }
    for (unsigned i = 0; i < 4; i++) {
        SAVE(&c->cqs[i], vhca_cq_get(g->e, cq_of(c, i)->cqn));
    }
    SAVE(&c->mr, vhca_mr_get(g->e, c->n.mr.key));
    SAVE(&c->port, g->e->port);
    memcpy(c->allowed, g->e->port->allowed[CANARY_UAR], sizeof(c->allowed));
    g->bank_closed = true;
}

bool canary_owns(const struct canary *c, uint32_t number)
{
    for (unsigned i = 0; i < 2; i++) {
        if (number == c->qp[i].qpn || number == c->qp[i].scq.cqn ||
            number == c->qp[i].rcq.cqn) {
            return true;
        }
    }
    return number == c->n.pdn || number == c->n.mr.key ||
           number == c->n.mr.key >> 8;
}

void canary_check(struct canary *c)
{
    struct qhca_engine *e = guest_of(c)->e;

    if (e->state != QHCA_STATE_RUNNING) {
        return;
    }
    for (unsigned i = 0; i < 2; i++) {
        REQUIRE(SAME(vhca_qp_get(e, c->qp[i].qpn), &c->qps[i]));
    }
    for (unsigned i = 0; i < 4; i++) {
        REQUIRE(SAME(vhca_cq_get(e, cq_of(c, i)->cqn), &c->cqs[i]));
    }
    REQUIRE(SAME(vhca_mr_get(e, c->n.mr.key), &c->mr));
}

/* The test may have reconfigured the port, as a driver may. */
static void put_port_right(struct canary *c)
{
    struct guest *g = guest_of(c);
    struct vhca_port *port = g->e->port;

    g->bad_from = g->bad_to = 0;
    g->on_dma = NULL;
    g->net_blocked = false;
    qhca_engine_set_link(g->e, *g->clock, true);
    guest_set_faults(g, "");
    memcpy(port->gid, c->port.gid, sizeof(port->gid));
    memcpy(port->mac, c->port.mac, sizeof(port->mac));
    memcpy(port->allowed[CANARY_UAR], c->allowed, sizeof(c->allowed));
    port->num_gid = c->port.num_gid;
    port->flags = c->port.flags;
    port->mtu = c->port.mtu;
    qhca_engine_tx_ready(g->e, *g->clock);
    guest_settle(g);
}

void canary_end(struct canary *c)
{
    struct guest *g = guest_of(c);
    struct rc_wr wr;

    canary_check(c);
    if (g->e->state == QHCA_STATE_RUNNING) {
        put_port_right(c);
        canary_check(c);
    }
    g->bank_closed = false;
    if (g->e->state != QHCA_STATE_RUNNING) {
        return;
    }
    wr = rc_wr(&c->qp[0], QHCA_WR_SEND, 0, MESSAGE);
    rc_post(&c->qp[0], &wr);
    guest_advance(g, 1000000000);
    if (g->e->state == QHCA_STATE_RUNNING) {
        rc_expect(&c->qp[0].scq, wr.wr_id, QHCA_WC_SUCCESS);
        rc_expect(&c->qp[1].rcq, 1, QHCA_WC_SUCCESS);
        CHECK(guest_is_filled(g, c->n.mr.addr + NODE_MEM / 2, MESSAGE, SEED));
    }
}
