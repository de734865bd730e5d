/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much one event may make the device do: neither a single call of the
 * engine nor all calls of a slice, apart from the bottom half's, exceed their
 * budget. The rest is done later, and none of it is lost.
 */
#include "harness/budget.h"
#include "harness/faults.h"
#include "harness/keys.h"
#include "harness/scripted.h"

#define MANY    1000u

static struct rc_qp many[MANY];

/* Two CQs that fail take many QPs to ERR. */
static void test_failed_cqs(void)
{
    struct rc_opts o = RC_OPTS;
    uint64_t before;

    o.sq_log = o.rq_log = 1;
    start_pair(&o);
    for (unsigned i = 0; i < MANY; i++) {
        many[i] = rc_create_shared(&qp, &o);
        rc_bring_up(&many[i], QHCA_QPS_INIT);
    }
    vhca_cq_get(g->e, qp.scq.cqn)->ci -= 1u << o.cq_log;    /* full */
    vhca_cq_get(g->e, qp.rcq.cqn)->ci -= 1u << o.cq_log;
    memset(guest_ptr(g, gbuf_addr(&qp.scq.buf, 64u << o.cq_log), 4), 0x7f, 4);
    memset(guest_ptr(g, gbuf_addr(&qp.rcq.buf, 64u << o.cq_log), 4), 0x7f, 4);
    push_cqe(&qp.scq, 0);
    push_cqe(&qp.rcq, 0);
    before = dma_calls();
    ring(g, 1, QHCA_DB_CQ_ARM, qp.scq.cqn, 1);
    check_call(before);
    settle();
    for (unsigned i = 0; i < MANY; i++) {
        CHECK_EQ(rc_state(&many[i]), QHCA_QPS_ERR);
    }
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
    CHECK_EQ(rc_state(&peer), QHCA_QPS_RTS);
}

/* An EQ that was full gets room for thousands of events in one call. */
static void test_events_in_line(void)
{
    static struct gcq cq[3 * MANY];
    struct vhca_eq *dev;
    struct geq eq;
    uint64_t before;

    start_node();
    eq = eq_create(g, 2, 12, 0);
    dev = vhca_eq_get(g->e, eq.eqn);
    dev->ci -= 1u << 12;                /* seems full, holds no event */
    for (unsigned i = 0; i < ARRAY_SIZE(cq); i++) {
        cq[i] = cq_create(g, &eq, 1, 1);
        cq_arm(&cq[i], false);
        push_cqe(&cq[i], i);
    }
    eq_expect_none(&eq);
    before = dma_calls();
    eq_arm(&eq);
    check_call(before);
    CHECK(g->host.todo);
    settle();
    for (unsigned i = 0; i < ARRAY_SIZE(cq); i++) {
        eq_expect(&eq, QHCA_EVENT_COMP, cq[i].cqn);
    }
    eq_expect_none(&eq);
}

/* ---- timers ---- */

static struct vhca_timer timers[5 * MANY];
static unsigned expired;

static void expire(struct qhca_engine *e, struct vhca_timer *t)
{
    uint64_t word;

    (void)t;
    expired++;
    CHECK(vhca_dma_read(e, node.mr.addr, &word, sizeof(word)));
}

/* Thousands of timers that have the same deadline. */
static void test_timers(void)
{
    start_node();
    g->strangers = ARRAY_SIZE(timers);
    expired = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(timers); i++) {
        timers[i] = (struct vhca_timer) { .fn = expire };
        vhca_timer_set(g->e, &timers[i], *g->clock + 1000);
    }
    *g->clock += 1000;
    qhca_engine_tick(g->e, *g->clock);
    CHECK(expired > 0 && expired <= CALL);
    CHECK(g->host.todo);
    settle();
    CHECK_EQ(expired, ARRAY_SIZE(timers));
    guest_advance(g, 1000);
    CHECK_EQ(g->host.deadline, UINT64_MAX);
}

/* ---- the slice ---- */

#define NUM     14000

