/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: XRC, refusals and failures: packets, SRQs that fail or are
 * destroyed, objects in use.
 */
#include "harness/budget.h"
#include "harness/debug.h"
#include "harness/xrc.h"

#define MTU     1024

static struct xrc *x;
static uint8_t data[MTU];

/* A TGT QP and its scripted peer. */
static void start(void)
{
    x = xrc_new(&RC_OPTS);
    xrc_alone(&x->tgt);
}

static void inject(unsigned i, uint8_t opcode, uint32_t psn, size_t len)
{
    struct roce_packet p = xrc_packet(x, i, opcode, psn, (uint32_t)len);

    peer_inject(&x->tgt, &p, data, len);
}

/* The TGT QP sends a NAK, enters ERR, and raises @event and LAST_WQE. */
static void expect_refusal(uint8_t syndrome, uint32_t psn, unsigned event)
{
    CHECK_EQ(peer_expect(&x->tgt, XRC(RC_ACKNOWLEDGE), psn).syndrome, syndrome);
    CHECK_EQ(rc_state(&x->tgt), QHCA_QPS_ERR);
    if (event) {
        eq_expect(&node.async, event, x->tgt.qpn);
    }
    eq_expect(&node.async, QHCA_EVENT_LAST_WQE_REACHED, x->tgt.qpn);
    eq_expect_none(&node.async);
}

/* ---- the XRCETH ---- */

/*
 * Each operation to an SRQ that does not exist, is no XRC SRQ, or is of another
 * domain.
 */
static void wrong_srq(void)
{
    static const uint8_t opcode[] = {
        RC_SEND_ONLY, RC_SEND_FIRST, RC_WRITE_ONLY, RC_WRITE_ONLY_IMM,
        RC_READ_REQUEST, RC_CMP_SWAP, RC_FETCH_ADD, RC_SEND_ONLY_INV,
    };

    for (unsigned n = 0; n < ARRAY_SIZE(opcode) * 4; n++) {
        uint8_t op = opcode[n / 4];
        bool has_data = roce_opcode(op)->flags & OPF_PAYLOAD;
        struct roce_packet p;
        struct gsrq other;

        start();
        switch (n % 4) {
        case 0:
            other.srqn = x->srq[0].srqn ^ 0x800000;
            break;
        case 1:
            other.srqn = 0;
            break;
        case 2:
            other = srq_create(&node, x->pdn[0], 3, 1);
            break;
        default:
            other = srq_create_xrc(&node, x->pdn[0], 3, 1, xrcd_create(g));
            break;
        }
        xrc_recv(x, 0, 1, MTU);
        p = xrc_packet(x, 0, op, XRC_PSN, has_data ? MTU : 8);
        p.srqn = other.srqn;
        memset(guest_ptr(g, x->mr[0].addr, MTU), 0x55, MTU);
        peer_inject(&x->tgt, &p, data, has_data ? MTU : 0);
        expect_refusal(AETH_NAK_INV_REQ, XRC_PSN, QHCA_EVENT_QP_ACCESS_ERR);
        CHECK(*(uint8_t *)guest_ptr(g, x->mr[0].addr, 1) == 0x55);
        rc_expect_none(&x->srq[0].cq);
    }
}

/* A message has one SRQ from its first packet to its last. */
static void other_midway(void)
{
    start();
    xrc_recv(x, 0, 1, 4096);
    xrc_recv(x, 1, 2, 4096);
    inject(0, RC_SEND_FIRST, XRC_PSN, MTU);
    peer_drain(&x->tgt);
    inject(1, RC_SEND_LAST, XRC_PSN + 1, 4);
    rc_expect(&x->srq[0].cq, 1, QHCA_WC_REM_INV_REQ_ERR);
    rc_expect_none(&x->srq[1].cq);
    expect_refusal(AETH_NAK_INV_REQ, XRC_PSN + 1, 0);
}

