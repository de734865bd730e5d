/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: spreads and flow rules in a saved state: as the commands that
 * made them.
 */
#include "../save/save.h"
#include "steering.h"

VHCA_SNAP_KNOWS(struct vhca_spread, 1080);
VHCA_SNAP_KNOWS(struct vhca_flow, 176);

static void walk_spread(struct vhca_snap *s, void *obj)
{
    struct vhca_spread *spread = obj;
    struct qhca_spread r = {
        .types = htole32(spread->types), .log_size = spread->log_size,
    };

    if (!s->load) {
        memcpy(r.key, spread->key, sizeof(r.key));
        for (unsigned i = 0; i < 1u << spread->log_size; i++) {
            r.qpn[i] = htole32(spread->qp[i]->qpn);
        }
    }
    vhca_snap_raw(s, "spread", &r, sizeof(r));
    if (s->load && !s->bad) {
        vhca_snap_check(s, vhca_spread_find(s->e, spread, &r) == QHCA_OK,
                        "spread");
    }
}

static void enlist_spread(struct qhca_engine *e, void *obj, uint32_t number)
{
    struct vhca_spread *spread = obj;

    (void)e;
    spread->number = number;
    vhca_spread_count(spread, 1);
}

static const struct vhca_snap_kind spread_kind = {
    "spread", sizeof(struct vhca_spread), 0, walk_spread, enlist_spread
};

static void walk_flow(struct vhca_snap *s, void *obj)
{
    struct vhca_flow *f = obj;
    struct qhca_flow r = {
        .priority = htole32(f->priority), .tag = htole32(f->tag),
        .action = f->action, .order = f->order,
        .target = htole32(f->qp ? f->qp->qpn :
                          f->spread ? f->spread->number : f->to.target),
    };

    memcpy(&r.key, f->key, sizeof(r.key));
    memcpy(&r.mask, f->mask, sizeof(r.mask));
    vhca_snap_raw(s, "rule", &r, sizeof(r));
    if (vhca_snap_check(s, vhca_flow_check(&r) == QHCA_OK, "rule") &&
        s->load) {
        vhca_snap_check(s, vhca_flow_find(s->e, f, &r) == QHCA_OK, "rule");
    }
    f->frames = vhca_snap_num(s, "frames", f->frames, 8, UINT64_MAX);
    f->bytes = vhca_snap_num(s, "bytes", f->bytes, 8, UINT64_MAX);
}

static void enlist_flow(struct qhca_engine *e, void *obj, uint32_t number)
{
    struct vhca_flow *f = obj;

    f->number = number;
    vhca_flow_count(e, f, 1);
}

static const struct vhca_snap_kind flow_kind = {
    "flow rule", sizeof(struct vhca_flow), 0, walk_flow, enlist_flow
};

/* Whether the rule is among the first @n of the line. */
static bool is_queued(const struct vhca_raw *raw, const struct vhca_flow *f,
                      uint32_t n)
{
    while (n > 0 && raw->line[n - 1] != f) {
        n--;
    }
    return n;
}

/* Walk over the order of the rules, which have been walked over. */
static void walk_line(struct vhca_snap *s)
{
    struct vhca_raw *raw = s->e->raw;

    for (uint32_t i = 0; i < raw->flow.used && !s->bad; i++) {
        struct vhca_flow *f = s->load ? NULL : raw->line[i];
        uint32_t number = vhca_snap_obj(s, "rule", f ? f->number : 0);

        f = vhca_table_get(&raw->flow, number);
        if (s->load && vhca_snap_check(s, f && !is_queued(raw, f, i), "rule")) {
            vhca_flow_queue(raw, f, i);
        }
        vhca_snap_check(s, s->bad || raw->line[i] == f, "order of rules");
    }
}

void vhca_raw_walk(struct vhca_snap *s)
{
    vhca_snap_table(s, &s->e->raw->spread, &spread_kind);
    vhca_snap_table(s, &s->e->raw->flow, &flow_kind);
    walk_line(s);
}
