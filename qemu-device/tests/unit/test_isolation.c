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

/* struct scene - two connected QPs, and an attacker */
struct scene {
    struct node n;
    struct guest *g;
    struct rc_qp a, b, bad;
};

static struct scene scene;

/* @bad is connected to @b like @a, with the same PSNs; @b only to @a. */
static struct scene *scene_new(uint8_t type)
{
    struct scene *s = &scene;
    struct rc_opts o = RC_OPTS;

    o.type = type;
    s->n = node_new(NULL, 1);
    s->g = s->n.g;
    rc_pair(&s->n, &o, &s->a, &s->b);
    o.retry = 1;
    o.timeout = 1;
    s->bad = rc_create(&s->n, &o);
    rc_set_peer(&s->bad, &s->n, s->b.qpn);
    s->bad.o.sq_psn = s->a.o.sq_psn;
    s->bad.o.rq_psn = s->b.o.sq_psn;
    rc_bring_up(&s->bad, QHCA_QPS_RTS);
    guest_fill(s->g, s->n.mr.addr + OFF, LEN, CANARY);
    return s;
}

/* Checks that the victim's data is unchanged and its QPs work. */
static void unharmed(struct scene *s, uint64_t drops)
{
    struct rc_wr wr = rc_wr(&s->a, QHCA_WR_SEND, 0, 8);

    CHECK_EQ(counter(s->g, QHCA_CNT_RX_BAD_ADDR), drops);
    CHECK(guest_is_filled(s->g, s->n.mr.addr + OFF, LEN, CANARY));
    rc_expect_none(&s->b.rcq);
    CHECK_EQ(rc_state(&s->b), QHCA_QPS_RTS);
    CHECK_EQ(le32toh(rc_query(&s->b).epsn), s->a.o.sq_psn);
    rc_do(&s->a, &wr);
    rc_expect(&s->b.rcq, 42, QHCA_WC_SUCCESS);
    rc_expect(&s->a.scq, wr.wr_id, QHCA_WC_SUCCESS);
}

static void forge(struct scene *s, uint8_t opcode)
{
    struct rc_wr wr = rc_wr(&s->bad, opcode, 0, 8);

    rc_aim(&wr, &s->n, OFF);
    rc_do(&s->bad, &wr);
}

/* Injects a packet from the network with the addresses of this port. */
static void spoof(struct scene *s, struct rc_qp *to, uint8_t opcode,
                  uint32_t psn)
{
    struct roce_packet p = peer_packet(to, opcode, psn);
    static const uint8_t data[8];

    p.va = s->n.mr.addr + OFF;
    p.rkey = s->n.mr.key;
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
        struct scene *s = scene_new(QHCA_QPT_RC);

        rc_recv(&s->b, 42, 0, 64);
        forge(s, opcodes[i]);
        guest_advance(s->g, 1000000000);
        rc_expect(&s->bad.scq, 0x1000, QHCA_WC_RETRY_EXC_ERR);
        unharmed(s, 2);
        harness_cleanup();
    }
}

static void test_neighbour_uc(void)
{
    struct scene *s = scene_new(QHCA_QPT_UC);

    rc_recv(&s->b, 42, 0, 64);
    forge(s, QHCA_WR_SEND);
    forge(s, QHCA_WR_RDMA_WRITE);
    unharmed(s, 2);
}

static void test_neighbour_xrc(void)
{
    struct xrc *x = xrc_loop();
    struct rc_qp bad = xrc_ini(x, &RC_OPTS);
    struct rc_wr wr = xrc_wr(x, 0, QHCA_WR_RDMA_WRITE, 8);

    guest_fill(x->g, x->mr[0].addr, LEN, CANARY);
    rc_set_peer(&bad, &x->n, x->tgt.qpn);
    bad.o.sq_psn = x->ini.o.sq_psn;
    rc_bring_up(&bad, QHCA_QPS_RTS);
    rc_do(&bad, &wr);
    CHECK_EQ(counter(x->g, QHCA_CNT_RX_BAD_ADDR), 1);
    CHECK(guest_is_filled(x->g, x->mr[0].addr, LEN, CANARY));
    rc_finish(&x->ini, &wr, QHCA_WC_SUCCESS);
}

