/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: random messages from one QP to another, of the same port
 * or of a neighbour, once in frames and once without. The guests must see the
 * same.
 *
 * Some results depend on how far each end is when the other one fails, so the
 * test avoids the cases that show them:
 *
 * - The sender has bad memory in the middle of a message, and the peer refuses
 *   its beginning: the WR fails with either error. If memory to be sent is bad,
 *   the peer refuses nothing.
 * - A bad WR follows one that the peer refuses: it may have been read and
 *   counted, or not. A bad WR is posted when all before it have completed.
 * - The peer fails without a response, because a SEND invalidates a key that it
 *   must not, and responses still to be sent are lost. Such a SEND is posted
 *   when all WRs before it have completed.
 * - A READ gets its response later than WRs behind it are executed. If some
 *   memory is bad, WRs behind a READ are posted when the READ has completed.
 * - A queue cannot be accessed any more, so an end or its device stops: WRs are
 *   posted one by one. On one machine the order of turns decides what is still
 *   done before, so this happens between two.
 */
#include "direct.h"
#include "harness/debug.h"
#include "harness/keys.h"
#include "harness/seed.h"
#include "harness/seen.h"

#define SRQ_LOG     4
#define A_LONG_TIME 10000000000ull  /* longer than all retries */

struct scene scene;

/* ---- the two QPs ---- */

static void draw_qps(void)
{
    static const uint8_t types[] = {
        QHCA_QPT_RC, QHCA_QPT_RC, QHCA_QPT_UC, QHCA_QPT_XRC_INI,
    };
    struct rc_opts o = opts_of(types[draw(ARRAY_SIZE(types))]);
    bool xrc = o.type == QHCA_QPT_XRC_INI;
    struct node *to = scene.to;

    scene.type = o.type;
    scene.shared = xrc || (o.type == QHCA_QPT_RC && one_in(2));
    o.mtu = (uint8_t)(1 + draw(5));
    o.retry = (uint8_t)(1 + draw(2));
    o.rnr_retry = (uint8_t)draw(3);
    o.min_rnr = (uint8_t)(10 + draw(12));       /* 0.3 to 20 ms */
    o.rd_atomic = (uint8_t)(1 + draw(4));
    o.dest_rd_atomic = o.rd_atomic;
    o.sq_psn = one_in(4) ? 0xfffff0 : o.sq_psn;
    qp = rc_create(&node, &o);
    if (xrc) {
        o.xrcdn = xrcd_create(to->g);
        o.type = QHCA_QPT_XRC_TGT;
        srq = srq_create_xrc(to, to->pdn, SRQ_LOG, o.sges, o.xrcdn);
    } else if (scene.shared) {
        srq = srq_create(to, to->pdn, SRQ_LOG, o.sges);
        o.srqn = srq.srqn;
    }
    if (peer_one_in(8)) {
        o.access = one_in(2) ? QHCA_ACCESS_REMOTE_READ :
                               QHCA_ACCESS_REMOTE_WRITE;
    }
    peer = rc_create(to, &o);
    rc_set_peer(&qp, to, peer.qpn);
    rc_set_peer(&peer, &node, qp.qpn);
    peer.o.sq_psn = qp.o.rq_psn;
    peer.o.rq_psn = qp.o.sq_psn;
    rc_bring_up(&qp, QHCA_QPS_RTS);
    rc_bring_up(&peer, one_in(4) ? QHCA_QPS_RTR : QHCA_QPS_RTS);
    if (scene.shared && one_in(2)) {
        CHECK_EQ(srq_limit(&srq, 1 + draw(4)), 0);
    }
}

/* Binds windows of type 2 at the peer, to all or part of the destination. */
static void draw_windows(void)
{
    struct qhca_engine *e = scene.to->g->e;

    for (unsigned i = 0; i < WINDOWS; i++) {
        struct vhca_memop op = {
            .mr_key = scene.to->mr.key, .addr = there_at(DST),
        };

        if (scene.type == QHCA_QPT_XRC_INI) {
            return;             /* keys must be of the SRQ's PD */
        }
        op.key = next_key(mw_create(scene.to->g, scene.to->pdn, QHCA_MW_2B));
        op.length = 50000 + (peer_one_in(2) ? draw(MAX_LEN) : MAX_LEN);
        op.access = QHCA_ACCESS_REMOTE_WRITE;
        REQUIRE(vhca_mw_bind(e, &vhca_qp_get(e, peer.qpn)->user, &op) ==
                QHCA_WC_SUCCESS);
        scene.window[i] = op.key;
    }
}

