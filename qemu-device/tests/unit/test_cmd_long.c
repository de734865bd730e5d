/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands that take more than one turn: large tables, large queues.
 */
#include "harness/budget.h"
#include "harness/windows.h"

/* Puts @n commands in the ring and rings one doorbell for all of them. */
static void ring_commands(const struct qhca_cmd *cmd, unsigned n)
{
    uint64_t before = dma_calls();

    guest_cmd_start(g, cmd, n);
    check_call(before);
}

/* The completion of the last command. */
static const struct qhca_cmd_comp *last(void)
{
    return guest_cmd_comp(g, g->cmd_pi - 1);
}

#define REGION  16384u

/* A ring full of large regions. */
static void test_many_commands(void)
{
    struct qhca_cmd cmd[256];
    unsigned calls;

    start_node();
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    guest_enable(g, 8);
    node.pdn = pd_create(g);
    cmd[0] = huge_region(REGION);
    for (unsigned i = 1; i < 256; i++) {
        cmd[i] = cmd[0];
    }
    cmd[255].opcode = htole16(QHCA_CMD_ALLOC_PD);
    ring_commands(cmd, 256);
    CHECK(g->host.todo);
    CHECK(g->irqs[0] > 0);              /* some commands are done */
    calls = settle();
    CHECK(calls >= 255 * REGION / 512 / CALL);
    for (unsigned i = 1; i <= 256; i++) {
        CHECK_EQ(guest_cmd_comp(g, i)->status, QHCA_OK);
        CHECK(guest_cmd_comp(g, i)->obj != 0);
    }
    CHECK_EQ(g->e->table_blocks, 255 * REGION);
}

/* The largest region possible; a QP has its turns in between. */
static void test_huge_region(void)
{
    /* Two units for each page of the tables, including those at depth 2. */
    const unsigned pages = VHCA_MAX_TABLE_BLOCKS / 512 * 513 / 512;
    const unsigned expected = pages * 2 / CALL;
    unsigned calls;
    struct qhca_cmd cmd;
    unsigned irqs;
    struct rc_wr wr;

    start_pair(&RC_OPTS);
    cmd = huge_region(VHCA_MAX_TABLE_BLOCKS - g->e->table_blocks);
    irqs = g->irqs[0];
    ring_commands(&cmd, 1);
    CHECK(g->host.todo);
    CHECK_EQ(g->irqs[0], irqs);
    wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 100000);
    rc_aim(&wr, &node, 200000);
    rc_post(&qp, &wr);
    for (unsigned i = 0; i < 2; i++) {
        qhca_engine_run(g->e, *g->clock);
    }
    rc_expect(&qp.scq, wr.wr_id, QHCA_WC_SUCCESS);
    CHECK_EQ(g->irqs[0], irqs);
    calls = 3 + settle();
    CHECK(calls >= expected && calls <= expected + 2);
    CHECK_EQ(g->irqs[0], irqs + 1);
    CHECK_EQ(last()->status, QHCA_OK);
    CHECK_EQ(g->e->table_blocks, VHCA_MAX_TABLE_BLOCKS);
    g->cmd_ci = g->cmd_pi;
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, le32toh(last()->obj)),
             QHCA_OK);
    CHECK(g->e->table_blocks < 1000);
    CHECK(g->e->spent >= VHCA_MAX_TABLE_BLOCKS / VHCA_UNIT_BLOCKS);
}

/* Stops when half of the region's tables have been read. */
static void start_huge_region(void)
{
    struct qhca_cmd cmd;

    start_node();
    cmd = huge_region(1u << 22);
    ring_commands(&cmd, 1);
    for (unsigned i = 0; i < 2; i++) {
        g->host.todo = 0;
        qhca_engine_run(g->e, *g->clock);
    }
    CHECK(g->host.todo);
    CHECK_EQ(g->e->table_blocks, 1u << 22);
}

static void test_cut_short(void)
{
    uint64_t in_the_middle;
    unsigned objects;

    start_huge_region();                /* the tables become unreadable */
    objects = qhca_engine_num_objects(g->e);
    g->bad_from = g->brk - 4 * 4096;
    g->bad_to = g->brk;
    settle();
    CHECK_EQ(last()->status, QHCA_ERR_DMA);
    CHECK_EQ(g->e->table_blocks, 0);
    CHECK_EQ(qhca_engine_num_objects(g->e), objects);
    CHECK_EQ(dev_state(g), QHCA_STATE_RUNNING);

    start_huge_region();                /* reset, by register */
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    in_the_middle = g->reads;
    settle();
    CHECK_EQ(g->reads, in_the_middle);
    CHECK_EQ(g->e->table_blocks, 0);
    guest_enable(g, 5);
    node.pdn = pd_create(g);
    CHECK_EQ(qhca_engine_num_objects(g->e), 1);

    start_huge_region();                /* the device stops */
    ring(g, 0, QHCA_DB_CMD, 0, 0x80000000);
    CHECK_EQ(dev_state(g), QHCA_STATE_FATAL);
    in_the_middle = g->reads;
    settle();
    CHECK_EQ(g->reads, in_the_middle);
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    CHECK_EQ(g->e->table_blocks, 0);

    start_huge_region();                /* the machine ends: no leak */
}

