/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: what QUERY_DEVICE, QUERY_CQ, QUERY_SRQ and QUERY_QP tell,
 * every byte of it, of objects whose fields differ from each other and from 0.
 */
#include "harness/fixture.h"
#include "harness/srq.h"

/* The answer must be @want, and nothing may be written behind it. */
static void check(unsigned opcode, uint32_t number, const void *want,
                  size_t len)
{
    uint8_t answer[256];

    REQUIRE(len < sizeof(answer));
    CHECK_EQ(guest_query(g, opcode, number, answer, len), QHCA_OK);
    for (size_t i = 0; i < len; i++) {
        if (answer[i] != ((const uint8_t *)want)[i]) {
            tap_note("opcode 0x%x, byte %zu: 0x%x, not 0x%x", opcode, i,
                     answer[i], ((const uint8_t *)want)[i]);
            CHECK(!"the answer");
        }
    }
}

static void completion_queue(void)
{
    struct rc_opts o = RC_OPTS;
    struct qhca_cqc want;
    struct qhca_cqe cqe;

    o.uar = 3;
    o.cq_log = 2;
    start_pair(&o);
    CHECK_EQ(cq_moderate(&qp.scq, 7, 999), QHCA_OK);
    for (unsigned i = 0; i < 5; i++) {
        rc_recv(&peer, i, 0, 8);
        rc_send(&qp, 8);
        REQUIRE(cq_poll(&qp.scq, &cqe) && cq_poll(&peer.rcq, &cqe));
    }
    qp.scq.sn = 8;
    cq_arm(&qp.scq, true);
    want = (struct qhca_cqc) {
        .cqn = htole32(qp.scq.cqn), .uar = htole32(3),
        .eqn = htole32(node.comp.eqn), .pi = htole32(5),
        .ci = htole32(4),        /* it is read when the ring looks full */
        .arm_sn = htole32(9), .log_size = (uint8_t)o.cq_log,
        .arm = QHCA_CQ_ARM_SOLICITED, .users = htole32(1),
        .count = htole32(7), .period = htole32(999),
    };
    check(QHCA_CMD_QUERY_CQ, qp.scq.cqn, &want, sizeof(want));
}

static void shared_queue(void)
{
    struct rc_opts o = RC_OPTS;
    struct qhca_srqc want;
    struct gsrq q;

    start_node();
    (void)xrcd_create(g);
    o.xrcdn = xrcd_create(g);
    q = srq_create_xrc(&node, node.pdn, 5, 3, o.xrcdn);
    srq_fill(&q, 9, 8);
    CHECK_EQ(srq_limit(&q, 4), QHCA_OK);
    want = (struct qhca_srqc) {
        .srqn = htole32(q.srqn), .pdn = htole32(node.pdn), .uar = htole32(1),
        .pi = htole32(9), .limit = htole32(4), .max_sge = htole32(3),
        .log_size = 5, .log_stride = (uint8_t)q.stride,
        .flags = g->dbrecs ? QHCA_SRQ_DBREC : 0, .xrcdn = htole32(o.xrcdn),
        .cqn = htole32(q.cq.cqn),
    };
    check(QHCA_CMD_QUERY_SRQ, q.srqn, &want, sizeof(want));

    q = srq_create_on(&node, node.pdn, 4, 2, 2);
    srq_fill(&q, 7, 8);
    o.srqn = q.srqn;
    rc_pair(&node, &o, &qp, &peer);
    for (unsigned i = 0; i < 2; i++) {
        rc_send(&qp, 8);
    }
    want = (struct qhca_srqc) {
        .srqn = htole32(q.srqn), .pdn = htole32(node.pdn), .uar = htole32(2),
        .pi = htole32(7), .ci = htole32(2), .max_sge = htole32(2),
        .users = htole32(2), .log_size = 4, .log_stride = (uint8_t)q.stride,
        .flags = g->dbrecs ? QHCA_SRQ_DBREC : 0,
    };
    check(QHCA_CMD_QUERY_SRQ, q.srqn, &want, sizeof(want));
}

/* Every attribute has a value of its own. */
static struct qhca_qp_attr distinct(void)
{
    struct qhca_qp_attr a = rc_attr(&qp);

    a.av.flow_label = htole32(0x54321);
    a.av.hop_limit = 77;
    a.av.tclass = 0x9c;
    a.av.sl = 5;
    a.av.static_rate = 11;
    a.path_mtu = 4;
    a.max_rd_atomic = 3;
    a.max_dest_rd_atomic = 2;
    a.min_rnr_timer = 13;
    a.timeout = 17;
    a.retry_cnt = 6;
    a.rnr_retry = 1;
    a.access = htole16(QHCA_ACCESS_REMOTE_READ);
    a.rate_limit = htole32(123456);
    return a;
}

