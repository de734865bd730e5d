/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: a busy device. */
#include "debug.h"
#include "flows.h"
#include "frames.h"
#include "keys.h"
#include "odp.h"
#include "scene.h"

#define SND     0x111111u       /* sq_psn of RC_OPTS */
#define RCV     0x222222u
#define BIG     20000u
#define FLOW_PORT   7u          /* of UDP, which rules look at */

static const uint8_t group[16] = { 0xff, 0x0e, [15] = 7 };

static void count_for(const struct rc_qp *q)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_ALLOC_CNTSET) };
    uint32_t set = guest_create(g, &cmd);

    cmd = (struct qhca_cmd) { .opcode = htole16(QHCA_CMD_BIND_CNTSET) };
    cmd.bind_cntset.qpn = htole32(q->qpn);
    cmd.bind_cntset.cntset = htole32(set);
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_OK);
}

/* A UD QP in a group. */
static void add_member(void)
{
    struct rc_opts o = opts_of(QHCA_QPT_UD);
    struct rc_qp q = rc_scripted(&node, &o, &far);

    CHECK_EQ(rc_mcast(&q, QHCA_CMD_ATTACH_MCAST, group), QHCA_OK);
    rc_recv(&q, 1, 100, 300);
}

/* A region of type FAST, registered, and a window on the node's, bound. */
static void add_keys(struct rc_qp *q)
{
    struct fast f = fast_create(&node, 20, 5);
    uint32_t key = mw_create(g, node.pdn, QHCA_MW_2B);
    struct rc_wr wr = wr_reg(q, &f, f.key, 0x10000, REMOTE_ALL |
                             QHCA_ACCESS_LOCAL_WRITE);

    rc_finish(q, &wr, QHCA_WC_SUCCESS);
    wr = wr_bind(q, next_key(key), 4096, 5000, QHCA_ACCESS_REMOTE_READ);
    rc_finish(q, &wr, QHCA_WC_SUCCESS);
    mw_create(g, node.pdn, QHCA_MW_1);
}

/* A region with few pages, and a QP with an open page fault of each kind. */
static void add_pages(void)
{
    struct odp o = odp_create(g, node.pdn, node.mr.addr, NODE_MEM);
    struct rc_opts opts = RC_OPTS;
    struct rc_qp q = rc_scripted(&node, &opts, &far);
    struct rc_wr wr = rc_wr(&q, QHCA_WR_RDMA_WRITE, 0, 100);
    struct roce_packet p = peer_packet(&q, RC_READ_REQUEST, RCV);

    odp_set(&o, 3, 2, QHCA_PAGE_READ);
    odp_set(&o, o.num - 1, 1, ODP_ALL);
    wr.sge[0].lkey = o.key;
    rc_post(&q, &wr);
    p.va = node.mr.addr;
    p.rkey = o.key;
    p.dma_len = 2000;
    peer_inject(&q, &p, NULL, 0);
    p = peer_packet(&q, RC_WRITE_ONLY, RCV + 2);
    p.va = node.mr.addr + 3 * QHCA_PAGE_SIZE;
    p.rkey = o.key;
    p.dma_len = 8;
    peer_inject(&q, &p, guest_ptr(g, node.mr.addr, 8), 8);
    guest_run(g);
    for (unsigned kind = 0; kind < QHCA_PAGE_KINDS; kind++) {
        struct qhca_page_fault f;

        REQUIRE(odp_fault(g, q.qpn, kind, &f));
    }
}

/*
 * QPs of type RAW, which a spread shares; rules of either order and of each
 * action; a frame that waits for a page, and others without a doorbell.
 */
static void add_flows(void)
{
    struct odp o = odp_create(g, node.pdn, node.mr.addr, NODE_MEM);
    struct frame f = udp_frame(test_mac, 1, 2, FLOW_PORT, 100);
    struct qhca_spread s = { .types = htole32(VHCA_RSS_TYPES), .log_size = 1 };
    uint32_t number;
    struct rc_qp q[3];

    memcpy(guest_ptr(g, node.mr.addr, f.len), f.data, f.len);
    for (unsigned i = 0; i < 3; i++) {
        struct rc_wr wr;

        q[i] = flow_qp(&node);
        flow_recv(&q[i], i, 1600);
        wr = rc_wr(&q[i], QHCA_WR_SEND, 0, (uint32_t)f.len);
        wr.sge[0].lkey = i ? node.mr.key : o.key;
        rc_put(&q[i], &wr);
        rc_put(&q[i], &wr);
        s.qpn[i % 2] = htole32(q[i].qpn);
    }
    REQUIRE(spread_create(g, &s, &number) == QHCA_OK);
    for (unsigned i = 0; i < 6; i++) {
        struct qhca_flow r = flow_rule(i == 1 ? NULL : &q[i % 3]);

        flow_match_udp(&r, i == 1 ? 9 : FLOW_PORT);
        r.priority = htole32(i / 2);
        r.order = i < 4 ? QHCA_FLOW_FIRST : QHCA_FLOW_REST;
        if (i % 3 == 2) {
            r.action = QHCA_FLOW_SPREAD;
            r.target = htole32(number);
        }
        flow_add(g, &r);
    }
    rc_ring(&q[0]);
    guest_run(g);
    REQUIRE(odp_fault(g, q[0].qpn, QHCA_PAGE_SEND,
                      &(struct qhca_page_fault) { 0 }));
}

