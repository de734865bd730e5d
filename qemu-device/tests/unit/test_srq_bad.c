/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: shared receive queues of guests that make mistakes, and
 * hosts without memory.
 */
#include "harness/debug.h"
#include "harness/fixture.h"
#include "harness/oom.h"
#include "tables.h"

static void start(unsigned cq_log)
{
    struct rc_opts o = RC_OPTS;

    o.cq_log = cq_log;
    start_shared(3, 2, 2, &o);
}

static struct qhca_cmd good_create(void)
{
    struct qhca_cmd cmd = {
        .opcode = htole16(QHCA_CMD_CREATE_SRQ),
        .create_srq = {
            .buf = guest_buf(g, 4096, 12, 0).desc, .pdn = htole32(node.pdn),
            .uar = htole32(1), .max_sge = htole32(3), .log_size = 6,
            .log_stride = 6,
        },
    };

    return cmd;
}

static void create(void)
{
    struct qhca_cmd cmd;
    unsigned objects;

    start(4);
    objects = qhca_engine_num_objects(g->e);
#define TRY(change, status) \
    do { \
        cmd = good_create(); \
        change; \
        CHECK_EQ(guest_cmd(g, &cmd, NULL), status); \
        CHECK_EQ(qhca_engine_num_objects(g->e), objects); \
    } while (0)
    TRY(cmd.create_srq.pdn = htole32(node.pdn ^ 0x800000), QHCA_ERR_OBJ);
    TRY(cmd.create_srq.uar = htole32(NUM_UARS), QHCA_ERR_PARAM);
    TRY(cmd.create_srq.flags = 2, QHCA_ERR_PARAM);
    TRY(cmd.create_srq.max_sge = htole32(4), QHCA_ERR_PARAM);
    TRY(cmd.create_srq.max_sge = htole32(33), QHCA_ERR_LIMIT);
    TRY(cmd.create_srq.log_size = 7, QHCA_ERR_PARAM);
    TRY(cmd.create_srq.log_size = 15, QHCA_ERR_LIMIT);
    TRY(cmd.create_srq.log_stride = 4, QHCA_ERR_PARAM);
    TRY(cmd.create_srq.log_stride = 11, QHCA_ERR_PARAM);
    TRY(cmd.create_srq.log_stride = 64, QHCA_ERR_PARAM);
    TRY(cmd.create_srq.buf.num_blocks = 0, QHCA_ERR_PARAM);
#undef TRY
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_SRQ, 0), QHCA_ERR_OBJ);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_MODIFY_SRQ, 0), QHCA_ERR_OBJ);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_RESIZE_SRQ, 0), QHCA_ERR_OBJ);
    srq.srqn ^= 0x800000;
    CHECK_EQ(srq_query(&srq, &(struct qhca_srqc) { 0 }), QHCA_ERR_OBJ);
}

static void qp_types(void)
{
    struct gbuf mem;
    struct qhca_create_qp c = { .sq_log_stride = 7, .rq_log_stride = 6 };

    start(4);
    mem = guest_buf(g, 4096, 12, 0);
    c.sq = mem.desc;
    c.pdn = htole32(node.pdn);
    c.send_cqn = c.recv_cqn = htole32(tx[0].scq.cqn);
    c.srqn = htole32(srq.srqn);
    c.type = QHCA_QPT_UC;
    CHECK_EQ(rc_create_raw(g, &c, NULL), QHCA_ERR_PARAM);
    c.type = QHCA_QPT_RC;
    c.srqn ^= htole32(0x800000);
    CHECK_EQ(rc_create_raw(g, &c, NULL), QHCA_ERR_OBJ);
    c.srqn ^= htole32(0x800000);
    c.rq = mem.desc;
    CHECK_EQ(rc_create_raw(g, &c, NULL), QHCA_ERR_PARAM);
    memset(&c.rq, 0, sizeof(c.rq));
    CHECK_EQ(rc_create_raw(g, &c, NULL), QHCA_OK);
}

