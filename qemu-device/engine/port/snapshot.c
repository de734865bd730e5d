/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the port in a saved state. The members of multicast groups are
 * in qps/snapshot.c, as they are QPs.
 */
#include "../save/save.h"
#include "port.h"
#include "../wire/wire.h"

static const struct vhca_snap_field gid_fields[] = {
    VHCA_SNAP_RAW(struct vhca_gid, gid),
    VHCA_SNAP_RAW(struct vhca_gid, smac),
    VHCA_SNAP_ANY(struct vhca_gid, vlan),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_gid, 26);

static const struct vhca_snap_field port_fields[] = {
    VHCA_SNAP_RAW(struct vhca_port, mac),
    VHCA_SNAP_ANY(struct vhca_port, flags),
    VHCA_SNAP_MAX(struct vhca_port, QHCA_ETH_MTU_MAX, mtu),
    VHCA_SNAP_FLAG(struct vhca_port, link),
    VHCA_SNAP_MAX(struct vhca_port, VHCA_MAX_MCAST, num_mcast),
    VHCA_SNAP_MAX(struct vhca_port, 0xffff, bad_pkey, qkey_viol),
    VHCA_SNAP_FLAG(struct vhca_port, tx_blocked),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_port, 24472);

static const struct vhca_snap_field delivery_fields[] = {
    VHCA_SNAP_FLAG(struct vhca_delivery, csum_ok),
    VHCA_SNAP_MAX(struct vhca_delivery, VHCA_MAX_FRAME, len),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_delivery, 10080);

static void walk_gids(struct vhca_snap *s, struct vhca_port *p)
{
    s->kind = "GID";
    for (s->number = 0; s->number < VHCA_MAX_GID && !s->bad; s->number++) {
        struct vhca_gid *g = &p->gid[s->number];

        g->valid = vhca_snap_num(s, "valid", g->valid, 1, 1);
        if (!g->valid) {
            continue;
        }
        vhca_snap_fields(s, gid_fields, g);
        g->ipv4 = vhca_gid_is_ipv4(g->gid);
        vhca_snap_check(s, vhca_gid_entry_ok(g->gid, g->smac, g->vlan),
                        "address");
    }
    s->kind = NULL;
    vhca_port_count_gids(p);
}

/* Walk over the GIDs of those doorbell pages that are allowed any. */
static void walk_allowed(struct vhca_snap *s)
{
    static const uint8_t none[sizeof(*s->e->port->allowed)];
    uint8_t (*allowed)[VHCA_MAX_GID / 8] = s->e->port->allowed;
    uint32_t pages = s->e->cfg.num_uars, page = 0, n = 0;

    for (uint32_t i = 0; i < pages; i++) {
        n += memcmp(allowed[i], none, sizeof(none)) != 0;
    }
    n = vhca_snap_count(s, "allowed", n, 20);
    for (; n > 0 && !s->bad; n--) {
        while (!s->load && !memcmp(allowed[page], none, sizeof(none))) {
            page++;
        }
        page = vhca_snap_u32(s, "page", page, pages - 1);
        if (!s->bad) {
            vhca_snap_raw(s, "allowed", allowed[page], sizeof(allowed[page]));
        }
        page++;
    }
}

static void count_late(struct vhca_snap *s, struct vhca_port *p)
{
    uint32_t n = 0;

    for (uint32_t i = p->loop.head; i != p->loop.tail; i++) {
        n += !p->loop.from[i % VHCA_FIFO_FRAMES];
    }
    if (s->load) {
        p->late_rx = n;
    }
    vhca_snap_check(s, s->bad || p->late_rx == n, "frames that wait");
}

/* Walk over those who have not had the frame, each of which is there once. */
static void walk_receivers(struct vhca_snap *s, struct vhca_delivery *d,
                           bool (*ok)(struct qhca_engine *e,
                                      const struct vhca_delivery *d,
                                      uint32_t number))
{
    uint32_t n = vhca_snap_count(s, "receivers", d->num - d->next, 4);

    if (!vhca_snap_check(s, n <= QHCA_FLOW_MAX, "receivers")) {
        return;
    }
    for (uint32_t i = 0; i < n && !s->bad; i++) {
        uint32_t number = vhca_snap_obj(s, "receiver", d->to[d->next + i]);

        vhca_snap_check(s, s->bad || !number || ok(s->e, d, number),
                        "receiver");
        for (uint32_t k = 0; number && k < i; k++) {
            vhca_snap_check(s, d->to[d->next + k] != number, "receiver");
        }
        if (s->load) {
            d->to[i] = number;
        }
    }
    if (s->load) {
        d->num = n;
    }
}

void vhca_delivery_walk(struct vhca_snap *s,
                        bool (*ok)(struct qhca_engine *e,
                                   const struct vhca_delivery *d,
                                   uint32_t number))
{
    struct vhca_delivery *d = &s->e->port->delivery;
    uint8_t kind = (uint8_t)vhca_snap_num(s, "delivery", d->kind, 1,
                                          VHCA_NUM_RECEIVERS - 1);
    struct roce_packet p;

    if (!kind) {
        return;
    }
    vhca_snap_fields(s, delivery_fields, d);
    if (!vhca_snap_check(s, d->len >= ETH_LEN, "length of a frame")) {
        return;
    }
    vhca_snap_raw(s, "frame", d->frame, d->len);
    if (kind == VHCA_TO_MEMBERS) {
        if (!vhca_snap_check(s, roce_parse(&p, d->frame, d->len) == ROCE_OK,
                             "frame")) {
            return;
        }
        memcpy(d->gid, p.dgid, sizeof(d->gid));
    }
    if (s->load) {
        d->next = 0;
        d->kind = kind;
    }
    walk_receivers(s, d, ok);
}

void vhca_port_walk(struct vhca_snap *s)
{
    struct vhca_port *p = s->e->port;

    vhca_snap_fields(s, port_fields, p);
    vhca_snap_check(s, s->bad || vhca_port_settings_ok(p->mac, p->flags,
                                                       p->mtu), "settings");
    walk_gids(s, p);
    walk_allowed(s);
    for (uint32_t i = 0; i < p->num_mcast && !s->bad; i++) {
        vhca_snap_raw(s, "mcast", p->mcast[i], sizeof(p->mcast[i]));
        vhca_snap_check(s, s->bad || (p->mcast[i][0] & 1), "mcast");
    }
    vhca_snap_pace(s, &p->pace);
    vhca_snap_fifo(s, "loop", &p->loop, ETH_LEN);
    count_late(s, p);
    vhca_snap_fifo(s, "tx", &p->tx, ETH_LEN);
    /*
     * Save the speed that the driver knows. The setting belongs to the device
     * that loads: it tells the driver, see qhca_engine_set_bandwidth().
     */
    p->told = vhca_snap_u32(s, "speed", p->told, VHCA_PORT_SPEED);
    vhca_snap_check(s, s->bad || p->told, "speed");
}
