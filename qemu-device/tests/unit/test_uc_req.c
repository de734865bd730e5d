/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the sending half of unreliable connections.
 */
#include "harness/fixture.h"
#include "tables.h"

#define SQ_PSN  0x111111u       /* sq_psn of RC_OPTS */
#define MTU     1024
#define UC(op)  (SVC_UC | RC_##op)

static void post(uint8_t opcode, uint32_t len)
{
    struct rc_wr wr = rc_wr(&qp, opcode, 0, len);

    wr.imm = 0x01020304;
    rc_aim(&wr, &node, NODE_MEM / 2);
    rc_do(&qp, &wr);
}

static void test_packets(void)
{
    static const struct {
        uint8_t wr, mid, first, last, only;
    } ops[] = {
        { QHCA_WR_SEND, UC(SEND_MIDDLE), UC(SEND_FIRST), UC(SEND_LAST),
          UC(SEND_ONLY) },
        { QHCA_WR_SEND_WITH_IMM, UC(SEND_MIDDLE), UC(SEND_FIRST),
          UC(SEND_LAST_IMM), UC(SEND_ONLY_IMM) },
        { QHCA_WR_RDMA_WRITE, UC(WRITE_MIDDLE), UC(WRITE_FIRST),
          UC(WRITE_LAST), UC(WRITE_ONLY) },
        { QHCA_WR_RDMA_WRITE_WITH_IMM, UC(WRITE_MIDDLE), UC(WRITE_FIRST),
          UC(WRITE_LAST_IMM), UC(WRITE_ONLY_IMM) },
    };
    static const uint32_t len[] = { 0, 1, MTU, MTU + 1, 70 * MTU };
    unsigned n = 0;
    uint32_t psn = SQ_PSN;

    start_type(QHCA_QPT_UC);
    for (size_t i = 0; i < ARRAY_SIZE(ops) * ARRAY_SIZE(len); i++) {
        uint32_t l = len[i / ARRAY_SIZE(ops)];
        uint32_t packets = l ? (l + MTU - 1) / MTU : 1;
        size_t op = i % ARRAY_SIZE(ops);

        post(ops[op].wr, l);
        done(n++, 0);                   /* B-061: without a response */
        for (uint32_t k = 0; k < packets; k++) {
            uint8_t want = packets == 1 ? ops[op].only :
                           k == 0 ? ops[op].first :
                           k == packets - 1 ? ops[op].last : ops[op].mid;
            struct roce_packet p = peer_expect(&qp, want, psn++);

            CHECK(!p.ackreq);                                   /* D-010 */
            CHECK_EQ(p.payload_len, k < packets - 1 ? MTU : l - k * MTU);
            CHECK(k || ops[op].wr < QHCA_WR_RDMA_WRITE ||
                  (p.dma_len == l && p.rkey == node.mr.key));
        }
        CHECK(g->host.deadline == UINT64_MAX);       /* no timer */
    }
    peer_expect_none(&qp);
    CHECK_EQ(rc_query(&qp).next_psn, htole32(psn));
    CHECK_EQ(rc_query(&qp).una_psn, htole32(psn));
}

/* SE is set in the packet that uses a receive WR. */
static void test_solicited(void)
{
    static const struct {
        uint8_t op;
        bool se;
    } ops[] = {
        { QHCA_WR_SEND, true }, { QHCA_WR_SEND_WITH_IMM, true },
        { QHCA_WR_RDMA_WRITE, false }, { QHCA_WR_RDMA_WRITE_WITH_IMM, true },
    };
    static const uint32_t len[] = { 0, MTU, 3 * MTU };
    struct roce_packet p;

    start_type(QHCA_QPT_UC);
    for (size_t i = 0; i < 2 * ARRAY_SIZE(ops) * ARRAY_SIZE(len); i++) {
        size_t op = i % ARRAY_SIZE(ops);
        uint32_t l = len[i / ARRAY_SIZE(ops) % ARRAY_SIZE(len)];
        bool ask = i < ARRAY_SIZE(ops) * ARRAY_SIZE(len);
        struct rc_wr wr = rc_wr(&qp, ops[op].op, 0, l);
        uint32_t packets = l ? l / MTU : 1, n = 0;

        rc_aim(&wr, &node, NODE_MEM / 2);
        wr.flags |= ask ? QHCA_WQE_SOLICITED : 0;
        rc_do(&qp, &wr);
        while (peer_next(&qp, &p)) {
            CHECK_EQ(p.solicited, ask && ++n == packets && ops[op].se);
        }
        CHECK_EQ(n, ask ? packets : 0);
    }
}