/* A bad WR is an error of the QP that uses it, not of the SRQ. */
static void too_many_sges(void)
{
    const struct qhca_seg_le sge[3] = { { 0, 0, 0 } };
    struct qhca_srqc c;

    start(4);
    srq_put(&srq, 5, 3, sge);
    srq_ring(&srq);
    srq_post(&srq, 6, 0, 100);
    rc_send(&tx[0], 100);
    rc_expect(&rx[0].rcq, 5, QHCA_WC_LOC_QP_OP_ERR);
    rc_expect(&tx[0].scq, 0x1000, QHCA_WC_REM_OP_ERR);
    eq_expect(&node.async, QHCA_EVENT_LAST_WQE_REACHED, rx[0].qpn);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_WQE), 1);
    rc_send(&tx[1], 100);
    rc_expect(&rx[1].rcq, 6, QHCA_WC_SUCCESS);
    CHECK_EQ(srq_query(&srq, &c), QHCA_OK);
}

/* An SRQ keeps its PD alive. */
static void keeps_pd(void)
{
    struct qhca_cmd cmd;
    uint32_t pdn, srqn;

    start(4);
    pdn = pd_create(g);
    cmd = good_create();
    cmd.create_srq.pdn = htole32(pdn);
    srqn = guest_create(g, &cmd);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_PD, pdn), QHCA_ERR_BUSY);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_SRQ, srqn), QHCA_OK);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_PD, pdn), QHCA_OK);
}

/* F-016: only the kernel's SRQs may use the reserved key. */
static void reserved_key(void)
{
    for (unsigned kernel = 0; kernel < 2; kernel++) {
        struct rc_opts o = RC_OPTS;
        struct qhca_seg_le sge;
        struct qhca_cmd cmd;

        start(4);
        cmd = good_create();
        cmd.create_srq.flags = kernel ? QHCA_SRQ_RESERVED_LKEY : 0;
        srq = (struct gsrq) {
            .n = &node, .uar = 1, .log = 6, .stride = 6, .sges = 3,
        };
        srq.ring = guest_buf(g, 4096, 12, 0);
        cmd.create_srq.buf = srq.ring.desc;
        srq.srqn = guest_create(g, &cmd);
        tx[0] = rc_create(&node, &o);
        o.srqn = srq.srqn;
        rx[0] = rc_create(&node, &o);
        rc_connect(&tx[0], &rx[0]);
        sge = (struct qhca_seg_le) {
            guest_alloc(g, 100, 64), 100, VHCA_RESERVED_LKEY
        };
        srq_put(&srq, 9, 1, &sge);
        srq_ring(&srq);
        guest_fill(g, node.mr.addr, 100, 9);
        rc_send(&tx[0], 100);
        rc_expect(&rx[0].rcq, 9, kernel ? QHCA_WC_SUCCESS :
                                          QHCA_WC_LOC_PROT_ERR);
        CHECK_EQ(guest_is_filled(g, sge.addr, 100, 9), kernel);
    }
}

/* A message is too long for its WR; other QPs are not affected. */
static void too_long(void)
{
    start(4);
    srq_post(&srq, 5, 0, 99);
    srq_post(&srq, 6, 0, 100);
    rc_send(&tx[0], 100);
    rc_expect(&rx[0].rcq, 5, I_014_RS);
    rc_expect(&tx[0].scq, 0x1000, I_014_RQ);
    rc_send(&tx[1], 100);
    rc_expect(&rx[1].rcq, 6, QHCA_WC_SUCCESS);
}