/* D-086: the network cannot forge a request or an ACK of a QP of this port. */
static void test_network(void)
{
    struct scene *s = scene_new(QHCA_QPT_RC);
    struct rc_wr wr = rc_wr(&s->a, QHCA_WR_SEND, 0, 8);

    spoof(s, &s->b, RC_WRITE_ONLY, s->a.o.sq_psn);
    spoof(s, &s->b, RC_SEND_ONLY, s->a.o.sq_psn);
    rc_do(&s->a, &wr);                  /* no receive WR: stays outstanding */
    spoof(s, &s->a, RC_ACKNOWLEDGE, s->a.o.sq_psn);
    rc_expect_none(&s->a.scq);
    rc_recv(&s->b, 41, 0, 64);
    guest_advance(s->g, 1000000000);
    rc_expect(&s->b.rcq, 41, QHCA_WC_SUCCESS);
    rc_expect(&s->a.scq, 0x1000, QHCA_WC_SUCCESS);
    CHECK_EQ(counter(s->g, QHCA_CNT_RX_BAD_ADDR), 3);
    CHECK(guest_is_filled(s->g, s->n.mr.addr + OFF, LEN, CANARY));
}

/* Delivers a response to @a's first request, sent by QP @from. */
static void answer(struct scene *s, uint8_t opcode, uint8_t syndrome,
                   uint32_t from)
{
    struct roce_packet p = peer_packet(&s->a, opcode, s->a.o.sq_psn);
    uint8_t frame[MAX_FRAME] = { 0 };

    p.syndrome = syndrome;
    p.payload_len = roce_opcode(opcode)->flags & OPF_PAYLOAD ? 8 : 0;
    p.payload_len = opcode == ROCE_CNP ? CNP_LEN : p.payload_len;
    heap_use(s->g->heap);
    REQUIRE(vhca_fifo_push(&s->g->e->port->loop, frame, roce_finish(&p, frame),
                           from));
    heap_use(NULL);
    qhca_engine_run(s->g->e, *s->g->clock);
    guest_settle(s->g);
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
        struct scene *s = scene_new(QHCA_QPT_RC);
        struct rc_wr wr = rc_wr(&s->a, rows[i].request, 0, 8);

        rc_aim(&wr, &s->n, OFF);
        rc_set_state(&s->b, QHCA_QPS_ERR);          /* @b does not respond */
        rc_do(&s->a, &wr);
        answer(s, rows[i].opcode, rows[i].syndrome, s->bad.qpn);
        answer(s, ROCE_CNP, 0, s->bad.qpn);
        rc_expect_none(&s->a.scq);
        CHECK_EQ(counter(s->g, QHCA_CNT_RX_BAD_ADDR), 2);
        CHECK_EQ(counter(s->g, QHCA_CNT_RX_CNP), 0);
        answer(s, ROCE_CNP, 0, s->b.qpn);
        answer(s, rows[i].opcode, rows[i].syndrome, s->b.qpn);
        rc_expect(&s->a.scq, wr.wr_id, rows[i].status);
        CHECK_EQ(counter(s->g, QHCA_CNT_RX_CNP), 1);
        harness_cleanup();
    }
}

/* ---- GIDs: page 1 is the harness's and may use entry 0 ---- */

#define ENTRY   1       /* GID of another user, 10.0.0.77 */
#define HOST    77

struct gid_scene {
    struct node n;
    struct guest *g;
    struct rc_qp ud;
    unsigned posted;
};

static struct gid_scene gid_scene;

static struct gid_scene *gid_scene_new(void)
{
    static struct node far = { .host = 9, .vlan = QHCA_NO_VLAN };
    struct gid_scene *s = &gid_scene;
    struct rc_opts o = RC_OPTS;

