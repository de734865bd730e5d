/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: messages that use half of all PSNs: 2^31 bytes in packets
 * of 256. 2^23 packets would take too long, so the test skips most responses
 * and moves the requester's PSNs as they would.
 */
#include "harness/debug.h"
#include "harness/fixture.h"
#include "harness/sniff.h"

#define PSN     0xfffff0u       /* wraps (D-003) */
#define MTU     256u
#define LEN     0x80000000u
#define PACKETS (LEN / MTU)
#define PIECE   65536u          /* packets that one READ request asks for */
#define MIB     (1u << 20)

static const uint8_t data[1024] = { 0x77 };

static void start(void)
{
    struct rc_opts o = RC_OPTS;

    o.mtu = 1;
    o.sq_psn = PSN;
    o.rd_atomic = 1;
    o.qp_flags = KERNEL_QP;     /* may name addresses without memory */
    start_alone(&o);
}

/*
 * Posts the whole message. Only packets that the test needs are in the node's
 * memory: the last one, the last of a READ's first piece, a WRITE's first.
 */
static void post_long(uint8_t opcode)
{
    static const uint32_t len[4] = {
        16 * MIB, 896 * MIB, 896 * MIB, 240 * MIB,
    };
    struct rc_wr wr = rc_wr(&qp, opcode, 0, 0);

    wr.num_sge = 4;
    for (unsigned i = 0; i < 4; i++) {
        wr.sge[i] = (struct qhca_seg_le) {
            node.mr.addr + MTU * (1 + i) - len[i], len[i], VHCA_RESERVED_LKEY,
        };
    }
    if (opcode == QHCA_WR_RDMA_WRITE) {
        wr.sge[0].addr = node.mr.addr;
    }
    wr.raddr = 0x100000000;
    rc_do(&qp, &wr);
}

static void post_short(uint8_t opcode)
{
    struct rc_wr wr = rc_wr(&qp, opcode, 0, 8);

    rc_do(&qp, &wr);
}

/* Completes all packets of the message before number @n. */
static void answered(uint32_t n)
{
    vhca_qp_get(g->e, qp.qpn)->req.una_psn = psn_add(PSN, n);
}

/* Pretends that all packets before number @n are sent and acknowledged. */
static void jump(uint32_t n)
{
    struct vhca_requester *r = &vhca_qp_get(g->e, qp.qpn)->req;

    r->una_psn = r->snd_psn = r->max_psn = psn_add(PSN, n);
    sniff_moved(g->sniffer, qp.qpn);
}

static void expect_request(uint32_t piece)
{
    uint32_t n = piece * PIECE;
    struct roce_packet p = peer_expect(&qp, RC_READ_REQUEST, PSN + n);

    CHECK_EQ(p.va, 0x100000000 + (uint64_t)n * MTU);
    CHECK_EQ(p.dma_len, PIECE * MTU);
    peer_expect_none(&qp);
}

static void answer(uint32_t n)
{
    peer_send(&qp, RC_READ_RESP_LAST, PSN + n, data, MTU);
}

/* D-067: for the responder, only one request at a time is outstanding. */
static void test_read(void)
{
    start();
    post_long(QHCA_WR_RDMA_READ);
    expect_request(0);
    answered(PIECE - 1);
    post_short(QHCA_WR_RDMA_READ);
    peer_expect_none(&qp);
    answer(PIECE - 1);
    CHECK_EQ(*(uint8_t *)guest_ptr(g, node.mr.addr, 1), 0x77);
    expect_request(1);

    jump(PACKETS - PIECE);
    post_short(QHCA_WR_RDMA_READ);
    expect_request(PACKETS / PIECE - 1);
    CHECK_EQ(rc_drain(&qp), QHCA_OK);                           /* */
    CHECK_EQ(rc_query(&qp).sq_draining, 1);
    no_event();
    answered(PACKETS - 1);
    answer(PACKETS - 1);
    CHECK_EQ(*(uint8_t *)guest_ptr(g, node.mr.addr + 3 * MTU, 1), 0x77);
    CHECK_EQ(le32toh(rc_expect(&qp.scq, 0x1000, 0).byte_len), LEN);
    eq_expect(&node.async, QHCA_EVENT_SQ_DRAINED, qp.qpn);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    CHECK_EQ(peer_expect(&qp, RC_READ_REQUEST, PSN + PACKETS).dma_len, 8);
    peer_expect_none(&qp);
}

