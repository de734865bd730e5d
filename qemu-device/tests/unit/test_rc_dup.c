/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: duplicate requests at the RC responder, conformance D-050
 * to D-055, and the queue of responses.
 */
#include "harness/debug.h"
#include "harness/scripted.h"

#define PSN     0x222222u       /* rq_psn of RC_OPTS */
#define MTU     1024

static void start(uint8_t dest_rd_atomic)
{
    struct rc_opts o = RC_OPTS;

    o.dest_rd_atomic = dest_rd_atomic;
    start_alone(&o);
}

static struct vhca_qp *engine_qp(void)
{
    return vhca_qp_get(g->e, qp.qpn);
}

static void inject_add(uint32_t psn, uint64_t add)
{
    struct roce_packet p = request(RC_FETCH_ADD, psn, 0, 0);

    p.swap_add = add;
    peer_inject(&qp, &p, NULL, 0);
}

static void test_send_write(void)
{
    start(4);
    rc_recv(&qp, 1, 64, 100);
    rc_recv(&qp, 2, 64, 100);
    memset(data, 1, sizeof(data));
    inject(RC_SEND_ONLY, PSN, 8);
    expect_ack(PSN, 1);
    inject(RC_WRITE_ONLY, PSN + 1, 8);
    expect_ack(PSN + 1, 2);
    rc_expect(&qp.rcq, 1, 0);
    memset(data, 2, sizeof(data));
    inject(RC_SEND_ONLY, PSN, 8);
    expect_ack(PSN + 1, 2);             /* of the last request, same MSN */
    inject(RC_WRITE_ONLY, PSN + 1, 8);
    expect_ack(PSN + 1, 2);
    rc_expect_none(&qp.rcq);
    CHECK(*(uint8_t *)guest_ptr(g, node.mr.addr, 1) == 1);
    CHECK_EQ(counter(g, QHCA_CNT_RX_DUPLICATE), 2);
}

/* A message counts once, whatever its packets are, and modulo 2^24. */
static void test_msn(void)
{
    start(4);
    rc_recv(&qp, 1, 64, 3000);
    engine_qp()->rsp.msn = PSN_MASK - 1;
    inject(RC_SEND_FIRST, PSN, 1024);
    expect_ack(PSN, PSN_MASK - 1);
    inject(RC_SEND_LAST, PSN + 1, 8);
    expect_ack(PSN + 1, PSN_MASK);
    inject_read(PSN + 2, 0, 2048);
    CHECK_EQ(peer_expect(&qp, RC_READ_RESP_FIRST, PSN + 2).msn, 0);
    CHECK_EQ(peer_expect(&qp, RC_READ_RESP_LAST, PSN + 3).msn, 0);
    inject_add(PSN + 4, 1);
    CHECK_EQ(peer_expect(&qp, RC_ATOMIC_ACKNOWLEDGE, PSN + 4).msn, 1);
    inject(RC_WRITE_ONLY, PSN + 5, 8);
    expect_ack(PSN + 5, 2);
}

/* D-050: no ACK covers a READ whose response may have been lost. */
static void test_before_read(void)
{
    start(4);
    rc_recv(&qp, 1, 64, 100);
    rc_recv(&qp, 2, 64, 100);
    inject(RC_SEND_ONLY, PSN, 8);
    inject_read(PSN + 1, 0, 8);
    inject(RC_SEND_ONLY, PSN + 2, 8);
    inject_add(PSN + 3, 1);
    CHECK_EQ(peer_drain(&qp), 4);
    inject(RC_SEND_ONLY, PSN, 8);
    expect_ack(PSN, 4);
    inject(RC_SEND_ONLY, PSN + 2, 8);
    expect_ack(PSN + 2, 4);
}