    o.type = QHCA_QPT_UD;
    memset(s, 0, sizeof(*s));
    s->n = node_new(NULL, 1);
    s->g = s->n.g;
    gid_set_ipv4(s->g, ENTRY, HOST, test_mac);
    s->ud = rc_create(&s->n, &o);
    rc_set_peer(&s->ud, &far, 0x4242);
    rc_bring_up(&s->ud, QHCA_QPS_RTS);
    return s;
}

/* Sends from GID entry @index; returns the status of the CQE. */
static uint8_t send_from(struct gid_scene *s, uint8_t index)
{
    struct rc_wr wr = rc_wr(&s->ud, QHCA_WR_SEND, 0, 8);
    struct qhca_cqe cqe;

    s->g->num_sent = 0;
    wr.av.sgid_index = index;
    rc_do(&s->ud, &wr);
    REQUIRE(cq_poll(&s->ud.scq, &cqe));
    if (cqe.status != QHCA_WC_SUCCESS) {
        CHECK_EQ(s->g->num_sent, 0);
        CHECK_EQ(rc_set_state(&s->ud, QHCA_QPS_RTS), QHCA_OK);
    }
    return cqe.status;
}

static void sent_from_host(struct gid_scene *s, unsigned host)
{
    struct roce_packet p;

    REQUIRE(s->g->num_sent == 1);
    CHECK_EQ(roce_parse(&p, s->g->sent[0].data, s->g->sent[0].len), ROCE_OK);
    CHECK_EQ(p.sgid[15], host);
}

/* D-087: a datagram must use a GID that its page is allowed. */
static void test_gid_of_others(void)
{
    struct gid_scene *s = gid_scene_new();

    CHECK_EQ(send_from(s, 0), QHCA_WC_SUCCESS);
    sent_from_host(s, 1);
    CHECK_EQ(send_from(s, ENTRY), QHCA_WC_LOC_QP_OP_ERR);
    CHECK_EQ(counter(s->g, QHCA_CNT_BAD_WQE), 1);
    CHECK_EQ(gid_allow(s->g, 2, ENTRY, 1), QHCA_OK);
    CHECK_EQ(send_from(s, ENTRY), QHCA_WC_LOC_QP_OP_ERR);
    CHECK_EQ(gid_allow(s->g, 1, ENTRY, 1), QHCA_OK);
    CHECK_EQ(send_from(s, ENTRY), QHCA_WC_SUCCESS);
    sent_from_host(s, HOST);
    /* The page's next owner has to be allowed again. */
    CHECK_EQ(gid_allow(s->g, 1, 0xffff, 0), QHCA_OK);
    CHECK_EQ(send_from(s, ENTRY), QHCA_WC_LOC_QP_OP_ERR);
    CHECK_EQ(send_from(s, 0), QHCA_WC_LOC_QP_OP_ERR);
    CHECK(vhca_gid_allowed(s->g->e, 0, ENTRY));
    CHECK(vhca_gid_allowed(s->g->e, 2, ENTRY));
}

/* D-087: when an entry changes to another GID, no page is allowed it. */
static void test_gid_replaced(void)
{
    uint8_t gid[16] = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = HOST };
    struct gid_scene *s = gid_scene_new();

    CHECK_EQ(gid_allow(s->g, 1, ENTRY, 1), QHCA_OK);
    CHECK_EQ(gid_set(s->g, ENTRY, gid, test_mac, QHCA_NO_VLAN), QHCA_OK);
    CHECK_EQ(send_from(s, ENTRY), QHCA_WC_SUCCESS);
    sent_from_host(s, HOST);
    gid[15]++;
    CHECK_EQ(gid_set(s->g, ENTRY, gid, test_mac, QHCA_NO_VLAN), QHCA_OK);
    CHECK_EQ(send_from(s, ENTRY), QHCA_WC_LOC_QP_OP_ERR);
    CHECK_EQ(gid_allow(s->g, 1, ENTRY, 1), QHCA_OK);
    CHECK_EQ(gid_set(s->g, ENTRY, gid, test_mac, 7), QHCA_OK);
    CHECK_EQ(send_from(s, ENTRY), QHCA_WC_LOC_QP_OP_ERR);
    CHECK_EQ(gid_allow(s->g, 1, ENTRY, 1), QHCA_OK);
    CHECK_EQ(gid_set(s->g, ENTRY, NULL, NULL, 7), QHCA_OK);
    CHECK_EQ(gid_allow(s->g, 1, ENTRY, 1), QHCA_ERR_STATE);
    CHECK_EQ(gid_set(s->g, ENTRY, gid, test_mac, 7), QHCA_OK);
    CHECK_EQ(send_from(s, ENTRY), QHCA_WC_LOC_QP_OP_ERR);
    CHECK_EQ(send_from(s, 0), QHCA_WC_SUCCESS);
}

