/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: fault rules for completions, events, interrupts, commands,
 * and for the device as a whole.
 */
#include <stdio.h>

#include "harness/faults.h"
#include "harness/snapshot.h"

#define MS      1000000ull

/* ---- completions ---- */

static void test_fail_send(void)
{
    struct rc_wr wr;

    faults_pair("cqe opcode=send nth=2 fail=rem_access_err");
    wr = rc_wr(&qp, QHCA_WR_SEND, 0, 100);
    rc_put(&qp, &wr);
    wr = rc_wr(&qp, QHCA_WR_SEND, 0, 100);
    wr.flags = 0;               /* an error has a CQE in any case */
    rc_put(&qp, &wr);
    rc_send(&qp, 100);
    done(0, 0);
    done(1, QHCA_WC_REM_ACCESS_ERR);
    done(2, QHCA_WC_WR_FLUSH_ERR);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
    no_event();
    rc_expect(&peer.rcq, 0, 0);
    rc_expect(&peer.rcq, 1, 0);
    CHECK_EQ(rc_state(&peer), QHCA_QPS_RTS);
}

static void test_fail_recv(void)
{
    faults_pair("cqe opcode=recv once fail=loc_prot_err");
    faults_send();
    rc_expect(&peer.rcq, 0, QHCA_WC_LOC_PROT_ERR);
    for (unsigned i = 1; i < 4; i++) {
        rc_expect(&peer.rcq, i, QHCA_WC_WR_FLUSH_ERR);
    }
    CHECK_EQ(rc_state(&peer), QHCA_QPS_ERR);
    faults_sent(QHCA_WC_RETRY_EXC_ERR);     /* no response */
}

/* Other kinds of send WRs, which complete in different ways. */
static void test_fail_kinds(void)
{
    static const uint8_t opcodes[] = {
        QHCA_WR_RDMA_WRITE, QHCA_WR_RDMA_READ, QHCA_WR_ATOMIC_FETCH_AND_ADD,
    };

    for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
        faults_pair("cqe qpn=0-0xffffff fail=general_err");
        for (unsigned n = 0; n < 2; n++) {
            struct rc_wr wr = rc_wr(&qp, opcodes[i], 0, 8);

            rc_aim(&wr, &node, FAULT_DST);
            rc_put(&qp, &wr);
        }
        rc_ring(&qp);
        guest_settle(g);
        done(0, QHCA_WC_GENERAL_ERR);
        done(1, QHCA_WC_WR_FLUSH_ERR);
        CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
        guest_advance(g, 100 * ACK_TIME);
        rc_expect_none(&qp.scq);
    }
}

/* A rule for one CQ leaves others alone. */
static void test_fail_cq(void)
{
    char text[80];

    faults_pair(NULL);
    for (unsigned other = 0; other < 2; other++) {
        snprintf(text, sizeof(text), "cqe cqn=0x%x fail=general_err",
                 qp.scq.cqn ^ !other);
        faults_set(text);
        faults_send();
        done(other, other ? QHCA_WC_GENERAL_ERR : QHCA_WC_SUCCESS);
    }
}

/* A send error of UC or UD stops only the send queue. */
static void test_fail_unreliable(void)
{
    static const uint8_t types[] = { QHCA_QPT_UC, QHCA_QPT_UD };

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        struct rc_opts o = opts_of(types[i]);

        faults_pair_of(&o, "cqe opcode=send once fail=loc_qp_op_err; "
                           "cqe opcode=recv nth=2 fail=loc_len_err");
        for (unsigned n = 0; n < 3; n++) {
            struct rc_wr wr = rc_wr(&qp, QHCA_WR_SEND, 0, 100);

            rc_put(&qp, &wr);
        }
        rc_ring(&qp);
        guest_settle(g);
        done(0, QHCA_WC_LOC_QP_OP_ERR);
        done(1, QHCA_WC_WR_FLUSH_ERR);
        done(2, QHCA_WC_WR_FLUSH_ERR);
        CHECK_EQ(rc_state(&qp), QHCA_QPS_SQE);
        rc_expect(&peer.rcq, 0, 0);
        REQUIRE(rc_set_state(&qp, QHCA_QPS_RTS) == QHCA_OK);
        faults_send();
        done(3, 0);
        rc_expect(&peer.rcq, 1, QHCA_WC_LOC_LEN_ERR);
        rc_expect(&peer.rcq, 2, QHCA_WC_WR_FLUSH_ERR);
        CHECK_EQ(rc_state(&peer), QHCA_QPS_ERR);
    }
}

