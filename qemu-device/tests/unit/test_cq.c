/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion queues: ring, phase, overrun, resizing.
 */
#include "harness/debug.h"
#include "harness/rc.h"

struct setup {
    struct guest *g;
    struct geq async, eq;
    struct gcq cq;
    struct vhca_cq *dev;        /* the CQ as the engine has it */
};

static struct setup start(unsigned cq_log)
{
    struct setup s = { .g = guest_start() };

    s.async = eq_create(s.g, 0, 6, QHCA_EQ_ASYNC);
    s.eq = eq_create(s.g, 1, 6, 0);
    s.cq = cq_create(s.g, &s.eq, 3, cq_log);
    s.dev = vhca_cq_get(s.g->e, s.cq.cqn);
    REQUIRE(s.dev);
    return s;
}

static void push_to(struct setup *s, struct vhca_cq *cq, uint64_t wr_id,
                    unsigned status, bool solicited)
{
    struct qhca_cqe cqe = {
        .wr_id = htole64(wr_id),
        .status = (uint8_t)status,
    };

    vhca_cq_push(s->g->e, cq, &cqe, solicited);
    qhca_engine_run(s->g->e, *s->g->clock);
}

static void push(struct setup *s, uint64_t wr_id)
{
    push_to(s, s->dev, wr_id, 0, false);
}

static void fill_and_poll(void)
{
    struct setup s = start(3);
    struct qhca_cqe cqe;
    uint64_t in = 0, out = 0;
    unsigned round, i;

    for (round = 0; round < 40; round++) {
        for (i = 0; i < round % 9; i++) {   /* 8 fit and are not polled */
            push(&s, in++);
        }
        CHECK(round % 9 == 0 || cq_poll(&s.cq, &cqe));
        if (round % 9) {
            CHECK_EQ(le64toh(cqe.wr_id), out++);
            CHECK_EQ(le64toh(cqe.timestamp), *s.g->clock);
        }
        while (cq_poll(&s.cq, &cqe)) {
            CHECK_EQ(le64toh(cqe.wr_id), out++);
        }
    }
    CHECK_EQ(in, out);
    CHECK_EQ(cq_query(&s.cq).state, QHCA_CQ_OK);
    CHECK_EQ(counter(s.g, QHCA_CNT_CQ_OVERRUN), 0);
}

/* The consumer index is read only when the ring seems full. */
static void few_reads(void)
{
    struct setup s = start(6);
    struct qhca_cqe cqe;
    uint64_t reads = s.g->reads;
    unsigned i;

    for (i = 0; i < 640; i++) {
        push(&s, i);
        CHECK(cq_poll(&s.cq, &cqe));
    }
    CHECK(s.g->reads - reads <= 10);
}

static void overrun(void)
{
    struct setup s = start(2);
    unsigned i;

    for (i = 0; i < 4; i++) {
        push(&s, i);
    }
    eq_expect_none(&s.async);
    push(&s, 4);
    push(&s, 5);
    eq_expect(&s.async, QHCA_EVENT_CQ_ERR, s.cq.cqn);
    eq_expect_none(&s.async);                   /* one per CQ (C-028) */
    CHECK_EQ(cq_query(&s.cq).state, QHCA_CQ_ERROR);
    CHECK_EQ(counter(s.g, QHCA_CNT_CQ_OVERRUN), 1);
    for (i = 0; i < 4; i++) {
        rc_expect(&s.cq, i, QHCA_WC_SUCCESS);
    }
    rc_expect_none(&s.cq);
    push(&s, 6);
    rc_expect_none(&s.cq);
    CHECK_EQ(guest_cmd_obj(s.g, QHCA_CMD_DESTROY_CQ, s.cq.cqn), QHCA_OK);
}

static void hostile_ci(void)
{
    static const uint32_t ci[] = { 5, 0x80000000, 0xffffffff };
    unsigned i, j;

    for (i = 0; i < ARRAY_SIZE(ci); i++) {
        struct setup s = start(2);
        uint32_t *rec = guest_ptr(s.g, gbuf_addr(&s.cq.buf, 4 * 64), 4);

        *rec = htole32(ci[i]);
        for (j = 0; j < 5; j++) {
            push(&s, j);
        }
        eq_expect(&s.async, QHCA_EVENT_CQ_ERR, s.cq.cqn);
        CHECK_EQ(cq_query(&s.cq).ci, 0);
        guest_free(s.g);
    }
}

