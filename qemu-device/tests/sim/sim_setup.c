/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the setup of a schedule: machines, which are created once
 * and reset before each schedule, a network, queue pairs.
 */
#include "harness/debug.h"
#include "sim.h"

struct sim_limits sim_limits = { .pairs = ~0u, .wr = SIM_MAX_WR };
struct guest *sim_machine[SIM_MAX_NODES];

const char *sim_faults = "";
bool sim_moves;

static void recycle(struct sim *s, unsigned i)
{
    struct node *n = &s->node[i];
    struct guest *g = sim_machine[i];

    if (!g) {
        g = sim_machine[i] = s->seen ? sim_both_machine(s, i) :
                                       guest_new_seed(i + 1);
    } else if (n->mr.addr) {
        uint64_t end = n->mr.addr + SIM_REGION;

        reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
        memset(g->ram, 0, n->mr.addr - RAM_BASE + s->used[i]);
        memset(g->ram + (end - RAM_BASE), 0, g->brk - end);
    }
    qhca_host_seed(&g->host, s->seed);  /* independent of earlier schedules */
    guest_set_faults(g, "");
    CHECK(qhca_engine_set_bandwidth(g->e, s->net->clock,
                                    s->seen ? g->e->cfg.bandwidth : s->mbit));
    g->e->cfg.frames = s->seen ? s->frames : s->seed & 1;
    g->no_peek = s->seen ? g->no_peek : s->has & SIM_HAS(COPIED);
    g->dbrecs = s->seed >> 2 & 1;
    g->in_memory = s->seed >> 3 & 1;
    g->looks_late = s->seed >> 4 & 1;
    sim_rules(s, g, sim_faults);
    g->brk = RAM_BASE;
    g->cmd_sq = 0;
    g->host.todo = g->look = false;
    g->rings = 0;
    g->net_blocked = false;
    s->net->together = s->seed >> 1 & 1;
    net_attach(s->net, g);
    guest_enable(g, 5);
    *n = node_on(g, i + 1);
    n->mr = mr_create(g, n->pdn, SIM_REGION,
                      REMOTE_ALL | QHCA_ACCESS_LOCAL_WRITE |
                      QHCA_ACCESS_MW_BIND);
    s->used[i] = 0;
    sim_pages_setup(s, i);
    sim_rates_port(s, i);
}

static void setup_net(struct sim *s)
{
    struct net *n = s->net;
    bool clean = !(s->has & SIM_HAS(LOSS));

    net_clear(n);
    n->num_guests = 0;
    n->rng = s->seed * 2 + 1;
    n->cut = false;
    n->latency = 100 + sim_rand(s, 20000);
    n->jitter = sim_rand(s, 100000);
    n->loss = clean ? 0 : sim_rand(s, 40);
    n->corrupt = clean ? 0 : sim_rand(s, 10);
    n->dup = clean ? 0 : sim_rand(s, 100);
    n->reorder = clean ? 0 : sim_rand(s, 100);
    n->loss *= !sim_limits.no_loss;
    n->corrupt *= !sim_limits.no_corrupt;
    n->dup *= !sim_limits.no_dup;
    n->reorder *= !sim_limits.no_reorder;
}

static const struct sim_model *const models[] = {
    [QHCA_QPT_RC] = &sim_rc, [QHCA_QPT_UC] = &sim_uc, [QHCA_QPT_UD] = &sim_ud,
    [QHCA_QPT_XRC_INI] = &sim_rc,
};

/* The first pairs have the types that the features of the schedule ask for. */
static const unsigned forces[] = {
    SIM_HAS(XRC), SIM_HAS(SRQ), SIM_HAS(WINDOWS),
};

static unsigned num_forced(const struct sim *s)
{
    unsigned n = 0;

    for (unsigned i = 0; i < ARRAY_SIZE(forces); i++) {
        n += (s->has & forces[i]) != 0;
    }
    return n;
}

/* Return the first pair whose type the kind does not decide. */
static unsigned first_free(const struct sim *s)
{
    return s->kind == SIM_DRAIN_BAD;
}

/* Return the feature that pair @i is for, 0: none. */
static unsigned forced(const struct sim *s, unsigned i)
{
    unsigned n = first_free(s);

    for (unsigned k = 0; k < ARRAY_SIZE(forces); k++) {
        if (s->has & forces[k] && n++ == i) {
            return forces[k];
        }
    }
    return 0;
}

static uint8_t random_type(struct sim *s, unsigned what)
{
    static const uint8_t types[] = {
        QHCA_QPT_RC, QHCA_QPT_RC, QHCA_QPT_RC, QHCA_QPT_RC, QHCA_QPT_UC,
        QHCA_QPT_UD, QHCA_QPT_XRC_INI,
    };

    uint8_t type = types[sim_rand(s, ARRAY_SIZE(types))];

    if (what) {
        return what == SIM_HAS(XRC) ? QHCA_QPT_XRC_INI : QHCA_QPT_RC;
    }
    /* How many messages get lost depends on time. */
    return s->paged && s->seen && (type == QHCA_QPT_UC || type == QHCA_QPT_UD) ?
           QHCA_QPT_RC : type;
}

