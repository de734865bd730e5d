/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: what a neighbour does in a device whose share of the CPU
 * is limited keeps to that limit, as do its own entry points.
 */
#include "harness/budget.h"
#include "harness/snapshot.h"

#define SHARE       1u
#define UNITS_MS    (2048u * SHARE / 100)   /* Documentation/bounds.rst */
#define PACKET      256u                    /* test_neighbour: a packet */

static void start(unsigned share)
{
    struct rc_opts o = RC_OPTS;

    o.mtu = 5;
    o.sq_log = 10;
    o.cq_log = 11;
    start_net(&o, true);
    limit_cpu(there.g, share);
    net_advance(net, 1000000000);
}

/* Return the units that the device visited has been charged. */
static unsigned worked(void)
{
    return pieces_owed(&there.g->e->share, net->clock);
}

static void write_much(unsigned n)
{
    struct rc_wr wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 400000);

    rc_aim(&wr, &there, NODE_MEM / 2);
    for (unsigned i = 0; i < n; i++) {
        rc_put(&qp, &wr);
    }
    rc_ring(&qp);
}

/* One call of the neighbour. */
static void test_one_call(void)
{
    start(SHARE);
    write_much(60);
    tap_note("%u units, in a millisecond may be %u", worked(),
             UNITS_MS);
    CHECK(worked() <= UNITS_MS + PACKET);
    CHECK(!qhca_engine_has_time(there.g->e, net->clock));
    CHECK_EQ(counter(there.g, QHCA_CNT_TX_ACK), 0);     /* an ACK is work */
}

/* Doorbells of one slice, before the main loop has its turn. */
static void test_slice(void)
{
    uint64_t owed;

    start(SHARE);
    write_much(500);
    for (unsigned i = 0; i < 40; i++) {
        rc_ring(&qp);
    }
    tap_note("%u units, and it has time: %d", worked(),
             qhca_engine_has_time(there.g->e, net->clock));
    there.g->host.todo = 0;
    qhca_engine_run(there.g->e, net->clock);
    owed = there.g->e->share.paid - net->clock;
    tap_note("its own guest now waits %llu ms for a command",
             (unsigned long long)owed / 1000000);
    CHECK(owed < 50000000);
}

static void visit(void)
{
    struct rc_wr wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 60000);

    rc_aim(&wr, &there, NODE_MEM / 2);
    rc_post(&qp, &wr);
    CHECK(worked());
}

/* Return what it has to pay for, in ns. */
static uint64_t owed(void)
{
    uint64_t paid;

    qhca_engine_run(there.g->e, net->clock);
    paid = there.g->e->share.paid;
    return paid > net->clock ? paid - net->clock : 0;
}

/* Another engine goes on between the visit and the turn that pays for it. */
static void test_saved(void)
{
    uint64_t same, other;

    start(20);
    visit();
    same = owed();
    start(20);
    visit();
    snapshot_cycle(there.g);
    other = owed();
    CHECK(same);
    CHECK_EQ(same, other);
}

/* The state loaded is from before the visit: there is nothing to pay. */
static void test_loaded(void)
{
    uint8_t *state;
    size_t len;

    start(20);
    CHECK_EQ(owed(), 0);
    state = snapshot_save(there.g, &len);
    visit();
    CHECK(snapshot_load(there.g, state, len));
    CHECK_EQ(owed(), 0);
}

/* A state is refused that has a debt of seconds: nothing of it is left. */
static void test_refused(void)
{
    uint8_t *state;
    size_t len;

    start(20);
    there.g->e->share.paid = net->clock + 9000000000;
    state = snapshot_save(there.g, &len);
    there.g->e->share.paid = net->clock;
    state[len - 1] ^= 0xff;
    snapshot_fix(state, len);
    CHECK(!snapshot_load(there.g, state, len));
    tap_note("%s", snapshot_why());
    CHECK(qhca_engine_has_time(there.g->e, net->clock));
}

/*
 * No device owes more than some seconds. A debt outlives resets, so one of
 * hours is refused; what cannot be loaded is not saved.
 */
static void test_debt_of_hours(void)
{
    static uint8_t scratch[1u << 20];
    struct vhca_pace *pace[3];
    struct qhca_engine *e;
    char why[160];

    start(20);
    e = there.g->e;
    pace[0] = &e->slice;
    pace[1] = &e->share;
    pace[2] = &e->port->pace;
    for (unsigned i = 0; i < ARRAY_SIZE(pace); i++) {
        pace[i]->paid = e->now + 7200000000000;
        CHECK_EQ(qhca_engine_save(e, e->now, scratch, sizeof(scratch), why,
                                  sizeof(why)), 0);
        CHECK(strstr(why, "paid"));
        pace[i]->paid = e->now;
    }
}

/* A refused state leaves no debt on a clock that is behind its own. */
static void test_refused_clock(void)
{
    char why[160];

    start(20);
    visit();
    net_advance(net, 1000000000);
    CHECK(qhca_engine_has_time(there.g->e, net->clock));
    CHECK(!qhca_engine_load(there.g->e, 0, "nonsense", 8, why, sizeof(why)));
    CHECK(qhca_engine_has_time(there.g->e, 100000000));
}

static const struct test tests[] = {
    { "a refused state leaves no debt", test_refused },
    { "a refused state on another clock", test_refused_clock },
    { "a state that owes hours is refused", test_debt_of_hours },
    { "a neighbour with a limit: one call", test_one_call },
    { "a neighbour with a limit: calls of one slice", test_slice },
    { "a visit before a save is paid for after the load", test_saved },
    { "a visit after a save is not paid for after the load", test_loaded },
};

TEST_MAIN(tests)