/* E-045: each QP has one half; services do not mix. */
static void wrong_half(void)
{
    struct roce_packet p;
    struct rc_qp rc;
    uint64_t dropped;

    start();
    xrc_alone(&x->ini);
    rc = rc_create(&node, &RC_OPTS);
    xrc_alone(&rc);
    xrc_recv(x, 0, 1, MTU);
    dropped = counter(g, QHCA_CNT_RX_NO_QP);

    p = xrc_packet(x, 0, RC_SEND_ONLY, XRC_PSN, 4);
    p.dest_qp = x->ini.qpn;
    peer_inject(&x->ini, &p, data, 4);
    p = xrc_packet(x, 0, RC_ACKNOWLEDGE, XRC_PSN, 0);
    peer_inject(&x->tgt, &p, data, 0);
    peer_send(&x->tgt, RC_SEND_ONLY, XRC_PSN, data, 4);
    p = peer_packet(&rc, XRC(RC_SEND_ONLY), XRC_PSN);
    p.srqn = x->srq[0].srqn;
    peer_inject(&rc, &p, data, 4);
    CHECK_EQ(counter(g, QHCA_CNT_RX_NO_QP), dropped + 4);
    peer_expect_none(&x->tgt);
    rc_expect_none(&x->srq[0].cq);
    CHECK_EQ(rc_state(&x->ini), QHCA_QPS_RTS);
    CHECK_EQ(rc_state(&x->tgt), QHCA_QPS_RTS);

    /* Reserved opcodes of the service are bad requests, as in RC. */
    inject(0, 0x15, XRC_PSN, 0);
    expect_refusal(AETH_NAK_INV_REQ, XRC_PSN, QHCA_EVENT_QP_REQ_ERR);
}

/* D-060: the QP's rights are checked before the SRQ, its WRs and the keys. */
static void order(void)
{
    struct rc_opts o = RC_OPTS;
    struct roce_packet p;

    o.access = 0;
    x = xrc_new(&o);
    xrc_alone(&x->tgt);
    p = xrc_packet(x, 0, RC_WRITE_ONLY_IMM, XRC_PSN, 4);
    p.srqn = 0;
    peer_inject(&x->tgt, &p, data, 4);
    expect_refusal(AETH_NAK_INV_REQ, XRC_PSN, QHCA_EVENT_QP_REQ_ERR);

    start();
    p = xrc_packet(x, 0, RC_WRITE_ONLY_IMM, XRC_PSN, 4);
    p.rkey = 0;
    peer_inject(&x->tgt, &p, data, 4);
    CHECK_EQ(AETH_TYPE(peer_expect(&x->tgt, XRC(RC_ACKNOWLEDGE),
                                   XRC_PSN).syndrome), AETH_RNR_NAK);
    CHECK_EQ(rc_state(&x->tgt), QHCA_QPS_RTS);
}

/* ---- SRQs and CQs that fail ---- */

/* G-010: a QP that needs the failed SRQ fails; others are not affected. */
static void srq_fails(void)
{
    struct roce_packet p;
    struct rc_qp other;

    start();
    other = xrc_tgt(x, &RC_OPTS);
    xrc_alone(&other);
    xrc_recv(x, 0, 1, MTU);
    xrc_recv(x, 1, 2, MTU);
    guest_spoil(g, gbuf_addr(&x->srq[0].ring, 0), 64);
    inject(0, RC_SEND_ONLY, XRC_PSN, 4);
    g->bad_from = g->bad_to = 0;
    eq_expect(&node.async, QHCA_EVENT_SRQ_ERR, x->srq[0].srqn);
    expect_refusal(AETH_NAK_OP, XRC_PSN, QHCA_EVENT_QP_FATAL);

    p = peer_packet(&other, XRC(RC_SEND_ONLY), XRC_PSN);
    p.srqn = x->srq[1].srqn;
    peer_inject(&other, &p, data, 4);
    rc_expect(&x->srq[1].cq, 2, QHCA_WC_SUCCESS);
    p.srqn = x->srq[0].srqn;
    p.psn++;
    peer_inject(&other, &p, data, 4);
    CHECK_EQ(rc_state(&other), QHCA_QPS_ERR);
    eq_expect(&node.async, QHCA_EVENT_QP_FATAL, other.qpn);
}

