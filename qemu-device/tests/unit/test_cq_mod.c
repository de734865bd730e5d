/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion queues: moderation of events.
 */
#include "harness/debug.h"
#include "harness/harness.h"

static struct guest *g;
static struct geq eq;
static struct gcq cq;

static void start(void)
{
    g = guest_start();
    eq = eq_create(g, 1, 6, 0);
    cq = cq_create(g, &eq, 3, 6);
}

static void push(bool solicited, unsigned n)
{
    struct qhca_cqe cqe = { 0 };

    qhca_engine_run(g->e, *g->clock);   /* sets the engine's time */
    while (n--) {
        vhca_cq_push(g->e, vhca_cq_get(g->e, cq.cqn), &cqe, solicited);
    }
    qhca_engine_run(g->e, *g->clock);
}

static void expect_event(void)
{
    struct qhca_eqe e;

    REQUIRE(eq_next(&eq, &e));
    CHECK_EQ(e.type, QHCA_EVENT_COMP);
    CHECK_EQ(le32toh(e.arm_sn), cq.sn);
    CHECK_EQ(cq_query(&cq).arm, QHCA_CQ_NOT_ARMED);
    eq_arm(&eq);
}

static void by_count(void)
{
    start();
    CHECK_EQ(cq_moderate(&cq, 4, 1000), QHCA_OK);
    CHECK_EQ(le32toh(cq_query(&cq).count), 4);
    CHECK_EQ(le32toh(cq_query(&cq).period), 1000);
    push(false, 10);                    /* not armed: these do not count */
    cq_arm(&cq, false);
    push(false, 3);
    eq_expect_none(&eq);
    push(false, 1);
    expect_event();
    guest_advance(g, 10000000);
    eq_expect_none(&eq);                /* C-017 one arm, one event */
    CHECK_EQ(g->host.deadline, UINT64_MAX);
}

static void by_time(void)
{
    start();
    CHECK_EQ(cq_moderate(&cq, 4, 1000), QHCA_OK);
    cq_arm(&cq, false);
    guest_advance(g, 5000000);
    eq_expect_none(&eq);                /* the period starts with a CQE */
    push(false, 1);
    guest_advance(g, 900000);
    eq_expect_none(&eq);
    push(false, 1);
    guest_advance(g, 99000);
    eq_expect_none(&eq);
    guest_advance(g, 2000);
    expect_event();                     /* never stalls a lone CQE */
    push(false, 10);
    guest_advance(g, 5000000);
    eq_expect_none(&eq);
}

static void solicited(void)
{
    start();
    CHECK_EQ(cq_moderate(&cq, 3, 1000), QHCA_OK);
    cq_arm(&cq, true);
    push(false, 8);
    guest_advance(g, 5000000);
    eq_expect_none(&eq);
    push(true, 1);
    eq_expect_none(&eq);
    push(false, 2);                     /* of any kind */
    expect_event();
}

/* The CQ is armed while an event is held back: the event is of that arm. */
static void rearm(void)
{
    start();
    CHECK_EQ(cq_moderate(&cq, 3, 1000), QHCA_OK);
    cq_arm(&cq, false);
    push(false, 1);
    cq_arm(&cq, false);
    push(false, 1);
    eq_expect_none(&eq);
    guest_advance(g, 1000001);
    expect_event();
    eq_expect_none(&eq);
    cq_arm(&cq, false);
    push(false, 3);
    expect_event();
}

static void off(void)
{
    static const struct {
        uint32_t count, period;
    } none[] = { { 0, 0 }, { 1, 1000 }, { 0, 1000 }, { 100, 0 } };

    start();
    for (unsigned i = 0; i < ARRAY_SIZE(none); i++) {
        CHECK_EQ(cq_moderate(&cq, 100, 60000), QHCA_OK);
        cq_arm(&cq, false);
        push(false, 1);
        eq_expect_none(&eq);
        CHECK_EQ(cq_moderate(&cq, none[i].count, none[i].period), QHCA_OK);
        expect_event();
        cq_arm(&cq, false);
        push(false, 1);
        expect_event();
    }
}

static void limits(void)
{
    struct qhca_cmd cmd = {
        .opcode = htole16(QHCA_CMD_MODIFY_CQ),
        .modify_cq.cqn = htole32(0x123456),
    };

    start();
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_OBJ);
    CHECK_EQ(cq_moderate(&cq, 65535, 65535), QHCA_OK);
    CHECK_EQ(cq_moderate(&cq, 65536, 1), QHCA_ERR_LIMIT);
    CHECK_EQ(cq_moderate(&cq, 1, 65536), QHCA_ERR_LIMIT);
    CHECK_EQ(le32toh(cq_query(&cq).count), 65535);
    cq_arm(&cq, false);
    push(false, 1);
    guest_advance(g, 65534000);
    eq_expect_none(&eq);
    guest_advance(g, 2000);
    expect_event();
}

/* The CQ is destroyed, or the device reset, while an event is held back. */
static void gone(void)
{
    start();
    CHECK_EQ(cq_moderate(&cq, 9, 1000), QHCA_OK);
    cq_arm(&cq, false);
    push(false, 1);
    CHECK(g->host.deadline != UINT64_MAX);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_CQ, cq.cqn), QHCA_OK);
    CHECK_EQ(g->host.deadline, UINT64_MAX);
    cq = cq_create(g, &eq, 3, 6);
    CHECK_EQ(cq_moderate(&cq, 9, 1000), QHCA_OK);
    cq_arm(&cq, false);
    push(false, 1);
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    CHECK_EQ(g->host.deadline, UINT64_MAX);
    guest_advance(g, 5000000);
    CHECK_EQ(g->dma_after_stop, 0);
}

/* C-028: CQEs in the CQ still raise their event. */
static void overrun(void)
{
    start();
    CHECK_EQ(cq_moderate(&cq, 1000, 1000), QHCA_OK);
    cq_arm(&cq, false);
    push(false, 65);
    CHECK_EQ(cq_query(&cq).state, QHCA_CQ_ERROR);
    guest_advance(g, 1000001);
    expect_event();
}

/* C-026: resizing does not move the time of a held back event. */
static void resized(void)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_RESIZE_CQ) };
    struct gbuf ring;

    start();
    CHECK_EQ(cq_moderate(&cq, 4, 1000), QHCA_OK);
    cq_arm(&cq, false);
    push(false, 1);
    guest_advance(g, 900000);
    ring = guest_buf(g, (64 << 7) + 64, 12, 1);
    cq_copy_arms(&cq, &ring, 7);
    cmd.create_cq.buf = ring.desc;
    cmd.create_cq.cqn = htole32(cq.cqn);
    cmd.create_cq.log_size = 7;
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_OK);
    eq_expect_none(&eq);
    guest_advance(g, 101000);
    expect_event();
}

static const struct test tests[] = {
    { "C-032 C-017 event after count CQEs", by_count },
    { "C-032 event after the period", by_time },
    { "C-032 C-015 armed for solicited ones", solicited },
    { "C-032 C-019 armed again meanwhile", rearm },
    { "C-032 moderation off", off },
    { "C-032 limits", limits },
    { "C-032 CQ destroyed while an event is held back", gone },
    { "C-026 C-032 resized while an event is held back", resized },
    { "C-032 C-028 overrun while an event is held back", overrun },
};

TEST_MAIN(tests)
