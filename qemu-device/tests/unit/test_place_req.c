/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: FLUSH and ATOMIC WRITE (annex A19) at the requester,
 * against a scripted peer, and between two QPs.
 */
#include "harness/windows.h"
#include "tables.h"

#define PSN         0x111111u       /* sq_psn of RC_OPTS */
#define T(code)     (4096ull << (code))
#define GLOBAL      QHCA_ACCESS_FLUSH_GLOBAL

static struct rc_wr flush(const struct rc_qp *from, uint64_t off, uint32_t len)
{
    struct rc_wr wr = rc_wr(from, QHCA_WR_FLUSH, 0, 0);

    rc_aim(&wr, &node, off);
    wr.num_sge = 0;
    wr.flush_type = QHCA_FLUSH_GLOBAL;
    wr.flush_len = len;
    return wr;
}

static void post(uint8_t opcode)
{
    struct rc_wr wr = rc_wr(&qp, opcode, 0, 8);

    if (opcode == QHCA_WR_FLUSH) {
        wr = flush(&qp, 0, 8);
    }
    wr.raddr = 0x10000;
    wr.rkey = 0xcafe;
    rc_do(&qp, &wr);
}

static void answer(uint8_t opcode, uint32_t psn, size_t len)
{
    static const uint8_t data[1024];

    peer_send(&qp, opcode, psn, data, len);
}

/* Packets sent, and completions. */
static void test_packets(void)
{
    struct rc_opts o = RC_OPTS;
    struct roce_packet p;
    struct qhca_cqe cqe;
    struct rc_wr wr;

    o.max_inline = 0;                   /* the word is inline nevertheless */
    start_alone(&o);
    wr = flush(&qp, 16, 0x80000000u);
    wr.flush_type = QHCA_FLUSH_GLOBAL | QHCA_FLUSH_PERSISTENT;
    wr.flush_level = QHCA_FLUSH_MR;
    wr.flags |= QHCA_WQE_SOLICITED;
    rc_do(&qp, &wr);
    p = peer_expect(&qp, RC_FLUSH, PSN);
    CHECK(p.va == node.mr.addr + 16 && p.rkey == node.mr.key);
    CHECK_EQ(p.dma_len, 0x80000000u);
    CHECK(p.flush_type == 3 && p.flush_level == 1);
    CHECK_EQ(p.payload_len, 0);
    CHECK(p.ackreq && !p.solicited);                            /* B-045 */
    answer(RC_READ_RESP_ONLY, PSN, 0);
    cqe = done(0, 0);
    CHECK_EQ(cqe.opcode, QHCA_CQE_FLUSH);                       /* B-012 */
    CHECK_EQ(le32toh(cqe.byte_len), 0);

    guest_fill(g, node.mr.addr, 8, 5);
    wr = rc_wr(&qp, QHCA_WR_ATOMIC_WRITE, 0, 3);
    wr.sge[1] = wr.sge[0];
    wr.sge[1].addr += 3;
    wr.sge[1].length = 5;
    wr.num_sge = 2;
    wr.raddr = 0x10008;
    wr.rkey = 0xcafe;
    wr.flags |= QHCA_WQE_SOLICITED;
    rc_do(&qp, &wr);
    p = peer_expect(&qp, RC_ATOMIC_WRITE, PSN + 1);
    CHECK(p.va == 0x10008 && p.rkey == 0xcafe && p.dma_len == 8);
    CHECK_EQ(p.payload_len, 8);
    for (size_t i = 0; i < 8; i++) {
        CHECK_EQ(p.payload[i], guest_pattern(i, 5));
    }
    CHECK(p.ackreq && !p.solicited);
    answer(RC_READ_RESP_ONLY, PSN + 1, 0);
    cqe = done(1, 0);
    CHECK_EQ(cqe.opcode, QHCA_CQE_ATOMIC_WRITE);                /* B-013 */
    CHECK_EQ(le32toh(cqe.byte_len), 0);

    wr.flags = QHCA_WQE_SIGNALED | QHCA_WQE_INLINE;
    wr.inline_data = "\1\2\3\4\5\6\7\10";
    wr.inline_len = 8;
    rc_do(&qp, &wr);
    CHECK(!memcmp(peer_expect(&qp, RC_ATOMIC_WRITE, PSN + 2).payload,
                  wr.inline_data, 8));
}

