/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: packets between two machines need no frames if each engine
 * can access the other's memory. The guests must not notice: what they see is
 * compared with a run of the same messages in frames.
 */
#include <stdio.h>

#include "harness/seen.h"

#define SRC     0u
#define DST     (NODE_MEM / 2)
#define WRITE   QHCA_WR_RDMA_WRITE
#define READ    QHCA_WR_RDMA_READ

/* struct scene - three messages of @len bytes, and what goes wrong */
struct scene {
    const char *name;
    uint8_t type, opcode;
    uint32_t len;
    void (*before)(void);
    const char *faults, *faults_there;
};

/* ---- what can go wrong ---- */

static void peer_in_err(void)
{
    CHECK_EQ(rc_set_state(&peer, QHCA_QPS_ERR), 0);
}

static void bad_memory_there(void)
{
    guest_spoil(there.g, there.mr.addr + DST + 5000, 1);
}

static void bad_memory_here(void)
{
    guest_spoil(g, node.mr.addr + SRC + 5000, 1);
}

static void wrong_key(void)
{
    there.mr.key ^= 1;
}

/* The other end of the cable asks the port to wait for 65,535 quanta. */
static void pause_port(struct guest *guest)
{
    static const uint8_t frame[60] = {
        1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 8, 0, 1, 0xff, 0xff,
    };

    guest_rx(guest, frame, sizeof(frame));
}

static void paused_here(void)
{
    pause_port(g);
}

static void paused_there(void)
{
    pause_port(there.g);
}

static const struct scene scenes[] = {
    { "WRITE", QHCA_QPT_RC, WRITE, 70000, NULL, "", "" },
    { "WRITE of 0 bytes", QHCA_QPT_RC, WRITE, 0, NULL, "", "" },
    { "WRITE_IMM", QHCA_QPT_RC, QHCA_WR_RDMA_WRITE_WITH_IMM, 9000, NULL,
      "", "" },
    { "SEND", QHCA_QPT_RC, QHCA_WR_SEND, 30000, NULL, "", "" },
    { "READ", QHCA_QPT_RC, READ, 70000, NULL, "", "" },
    { "atomic", QHCA_QPT_RC, QHCA_WR_ATOMIC_FETCH_AND_ADD, 8, NULL, "", "" },
    { "ATOMIC WRITE", QHCA_QPT_RC, QHCA_WR_ATOMIC_WRITE, 8, NULL, "", "" },
    { "UC WRITE", QHCA_QPT_UC, WRITE, 70000, NULL, "", "" },
    { "UC SEND", QHCA_QPT_UC, QHCA_WR_SEND, 9000, NULL, "", "" },
    { "the peer in ERR", QHCA_QPT_RC, QHCA_WR_SEND, 9000, peer_in_err, "", "" },
    { "bad remote memory", QHCA_QPT_RC, WRITE, 9000, bad_memory_there, "", "" },
    { "bad memory to READ", QHCA_QPT_RC, READ, 9000, bad_memory_there, "", "" },
    { "bad local memory", QHCA_QPT_RC, WRITE, 9000, bad_memory_here, "", "" },
    { "a wrong key", QHCA_QPT_RC, WRITE, 9000, wrong_key, "", "" },
    { "a pause here", QHCA_QPT_RC, WRITE, 9000, paused_here, "", "" },
    { "a rule of the sender", QHCA_QPT_RC, WRITE, 9000, NULL,
      "tx opcode=*.write_* nth=2 once drop", "" },
    { "a rule of the receiver", QHCA_QPT_RC, WRITE, 9000, NULL,
      "", "rx opcode=*.write_* nth=2 once drop" },
    { "a rule of the sender, another of the receiver", QHCA_QPT_RC, WRITE, 9000,
      NULL, "tx opcode=*.write_* nth=2 once drop", "rx opcode=*.send_* drop" },
    { "delayed by the receiver", QHCA_QPT_RC, WRITE, 9000, NULL,
      "", "rx opcode=*.write_* nth=2 once delay=10us" },
    { "a NAK by rule", QHCA_QPT_RC, WRITE, 9000, NULL,
      "", "rx opcode=*.write_* nth=2 once nak=rem_op_err" },
    { "reordered by rule", QHCA_QPT_UC, WRITE, 9000, NULL,
      "tx opcode=*.write_* nth=2 once reorder", "" },
    { "a CQE by rule", QHCA_QPT_RC, WRITE, 9000, NULL,
      "cqe nth=1 once fail=general_err", "" },
    { "an event by rule", QHCA_QPT_RC, WRITE, 9000, NULL,
      "tx opcode=*.write_* nth=1 once event=qp_fatal", "" },
    { "responses delayed", QHCA_QPT_RC, READ, 9000, NULL,
      "", "tx opcode=*.read_response_* nth=2 once delay=10us" },
};