/* ---- moving what is in a queue ---- */

static struct qhca_cmd resize_cq(const struct gcq *cq, unsigned log,
                                 struct gbuf *buf)
{
    struct qhca_cmd cmd = {
        .opcode = htole16(QHCA_CMD_RESIZE_CQ),
        .create_cq.cqn = htole32(cq->cqn),
        .create_cq.log_size = (uint8_t)log,
    };

    *buf = guest_buf(g, (64ull << log) + 64, 12, 2);
    cmd.create_cq.buf = buf->desc;
    return cmd;
}

#define CQ_LOG  17
#define CQ_FULL (1u << CQ_LOG)

static struct gcq full_cq(unsigned n)
{
    struct gcq cq;

    start_node();
    cq = cq_create(g, &node.comp, 1, CQ_LOG);
    for (unsigned i = 0; i < n; i++) {
        push_cqe(&cq, i);
    }
    return cq;
}

/* C-026: CQEs written while others are being moved follow them. */
static void test_resize_cq(void)
{
    struct gcq cq = full_cq(CQ_FULL - 1000);
    struct qhca_cmd cmd;
    struct qhca_cqe cqe;
    struct gbuf buf;
    unsigned i, n = CQ_FULL - 1000, end, units, pages;

    cmd = resize_cq(&cq, CQ_LOG + 1, &buf);
    ring_commands(&cmd, 1);
    for (units = g->e->spent; g->host.todo; units += g->e->spent) {
        g->host.todo = 0;
        for (end = n + 100; n < end; n++) {
            push_cqe(&cq, n);
        }
        qhca_engine_run(g->e, *g->clock);
    }
    CHECK(n >= CQ_FULL - 900);
    pages = n * sizeof(cqe) / 4096;     /* 4 units for each */
    CHECK(units >= pages * 4 && units <= pages * 4 + 100);
    CHECK_EQ(last()->status, QHCA_OK);
    cq.buf = buf;
    cq.log = CQ_LOG + 1;
    push_cqe(&cq, n++);
    for (i = 0; i < n; i++) {
        REQUIRE(cq_poll(&cq, &cqe) && le64toh(cqe.wr_id) == i);
    }
    CHECK(!cq_poll(&cq, &cqe));

    /* The new ring has no room for CQEs written during the copy. */
    cq = full_cq(CQ_FULL / 2);
    cmd = resize_cq(&cq, CQ_LOG - 1, &buf);
    ring_commands(&cmd, 1);
    CHECK(g->host.todo);
    push_cqe(&cq, CQ_FULL / 2);
    settle();
    CHECK_EQ(last()->status, QHCA_ERR_STATE);
    for (i = 0; i <= CQ_FULL / 2; i++) {
        REQUIRE(cq_poll(&cq, &cqe) && le64toh(cqe.wr_id) == i);
    }

    /* The CQ overruns during the copy. */
    cq = full_cq(CQ_FULL);
    cmd = resize_cq(&cq, CQ_LOG + 1, &buf);
    ring_commands(&cmd, 1);
    CHECK(g->host.todo);
    push_cqe(&cq, 0);
    settle();
    CHECK_EQ(last()->status, QHCA_ERR_STATE);
    eq_expect(&node.async, QHCA_EVENT_CQ_ERR, cq.cqn);
}

#define SRQ_FULL    (1u << VHCA_SRQ_LOG_MAX)

/* @srq, full but for one WR of the largest stride; @qp sends to @peer. */
static void full_srq(unsigned cq_log)
{
    struct rc_opts o = RC_OPTS;

    start_node();
    srq = srq_create(&node, node.pdn, VHCA_SRQ_LOG_MAX, QHCA_MAX_RECV_SGE);
    o.srqn = srq.srqn;
    o.cq_log = cq_log;
    peer = rc_create(&node, &o);
    qp = rc_create(&node, &RC_OPTS);
    rc_connect(&qp, &peer);
    for (unsigned i = 0; i < SRQ_FULL - 1; i++) {
        struct qhca_seg_le seg = { node.mr.addr + i, 1, node.mr.key };

        srq_put(&srq, i, 1, &seg);
    }
    srq_ring(&srq);
}

static struct qhca_cmd resize_srq(struct gbuf *buf)
{
    *buf = guest_buf(g, (uint64_t)SRQ_FULL << srq.stride, 12, 2);
    return (struct qhca_cmd) {
        .opcode = htole16(QHCA_CMD_RESIZE_SRQ),
        .create_srq.buf = buf->desc,
        .create_srq.srqn = htole32(srq.srqn),
        .create_srq.log_size = VHCA_SRQ_LOG_MAX,
    };
}

