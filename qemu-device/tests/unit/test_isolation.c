/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Users of one HCA do not trust each other. Attacks: packets to a QP that is
 * connected to another QP, packets from the network in a neighbour's name, the
 * use of others' GIDs, and WRs that fill shared resources. The attacker knows
 * QPNs, PSNs and keys.
 */
#include "harness/debug.h"
#include "harness/xrc.h"

#define CANARY  64      /* seed of the victim's pattern */
#define OFF     8192    /* where the victim's data is */
#define LEN     256

/* Connected to @peer like @qp, with the same PSNs; @peer only to @qp. */
static struct rc_qp bad;

static void start(uint8_t type)
{
    struct rc_opts o = opts_of(type);

    start_pair(&o);
    o.retry = 1;
    o.timeout = 1;
    bad = rc_create(&node, &o);
    rc_set_peer(&bad, &node, peer.qpn);
    bad.o.sq_psn = qp.o.sq_psn;
    bad.o.rq_psn = peer.o.sq_psn;
    rc_bring_up(&bad, QHCA_QPS_RTS);
    guest_fill(g, node.mr.addr + OFF, LEN, CANARY);
}

/* Checks that the victim's data is unchanged and its QPs work. */
static void unharmed(uint64_t drops)
{
    struct rc_wr wr = rc_wr(&qp, QHCA_WR_SEND, 0, 8);

    CHECK_EQ(counter(g, QHCA_CNT_RX_BAD_ADDR), drops);
    CHECK(guest_is_filled(g, node.mr.addr + OFF, LEN, CANARY));
    rc_expect_none(&peer.rcq);
    CHECK_EQ(rc_state(&peer), QHCA_QPS_RTS);
    CHECK_EQ(le32toh(rc_query(&peer).epsn), qp.o.sq_psn);
    rc_do(&qp, &wr);
    rc_expect(&peer.rcq, 42, QHCA_WC_SUCCESS);
    rc_expect(&qp.scq, wr.wr_id, QHCA_WC_SUCCESS);
}

static void forge(uint8_t opcode)
{
    struct rc_wr wr = rc_wr(&bad, opcode, 0, 8);

    rc_aim(&wr, &node, OFF);
    rc_do(&bad, &wr);
}

/* Injects a packet from the network with the addresses of this port. */
static void spoof(struct rc_qp *to, uint8_t opcode, uint32_t psn)
{
    struct roce_packet p = peer_packet(to, opcode, psn);
    static const uint8_t data[8];

    p.va = node.mr.addr + OFF;
    p.rkey = node.mr.key;
    p.dma_len = sizeof(data);
    peer_inject(to, &p, data,
                roce_opcode(opcode)->flags & OPF_PAYLOAD ? sizeof(data) : 0);
}

/* D-086: requests, retries included, from a QP that is not the peer. */
static void test_neighbour_rc(void)
{
    static const uint8_t opcodes[] = {
        QHCA_WR_SEND, QHCA_WR_RDMA_WRITE, QHCA_WR_RDMA_READ,
        QHCA_WR_ATOMIC_FETCH_AND_ADD, QHCA_WR_RDMA_WRITE_WITH_IMM,
    };

    for (unsigned i = 0; i < ARRAY_SIZE(opcodes); i++) {
        start(QHCA_QPT_RC);
        rc_recv(&peer, 42, 0, 64);
        forge(opcodes[i]);
        guest_advance(g, 1000000000);
        rc_expect(&bad.scq, 0x1000, QHCA_WC_RETRY_EXC_ERR);
        unharmed(2);
    }
}

static void test_neighbour_uc(void)
{
    start(QHCA_QPT_UC);
    rc_recv(&peer, 42, 0, 64);
    forge(QHCA_WR_SEND);
    forge(QHCA_WR_RDMA_WRITE);
    unharmed(2);
}

static void test_neighbour_xrc(void)
{
    struct xrc *x = xrc_loop();
    struct rc_qp bad = xrc_ini(&RC_OPTS);
    struct rc_wr wr = xrc_wr(x, 0, QHCA_WR_RDMA_WRITE, 8);

    guest_fill(g, x->mr[0].addr, LEN, CANARY);
    rc_set_peer(&bad, &node, x->tgt.qpn);
    bad.o.sq_psn = x->ini.o.sq_psn;
    rc_bring_up(&bad, QHCA_QPS_RTS);
    rc_do(&bad, &wr);
    CHECK_EQ(counter(g, QHCA_CNT_RX_BAD_ADDR), 1);
    CHECK(guest_is_filled(g, x->mr[0].addr, LEN, CANARY));
    rc_finish(&x->ini, &wr, QHCA_WC_SUCCESS);
}

