/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: the port's settings: address, filters, GID table, carrier. */
#include <stdlib.h>

#include "port.h"

#define PORT_NUMBER     1
#define PORT_FLAGS      (QHCA_PORT_ENABLE | QHCA_PORT_PROMISC | \
                         QHCA_PORT_ALLMULTI)
#define VLAN_ID_MAX     4094
#define PATH_MTU_MIN    256u
#define PATH_MTU_MAX    4096u
/* The longest headers: IPv6, UDP, BTH, XRCETH, AtomicETH, and the ICRC. */
#define PATH_MTU_HEADERS    (40u + 8 + 12 + 4 + 28 + 4)

static bool mac_is_unicast(const uint8_t *mac)
{
    static const uint8_t zero[6];

    return !(mac[0] & 1) && memcmp(mac, zero, sizeof(zero)) != 0;
}

static bool gid_is_unicast(const uint8_t *gid)
{
    static const uint8_t zero[16];

    if (vhca_gid_is_ipv4(gid)) {
        return gid[12] != 0 && gid[12] < 224;
    }
    return gid[0] != 0xff && memcmp(gid, zero, sizeof(zero)) != 0;
}

static void port_reset(struct qhca_engine *e)
{
    uint8_t (*allowed)[VHCA_MAX_GID / 8] = e->port->allowed;
    struct vhca_pace pace = e->port->pace;
    bool link = e->port->link;

    vhca_async_del(&e->port->async);
    vhca_timer_cancel(e, &e->port->line);
    vhca_timer_cancel(e, &e->port->pause.timer);
    vhca_group_free_all(e);
    vhca_fifo_free(&e->port->loop);
    vhca_fifo_free(&e->port->tx);
    memset(e->port, 0, sizeof(*e->port));
    memcpy(e->port->mac, e->cfg.mac, sizeof(e->port->mac));
    e->port->mtu = 1500;
    e->port->link = link;
    e->port->allowed = allowed;
    memset(allowed, 0, e->cfg.num_uars * sizeof(*allowed));
    e->port->pace = pace;
    e->port->line.fn = vhca_tx_due;
    e->port->pause.timer.fn = vhca_pause_due;
    vhca_list_init(&e->port->pause.held);
    vhca_list_init(&e->port->pause.let_go);
    e->port->told = vhca_port_speed(e);
    vhca_async_init(&e->port->async, PORT_NUMBER);
}

/*
 * The events alternate strictly (H-012): if the driver has not been told of the
 * opposite change yet, the two cancel each other.
 */
void vhca_port_set_link(struct qhca_engine *e, bool up)
{
    if (up == e->port->link) {
        return;
    }
    e->port->link = up;
    if (!vhca_event_cancel(&e->port->async, up ? QHCA_EVENT_LINK_DOWN :
                                                QHCA_EVENT_LINK_UP)) {
        vhca_event(e, &e->port->async, up ? QHCA_EVENT_LINK_UP :
                                           QHCA_EVENT_LINK_DOWN);
    }
}

/*
 * There is one event at most in line, however often the speed changes: who gets
 * it asks for the speed.
 */
void vhca_port_set_bandwidth(struct qhca_engine *e, uint32_t mbit)
{
    if (mbit != e->cfg.bandwidth) {
        e->cfg.bandwidth = mbit;
        vhca_pace_set(&e->port->pace, e->now, mbit);
    }
    if (e->port->told != vhca_port_speed(e)) {
        e->port->told = vhca_port_speed(e);
        vhca_event(e, &e->port->async, QHCA_EVENT_SPEED_CHANGE);
    }
}

bool vhca_port_up(const struct qhca_engine *e)
{
    return e->port->link && e->port->flags & QHCA_PORT_ENABLE;
}

uint32_t vhca_port_path_mtu(const struct qhca_engine *e)
{
    uint32_t mtu = PATH_MTU_MAX;

    while (mtu + PATH_MTU_HEADERS > e->port->mtu && mtu >= PATH_MTU_MIN) {
        mtu /= 2;
    }
    return mtu < PATH_MTU_MIN ? 0 : mtu;
}

