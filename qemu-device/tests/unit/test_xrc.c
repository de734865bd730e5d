/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: XRC, what must work: every operation, SRQs, CQs and keys,
 * and the packets of both halves.
 */
#include "harness/keys.h"
#include "harness/xrc.h"

#define MTU     1024

/* ---- from end to end ---- */

/* G-012: the CQE of a message to SRQ @i is in its CQ and has its number. */
static struct qhca_cqe expect_recv(struct xrc *x, unsigned i, uint64_t wr_id,
                                   uint16_t flags)
{
    struct qhca_cqe c = rc_expect(&x->srq[i].cq, wr_id, QHCA_WC_SUCCESS);

    CHECK_EQ(le32toh(c.qpn), x->tgt.qpn);
    CHECK_EQ(le32toh(c.srqn), x->srq[i].srqn);
    CHECK_EQ(le16toh(c.flags), flags | QHCA_CQE_SRQ | QHCA_CQE_XRC);
    rc_expect_none(&x->srq[!i].cq);
    return c;
}

static void sends(void)
{
    static const uint8_t opcode[] = { QHCA_WR_SEND, QHCA_WR_SEND_WITH_IMM };
    static const uint32_t len[] = { 0, 1, MTU, 4000 };
    struct xrc *x = xrc_loop();
    uint32_t count[2] = { 0, 0 };

    guest_fill(g, node.mr.addr, 4096, 3);
    for (unsigned n = 0; n < 32; n++) {
        unsigned i = n / 3 % 2;
        struct rc_wr wr = xrc_wr(x, i, opcode[n % 2], len[n % 4]);
        struct qhca_cqe c;

        wr.imm = 0x11223344 + n;
        xrc_recv(x, i, 100 + n, 4096);
        memset(guest_ptr(g, x->mr[i].addr, 4096), 0, 4096);
        rc_do(&x->ini, &wr);
        c = expect_recv(x, i, 100 + n, n % 2 ? QHCA_CQE_IMM : 0);
        CHECK_EQ(c.opcode, QHCA_CQE_RECV);
        CHECK_EQ(le32toh(c.byte_len), len[n % 4]);
        CHECK_EQ(le32toh(c.wqe_index), count[i]++);
        CHECK(!(n % 2) || c.imm == 0x11223344 + n);
        CHECK(guest_is_filled(g, x->mr[i].addr, len[n % 4], 3));
        c = rc_expect(&x->ini.scq, wr.wr_id, QHCA_WC_SUCCESS);
        CHECK_EQ(le32toh(c.qpn), x->ini.qpn);
    }
}

static void writes(void)
{
    struct xrc *x = xrc_loop();
    struct rc_wr wr = xrc_wr(x, 0, QHCA_WR_RDMA_WRITE, 3000);
    struct qhca_cqe c;

    guest_fill(g, node.mr.addr, 4096, 5);
    rc_finish(&x->ini, &wr, QHCA_WC_SUCCESS);
    CHECK(guest_is_filled(g, x->mr[0].addr, 3000, 5));
    rc_expect_none(&x->srq[0].cq);

    wr = xrc_wr(x, 1, QHCA_WR_RDMA_WRITE_WITH_IMM, 2500);
    wr.imm = 7;
    xrc_recv(x, 1, 9, 0);
    rc_do(&x->ini, &wr);
    c = expect_recv(x, 1, 9, QHCA_CQE_IMM);
    CHECK_EQ(c.opcode, QHCA_CQE_RECV_RDMA_WITH_IMM);
    CHECK_EQ(c.imm, 7);
    CHECK_EQ(le32toh(c.byte_len), 2500);
    CHECK(guest_is_filled(g, x->mr[1].addr, 2500, 5));
}

static void reads(void)
{
    struct xrc *x = xrc_loop();

    for (unsigned i = 0; i < 2; i++) {
        struct rc_wr wr = xrc_wr(x, i, QHCA_WR_RDMA_READ, 4000);

        guest_fill(g, x->mr[i].addr, 4096, 7 + i);
        rc_finish(&x->ini, &wr, QHCA_WC_SUCCESS);
        CHECK(guest_is_filled(g, node.mr.addr, 4000, 7 + i));
    }
}