/* D-086: the network cannot forge a request or an ACK of a QP of this port. */
static void test_network(void)
{
    start(QHCA_QPT_RC);
    spoof(&peer, RC_WRITE_ONLY, qp.o.sq_psn);
    spoof(&peer, RC_SEND_ONLY, qp.o.sq_psn);
    rc_send(&qp, 8);                    /* no receive WR: stays outstanding */
    spoof(&qp, RC_ACKNOWLEDGE, qp.o.sq_psn);
    rc_expect_none(&qp.scq);
    rc_recv(&peer, 41, 0, 64);
    guest_advance(g, 1000000000);
    rc_expect(&peer.rcq, 41, QHCA_WC_SUCCESS);
    rc_expect(&qp.scq, 0x1000, QHCA_WC_SUCCESS);
    CHECK_EQ(counter(g, QHCA_CNT_RX_BAD_ADDR), 3);
    CHECK(guest_is_filled(g, node.mr.addr + OFF, LEN, CANARY));
}

/* Delivers a response to @a's first request, sent by QP @from. */
static void answer(uint8_t opcode, uint8_t syndrome, uint32_t from)
{
    struct roce_packet p = peer_packet(&qp, opcode, qp.o.sq_psn);
    uint8_t frame[MAX_FRAME] = { 0 };

    p.syndrome = syndrome;
    p.payload_len = roce_opcode(opcode)->flags & OPF_PAYLOAD ? 8 : 0;
    p.payload_len = opcode == ROCE_CNP ? CNP_LEN : p.payload_len;
    heap_use(g->heap);
    REQUIRE(vhca_fifo_push(&g->e->port->loop, frame, roce_finish(&p, frame),
                           from, 0));
    heap_use(NULL);
    qhca_engine_run(g->e, *g->clock);
    guest_settle(g);
}

/* D-086: responses and notifications from a QP that is not the peer. */
static void test_answers(void)
{
    static const struct {
        uint8_t request, opcode, syndrome, status;
    } rows[] = {
        { QHCA_WR_SEND, RC_ACKNOWLEDGE, AETH_ACK, QHCA_WC_SUCCESS },
        { QHCA_WR_SEND, RC_ACKNOWLEDGE, AETH_NAK_OP, QHCA_WC_REM_OP_ERR },
        { QHCA_WR_RDMA_READ, RC_READ_RESP_ONLY, AETH_ACK, QHCA_WC_SUCCESS },
        { QHCA_WR_ATOMIC_FETCH_AND_ADD, RC_ATOMIC_ACKNOWLEDGE, AETH_ACK,
          QHCA_WC_SUCCESS },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        struct rc_wr wr;

        start(QHCA_QPT_RC);
        wr = rc_wr(&qp, rows[i].request, 0, 8);
        rc_aim(&wr, &node, OFF);
        rc_set_state(&peer, QHCA_QPS_ERR);          /* @peer does not */
        rc_do(&qp, &wr);
        answer(rows[i].opcode, rows[i].syndrome, bad.qpn);
        answer(ROCE_CNP, 0, bad.qpn);
        rc_expect_none(&qp.scq);
        CHECK_EQ(counter(g, QHCA_CNT_RX_BAD_ADDR), 2);
        CHECK_EQ(counter(g, QHCA_CNT_RP_CNP_IGNORED), 0);
        answer(ROCE_CNP, 0, peer.qpn);
        answer(rows[i].opcode, rows[i].syndrome, peer.qpn);
        rc_expect(&qp.scq, wr.wr_id, rows[i].status);
        CHECK_EQ(counter(g, QHCA_CNT_RP_CNP_IGNORED), 1);
    }
}

/* ---- GIDs: page 1 is the harness's and may use entry 0 ---- */

#define ENTRY   1       /* GID of another user, 10.0.0.77 */
#define HOST    77

static void start_gids(void)
{
    struct rc_opts o = opts_of(QHCA_QPT_UD);

    start_node();
    gid_set_ipv4(g, ENTRY, HOST, test_mac);
    add_scripted(&o, QHCA_QPS_RTS);
}

