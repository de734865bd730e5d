/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the RC responder against a scripted peer: requests that it
 * must refuse, conformance I.
 */
#include <stdio.h>

#include "harness/scripted.h"
#include "tables.h"

#define PSN     0x222222u       /* rq_psn of RC_OPTS */
#define MTU     1024

/* WRITE: RETH lengths, keys, ranges, rights (I-004, I-007, I-029). */
static void test_remote_errors(void)
{
    enum { KEY, RANGE, RIGHT, PD, QPFLAG, HUGE_LEN, ALIGN };
    static const uint8_t ops[] = {
        RC_WRITE_ONLY, RC_READ_REQUEST, RC_FETCH_ADD, RC_CMP_SWAP,
    };

    for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
        for (unsigned what = KEY; what <= ALIGN; what++) {
            struct rc_opts o = RC_OPTS;
            bool atomic = i >= 2;
            unsigned nak = what == KEY ? I_004_NAK : I_007_NAK;
            unsigned event = what == KEY ? I_004_EVENT : I_007_EVENT;
            uint32_t pd2;
            struct gmr mr;
            struct roce_packet p;

            if ((what == ALIGN && !atomic) || (what == HUGE_LEN && i != 1)) {
                continue;
            }
            if (what == QPFLAG) {
                o.access = 0;
                nak = I_013_NAK;
                event = I_013_EVENT;
            }
            start_responder(&o, QHCA_QPS_RTS);
            pd2 = what == PD ? pd_create(g) : node.pdn;
            mr = mr_create(g, pd2, 4096, what == RIGHT ?
                           QHCA_ACCESS_LOCAL_WRITE :
                           REMOTE_ALL | QHCA_ACCESS_LOCAL_WRITE);
            memset(guest_ptr(g, mr.addr, 4096), 0x33, 4096);
            p = request(ops[i], PSN, 0, 8);
            p.va = mr.addr + (what == RANGE ? 4089 : 0);
            p.rkey = mr.key ^ (what == KEY);
            if (what == RANGE && atomic) {
                p.va = mr.addr + 4096;
            }
            if (what == HUGE_LEN) {
                p.dma_len = 0x80000001u;
                nak = I_029_NAK;
                event = I_029_EVENT;
            }
            if (what == ALIGN) {
                p.va += 4;
                nak = I_017_NAK;
                event = I_017_EVENT;
            }
            peer_inject(&qp, &p, data, i == 0 ? 8 : 0);
            expect_refusal((uint8_t)nak, PSN, event);
            for (unsigned j = 0; j < 4096; j++) {
                CHECK(*(uint8_t *)guest_ptr(g, mr.addr + j, 1) == 0x33);
            }
        }
    }
}

/*
 * D-060: a packet with two mistakes is refused for the one checked first. No
 * receive WR is posted.
 */