static struct rc_qp slow[2];

/* QPs whose gates are closed, by a limit and by a notification. */
static void add_rates(void)
{
    struct qhca_qp_attr a = { .rate_limit = htole32(5000) };
    struct rc_opts o = RC_OPTS;
    struct roce_packet p;

    congestion_on(g);
    for (unsigned i = 0; i < 2; i++) {
        struct rc_wr wr;

        slow[i] = rc_scripted(&node, &o, &far);
        if (i) {
            p = peer_packet(&slow[i], ROCE_CNP, 0);
            p.ackreq = false;
            peer_inject(&slow[i], &p, guest_ptr(g, node.mr.addr, CNP_LEN),
                        CNP_LEN);
        } else {
            REQUIRE(!rc_modify(&slow[i], &a, QHCA_QP_RATE_LIMIT));
        }
        wr = rc_wr(&slow[i], QHCA_WR_RDMA_WRITE, 0, 5000);
        rc_post(&slow[i], &wr);
        REQUIRE(vhca_qp_get(g->e, slow[i].qpn)->gate.timer.pos);
    }
}

/* Both owe a notification, which does not leave while the network is full. */
static void mark_some(void)
{
    struct roce_packet p;

    for (unsigned i = 0; i < 2; i++) {
        p = peer_packet(&slow[i], RC_WRITE_ONLY, RCV);
        p.tclass = IP_ECN_CE;
        peer_inject(&slow[i], &p, NULL, 0);
    }
}

/* Starts WRs of all kinds; acknowledges some of their packets. */
static void send_half(struct rc_qp *q)
{
    struct rc_wr wr = rc_wr(q, QHCA_WR_RDMA_WRITE, 0, BIG);

    rc_put(q, &wr);
    wr = rc_wr(q, QHCA_WR_SEND, 0, 0);
    wr.num_sge = 0;
    wr.flags |= QHCA_WQE_INLINE;
    wr.inline_data = "inline";
    wr.inline_len = 6;
    rc_put(q, &wr);
    wr = rc_wr(q, QHCA_WR_RDMA_READ, 3000, BIG);
    rc_put(q, &wr);
    wr = rc_wr(q, QHCA_WR_ATOMIC_FETCH_AND_ADD, 8, 8);
    rc_put(q, &wr);
    wr.opcode = 0x77;
    rc_put(q, &wr);
    rc_ring(q);
    guest_settle(g);
    peer_ack(q, SND + 19);      /* the last packet of the WRITE */
}

/* LOCAL_INV, which sends no packets, waits for the WRITE before it. */
static void invalidate_last(struct rc_qp *q)
{
    struct rc_wr wr = rc_wr(q, QHCA_WR_RDMA_WRITE, 0, 100);

    rc_put(q, &wr);
    wr = wr_inv(q, QHCA_WR_LOCAL_INV, 0x12345600);
    rc_post(q, &wr);
}

/* The peer sends a READ request, whose response must wait, and half a SEND. */
static void receive_half(struct rc_qp *q)
{
    struct roce_packet p = peer_packet(q, RC_READ_REQUEST, RCV);

    g->net_blocked = true;
    rc_recv(q, 0x77, 30000, 5000);
    p.va = node.mr.addr;
    p.rkey = node.mr.key;
    p.dma_len = 2000;
    peer_inject(q, &p, NULL, 0);
    p = peer_packet(q, RC_SEND_FIRST, RCV + 2);
    peer_inject(q, &p, guest_ptr(g, node.mr.addr, 1024), 1024);
}

/*
 * A frame to send, others that lack their end, and receive buffers of two
 * queues.
 */
static void use_eth(void)
{
    uint64_t mem = guest_alloc(g, 20000, 4096);
    struct eth_tx tx_queue = eth_tx_create(g, &node.comp, 5);
    struct eth_tx other = eth_tx_create_at(g, &node.comp, 2, 4);
    struct qhca_rss rss = eth_rss_even(2);
    struct frame f = udp_frame(test_mac, 1, 2, 99, 500);

    eth_rx_create(g, &node.comp, 4, 2000);
    eth_rx_create_at(g, &node.comp, 1, 4, 2000);
    CHECK_EQ(eth_set_rss(g, 0x3f, &rss), QHCA_OK);
    memcpy(guest_ptr(g, mem, f.len), f.data, f.len);
    eth_tx_post(&tx_queue, mem, (uint32_t)f.len, 0);
    eth_tx_post(&tx_queue, mem, 60, QHCA_ETH_MORE);
    eth_tx_ring(&tx_queue);
    eth_tx_post(&other, mem, 70, QHCA_ETH_MORE);
    eth_tx_ring(&other);
}

