/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion queues: arming, by doorbells or in the doorbell record.
 */
#include "harness/debug.h"
#include "harness/rc.h"

static struct guest *g;
static struct geq eq;
static struct gcq cq;

static void start(void)
{
    g = guest_start();
    eq = eq_create(g, 1, 6, 0);
    cq = cq_create(g, &eq, 3, 6);
}

static void push_as(unsigned status, bool solicited)
{
    struct qhca_cqe cqe = { .status = (uint8_t)status };

    CHECK(vhca_cq_push(g->e, vhca_cq_get(g->e, cq.cqn), &cqe, solicited));
    qhca_engine_run(g->e, *g->clock);
}

static void push(void)
{
    push_as(QHCA_WC_SUCCESS, false);
}

static unsigned events_of(uint32_t sn)
{
    struct qhca_eqe eqe;
    unsigned n = 0;

    while (eq_next(&eq, &eqe)) {
        CHECK_EQ(eqe.type, QHCA_EVENT_COMP);
        CHECK_EQ(le32toh(eqe.obj), cq.cqn);
        CHECK_EQ(le32toh(eqe.arm_sn), sn);
        n++;
    }
    return n;
}

static unsigned events(void)
{
    return events_of(cq.sn);
}

static void next(void)
{
    start();
    push();
    CHECK_EQ(events(), 0);
    cq_arm(&cq, false);
    CHECK_EQ(cq_query(&cq).arm, QHCA_CQ_ARM_NEXT);
    CHECK_EQ(events(), 0);              /* C-019 */
    push();
    push();
    CHECK_EQ(events(), 1);              /* C-014, C-017 */
    CHECK_EQ(g->irqs[1], 1);
    CHECK_EQ(cq_query(&cq).arm, QHCA_CQ_NOT_ARMED);
}

static void solicited(void)
{
    start();
    cq_arm(&cq, true);
    push();
    CHECK_EQ(events(), 0);
    push_as(QHCA_WC_SUCCESS, true);
    CHECK_EQ(events(), 1);
    cq_arm(&cq, true);
    push_as(QHCA_WC_WR_FLUSH_ERR, false);
    CHECK_EQ(events(), 1);              /* any error (C-015) */
}

static void upgrade(void)
{
    start();
    cq_arm(&cq, true);
    cq_arm(&cq, false);
    push();
    CHECK_EQ(events(), 1);
    cq_arm(&cq, false);
    cq_arm(&cq, true);                  /* no downgrade (C-018) */
    CHECK_EQ(cq_query(&cq).arm, QHCA_CQ_ARM_NEXT);
    push();
    CHECK_EQ(events(), 1);
    cq_arm(&cq, true);
    push();                             /* that one is forgotten */
    CHECK_EQ(events(), 0);
}

/* A CQE, or a query, is between the two arms. */
static void upgrade_late(void)
{
    start();
    cq_arm(&cq, true);
    push();
    cq_arm(&cq, false);
    push();
    CHECK_EQ(events(), 1);
    cq_arm(&cq, false);
    CHECK_EQ(cq_query(&cq).arm, QHCA_CQ_ARM_NEXT);
    cq_arm(&cq, true);
    CHECK_EQ(cq_query(&cq).arm, QHCA_CQ_ARM_NEXT);
    push();
    CHECK_EQ(events(), 1);
}

static void repeat(void)
{
    start();
    if (g->in_memory) {
        ring(g, 3, QHCA_DB_CQ_ARM, cq.cqn, 1);
        push();
        CHECK_EQ(events(), 0);
        CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 1);
        return;
    }
    ring(g, 3, QHCA_DB_CQ_ARM, cq.cqn, 0);      /* 0 is a valid start */
    push();
    CHECK_EQ(events(), 1);
    ring(g, 3, QHCA_DB_CQ_ARM, cq.cqn, 0);
    push();
    CHECK_EQ(events(), 0);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 0);
    cq_arm(&cq, false);
    push();
    CHECK_EQ(events(), 1);
}

/* An arm with the next number, for any CQE or for those that are solicited. */
static void arm_next(bool solicited)
{
    struct qhca_cqe cqe;

    cq_arm(&cq, solicited);
    push();
    CHECK_EQ(events(), !solicited);
    push_as(QHCA_WC_SUCCESS, true);
    CHECK_EQ(events(), solicited);
    eq_arm(&eq);
    while (cq_poll(&cq, &cqe)) {
        ;
    }
}

/* Numbers begin again at 0 after 2^32 arms. */
static void wrap(void)
{
    static const uint32_t ahead[] = { 0x100, 0x10000, 0x1000000, 0x80000000 };

    start();
    for (unsigned part = 0; part < 3; part++) {
        cq.sn = cq.any_sn = UINT32_MAX - 3;
        for (unsigned i = 0; i < 8; i++) {
            arm_next(i && i % 3 == part);
        }
    }
    for (unsigned i = 0; i < ARRAY_SIZE(ahead); i++) {
        cq.sn += ahead[i] - 1;              /* the device sees the last */
        arm_next(false);
    }
    for (unsigned i = 0; i < 8; i++) {
        cq.sn += 0x1fffffff;                /* that for any is long ago */
        arm_next(i < 7);
    }
}