static void test_read(void)
{
    struct roce_packet p;
    uint8_t *mem;

    start(4);
    mem = guest_ptr(g, node.mr.addr, 4000);
    inject_read(PSN, 0, 4000);
    CHECK_EQ(peer_drain(&qp), 4);
    memset(mem, 7, 4000);
    inject_read(PSN, 0, 4000);          /* read again (D-051) */
    p = peer_expect(&qp, RC_READ_RESP_FIRST, PSN);
    CHECK(p.payload_len == MTU && p.payload[0] == 7);
    CHECK_EQ(p.msn, 1);
    CHECK_EQ(peer_drain(&qp), 3);
    inject_read(PSN + 2, 2 * MTU, 4000 - 2 * MTU);      /* the rest */
    peer_expect(&qp, RC_READ_RESP_FIRST, PSN + 2);
    peer_expect(&qp, RC_READ_RESP_LAST, PSN + 3);
    inject_read(PSN + 3, 3 * MTU, 4000 - 3 * MTU);
    peer_expect(&qp, RC_READ_RESP_ONLY, PSN + 3);

    inject_read(PSN, 0, 4001);          /* longer than the original */
    inject_read(PSN, 8, 100);           /* not at a packet boundary */
    inject_read(PSN + 1, 0, 100);
    inject_read(PSN + 3, 3 * MTU, MTU);
    inject_read(PSN - 1, 0, 100);       /* there was no such request */
    p = request(RC_READ_REQUEST, PSN, 0, 4000);
    p.rkey ^= 1;
    peer_inject(&qp, &p, NULL, 0);
    inject_add(PSN, 1);                 /* the original was a READ */
    peer_expect_none(&qp);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_RTS);

    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, node.mr.key), QHCA_OK);
    inject_read(PSN, 0, 4000);          /* the key is checked again */
    CHECK_EQ(peer_expect(&qp, RC_ACKNOWLEDGE, PSN).syndrome, AETH_NAK_ACCESS);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_RTS);      /* may be an old packet */
}

static void test_atomic(void)
{
    uint64_t *word;

    start(2);
    word = guest_ptr(g, node.mr.addr, 8);
    inject_add(PSN, 5);
    inject_add(PSN + 1, 5);
    CHECK_EQ(peer_drain(&qp), 2);
    inject_add(PSN + 1, 5);
    CHECK(peer_expect(&qp, RC_ATOMIC_ACKNOWLEDGE, PSN + 1).atomic_orig == 5);
    inject_add(PSN, 5);
    CHECK(peer_expect(&qp, RC_ATOMIC_ACKNOWLEDGE, PSN).atomic_orig == 0);
    CHECK(le64toh(*word) == 10);                                /* D-052 */
    inject_add(PSN + 2, 5);             /* replaces the oldest result */
    CHECK_EQ(peer_drain(&qp), 1);
    inject_add(PSN, 5);
    inject_read(PSN + 1, 0, 8);
    peer_expect_none(&qp);
    inject_add(PSN + 1, 5);                                     /* D-055 */
    CHECK(peer_expect(&qp, RC_ATOMIC_ACKNOWLEDGE, PSN + 1).atomic_orig == 5);
    CHECK(le64toh(*word) == 15);
}

/* D-054: duplicates arrive in the middle of a message. */
static void test_in_message(void)
{
    start(4);
    rc_recv(&qp, 1, 0, 4000);
    inject_read(PSN, 0, 8);
    inject_add(PSN + 1, 1);
    memset(data, 3, sizeof(data));
    inject(RC_SEND_FIRST, PSN + 2, MTU);
    CHECK_EQ(peer_drain(&qp), 3);
    inject_read(PSN, 0, 8);
    inject_add(PSN + 1, 1);
    inject(RC_SEND_FIRST, PSN + 2, MTU);
    peer_expect(&qp, RC_READ_RESP_ONLY, PSN);
    peer_expect(&qp, RC_ATOMIC_ACKNOWLEDGE, PSN + 1);
    expect_ack(PSN + 2, 2);
    inject(RC_SEND_LAST, PSN + 3, 8);
    expect_ack(PSN + 3, 3);
    CHECK_EQ(le32toh(rc_expect(&qp.rcq, 1, 0).byte_len), MTU + 8);
    CHECK(((uint8_t *)guest_ptr(g, node.mr.addr, 4000))[MTU + 7] == 3);
}

/*
 * Two READs can cover the same PSN if they are of 2^31 bytes and a lap apart
 * (D-003): the later one counts. The test makes the older one that long.
 */
static void test_lap(void)
{
    struct vhca_responder *s;

    start(2);
    inject_read(PSN, 0, 8);
    s = &engine_qp()->rsp;
    s->res[s->res_last].num_psn = 0x800000;
    inject_read(PSN + 1, 64, 8);
    inject_read(PSN + 1, 64, 8);
    peer_expect(&qp, RC_READ_RESP_ONLY, PSN);
    peer_expect(&qp, RC_READ_RESP_ONLY, PSN + 1);
    peer_expect(&qp, RC_READ_RESP_ONLY, PSN + 1);
}

/*
 * D-013: a peer retransmits without end while no response can be sent: the
 * queue is bounded, the fatal NAK still fits, and the order is kept.
 */