static void test_overrun(void)
{
    faults_pair("cqe opcode=send once overrun");
    faults_send();
    rc_expect_none(&qp.scq);
    CHECK_EQ(counter(g, QHCA_CNT_CQ_OVERRUN), 1);
    eq_expect(&node.async, QHCA_EVENT_CQ_ERR, qp.scq.cqn);
    eq_expect(&node.async, QHCA_EVENT_QP_FATAL, qp.qpn);
    no_event();
    CHECK_EQ(cq_query(&qp.scq).state, QHCA_CQ_ERROR);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
    CHECK_EQ(rc_state(&peer), QHCA_QPS_RTS);
}

static void test_cqe_event(void)
{
    faults_pair("cqe opcode=recv once event=qp_access_err");
    faults_send();
    rc_expect(&peer.rcq, 0, 0);
    rc_expect(&peer.rcq, 1, QHCA_WC_WR_FLUSH_ERR);
    eq_expect(&node.async, QHCA_EVENT_QP_ACCESS_ERR, peer.qpn);

    faults_pair("cqe opcode=send once event=qp_fatal");
    faults_send();
    faults_send();
    done(0, 0);
    done(1, QHCA_WC_WR_FLUSH_ERR);
    eq_expect(&node.async, QHCA_EVENT_QP_FATAL, qp.qpn);
}

/* ---- events and interrupts ---- */

static void test_lost_comp(void)
{
    faults_pair("event type=comp once drop");
    cq_arm(&peer.rcq, false);
    faults_send();
    eq_expect_none(&node.comp);
    rc_expect(&peer.rcq, 0, 0);
    cq_arm(&peer.rcq, false);
    faults_send();
    eq_expect(&node.comp, QHCA_EVENT_COMP, peer.rcq.cqn);
}

static void test_lost_event(void)
{
    faults_pair("event type=link_* drop");
    qhca_engine_set_link(g->e, *g->clock, false);
    qhca_engine_set_link(g->e, *g->clock, true);
    no_event();
    CHECK_EQ(faults_hits(0), 2);
    CHECK_EQ(dev_state(g), QHCA_STATE_RUNNING);
}

static void test_lost_irq(void)
{
    unsigned before;

    faults_pair("irq vector=1 once drop");
    before = g->irqs[1];
    eq_arm(&node.comp);
    cq_arm(&peer.rcq, false);
    faults_send();
    eq_expect(&node.comp, QHCA_EVENT_COMP, peer.rcq.cqn);
    CHECK_EQ(g->irqs[1], before);
    eq_arm(&node.comp);
    cq_arm(&peer.rcq, false);
    faults_send();
    CHECK_EQ(g->irqs[1], before + 1);
}

/* ---- commands ---- */

static int alloc_pd(void)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_ALLOC_PD) };

    return guest_cmd(g, &cmd, NULL);
}

static void test_cmd_fail(void)
{
    unsigned before;

    start_node();
    faults_set("cmd opcode=alloc_* once fail=no_resource; cmd after=1 nth=2 "
               "fail=busy");
    before = qhca_engine_num_objects(g->e);
    CHECK_EQ(alloc_pd(), QHCA_ERR_NO_RESOURCE);
    CHECK_EQ(qhca_engine_num_objects(g->e), before);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_CMD), 1);
    CHECK_EQ(alloc_pd(), QHCA_OK);
    CHECK_EQ(alloc_pd(), QHCA_OK);
    CHECK_EQ(alloc_pd(), QHCA_ERR_BUSY);
    CHECK_EQ(alloc_pd(), QHCA_OK);
}