static void test_order(void)
{
    enum { NO_RIGHT = 1, NO_RESOURCE = 2, BAD_KEY = 4 };
    static const struct {
        uint8_t op;
        int8_t ahead;           /* PSN */
        uint8_t faults;
        uint16_t len;
        uint32_t dma_len;
        uint8_t syndrome;
        const char *check;
    } c[] = {
        { RC_WRITE_MIDDLE, 1, 0, MTU, 0, AETH_NAK_SEQ,
          "PSN" },
        { RC_WRITE_ONLY, 1, NO_RIGHT | BAD_KEY, 8, 8, AETH_NAK_SEQ,
          "PSN" },
        { RC_WRITE_ONLY, -1, NO_RIGHT | BAD_KEY, 8, 9, AETH_ACK,
          NULL },
        { RC_WRITE_LAST_IMM, 0, 0, 8, 8, AETH_NAK_INV_REQ,
          "opcode sequence" },
        { RC_WRITE_ONLY_IMM, 0, NO_RIGHT, 8, 8, AETH_NAK_INV_REQ,
          "operation not enabled" },
        { RC_READ_REQUEST, 0, NO_RIGHT | BAD_KEY, 0, 8, AETH_NAK_INV_REQ,
          "operation not enabled" },
        { RC_SEND_ONLY, 0, 0, MTU + 4, 0, AETH_RNR_NAK | 1,
          "no receive WR" },
        { RC_WRITE_ONLY_IMM, 0, 0, 8, 9, AETH_RNR_NAK | 1,
          "no receive WR" },
        { RC_WRITE_ONLY_IMM, 0, BAD_KEY, 8, 8, AETH_RNR_NAK | 1,
          "no receive WR" },
        { RC_READ_REQUEST, 0, NO_RESOURCE | BAD_KEY, 0, 8, AETH_NAK_INV_REQ,
          "responder resources" },
        { RC_FETCH_ADD, 0, NO_RESOURCE | BAD_KEY, 0, 8, AETH_NAK_INV_REQ,
          "responder resources" },
        { RC_WRITE_ONLY, 0, BAD_KEY, 8, 9, AETH_NAK_INV_REQ,
          "length" },
        { RC_READ_REQUEST, 0, BAD_KEY, 4, 8, AETH_NAK_INV_REQ,
          "length" },
        { RC_READ_REQUEST, 0, BAD_KEY, 0, 0x80000001u, AETH_NAK_INV_REQ,
          "length" },
        /* The longest allowed (B-026), but longer than this region. */
        { RC_READ_REQUEST, 0, 0, 0, 0x80000000u, AETH_NAK_ACCESS,
          "R_Key" },
        { RC_WRITE_FIRST, 0, 0, MTU, 0x80000000u, AETH_NAK_ACCESS,
          "R_Key" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
        struct rc_opts o = RC_OPTS;
        struct roce_packet p;

        o.access = c[i].faults & NO_RIGHT ? 0 : REMOTE_ALL;
        o.dest_rd_atomic = c[i].faults & NO_RESOURCE ? 0 : 4;
        start_responder(&o, QHCA_QPS_RTS);
        p = request(c[i].op, PSN + (uint32_t)c[i].ahead, 0, c[i].dma_len);
        p.rkey ^= c[i].faults & BAD_KEY ? 1 : 0;
        peer_inject(&qp, &p, data, c[i].len);
        expect_nak(c[i].syndrome, PSN - (c[i].ahead < 0));
        peer_expect_none(&qp);
        CHECK(memory_is(0, 2 * MTU, 0));
        CHECK(c[i].check ? g->failed_check &&
                            !strcmp(g->failed_check, c[i].check) :
                           !g->failed_check);
    }
}

/* D-065: a packet is written completely or not at all; I-029: RETH length. */
static void test_write_lengths(void)
{
    static const struct {
        uint32_t dma_len;
        uint8_t op[2];
        uint16_t len[2];
    } c[] = {
        { NODE_MEM, { RC_WRITE_FIRST, 0 }, { MTU, 0 } },     /* I-007 */
        { 9, { RC_WRITE_ONLY, 0 }, { 8, 0 } },
        { 7, { RC_WRITE_ONLY, 0 }, { 8, 0 } },
        { MTU, { RC_WRITE_FIRST, 0 }, { MTU, 0 } },
        { MTU + 9, { RC_WRITE_FIRST, RC_WRITE_LAST }, { MTU, 8 } },
        { MTU + 7, { RC_WRITE_FIRST, RC_WRITE_LAST }, { MTU, 8 } },
        { 2 * MTU, { RC_WRITE_FIRST, RC_WRITE_MIDDLE }, { MTU, MTU } },
        { 0x80000001u, { RC_WRITE_FIRST, 0 }, { MTU, 0 } },
        /* Packets of another PMTU. */
        { 2 * MTU, { RC_WRITE_FIRST, 0 }, { MTU / 2, 0 } },
        { 4 * MTU, { RC_WRITE_FIRST, 0 }, { 2 * MTU, 0 } },
        { MTU + 4, { RC_WRITE_ONLY, 0 }, { MTU + 4, 0 } },
        { 3 * MTU, { RC_WRITE_FIRST, RC_WRITE_MIDDLE }, { MTU, MTU - 4 } },
        { 2 * MTU + 4, { RC_WRITE_FIRST, RC_WRITE_LAST }, { MTU, MTU + 4 } },
    };

    for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
        uint8_t nak = i ? I_029_NAK : I_007_NAK;
        unsigned event = i ? I_029_EVENT : I_007_EVENT;
        struct roce_packet p;

        start_responder(&RC_OPTS, QHCA_QPS_RTS);
        p = request(c[i].op[0], PSN, 64, c[i].dma_len);
        peer_inject(&qp, &p, data, c[i].len[0]);
        if (c[i].op[1]) {
            expect_ack(PSN, 0);
            inject(c[i].op[1], PSN + 1, c[i].len[1]);
            expect_refusal(nak, PSN + 1, event);
            CHECK(memory_is(64 + MTU, 2 * MTU, 0));
        } else {
            expect_refusal(nak, PSN, event);
            CHECK(memory_is(0, NODE_MEM, 0));
        }
    }
}