int vhca_do_query_port(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    struct qhca_port_attr *out = (struct qhca_port_attr *)(void *)c->mbox;

    if (le32toh(c->cmd->obj.obj) != PORT_NUMBER) {
        return QHCA_ERR_PARAM;
    }
    out->speed = htole32(vhca_port_speed(e));
    out->link_up = e->port->link;
    out->max_mtu = htole32(QHCA_ETH_MTU_MAX);
    out->mtu = htole32(e->port->mtu);
    out->bad_pkey_cntr = htole32(e->port->bad_pkey);
    out->qkey_viol_cntr = htole32(e->port->qkey_viol);
    return QHCA_OK;
}

bool vhca_port_settings_ok(const uint8_t *mac, uint8_t flags, uint32_t mtu)
{
    return !(flags & ~PORT_FLAGS) && mac_is_unicast(mac) &&
           mtu >= QHCA_ETH_MTU_MIN;
}

int vhca_do_set_port(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const struct qhca_cmd_set_port *r = &c->cmd->set_port;
    uint32_t mtu = le32toh(r->mtu);

    if (r->port != PORT_NUMBER ||
        !vhca_port_settings_ok(r->mac, r->flags, mtu)) {
        return QHCA_ERR_PARAM;
    }
    if (mtu > QHCA_ETH_MTU_MAX) {
        return QHCA_ERR_LIMIT;
    }
    memcpy(e->port->mac, r->mac, sizeof(e->port->mac));
    e->port->flags = r->flags;
    e->port->mtu = mtu;
    return QHCA_OK;
}

/* Replace the list; on error the old one stays. */
int vhca_do_set_mcast(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const struct qhca_mcast_list *list = (const void *)c->mbox;
    uint32_t i, count = le32toh(c->cmd->set_mcast.count);

    if (count > VHCA_MAX_MCAST) {
        return QHCA_ERR_LIMIT;
    }
    for (i = 0; i < count; i++) {
        if (!(list->mac[i][0] & 1)) {
            return QHCA_ERR_PARAM;
        }
    }
    for (i = 0; i < count; i++) {
        memcpy(e->port->mcast[i], list->mac[i], sizeof(e->port->mcast[i]));
    }
    e->port->num_mcast = count;
    return QHCA_OK;
}

void vhca_port_count_gids(struct vhca_port *p)
{
    p->num_gid = VHCA_MAX_GID;
    while (p->num_gid > 0 && !p->gid[p->num_gid - 1].valid) {
        p->num_gid--;
    }
}

bool vhca_gid_allowed(const struct qhca_engine *e, uint32_t page,
                      unsigned index)
{
    return !page || e->port->allowed[page][index / 8] & 1u << index % 8;
}

/*
 * Forbid all doorbell pages the use of an entry that is about to change: its
 * users cannot know that it did. An invalid entry has no users.
 */
static void disallow_gid(struct qhca_engine *e, unsigned index)
{
    if (!e->port->gid[index].valid) {
        return;
    }
    vhca_spend(e, e->cfg.num_uars / VHCA_UNIT_OBJECTS);
    for (uint32_t page = 1; page < e->cfg.num_uars; page++) {
        e->port->allowed[page][index / 8] &= (uint8_t)~(1u << index % 8);
    }
}

int vhca_do_allow_gid(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const struct qhca_cmd_allow_gid *r = &c->cmd->allow_gid;
    uint32_t page = le32toh(r->uar);
    uint16_t index = le16toh(r->index);

    if (r->port != PORT_NUMBER || r->allow > 1 || !page ||
        page >= e->cfg.num_uars) {
        return QHCA_ERR_PARAM;
    }
    if (!r->allow) {
        memset(e->port->allowed[page], 0, sizeof(e->port->allowed[page]));
        return QHCA_OK;
    }
    if (index >= VHCA_MAX_GID) {
        return QHCA_ERR_LIMIT;
    }
    if (!e->port->gid[index].valid) {
        return QHCA_ERR_STATE;
    }
    e->port->allowed[page][index / 8] |= (uint8_t)(1u << index % 8);
    return QHCA_OK;
}

