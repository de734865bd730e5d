/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the receiving half of unreliable connections,
 * against a scripted peer.
 */
#include "harness/fixture.h"
#include "tables.h"

#define SQ_PSN  0x111111u       /* sq_psn of RC_OPTS */
#define PSN     0x222222u
#define MTU     1024
#define UC(op)  (SVC_UC | RC_##op)

static uint8_t data[8192];

static void start(const struct rc_opts *o, unsigned state)
{
    start_in(o, state);
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(i * 3 + 1);
    }
}

/* Injects a request with payload data[@from...]. */
static void inject(uint8_t opcode, uint32_t psn, size_t from, size_t len,
                   uint32_t dma_len)
{
    struct roce_packet p = peer_request(&qp, opcode, psn, 0, dma_len);

    p.imm = 0x0a0b0c0d;
    peer_inject(&qp, &p, data + from, len);
}

static void inject_send(uint8_t opcode, uint32_t psn, size_t len)
{
    inject(opcode, psn, 0, len, 0);
}

static bool has_data(uint64_t off, size_t len)
{
    return !memcmp(guest_ptr(g, node.mr.addr + off, len), data, len);
}

static void test_receive(void)
{
    struct rc_opts o = opts_of(QHCA_QPT_UC);
    struct qhca_cqe c;

    o.rq_psn = 0xfffffe;                                        /* D-003 */
    start(&o, QHCA_QPS_RTR);
    rc_recv(&qp, 1, 0, 4 * MTU);
    rc_recv(&qp, 2, 0, 4 * MTU);
    inject_send(UC(SEND_FIRST), 0xfffffe, MTU);
    eq_expect(&node.async, QHCA_EVENT_COMM_EST, qp.qpn);        /* H-005 */
    inject(UC(SEND_MIDDLE), 0xffffff, MTU, MTU, 0);
    rc_expect_none(&qp.rcq);
    inject(UC(SEND_LAST_IMM), 0, 2 * MTU, 5, 0);
    c = rc_expect(&qp.rcq, 1, 0);
    CHECK_EQ(le32toh(c.byte_len), 2 * MTU + 5);
    CHECK_EQ(c.imm, 0x0a0b0c0d);
    CHECK_EQ(c.opcode, QHCA_CQE_RECV);
    CHECK(has_data(0, 2 * MTU + 5));
    inject(UC(WRITE_FIRST), 1, 0, MTU, MTU + 9);
    inject(UC(WRITE_LAST), 2, MTU, 9, 0);
    CHECK(has_data(0, MTU + 9));
    rc_expect_none(&qp.rcq);
    inject(UC(WRITE_ONLY_IMM), 3, 0, 0, 0);
    c = rc_expect(&qp.rcq, 2, 0);
    CHECK_EQ(c.opcode, QHCA_CQE_RECV_RDMA_WITH_IMM);
    CHECK_EQ(le32toh(c.byte_len), 0);
    no_event();
    peer_expect_none(&qp);                                      /* D-070 */
    CHECK_EQ(rc_state(&qp), QHCA_QPS_RTR);
}