static void atomics(void)
{
    struct xrc *x = xrc_loop();
    struct rc_wr wr;
    uint64_t *val;

    for (unsigned i = 0; i < 2; i++) {
        val = guest_ptr(g, x->mr[i].addr, 8);
        *val = htole64(100);
        wr = xrc_wr(x, i, QHCA_WR_ATOMIC_FETCH_AND_ADD, 8);
        wr.swap_add = 11;
        rc_finish(&x->ini, &wr, QHCA_WC_SUCCESS);
        CHECK_EQ(le64toh(*val), 111);
        wr = xrc_wr(x, i, QHCA_WR_ATOMIC_CMP_AND_SWP, 8);
        wr.compare = 111;
        wr.swap_add = 5;
        rc_finish(&x->ini, &wr, QHCA_WC_SUCCESS);
        CHECK_EQ(le64toh(*val), 5);
        val = guest_ptr(g, node.mr.addr, 8);
        CHECK_EQ(le64toh(*val), 111);
    }
}

/*
 * B-003, B-070: a window of the SRQ's PD is invalid before its owner gets the
 * CQE.
 */
static void invalidates(void)
{
    struct xrc *x = xrc_loop();
    struct fast f = fast_create(&node, 4, 1);
    struct rc_opts o = RC_OPTS;
    struct rc_qp q;
    struct rc_wr wr, reg;

    o.qp_flags = KERNEL_QP;
    q = rc_create(&node, &o);
    rc_connect(&q, &q);
    reg = wr_reg(&q, &f, next_key(f.key), 0, REMOTE_ALL |
                 QHCA_ACCESS_LOCAL_WRITE);
    rc_finish(&q, &reg, QHCA_WC_SUCCESS);

    /* The region is not in the SRQ's PD. */
    wr = xrc_wr(x, 0, QHCA_WR_SEND_WITH_INV, 4);
    wr.imm = htole32(next_key(f.key));
    xrc_recv(x, 0, 1, 4);
    rc_do(&x->ini, &wr);
    rc_expect(&x->srq[0].cq, 1, QHCA_WC_REM_INV_REQ_ERR);
    guest_advance(g, 1000000000);    /* no NAK: class J */
    rc_expect(&x->ini.scq, wr.wr_id, QHCA_WC_RETRY_EXC_ERR);

    /* The region is in the SRQ's PD. */
    x->srq[0] = srq_create_xrc(&node, node.pdn, 2, 1, x->xrcdn);
    CHECK_EQ(rc_set_state(&x->ini, QHCA_QPS_RESET), QHCA_OK);
    CHECK_EQ(rc_set_state(&x->tgt, QHCA_QPS_RESET), QHCA_OK);
    rc_connect(&x->ini, &x->tgt);
    wr = xrc_wr(x, 0, QHCA_WR_SEND_WITH_INV, 4);
    wr.imm = htole32(next_key(f.key));
    srq_post(&x->srq[0], 2, 0, 4);
    rc_do(&x->ini, &wr);
    CHECK_EQ(le32toh(expect_recv(x, 0, 2, QHCA_CQE_INV).inv_key),
             next_key(f.key));
    rc_expect(&x->ini.scq, wr.wr_id, QHCA_WC_SUCCESS);
    CHECK(!key_allows(g, node.pdn, 0, next_key(f.key), 0, 1, 0));
}

/* F-006: keys of requests to an SRQ must be of the SRQ's PD. */
static void keys(void)
{
    static const uint8_t opcode[] = {
        QHCA_WR_RDMA_WRITE, QHCA_WR_RDMA_READ, QHCA_WR_ATOMIC_FETCH_AND_ADD,
    };

    for (unsigned i = 0; i < ARRAY_SIZE(opcode); i++) {
        struct xrc *x = xrc_loop();
        struct rc_wr wr = xrc_wr(x, 0, opcode[i], 8);

        rc_finish(&x->ini, &wr, QHCA_WC_SUCCESS);
        wr = xrc_wr(x, 0, opcode[i], 8);
        wr.srqn = x->srq[1].srqn;
        rc_finish(&x->ini, &wr, QHCA_WC_REM_ACCESS_ERR);
        eq_expect(&node.async, QHCA_EVENT_QP_ACCESS_ERR, x->tgt.qpn);
        CHECK_EQ(rc_state(&x->tgt), QHCA_QPS_ERR);
        CHECK_EQ(rc_state(&x->ini), QHCA_QPS_ERR);               /* not SQE */
    }
}

