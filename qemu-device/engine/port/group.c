/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: multicast groups. A group exists as long as it has a member, and
 * as long as it exists the port accepts RoCE packets to its GID.
 */
#include <stdlib.h>

#include "port.h"

/* Return the index of the group of @gid, or num_groups. */
static uint32_t find_group(const struct vhca_port *port, const uint8_t *gid)
{
    uint32_t i = 0;

    while (i < port->num_groups && memcmp(port->group[i]->gid, gid, 16) != 0) {
        i++;
    }
    return i;
}

/* Return the index of @qp in the group, or num_qps. */
static uint32_t find_qp(const struct vhca_mcast_group *grp,
                        const struct vhca_qp *qp)
{
    uint32_t i = 0;

    while (i < grp->num_qps && grp->qp[i] != qp) {
        i++;
    }
    return i;
}

struct vhca_mcast_group *vhca_group_find(const struct qhca_engine *e,
                                         const uint8_t *gid)
{
    uint32_t g = find_group(e->port, gid);

    return g < e->port->num_groups ? e->port->group[g] : NULL;
}

bool vhca_group_has(const struct qhca_engine *e, const uint8_t *gid,
                    const struct vhca_qp *qp)
{
    const struct vhca_mcast_group *grp = vhca_group_find(e, gid);

    return grp && find_qp(grp, qp) < grp->num_qps;
}

static struct vhca_mcast_group *new_group(struct qhca_engine *e,
                                          const uint8_t *gid)
{
    struct vhca_mcast_group *grp;

    if (e->port->num_groups == VHCA_MAX_MCAST_GRP) {
        return NULL;
    }
    grp = calloc(1, sizeof(*grp));
    if (grp) {
        memcpy(grp->gid, gid, sizeof(grp->gid));
        e->port->group[e->port->num_groups++] = grp;
    }
    return grp;
}

static void drop_group(struct vhca_port *port, uint32_t g)
{
    free(port->group[g]);
    port->group[g] = port->group[--port->num_groups];
}

bool vhca_group_join(struct qhca_engine *e, const uint8_t *gid,
                     struct vhca_qp *qp)
{
    struct vhca_mcast_group *grp = vhca_group_find(e, gid);
    uint32_t n;

    if (!grp) {
        grp = new_group(e, gid);
    }
    n = grp ? find_qp(grp, qp) : VHCA_MAX_MCAST_QP;
    if (n == VHCA_MAX_MCAST_QP) {
        return false;
    }
    if (n == grp->num_qps) {
        grp->qp[n] = qp;
        grp->joins[n] = 0;
        grp->num_qps++;
    }
    if (grp->joins[n] == UINT32_MAX) {
        return false;
    }
    grp->joins[n]++;
    return true;
}

void vhca_group_leave(struct qhca_engine *e, const uint8_t *gid,
                      const struct vhca_qp *qp, uint32_t qpn)
{
    uint32_t g = find_group(e->port, gid);
    struct vhca_mcast_group *grp = e->port->group[g];
    uint32_t n = find_qp(grp, qp);

    if (--grp->joins[n] > 0) {
        return;
    }
    vhca_delivery_forget(e, VHCA_TO_MEMBERS, gid, qpn);
    grp->num_qps--;
    grp->qp[n] = grp->qp[grp->num_qps];
    grp->joins[n] = grp->joins[grp->num_qps];
    if (!grp->num_qps) {
        drop_group(e->port, g);
    }
}

void vhca_group_free_all(struct qhca_engine *e)
{
    while (e->port->num_groups > 0) {
        drop_group(e->port, 0);
    }
}

void vhca_group_mac(const uint8_t *gid, uint8_t *mac)
{
    if (vhca_gid_is_ipv4(gid)) {
        memcpy(mac, (const uint8_t[]) { 0x01, 0x00, 0x5e }, 3);
        memcpy(mac + 3, gid + 13, 3);
        mac[3] &= 0x7f;
    } else {
        mac[0] = mac[1] = 0x33;
        memcpy(mac + 2, gid + 12, 4);
    }
}