/* D-070: an incomplete message affects no other message and no receive WR. */
static void test_gaps(void)
{
    struct rc_opts o = opts_of(QHCA_QPT_UC);
    uint32_t old;

    start(&o, QHCA_QPS_RTS);
    for (unsigned i = 1; i <= 5; i++) {
        rc_recv(&qp, i, 0, 4 * MTU);
    }
    inject_send(UC(SEND_FIRST), PSN, MTU);
    inject_send(UC(SEND_LAST), PSN + 2, 8);             /* one is missing */
    inject_send(UC(SEND_LAST), PSN + 3, 8);
    inject_send(UC(SEND_ONLY), PSN + 4, 8);
    CHECK_EQ(le32toh(rc_expect(&qp.rcq, 1, 0).byte_len), 8);
    inject_send(UC(SEND_FIRST), PSN + 900, MTU);     /* after a gap */
    inject_send(UC(SEND_FIRST), PSN + 901, MTU);        /* out of order */
    inject_send(UC(SEND_LAST), PSN + 902, 1);
    CHECK_EQ(le32toh(rc_expect(&qp.rcq, 2, 0).byte_len), MTU + 1);
    inject_send(UC(SEND_FIRST), PSN + 903, MTU);
    inject_send(UC(WRITE_MIDDLE), PSN + 904, MTU);      /* of another kind */
    inject_send(UC(SEND_LAST), PSN + 905, 1);
    inject_send(UC(SEND_FIRST), PSN + 906, MTU);
    inject_send(UC(READ_REQUEST), PSN + 907, 0);        /* no UC opcode */
    inject_send(UC(SEND_LAST), PSN + 908, 1);
    rc_expect_none(&qp.rcq);
    inject(UC(WRITE_ONLY_IMM), PSN + 909, 0, 8, 8);     /* uses the WR */
    rc_expect(&qp.rcq, 3, 0);
    inject_send(UC(SEND_ONLY), PSN + 909, 8);           /* duplicate */
    inject_send(UC(SEND_ONLY), PSN + 900, 8);           /* reordered */
    rc_expect_none(&qp.rcq);
    CHECK_EQ(counter(g, QHCA_CNT_RX_DUPLICATE), 2);
    inject_send(UC(SEND_ONLY), PSN + 910, 8);
    rc_expect(&qp.rcq, 4, 0);
    old = PSN + 911 - 0x10000;
    inject_send(UC(SEND_MIDDLE), old - 1, MTU);         /* no FIRST */
    inject_send(UC(SEND_ONLY), old, 8);                 /* very late */
    rc_expect_none(&qp.rcq);
    inject_send(UC(SEND_ONLY), old - 1, 8);             /* a long loss */
    rc_expect(&qp.rcq, 5, 0);
    inject_send(UC(SEND_ONLY), old, 8);
    rc_expect_none(&qp.rcq);
    rc_recv(&qp, 6, 0, 8);
    inject_send(UC(SEND_ONLY), old + 1, 8);
    rc_expect(&qp.rcq, 6, 0);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_RTS);
    peer_expect_none(&qp);
    no_event();
}

/* I-043, D-072: bad requests are dropped, and the next message is received. */
static void test_refused(void)
{
    struct rc_opts o = opts_of(QHCA_QPT_UC);
    struct roce_packet p;
    uint32_t psn = PSN;

    start(&o, QHCA_QPS_RTS);
    inject(UC(WRITE_ONLY), psn++, 0, 8, 8);             /* needs none */
    CHECK(has_data(0, 8));
    memset(guest_ptr(g, node.mr.addr, 8), 0, 8);
    inject_send(UC(SEND_FIRST), psn++, MTU);            /* no receive WR */
    rc_recv(&qp, 1, NODE_MEM / 2, MTU + 7);
    inject_send(UC(SEND_LAST), psn++, 8);
    CHECK_EQ(counter(g, QHCA_CNT_RX_REFUSED), 1);
    inject_send(UC(SEND_FIRST), psn++, MTU);            /* too long */
    inject_send(UC(SEND_LAST), psn++, 8);
    CHECK_EQ(counter(g, QHCA_CNT_RX_REFUSED), 2);
    CHECK(memory_is(NODE_MEM / 2 + MTU, 64, 0));
    inject_send(UC(SEND_FIRST), psn++, MTU - 4);        /* D-064 */
    inject_send(UC(SEND_ONLY), psn++, MTU + 4);
    inject_send(UC(SEND_FIRST), psn++, MTU);
    inject_send(UC(SEND_LAST), psn++, 0);
    CHECK_EQ(counter(g, QHCA_CNT_RX_REFUSED), 5);
    p = peer_packet(&qp, UC(WRITE_FIRST), psn++);       /* bad R_Key */
    p.va = node.mr.addr;
    p.rkey = node.mr.key ^ 1;
    p.dma_len = 2 * MTU;
    peer_inject(&qp, &p, data, MTU);
    inject(UC(WRITE_LAST), psn++, 0, MTU, 0);
    p = peer_packet(&qp, UC(WRITE_FIRST), psn++);       /* out of range */
    p.va = node.mr.addr + NODE_MEM - 2 * MTU + 1;
    p.rkey = node.mr.key;
    p.dma_len = 2 * MTU;
    peer_inject(&qp, &p, data, MTU);
    inject(UC(WRITE_LAST), psn++, 0, MTU, 0);
    inject(UC(WRITE_ONLY), psn++, 0, 8, 9);             /* D-064 */
    inject(UC(WRITE_FIRST), psn++, 0, MTU - 4, 2 * MTU);
    inject(UC(WRITE_ONLY), psn++, 0, MTU + 4, MTU + 4);
    CHECK_EQ(counter(g, QHCA_CNT_RX_REFUSED), 10);
    CHECK(memory_is(0, 2 * MTU, 0));
    CHECK(memory_is(NODE_MEM - 2 * MTU, 2 * MTU, 0));
    rc_expect_none(&qp.rcq);
    inject_send(UC(SEND_ONLY), psn++, 8);
    rc_expect(&qp.rcq, 1, 0);
    inject(UC(WRITE_ONLY_IMM), psn++, 0, 8, 8);         /* no receive WR */
    CHECK_EQ(counter(g, QHCA_CNT_RX_REFUSED), 11);
    rc_recv(&qp, 2, NODE_MEM / 2, 4 * MTU);
    inject_send(UC(SEND_FIRST), psn++, MTU);
    inject_send(UC(SEND_MIDDLE), psn++, MTU - 4);
    inject_send(UC(SEND_LAST), psn++, 8);       /* of a dropped message */
    CHECK_EQ(counter(g, QHCA_CNT_RX_REFUSED), 12);
    rc_expect_none(&qp.rcq);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_RTS);
    peer_expect_none(&qp);
    no_event();

    o.access = QHCA_ACCESS_REMOTE_READ;
    start(&o, QHCA_QPS_RTR);
    inject(UC(WRITE_ONLY), PSN, 0, 8, 8);
    CHECK_EQ(counter(g, QHCA_CNT_RX_REFUSED), 1);
    CHECK(memory_is(0, 8, 0));
    no_event();                                         /* no COMM_EST */
    peer_expect_none(&qp);
}