/* C-028, H-001, H-002: an SRQ fails if its CQ does. */
static void cq_fails(void)
{
    struct qhca_eqe eqe[2];
    struct qhca_srqc c;

    start();
    for (unsigned i = 0; i < 4; i++) {
        xrc_recv(x, 0, i, MTU);
    }
    guest_spoil(g, gbuf_addr(&x->srq[0].cq.buf, 0), 64);
    inject(0, RC_SEND_ONLY, XRC_PSN, 4);
    g->bad_from = g->bad_to = 0;
    peer_expect_none(&x->tgt);          /* no ACK without a CQE */
    eq_expect(&node.async, QHCA_EVENT_QP_FATAL, x->tgt.qpn);
    eq_expect(&node.async, QHCA_EVENT_CQ_ERR, x->srq[0].cq.cqn);
    /* The QP may be flushed before or after the search for SRQs ends. */
    for (unsigned i = 0; i < 2; i++) {
        bool srq;

        REQUIRE(eq_next(&node.async, &eqe[i]));
        srq = eqe[i].type == QHCA_EVENT_SRQ_ERR;
        CHECK(srq || eqe[i].type == QHCA_EVENT_LAST_WQE_REACHED);
        CHECK_EQ(le32toh(eqe[i].obj), srq ? x->srq[0].srqn : x->tgt.qpn);
    }
    CHECK(eqe[0].type != eqe[1].type);
    CHECK_EQ(rc_state(&x->tgt), QHCA_QPS_ERR);
    CHECK_EQ(srq_query(&x->srq[0], &c), QHCA_ERR_STATE);
    CHECK_EQ(srq_query(&x->srq[1], &c), QHCA_OK);

    /* I-005: later requests to the failed SRQ are refused. */
    CHECK_EQ(rc_set_state(&x->tgt, QHCA_QPS_RESET), QHCA_OK);
    rc_bring_up(&x->tgt, QHCA_QPS_RTS);
    inject(0, RC_SEND_ONLY, XRC_PSN, 4);
    expect_refusal(AETH_NAK_OP, XRC_PSN, QHCA_EVENT_QP_FATAL);
}

/* A process may end while others' QPs are in the middle of a message to it. */
static void srq_goes(void)
{
    start();
    xrc_recv(x, 0, 1, 4096);
    inject(0, RC_SEND_FIRST, XRC_PSN, MTU);
    peer_drain(&x->tgt);
    CHECK_EQ(srq_destroy(&x->srq[0]), QHCA_OK);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_CQ, x->srq[0].cq.cqn), QHCA_OK);
    inject(0, RC_SEND_LAST, XRC_PSN + 1, 4);
    expect_refusal(AETH_NAK_INV_REQ, XRC_PSN + 1, QHCA_EVENT_QP_ACCESS_ERR);

    /* A READ request whose SRQ is already destroyed is refused as well. */
    start();
    inject(0, RC_READ_REQUEST, XRC_PSN, 0);
    peer_drain(&x->tgt);
    CHECK_EQ(srq_destroy(&x->srq[0]), QHCA_OK);
    inject(0, RC_READ_REQUEST, XRC_PSN + 1, 0);
    expect_refusal(AETH_NAK_INV_REQ, XRC_PSN + 1, QHCA_EVENT_QP_ACCESS_ERR);
}

#define UNITS   20u     /* in a millisecond, with one percent of the CPU */

/* An SRQ is destroyed step by step on a device with little CPU time. */
static void srq_goes_slowly(void)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_DESTROY_SRQ) };
    unsigned objects, irqs;

    start();
    xrc_recv(x, 0, 1, 4096);
    inject(0, RC_SEND_FIRST, XRC_PSN, MTU);
    peer_drain(&x->tgt);
    objects = qhca_engine_num_objects(g->e);
    irqs = g->irqs[0];
    limit_cpu(g, 1);
    cmd.obj.obj = htole32(x->srq[0].srqn);
    guest_cmd_start(g, &cmd, 1);
    CHECK(g->e->spent <= UNITS + 2);
    CHECK_EQ(g->irqs[0], irqs);
    CHECK_EQ(qhca_engine_num_objects(g->e), objects);
    inject(0, RC_SEND_LAST, XRC_PSN + 1, 4);    /* the SRQ is half destroyed */
    guest_advance(g, 1000000000);
    CHECK_EQ(guest_cmd_comp(g, g->cmd_ci++)->status, QHCA_OK);
    CHECK_EQ(qhca_engine_num_objects(g->e), objects - 1);
    CHECK_EQ(rc_state(&x->tgt), QHCA_QPS_ERR);
    CHECK_EQ(peer_expect(&x->tgt, XRC(RC_ACKNOWLEDGE), XRC_PSN + 1).syndrome,
             AETH_NAK_INV_REQ);
}