/* The consumer index decreases. */
static void ci_backwards(void)
{
    struct setup s = start(2);
    uint32_t *rec = guest_ptr(s.g, gbuf_addr(&s.cq.buf, 4 * 64), 4);
    unsigned j;

    *rec = htole32(0);
    for (j = 0; j < 4; j++) {
        push(&s, j);
    }
    *rec = htole32(3);
    push(&s, 4);                /* reads 3 */
    push(&s, 5);
    push(&s, 6);
    *rec = htole32(2);
    push(&s, 7);
    eq_expect(&s.async, QHCA_EVENT_CQ_ERR, s.cq.cqn);
}

static void unwritable(void)
{
    struct setup s = start(4);

    guest_spoil(s.g, gbuf_addr(&s.cq.buf, 63), 1);
    push(&s, 0);
    eq_expect(&s.async, QHCA_EVENT_CQ_ERR, s.cq.cqn);
    CHECK_EQ(cq_query(&s.cq).state, QHCA_CQ_ERROR);
    CHECK_EQ(dev_state(s.g), QHCA_STATE_RUNNING);
}

/* ---- resizing ---- */

static int resize(struct setup *s, unsigned log, struct gbuf *out)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_RESIZE_CQ) };

    *out = guest_buf(s->g, (64ull << (log > VHCA_CQ_LOG_MAX ? 3 : log)) + 64,
                     12, log < 15 ? 1 : 3);
    cmd.create_cq.buf = out->desc;
    cmd.create_cq.cqn = htole32(s->cq.cqn);
    cmd.create_cq.log_size = (uint8_t)log;
    return guest_cmd(s->g, &cmd, NULL);
}

static void resize_ok(void)
{
    static const unsigned logs[] = { 5, 3, 7, 3, 4, 8, 2, 6 };
    struct setup s = start(4);
    uint64_t in = 0, out = 0;
    struct qhca_cqe cqe;
    struct gbuf b;
    unsigned i, j;

    for (i = 0; i < ARRAY_SIZE(logs); i++) {
        for (j = 0; j < 11 + i; j++) {      /* into both phases */
            push(&s, in++);
            rc_expect(&s.cq, out++, QHCA_WC_SUCCESS);
        }
        for (j = 0; j < 1u << logs[i] && j < 1u << s.cq.log; j++) {
            push(&s, in++);
        }
        CHECK_EQ(resize(&s, logs[i], &b), QHCA_OK);
        s.cq.buf = b;
        s.cq.log = logs[i];
        s.cq.ci = 0;
        while (cq_poll(&s.cq, &cqe)) {
            CHECK_EQ(le64toh(cqe.wr_id), out++);
        }
        CHECK_EQ(in, out);
    }
    CHECK_EQ(cq_query(&s.cq).state, QHCA_CQ_OK);
}

static void resize_refused(void)
{
    struct setup s = start(4);
    struct qhca_cqe cqe;
    struct gbuf b;
    unsigned i;

    for (i = 0; i < 9; i++) {
        push(&s, i);
    }
    CHECK_EQ(resize(&s, 3, &b), QHCA_ERR_STATE);
    CHECK_EQ(resize(&s, VHCA_CQ_LOG_MAX + 1, &b), QHCA_ERR_LIMIT);
    guest_spoil(s.g, s.g->brk, 1 << 20);
    CHECK_EQ(resize(&s, 5, &b), QHCA_ERR_DMA);
    guest_spoil(s.g, (s.g->brk + 4095) & ~4095ull, 4096);   /* not its table */
    CHECK_EQ(resize(&s, 5, &b), QHCA_ERR_DMA);
    s.g->bad_from = s.g->bad_to = 0;
    for (i = 0; i < 40; i++) {              /* the old ring still works */
        rc_expect(&s.cq, i, QHCA_WC_SUCCESS);
        push(&s, 9 + i);
    }
    while (cq_poll(&s.cq, &cqe)) {
        ;
    }
    s.dev->state = QHCA_CQ_ERROR;
    CHECK_EQ(resize(&s, 5, &b), QHCA_ERR_STATE);
    CHECK_EQ(s.g->e->table_blocks, 0);
}

/* ---- creation ---- */

