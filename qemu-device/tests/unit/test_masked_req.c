/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: masked atomics, which have no IBTA opcodes, at the
 * requester.
 */
#include "harness/fixture.h"

#define SQ_PSN  0x111111u       /* sq_psn of RC_OPTS */
#define WR_CAS  QHCA_WR_MASKED_ATOMIC_CMP_AND_SWP
#define WR_FAA  QHCA_WR_MASKED_ATOMIC_FETCH_AND_ADD

static struct rc_wr masked_wr(uint8_t opcode)
{
    struct rc_wr wr = rc_wr(&qp, opcode, 128, 8);

    wr.raddr = 0x10008;
    wr.rkey = 0xcafe;
    wr.swap_add = 0x1111;
    wr.compare = 0x2222;
    wr.swap_mask = 0x3333;
    wr.compare_mask = 0x4444;
    return wr;
}

static struct rc_wr post(uint8_t opcode)
{
    struct rc_wr wr = masked_wr(opcode);

    rc_do(&qp, &wr);
    return wr;
}

static void expect_request(bool cas, uint32_t psn)
{
    struct roce_packet p = peer_expect(&qp, cas ? RC_MASKED_CMP_SWAP :
                                            RC_MASKED_FETCH_ADD, psn);

    CHECK(p.va == 0x10008 && p.rkey == 0xcafe && p.swap_add == 0x1111);
    CHECK(p.compare == (cas ? 0x2222 : 0));
    CHECK(p.swap_mask == (cas ? 0x3333 : 0));
    CHECK(p.compare_mask == 0x4444);
    CHECK_EQ(p.payload_len, 0);
    CHECK(p.ackreq && !p.solicited);
}

/* Packets on the wire, the retry after a timeout, and the completion. */
static void test_requester(void)
{
    struct rc_opts o = RC_OPTS;

    o.rd_atomic = 1;
    for (unsigned cas = 0; cas < 2; cas++) {
        struct roce_packet p;
        struct qhca_cqe c;
        struct rc_wr wr;
        uint64_t result;

        start_alone(&o);
        wr = post(cas ? WR_CAS : WR_FAA);
        post(WR_FAA);                   /* waits for the resource (D-067) */
        expect_request(cas, SQ_PSN);
        peer_expect_none(&qp);
        guest_advance(g, 4096ull << 10);
        expect_request(cas, SQ_PSN);
        p = peer_packet(&qp, RC_ATOMIC_ACKNOWLEDGE, SQ_PSN);
        p.atomic_orig = 0x0102030405060708;
        peer_inject(&qp, &p, NULL, 0);
        c = rc_expect(&qp.scq, wr.wr_id, QHCA_WC_SUCCESS);
        CHECK_EQ(c.opcode, cas ? QHCA_CQE_MASKED_COMP_SWAP :
                                 QHCA_CQE_MASKED_FETCH_ADD);
        CHECK_EQ(le32toh(c.byte_len), 8);
        memcpy(&result, guest_ptr(g, node.mr.addr + 128, 8), 8);
        CHECK(le64toh(result) == 0x0102030405060708);
        expect_request(false, SQ_PSN + 1);
        /* Not a response to it. */
        peer_send(&qp, RC_READ_RESP_ONLY, SQ_PSN + 1, "12345678", 8);
        rc_expect(&qp.scq, wr.wr_id + 1, QHCA_WC_BAD_RESP_ERR);
    }
}

/* A peer that does not know masked atomics may send a NAK or be silent. */
static void test_strangers(void)
{
    struct rc_opts o = RC_OPTS;
    struct rc_wr wr;

    start_alone(&o);
    wr = post(WR_CAS);
    peer_nak(&qp, AETH_NAK_INV_REQ, SQ_PSN);
    rc_expect(&qp.scq, wr.wr_id, QHCA_WC_REM_INV_REQ_ERR);

    o.retry = 1;
    start_alone(&o);
    wr = post(WR_FAA);
    guest_advance(g, 3 * (4096ull << 10));
    rc_expect(&qp.scq, wr.wr_id, QHCA_WC_RETRY_EXC_ERR);
    CHECK_EQ(peer_drain(&qp), 2);
}

static void test_bad_wqes(void)
{
    static const struct {
        uint8_t type, rd_atomic, sges, flags;
        uint32_t len;
        unsigned status;
    } c[] = {
        { QHCA_QPT_UC, 4, 1, 0, 8, QHCA_WC_LOC_QP_OP_ERR },
        { QHCA_QPT_UD, 4, 1, 0, 8, QHCA_WC_LOC_QP_OP_ERR },
        { QHCA_QPT_XRC_INI, 4, 1, 0, 8, QHCA_WC_LOC_QP_OP_ERR },
        { QHCA_QPT_RC, 0, 1, 0, 8, QHCA_WC_LOC_QP_OP_ERR },
        { QHCA_QPT_RC, 4, 5, 0, 8, QHCA_WC_LOC_QP_OP_ERR },
        { QHCA_QPT_RC, 4, 1, QHCA_WQE_INLINE, 8, QHCA_WC_LOC_QP_OP_ERR },
        { QHCA_QPT_RC, 4, 0, 0, 8, QHCA_WC_LOC_LEN_ERR },
        { QHCA_QPT_RC, 4, 1, 0, 4, QHCA_WC_LOC_LEN_ERR },
        { QHCA_QPT_RC, 4, 1, 0, 16, QHCA_WC_LOC_LEN_ERR },
    };

    for (size_t i = 0; i < 2 * ARRAY_SIZE(c); i++) {
        struct rc_opts o = RC_OPTS;
        struct rc_wr wr;
        size_t j = i / 2;

        o.type = c[j].type;
        o.rd_atomic = c[j].rd_atomic;
        start_alone(&o);
        wr = masked_wr(i & 1 ? WR_CAS : WR_FAA);
        wr.sge[0].length = c[j].len;
        wr.num_sge = c[j].sges;
        wr.inline_len = 8;
        wr.flags |= c[j].flags;
        rc_finish(&qp, &wr, c[j].status);
        peer_expect_none(&qp);
    }
}

static const struct test tests[] = {
    { "B-015 E-012 C-009 D-067 requests and their completions",
      test_requester },
    { "B-015 a peer that does not know masked atomics", test_strangers },
    { "B-015 B-032 B-054 invalid WQEs", test_bad_wqes },
};

TEST_MAIN(tests)