/* ---- playing one ---- */

static void start(const struct rc_opts *o, bool one_place)
{
    start_net(o, one_place);
    guest_fill(g, node.mr.addr, NODE_MEM, 7);
    guest_fill(there.g, there.mr.addr, NODE_MEM, 9);
    net->sent = 0;
}

static void post(uint8_t opcode, uint32_t len, unsigned n)
{
    struct rc_wr wr = rc_wr(&qp, opcode, SRC, len);

    rc_aim(&wr, &there, DST);
    wr.swap_add = 1;
    for (unsigned i = 0; i < n; i++) {
        wr.wr_id = i;
        rc_put(&qp, &wr);
    }
    rc_ring(&qp);
}

static void look(struct node *n, struct rc_qp *q, struct seen *seen)
{
    struct gcq *cq[] = { &q->scq, &q->rcq };

    seen_clear(seen);
    n->g->bad_to = 0;
    seen_queues(seen, &n->async, cq, ARRAY_SIZE(cq));
    seen->qpc[0] = rc_query(q);
    seen_end(seen, n->g, n->mr.addr, NODE_MEM);
}

/* Requests, which have one direction only, sent and received. */
struct ends {
    uint64_t sent, taken;
};

static struct ends play(const struct scene *s, bool one_place,
                        struct seen seen[2])
{
    struct ends ends;
    struct rc_opts o = opts_of(s->type);

    o.retry = o.rnr_retry = 2;
    start(&o, one_place);
    for (unsigned i = 0; i < 3; i++) {
        rc_recv(&peer, 100 + i, DST + i * 50000, 50000);
    }
    if (s->before) {
        s->before();
    }
    guest_set_faults(g, s->faults);
    guest_set_faults(there.g, s->faults_there);
    post(s->opcode, s->len, 3);
    net_run(net, 10000000000ull);
    CHECK(!g->e->inside && !there.g->e->inside);
    look(&node, &qp, &seen[0]);
    look(&there, &peer, &seen[1]);
    ends.sent = counter(g, QHCA_CNT_TX_PKTS);
    ends.taken = counter(there.g, QHCA_CNT_RX_PKTS);
    /* Both get the counters of both: arrivals are compared with ACKs sent. */
    memcpy(seen[0].cnt[1], seen[1].cnt[0], sizeof(seen[0].cnt[1]));
    memcpy(seen[1].cnt, seen[0].cnt, sizeof(seen[1].cnt));
    seen[0].machines = seen[1].machines = 2;
    if (seen_failed(&seen[0]) || seen_failed(&seen[1])) {
        seen_no_packets(&seen[0]);
        seen_no_packets(&seen[1]);
    }
    return ends;
}

static void test_same(void)
{
    static struct seen in_frames[2], across[2];

    for (unsigned i = 0; i < ARRAY_SIZE(scenes); i++) {
        const struct scene *s = &scenes[i];
        struct ends a, b;

        a = play(s, false, in_frames);
        CHECK(net->sent);
        b = play(s, true, across);
        if (!seen_failed(&in_frames[0]) && !seen_failed(&in_frames[1])) {
            CHECK_EQ(a.sent, b.sent);
            CHECK_EQ(a.taken, b.taken);
        }
        CHECK(!net->sent || *s->faults || *s->faults_there);
        CHECK(seen_same(s->name, &in_frames[0], &across[0]));
        CHECK(seen_same(s->name, &in_frames[1], &across[1]));
    }
}

