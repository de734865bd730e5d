/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the RC responder against a scripted peer: order, opcodes
 * and sizes.
 */
#include <stdio.h>

#include "harness/scripted.h"
#include "tables.h"

#define PSN     0x222222u       /* rq_psn of RC_OPTS */
#define MTU     1024

static void test_gap(void)
{
    start_responder(&RC_OPTS, QHCA_QPS_RTR);
    for (unsigned i = 0; i < 4; i++) {
        rc_recv(&qp, i, 0, 100);
    }
    inject(RC_SEND_ONLY, PSN + 1, 1);
    expect_nak(AETH_NAK_SEQ, PSN);                              /* D-020 */
    inject(RC_SEND_ONLY, PSN + 2, 1);
    peer_expect_none(&qp);
    inject(RC_SEND_ONLY, PSN - 1, 1);   /* a duplicate does not end the gap */
    expect_ack(PSN - 1, 0);
    inject(RC_SEND_ONLY, PSN + 2, 1);
    peer_expect_none(&qp);
    inject(RC_SEND_ONLY, PSN, 1);
    expect_ack(PSN, 1);
    inject(RC_SEND_ONLY, PSN + 3, 1);
    expect_nak(AETH_NAK_SEQ, PSN + 1);
    rc_expect(&qp.rcq, 0, 0);
    rc_expect_none(&qp.rcq);
    CHECK_EQ(counter(g, QHCA_CNT_RX_OUT_OF_SEQ), 4);
}

static void test_comm_est(void)
{
    start_responder(&RC_OPTS, QHCA_QPS_RTR);
    rc_recv(&qp, 1, 0, 100);
    rc_recv(&qp, 2, 0, 100);
    inject(RC_SEND_ONLY, PSN - 1, 1);   /* none of these is valid */
    inject(RC_SEND_ONLY, PSN + 5, 1);
    peer_ack(&qp, 5);
    no_event();
    inject(RC_SEND_ONLY, PSN, 1);
    eq_expect(&node.async, QHCA_EVENT_COMM_EST, qp.qpn);        /* */
    inject(RC_SEND_ONLY, PSN + 1, 1);
    no_event();
    CHECK_EQ(rc_state(&qp), QHCA_QPS_RTR);
}

static void test_rnr(void)
{
    static const uint8_t ops[] = {
        RC_SEND_ONLY, RC_SEND_FIRST, RC_SEND_ONLY_IMM, RC_WRITE_ONLY_IMM,
    };

    for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
        struct rc_opts o = RC_OPTS;
        size_t len = ops[i] == RC_SEND_FIRST ? MTU : 8;

        o.min_rnr = (uint8_t)(5 * i + 3);
        start_responder(&o, QHCA_QPS_RTS);
        inject(ops[i], PSN, len);
        expect_nak((uint8_t)(AETH_RNR_NAK | o.min_rnr), PSN);   /* D-030 */
        inject(RC_SEND_ONLY, PSN + 1, 1);
        inject(RC_SEND_ONLY, PSN + 2, 1);
        peer_expect_none(&qp);
        inject(ops[i], PSN, len);
        expect_nak((uint8_t)(AETH_RNR_NAK | o.min_rnr), PSN);
        rc_recv(&qp, 9, 0, 2000);
        inject(ops[i], PSN, len);
        expect_ack(PSN, ops[i] != RC_SEND_FIRST);
        CHECK_EQ(rc_query(&qp).epsn, htole32(PSN + 1));
    }
}

/*
 * D-060, D-061, D-062, D-064: the last packet of each row is refused, those
 * before it are good.
 */