bool vhca_gid_entry_ok(const uint8_t *gid, const uint8_t *smac, uint16_t vlan)
{
    return gid_is_unicast(gid) && mac_is_unicast(smac) &&
           (vlan == QHCA_NO_VLAN || (vlan >= 1 && vlan <= VLAN_ID_MAX));
}

int vhca_do_set_gid(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const struct qhca_cmd_set_gid *r = &c->cmd->set_gid;
    uint16_t index = le16toh(r->index);
    struct vhca_gid *g;

    if (r->port != PORT_NUMBER || r->valid > 1) {
        return QHCA_ERR_PARAM;
    }
    if (index >= VHCA_MAX_GID) {
        return QHCA_ERR_LIMIT;
    }
    if (r->valid && !vhca_gid_entry_ok(r->gid, r->smac, le16toh(r->vlan))) {
        return QHCA_ERR_PARAM;
    }
    g = &e->port->gid[index];
    /* No page may use another GID, unlike this one at another address. */
    if (!r->valid || !g->valid || g->vlan != le16toh(r->vlan) ||
        memcmp(g->gid, r->gid, sizeof(g->gid)) != 0) {
        disallow_gid(e, index);
    }
    if (r->valid) {
        memcpy(g->gid, r->gid, sizeof(g->gid));
        memcpy(g->smac, r->smac, sizeof(g->smac));
        g->vlan = le16toh(r->vlan);
        g->ipv4 = vhca_gid_is_ipv4(g->gid);
        g->valid = true;
    } else {
        memset(g, 0, sizeof(*g));
    }
    vhca_port_count_gids(e->port);
    return QHCA_OK;
}

bool vhca_gid_on_vlan(const struct qhca_engine *e, uint16_t vlan)
{
    for (uint32_t i = 0; i < e->port->num_gid; i++) {
        if (e->port->gid[i].valid && e->port->gid[i].vlan == vlan) {
            return true;
        }
    }
    return false;
}

bool vhca_gid_is_own(const struct qhca_engine *e, const uint8_t *gid)
{
    for (uint32_t i = 0; i < e->port->num_gid; i++) {
        if (e->port->gid[i].valid && !memcmp(e->port->gid[i].gid, gid, 16)) {
            return true;
        }
    }
    return false;
}

int vhca_gid_find(const struct qhca_engine *e, const uint8_t *gid,
                  uint16_t vlan)
{
    const struct vhca_gid *g;

    for (uint32_t i = 0; i < e->port->num_gid; i++) {
        g = &e->port->gid[i];
        if (g->valid && g->vlan == vlan &&
            memcmp(g->gid, gid, sizeof(g->gid)) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static bool port_init(struct qhca_engine *e)
{
    e->port->link = true;
    e->port->line.fn = vhca_tx_due;
    vhca_timers_provide(e, 2);
    vhca_async_init(&e->port->async, PORT_NUMBER);
    e->port->allowed = calloc(e->cfg.num_uars, sizeof(*e->port->allowed));
    vhca_pace_set(&e->port->pace, e->now, e->cfg.bandwidth);
    return e->port->allowed;
}

static void port_fini(struct qhca_engine *e)
{
    free(e->port->allowed);
}

static unsigned port_holdings(const struct qhca_engine *e,
                              struct qhca_holding *h)
{
    h[0] = (struct qhca_holding) {
        "multicast group", false, sizeof(struct vhca_mcast_group),
        VHCA_MAX_MCAST_GRP, e->port->num_groups
    };
    h[1] = vhca_fifo_holding(&e->port->loop, "frames to the port itself");
    h[2] = vhca_fifo_holding(&e->port->tx, "frames to the network");
    h[3] = (struct qhca_holding) {
        "GIDs of a doorbell page", false, sizeof(*e->port->allowed),
        e->cfg.num_uars, e->cfg.num_uars
    };
    return 4;
}

const struct vhca_room vhca_port_room = {
    .init = port_init, .reset = port_reset, .fini = port_fini,
    .holdings = port_holdings,
    .section = "port", .version = 1, .walk = vhca_port_walk,
};