/* Chooses bytes for which DMA fails. */
static void draw_bad_memory(void)
{
    uint64_t start = at(SRC);
    struct guest *of = g;

    if (scene.trouble == NOBODY || !one_in(4)) {
        return;
    }
    if (scene.trouble == PEER && one_in(3)) {
        start = at(BACK);
    } else if (scene.trouble == PEER) {
        start = there_at(DST);
        of = scene.to->g;
    }
    scene.bad_memory = true;
    of->bad_from = start + draw(MAX_LEN);
    of->bad_to = of->bad_from + 1 + draw(3000);
    if (scene.type != QHCA_QPT_XRC_INI && peer_one_in(6)) {
        of->bad_to = 0;
        of = scene.to->g;
        of->bad_from = scene.shared ? srq.ring.block[0] : peer.rq.block[0];
        of->bad_to = of->bad_from + 1 + draw(200);
    }
}

/* ---- posting ---- */

static void wait_for(uint64_t ns)
{
    if (is_far()) {
        net_advance(net, ns);
    } else {
        guest_settle(g);
        guest_advance(g, ns);
    }
}

/* Waits until all WRs posted have completed. */
static void let_it_end(void)
{
    rc_ring(&qp);
    wait_for(A_LONG_TIME);
}

/*
 * From now on some queue cannot be accessed. CQs are armed, so that all kinds
 * of queues are needed.
 */
static void lose_queue(void)
{
    const struct {
        struct guest *of;
        uint64_t addr;
    } queues[] = {
        { g, gbuf_addr(&node.async.buf, 0) },
        { g, gbuf_addr(&node.comp.buf, 0) },
        { g, qp.scq.buf.block[0] },
        { g, qp.sq.block[0] },
        { there.g, gbuf_addr(&there.async.buf, 0) },
        { there.g, gbuf_addr(&there.comp.buf, 0) },
        { there.g, peer.rcq.buf.block[0] },
        { there.g, scene.shared ? srq.ring.block[0] : peer.rq.block[0] },
    };
    unsigned i = draw(ARRAY_SIZE(queues));

    scene.bad_queue = true;
    cq_arm(&qp.scq, false);
    cq_arm(&peer.rcq, false);
    guest_spoil(queues[i].of, queues[i].addr + 64 * draw(8),
                one_in(3) ? 64 : 4096);
}

static void draw_send(void)
{
    struct rc_wr wr = draw_wr();
    bool answered = wr.opcode == QHCA_WR_RDMA_READ || is_atomic(wr.opcode);
    bool alone = answered && scene.bad_memory;

    if (wr.opcode == QHCA_WR_SEND_WITH_INV && wr.imm == htole32(BAD_KEY)) {
        alone = true;
    }
    if (scene.trouble != NOBODY && wr.num_sge && one_in(20)) {
        wr.sge[wr.num_sge - 1].lkey = BAD_KEY;
        alone = true;
    }
    if (is_far() && scene.trouble != NOBODY && !scene.bad_memory &&
        !scene.bad_queue && one_in(8)) {
        let_it_end();
        lose_queue();
    }
    alone = alone || scene.bad_queue;
    if (alone) {
        let_it_end();
    }
    rc_put(&qp, &wr);
    if (alone) {
        let_it_end();
    } else if (one_in(3)) {
        rc_ring(&qp);
    }
}

/* ---- playing ---- */

static const void *pattern(void)
{
    static uint8_t bytes[NODE_MEM];

    for (size_t i = 0; !bytes[1] && i < NODE_MEM; i++) {
        bytes[i] = guest_pattern(i, 7);
    }
    return bytes;
}

static void start_machine(struct node *n, bool frames, bool dbrecs)
{
    n->g->e->cfg.frames = frames;
    n->g->dbrecs = dbrecs;
    memcpy(guest_ptr(n->g, n->mr.addr, NODE_MEM), pattern(), NODE_MEM);
}

