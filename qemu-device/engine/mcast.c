/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: multicast groups of UD QPs. A group exists as long as a QP is in
 * it, and as long as it exists the port takes RoCE packets to its GID.
 */
#include <stdlib.h>

#include "packet.h"

/* struct qhca_mcast_group - the QPs that have asked for packets to a GID */
struct qhca_mcast_group {
    uint8_t gid[16];
    uint32_t num_qps;
    struct qhca_qp *qp[QHCA_MAX_MCAST_QP];
};

/* Index of the group of @gid, or num_mcast_grp. */
static uint32_t find_group(const struct qhca_engine *e, const uint8_t *gid)
{
    uint32_t i = 0;

    while (i < e->port->num_groups &&
           memcmp(e->port->group[i]->gid, gid, 16) != 0) {
        i++;
    }
    return i;
}

/* Index of @qp in the group, or num_qps. */
static uint32_t find_qp(const struct qhca_mcast_group *grp,
                        const struct qhca_qp *qp)
{
    uint32_t i = 0;

    while (i < grp->num_qps && grp->qp[i] != qp) {
        i++;
    }
    return i;
}

/**
 * qhca_mcast_wanted() - whether the port takes packets to a multicast GID
 * @e: the engine
 * @gid: 16 bytes, network order
 */
bool qhca_mcast_wanted(const struct qhca_engine *e, const uint8_t *gid)
{
    return find_group(e, gid) < e->port->num_groups;
}

/**
 * qhca_mcast_mac() - the Ethernet address of a multicast GID (E-039)
 * @gid: 16 bytes, network order
 * @mac: filled in
 */
void qhca_mcast_mac(const uint8_t *gid, uint8_t *mac)
{
    if (qhca_gid_is_ipv4(gid)) {
        memcpy(mac, (const uint8_t[]) { 0x01, 0x00, 0x5e }, 3);
        memcpy(mac + 3, gid + 13, 3);
        mac[3] &= 0x7f;
    } else {
        mac[0] = mac[1] = 0x33;
        memcpy(mac + 2, gid + 12, 4);
    }
}

void qhca_mcast_rx(struct qhca_engine *e, const struct roce_packet *p,
                   size_t len)
{
    uint32_t g = find_group(e, p->dgid);

    if (g == e->port->num_groups) {
        return;                 /* its last QP has gone meanwhile */
    }
    for (uint32_t i = 0; i < e->port->group[g]->num_qps; i++) {
        qhca_roce_deliver(e, e->port->group[g]->qp[i], p, len);
    }
}

/* ---- commands ---- */

static void drop_group(struct qhca_engine *e, uint32_t g)
{
    free(e->port->group[g]);
    e->port->group[g] = e->port->group[--e->port->num_groups];
}

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

/* The group of @gid, made if there is none; NULL: no room. */
static struct qhca_mcast_group *get_group(struct qhca_engine *e,
                                          const uint8_t *gid)
{
    uint32_t g = find_group(e, gid);
    struct qhca_mcast_group *grp;

    if (g < e->port->num_groups) {
        return e->port->group[g];
    }
    if (g == QHCA_MAX_MCAST_GRP) {
        return NULL;
    }
    grp = calloc(1, sizeof(*grp));
    if (grp) {
        memcpy(grp->gid, gid, sizeof(grp->gid));
        e->port->group[e->port->num_groups++] = grp;
    }
    return grp;
}

/**
 * qhca_cmd_attach_mcast() - ATTACH_MCAST; once more changes nothing (G-018)
 * @e: the engine
 * @c: the command
 */
int qhca_cmd_attach_mcast(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    struct qhca_mcast_group *grp;
    struct qhca_qp *qp;
    int status = parse(e, &c->cmd->mcast, &qp);

    if (status != QHCA_OK) {
        return status;
    }
    grp = get_group(e, c->cmd->mcast.gid);
    if (!grp) {
        return QHCA_ERR_NO_RESOURCE;
    }
    if (find_qp(grp, qp) < grp->num_qps) {
        return QHCA_OK;
    }
    if (grp->num_qps == QHCA_MAX_MCAST_QP) {
        return QHCA_ERR_NO_RESOURCE;
    }
    grp->qp[grp->num_qps++] = qp;
    qp->groups++;
    return QHCA_OK;
}

/**
 * qhca_cmd_detach_mcast() - DETACH_MCAST
 * @e: the engine
 * @c: the command
 */
int qhca_cmd_detach_mcast(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    struct qhca_qp *qp;
    int status = parse(e, &c->cmd->mcast, &qp);
    uint32_t g, i;

    if (status != QHCA_OK) {
        return status;
    }
    g = find_group(e, c->cmd->mcast.gid);
    if (g == e->port->num_groups) {
        return QHCA_ERR_STATE;
    }

    struct qhca_mcast_group *grp = e->port->group[g];

    i = find_qp(grp, qp);
    if (i == grp->num_qps) {
        return QHCA_ERR_STATE;
    }
    grp->qp[i] = grp->qp[--grp->num_qps];
    qp->groups--;
    if (!grp->num_qps) {
        drop_group(e, g);
    }
    return QHCA_OK;
}

/**
 * qhca_mcast_free_all() - no group is left (reset)
 * @e: the engine
 */
void qhca_mcast_free_all(struct qhca_engine *e)
{
    while (e->port->num_groups > 0) {
        drop_group(e, 0);
    }
}
