/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fixture.h"

#define FAR { .host = 2, .vlan = QHCA_NO_VLAN }

struct node node;
struct guest *g;
struct node far = FAR;
struct rc_qp qp, peer;
struct net *net;
struct node there;
struct gsrq srq;
struct rc_qp tx[SHARED_MAX], rx[SHARED_MAX];

struct rc_opts opts_of(uint8_t type)
{
    struct rc_opts o = RC_OPTS;

    o.type = type;
    return o;
}

void start_node(void)
{
    harness_cleanup();
    far = (struct node) FAR;
    node = node_new(NULL, 1);
    g = node.g;
}

void start_gid(bool ipv6, uint16_t vlan)
{
    start_node();
    far.ipv6 = ipv6;
    node_set_gid(&node, ipv6, vlan);
}

void add_scripted(const struct rc_opts *o, unsigned state)
{
    qp = rc_create(&node, o);
    rc_set_peer(&qp, &far, 0x77);
    rc_bring_up(&qp, state);
}

void start_in(const struct rc_opts *o, unsigned state)
{
    start_node();
    add_scripted(o, state);
}

void start_alone(const struct rc_opts *o)
{
    start_in(o, QHCA_QPS_RTS);
}

void start_type(uint8_t type)
{
    struct rc_opts o = opts_of(type);

    start_alone(&o);
}

void start_pair(const struct rc_opts *o)
{
    start_node();
    rc_pair(&node, o, &qp, &peer);
}

void start_net(const struct rc_opts *o, bool one_place)
{
    harness_cleanup();
    net = net_new(1);
    net->one_place = one_place;
    node = node_new(net, 1);
    there = node_new(net, 2);
    g = node.g;
    qp = rc_create(&node, o);
    peer = rc_create(&there, o);
    rc_connect(&qp, &peer);
}

void start_shared(unsigned log, unsigned sges, unsigned pairs,
                  const struct rc_opts *rx_opts)
{
    struct rc_opts o = *rx_opts;

    REQUIRE(pairs <= SHARED_MAX);
    start_node();
    srq = srq_create(&node, node.pdn, log, sges);
    o.srqn = srq.srqn;
    for (unsigned i = 0; i < pairs; i++) {
        tx[i] = rc_create(&node, &RC_OPTS);
        rx[i] = rc_create(&node, &o);
        rc_connect(&tx[i], &rx[i]);
    }
}

struct qhca_cqe done(unsigned i, unsigned status)
{
    return rc_expect(&qp.scq, 0x1000 + i, status);
}

void all_done(unsigned first, unsigned end, unsigned status)
{
    while (first < end) {
        done(first++, status);
    }
}

void post_writes(struct rc_qp *q, unsigned n, uint32_t len)
{
    struct rc_wr wr;

    for (unsigned i = 0; i < n; i++) {
        wr = rc_wr(q, QHCA_WR_RDMA_WRITE, 0, len);
        rc_aim(&wr, &node, 500000);
        rc_put(q, &wr);
    }
}

void no_event(void)
{
    eq_expect_none(&node.async);
}

bool memory_is(uint64_t off, size_t len, uint8_t byte)
{
    const uint8_t *p = guest_ptr(g, node.mr.addr + off, len);

    for (size_t i = 0; i < len; i++) {
        if (p[i] != byte) {
            return false;
        }
    }
    return true;
}

struct rc_qp srq_scripted(void)
{
    struct rc_opts o = RC_OPTS;

    o.srqn = srq.srqn;
    return rc_scripted(&node, &o, &far);
}

void srq_half_message(struct rc_qp *q)
{
    struct roce_packet p = peer_packet(q, RC_SEND_FIRST, q->o.rq_psn);
    static const uint8_t data[1024] = { 1 };

    p.ackreq = false;
    peer_inject(q, &p, data, sizeof(data));
}