/* All packets are sent and none is acknowledged: SQD must wait for them. */
static void test_write(void)
{
    start();
    post_long(QHCA_WR_RDMA_WRITE);
    CHECK_EQ(peer_drain(&qp), VHCA_WINDOW);
    jump(PACKETS - 1);
    rc_ring(&qp);
    guest_settle(g);
    peer_expect(&qp, RC_WRITE_LAST, PSN + PACKETS - 1);
    CHECK_EQ(rc_drain(&qp), QHCA_OK);
    CHECK_EQ(rc_query(&qp).sq_draining, 1);
    no_event();
    peer_ack(&qp, PSN + PACKETS - 1);
    rc_expect(&qp.scq, 0x1000, 0);
    eq_expect(&node.async, QHCA_EVENT_SQ_DRAINED, qp.qpn);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    post_short(QHCA_WR_SEND);
    peer_expect(&qp, RC_SEND_ONLY, PSN + PACKETS);
}

static uint8_t service(void)
{
    return qp.o.type == QHCA_QPT_UC ? SVC_UC : 0;
}

/*
 * Posts a receive WR of 4 GiB in four segments, and pretends that all but @left
 * bytes of 2^31 have arrived. The second segment ends in the node's memory.
 */
static void start_receive(uint8_t type, unsigned left)
{
    struct qhca_seg_le sge[4];
    struct rc_opts o = opts_of(type);

    o.qp_flags = KERNEL_QP;
    start_alone(&o);
    for (unsigned i = 0; i < 4; i++) {
        sge[i] = (struct qhca_seg_le) {
            node.mr.addr, LEN / 2, VHCA_RESERVED_LKEY,
        };
    }
    sge[1].addr = node.mr.addr + 8192 - LEN / 2;
    rc_recv_raw(&qp, 1, 4, sge);
    peer_send(&qp, service() | RC_SEND_FIRST, qp.o.rq_psn, data, sizeof(data));
    peer_drain(&qp);
    vhca_qp_get(g->e, qp.qpn)->rsp.offset = LEN - left;
}

/* Injects the last 1024 bytes. */
static void inject_last(void)
{
    peer_send(&qp, service() | RC_SEND_LAST, qp.o.rq_psn + 1, data,
              sizeof(data));
}

static uint8_t byte_at(uint64_t off)
{
    return *(uint8_t *)guest_ptr(g, node.mr.addr + off, 1);
}

/* B-026: a message is at most 2^31 bytes, however large the receive WR. */
static void test_send(void)
{
    start_receive(QHCA_QPT_RC, 1024);
    inject_last();
    peer_expect(&qp, RC_ACKNOWLEDGE, qp.o.rq_psn + 1);
    CHECK_EQ(le32toh(rc_expect(&qp.rcq, 1, 0).byte_len), LEN);
    CHECK_EQ(byte_at(8192 - 1024), 0x77);

    start_receive(QHCA_QPT_RC, 1023);
    inject_last();
    CHECK_EQ(peer_expect(&qp, RC_ACKNOWLEDGE, qp.o.rq_psn + 1).syndrome,
             AETH_NAK_INV_REQ);
    rc_expect(&qp.rcq, 1, QHCA_WC_LOC_LEN_ERR);
    CHECK_EQ(byte_at(8192 - 1023), 0);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);

    start_receive(QHCA_QPT_UC, 1023);
    inject_last();
    rc_expect_none(&qp.rcq);
    CHECK_EQ(byte_at(8192 - 1023), 0);
    CHECK_EQ(counter(g, QHCA_CNT_RX_REFUSED), 1);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_RTS);
}

static const struct test tests[] = {
    { "D-001 D-003 D-067 A-084 A-085 a READ of 2^31 bytes", test_read },
    { "A-084 A-085 a WRITE of 2^31 bytes", test_write },
    { "B-026 D-064 D-066 D-072 a SEND of 2^31 bytes, and one more",
      test_send },
};

int main(int argc, char **argv)
{
    harness_verify(VERIFY_NEVER);      /* the PSNs are moved by hand */
    return tap_main(argc, argv, tests, ARRAY_SIZE(tests), harness_cleanup);
}