static void test_crowd(void)
{
    struct roce_packet p;
    uint32_t last = 0, psn = PSN + 16;

    start(16);
    for (unsigned i = 0; i < 16; i++) {
        inject_read(PSN + i, 0, 8);
    }
    CHECK_EQ(peer_drain(&qp), 16);
    g->net_blocked = true;
    for (unsigned i = 0; i < 200; i++) {
        inject(RC_SEND_ONLY, psn, 8);           /* no receive WR: RNR NAK */
        inject_read(PSN + i % 16, 0, 8);
        inject(RC_SEND_ONLY, psn + 1, 8);       /* a gap */
    }
    CHECK(engine_qp()->rsp.q_tail - engine_qp()->rsp.q_head < VHCA_RESPONSES);
    inject(RC_SEND_MIDDLE, psn, MTU);           /* a fatal error */
    CHECK_EQ(rc_state(&qp), QHCA_QPS_RTS);
    inject_read(PSN, 0, 8);
    guest_unblock(g);
    while (peer_next(&qp, &p)) {
        last = p.syndrome;
    }
    CHECK_EQ(last, AETH_NAK_INV_REQ);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
    eq_expect(&node.async, QHCA_EVENT_QP_REQ_ERR, qp.qpn);
}

/* The ACK of a duplicate does not replace a NAK that waits. */
static void test_nak_stays(void)
{
    struct roce_packet p;

    start(4);
    rc_recv(&qp, 1, 0, 100);
    inject(RC_SEND_ONLY, PSN, 8);
    CHECK_EQ(peer_drain(&qp), 1);
    g->net_blocked = true;
    for (unsigned i = 0; i < 128; i++) {
        inject(RC_SEND_ONLY, PSN, 8);           /* fills the queue */
    }
    inject(RC_SEND_ONLY, PSN + 2, 8);
    inject(RC_SEND_ONLY, PSN, 8);
    guest_unblock(g);
    while (g->num_sent > 1) {
        CHECK(peer_next(&qp, &p) && p.psn == PSN);
    }
    CHECK_EQ(peer_expect(&qp, RC_ACKNOWLEDGE, PSN + 1).syndrome, AETH_NAK_SEQ);
}

/*
 * A READ that finds the queue full is asked for again. Each packet of another
 * one, and of no two that are neighbours, has been asked for once more.
 */
static void test_no_room(void)
{
    struct roce_packet p;

    start(4);
    rc_recv(&qp, 1, 0, 100);
    inject(RC_SEND_ONLY, PSN, 8);
    inject_read(PSN + 1, 0, 2 * VHCA_RESPONSES * MTU);
    CHECK_EQ(peer_drain(&qp), 1 + 2 * VHCA_RESPONSES);
    g->net_blocked = true;
    for (unsigned i = 0; i < 128; i++) {
        inject(RC_SEND_ONLY, PSN, 8);           /* fills the FIFO */
    }
    for (unsigned i = 0; i < 2 * VHCA_RESPONSES; i += 2) {
        inject_read(PSN + 1 + i, i * MTU, MTU);
    }
    CHECK(!vhca_response_room(engine_qp()));
    inject_read(PSN + 1 + 2 * VHCA_RESPONSES, 0, 8);
    guest_unblock(g);
    while (peer_next(&qp, &p) && g->num_sent) {
        CHECK(p.opcode != RC_ACKNOWLEDGE || p.syndrome == AETH_ACK);
    }
    CHECK_EQ(p.syndrome, AETH_NAK_SEQ);
    CHECK_EQ(p.psn, PSN + 1 + 2 * VHCA_RESPONSES);
    inject_read(p.psn, 0, 8);
    peer_expect(&qp, RC_READ_RESP_ONLY, p.psn);
}

/* The queue's indices wrap at 32 bits in the life of a QP. */
static void test_index_wrap(void)
{
    start(3);
    g->net_blocked = true;
    for (unsigned i = 0; i < 128; i++) {
        inject(RC_SEND_ONLY, PSN - 1, 8);
    }
    CHECK(engine_qp()->rsp.q_head == engine_qp()->rsp.q_tail);
    engine_qp()->rsp.q_head = engine_qp()->rsp.q_tail = UINT32_MAX - 2;
    for (unsigned i = 0; i < 3; i++) {
        inject_add(PSN + i, i + 1);
        inject(RC_WRITE_ONLY, PSN - 1, 8);
    }
    guest_unblock(g);
    while (g->num_sent > 4) {
        struct roce_packet p;

        peer_next(&qp, &p);
    }
    expect_ack(PSN - 1, 3);
    for (unsigned i = 0; i < 3; i++) {
        CHECK(peer_expect(&qp, RC_ATOMIC_ACKNOWLEDGE, PSN + i).atomic_orig ==
              i * (i + 1) / 2);
    }
}

