/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the network card in a saved state: its queues, the frames being
 * put together or segmented, and how received frames are spread.
 */
#include <assert.h>

#include "../save/save.h"
#include "eth.h"
#include "../wire/wire.h"

static const struct vhca_snap_field ethq_fields[] = {
    VHCA_SNAP_MAX(struct vhca_ethq, VHCA_ETHQ_LOG_MAX, log_size),
    VHCA_SNAP_ANY(struct vhca_ethq, pi, ci),
    VHCA_SNAP_MAX(struct vhca_ethq, QHCA_ETH_MAX_FRAGS, frags),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_ethq, 48);

/* Apply CREATE_ETHQ's checks; @pi: as if nothing had been consumed yet. */
static bool queue_ok(struct qhca_engine *e, const struct vhca_ethq *q,
                     uint32_t cqn)
{
    const struct qhca_cmd_create_ethq r = {
        .dir = (uint8_t)((q->number - 1) % 2),
        .index = (uint8_t)((q->number - 1) / 2), .log_size = q->log_size,
        .cqn = htole32(cqn), .pi = htole32(q->pi - q->ci),
        .flags = q->frags == 1 ? 0 : QHCA_ETHQ_SCATTER, .frags = q->frags,
    };

    return vhca_ethq_check_create(e, &r) == QHCA_OK;
}

static void walk_queue(struct vhca_snap *s, struct vhca_ethq *q)
{
    struct vhca_ethq loaded = { .number = s->number };
    struct vhca_ethq *next = s->load ? &loaded : q;
    uint32_t cqn;

    vhca_snap_fields(s, ethq_fields, next);
    cqn = vhca_snap_obj(s, "cqn", s->load ? 0 : q->cq->cqn);
    next->cq = vhca_cq_get(s->e, cqn);
    if (vhca_snap_check(s, queue_ok(s->e, next, cqn), "cqn or pi")) {
        vhca_snap_mem(s, &next->mem,
                      sizeof(struct qhca_eth_wqe) << next->log_size);
    }
    if (!s->load) {
        return;
    }
    if (s->bad) {
        vhca_mem_release(s->e, &loaded.mem);
        return;
    }
    assert(loaded.cq);          /* queue_ok() */
    loaded.used = true;
    loaded.cq->users++;
    *q = loaded;
}

static const struct vhca_snap_field gather_fields[] = {
    VHCA_SNAP_MAX(struct vhca_eth_gather, QHCA_WC_GENERAL_ERR, status),
    VHCA_SNAP_ANY(struct vhca_eth_gather, flags, vlan_tci, csum_start,
                  csum_offset, mss, frags),
    VHCA_SNAP_MAX(struct vhca_eth_gather, VHCA_MAX_TSO, len),
    VHCA_SNAP_ANY(struct vhca_eth_gather, wr_id),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_eth_gather, 65928);

static const struct vhca_snap_field tso_fields[] = {
    VHCA_SNAP_FLAG(struct vhca_tso, ipv4),
    VHCA_SNAP_ANY(struct vhca_tso, l3, l4),
    VHCA_SNAP_MAX(struct vhca_tso, VHCA_TSO_HDR + VHCA_VLAN_ROOM, hdr_len),
    VHCA_SNAP_ANY(struct vhca_tso, mss, pieces, payload, len, done, wire_len),
    VHCA_SNAP_RAW(struct vhca_tso, hdr),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_tso, 288);

/* Check that the headers are in order and the payload is the gathered one. */
static bool tso_ok(const struct vhca_tso *t, const struct vhca_eth_gather *g)
{
    uint32_t end = VHCA_VLAN_ROOM + g->len;

    return t->mss && vhca_tso_headers_ok(t, g) &&
           vhca_tso_fits(t, QHCA_ETH_MTU_MAX) && t->payload >= t->hdr_len &&
           t->payload <= end && t->len == end - t->payload &&
           (t->done < t->len || (!t->done && !t->len));
}

static void walk_gather(struct vhca_snap *s, unsigned i)
{
    struct vhca_eth_gather *g = &s->e->eth->gather[i];
    struct vhca_tso *t = &g->tso;
    bool active = vhca_snap_num(s, "gather", g->active, 1, 1), cut;

    if (s->load) {
        g->active = t->active = false;
    }
    if (!active) {
        return;
    }
    vhca_snap_fields(s, gather_fields, g);
    vhca_snap_raw(s, "data", g->data, VHCA_VLAN_ROOM + g->len);
    cut = vhca_snap_num(s, "tso", t->active, 1, 1);
    if (cut) {
        vhca_snap_fields(s, tso_fields, t);
        vhca_snap_check(s, s->bad || tso_ok(t, g), "tso");
    } else {
        vhca_snap_check(s, g->flags & QHCA_ETH_TSO || g->len <= VHCA_MAX_FRAME,
                        "len");
    }
    vhca_snap_check(s, vhca_ethq_at(s->e, i, QHCA_ETH_TX)->used, "gather");
    if (s->load && !s->bad) {
        g->active = true;
        t->active = cut;
    }
}

static void walk_rss(struct vhca_snap *s, unsigned n)
{
    struct vhca_rss *rss = &s->e->eth->rss[n];
    struct vhca_rss loaded = *rss;

    loaded.types = (uint8_t)vhca_snap_num(s, "types", rss->types, 1,
                                          VHCA_RSS_TYPES);
    if (loaded.types) {
        vhca_snap_raw(s, "key", loaded.key, sizeof(loaded.key));
        vhca_snap_raw(s, "queue", loaded.queue, sizeof(loaded.queue));
        vhca_snap_check(s, s->e->cfg.eth_queues > 1 &&
                           vhca_rss_ok(s->e, &loaded, n), "queue");
    }
    if (s->load && !s->bad) {
        *rss = loaded;
    }
}
VHCA_SNAP_KNOWS(struct vhca_rss, 172);

void vhca_eth_walk(struct vhca_snap *s)
{
    struct vhca_eth *eth = s->e->eth;

    s->kind = "Ethernet queue";
    for (s->number = 1; s->number <= VHCA_MAX_ETHQ && !s->bad; s->number++) {
        struct vhca_ethq *q = &eth->queue[s->number - 1];

        if (vhca_snap_num(s, "used", q->used, 1, 1)) {
            walk_queue(s, q);
        }
    }
    s->kind = NULL;
    for (unsigned i = 0; i < VHCA_MAX_ETH_PAIRS && !s->bad; i++) {
        walk_gather(s, i);
        if (s->load) {
            vhca_eth_tx_wake(s->e, vhca_ethq_at(s->e, i, QHCA_ETH_TX));
        }
    }
    eth->tx_next = vhca_snap_u32(s, "tx_next", eth->tx_next,
                                 VHCA_MAX_ETH_PAIRS - 1);
    for (unsigned i = 0; i <= QHCA_RSS_CONTEXTS; i++) {
        walk_rss(s, i);
    }
}
