/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca simulator: rates. Some schedules have QPs with limits that change,
 * static rates, and packets that are sent with the mark of a busy network,
 * which slow their senders down; and ports whose speed the operator or a rule
 * changes. All rates are high enough for a response to come in time.
 */
#include "sim.h"

#include <stdio.h>

#define MIN_MBIT    2000u

void sim_rates_draw(struct sim *s)
{
    uint64_t rng = s->rng;

    sim_stream(s, SIM_STREAM_RATES);
    s->rated = s->has & SIM_HAS(RATES);
    s->marked = s->has & SIM_HAS(MARKS);
    s->rng = rng;
}

static uint32_t some_rate(struct sim *s)
{
    return 1000 * (MIN_MBIT + sim_rand(s, 30000));
}

/* Parameters with which notifications cut often, and rates grow again. */
void sim_rates_port(struct sim *s, unsigned i)
{
    struct guest *g = s->node[i].g;
    uint64_t rng = s->rng;
    struct qhca_congestion c = congestion_get(g);

    if (!s->marked) {
        return;
    }
    sim_stream(s, SIM_STREAM_RATES + 1 + i);
    c.value[QHCA_CC_NP_ENABLE] = c.value[QHCA_CC_RP_ENABLE] = htole32(1);
    c.value[QHCA_CC_NP_MIN_TIME] = htole32(sim_rand(s, 20));
    c.value[QHCA_CC_RP_MIN_CUT] = htole32(sim_rand(s, 5));
    c.value[QHCA_CC_RP_TIME] = htole32(1 + sim_rand(s, 200));
    c.value[QHCA_CC_RP_BYTES] = htole32(65536 + sim_rand(s, 65536));
    c.value[QHCA_CC_RP_MIN_RATE] = htole32(MIN_MBIT);
    CHECK_EQ(congestion_set(g, &c), QHCA_OK);
    s->rng = rng;
}

static int set_rate(struct sim *s, struct sim_qp *q)
{
    struct qhca_qp_attr a = { 0 };

    a.rate_limit = htole32(sim_rand(s, 4) ? some_rate(s) : 0);
    return rc_modify(&q->q, &a, QHCA_QP_RATE_LIMIT);
}

void sim_rates_qp(struct sim *s, struct sim_qp *q)
{
    static const uint8_t static_rates[] = { 0, 0, 2, 3, 5, 6 };
    struct vhca_qp *v = vhca_qp_get(q->q.n->g->e, q->q.qpn);
    uint8_t rate, mark;

    if (!s->rated) {
        return;
    }
    rate = static_rates[sim_rand(s, ARRAY_SIZE(static_rates))];
    mark = s->marked && sim_rand(s, 2) ? IP_ECN_CE : 0;
    if (!vhca_qp_is(v, VHCA_DATAGRAM)) {
        v->attr.av.static_rate = rate;
        v->attr.av.tclass = mark;
    }
    CHECK_EQ(set_rate(s, q), QHCA_OK);
}

static void change_rules(struct sim *s, struct guest *g, unsigned mbit)
{
    char text[100];

    if (*sim_faults || sim_moves) {
        return;
    }
    snprintf(text, sizeof(text), "port latency=%uus\nport bandwidth=%u%s",
             1 + mbit % 50, mbit, s->marked ? "\nport ce=20%" : "");
    sim_rules(s, g, sim_rand(s, 3) ? text : "");
}

/* The other end of the cable asks some classes to wait, or no longer. */
static void ask_pause(struct sim *s, struct guest *g)
{
    /* Quanta of the fastest port, whatever its speed: far below a timeout. */
    unsigned most = vhca_port_speed(g->e) / (VHCA_PORT_SPEED / 4000);
    uint8_t f[60] = { 1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 8, 1, 1 };

    f[17] = (uint8_t)sim_rand(s, 256);
    for (unsigned i = 0; i < VHCA_CLASSES; i++) {
        put_be16(f + 18 + 2 * i,
                 (uint16_t)(sim_rand(s, 2) * sim_rand(s, 1 + most)));
    }
    guest_rx(g, f, sizeof(f));
    s->saw[SIM_SAW_PAUSE] += g->e->port->pause.classes != 0;
}

/* Plays that are compared would change it at different times. */
static void change_speed(struct sim *s, struct guest *g)
{
    unsigned mbit = MIN_MBIT + sim_rand(s, VHCA_PORT_SPEED - MIN_MBIT);

    if (s->seen) {
        return;
    }
    switch (sim_rand(s, 3)) {
    case 0:
        CHECK(qhca_engine_set_bandwidth(g->e, s->net->clock, mbit));
        break;
    case 1:
        CHECK(qhca_engine_set_bandwidth(g->e, s->net->clock, 0));
        break;
    default:
        change_rules(s, g, mbit);
    }
}

/* Perhaps changes the limit of a QP, whether or not it waits. */
void sim_rates_change(struct sim *s, struct sim_qp *q)
{
    const struct vhca_qp *v;

    if (q->gone) {
        return;
    }
    if (s->has & SIM_HAS(PAUSE) && !sim_rand(s, 6)) {
        ask_pause(s, q->q.n->g);
    }
    if (!s->rated) {
        return;
    }
    v = vhca_qp_get(q->q.n->g->e, q->q.qpn);
    s->saw[SIM_SAW_GATE] += vhca_gate_waits(&v->gate);
    s->saw[SIM_SAW_SLOWED] += v->gate.rp.rate != 0;
    if (!sim_rand(s, 6)) {
        change_speed(s, q->q.n->g);
    }
    if (!sim_rand(s, 10)) {
        CHECK_EQ(set_rate(s, q),
                 v->state == QHCA_QPS_RTS ? QHCA_OK : QHCA_ERR_STATE);
    }
}
