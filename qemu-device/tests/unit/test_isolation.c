/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Users of one HCA do not trust each other: packets from a QP to one that is
 * connected to another, and packets from the network in a neighbour's name. The
 * attacker knows everything: QPN, PSN, keys.
 */
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
    s->a = rc_create(&s->n, &o);
    s->b = rc_create(&s->n, &o);
    rc_connect(&s->a, &s->b);
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

/* The victim is unaffected, and works. */
static void unharmed(struct scene *s, uint64_t drops)
{
    struct rc_wr wr = rc_wr(&s->a, QHCA_WR_SEND, 0, 8);

    CHECK_EQ(counter(s->g, QHCA_CNT_RX_BAD_ADDR), drops);
    CHECK(guest_is_filled(s->g, s->n.mr.addr + OFF, LEN, CANARY));
    rc_expect_none(&s->b.rcq);
    CHECK_EQ(rc_state(&s->b), QHCA_QPS_RTS);
    CHECK_EQ(le32toh(rc_query(&s->b).epsn), s->a.o.sq_psn);
    rc_post(&s->a, &wr);
    guest_settle(s->g);
    rc_expect(&s->b.rcq, 42, QHCA_WC_SUCCESS);
    rc_expect(&s->a.scq, wr.wr_id, QHCA_WC_SUCCESS);
}

static void forge(struct scene *s, uint8_t opcode)
{
    struct rc_wr wr = rc_wr(&s->bad, opcode, 0, 8);

    rc_aim(&wr, &s->n, OFF);
    rc_post(&s->bad, &wr);
    guest_settle(s->g);
}

/* A packet of the network with the addresses of this port. */
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
    struct rc_opts o = RC_OPTS;
    struct rc_qp bad = xrc_ini(x, &o);
    struct rc_wr wr = xrc_wr(x, 0, QHCA_WR_RDMA_WRITE, 8);

    guest_fill(x->g, x->mr[0].addr, LEN, CANARY);
    rc_set_peer(&bad, &x->n, x->tgt.qpn);
    bad.o.sq_psn = x->ini.o.sq_psn;
    rc_bring_up(&bad, QHCA_QPS_RTS);
    rc_post(&bad, &wr);
    guest_settle(x->g);
    CHECK_EQ(counter(x->g, QHCA_CNT_RX_BAD_ADDR), 1);
    CHECK(guest_is_filled(x->g, x->mr[0].addr, LEN, CANARY));
    xrc_do(x, &wr);
    rc_expect(&x->ini.scq, wr.wr_id, QHCA_WC_SUCCESS);
}

/* D-086: the network cannot speak for a QP of this port, by request or ACK. */
static void test_network(void)
{
    struct scene *s = scene_new(QHCA_QPT_RC);
    struct rc_wr wr = rc_wr(&s->a, QHCA_WR_SEND, 0, 8);

    spoof(s, &s->b, RC_WRITE_ONLY, s->a.o.sq_psn);
    spoof(s, &s->b, RC_SEND_ONLY, s->a.o.sq_psn);
    rc_post(&s->a, &wr);                /* no receive WR: it is outstanding */
    guest_settle(s->g);
    spoof(s, &s->a, RC_ACKNOWLEDGE, s->a.o.sq_psn);
    rc_expect_none(&s->a.scq);
    rc_recv(&s->b, 41, 0, 64);
    guest_advance(s->g, 1000000000);
    rc_expect(&s->b.rcq, 41, QHCA_WC_SUCCESS);
    rc_expect(&s->a.scq, 0x1000, QHCA_WC_SUCCESS);
    CHECK_EQ(counter(s->g, QHCA_CNT_RX_BAD_ADDR), 3);
    CHECK(guest_is_filled(s->g, s->n.mr.addr + OFF, LEN, CANARY));
}

static const struct test tests[] = {
    { "D-086 a neighbour that is not the peer: RC", test_neighbour_rc },
    { "D-086 a neighbour that is not the peer: UC", test_neighbour_uc },
    { "D-086 a neighbour that is not the peer: XRC", test_neighbour_xrc },
    { "D-086 the network in a neighbour's name", test_network },
};

int main(int argc, char **argv)
{
    return tap_main(argc, argv, tests, ARRAY_SIZE(tests), harness_cleanup);
}