/* Doorbells share a slice until time has passed or the main loop has run. */
static void test_slice(void)
{
    struct rc_opts o = RC_OPTS;
    struct rc_wr wr;
    uint64_t before;

    o.sq_log = 14;
    o.cq_log = 15;
    start_pair(&o);
    *g->clock += 20000000;
    before = dma_calls();
    for (unsigned i = 0; i < NUM; i++) {
        wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 16384);
        rc_aim(&wr, &node, 65536);
        rc_post(&qp, &wr);
    }
    CHECK(dma_calls() - before <= SLICE + STEP);
    CHECK(dma_calls() - before > SLICE / 8);
    CHECK(g->host.todo);
    before = dma_calls();
    *g->clock += 20000000;
    rc_post(&qp, &wr);
    CHECK(dma_calls() - before > CALL / 8);
    check_call(before);
    for (unsigned i = 0; i <= SLICE / CALL; i++) {
        rc_post(&qp, &wr);
    }
    before = dma_calls();
    rc_post(&qp, &wr);
    CHECK_EQ(dma_calls(), before);
    settle();
    CHECK_EQ(rc_query(&qp).sq_ci, htole32(NUM + 3 + SLICE / CALL));
}

/* One call takes a frame, but the READ in it is answered bit by bit. */
static void test_frame(void)
{
    struct rc_opts o = RC_OPTS;
    uint8_t frame[MAX_FRAME];
    struct roce_packet p;
    uint64_t before;

    o.mtu = 1;
    start_alone(&o);
    *g->clock += 2000000;
    p = peer_request(&qp, RC_READ_REQUEST, 0x222222, 0, NODE_MEM);
    before = dma_calls();
    guest_rx(g, frame, roce_finish(&p, frame));
    check_call(before);
    CHECK(g->num_sent <= CALL);
    CHECK(g->host.todo);
    settle();
    CHECK_EQ(peer_drain(&qp), NODE_MEM / 256);
}

/* The maximum. Changing a GID table entry takes it from every page. */
#define PAGES   32768u

/* A running device with PAGES doorbell pages; its command ring is at @sq. */
static struct qhca_engine *many_pages(struct qhca_cmd **sq)
{
    struct qhca_engine_config cfg = g->e->cfg;
    /* Not guest_ops: harness/bounds.c must ignore this engine. */
    static struct qhca_engine_ops ops;
    uint64_t rings = guest_alloc(g, 2 * 65536, 4096);
    struct qhca_engine *e;

    ops = *g->e->ops;
    cfg.num_uars = PAGES;
    e = qhca_engine_new(&cfg, &ops, g);
    REQUIRE(e);
    qhca_engine_reg_write(e, 1, QHCA_REG_CMD_SQ_LO, (uint32_t)rings);
    qhca_engine_reg_write(e, 1, QHCA_REG_CMD_CQ_LO, (uint32_t)rings + 65536);
    qhca_engine_reg_write(e, 1, QHCA_REG_CMD_LOG_SIZE, 8);
    qhca_engine_reg_write(e, 1, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
    *sq = guest_ptr(g, rings, 256 * sizeof(**sq));
    return e;
}

static void test_many_pages(void)
{
    struct qhca_engine *e, *own;
    struct qhca_cmd *sq;

    start_node();
    e = many_pages(&sq);
    for (unsigned i = 0; i < 256; i++) {
        sq[i] = (struct qhca_cmd) {
            .opcode = htole16(QHCA_CMD_SET_GID),
            .set_gid = {
                .smac = { 2, 3, 4, 5, 6, 7 }, .index = htole16(3),
                .vlan = htole16(QHCA_NO_VLAN), .port = 1, .valid = 1,
                .gid = { [10] = 255, 255, 10, 1, 1, (uint8_t)i },
            },
        };
    }
    own = g->e;
    g->e = e;                           /* the callbacks look at its state */
    g->host.todo = 0;
    qhca_engine_doorbell(e, 1000000, 0, QHCA_DB_CMD, 256ull << 32);
    tap_note("%u units for %u of 256 SET_GID, %u pages", e->spent,
             e->cmdq->ci, PAGES);
    CHECK(e->spent <= CALL + STEP + 3);
    CHECK(e->cmdq->ci > 0 &&
          e->cmdq->ci <= 2 + CALL / (PAGES / VHCA_UNIT_OBJECTS));
    while (g->host.todo) {
        g->host.todo = 0;
        qhca_engine_run(e, 1000000);
    }
    CHECK_EQ(e->cmdq->ci, 256);
    g->e = own;
    qhca_engine_free(e);
}

/* A key for 1 GiB in blocks that follow each other, but for the last. */
static uint32_t long_region(void)
{
    enum { BLOCKS = 1 << 18 };
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_REG_MR) };
    uint64_t leaf = guest_alloc(g, BLOCKS * 8ull, 4096);
    uint64_t root = guest_alloc(g, BLOCKS / 512 * 8, 4096);
    uint64_t *blocks = guest_ptr(g, leaf, BLOCKS * 8ull);
    uint64_t *tables = guest_ptr(g, root, BLOCKS / 512 * 8);

    for (uint64_t i = 0; i < BLOCKS; i++) {
        blocks[i] = htole64(RAM_BASE + (i << 12));
        tables[i / 512] = htole64(leaf + (i / 512 << 12));
    }
    blocks[BLOCKS - 1] = htole64(RAM_BASE);
    cmd.reg_mr.buf.addr = htole64(root);
    cmd.reg_mr.buf.num_blocks = htole32(BLOCKS);
    cmd.reg_mr.buf.block_shift = 12;
    cmd.reg_mr.buf.depth = 2;
    cmd.reg_mr.length = htole64((uint64_t)BLOCKS << 12);
    cmd.reg_mr.pdn = htole32(node.pdn);
    cmd.reg_mr.access = htole16(QHCA_ACCESS_REMOTE_READ);
    return guest_create(g, &cmd);
}

