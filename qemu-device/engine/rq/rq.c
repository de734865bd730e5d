/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine, rq: the tables of the room. */
#include "rq.h"

static bool rq_init(struct qhca_engine *e)
{
    return vhca_table_init(&e->rqs->srq, e, VHCA_MAX_SRQ) &&
           vhca_table_init(&e->rqs->xrcd, e, VHCA_MAX_XRCD);
}

static void rq_reset(struct qhca_engine *e)
{
    vhca_srq_free_all(e);
    vhca_holder_free_all(&e->rqs->xrcd);
}

static void rq_fini(struct qhca_engine *e)
{
    vhca_table_free(&e->rqs->srq);
    vhca_table_free(&e->rqs->xrcd);
}

static unsigned rq_holdings(const struct qhca_engine *e, struct qhca_holding *h)
{
    const struct vhca_rqs *r = e->rqs;

    h[0] = (struct qhca_holding) {
        "SRQ", true, sizeof(struct vhca_srq), VHCA_MAX_SRQ, r->srq.used
    };
    h[1] = (struct qhca_holding) {
        "XRC domain", true, sizeof(struct vhca_holder), VHCA_MAX_XRCD,
        r->xrcd.used
    };
    h[2] = vhca_table_holding(&r->srq, "SRQ numbers");
    h[3] = vhca_table_holding(&r->xrcd, "XRC domain numbers");
    return 4;
}

const struct vhca_room vhca_rq_room = {
    .init = rq_init, .reset = rq_reset, .fini = rq_fini,
    .holdings = rq_holdings,
    .section = "receive", .version = 1, .walk = vhca_rq_walk,
};