/* The receiver's own mistakes lead to ERR. */
static void test_receive_errors(void)
{
    struct qhca_seg_le sge[5] = { { 0 } };
    struct rc_opts o = opts_of(QHCA_QPT_UC);

    start(&o, QHCA_QPS_RTS);
    sge[0] = (struct qhca_seg_le) { node.mr.addr, 100, node.mr.key ^ 1 };
    rc_recv_raw(&qp, 1, 1, sge);
    rc_recv(&qp, 2, 0, 8);
    inject_send(UC(SEND_ONLY), PSN, 8);
    rc_expect(&qp.rcq, 1, I_044_RS);
    rc_expect(&qp.rcq, 2, QHCA_WC_WR_FLUSH_ERR);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
    no_event();
    peer_expect_none(&qp);

    start(&o, QHCA_QPS_RTS);
    rc_recv_raw(&qp, 1, 5, sge);                        /* 4 are allowed */
    inject(UC(WRITE_ONLY_IMM), PSN, 0, 0, 0);
    rc_expect(&qp.rcq, 1, QHCA_WC_LOC_QP_OP_ERR);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
    no_event();
    peer_expect_none(&qp);

    for (unsigned imm = 0; imm < 2; imm++) {            /* memory that fails */
        start(&o, QHCA_QPS_RTS);
        rc_recv(&qp, 1, 0, 8);
        guest_spoil(g, node.mr.addr, 4096);
        inject(imm ? UC(WRITE_ONLY_IMM) : UC(WRITE_ONLY), PSN, 0, 8, 8);
        rc_expect(&qp.rcq, 1, imm ? QHCA_WC_LOC_ACCESS_ERR :
                                    QHCA_WC_WR_FLUSH_ERR);
        if (!imm) {
            eq_expect(&node.async, QHCA_EVENT_QP_FATAL, qp.qpn);
        }
        CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
        no_event();
        peer_expect_none(&qp);
    }
}

/* E-045: other services' packets, and UC's to an RC QP. */
static void test_other_service(void)
{
    struct rc_opts o = opts_of(QHCA_QPT_UC);

    start(&o, QHCA_QPS_RTS);
    rc_recv(&qp, 1, 0, 100);
    inject_send(RC_SEND_ONLY, PSN, 8);
    inject_send(RC_ACKNOWLEDGE, SQ_PSN, 0);
    CHECK_EQ(counter(g, QHCA_CNT_RX_NO_QP), 2);

    start(&RC_OPTS, QHCA_QPS_RTS);
    rc_recv(&qp, 1, 0, 100);
    inject_send(UC(SEND_ONLY), PSN, 8);
    CHECK_EQ(counter(g, QHCA_CNT_RX_NO_QP), 1);
    rc_expect_none(&qp.rcq);
    peer_expect_none(&qp);
}

static const struct test tests[] = {
    { "A-081 A-082 H-005 D-002 D-003 D-070 B-069 messages are received",
      test_receive },
    { "D-070 gaps, wrong opcodes, late packets", test_gaps },
    { "D-072 I-043 D-064 bad requests are dropped", test_refused },
    { "I-044 A-096 receive errors", test_receive_errors },
    { "E-045 packets of another service", test_other_service },
};

TEST_MAIN(tests)