/* G-002: senders share SRQs; each CQE names the TGT QP of its message. */
static void many_targets(void)
{
    struct xrc *x = xrc_loop();
    struct rc_qp ini[3], tgt[3];

    for (unsigned i = 0; i < 3; i++) {
        ini[i] = xrc_ini(&RC_OPTS);
        tgt[i] = xrc_tgt(x, &RC_OPTS);
        rc_connect(&ini[i], &tgt[i]);
    }
    for (unsigned n = 0; n < 24; n++) {
        struct rc_wr wr = rc_wr(&ini[n % 3], QHCA_WR_SEND, 0, 64);
        unsigned i = n / 2 % 2;
        struct qhca_cqe c;

        wr.srqn = x->srq[i].srqn;
        xrc_recv(x, i, n, 64);
        rc_do(&ini[n % 3], &wr);
        c = rc_expect(&x->srq[i].cq, n, QHCA_WC_SUCCESS);
        CHECK_EQ(le32toh(c.qpn), tgt[n % 3].qpn);
        CHECK_EQ(le32toh(c.src_qp), ini[n % 3].qpn);
        rc_expect(&ini[n % 3].scq, wr.wr_id, QHCA_WC_SUCCESS);
    }
}

/* G-004: an empty SRQ delays only messages to it, until it has a WR. */
static void empty(void)
{
    struct xrc *x = xrc_loop();
    struct rc_wr wr = xrc_wr(x, 0, QHCA_WR_SEND, 100);

    xrc_recv(x, 1, 1, 100);
    rc_do(&x->ini, &wr);
    CHECK(counter(g, QHCA_CNT_TX_RNR_NAK) >= 1);
    rc_expect_none(&x->srq[1].cq);
    xrc_recv(x, 0, 2, 100);
    guest_advance(g, 1000000000);
    expect_recv(x, 0, 2, 0);
    rc_expect(&x->ini.scq, wr.wr_id, QHCA_WC_SUCCESS);
}

/* G-005: each SRQ has a limit of its own. */
static void limit(void)
{
    struct xrc *x = xrc_loop();
    struct rc_wr wr = xrc_wr(x, 0, QHCA_WR_SEND, 10);

    for (unsigned i = 0; i < 4; i++) {
        xrc_recv(x, 0, i, 10);
    }
    CHECK_EQ(srq_limit(&x->srq[0], 3), QHCA_OK);
    rc_do(&x->ini, &wr);
    eq_expect_none(&node.async);
    rc_do(&x->ini, &wr);
    eq_expect(&node.async, QHCA_EVENT_SRQ_LIMIT_REACHED, x->srq[0].srqn);
}

/* ---- packets ---- */

static struct xrc *start_ini(const struct rc_opts *o)
{
    struct xrc *x = xrc_new(o);

    xrc_alone(&x->ini);
    return x;
}

static struct xrc *start_tgt(const struct rc_opts *o)
{
    struct xrc *x = xrc_new(o);

    xrc_alone(&x->tgt);
    return x;
}