static void be(uint64_t off, int value)
{
    memset(guest_ptr(g, node.mr.addr + off, 64), value, 64);
}

/*
 * Late packets and duplicates write no memory, and retries do not read a
 * buffer whose WR is complete.
 */
static void test_buffers(void)
{
    struct roce_packet resp;
    struct rc_wr wr;
    uint32_t psn;

    start(4);
    memset(data, 7, sizeof(data));
    rc_recv(&qp, 1, 0, 64);             /* a receive buffer */
    inject(RC_SEND_ONLY, PSN, 64);
    rc_expect(&qp.rcq, 1, 0);
    CHECK(memory_is(0, 64, 7));
    be(0, 1);
    inject(RC_SEND_ONLY, PSN, 64);
    CHECK(memory_is(0, 64, 1));
    peer_drain(&qp);

    wr = rc_wr(&qp, QHCA_WR_RDMA_READ, 64, 64);         /* a READ's buffer */
    rc_do(&qp, &wr);
    CHECK(peer_next(&qp, &resp));
    psn = resp.psn;
    resp = peer_packet(&qp, RC_READ_RESP_ONLY, psn);
    CHECK(memory_is(64, 64, 0));
    peer_inject(&qp, &resp, data, 64);
    rc_expect(&qp.scq, wr.wr_id, 0);
    CHECK(memory_is(64, 64, 7));
    be(64, 2);
    peer_inject(&qp, &resp, data, 64);
    CHECK(memory_is(64, 64, 2));

    wr = rc_wr(&qp, QHCA_WR_SEND, 128, 64);             /* a send buffer */
    be(128, 3);
    rc_do(&qp, &wr);
    CHECK(peer_next(&qp, &resp));
    CHECK_EQ(resp.psn, psn + 1);
    peer_ack(&qp, psn + 1);
    rc_expect(&qp.scq, wr.wr_id, 0);
    be(128, 4);
    peer_nak(&qp, AETH_NAK_SEQ, psn + 1);
    peer_nak(&qp, AETH_RNR_NAK | 1, psn + 1);
    guest_advance(g, 1000000000);
    peer_expect_none(&qp);
    CHECK(memory_is(128, 64, 4));
    rc_expect_none(&qp.scq);
    rc_expect_none(&qp.rcq);
}

/* The responses that are kept are the latest, also if their number changes. */
static void keep(uint8_t dest_rd_atomic)
{
    struct qhca_qp_attr a = { .max_dest_rd_atomic = dest_rd_atomic };

    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_SQD), QHCA_OK);
    CHECK_EQ(rc_modify(&qp, &a, QHCA_QP_MAX_DEST_RD_ATOMIC), QHCA_OK);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
}

static bool answers_again(uint32_t psn)
{
    inject_read(psn, 0, 8);
    return peer_drain(&qp) == 1;
}

static void test_limit_changes(void)
{
    start(4);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK(answers_again(PSN + i));
    }
    keep(2);
    CHECK(!answers_again(PSN + 1));
    CHECK(answers_again(PSN + 2));
    CHECK(answers_again(PSN + 3));
    keep(3);
    CHECK(answers_again(PSN + 4));
    CHECK(answers_again(PSN + 2));
    CHECK(answers_again(PSN + 4));
    keep(1);
    CHECK(answers_again(PSN + 4));
    CHECK(!answers_again(PSN + 3));
}

static const struct test tests[] = {
    { "B-063 after the CQE the buffer belongs to the program", test_buffers },
    { "D-050 D-016 SEND and WRITE are not executed again", test_send_write },
    { "D-016 the MSN counts messages, modulo 2^24", test_msn },
    { "D-050 D-014 what the ACK of a duplicate covers", test_before_read },
    { "D-051 a READ is executed again within its range", test_read },
    { "D-052 D-055 atomics get the saved result", test_atomic },
    { "D-055 the number of responses kept changes", test_limit_changes },
    { "D-054 duplicates in the middle of a message", test_in_message },
    { "D-003 D-051 the later of two READs with the same PSN", test_lap },
    { "D-013 D-026 a flood of duplicates", test_crowd },
    { "D-020 a waiting NAK stays", test_nak_stays },
    { "D-013 no room for the response", test_no_room },
    { "D-013 free-running indices", test_index_wrap },
};

int main(int argc, char **argv)
{
    harness_verify(VERIFY_NEVER);   /* tests change the state of QPs */
    return tap_main(argc, argv, tests, ARRAY_SIZE(tests), harness_cleanup);
}