/* G-008: a destroyed QP gives back the WR that it has taken. */
static void qp_goes(void)
{
    struct qhca_srqc c;

    for (unsigned destroy = 0; destroy < 2; destroy++) {
        start();
        xrc_recv(x, 0, 1, 4096);
        inject(0, RC_SEND_FIRST, XRC_PSN, MTU);
        if (destroy) {
            CHECK_EQ(rc_destroy(&x->tgt), QHCA_OK);
        } else {
            CHECK_EQ(rc_set_state(&x->tgt, QHCA_QPS_RESET), QHCA_OK);
            CHECK_EQ(le32toh(rc_query(&x->tgt).srqn), 0);
        }
        CHECK_EQ(srq_query(&x->srq[0], &c), QHCA_OK);
        CHECK_EQ(le32toh(c.ci), 0);
        CHECK_EQ(le32toh(c.held), 0);
    }
}

/* H-008: in ERR a TGT QP flushes its WR, an INI QP all WRs. */
static void flushes(void)
{
    struct rc_wr wr;
    struct qhca_cqe c;

    start();
    xrc_alone(&x->ini);
    xrc_recv(x, 0, 1, 4096);
    xrc_recv(x, 0, 2, 4096);
    inject(0, RC_SEND_FIRST, XRC_PSN, MTU);
    CHECK_EQ(rc_set_state(&x->tgt, QHCA_QPS_ERR), QHCA_OK);
    c = rc_expect(&x->srq[0].cq, 1, QHCA_WC_WR_FLUSH_ERR);
    CHECK_EQ(le32toh(c.srqn), x->srq[0].srqn);
    rc_expect_none(&x->srq[0].cq);
    eq_expect(&node.async, QHCA_EVENT_LAST_WQE_REACHED, x->tgt.qpn);

    wr = xrc_wr(x, 0, QHCA_WR_SEND, 10);
    rc_post(&x->ini, &wr);
    rc_post(&x->ini, &wr);
    CHECK_EQ(rc_set_state(&x->ini, QHCA_QPS_ERR), QHCA_OK);
    rc_expect(&x->ini.scq, wr.wr_id, QHCA_WC_WR_FLUSH_ERR);
    rc_expect(&x->ini.scq, wr.wr_id, QHCA_WC_WR_FLUSH_ERR);
}

/* The network loses all packets: an INI QP gives up like an RC QP. */
static void nobody_there(void)
{
    struct rc_opts o = RC_OPTS;
    struct rc_wr wr;

    o.retry = 2;
    x = xrc_new(&o);
    xrc_alone(&x->ini);
    wr = xrc_wr(x, 0, QHCA_WR_SEND, 10);
    rc_do(&x->ini, &wr);
    guest_advance(g, 1000000000);
    rc_expect(&x->ini.scq, wr.wr_id, QHCA_WC_RETRY_EXC_ERR);
    CHECK_EQ(counter(g, QHCA_CNT_RETRANSMIT), 2);
    CHECK_EQ(rc_state(&x->ini), QHCA_QPS_ERR);                  /* not SQE */
}

static const struct test tests[] = {
    { "G-012 H-004 no such SRQ, or of another domain", wrong_srq },
    { "G-012 another SRQ in the middle of a message", other_midway },
    { "E-027 E-045 packets for the other half", wrong_half },
    { "D-060 G-012 order of the checks", order },
    { "G-010 an SRQ that cannot be read", srq_fails },
    { "C-028 H-001 H-002 an SRQ whose CQ fails", cq_fails },
    { "G-012 an SRQ that is destroyed", srq_goes },
    { "G-012 an SRQ that is destroyed bit by bit", srq_goes_slowly },
    { "G-008 a QP that is destroyed", qp_goes },
    { "A-097 A-102 H-008 ERR", flushes },
    { "D-046 A-096 no response", nobody_there },
};

TEST_MAIN(tests)