static void test_bad_wqes(void)
{
    static const struct {
        uint8_t opcode, type, level, sges, flags;
        uint32_t len;
        uint8_t status;
    } c[] = {
        { QHCA_WR_FLUSH, 0, 0, 0, 0, 8, I_051_RQ },
        { QHCA_WR_FLUSH, 4, 0, 0, 0, 8, I_051_RQ },
        { QHCA_WR_FLUSH, 0x11, 0, 0, 0, 8, I_051_RQ },
        { QHCA_WR_FLUSH, 1, 2, 0, 0, 8, I_051_RQ },
        { QHCA_WR_FLUSH, 1, 0x10, 0, 0, 8, I_051_RQ },
        { QHCA_WR_FLUSH, 1, 0, 1, 0, 8, I_051_RQ },
        { QHCA_WR_FLUSH, 1, 0, 0, QHCA_WQE_INLINE, 8, I_051_RQ },
        { QHCA_WR_FLUSH, 1, 0, 0, 0, 0x80000001u, I_032_RQ },
        { QHCA_WR_ATOMIC_WRITE, 0, 0, 1, 0, 0, I_032_RQ },
        { QHCA_WR_ATOMIC_WRITE, 0, 0, 1, 0, 7, I_032_RQ },
        { QHCA_WR_ATOMIC_WRITE, 0, 0, 1, 0, 16, I_032_RQ },
        { QHCA_WR_ATOMIC_WRITE, 0, 0, 0, 0, 8, I_032_RQ },
        { QHCA_WR_ATOMIC_WRITE, 0, 0, 5, 0, 8, I_051_RQ },
        { QHCA_WR_ATOMIC_WRITE, 0, 0, 7, QHCA_WQE_INLINE, 8,
          I_032_RQ },
        { QHCA_WR_ATOMIC_WRITE, 0, 0, 9, QHCA_WQE_INLINE, 8,
          I_051_RQ },
    };

    for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
        struct rc_wr wr;

        start_alone(&RC_OPTS);
        wr = rc_wr(&qp, c[i].opcode, 0, c[i].len);
        wr.num_sge = wr.inline_len = c[i].sges;
        wr.flags |= c[i].flags;
        wr.flush_type = c[i].type;
        wr.flush_level = c[i].level;
        wr.flush_len = c[i].len;
        rc_do(&qp, &wr);
        done(0, c[i].status);
        peer_expect_none(&qp);
        CHECK_EQ(counter(g, QHCA_CNT_BAD_WQE), 1);
        CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
    }
}

/* D-067: they need a resource. Bad local data. */
static void test_not_here(void)
{
    static const uint8_t ops[] = { QHCA_WR_FLUSH, QHCA_WR_ATOMIC_WRITE };

    for (unsigned i = 0; i < 2 * 2; i++) {
        struct rc_opts o = RC_OPTS;

        o.rd_atomic = i / 2 ? 4 : 0;
        start_alone(&o);
        if (i / 2) {
            CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, node.mr.key), 0);
        }
        post(ops[i % 2]);
        if (i < 2) {
            done(0, QHCA_WC_LOC_QP_OP_ERR);
        } else if (ops[i % 2] == QHCA_WR_ATOMIC_WRITE) {
            done(0, I_001_RQ);
        } else {
            peer_expect(&qp, RC_FLUSH, PSN);     /* has no local data */
        }
        peer_expect_none(&qp);
    }
}

static void test_bad_answers(void)
{
    static const struct {
        uint8_t opcode;
        size_t len;
    } bad[] = {
        { RC_READ_RESP_ONLY, 8 }, { RC_READ_RESP_ONLY, 1 },
        { RC_READ_RESP_FIRST, 1024 }, { RC_READ_RESP_MIDDLE, 0 },
        { RC_READ_RESP_FIRST, 0 }, { RC_ATOMIC_ACKNOWLEDGE, 0 },
    };
    static const uint8_t ops[] = { QHCA_WR_FLUSH, QHCA_WR_ATOMIC_WRITE };

    for (size_t i = 0; i < 2 * ARRAY_SIZE(bad); i++) {
        start_alone(&RC_OPTS);
        post(ops[i % 2]);
        CHECK_EQ(peer_drain(&qp), 1);
        answer(bad[i / 2].opcode, PSN, bad[i / 2].len);
        done(0, QHCA_WC_BAD_RESP_ERR);
        CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
    }
}