static void queue_pair(void)
{
    struct rc_opts o = RC_OPTS;
    struct qhca_qp_attr a;
    struct qhca_qpc want;

    start_node();
    o.uar = 2;
    o.qp_flags = QHCA_QP_FLAG_SIGNAL_ALL;
    qp = rc_create(&node, &o);
    rc_set_peer(&qp, &node, 0x77);
    a = distinct();
    for (unsigned s = QHCA_QPS_INIT; s <= QHCA_QPS_RTS; s++) {
        a.state = (uint8_t)s;
        CHECK_EQ(rc_modify(&qp, &a, rc_step_mask(o.type, s) |
                           (s == QHCA_QPS_RTS ? QHCA_QP_RATE_LIMIT : 0)),
                 QHCA_OK);
    }
    for (unsigned i = 0; i < 5; i++) {
        rc_recv(&qp, i, 0, 8);
    }
    /* Two packets, which get no ACK; the other SEND waits its turn. */
    rc_send(&qp, 3000);
    rc_send(&qp, 8);
    a.cur_state = a.state;
    want = (struct qhca_qpc) {
        .attr = a, .qpn = htole32(qp.qpn), .pdn = htole32(node.pdn),
        .uar = htole32(2), .send_cqn = htole32(qp.scq.cqn),
        .recv_cqn = htole32(qp.rcq.cqn), .sq_pi = htole32(2),
        .sq_next = htole32(1), .rq_pi = htole32(5),
        .next_psn = htole32(o.sq_psn + 2), .una_psn = htole32(o.sq_psn),
        .epsn = htole32(o.rq_psn), .type = QHCA_QPT_RC,
        .flags = QHCA_QP_FLAG_SIGNAL_ALL |
                 (g->dbrecs ? QHCA_QP_FLAG_RQ_DBREC : 0),
        .retries_left = 6, .rnr_retries_left = 1,
    };
    check(QHCA_CMD_QUERY_QP, qp.qpn, &want, sizeof(want));
}

/* Other tests show that a device delivers each of these, and no more. */
static void device(void)
{
    const struct qhca_device_attr want = {
        .fw_version = htole64(0x10000),     /* 0.1.0 */
        .node_guid = htole64(0x505400fffe123456),
        .max_mr_size = htole64(VHCA_MAX_MR_SIZE),
        .caps = htole64(QHCA_CAP_SHADOW), .max_pd = htole32(VHCA_MAX_PD),
        .max_mr = htole32(VHCA_MAX_MR), .max_cq = htole32(VHCA_MAX_CQ),
        .max_qp = htole32(1024), .max_ethq = htole32(16),
        .max_uar = htole32(NUM_UARS), .max_gid = htole32(VHCA_MAX_GID),
        .max_mcast = htole32(VHCA_MAX_MCAST),
        .max_mcast_grp = htole32(VHCA_MAX_MCAST_GRP),
        .max_mcast_qp = htole32(VHCA_MAX_MCAST_QP),
        .max_table_blocks = htole32(VHCA_MAX_TABLE_BLOCKS),
        .max_cqe_log = htole32(VHCA_CQ_LOG_MAX),
        .max_sq_wr_log = htole32(VHCA_WQ_LOG_MAX),
        .max_rq_wr_log = htole32(VHCA_WQ_LOG_MAX),
        .max_ethq_log = htole32(VHCA_ETHQ_LOG_MAX),
        .max_send_sge = htole32(QHCA_MAX_SEND_SGE),
        .max_recv_sge = htole32(QHCA_MAX_RECV_SGE),
        .max_inline = htole32(QHCA_MAX_INLINE),
        .max_rd_atomic = htole32(VHCA_MAX_RD_ATOMIC),
        .reserved_lkey = htole32(VHCA_RESERVED_LKEY),
        .max_msg_size = htole32(VHCA_MAX_MSG),
        .max_fast_reg_blocks = htole32(VHCA_MAX_FAST_REG),
        .max_mw = htole32(VHCA_MAX_MW), .max_srq = htole32(VHCA_MAX_SRQ),
        .max_srq_wr_log = htole32(VHCA_SRQ_LOG_MAX),
        .max_srq_sge = htole32(QHCA_MAX_RECV_SGE),
        .max_cq_count = htole32(VHCA_MAX_CQ_COUNT),
        .max_cq_period = htole32(VHCA_MAX_CQ_PERIOD),
        .max_tso = htole32(VHCA_MAX_TSO), .max_xrcd = htole32(VHCA_MAX_XRCD),
        .null_lkey = htole32(VHCA_NULL_LKEY),
        .max_cntset = htole32(VHCA_MAX_CNTSET),
    };

    start_node();
    check(QHCA_CMD_QUERY_DEVICE, 0, &want, sizeof(want));
}

static const struct test tests[] = {
    { "J-001 QUERY_DEVICE", device },
    { "QUERY_CQ", completion_queue },
    { "QUERY_SRQ, with an XRC domain and without", shared_queue },
    { "A-017: QUERY_QP tells each attribute as it was set, and the progress",
      queue_pair },
};

TEST_MAIN(tests)