static void start(bool frames, bool two)
{
    bool dbrecs = one_in(2);

    start_node();
    scene.to = &node;
    if (two) {
        harness_cleanup();
        net = net_new(1);
        net->one_place = true;
        net->latency = 10;
        node = node_new(net, 1);
        there = node_new(net, 2);
        g = node.g;
        scene.to = &there;
        start_machine(&there, frames, dbrecs);
    }
    start_machine(&node, frames, dbrecs);
}

static void play(uint64_t seed, bool frames)
{
    unsigned first, more;

    memset(&scene, 0, sizeof(scene));
    memset(&srq, 0, sizeof(srq));
    scene.rng = seed * 0x9e3779b97f4a7c15u + 77;
    start(frames, one_in(2));
    first = draw(5);
    scene.trouble = (enum trouble)MIN_OF(first, (unsigned)PEER);
    draw_qps();
    draw_windows();
    draw_bad_memory();
    draw_recvs(100);
    first = 1 + draw(6);
    more = draw(3);
    for (unsigned i = 0; i < first; i++) {
        draw_send();
    }
    rc_ring(&qp);
    wait_for(draw(3000000));
    if (scene.trouble == PEER) {
        draw_recvs(200);
    }
    for (unsigned i = 0; i < more; i++) {
        draw_send();
    }
    let_it_end();
}

/* The state of a device, which may have stopped, and of its QP. */
static void look_inside(struct seen *seen, unsigned i, const struct rc_qp *q)
{
    seen->qpc[i].attr.state = vhca_qp_get(q->n->g->e, q->qpn)->state;
    seen->srqc[i].srqn = dev_state(q->n->g);
}

static void look(struct seen *seen)
{
    struct gcq *cq[] = { &qp.scq, &qp.rcq, &peer.scq, &peer.rcq, &srq.cq };

    seen_clear(seen);
    g->bad_to = scene.to->g->bad_to = 0;
    seen_queues(seen, &node.async, cq, scene.type == QHCA_QPT_XRC_INI ? 5 : 4);
    seen_end(seen, g, node.mr.addr, NODE_MEM);
    if (is_far()) {
        seen_queues(seen, &there.async, NULL, 0);
        seen_end(seen, there.g, there.mr.addr, NODE_MEM);
    }
    if (scene.bad_queue) {
        look_inside(seen, 0, &qp);
        look_inside(seen, 1, &peer);
        seen_no_packets(seen);
        return;
    }
    seen->qpc[0] = rc_query(&qp);
    seen->qpc[1] = rc_query(&peer);
    if (scene.shared) {
        (void)srq_query(&srq, &seen->srqc[0]);
    }
}

static void fuzz(void)
{
    static struct seen in_frames, direct;
    uint64_t n = seed_from_env("FUZZ_ITERATIONS", 2000);
    uint64_t seed = seed_from_env("FUZZ_SEED", 1), end = seed + n;
    unsigned failed[3] = { 0 }, waited = 0, stopped = 0;

    for (; seed < end; seed++) {
        play(seed, true);
        look(&in_frames);
        play(seed, false);
        look(&direct);
        failed[scene.trouble] += seen_failed(&in_frames);
        stopped += scene.bad_queue;
        waited += !seen_failed(&in_frames) &&
                  seen_count(&in_frames, QHCA_CNT_RX_RNR_NAK);
        if (!seen_same("in frames and direct", &in_frames, &direct)) {
            tap_note("replay: FUZZ_SEED=%llu FUZZ_ITERATIONS=1",
                     (unsigned long long)seed);
            tap_seed(seed);
            CHECK(!"the same");
        }
    }
    tap_note("of %llu, %u failed at the sender, %u at the peer, %u had to "
             "wait, %u lost a queue", (unsigned long long)n, failed[SENDER],
             failed[PEER], waited, stopped);
    CHECK_EQ(failed[NOBODY], 0);
    CHECK(n < 1000 || (failed[SENDER] && failed[PEER] && waited && stopped));
}

static const struct test tests[] = {
    { "B-060 random messages look the same with frames and without", fuzz },
};

int main(int argc, char **argv)
{
    harness_verify(VERIFY_SOMETIMES);
    return tap_main(argc, argv, tests, ARRAY_SIZE(tests), harness_cleanup);
}