/* Sends from GID entry @index; returns the status of the CQE. */
static uint8_t send_from(uint8_t index)
{
    struct rc_wr wr = rc_wr(&qp, QHCA_WR_SEND, 0, 8);
    struct qhca_cqe cqe;

    g->num_sent = 0;
    wr.av.sgid_index = index;
    rc_do(&qp, &wr);
    REQUIRE(cq_poll(&qp.scq, &cqe));
    if (cqe.status != QHCA_WC_SUCCESS) {
        CHECK_EQ(g->num_sent, 0);
        CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    }
    return cqe.status;
}

static void sent_from_host(unsigned host)
{
    struct roce_packet p;

    REQUIRE(g->num_sent == 1);
    CHECK_EQ(roce_parse(&p, g->sent[0].data, g->sent[0].len), ROCE_OK);
    CHECK_EQ(p.sgid[15], host);
}

/* D-087: a datagram must use a GID that its page is allowed. */
static void test_gid_of_others(void)
{
    start_gids();
    CHECK_EQ(send_from(0), QHCA_WC_SUCCESS);
    sent_from_host(1);
    CHECK_EQ(send_from(ENTRY), QHCA_WC_LOC_QP_OP_ERR);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_WQE), 1);
    CHECK_EQ(gid_allow(g, 2, ENTRY, 1), QHCA_OK);
    CHECK_EQ(send_from(ENTRY), QHCA_WC_LOC_QP_OP_ERR);
    CHECK_EQ(gid_allow(g, 1, ENTRY, 1), QHCA_OK);
    CHECK_EQ(send_from(ENTRY), QHCA_WC_SUCCESS);
    sent_from_host(HOST);
    /* The page's next owner has to be allowed again. */
    CHECK_EQ(gid_allow(g, 1, 0xffff, 0), QHCA_OK);
    CHECK_EQ(send_from(ENTRY), QHCA_WC_LOC_QP_OP_ERR);
    CHECK_EQ(send_from(0), QHCA_WC_LOC_QP_OP_ERR);
    CHECK(vhca_gid_allowed(g->e, 0, ENTRY));
    CHECK(vhca_gid_allowed(g->e, 2, ENTRY));
}

/* D-087: when an entry changes to another GID, no page is allowed it. */
static void test_gid_replaced(void)
{
    uint8_t gid[16] = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = HOST };

    start_gids();
    CHECK_EQ(gid_allow(g, 1, ENTRY, 1), QHCA_OK);
    CHECK_EQ(gid_set(g, ENTRY, gid, test_mac, QHCA_NO_VLAN), QHCA_OK);
    CHECK_EQ(send_from(ENTRY), QHCA_WC_SUCCESS);
    sent_from_host(HOST);
    gid[15]++;
    CHECK_EQ(gid_set(g, ENTRY, gid, test_mac, QHCA_NO_VLAN), QHCA_OK);
    CHECK_EQ(send_from(ENTRY), QHCA_WC_LOC_QP_OP_ERR);
    CHECK_EQ(gid_allow(g, 1, ENTRY, 1), QHCA_OK);
    CHECK_EQ(gid_set(g, ENTRY, gid, test_mac, 7), QHCA_OK);
    CHECK_EQ(send_from(ENTRY), QHCA_WC_LOC_QP_OP_ERR);
    CHECK_EQ(gid_allow(g, 1, ENTRY, 1), QHCA_OK);
    CHECK_EQ(gid_set(g, ENTRY, NULL, NULL, 7), QHCA_OK);
    CHECK_EQ(gid_allow(g, 1, ENTRY, 1), QHCA_ERR_STATE);
    CHECK_EQ(gid_set(g, ENTRY, gid, test_mac, 7), QHCA_OK);
    CHECK_EQ(send_from(ENTRY), QHCA_WC_LOC_QP_OP_ERR);
    CHECK_EQ(send_from(0), QHCA_WC_SUCCESS);
}

/* D-087: WQEs posted before an entry changes must not use the new GID. */
static void test_gid_replaced_meanwhile(void)
{
    struct roce_packet p;

    start_gids();
    g->net_blocked = true;
    for (unsigned i = 0; i < 120; i++) {
        struct rc_wr wr = rc_wr(&qp, QHCA_WR_SEND, 0, 8);

        wr.flags = 0;
        rc_do(&qp, &wr);
    }
    gid_set_ipv4(g, 0, HOST + 1, test_mac);
    guest_unblock(g);
    CHECK(g->num_sent > 0 && g->num_sent < 120);
    for (unsigned i = 0; i < g->num_sent; i++) {
        CHECK_EQ(roce_parse(&p, g->sent[i].data, g->sent[i].len), ROCE_OK);
        CHECK_EQ(p.sgid[15], 1);
    }
    CHECK(counter(g, QHCA_CNT_TX_DROPPED) > 0);
}

