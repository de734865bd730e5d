/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the port in a saved state. Who is in multicast groups is in
 * transport/snapshot.c, as members are QPs.
 */
#include "port.h"

static const struct qhca_snap_field gid_fields[] = {
    QHCA_SNAP_RAW(struct qhca_gid, gid),
    QHCA_SNAP_RAW(struct qhca_gid, smac),
    QHCA_SNAP_ANY(struct qhca_gid, vlan),
    { 0 }
};
QHCA_SNAP_KNOWS(struct qhca_gid, 26);

static const struct qhca_snap_field port_fields[] = {
    QHCA_SNAP_RAW(struct qhca_port, mac),
    QHCA_SNAP_ANY(struct qhca_port, flags),
    QHCA_SNAP_MAX(struct qhca_port, mtu, QHCA_ETH_MTU_MAX),
    QHCA_SNAP_FLAG(struct qhca_port, link),
    QHCA_SNAP_MAX(struct qhca_port, num_mcast, QHCA_MAX_MCAST),
    QHCA_SNAP_MAX(struct qhca_port, bad_pkey, 0xffff),
    QHCA_SNAP_MAX(struct qhca_port, qkey_viol, 0xffff),
    QHCA_SNAP_FLAG(struct qhca_port, tx_blocked),
    { 0 }
};
QHCA_SNAP_KNOWS(struct qhca_port, 12176);

static void walk_gids(struct qhca_snap *s, struct qhca_port *p)
{
    s->kind = "GID";
    for (s->number = 0; s->number < QHCA_MAX_GID && !s->bad; s->number++) {
        struct qhca_gid *g = &p->gid[s->number];

        g->valid = qhca_snap_num(s, "valid", g->valid, 1, 1);
        if (!g->valid) {
            continue;
        }
        qhca_snap_fields(s, gid_fields, g);
        g->ipv4 = qhca_gid_is_ipv4(g->gid);
        qhca_snap_check(s, qhca_gid_entry_ok(g->gid, g->smac, g->vlan),
                        "address");
    }
    s->kind = NULL;
    qhca_port_count_gids(p);
}

static uint32_t num_allowed(const struct qhca_engine *e)
{
    static const uint8_t none[sizeof(*e->port->allowed)];
    uint32_t n = 0;

    for (uint32_t i = 0; i < e->cfg.num_uars; i++) {
        n += memcmp(e->port->allowed[i], none, sizeof(none)) != 0;
    }
    return n;
}

/* GIDs of those doorbell pages that have any. */
static void walk_allowed(struct qhca_snap *s)
{
    static const uint8_t none[sizeof(*s->e->port->allowed)];
    uint8_t (*allowed)[QHCA_MAX_GID / 8] = s->e->port->allowed;
    uint32_t pages = s->e->cfg.num_uars, page = 0;
    uint32_t n = qhca_snap_count(s, "allowed", num_allowed(s->e), 20);

    for (; n > 0 && !s->bad; n--) {
        while (!s->load && !memcmp(allowed[page], none, sizeof(none))) {
            page++;
        }
        page = qhca_snap_u32(s, "page", page, pages - 1);
        if (!s->bad) {
            qhca_snap_raw(s, "allowed", allowed[page], sizeof(allowed[page]));
        }
        page++;
    }
}

static void walk_mcast(struct qhca_snap *s, struct qhca_port *p)
{
    for (uint32_t i = 0; i < p->num_mcast && !s->bad; i++) {
        qhca_snap_raw(s, "mcast", p->mcast[i], sizeof(p->mcast[i]));
        qhca_snap_check(s, s->bad || (p->mcast[i][0] & 1), "mcast");
    }
}

void qhca_port_walk(struct qhca_snap *s)
{
    struct qhca_port *p = s->e->port;

    qhca_snap_fields(s, port_fields, p);
    qhca_snap_check(s, s->bad || qhca_port_settings_ok(p->mac, p->flags,
                                                       p->mtu), "settings");
    walk_gids(s, p);
    walk_allowed(s);
    walk_mcast(s, p);
    qhca_snap_pace(s, &p->pace);
    qhca_snap_fifo(s, "loop", &p->loop, ETH_LEN);
    qhca_snap_fifo(s, "tx", &p->tx, ETH_LEN);
}