/* Receive WRs, good and bad (I-012, I-014, I-015, I-016, D-066, B-069). */
static void test_receive_errors(void)
{
    struct qhca_seg_le sge[4] = { 0 };
    struct roce_packet p;
    struct gmr ro;

    start_responder(&RC_OPTS, QHCA_QPS_RTS);
    rc_recv(&qp, 1, 64, MTU + 4);
    inject(RC_SEND_FIRST, PSN, MTU);
    expect_ack(PSN, 0);
    inject(RC_SEND_LAST, PSN + 1, 5);
    expect_refusal(I_014_NAK, PSN + 1, 0);
    rc_expect(&qp.rcq, 1, I_014_RS);
    CHECK(memory_is(64 + MTU, 100, 0));

    start_responder(&RC_OPTS, QHCA_QPS_RTS);
    ro = mr_create(g, node.pdn, 4096, QHCA_ACCESS_REMOTE_READ);
    sge[0] = (struct qhca_seg_le) { ro.addr, 100, ro.key };
    rc_recv_raw(&qp, 1, 1, sge);
    inject(RC_SEND_ONLY, PSN, 5);
    expect_refusal(I_015_NAK, PSN, 0);
    rc_expect(&qp.rcq, 1, I_015_RS);

    start_responder(&RC_OPTS, QHCA_QPS_RTS);
    rc_recv_raw(&qp, 1, 5, sge);        /* the queue allows 4 */
    inject(RC_SEND_ONLY, PSN, 5);
    expect_refusal(I_016_NAK, PSN, 0);
    rc_expect(&qp.rcq, 1, I_016_RS);

    start_responder(&RC_OPTS, QHCA_QPS_RTS);
    rc_recv(&qp, 1, 0, 100);
    p = request(RC_WRITE_ONLY_IMM, PSN, 0, 4);
    p.rkey ^= 1;
    peer_inject(&qp, &p, data, 4);
    expect_refusal(I_012_NAK, PSN, 0);
    rc_expect(&qp.rcq, 1, I_012_RS);

    start_responder(&RC_OPTS, QHCA_QPS_RTS);    /* unreadable ring (H-002) */
    rc_recv(&qp, 1, 0, 100);
    rc_recv(&qp, 2, 0, 100);
    rc_recv(&qp, 3, 0, 100);
    inject(RC_SEND_ONLY, PSN, 5);
    rc_expect(&qp.rcq, 1, 0);
    expect_ack(PSN, 1);
    guest_spoil(g, gbuf_addr(&qp.rq, 1u << qp.rq_stride), 2u << qp.rq_stride);
    inject(RC_SEND_ONLY, PSN + 1, 5);
    expect_refusal(AETH_NAK_OP, PSN + 1, QHCA_EVENT_QP_FATAL);
    rc_expect(&qp.rcq, 0, QHCA_WC_WR_FLUSH_ERR);    /* no longer 1 */
    rc_expect(&qp.rcq, 0, QHCA_WC_WR_FLUSH_ERR);
}