/* G-007: WQEs posted or used while others are being moved. */
static void test_resize_srq(void)
{
    const unsigned n = SRQ_FULL;
    struct qhca_cmd cmd;
    struct gbuf buf;
    struct rc_wr wr;

    full_srq(8);
    cmd = resize_srq(&buf);
    ring_commands(&cmd, 1);
    CHECK(g->host.todo);
    srq_post(&srq, n - 1, 0, 1);        /* one WQE more, */
    for (unsigned i = 0; i < 3; i++) {  /* and three are used */
        wr = rc_wr(&qp, QHCA_WR_SEND, 500000 + i, 1);
        *(uint8_t *)guest_ptr(g, wr.sge[0].addr, 1) = (uint8_t)(0x70 + i);
        rc_post(&qp, &wr);
    }
    settle();
    CHECK_EQ(last()->status, QHCA_OK);
    srq.ring = buf;
    g->cmd_ci = g->cmd_pi;
    for (unsigned i = 0; i < 3; i++) {
        rc_expect(&peer.rcq, i, QHCA_WC_SUCCESS);
        CHECK_EQ(*(uint8_t *)guest_ptr(g, node.mr.addr + i, 1), 0x70 + i);
    }
    for (unsigned i = 3; i < 200; i++) {
        wr = rc_wr(&qp, QHCA_WR_SEND, 500000, 1);
        rc_post(&qp, &wr);
        settle();
        rc_expect(&peer.rcq, i, QHCA_WC_SUCCESS);
        rc_expect(&qp.scq, wr.wr_id - 3, QHCA_WC_SUCCESS);
    }
}

/* Sends a message from @from to @to, which must use WR @id. */
static void send_one(struct rc_qp *from, struct rc_qp *to, uint64_t id)
{
    struct rc_wr wr = rc_wr(from, QHCA_WR_SEND, 500000, 1);

    rc_post(from, &wr);
    settle();
    rc_expect(&to->rcq, id, QHCA_WC_SUCCESS);
}

/* G-008: a WR given back during RESIZE_SRQ is put in the old ring, and kept. */
static void test_resize_srq_given_back(void)
{
    struct rc_qp from, to;
    struct rc_opts o = RC_OPTS;
    struct qhca_cmd cmd;
    struct gbuf buf;
    struct rc_wr wr;

    full_srq(0);
    o.srqn = srq.srqn;
    to = rc_create(&node, &o);
    from = rc_create(&node, &RC_OPTS);
    rc_connect(&from, &to);
    wr = rc_wr(&qp, QHCA_WR_SEND, 500000, 1);
    rc_post(&qp, &wr);
    settle();
    cmd = resize_srq(&buf);
    ring_commands(&cmd, 1);
    CHECK(g->host.todo);
    rc_post(&qp, &wr);                  /* its CQ is full */
    settle();
    CHECK_EQ(last()->status, QHCA_ERR_STATE);
    g->cmd_ci = g->cmd_pi;
    CHECK_EQ(rc_state(&peer), QHCA_QPS_ERR);
    send_one(&from, &to, 1);
    send_one(&from, &to, 2);
    ring_commands(&cmd, 1);
    settle();
    CHECK_EQ(last()->status, QHCA_OK);
    send_one(&from, &to, 3);
}

/* ---- looking at many objects ---- */

#define WINDOWS     (100 * VHCA_UNIT_OBJECTS)

/* F-054: DESTROY_QP unbinds many windows on a device with little CPU time. */
static void test_windows(void)
{
    const unsigned at_once = CALL / 100;
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_DESTROY_QP) };
    unsigned irqs, objects;

    start();
    for (unsigned i = 0; i < WINDOWS; i++) {
        bind_window(&qp, mw_create(g, node.pdn, QHCA_MW_2B), 0, 100, RD,
                    QHCA_WC_SUCCESS);
    }
    limit_cpu(g, 1);
    irqs = g->irqs[0];
    objects = qhca_engine_num_objects(g->e);
    cmd.obj.obj = htole32(qp.qpn);
    ring_commands(&cmd, 1);
    CHECK(g->e->spent <= at_once + 2);
    CHECK_EQ(g->irqs[0], irqs);
    guest_advance(g, (WINDOWS / VHCA_UNIT_OBJECTS / at_once - 1) * 1000000ull);
    CHECK_EQ(g->irqs[0], irqs);
    guest_advance(g, 100000000);
    CHECK_EQ(g->irqs[0], irqs + 1);
    CHECK_EQ(last()->status, QHCA_OK);
    CHECK_EQ(qhca_engine_num_objects(g->e), objects - 1);
}

static const struct test tests[] = {
    { "a ring full of large commands", test_many_commands },
    { "the largest region possible", test_huge_region },
    { "a command that cannot end", test_cut_short },
    { "C-026 a CQ is resized bit by bit", test_resize_cq },
    { "G-007 an SRQ is resized bit by bit", test_resize_srq },
    { "G-007 G-008 an SRQ is not resized if a WR is given back",
      test_resize_srq_given_back },
    { "F-054 a QP with many windows is destroyed bit by bit", test_windows },
};

TEST_MAIN(tests)
