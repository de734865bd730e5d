/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca simulator: devices that end while they work. The state of one moves to
 * another device, which goes on with it, and no peer may notice; or a function
 * is reset, and its peers find out.
 */
#include "harness/snapshot.h"
#include "harness/story.h"
#include "sim.h"

#define MAX_MOVES   8u

void sim_move(struct sim *s)
{
    struct guest *g;

    if (!(s->has & SIM_HAS(MOVE)) || s->saw[SIM_SAW_MOVE] == s->moves_end ||
        sim_rand(s, 8)) {
        return;
    }
    g = s->node[sim_rand(s, s->num_nodes)].g;
    story_say("net", g->net_port, s->net->clock, "the device moves");
    snapshot_cycle(g);
    sim_rules(s, g, "");        /* the operator sets them there as well */
    s->saw[SIM_SAW_MOVE]++;
}

void sim_move_draw(struct sim *s)
{
    uint64_t rng = s->rng;

    sim_stream(s, SIM_STREAM_MOVE);
    s->moves_end = s->saw[SIM_SAW_MOVE] + MAX_MOVES;
    s->flr_at = s->has & SIM_HAS(FLR) ? sim_rand(s, 100) : ~0u;
    s->nodes_gone = 0;
    s->rng = rng;
}

bool sim_node_gone(const struct sim *s, const struct node *n)
{
    return s->nodes_gone >> (n - s->node) & 1;
}

void sim_flr(struct sim *s, unsigned round)
{
    struct node *n;
    unsigned i;

    if (round != s->flr_at) {
        return;
    }
    i = sim_rand(s, s->num_nodes);
    n = &s->node[i];
    story_say("net", n->g->net_port, s->net->clock, "its function is reset");
    reg_write(n->g, QHCA_REG_RESET, QHCA_RESET_KEY);
    s->nodes_gone |= 1u << i;
    for (unsigned q = 0; q < s->num_qps; q++) {
        struct sim_qp *qp = &s->qp[q];

        if (qp->q.n == n) {
            qp->gone = qp->may_fail = qp->peer->may_fail = true;
        }
    }
}