/* Commands behind the stalled one wait as well and run in order. */
static void test_cmd_stall(void)
{
    unsigned before;

    start_node();
    faults_set("cmd opcode=alloc_pd once stall=5ms");
    before = qhca_engine_num_objects(g->e);
    CHECK_EQ(alloc_pd(), -1);
    CHECK_EQ(alloc_pd(), -1);
    CHECK(!g->host.todo);
    guest_advance(g, 5 * MS - 1);
    CHECK_EQ(qhca_engine_num_objects(g->e), before);
    guest_advance(g, 1);
    CHECK_EQ(qhca_engine_num_objects(g->e), before + 2);
    CHECK_EQ(alloc_pd(), QHCA_OK);
    CHECK_EQ(faults_hits(0), 1);
}

static void test_cmd_hang(void)
{
    start_node();
    faults_set("cmd opcode=alloc_pd once hang");
    CHECK_EQ(alloc_pd(), -1);
    guest_advance(g, 100000 * MS);
    CHECK_EQ(alloc_pd(), -1);
    CHECK(g->host.deadline == UINT64_MAX);
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    guest_enable(g, 5);
    CHECK_EQ(alloc_pd(), QHCA_OK);
}

/* ---- the device as a whole ---- */

static bool link_up(void)
{
    return reg_read(g, QHCA_REG_STATUS) & QHCA_STATUS_LINK_UP;
}

static void test_link(void)
{
    faults_pair("rx opcode=rc.send_only once link-down=3ms");
    faults_send();
    CHECK(link_up());
    guest_advance(g, 1);        /* not while the packet is being delivered */
    CHECK(!link_up());
    eq_expect(&node.async, QHCA_EVENT_LINK_DOWN, 1);
    guest_advance(g, 3 * MS - 2);
    CHECK(!link_up());
    guest_advance(g, 2);
    CHECK(link_up());
    eq_expect(&node.async, QHCA_EVENT_LINK_UP, 1);
    faults_sent(0);
}

/* The operator's setting of the link counts once the flap is over. */
static void test_link_operator(void)
{
    start_node();
    faults_set("timer after=1ms link-down=2ms");
    guest_advance(g, MS);
    CHECK(!link_up());
    qhca_engine_set_link(g->e, *g->clock, true);
    CHECK(!link_up());
    qhca_engine_set_link(g->e, *g->clock, false);
    guest_advance(g, 5 * MS);
    CHECK(!link_up());
    qhca_engine_set_link(g->e, *g->clock, true);
    CHECK(link_up());
}

static void test_link_reset(void)
{
    start_node();
    faults_set("timer after=1ms link-down=2s");
    guest_advance(g, MS);
    CHECK(!link_up());
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    CHECK(link_up());
}

static void test_timer(void)
{
    start_node();
    faults_set("timer every=2ms times=3 link-down=1ms");
    guest_advance(g, 2 * MS - 1);
    CHECK(link_up());
    for (unsigned i = 0; i < 3; i++) {
        guest_advance(g, 1);
        CHECK(!link_up());
        guest_advance(g, MS);
        CHECK(link_up());
        guest_advance(g, MS - 1);
    }
    guest_advance(g, 100 * MS);
    CHECK_EQ(faults_hits(0), 3);
    CHECK(g->host.deadline == UINT64_MAX);

    /* After a reset the timer starts again when the device runs. */
    faults_set("timer after=2ms link-down=1ms");
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    guest_advance(g, 5 * MS);
    CHECK_EQ(faults_hits(0), 0);
    guest_enable(g, 5);
    guest_advance(g, MS);
    CHECK_EQ(faults_hits(0), 1);
}