/* Fills the asynchronous EQ, so that more events wait for room. */
static void fill_events(void)
{
    for (unsigned i = 0; i < 200; i++) {
        qhca_engine_set_link(g->e, *g->clock, i % 2);
    }
    srq_limit(&srq, 5);
    qhca_engine_set_link(g->e, *g->clock, true);
}

void scene_start(void)
{
    struct rc_opts o = RC_OPTS;
    struct rc_qp kernel;
    struct gsrq xsrq;

    start_shared(4, 2, 1, &o);
    far = node;
    far.host = 99;
    add_scripted(&o, QHCA_QPS_RTS);
    srq_post(&srq, 1, 0, 3000);
    srq_post(&srq, 2, 4096, 3000);
    kernel = srq_scripted();
    srq_half_message(&kernel);
    o.type = QHCA_QPT_XRC_TGT;
    o.xrcdn = xrcd_create(g);
    xsrq = srq_create_xrc(&node, node.pdn, 4, 2, o.xrcdn);
    srq_post(&xsrq, 3, 0, 100);
    rc_create(&node, &o);
    o = RC_OPTS;
    o.qp_flags = KERNEL_QP;
    kernel = rc_scripted(&node, &o, &far);
    add_keys(&kernel);
    invalidate_last(&kernel);
    add_member();
    add_pages();
    add_flows();
    add_rates();
    count_for(&qp);
    /* Moderation delays the event of the first CQE: a timer runs. */
    CHECK_EQ(cq_moderate(&qp.scq, 100, 60000), QHCA_OK);
    cq_arm(&qp.scq, false);
    send_half(&qp);
    use_eth();
    receive_half(&qp);
    mark_some();
    fill_events();
}

/* ---- what can happen to it ---- */

/* Rings the doorbells of all objects. */
static void ring_all(uint64_t *rng)
{
    struct qhca_engine *e = g->e;
    struct vhca_qp *q;
    struct vhca_srq *s;
    struct vhca_cq *cq;

    vhca_table_each(&e->qps->table, q) {
        ring(g, q->uar, QHCA_DB_SQ, q->qpn, q->sq.pi +
             (uint32_t)(test_random(rng) % 3));
        ring(g, q->uar, QHCA_DB_RQ, q->qpn, q->rq.pi + 1);
    }
    vhca_table_each(&e->rqs->srq, s) {
        ring(g, s->uar, QHCA_DB_SRQ, s->srqn, s->wq.pi + 1);
    }
    vhca_table_each(&e->events->cq, cq) {
        ring(g, cq->uar, QHCA_DB_CQ_ARM, cq->cqn, (uint32_t)test_random(rng));
    }
    for (unsigned i = 0; i < VHCA_MAX_EQ; i++) {
        ring(g, 0, QHCA_DB_EQ, i + 1, e->events->eq[i].pi);
    }
    ring(g, 0, QHCA_DB_ETH, QHCA_ETH_TX + 1, e->eth->queue[QHCA_ETH_TX].pi + 1);
}

/* Injects a packet to each QP, with the PSN that the QP expects. */
static void packet_to_all(uint64_t *rng)
{
    static const uint8_t opcodes[] = {
        RC_SEND_ONLY, RC_SEND_MIDDLE, RC_WRITE_ONLY, RC_READ_REQUEST,
        RC_FETCH_ADD, RC_ACKNOWLEDGE, RC_READ_RESP_ONLY, RC_ATOMIC_ACKNOWLEDGE,
    };
    struct vhca_qp *q;

    vhca_table_each(&g->e->qps->table, q) {
        uint8_t opcode = opcodes[test_random(rng) % sizeof(opcodes)];
        struct rc_qp to = qp;
        struct roce_packet p;

        to.qpn = q->qpn;
        p = peer_request(&to, opcode,
                         roce_opcode(opcode)->flags & OPF_RESPONSE ?
                        q->req.una_psn : q->rsp.epsn,
                         0, 1024);
        peer_inject(&to, &p, guest_ptr(g, node.mr.addr, 1024),
                    roce_opcode(opcode)->flags & OPF_PAYLOAD ? 1024 : 0);
    }
}

/* Frames that rules of either order look at. */
static void frames_for_rules(void)
{
    static const uint8_t macs[][6] = {
        { 0x52, 0x54, 0, 9, 9, 9 }, { 0x01, 0, 0x5e, 1, 1, 1 },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(macs); i++) {
        struct frame f = udp_frame(macs[i], 1, 2, FLOW_PORT, 100);

        guest_rx(g, f.data, f.len);
    }
}

void scene_poke(uint64_t rng)
{
    g->net_blocked = false;
    qhca_engine_tx_ready(g->e, *g->clock);
    packet_to_all(&rng);
    ring_all(&rng);
    frames_for_rules();
    packet_to_all(&rng);
    for (unsigned i = 0; i < 50 && g->host.todo; i++) {
        guest_run(g);
    }
    for (unsigned i = 0; i < 50 && g->host.deadline != UINT64_MAX; i++) {
        *g->clock = g->host.deadline > *g->clock ? g->host.deadline : *g->clock;
        qhca_host_tick(&g->host, *g->clock);
    }
    g->num_sent = 0;
}
