/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: the gate of a QP. */
#include "congestion.h"

/* By enum ib_rate, IBTA 9.11: Mbit/s. */
static const uint32_t static_rates[] = {
    [2] = 2500, [3] = 10000, [4] = 30000, [5] = 5000, [6] = 20000,
    [7] = 40000, [8] = 60000, [9] = 80000, [10] = 120000, [11] = 14000,
    [12] = 56000, [13] = 112000, [14] = 168000, [15] = 25000, [16] = 100000,
    [17] = 200000, [18] = 300000, [19] = 28000, [20] = 50000, [21] = 400000,
    [22] = 600000, [23] = 800000, [24] = 1200000,
};

uint32_t vhca_static_rate(uint8_t rate)
{
    return rate < ARRAY_SIZE(static_rates) ? VHCA_KBIT * static_rates[rate] : 0;
}

/* ---- the gate ---- */

void vhca_gate_reset(struct qhca_engine *e, struct vhca_gate *g)
{
    if (g->next > e->now) {
        g->next = e->now;
        g->rest = 0;
    }
    if (g->timer.pos) {
        vhca_timer_set(e, &g->timer, e->now);
    }
}

bool vhca_gate_cnp(struct qhca_engine *e, struct vhca_gate *g)
{
    return vhca_cc(e, QHCA_CC_RP_ENABLE) && vhca_rp_cut(e, &g->rp);
}

bool vhca_gate_marked(struct qhca_engine *e, struct vhca_gate *g)
{
    if (!vhca_cc(e, QHCA_CC_NP_ENABLE) || g->quiet > e->now) {
        return false;
    }
    g->quiet = e->now + VHCA_CC_US * vhca_cc(e, QHCA_CC_NP_MIN_TIME);
    g->cnp_owed = true;
    return true;
}

bool vhca_gate_wait(struct qhca_engine *e, struct vhca_gate *g)
{
    vhca_timer_set(e, &g->timer, g->next - e->cfg.timer_slack);
    return false;
}

void vhca_gate_charge(struct qhca_engine *e, struct vhca_gate *g,
                      uint32_t kbit, uint32_t bytes)
{
    uint64_t bits = 8 * (uint64_t)bytes;

    if (!vhca_cc(e, QHCA_CC_RP_ENABLE)) {
        memset(&g->rp, 0, sizeof(g->rp));
    }
    vhca_rp_catch_up(e, &g->rp);
    vhca_rp_sent(e, &g->rp, bytes);
    kbit = vhca_lower_rate(kbit, g->rp.rate);
    if (!kbit) {
        return;
    }
    if (g->next < e->now) {
        g->next = e->now;
        g->rest = 0;
    }
    /* A bit takes 10^6 ns at 1 kbit/s. */
    bits = bits * 1000000 + MIN_OF(g->rest, kbit - 1);
    g->next += bits / kbit;
    g->rest = (uint32_t)(bits % kbit);
}