static void test_naks(void)
{
    static const struct {
        uint8_t syndrome;
        unsigned status;
    } naks[] = {
        { I_038_NAK, I_038_RQ }, { I_037_NAK, I_037_RQ },
        { AETH_NAK_OP, QHCA_WC_REM_OP_ERR },
    };
    static const uint8_t ops[] = { QHCA_WR_FLUSH, QHCA_WR_ATOMIC_WRITE };

    for (size_t i = 0; i < 2 * ARRAY_SIZE(naks); i++) {
        start_alone(&RC_OPTS);
        post(QHCA_WR_RDMA_WRITE);
        post(ops[i % 2]);
        post(QHCA_WR_SEND);
        CHECK_EQ(peer_drain(&qp), 3);
        peer_nak(&qp, naks[i / 2].syndrome, PSN + 1);
        done(0, 0);
        done(1, naks[i / 2].status);
        done(2, QHCA_WC_WR_FLUSH_ERR);
    }
}

/* D-014: neither an ACK nor a later request's response completes them. */
static void test_lost(void)
{
    static const uint8_t ops[] = { QHCA_WR_FLUSH, QHCA_WR_ATOMIC_WRITE };
    static const uint8_t wire[] = { RC_FLUSH, RC_ATOMIC_WRITE };

    for (unsigned i = 0; i < 2; i++) {
        start_alone(&RC_OPTS);
        post(QHCA_WR_RDMA_WRITE);
        post(ops[i]);
        post(QHCA_WR_SEND);
        CHECK_EQ(peer_drain(&qp), 3);
        peer_ack(&qp, PSN + 2);
        done(0, 0);
        rc_expect_none(&qp.scq);
        peer_expect(&qp, wire[i], PSN + 1);     /* without a timeout */
        peer_expect(&qp, RC_SEND_ONLY, PSN + 2);
        guest_advance(g, T(10));
        peer_expect(&qp, wire[i], PSN + 1);
        peer_expect(&qp, RC_SEND_ONLY, PSN + 2);
        answer(RC_READ_RESP_ONLY, PSN + 1, 0);
        done(1, 0);
        peer_ack(&qp, PSN + 2);
        done(2, 0);
        CHECK_EQ(counter(g, QHCA_CNT_TIMEOUT), 1);
    }
}

/* B-051, D-067: WRs wait for them, and they wait for other WRs. */
static void test_waiting(void)
{
    struct rc_opts o = RC_OPTS;
    struct rc_wr wr;

    o.rd_atomic = 2;
    start_alone(&o);
    post(QHCA_WR_FLUSH);
    post(QHCA_WR_ATOMIC_WRITE);
    post(QHCA_WR_FLUSH);
    peer_expect(&qp, RC_FLUSH, PSN);
    peer_expect(&qp, RC_ATOMIC_WRITE, PSN + 1);
    peer_expect_none(&qp);
    answer(RC_READ_RESP_ONLY, PSN, 0);
    peer_expect(&qp, RC_FLUSH, PSN + 2);
    wr = rc_wr(&qp, QHCA_WR_SEND, 0, 8);
    wr.flags |= QHCA_WQE_FENCE;
    rc_do(&qp, &wr);
    answer(RC_READ_RESP_ONLY, PSN + 1, 0);
    peer_expect_none(&qp);
    answer(RC_READ_RESP_ONLY, PSN + 2, 0);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 3);
    done(0, 0);
    done(1, 0);
    done(2, 0);
}

/* ---- between two QPs ---- */