/* E-009, E-027: each request names the SRQ, behind the BTH. */
static void requests(void)
{
    static const struct {
        uint8_t opcode;
        uint32_t len;
        uint8_t want[3];
    } wrs[] = {
        { QHCA_WR_SEND, 10, { RC_SEND_ONLY } },
        { QHCA_WR_SEND_WITH_IMM, 10, { RC_SEND_ONLY_IMM } },
        { QHCA_WR_SEND_WITH_INV, 10, { RC_SEND_ONLY_INV } },
        { QHCA_WR_SEND, 3 * MTU,
          { RC_SEND_FIRST, RC_SEND_MIDDLE, RC_SEND_LAST } },
        { QHCA_WR_SEND_WITH_IMM, 2 * MTU, { RC_SEND_FIRST, RC_SEND_LAST_IMM } },
        { QHCA_WR_SEND_WITH_INV, 2 * MTU, { RC_SEND_FIRST, RC_SEND_LAST_INV } },
        { QHCA_WR_RDMA_WRITE, 10, { RC_WRITE_ONLY } },
        { QHCA_WR_RDMA_WRITE_WITH_IMM, 10, { RC_WRITE_ONLY_IMM } },
        { QHCA_WR_RDMA_WRITE, 3 * MTU,
          { RC_WRITE_FIRST, RC_WRITE_MIDDLE, RC_WRITE_LAST } },
        { QHCA_WR_RDMA_WRITE_WITH_IMM, 2 * MTU,
          { RC_WRITE_FIRST, RC_WRITE_LAST_IMM } },
        { QHCA_WR_RDMA_READ, 10, { RC_READ_REQUEST } },
        { QHCA_WR_ATOMIC_CMP_AND_SWP, 8, { RC_CMP_SWAP } },
        { QHCA_WR_ATOMIC_FETCH_AND_ADD, 8, { RC_FETCH_ADD } },
    };
    struct rc_opts o = RC_OPTS;
    struct xrc *x;

    o.rd_atomic = 8;
    x = start_ini(&o);
    for (unsigned i = 0, psn = o.sq_psn; i < ARRAY_SIZE(wrs); i++) {
        struct rc_wr wr = xrc_wr(x, i % 2, wrs[i].opcode, wrs[i].len);

        rc_do(&x->ini, &wr);
        for (unsigned n = 0; n < 3 && (!n || wrs[i].want[n]); n++) {
            struct roce_packet p = peer_expect(&x->ini, XRC(wrs[i].want[n]),
                                               psn++);

            CHECK_EQ(p.srqn, x->srq[i % 2].srqn);
        }
        peer_expect_none(&x->ini);
        /* READs and atomics stay outstanding: they do not block the rest. */
        if (wrs[i].opcode <= QHCA_WR_RDMA_WRITE_WITH_IMM) {
            struct roce_packet ack = peer_packet(&x->ini, XRC(RC_ACKNOWLEDGE),
                                                 psn - 1);

            peer_inject(&x->ini, &ack, NULL, 0);
            rc_expect(&x->ini.scq, wr.wr_id, QHCA_WC_SUCCESS);
        }
    }
}

/* SE is set in the packet that uses a receive WR, also with an XRCETH. */
static void solicited(void)
{
    static const struct {
        uint8_t opcode;
        uint32_t len;
        bool se;
    } wrs[] = {
        { QHCA_WR_SEND, 10, true },
        { QHCA_WR_SEND, 3 * MTU, true },
        { QHCA_WR_SEND_WITH_IMM, 10, true },
        { QHCA_WR_SEND_WITH_IMM, 3 * MTU, true },
        { QHCA_WR_SEND_WITH_INV, 3 * MTU, true },
        { QHCA_WR_RDMA_WRITE_WITH_IMM, 10, true },
        { QHCA_WR_RDMA_WRITE_WITH_IMM, 3 * MTU, true },
        { QHCA_WR_RDMA_WRITE, 10, false },
        { QHCA_WR_RDMA_WRITE, 3 * MTU, false },
        { QHCA_WR_RDMA_READ, 10, false },
        { QHCA_WR_ATOMIC_CMP_AND_SWP, 8, false },
        { QHCA_WR_ATOMIC_FETCH_AND_ADD, 8, false },
    };
    struct rc_opts o = RC_OPTS;
    struct xrc *x;

    o.rd_atomic = 8;            /* READs get no response */
    x = start_ini(&o);
    for (unsigned i = 0; i < 2 * ARRAY_SIZE(wrs); i++) {
        unsigned w = i / 2, packets = wrs[w].len < MTU ? 1 : 3;
        struct rc_wr wr = xrc_wr(x, 0, wrs[w].opcode, wrs[w].len);
        struct roce_packet p;

        wr.flags |= i % 2 ? QHCA_WQE_SOLICITED : 0;
        rc_do(&x->ini, &wr);
        for (unsigned n = 1; n <= packets; n++) {
            CHECK(peer_next(&x->ini, &p));
            CHECK_EQ(p.solicited, wrs[w].se && i % 2 && n == packets);
        }
        peer_expect_none(&x->ini);
        if (wrs[w].opcode <= QHCA_WR_RDMA_WRITE_WITH_IMM) {
            peer_send(&x->ini, XRC(RC_ACKNOWLEDGE), p.psn, NULL, 0);
        }
    }
}

