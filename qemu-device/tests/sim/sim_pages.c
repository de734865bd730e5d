/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca simulator: regions of type ODP. Any access may find that its page is not
 * there: the driver provides pages late, or only for reading, forgets some
 * events, and takes pages away again.
 */
#include "sim.h"

void sim_pages_draw(struct sim *s)
{
    uint64_t rng = s->rng;

    sim_stream(s, SIM_STREAM_PAGES);
    s->paged = s->has & SIM_HAS(PAGES);
    s->prompt = s->seen;
    s->lossy = s->paged && s->seen;
    s->num_owed = 0;
    s->net->on_step = NULL;
    s->rng = rng;
}

static unsigned flags_for(struct sim *s)
{
    return s->prompt || sim_rand(s, 3) ? ODP_ALL : QHCA_PAGE_READ;
}

static void answer(struct sim *s, unsigned node, uint32_t qpn)
{
    struct odp *o = &s->odp[node];

    if (sim_node_gone(s, &s->node[node])) {
        return;
    }
    o->flags = flags_for(s);
    o->alone = !s->prompt && !sim_rand(s, 3);
    s->saw[SIM_SAW_FAULT] += odp_answer(o, qpn);
}

void sim_pages_event(struct sim *s, struct node *n, uint32_t qpn)
{
    unsigned node = (unsigned)(n - s->node);

    bool full = s->num_owed == SIM_MAX_OWED;

    if (s->prompt || (full && s->untimed)) {
        answer(s, node, qpn);
    } else if (!full && (s->untimed || sim_rand(s, 16))) {
        s->owed[s->num_owed++] = (struct sim_owed) { node, qpn };
    }
    /* Else it is forgotten, and comes again if the peer has a timer. */
}

static bool has_event(const struct geq *eq)
{
    struct geq at = *eq;
    struct qhca_eqe e;

    return eq_next(&at, &e);
}

static void on_step(struct net *n)
{
    struct sim *s = n->opaque;

    for (unsigned i = 0; i < s->num_nodes; i++) {
        while (!sim_node_gone(s, &s->node[i]) &&
               has_event(&s->node[i].async)) {
            sim_take_events(s, &s->node[i]);
        }
    }
    while (s->num_owed && (s->prompt || !sim_rand(s, 4))) {
        struct sim_owed owed = s->owed[--s->num_owed];

        answer(s, owed.node, owed.qpn);
    }
}

void sim_pages_setup(struct sim *s, unsigned i)
{
    struct node *n = &s->node[i];

    /* There time passes while a command waits, and no fault is answered. */
    if (s->seen && n->g->limited) {
        s->paged = s->lossy = false;
    }
    if (!s->paged) {
        return;
    }
    CHECK_EQ(guest_cmd_obj(n->g, QHCA_CMD_DEREG_MR, n->mr.key), QHCA_OK);
    s->odp[i] = odp_create(n->g, n->pdn, n->mr.addr, SIM_REGION);
    n->mr.key = s->odp[i].key;
    s->net->on_step = on_step;
}

void sim_pages_steal(struct sim *s)
{
    unsigned i = sim_rand(s, s->num_nodes);
    uint64_t used = s->used[i] / QHCA_PAGE_SIZE + 1, first, num;

    if (!s->paged || sim_rand(s, 3) || sim_node_gone(s, &s->node[i])) {
        return;
    }
    first = sim_rand(s, (unsigned)used);
    num = 1 + sim_rand(s, 1 + sim_rand(s, (unsigned)(used - first)));
    CHECK_EQ(odp_clear(&s->odp[i], first, num), QHCA_OK);
    sim_both_settle(s);
}

void sim_pages_prompt(struct sim *s)
{
    s->prompt = true;
}