/* Rules belong to this engine's operator: loading a state changes none. */
static void test_timer_load(void)
{
    uint8_t *state;
    size_t len;

    start_node();
    faults_set("timer after=2ms link-down=1ms");
    state = snapshot_save(g, &len);
    REQUIRE(snapshot_load(g, state, len));
    guest_advance(g, 2 * MS);
    CHECK_EQ(faults_hits(0), 1);
    CHECK(!link_up());
}

/* Loads a state into the engine, whose clock shows @now then. */
static void load_at(uint64_t now)
{
    struct heap *before;
    uint8_t *state;
    char why[200];
    size_t len;

    (void)link_up();                    /* the engine looks at its clock */
    state = snapshot_save(g, &len);
    before = heap_use(g->heap);
    *g->clock = now;
    CHECK(qhca_engine_load(g->e, now, state, len, why, sizeof(why)));
    heap_use(before);
}

/* The clock of a state can be behind or ahead: rules wait as long as before. */
static void test_timer_clock(void)
{
    static const uint64_t clocks[] = { 1000000 * MS, 10 * MS, 9000000 * MS };

    for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
        start_node();
        guest_advance(g, 1000 * MS);
        faults_set("timer after=3ms every=2ms link-down=100us");
        guest_advance(g, MS);
        load_at(clocks[i]);
        guest_advance(g, 2 * MS - 1);
        CHECK_EQ(faults_hits(0), 0);
        guest_advance(g, 1);
        CHECK_EQ(faults_hits(0), 1);
        guest_advance(g, MS);
        load_at(clocks[i]);
        guest_advance(g, MS);
        CHECK_EQ(faults_hits(0), 2);
    }
}

static void test_fatal(void)
{
    static const char *const when[] = {
        "tx once fatal", "rx once fatal", "cqe once fatal",
        "timer after=1ms fatal", "cmd opcode=query_qp once fatal",
    };

    for (size_t i = 0; i < ARRAY_SIZE(when); i++) {
        faults_pair(when[i]);
        if (i < 3) {
            faults_send();
        } else if (i == 4) {
            rc_query(&qp);
        }
        guest_advance(g, MS);
        CHECK_EQ(dev_state(g), QHCA_STATE_FATAL);
        CHECK_EQ(reg_read(g, QHCA_REG_FATAL), QHCA_FATAL_INJECTED);
        eq_expect(&node.async, QHCA_EVENT_DEVICE_FATAL, QHCA_FATAL_INJECTED);
        reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
        CHECK_EQ(dev_state(g), QHCA_STATE_RESET);
        CHECK_EQ(faults_hits(0), 1);
    }
}

static void test_remove(void)
{
    struct qhca_fault_error err;

    faults_pair("cqe opcode=recv once remove");
    faults_send();
    guest_advance(g, MS);
    CHECK_EQ(g->removed, 1);

    g->e->cfg.removable = false;
    CHECK(!qhca_engine_set_faults(g->e, *g->clock, "cqe remove", &err));
    CHECK_EQ(err.column, 5);
}

static const struct test tests[] = {
    { "a send fails", test_fail_send },
    { "a receive fails", test_fail_recv },
    { "other sends fail", test_fail_kinds },
    { "completions of one CQ fail", test_fail_cq },
    { "sends and receives of UC and UD fail", test_fail_unreliable },
    { "a CQ overruns", test_overrun },
    { "events with a CQE", test_cqe_event },
    { "a lost completion event", test_lost_comp },
    { "lost asynchronous events", test_lost_event },
    { "a lost interrupt", test_lost_irq },
    { "commands fail", test_cmd_fail },
    { "a command is delayed", test_cmd_stall },
    { "a command never ends", test_cmd_hang },
    { "the link goes down for a while", test_link },
    { "the operator sets the link during a flap", test_link_operator },
    { "a reset during a flap", test_link_reset },
    { "timers", test_timer },
    { "timers after a state has been loaded", test_timer_load },
    { "timers on another clock", test_timer_clock },
    { "the device stops", test_fatal },
    { "the device is removed", test_remove },
};

TEST_MAIN(tests)