static void unreadable(void)
{
    struct qhca_srqc c;
    uint64_t bad;

    start(4);
    srq_post(&srq, 5, 0, 100);
    srq_post(&srq, 6, 0, 100);
    guest_spoil(g, gbuf_addr(&srq.ring, 0), 64);
    rc_send(&tx[0], 100);
    g->bad_from = g->bad_to = 0;
    eq_expect(&node.async, QHCA_EVENT_SRQ_ERR, srq.srqn);
    eq_expect(&node.async, QHCA_EVENT_QP_FATAL, rx[0].qpn);
    eq_expect(&node.async, QHCA_EVENT_LAST_WQE_REACHED, rx[0].qpn);
    rc_expect_none(&rx[0].rcq);
    rc_expect(&tx[0].scq, 0x1000, QHCA_WC_REM_OP_ERR);
    CHECK_EQ(rc_state(&rx[0]), QHCA_QPS_ERR);

    CHECK_EQ(rc_state(&rx[1]), QHCA_QPS_RTS);   /* until it needs a WR */
    rc_send(&tx[1], 100);
    eq_expect(&node.async, QHCA_EVENT_QP_FATAL, rx[1].qpn);
    eq_expect(&node.async, QHCA_EVENT_LAST_WQE_REACHED, rx[1].qpn);
    no_event();                                 /* SRQ_ERR once */

    CHECK_EQ(srq_query(&srq, &c), QHCA_ERR_STATE);
    CHECK_EQ(srq_limit(&srq, 1), QHCA_ERR_STATE);
    CHECK_EQ(srq_resize(&srq, 4, 0, 0), QHCA_ERR_STATE);
    bad = counter(g, QHCA_CNT_BAD_DOORBELL);
    srq_post(&srq, 7, 0, 100);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), bad + 1);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(rc_destroy(&rx[i]), QHCA_OK);
    }
    CHECK_EQ(srq_destroy(&srq), QHCA_OK);
}

/* A ring that cannot be read or written leaves the old one in use. */
static void resize_fails(void)
{
    uint64_t next;

    start(4);
    srq_post(&srq, 5, 0, 100);
    guest_spoil(g, gbuf_addr(&srq.ring, 0), 8);
    CHECK_EQ(srq_resize(&srq, 4, 0, 0), QHCA_ERR_DMA);
    next = (g->brk + 4095) & ~4095ull;
    guest_spoil(g, next, 64);
    CHECK_EQ(srq_resize(&srq, 4, 0, 0), QHCA_ERR_DMA);
    g->bad_from = g->bad_to = 0;
    rc_send(&tx[0], 100);
    rc_expect(&rx[0].rcq, 5, QHCA_WC_SUCCESS);
}

/* C-028: the WR of a lost CQE is not lost. */
static void lost_completion(void)
{
    struct qhca_srqc c;

    start(0);
    srq_fill(&srq, 4, 100);
    rc_send(&tx[0], 100);
    rc_send(&tx[0], 100);       /* no room for the second CQE */
    CHECK_EQ(rc_state(&rx[0]), QHCA_QPS_ERR);
    CHECK_EQ(srq_query(&srq, &c), QHCA_OK);
    CHECK_EQ(le32toh(c.ci), 1);
    CHECK_EQ(le32toh(c.held), 0);
    rc_send(&tx[1], 100);
    rc_expect(&rx[1].rcq, 1, QHCA_WC_SUCCESS);
}

/* C-028: a bad WR whose CQE is lost is still bad for the next QP. */
static void lost_bad(void)
{
    const struct qhca_seg_le sge[3] = { { 0, 0, 0 } };

    start(0);
    srq_post(&srq, 4, 0, 100);
    srq_put(&srq, 5, 3, sge);
    srq_ring(&srq);
    rc_send(&tx[0], 100);
    rc_send(&tx[0], 100);       /* no room for the second CQE */
    CHECK_EQ(rc_state(&rx[0]), QHCA_QPS_ERR);
    rc_send(&tx[1], 100);
    rc_expect(&rx[1].rcq, 5, QHCA_WC_LOC_QP_OP_ERR);
}