static void creation(void)
{
    struct setup s = start(4);
    struct qhca_cmd good = { .opcode = htole16(QHCA_CMD_CREATE_CQ) }, cmd;
    unsigned before;

    good.create_cq.buf = s.cq.buf.desc;
    good.create_cq.uar = htole32(1);
    good.create_cq.eqn = htole32(s.eq.eqn);
    good.create_cq.log_size = 4;
    before = qhca_engine_num_objects(s.g->e);
#define TRY(change, status) \
    do { \
        cmd = good; \
        change; \
        CHECK_EQ(guest_cmd(s.g, &cmd, NULL), status); \
    } while (0)
    TRY(cmd.create_cq.log_size = VHCA_CQ_LOG_MAX + 1, QHCA_ERR_LIMIT);
    TRY(cmd.create_cq.log_size = 255, QHCA_ERR_LIMIT);
    TRY(cmd.create_cq.uar = htole32(NUM_UARS), QHCA_ERR_PARAM);
    TRY(cmd.create_cq.eqn = 0, QHCA_ERR_OBJ);
    TRY(cmd.create_cq.eqn = htole32(65), QHCA_ERR_OBJ);
    TRY(cmd.create_cq.eqn = htole32(7), QHCA_ERR_OBJ);
    TRY(cmd.create_cq.eqn = htole32(s.async.eqn), QHCA_ERR_PARAM);
    TRY(cmd.create_cq.log_size = 7, QHCA_ERR_PARAM);    /* no room for dbrec */
    TRY(cmd.create_cq.flags = 0x02, QHCA_ERR_PARAM);
    CHECK_EQ(qhca_engine_num_objects(s.g->e), before);
    CHECK_EQ(guest_cmd_obj(s.g, QHCA_CMD_DESTROY_EQ, s.eq.eqn), QHCA_ERR_BUSY);
    s.dev->users++;
    CHECK_EQ(guest_cmd_obj(s.g, QHCA_CMD_DESTROY_CQ, s.cq.cqn), QHCA_ERR_BUSY);
    s.dev->users--;
    CHECK_EQ(guest_cmd_obj(s.g, QHCA_CMD_DESTROY_CQ, s.cq.cqn), QHCA_OK);
    CHECK_EQ(guest_cmd_obj(s.g, QHCA_CMD_DESTROY_CQ, s.cq.cqn), QHCA_ERR_OBJ);
    CHECK_EQ(guest_cmd_obj(s.g, QHCA_CMD_DESTROY_EQ, s.eq.eqn), QHCA_OK);
#undef TRY
}

/* A CQ that is completely full, in both phases, is resized. */
static void largest(void)
{
    const uint32_t n = 1u << VHCA_CQ_LOG_MAX, first = 1000;
    struct setup s = start(4);
    struct qhca_cqe cqe;
    struct gbuf b;
    uint64_t calls;
    uint32_t i;

    s.cq = cq_create(s.g, &s.eq, 2, VHCA_CQ_LOG_MAX);
    s.dev = vhca_cq_get(s.g->e, s.cq.cqn);
    for (i = 0; i < n + first; i++) {
        push_to(&s, s.dev, i, 0, false);
        if (i < first) {
            REQUIRE(cq_poll(&s.cq, &cqe) && le64toh(cqe.wr_id) == i);
        }
    }
    CHECK_EQ(s.dev->state, QHCA_CQ_OK);
    calls = s.g->reads + s.g->writes;
    CHECK_EQ(resize(&s, VHCA_CQ_LOG_MAX, &b), QHCA_OK);
    calls = s.g->reads + s.g->writes - calls;
    CHECK(calls < n / 16);      /* moves whole pages, tables included */
    s.cq.buf = b;
    s.cq.ci = 0;
    for (i = first; i < n + first; i++) {
        REQUIRE(cq_poll(&s.cq, &cqe) && le64toh(cqe.wr_id) == i);
    }
    rc_expect_none(&s.cq);
    push_to(&s, s.dev, 7, 0, false);
    CHECK(cq_poll(&s.cq, &cqe));
}

static const struct test tests[] = {
    { "ring and phase", fill_and_poll },
    { "doorbell record is read rarely", few_reads },
    { "C-028 overrun", overrun },
    { "nonsensical consumer index", hostile_ci },
    { "consumer index that decreases", ci_backwards },
    { "H-001 ring that cannot be written", unwritable },
    { "C-026 resize keeps CQEs and their order", resize_ok },
    { "C-026 a refused resize changes nothing", resize_refused },
    { "creation, destruction, refusals", creation },
    { "C-002 C-026 the largest CQ holds what it says, resized too", largest },
};

TEST_MAIN(tests)