/* B-061, A-084, A-085: sending and SQD while the network is blocked. */
static void test_blocked(void)
{
    start_type(QHCA_QPT_UC);
    g->net_blocked = true;
    post(QHCA_WR_SEND, 500 * MTU);
    post(QHCA_WR_SEND, 8);
    rc_expect_none(&qp.scq);
    CHECK_EQ(rc_drain(&qp), QHCA_OK);
    CHECK(rc_query(&qp).sq_draining);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_ERR_STATE);  /* */
    no_event();
    guest_unblock(g);
    done(0, 0);
    eq_expect(&node.async, QHCA_EVENT_SQ_DRAINED, qp.qpn);
    CHECK_EQ(peer_drain(&qp), 500);
    rc_expect_none(&qp.scq);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    peer_expect(&qp, UC(SEND_ONLY), SQ_PSN + 500);
    done(1, 0);
    no_event();
}

/* The sender's own mistakes lead to SQE. */
static void test_send_errors(void)
{
    struct rc_wr wr;

    start_type(QHCA_QPT_UC);
    wr = rc_wr(&qp, QHCA_WR_LOCAL_INV, 0, 0);
    wr.num_sge = 0;
    rc_post(&qp, &wr);                  /* key 0 */
    post(QHCA_WR_SEND, 8);
    done(0, I_035_RQ);
    done(1, QHCA_WC_WR_FLUSH_ERR);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_SQE);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    wr = rc_wr(&qp, QHCA_WR_SEND, 0, 3 * MTU);
    wr.sge[0].lkey ^= 1;
    rc_post(&qp, &wr);
    done(2, I_042_RQ);
    peer_expect_none(&qp);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);

    /* The region is deregistered while its message is being sent. */
    struct gmr mr;

    start_type(QHCA_QPT_UC);
    mr = mr_create(g, node.pdn, 500 * MTU, 0);
    wr = rc_wr(&qp, QHCA_WR_SEND, 0, 500 * MTU);
    wr.sge[0].addr = mr.addr;
    wr.sge[0].lkey = mr.key;
    g->net_blocked = true;
    rc_post(&qp, &wr);
    post(QHCA_WR_SEND, 8);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, mr.key), QHCA_OK);
    guest_unblock(g);
    done(0, I_042_RQ);
    done(1, QHCA_WC_WR_FLUSH_ERR);
    CHECK_EQ(rc_state(&qp), I_042_RQ_QP);

    unsigned sent = peer_drain(&qp);    /* half of the message */

    CHECK(sent > 0 && sent < 500);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    post(QHCA_WR_SEND, 8);
    peer_expect(&qp, UC(SEND_ONLY), SQ_PSN + sent);             /* */
    done(2, 0);
    no_event();
}

static void test_loopback(void)
{
    struct rc_opts o = opts_of(QHCA_QPT_UC);

    start_pair(&o);
    for (unsigned i = 0; i < 40; i++) {
        rc_recv(&peer, i, NODE_MEM / 2, 400000);
        guest_fill(g, node.mr.addr, 400000, i);
        rc_send(&qp, 400000);
        done(i, 0);
        rc_expect(&peer.rcq, i, 0);
        CHECK(guest_is_filled(g, node.mr.addr + NODE_MEM / 2, 400000, i));
    }
    CHECK_EQ(counter(g, QHCA_CNT_RX_OUT_OF_SEQ), 0);
}

static const struct test tests[] = {
    { "B-061 D-001 D-004 D-005 D-010 E-025 packets of each WR", test_packets },
    { "B-045 SE", test_solicited },
    { "A-084 A-085 A-087 A-088 B-061 SQD with a blocked network",
      test_blocked },
    { "A-091 A-094 I-035 I-042 send errors", test_send_errors },
    { "D-085 a message in one piece within the device", test_loopback },
};

TEST_MAIN(tests)