/* D-087: WQEs posted before an entry changes must not use the new GID. */
static void test_gid_replaced_meanwhile(void)
{
    struct gid_scene *s = gid_scene_new();
    struct roce_packet p;

    s->g->net_blocked = true;
    for (unsigned i = 0; i < 120; i++) {
        struct rc_wr wr = rc_wr(&s->ud, QHCA_WR_SEND, 0, 8);

        wr.flags = 0;
        rc_do(&s->ud, &wr);
    }
    gid_set_ipv4(s->g, 0, HOST + 1, test_mac);
    guest_unblock(s->g);
    CHECK(s->g->num_sent > 0 && s->g->num_sent < 120);
    for (unsigned i = 0; i < s->g->num_sent; i++) {
        CHECK_EQ(roce_parse(&p, s->g->sent[i].data, s->g->sent[i].len),
                 ROCE_OK);
        CHECK_EQ(p.sgid[15], 1);
    }
    CHECK(counter(s->g, QHCA_CNT_TX_DROPPED) > 0);
}

static void test_allow_gid(void)
{
    struct gid_scene *s = gid_scene_new();
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_ALLOW_GID) };

    CHECK_EQ(gid_allow(s->g, 0, 0, 1), QHCA_ERR_PARAM);
    CHECK_EQ(gid_allow(s->g, NUM_UARS, 0, 1), QHCA_ERR_PARAM);
    CHECK_EQ(gid_allow(s->g, 1, 0, 2), QHCA_ERR_PARAM);
    CHECK_EQ(gid_allow(s->g, 1, 128, 1), QHCA_ERR_LIMIT);
    CHECK_EQ(gid_allow(s->g, 1, 127, 1), QHCA_ERR_STATE);
    cmd.allow_gid.uar = htole32(1);
    CHECK_EQ(guest_cmd(s->g, &cmd, NULL), QHCA_ERR_PARAM);  /* port 0 */
    CHECK_EQ(gid_allow(s->g, NUM_UARS - 1, ENTRY, 1), QHCA_OK);
    CHECK(vhca_gid_allowed(s->g->e, NUM_UARS - 1, ENTRY));
    qhca_engine_reset(s->g->e, *s->g->clock);
    CHECK(!vhca_gid_allowed(s->g->e, NUM_UARS - 1, ENTRY));
    CHECK(!vhca_gid_allowed(s->g->e, 1, 0));
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
    mine = srq_create_on(&x->n, x->n.pdn, 3, 1, o.uar);
    a = rc_create(&x->n, &o);
    o.srqn = mine.srqn;
    b = rc_create(&x->n, &o);
    rc_connect(&a, &b);
    srq_post(&mine, 7, 0, 100);

    o = RC_OPTS;
    for (unsigned i = 0; i < QPS; i++) {
        tgt[i] = xrc_tgt(x, &o);
        rc_set_peer(&tgt[i], &far, 0x77);
    }
    for (unsigned i = 0; i < SRQS; i++) {
        q = srq_create_xrc(&x->n, x->pdn[0], 8, 1, x->xrcdn);
        for (unsigned j = 0; j < QPS; j++) {
            srq_put(&q, j, 1, &(struct qhca_seg_le) {
                        x->mr[0].addr, 4096, x->mr[0].key });
        }
        srq_ring(&q);
        before = qhca_engine_memory(x->g->e, &max);
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
        CHECK_EQ(qhca_engine_memory(x->g->e, &max), before);
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