static void test_allow_gid(void)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_ALLOW_GID) };

    start_gids();
    CHECK_EQ(gid_allow(g, 0, 0, 1), QHCA_ERR_PARAM);
    CHECK_EQ(gid_allow(g, NUM_UARS, 0, 1), QHCA_ERR_PARAM);
    CHECK_EQ(gid_allow(g, 1, 0, 2), QHCA_ERR_PARAM);
    CHECK_EQ(gid_allow(g, 1, 128, 1), QHCA_ERR_LIMIT);
    CHECK_EQ(gid_allow(g, 1, 127, 1), QHCA_ERR_STATE);
    cmd.allow_gid.uar = htole32(1);
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_PARAM);  /* port 0 */
    CHECK_EQ(gid_allow(g, NUM_UARS - 1, ENTRY, 1), QHCA_OK);
    CHECK(vhca_gid_allowed(g->e, NUM_UARS - 1, ENTRY));
    qhca_engine_reset(g->e, *g->clock);
    CHECK(!vhca_gid_allowed(g->e, NUM_UARS - 1, ENTRY));
    CHECK(!vhca_gid_allowed(g->e, 1, 0));
}

/* ---- receive WRs ---- */

#define QPS     256u
#define SRQS    64u

/*
 * G-008: a process creates and resets QPs, which leave WRs behind in one SRQ
 * after the other. They occupy only the process's own rings: the device holds
 * no more memory than before, and others can receive.
 */
static void test_many_given_back(void)
{
    static const uint8_t data[1024];
    static struct rc_qp tgt[QPS];
    struct rc_opts o = RC_OPTS;
    struct xrc *x = xrc_new(&o);
    struct qhca_srqc c;
    uint64_t before, max;
    struct rc_qp a, b;
    struct gsrq mine, q;

    o.uar = 2;
    mine = srq_create_on(&node, node.pdn, 3, 1, o.uar);
    a = rc_create(&node, &o);
    o.srqn = mine.srqn;
    b = rc_create(&node, &o);
    rc_connect(&a, &b);
    srq_post(&mine, 7, 0, 100);

    o = RC_OPTS;
    for (unsigned i = 0; i < QPS; i++) {
        tgt[i] = xrc_tgt(x, &o);
        rc_set_peer(&tgt[i], &far, 0x77);
    }
    for (unsigned i = 0; i < SRQS; i++) {
        q = srq_create_xrc(&node, x->pdn[0], 8, 1, x->xrcdn);
        for (unsigned j = 0; j < QPS; j++) {
            srq_put(&q, j, 1, &(struct qhca_seg_le) {
                        x->mr[0].addr, 4096, x->mr[0].key });
        }
        srq_ring(&q);
        before = qhca_engine_memory(g->e, &max);
        for (unsigned j = 0; j < QPS; j++) {
            struct roce_packet p = peer_packet(&tgt[j], XRC(RC_SEND_FIRST),
                                               XRC_PSN);

            rc_bring_up(&tgt[j], QHCA_QPS_RTS);
            p.srqn = q.srqn;
            peer_inject(&tgt[j], &p, data, sizeof(data));
        }
        REQUIRE(srq_query(&q, &c) == QHCA_OK && le32toh(c.ci) == QPS);
        for (unsigned j = 0; j < QPS; j++) {
            CHECK_EQ(rc_set_state(&tgt[j], QHCA_QPS_RESET), QHCA_OK);
        }
        CHECK_EQ(qhca_engine_memory(g->e, &max), before);
    }
    rc_send(&a, 100);
    rc_expect(&b.rcq, 7, QHCA_WC_SUCCESS);
}

static const struct test tests[] = {
    { "D-086 a neighbour that is not the peer: RC", test_neighbour_rc },
    { "D-086 a neighbour that is not the peer: UC", test_neighbour_uc },
    { "D-086 a neighbour that is not the peer: XRC", test_neighbour_xrc },
    { "D-086 packets from the network in a neighbour's name", test_network },
    { "D-086 responses of a QP that is not the peer", test_answers },
    { "D-087 datagrams from the GID of another user", test_gid_of_others },
    { "D-087 a GID is replaced", test_gid_replaced },
    { "D-087 a GID is replaced while WQEs wait",
      test_gid_replaced_meanwhile },
    { "D-087 invalid arguments of ALLOW_GID, and a reset", test_allow_gid },
    { "G-008 WRs left behind take no memory of the device",
      test_many_given_back },
};

TEST_MAIN(tests)