/* A rule reads a few pieces of a READ early, and pays for them. */
static void test_early_pieces(void)
{
    struct roce_packet p;
    uint8_t frame[200];

    start_responder(&RC_OPTS, QHCA_QPS_RTS);
    p = request(RC_READ_REQUEST, RC_OPTS.rq_psn, 0, 1u << 30);
    p.rkey = long_region();
    p.va = 0;
    faults_set("port order=adversarial");
    guest_settle(g);
    guest_rx(g, frame, roce_finish(&p, frame));
    CHECK(g->cost.units < 50);
}

/* ---- data held back ---- */

/* As many pieces as possible of what the peer of @qp writes are held back. */
static void hold_pieces(void)
{
    const struct vhca_late *o = &g->e->memory->late;
    uint8_t frame[MAX_FRAME];
    struct roce_packet p;

    faults_set("port order=adversarial within=1s");
    for (uint32_t n = 0; o->num < VHCA_RULE_DATA; n++) {
        REQUIRE(n < 400);
        p = request(RC_WRITE_ONLY, RC_OPTS.rq_psn + n, n * 1024, 1024);
        p.payload = data;
        p.payload_len = 1024;
        guest_rx(g, frame, roce_finish(&p, frame));
    }
}

/* An access to many pieces looks at all data held back for each of them. */
static void test_held_pieces(void)
{
    enum { PIECES = VHCA_MAX_FAST_REG / 2 };
    struct rc_opts o = RC_OPTS;
    struct rc_qp sender;
    struct rc_wr wr;
    unsigned before;

    o.qp_flags = KERNEL_QP;
    start_responder(&o, QHCA_QPS_RTS);
    sender = rc_create(&node, &o);
    rc_set_peer(&sender, &far, 0x78);
    rc_bring_up(&sender, QHCA_QPS_RTS);
    wr = rc_wr(&sender, QHCA_WR_SEND, 0, PIECES);
    wr.sge[0].addr = 0x100000;
    wr.sge[0].lkey = fast_bytes(&sender, 0x100000, PIECES);
    rc_post(&sender, &wr);
    before = g->cost.units;
    CHECK(before > PIECES);
    guest_settle(g);
    hold_pieces();
    guest_settle(g);
    rc_post(&sender, &wr);
    CHECK_EQ(g->e->memory->late.num, VHCA_RULE_DATA);
    CHECK(g->cost.units >=
          before + PIECES * VHCA_RULE_DATA / VHCA_UNIT_OBJECTS);
}

static const struct test tests[] = {
    { "C-029 H-002 CQs of many QPs fail", test_failed_cqs },
    { "thousands of events wait for an EQ", test_events_in_line },
    { "timers that are due at once", test_timers },
    { "doorbells of a slice", test_slice },
    { "the answer to one frame", test_frame },
    { "changes of the GID table with many pages", test_many_pages },
    { "early pieces of a READ of 1 GiB", test_early_pieces },
    { "pieces that may be held back", test_held_pieces },
};

TEST_MAIN(tests)