static void no_memory(void)
{
    struct qhca_cmd cmd;
    unsigned i, objects;
    int status = -1;

    start(4);
    objects = qhca_engine_num_objects(g->e);
    for (i = 1; i < 10 && status != QHCA_OK; i++) {
        cmd = good_create();
        oom_after(i);
        status = guest_cmd(g, &cmd, NULL);
        CHECK_EQ(status, oom_happened() ? QHCA_ERR_NO_RESOURCE : QHCA_OK);
        oom_after(0);
        if (status != QHCA_OK) {
            CHECK_EQ(qhca_engine_num_objects(g->e), objects);
        }
    }
    CHECK(i > 2);
}

/* A QP in the middle of a message, which holds a WR. */
static struct rc_qp hold(void)
{
    struct rc_qp q = srq_scripted();

    srq_half_message(&q);
    return q;
}

/* A WR is given back to a ring that cannot be written, or to a failed SRQ. */
static void unwritable(void)
{
    struct rc_qp q[2];

    start(4);
    srq_fill(&srq, 3, 2048);
    q[0] = hold();
    q[1] = hold();
    guest_spoil(g, gbuf_addr(&srq.ring, 0), 4096);
    CHECK_EQ(rc_destroy(&q[1]), QHCA_OK);
    eq_expect(&node.async, QHCA_EVENT_SRQ_ERR, srq.srqn);
    CHECK_EQ(rc_destroy(&q[0]), QHCA_OK);
    g->bad_from = g->bad_to = 0;
    no_event();                                 /* one SRQ_ERR */
    CHECK_EQ(srq_query(&srq, &(struct qhca_srqc) { 0 }), QHCA_ERR_STATE);
    rc_send(&tx[0], 100);
    rc_expect_none(&rx[0].rcq);
    eq_expect(&node.async, QHCA_EVENT_QP_FATAL, rx[0].qpn);
}

/* A reset of the device writes no memory. */
static void reset_with_taken(void)
{
    uint64_t writes;

    start(4);
    srq_post(&srq, 5, 0, 2048);
    (void)hold();
    writes = g->writes;
    qhca_engine_reset(g->e, *g->clock);
    CHECK_EQ(g->writes, writes);
    CHECK_EQ(qhca_engine_num_objects(g->e), 0);
}

static void limits(void)
{
    struct qhca_device_attr attr;
    uint32_t first = 0, srqn, log;
    struct qhca_cmd cmd;

    start(4);
    attr = device_attr(g);
    cmd = good_create();
    for (unsigned i = 1; i < le32toh(attr.max_srq); i++) {
        REQUIRE(guest_cmd(g, &cmd, &srqn) == QHCA_OK);
        first = first ? first : srqn;
    }
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_NO_RESOURCE);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_SRQ, first), QHCA_OK);
    log = le32toh(attr.max_srq_wr_log);
    srq = srq_create(&node, node.pdn, log, le32toh(attr.max_srq_sge));
    for (unsigned i = 0; i < 1u << log; i++) {
        srq_put(&srq, i, 0, NULL);
    }
    srq_ring(&srq);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 0);
}

static const struct test tests[] = {
    { "G-001 A-012 bad parameters", create },
    { "A-014 A-015 QPs that cannot use an SRQ", qp_types },
    { "too many SGEs", too_many_sges },
    { "G-017 an SRQ keeps its PD", keeps_pd },
    { "F-016 G-003 the reserved key", reserved_key },
    { "G-009 D-066 message too long for its WR", too_long },
    { "G-010 H-010 unreadable ring", unreadable },
    { "G-007 resize that fails", resize_fails },
    { "C-028 G-008 lost completion", lost_completion },
    { "C-028 G-008 lost completion of a bad WR", lost_bad },
    { "no memory", no_memory },
    { "G-008 G-010 H-010 a WR that cannot be given back", unwritable },
    { "G-008 reset while a QP holds a WR", reset_with_taken },
    { "J-001 J-035 limits that are reached", limits },
};

TEST_MAIN(tests)