/* All messages of @a are for the SRQ of its peer's node; @b sends none. */
static void plan_xrc(struct sim *s, struct sim_qp *a, struct sim_qp *b)
{
    for (unsigned i = 0; i < a->num_wr; i++) {
        a->wr[i].wr.srqn = s->xsrq[b->q.n - s->node].q.srqn;
    }
    b->peer = a;
}

static void setup_pair(struct sim *s, unsigned i)
{
    struct sim_qp *a = &s->qp[2 * i], *b = a + 1;
    unsigned what = forced(s, i);
    struct rc_opts o = RC_OPTS;
    struct node *na, *nb;

    sim_stream(s, SIM_STREAM_PAIR + i);
    na = &s->node[sim_rand(s, s->num_nodes)];
    nb = &s->node[sim_rand(s, s->num_nodes)];
    o.type = random_type(s, what);
    o.qp_flags = KERNEL_QP;     /* all opcodes */
    o.sq_log = 2 + sim_rand(s, 4);
    o.rq_log = 2 + sim_rand(s, 4);
    o.mtu = (uint8_t)(1 + sim_rand(s, 1 + sim_rand(s, 5)));   /* mostly small */
    o.rd_atomic = (uint8_t)(1 + sim_rand(s, 4) * sim_rand(s, 5));
    o.dest_rd_atomic = o.rd_atomic;
    o.timeout = (uint8_t)(8 + sim_rand(s, 3) + (sim_both_slow(s) ? 5 : 0));
    sim_gaps_qp(s, &o);
    o.min_rnr = (uint8_t)(5 + sim_rand(s, 8) + (sim_both_slow(s) ? 16 : 0));
    o.sq_psn = sim_rand(s, 2) ? 0xfffff0 + sim_rand(s, 16) :
                                sim_rand(s, 1u << 24);
    o.rq_psn = sim_rand(s, 2) ? 0xffffff - sim_rand(s, 100) :
                                sim_rand(s, 1u << 24);
    if (s->kind == SIM_DRAIN_BAD && i == 0) {
        o.type = QHCA_QPT_UC;   /* survives an error in SQD */
        o.mtu = 1;
    }
    if (o.type == QHCA_QPT_XRC_INI &&
        !sim_both_share(s, &s->xsrq[nb - s->node])) {
        o.type = QHCA_QPT_RC;
    }
    a->q = rc_create(na, &o);
    if (o.type == QHCA_QPT_RC && (sim_rand(s, 2) || what == SIM_HAS(SRQ)) &&
        sim_both_share(s, &s->srq[nb - s->node])) {
        o.srqn = s->srq[nb - s->node].q.srqn;
    }
    a->model = b->model = models[o.type];
    if (o.type == QHCA_QPT_XRC_INI) {
        o.type = QHCA_QPT_XRC_TGT;
        o.xrcdn = s->xrcdn[nb - s->node];
    }
    b->q = rc_create(nb, &o);
    rc_connect(&a->q, &b->q);
    sim_rates_qp(s, a);
    sim_rates_qp(s, b);
    if (sim_shares_rq(b)) {
        b->model = &sim_srq;
    }
    a->idle = b->idle = !(sim_limits.pairs >> i & 1);
    sim_plan(s, a, b);
    if (o.type == QHCA_QPT_XRC_TGT) {
        plan_xrc(s, a, b);
    } else {
        sim_plan(s, b, a);
    }
}

void sim_setup(struct sim *s, uint64_t seed, enum sim_kind kind)
{
    unsigned pairs;

    s->seed = seed;
    s->kind = kind;
    s->failed = s->ends = s->ruled = s->lossy = s->at_once = false;
    s->num_keys = s->num_windows = 0;
    memset(s->qp, 0, sizeof(s->qp));
    sim_features_draw(s);
    sim_move_draw(s);
    sim_stream(s, SIM_STREAM_SETUP);
    setup_net(s);
    s->num_nodes = s->seen ? sim_both_nodes(s) :
                             1 + sim_rand(s, SIM_MAX_NODES);
    sim_gaps_draw(s);
    sim_gaps_net(s);
    sim_pages_draw(s);
    sim_rates_draw(s);
    sim_order_draw(s);
    s->net->one_place = s->seen || !(seed >> 5 & 3);
    for (unsigned i = 0; i < s->num_nodes; i++) {
        recycle(s, i);
        sim_srq_create(s, &s->node[i]);
        s->shared_end[i] = s->used[i];
        sim_mind_setup(s, i);
    }
    pairs = 1 + sim_rand(s, SIM_MAX_PAIRS);
    pairs = MAX_OF(pairs, first_free(s) + num_forced(s));
    s->num_qps = 2 * pairs;
    for (unsigned i = 0; i < pairs; i++) {
        setup_pair(s, i);
    }
    sim_both_faults(s);
    sim_mind_change(s);
}