/* E-022, E-023: responses name no SRQ. */
static void answers(void)
{
    struct xrc *x = start_tgt(&RC_OPTS);
    struct roce_packet p = xrc_packet(x, 0, RC_READ_REQUEST, XRC_PSN, 3 * MTU);

    peer_inject(&x->tgt, &p, NULL, 0);
    peer_expect(&x->tgt, XRC(RC_READ_RESP_FIRST), XRC_PSN);
    p = peer_expect(&x->tgt, XRC(RC_READ_RESP_MIDDLE), XRC_PSN + 1);
    CHECK_EQ(p.payload_len, MTU);
    peer_expect(&x->tgt, XRC(RC_READ_RESP_LAST), XRC_PSN + 2);
    p = xrc_packet(x, 1, RC_READ_REQUEST, XRC_PSN + 3, 5);
    peer_inject(&x->tgt, &p, NULL, 0);
    p = peer_expect(&x->tgt, XRC(RC_READ_RESP_ONLY), XRC_PSN + 3);
    CHECK_EQ(p.payload_len, 5);
    p = xrc_packet(x, 1, RC_FETCH_ADD, XRC_PSN + 4, 0);
    peer_inject(&x->tgt, &p, NULL, 0);
    p = peer_expect(&x->tgt, XRC(RC_ATOMIC_ACKNOWLEDGE), XRC_PSN + 4);
    CHECK_EQ(p.msn, 3);
    p = xrc_packet(x, 1, RC_WRITE_ONLY, XRC_PSN + 5, 4);
    peer_inject(&x->tgt, &p, "abcd", 4);
    p = peer_expect(&x->tgt, XRC(RC_ACKNOWLEDGE), XRC_PSN + 5);
    CHECK_EQ(p.syndrome, AETH_ACK);
}

/* D-050, D-051: a duplicate uses the SRQ that the original named. */
static void doubles(void)
{
    struct xrc *x = start_tgt(&RC_OPTS);
    struct roce_packet p = xrc_packet(x, 0, RC_READ_REQUEST, XRC_PSN, 5);
    struct roce_packet w = xrc_packet(x, 1, RC_SEND_ONLY, XRC_PSN + 1, 0);

    peer_inject(&x->tgt, &p, NULL, 0);
    peer_expect(&x->tgt, XRC(RC_READ_RESP_ONLY), XRC_PSN);
    xrc_recv(x, 1, 1, 4);
    peer_inject(&x->tgt, &w, "abcd", 4);
    peer_expect(&x->tgt, XRC(RC_ACKNOWLEDGE), XRC_PSN + 1);
    rc_expect(&x->srq[1].cq, 1, QHCA_WC_SUCCESS);

    peer_inject(&x->tgt, &p, NULL, 0);   /* SRQ 1 was used last */
    peer_expect(&x->tgt, XRC(RC_READ_RESP_ONLY), XRC_PSN);
    p.srqn = x->srq[1].srqn;
    peer_inject(&x->tgt, &p, NULL, 0);
    peer_expect_none(&x->tgt);
    peer_inject(&x->tgt, &w, "abcd", 4);
    peer_expect(&x->tgt, XRC(RC_ACKNOWLEDGE), XRC_PSN + 1);
    rc_expect_none(&x->srq[1].cq);
    CHECK_EQ(rc_state(&x->tgt), QHCA_QPS_RTS);
}

static const struct test tests[] = {
    { "B-001 B-002 G-012 SENDs complete in the SRQ's CQ", sends },
    { "B-004 B-005 G-012 WRITEs", writes },
    { "B-006 READs", reads },
    { "B-007 B-008 atomics", atomics },
    { "B-003 B-070 SEND_WITH_INV", invalidates },
    { "F-006 G-012 keys must be of the SRQ's PD", keys },
    { "G-002 G-012 many TGT QPs, two SRQs", many_targets },
    { "G-004 an empty SRQ", empty },
    { "G-005 the limit of an SRQ", limit },
    { "E-009 E-027 packets of an INI QP", requests },
    { "B-045 SE of an INI QP", solicited },
    { "E-022 E-023 E-027 packets of a TGT QP", answers },
    { "D-050 D-051 duplicate requests", doubles },
};

TEST_MAIN(tests)