/* ---- when packets are frames after all ---- */

static void frames_there(void)
{
    there.g->e->cfg.frames = true;
}

static void small_port_there(void)
{
    there.g->e->port->mtu = 600;
}

static void no_network(void)
{
    there.g->net_blocked = true;
}

static void frame_on_its_way(void)
{
    static const uint8_t frame[64];

    net_send(net, 0, frame, sizeof(frame));
    net->sent = 0;
}

/* The network is free again, but has not taken what waits for it. */
static void frame_waits(struct guest *guest)
{
    static const uint8_t frame[64];

    heap_use(guest->heap);
    REQUIRE(vhca_fifo_push(&guest->e->port->tx, frame, sizeof(frame), 0,
                           0));
    heap_use(NULL);
}

static void frame_waits_here(void)
{
    frame_waits(g);
}

static void frame_waits_there(void)
{
    frame_waits(there.g);
}

static void no_carrier_there(void)
{
    qhca_engine_set_link(there.g->e, net->clock, false);
}

static void another_address(void)
{
    there.g->e->port->mac[5] ^= 1;
    there.g->e->port->gid[0].smac[5] ^= 1;
}

static void another_peer(void)
{
    vhca_qp_get(there.g->e, peer.qpn)->attr.dest_qpn ^= htole32(1);
}

/* The peer expects packets from elsewhere. */
static void another_source(void)
{
    vhca_qp_get(there.g->e, peer.qpn)->attr.av.dgid[15] ^= 1;
}

static void another_vlan(void)
{
    there.g->e->port->gid[0].vlan = 5;
}

static void test_frames(void)
{
    static void (*const why[])(void) = {
        frames_there, small_port_there, no_network, frame_on_its_way,
        frame_waits_here, frame_waits_there, no_carrier_there,
        another_address, another_peer, another_source, another_vlan,
        paused_there,
    };

    for (unsigned i = 0; i < ARRAY_SIZE(why); i++) {
        start(&RC_OPTS, true);
        why[i]();
        post(WRITE, 100, 1);
        CHECK(net->sent || vhca_fifo_used(&g->e->port->tx) == 2);
        CHECK_EQ(counter(there.g, QHCA_CNT_RX_PKTS), 0);
    }
}

/* A device that has stopped does not access its guest's memory any more. */
static void test_stopped(void)
{
    start(&RC_OPTS, true);
    qhca_engine_inject_fatal(there.g->e, net->clock);
    there.g->writes = 0;
    post(WRITE, 100, 1);
    net_run(net, 1000000);
    CHECK_EQ(there.g->writes, 0);
    CHECK_EQ(there.g->dma_after_stop, 0);
}

/* Return the units that the slice of the device visited has been charged. */
static unsigned worked(void)
{
    return pieces_owed(&there.g->e->slice, there.g->e->now);
}

/* The device that was visited pays for the work done in the visit. */
static void test_pays(void)
{
    start(&RC_OPTS, true);
    there.g->host.todo = 0;
    post(WRITE, 60000, 1);
    CHECK(there.g->host.todo);
    CHECK(worked() > 0);
    net_run(net, 1000000);
    rc_expect(&qp.scq, 0, QHCA_WC_SUCCESS);
}

/* One call does at most a slice in the other device; the rest follows later. */
static void test_bounded(void)
{
    const unsigned slice = 2048, burst = 256;   /* units: run.c, and a packet */
    struct rc_opts o = RC_OPTS;

    o.mtu = 5;
    start(&o, true);
    post(WRITE, 400000, 60);
    CHECK(worked() <= slice + burst);
    net_run(net, 10000000000ull);
    for (unsigned i = 0; i < 60; i++) {
        rc_expect(&qp.scq, i, QHCA_WC_SUCCESS);
    }
    CHECK_EQ(net->sent, 0);
}

static const struct test tests[] = {
    { "two machines see the same with frames and without", test_same },
    { "when packets are frames after all", test_frames },
    { "a neighbour that has stopped", test_stopped },
    { "the visited device pays for the visit", test_pays },
    { "a visit is bounded", test_bounded },
};

TEST_MAIN(tests)