/* The region is good, but the memory behind it fails (D-021, H-002). */
static void test_bad_memory(void)
{
    static const uint8_t ops[] = {
        RC_WRITE_ONLY, RC_READ_REQUEST, RC_FETCH_ADD, RC_WRITE_ONLY_IMM,
    };

    for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
        bool told = ops[i] == RC_WRITE_ONLY_IMM;
        struct roce_packet p;

        start_responder(&RC_OPTS, QHCA_QPS_RTS);
        rc_recv(&qp, 1, 0, 100);
        guest_spoil(g, node.mr.addr, 4096);
        p = request(ops[i], PSN, 0, 8);
        peer_inject(&qp, &p, data, i % 3 ? 0 : 8);
        expect_refusal(AETH_NAK_OP, PSN, told ? 0 : QHCA_EVENT_QP_FATAL);
        rc_expect(&qp.rcq, 1, told ? QHCA_WC_LOC_ACCESS_ERR :
                                     QHCA_WC_WR_FLUSH_ERR);
    }
}

static void test_resources(void)
{
    struct rc_opts o = RC_OPTS;
    struct roce_packet p;

    o.dest_rd_atomic = 0;
    start_responder(&o, QHCA_QPS_RTS);
    inject(RC_READ_REQUEST, PSN, 0);
    expect_refusal(I_025_NAK, PSN, I_025_EVENT);

    o.dest_rd_atomic = 2;
    start_responder(&o, QHCA_QPS_RTS);
    g->net_blocked = true;
    for (unsigned i = 0; i < 120; i++) {        /* responses have to wait */
        inject(RC_SEND_ONLY, PSN - 1, 1);
    }
    for (unsigned i = 0; i < 3; i++) {
        inject_read(PSN + i, 0, 8);
    }
    CHECK_EQ(rc_state(&qp), QHCA_QPS_RTS);
    guest_unblock(g);
    while (g->num_sent > 3) {
        CHECK(peer_next(&qp, &p) && p.psn == ((PSN - 1) & PSN_MASK));
    }
    peer_expect(&qp, RC_READ_RESP_ONLY, PSN);
    peer_expect(&qp, RC_READ_RESP_ONLY, PSN + 1);
    expect_refusal(I_026_NAK, PSN + 2, I_026_EVENT);
}

/* D-069: the region is deregistered while it is being read. */
static void test_dereg_mid_read(void)
{
    struct rc_opts o = RC_OPTS;
    struct roce_packet p;
    struct gmr mr;
    unsigned n = 0;

    o.mtu = 1;
    start_responder(&o, QHCA_QPS_RTS);
    mr = mr_create(g, node.pdn, 1u << 20, REMOTE_ALL | QHCA_ACCESS_LOCAL_WRITE);
    p = request(RC_READ_REQUEST, PSN, 0, 1u << 20);
    p.va = mr.addr;
    p.rkey = mr.key;
    g->net_blocked = true;
    peer_inject(&qp, &p, NULL, 0);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, mr.key), QHCA_OK);
    guest_unblock(g);
    while (g->num_sent > 1 && peer_next(&qp, &p)) {
        CHECK_EQ(p.psn, PSN + n++);
        CHECK_EQ(p.opcode, n == 1 ? RC_READ_RESP_FIRST : RC_READ_RESP_MIDDLE);
    }
    CHECK(n > 0 && n < 4096);
    expect_refusal(I_036_NAK, PSN + n, I_036_EVENT);
}

static const struct test tests[] = {
    { "A-106 B-033 F-005 H-004 I-004 I-007 I-013 I-017 D-063 D-065 "
      "keys, ranges, rights",
      test_remote_errors },
    { "D-060 B-026 order of the checks", test_order },
    { "I-029 D-065 WRITE against its RETH", test_write_lengths },
    { "I-012 I-014 I-015 I-016 D-066 H-002 receive WRs",
      test_receive_errors },
    { "D-021 H-002 memory that fails", test_bad_memory },
    { "I-025 I-026 D-068 READ resources", test_resources },
    { "I-036 D-069 region deregistered in mid-READ", test_dereg_mid_read },
};

TEST_MAIN(tests)
