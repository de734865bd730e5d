/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: UD QPs join and leave multicast groups.
 */
#include "qps.h"

/* Find the QP of the command, and check the command. */
static int parse(struct qhca_engine *e, const struct qhca_cmd_mcast *r,
                 struct vhca_qp **qp)
{
    *qp = vhca_qp_get(e, le32toh(r->qpn));
    if (!*qp) {
        return QHCA_ERR_OBJ;
    }
    if ((*qp)->type != QHCA_QPT_UD || !vhca_gid_is_multicast(r->gid)) {
        return QHCA_ERR_PARAM;
    }
    return QHCA_OK;
}

/* Attaching again gives no second copy, but must be undone as often (G-018). */
int vhca_do_attach_mcast(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const uint8_t *gid = c->cmd->mcast.gid;
    struct vhca_qp *qp;
    int status = parse(e, &c->cmd->mcast, &qp);
    bool first;

    if (status != QHCA_OK) {
        return status;
    }
    first = !vhca_group_has(e, gid, qp);
    if (!vhca_group_join(e, gid, qp)) {
        return QHCA_ERR_NO_RESOURCE;
    }
    qp->groups += first;
    return QHCA_OK;
}

int vhca_do_detach_mcast(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const uint8_t *gid = c->cmd->mcast.gid;
    struct vhca_qp *qp;
    int status = parse(e, &c->cmd->mcast, &qp);

    if (status != QHCA_OK) {
        return status;
    }
    if (!vhca_group_has(e, gid, qp)) {
        return QHCA_ERR_STATE;
    }
    vhca_group_leave(e, gid, qp);
    qp->groups -= !vhca_group_has(e, gid, qp);
    return QHCA_OK;
}