static void resize(unsigned log)
{
    struct gbuf to = guest_buf(g, (64ull << log) + 64, 12, 1);
    struct qhca_cmd cmd = {
        .opcode = htole16(QHCA_CMD_RESIZE_CQ),
        .create_cq = {
            .buf = to.desc, .cqn = htole32(cq.cqn), .log_size = (uint8_t)log,
        },
    };

    cq_copy_arms(&cq, &to, log);
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_OK);
    cq.buf = to;
    cq.log = log;
    cq.ci = 0;
}

/* An arm stays in force, whether the device has seen it or not. */
static void resized(void)
{
    struct qhca_cqe cqe;

    start();
    for (unsigned i = 0; i < 4; i++) {
        cq_arm(&cq, false);
        if (i & 1) {
            CHECK_EQ(cq_query(&cq).arm, QHCA_CQ_ARM_NEXT);
        }
        resize(3 + i);
        CHECK_EQ(events(), 0);
        push();
        CHECK_EQ(events(), 1);
        eq_arm(&eq);
        resize(5);
        push();                         /* an old one does not come back */
        CHECK_EQ(events(), 0);
        while (cq_poll(&cq, &cqe)) {
            ;
        }
    }
}

/* ---- only in the record ---- */

static void write_arms(uint32_t sn, uint32_t any_sn)
{
    cq.sn = sn - 1;
    cq.any_sn = any_sn;
    cq_arm(&cq, true);
}

/* Any words there cause at most an event for each arm, with its number. */
static void any_words(void)
{
    uint64_t rng = 1;

    start();
    for (unsigned i = 0; g->in_memory && i < 2000; i++) {
        const uint32_t before = cq.sn, last = cq.any_sn;

        write_arms((uint32_t)(test_random(&rng) % 5 ? before + 1 :
                              test_random(&rng)),
                   (uint32_t)(test_random(&rng) % 2 ? last :
                              test_random(&rng)));
        push_as(QHCA_WC_SUCCESS, true);
        CHECK_EQ(events(), cq.sn != before);
        push_as(QHCA_WC_SUCCESS, true);
        CHECK_EQ(events(), 0);
        eq_arm(&eq);
        cq.ci += 2;
        memcpy(guest_ptr(g, gbuf_addr(&cq.buf, 64ull << cq.log), 4), &cq.ci, 4);
    }
}

/* A doorbell record that cannot be read counts as one without arms. */
static void unreadable(void)
{
    start();
    if (g->in_memory) {
        guest_spoil(g, gbuf_addr(&cq.buf, 64ull << cq.log), 64);
        cq_arm(&cq, false);
        push();
        CHECK_EQ(events(), 0);
        CHECK_EQ(cq_query(&cq).state, QHCA_CQ_OK);
        CHECK(counter(g, QHCA_CNT_DMA_ERR) > 0);
    }
}

static void arm_at_owner(struct guest *of, uint64_t addr, size_t len,
                         bool write)
{
    (void)addr;
    if (write && len == 1) {
        of->on_dma = NULL;
        cq_arm(&cq, false);
    }
}

/* The consumer has polled before the CQE is there, so nothing else tells it. */
static void last_moment(void)
{
    start();
    if (g->in_memory) {
        g->on_dma = arm_at_owner;
        push();
        CHECK(!g->on_dma);
        CHECK_EQ(events(), 1);
    }
}

/* One read for each CQE, and no doorbell. */
static void cost(void)
{
    uint64_t reads;

    start();
    if (g->in_memory) {
        reads = g->reads;
        for (unsigned i = 0; i < 60; i++) {
            push();
        }
        CHECK_EQ(g->reads - reads, 60);
    }
}

static void without(void)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_CREATE_CQ) };

    start();
    cmd.create_cq.buf = cq.buf.desc;
    cmd.create_cq.eqn = htole32(eq.eqn);
    cmd.create_cq.log_size = 6;
    cmd.create_cq.flags = QHCA_CQ_DBREC;
    if (!g->in_memory) {
        g->e->cfg.shadow = false;
        CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_NOT_SUPPORTED);
        g->e->cfg.shadow = true;
    }
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_OK);
}

static const struct test tests[] = {
    { "C-014, C-017, C-019 arm for the next CQE", next },
    { "C-015 arm for a solicited CQE", solicited },
    { "C-018 arm upgrades, never downgrades", upgrade },
    { "C-018 also if the device learns of them one by one", upgrade_late },
    { "a repeated arm is ignored", repeat },
    { "arms are counted modulo 2^32", wrap },
    { "C-026 resize keeps the arm", resized },
    { "any words in the record", any_words },
    { "a record that cannot be read", unreadable },
    { "C-019 an arm while the CQE is written", last_moment },
    { "an arm in the record costs a read for each CQE", cost },
    { "a device that does not look in memory", without },
};

TEST_MAIN(tests)
