/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the QP room in a saved state: sets of counters. This file also
 * walks over the queues and lines of the QPs, for qps/snapshot.c.
 */
#include "../save/save.h"
#include "qp.h"

static const struct vhca_snap_field wq_fields[] = {
    VHCA_SNAP_MAX(struct vhca_wq, VHCA_WQ_LOG_MAX, log_size),
    VHCA_SNAP_MAX(struct vhca_wq, 31, log_stride),
    VHCA_SNAP_ANY(struct vhca_wq, max_sge, pi, next, ci),
    VHCA_SNAP_FLAG(struct vhca_wq, dbrec, rings),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_wq, 48);

void vhca_wq_walk(struct vhca_snap *s, const char *name, struct vhca_wq *wq)
{
    wq->present = vhca_snap_num(s, name, wq->present, 1, 1);
    if (!wq->present) {
        return;
    }
    vhca_snap_fields(s, wq_fields, wq);
    vhca_snap_check(s, wq->pi - wq->ci <= vhca_wq_size(wq), "pi");
    vhca_snap_check(s, !wq->rings || wq->dbrec, "rings");
    if (!s->bad) {
        vhca_snap_mem(s, &wq->mem, vhca_wq_bytes(wq));
    }
}

static const struct vhca_snap_field seg_fields[] = {
    VHCA_SNAP_ANY(struct vhca_seg, addr, length, lkey),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_seg, 16);

uint64_t vhca_segs_walk(struct vhca_snap *s, struct vhca_seg *segs, unsigned n)
{
    uint64_t length = 0;

    for (unsigned i = 0; i < n; i++) {
        vhca_snap_fields(s, seg_fields, &segs[i]);
        length += segs[i].length;
    }
    return length;
}

/* ---- lines ---- */

uint32_t vhca_qp_slot(const struct qhca_engine *e, const void *qp)
{
    (void)e;
    return ((const struct vhca_qp *)qp)->slot;
}

void *vhca_qp_at_slot(struct qhca_engine *e, uint32_t slot)
{
    return vhca_table_get(&e->qps->table, slot);
}

static const struct vhca_snap_ref ready_ref = {
    "QP", offsetof(struct vhca_qp, ready), vhca_qp_slot, vhca_qp_at_slot, NULL
};
static const struct vhca_snap_ref tx_wait_ref = {
    "QP", offsetof(struct vhca_qp, tx_wait), vhca_qp_slot, vhca_qp_at_slot, NULL
};

const struct vhca_snap_ref vhca_qp_gate_ref = {
    "QP", offsetof(struct vhca_qp, gate.timer), vhca_qp_slot, vhca_qp_at_slot,
    vhca_qp_gate_due
};

/* Whether all QPs of the line belong to its page. */
static bool in_line(const struct vhca_list *head, uint32_t page, size_t off)
{
    const struct vhca_list *at = head->next;

    while (at != head && ((const struct vhca_qp *)(const void *)
                          ((const char *)at - off))->uar == page) {
        at = at->next;
    }
    return at == head;
}

static void walk_lines(struct vhca_snap *s, const char *name,
                       struct vhca_lines *l, const struct vhca_snap_ref *ref)
{
    uint32_t n = vhca_snap_count(s, name, vhca_list_length(&l->busy),
                                 2 * sizeof(n));
    struct vhca_list *at = &l->busy;

    for (; n > 0 && !s->bad; n--) {
        struct vhca_line *line = NULL;
        uint32_t page = 0;

        if (!s->load) {
            at = at->next;
            line = container_of(at, struct vhca_line, node);
            page = (uint32_t)(line - l->page);
        }
        page = vhca_snap_u32(s, "page", page, s->e->cfg.num_uars - 1);
        line = &l->page[page];
        if (s->load && vhca_snap_check(s, vhca_list_empty(&line->node), name)) {
            vhca_list_add_tail(&l->busy, &line->node);
        }
        if (!s->bad) {
            vhca_snap_list(s, name, &line->qps, ref);
            vhca_snap_check(s, in_line(&line->qps, page, ref->off), name);
        }
    }
}

static void walk_pause(struct vhca_snap *s, struct vhca_pause *p)
{
    p->classes = (uint8_t)vhca_snap_num(s, "paused", p->classes, 1, 0xff);
    for (unsigned i = 0; i < VHCA_CLASSES && !s->bad; i++) {
        if (p->classes >> i & 1) {
            p->until[i] = vhca_snap_time(s, "until", p->until[i]);
            vhca_snap_check(s, p->until[i] <= s->e->now + VHCA_PAUSE_NS,
                            "until");
        }
    }
    if (!s->bad) {
        vhca_snap_list(s, "held", &p->held, &tx_wait_ref);
        vhca_snap_list(s, "let_go", &p->let_go, &tx_wait_ref);
        vhca_snap_check(s, p->classes || vhca_list_empty(&p->held), "held");
    }
}

void vhca_lines_walk(struct vhca_snap *s)
{
    walk_lines(s, "ready", &s->e->qps->ready, &ready_ref);
    walk_lines(s, "tx_wait", &s->e->qps->tx_wait, &tx_wait_ref);
    if (!s->bad) {
        walk_pause(s, &s->e->port->pause);
    }
}

/* ---- sets of counters ---- */

static void walk_cntset(struct vhca_snap *s, void *obj)
{
    struct vhca_cntset *set = obj;

    vhca_snap_u64s(s, "counter", set->cnt, s->counters);
}

static const struct vhca_snap_kind cntset_kind = {
    "counter set", sizeof(struct vhca_cntset), 0, walk_cntset, vhca_snap_holder
};

void vhca_cntsets_walk(struct vhca_snap *s)
{
    vhca_snap_table(s, &s->e->qps->cntset, &cntset_kind);
    vhca_snap_u64s(s, "counters of sets", s->e->qps->set_cnt, s->counters);
}