static void test_sequence(void)
{
    static const struct {
        const char *what;
        uint8_t op[3];
        uint16_t len[3];
        unsigned event, status; /* event, or CQE if a receive WR is used */
    } c[] = {
        { "MIDDLE first", { RC_SEND_MIDDLE }, { MTU }, I_027_EVENT, 0 },
        { "LAST first", { RC_SEND_LAST }, { 8 }, I_027_EVENT, 0 },
        { "WRITE MIDDLE first", { RC_WRITE_MIDDLE }, { MTU }, I_027_EVENT, 0 },
        { "FIRST in SEND", { RC_SEND_FIRST, RC_SEND_FIRST }, { MTU, MTU }, 0,
          I_027_RS },
        { "ONLY in SEND", { RC_SEND_FIRST, RC_SEND_ONLY }, { MTU, 8 }, 0,
          I_027_RS },
        { "READ in SEND", { RC_SEND_FIRST, RC_READ_REQUEST }, { MTU, 0 }, 0,
          I_027_RS },
        { "WRITE MIDDLE in SEND", { RC_SEND_FIRST, RC_WRITE_MIDDLE },
          { MTU, MTU }, 0, I_027_RS },
        { "SEND in WRITE", { RC_WRITE_FIRST, RC_SEND_ONLY }, { MTU, 8 },
          I_027_EVENT, 0 },
        { "reserved 0x15", { 0x15 }, { 8 }, I_028_EVENT, 0 },
        { "reserved 0x1f", { 0x1f }, { 0 }, I_028_EVENT, 0 },
        { "reserved in SEND", { RC_SEND_FIRST, 0x1e }, { MTU, 0 }, 0,
          I_027_RS },
        { "FIRST too short", { RC_SEND_FIRST }, { MTU - 4 }, 0, I_014_RS },
        { "FIRST too long", { RC_SEND_FIRST }, { MTU + 4 }, 0, I_014_RS },
        { "ONLY too long", { RC_SEND_ONLY }, { MTU + 1 }, 0, I_014_RS },
        { "LAST empty", { RC_SEND_FIRST, RC_SEND_LAST }, { MTU, 0 }, 0,
          I_014_RS },
        { "WRITE FIRST too short", { RC_WRITE_FIRST }, { MTU - 1 },
          I_029_EVENT, 0 },
        { "READ with payload", { RC_READ_REQUEST }, { 4 }, I_029_EVENT, 0 },
        { "CAS with payload", { RC_CMP_SWAP }, { 4 }, I_029_EVENT, 0 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
        uint32_t psn = PSN;
        unsigned n;

        start_responder(&RC_OPTS, QHCA_QPS_RTS);
        rc_recv(&qp, 1, 0, 8000);
        rc_recv(&qp, 2, 0, 8000);
        for (n = 0; n < 2 && (c[i].op[n + 1] || c[i].len[n + 1]); n++, psn++) {
            struct roce_packet p = request(c[i].op[n], psn, 0, 3000);

            peer_inject(&qp, &p, data, c[i].len[n]);
            expect_ack(psn, 0);
        }
        inject(c[i].op[n], psn, c[i].len[n]);
        if (rc_state(&qp) != QHCA_QPS_ERR) {
            tap_note("%s", c[i].what);
        }
        expect_refusal(AETH_NAK_INV_REQ, psn, c[i].event);
        rc_expect(&qp.rcq, 1,
                  c[i].status ? c[i].status : QHCA_WC_WR_FLUSH_ERR);
        rc_expect(&qp.rcq, 2, QHCA_WC_WR_FLUSH_ERR);
        rc_expect_none(&qp.rcq);
    }
}

static void test_bad_pad(void)
{
    uint8_t f[MAX_FRAME];
    struct roce_packet p;
    size_t len, l3 = 14;
    uint32_t crc;

    start_responder(&RC_OPTS, QHCA_QPS_RTS);
    rc_recv(&qp, 1, 0, 100);
    p = peer_packet(&qp, RC_SEND_ONLY, PSN);
    p.payload_len = 8;
    memcpy(f + roce_payload_offset(&p), data, 8);
    len = roce_finish(&p, f);
    f[l3 + IPV4_LEN + UDP_LEN + 1] |= 0x10;     /* 7 bytes and 1 of padding */
    f[l3 + 3]--;                                /* but a shorter packet */
    f[l3 + IPV4_LEN + 5]--;
    len--;
    crc = roce_icrc(f + l3, true, len - l3 - 4);
    memcpy(f + len - 4, &(uint32_t) { htole32(crc) }, 4);
    guest_rx(g, f, len);
    guest_settle(g);
    expect_refusal(I_014_NAK, PSN, 0);                          /* D-064 */
    rc_expect(&qp.rcq, 1, I_014_RS);
}

/* Injects a SEND of 8 bytes; @more: another is right behind it. */
static void inject_of_many(uint32_t psn, bool more)
{
    struct roce_packet p = peer_packet(&qp, RC_SEND_ONLY, psn);
    uint8_t f[MAX_FRAME];
    size_t len;

    p.ackreq = true;
    p.payload_len = 8;
    memcpy(f + roce_payload_offset(&p), data, 8);
    len = roce_finish(&p, f);
    (more ? guest_rx_more : guest_rx)(g, f, len);
}

/* Frames that arrive together are executed one by one and get one ACK. */
static void test_together(void)
{
    start_responder(&RC_OPTS, QHCA_QPS_RTS);
    for (unsigned i = 0; i < 6; i++) {
        rc_recv(&qp, i, 0, 100);
    }
    for (unsigned i = 0; i < 4; i++) {
        inject_of_many(PSN + i, i < 3);
        if (i < 3) {
            rc_expect(&qp.rcq, i, QHCA_WC_SUCCESS);
            peer_expect_none(&qp);
        }
    }
    rc_expect(&qp.rcq, 3, QHCA_WC_SUCCESS);
    expect_ack(PSN + 3, 4);                                     /* D-011 */
    peer_expect_none(&qp);
    /* The frame that was to follow does not arrive. */
    inject_of_many(PSN + 4, true);
    qhca_engine_run(g->e, *g->clock);
    rc_expect(&qp.rcq, 4, QHCA_WC_SUCCESS);
    expect_ack(PSN + 4, 5);
    /* After a gap one NAK is sent, and later packets are not executed. */
    inject_of_many(PSN + 6, true);
    inject_of_many(PSN + 7, false);
    expect_nak(AETH_NAK_SEQ, PSN + 5);
    peer_expect_none(&qp);
    rc_expect_none(&qp.rcq);
}

static const struct test tests[] = {
    { "D-020 D-002 gaps", test_gap },
    { "A-082 H-005 COMM_EST", test_comm_est },
    { "D-030 I-020 no receive WR", test_rnr },
    { "D-061 D-062 D-064 H-003 I-027 I-028 I-029 opcodes and sizes",
      test_sequence },
    { "D-064 wrong padding", test_bad_pad },
    { "D-011 one ACK for requests that arrive at once", test_together },
};

TEST_MAIN(tests)