static void test_pair(void)
{
    struct rc_wr wr;

    start();
    guest_fill(g, at(0), 3000, 1);
    wr = rc_wr(&peer, QHCA_WR_RDMA_WRITE, 0, 3000);
    rc_aim(&wr, &node, 0x20000);
    rc_put(&peer, &wr);
    wr = flush(&peer, 0x20000, 3000);
    rc_do(&peer, &wr);
    rc_expect(&peer.scq, wr.wr_id - 1, 0);
    rc_expect(&peer.scq, wr.wr_id, 0);
    CHECK(guest_is_filled(g, at(0x20000), 3000, 1));
    wr = rc_wr(&peer, QHCA_WR_ATOMIC_WRITE, 8, 8);
    rc_aim(&wr, &node, 0x20000);
    rc_finish(&peer, &wr, 0);
    CHECK(!memcmp(guest_ptr(g, at(8), 8), guest_ptr(g, at(0x20000), 8), 8));
    CHECK_EQ(g->stores, 1);
}

/* A window has rights of its own, but no right that its region lacks. */
static void test_windows(void)
{
    uint32_t with, without, key;
    struct rc_wr wr;

    start_two_pairs();
    with = region(QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_MW_BIND | GLOBAL, 0);
    without = region(QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_MW_BIND, 0);
    key = mw_create(g, node.pdn, QHCA_MW_2B);
    wr = wr_bind(&qp, key, 4096, 4096, WR | GLOBAL);
    wr.mr_key = with;
    rc_finish(&qp, &wr, QHCA_WC_SUCCESS);

    wr = flush(&peer, 4096, 4096);
    wr.rkey = key;
    rc_finish(&peer, &wr, 0);
    wr = flush(&peer, 0, 0);
    wr.rkey = key;
    wr.flush_level = QHCA_FLUSH_MR;     /* all memory of the window */
    rc_finish(&peer, &wr, 0);
    wr = rc_wr(&peer, QHCA_WR_ATOMIC_WRITE, 0, 8);
    wr.raddr = at(4104);
    wr.rkey = key;
    rc_finish(&peer, &wr, 0);
    CHECK_EQ(g->stores, 1);
    wr = flush(&other_peer, 0, 0);      /* window bound to another QP */
    wr.rkey = key;
    wr.flush_level = QHCA_FLUSH_MR;
    rc_finish(&other_peer, &wr, QHCA_WC_REM_ACCESS_ERR);
    wr = flush(&peer, 4095, 2);
    wr.rkey = key;
    rc_finish(&peer, &wr, QHCA_WC_REM_ACCESS_ERR);

    for (unsigned i = 0; i < 2; i++) {
        start();
        without = region(QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_MW_BIND, 0);
        key = mw_create(g, node.pdn, QHCA_MW_2B);
        wr = wr_bind(&qp, key, 0, 4096, i ? GLOBAL :
                                            QHCA_ACCESS_FLUSH_PERSISTENT);
        wr.mr_key = without;
        rc_finish(&qp, &wr, QHCA_WC_MW_BIND_ERR);
    }
}

/* QPs may have the right to persistence, but no memory does. */
static void test_rights(void)
{
    const unsigned all = QHCA_ACCESS_MASK | QHCA_ACCESS_FLUSH_PERSISTENT;
    struct qhca_qp_attr a = { .access = htole16((uint16_t)all) };

    start_alone(&RC_OPTS);
    CHECK_EQ(rc_modify(&qp, &a, QHCA_QP_ACCESS_FLAGS), QHCA_OK);
    CHECK_EQ(le16toh(rc_query(&qp).attr.access), all);
    for (unsigned bit = 0; bit < 16; bit++) {
        a.access = htole16((uint16_t)(1u << bit));
        CHECK_EQ(rc_modify(&qp, &a, QHCA_QP_ACCESS_FLAGS),
                 all & 1u << bit ? QHCA_OK : QHCA_ERR_PARAM);
    }
}

static const struct test tests[] = {
    { "B-012 B-013 B-045 packets and completions", test_packets },
    { "B-032 I-032 I-051 invalid WQEs", test_bad_wqes },
    { "D-067 I-001 where they are refused", test_not_here },
    { "I-030 I-031 responses that do not fit", test_bad_answers },
    { "D-021 I-037 I-038 NAKs", test_naks },
    { "D-014 D-048 lost responses", test_lost },
    { "B-051 D-067 fence and resources", test_waiting },
    { "B-012 B-013 B-073 B-074 between two QPs", test_pair },
    { "F-039 F-048 through windows", test_windows },
    { "A-063 rights of QPs", test_rights },
};

TEST_MAIN(tests)
