/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: UD QPs join and leave multicast groups.
 */
#include "transport.h"

/* The QP of the command, if the command makes sense. */
static int parse(struct qhca_engine *e, const struct qhca_cmd_mcast *r,
                 struct qhca_qp **qp)
{
    *qp = qhca_qp_get(e, le32toh(r->qpn));
    if (!*qp) {
        return QHCA_ERR_OBJ;
    }
    if ((*qp)->type != QHCA_QPT_UD || !qhca_gid_is_multicast(r->gid)) {
        return QHCA_ERR_PARAM;
    }
    return QHCA_OK;
}

/* Once more gives no second copy, but has to be undone as often (G-018). */
static int attach_mcast(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    const uint8_t *gid = c->cmd->mcast.gid;
    struct qhca_qp *qp;
    int status = parse(e, &c->cmd->mcast, &qp);
    bool first;

    if (status != QHCA_OK) {
        return status;
    }
    first = !qhca_group_has(e, gid, qp);
    if (!qhca_group_join(e, gid, qp)) {
        return QHCA_ERR_NO_RESOURCE;
    }
    qp->groups += first;
    return QHCA_OK;
}

static int detach_mcast(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    const uint8_t *gid = c->cmd->mcast.gid;
    struct qhca_qp *qp;
    int status = parse(e, &c->cmd->mcast, &qp);

    if (status != QHCA_OK) {
        return status;
    }
    if (!qhca_group_has(e, gid, qp)) {
        return QHCA_ERR_STATE;
    }
    qhca_group_leave(e, gid, qp);
    qp->groups -= !qhca_group_has(e, gid, qp);
    return QHCA_OK;
}

const struct qhca_command qhca_mcast_commands[] = {
    QHCA_COMMAND(ATTACH_MCAST, attach_mcast),
    QHCA_COMMAND(DETACH_MCAST, detach_mcast),
    { 0 }
};
