/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the tables of the room.
 */
#include "receive.h"

static bool init(struct qhca_engine *e)
{
    return qhca_table_init(&e->receive->srq, e, QHCA_MAX_SRQ) &&
           qhca_table_init(&e->receive->xrcd, e, QHCA_MAX_XRCD);
}

static void reset(struct qhca_engine *e)
{
    qhca_srq_free_all(e);
    qhca_holder_free_all(&e->receive->xrcd);
}

static void fini(struct qhca_engine *e)
{
    qhca_table_free(&e->receive->srq);
    qhca_table_free(&e->receive->xrcd);
}

static unsigned holdings(const struct qhca_engine *e, struct qhca_holding *h)
{
    const struct qhca_receive *r = e->receive;

    h[0] = (struct qhca_holding) {
        "SRQ", true, sizeof(struct qhca_srq), QHCA_MAX_SRQ, r->srq.used
    };
    h[1] = (struct qhca_holding) {
        "XRC domain", true, sizeof(struct qhca_xrcd), QHCA_MAX_XRCD,
        r->xrcd.used
    };
    h[2] = qhca_table_holding(&r->srq, "SRQ numbers");
    h[3] = qhca_table_holding(&r->xrcd, "XRC domain numbers");
    return 4;
}

const struct qhca_room qhca_receive_room = {
    .init = init,
    .reset = reset,
    .fini = fini,
    .holdings = holdings,
    .commands = (const struct qhca_command *const[]) {
        qhca_srq_commands, qhca_xrcd_commands, NULL
    },
    .section = "receive",
    .version = 1,
    .oldest = 1,
    .walk = qhca_receive_walk,
};
