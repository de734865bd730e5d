/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: random messages from one QP to another of the same port,
 * once in frames and once without. The guest must see the same.
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
 *   must not, and responses still to be sent are lost. Such a SEND, too, is
 *   posted when all WRs before it have completed.
 * - A READ gets its response later than WRs behind it are executed. If some
 *   memory is bad, WRs behind a READ are posted when the READ has completed.
 */
#include "harness/debug.h"
#include "harness/keys.h"
#include "harness/net.h"
#include "harness/seed.h"
#include "harness/seen.h"

#define SRC         0u
#define DST         (NODE_MEM / 2)
#define BACK        0xd8000u        /* results of READs and atomics */
#define MAX_LEN     150000u         /* longest message; BACK has room for it */
#define NEXT        70000u          /* minimal distance of SGEs */
#define BAD_KEY     0x1234u
#define MAX_RECVS   10u
#define SRQ_LOG     4
#define WINDOWS     2
#define A_LONG_TIME 10000000000ull  /* longer than all retries */

/* Which end may make something fail. */
enum trouble { NOBODY, SENDER, PEER };

/* The random choices. */
static struct {
    uint64_t rng;
    uint8_t type;               /* type of @qp */
    enum trouble trouble;
    bool bad_memory;
    bool shared;                /* @peer receives from @srq */
    uint32_t window[WINDOWS];   /* keys, 0: none */
} scene;

static unsigned draw(unsigned below)
{
    return (unsigned)((test_random(&scene.rng) >> 24) % below);
}

static bool one_in(unsigned n)
{
    return !draw(n);
}

/* one_in() for failures of the peer, if those are allowed. */
static bool peer_one_in(unsigned n)
{
    return scene.trouble == PEER && one_in(n);
}

static uint64_t at(uint64_t off)
{
    return node.mr.addr + off;
}

/* ---- the two QPs ---- */

static void draw_qps(void)
{
    static const uint8_t types[] = {
        QHCA_QPT_RC, QHCA_QPT_RC, QHCA_QPT_UC, QHCA_QPT_XRC_INI,
    };
    struct rc_opts o = opts_of(types[draw(ARRAY_SIZE(types))]);
    bool xrc = o.type == QHCA_QPT_XRC_INI;

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
        o.xrcdn = xrcd_create(g);
        o.type = QHCA_QPT_XRC_TGT;
        srq = srq_create_xrc(&node, node.pdn, SRQ_LOG, o.sges, o.xrcdn);
    } else if (scene.shared) {
        srq = srq_create(&node, node.pdn, SRQ_LOG, o.sges);
        o.srqn = srq.srqn;
    }
    if (peer_one_in(8)) {
        o.access = one_in(2) ? QHCA_ACCESS_REMOTE_READ :
                               QHCA_ACCESS_REMOTE_WRITE;
    }
    peer = rc_create(&node, &o);
    rc_set_peer(&qp, &node, peer.qpn);
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
    for (unsigned i = 0; i < WINDOWS; i++) {
        struct vhca_memop op = { .mr_key = node.mr.key, .addr = at(DST) };

        if (scene.type == QHCA_QPT_XRC_INI) {
            return;             /* keys must be of the SRQ's PD */
        }
        op.key = next_key(mw_create(g, node.pdn, QHCA_MW_2B));
        op.length = 50000 + (peer_one_in(2) ? draw(MAX_LEN) : MAX_LEN);
        op.access = QHCA_ACCESS_REMOTE_WRITE;
        REQUIRE(vhca_mw_bind(g->e, &vhca_qp_get(g->e, peer.qpn)->user, &op) ==
                QHCA_WC_SUCCESS);
        scene.window[i] = op.key;
    }
}

/* Chooses bytes for which DMA fails. */
static void draw_bad_memory(void)
{
    uint64_t start = at(SRC);

    if (scene.trouble == NOBODY || !one_in(4)) {
        return;
    }
    if (scene.trouble == PEER) {
        start = at(one_in(3) ? BACK : DST);
    }
    scene.bad_memory = true;
    g->bad_from = start + draw(MAX_LEN);
    g->bad_to = g->bad_from + 1 + draw(3000);
    if (scene.type != QHCA_QPT_XRC_INI && peer_one_in(6)) {
        g->bad_from = scene.shared ? srq.ring.block[0] : peer.rq.block[0];
        g->bad_to = g->bad_from + 1 + draw(200);
    }
}

/* ---- receive WRs ---- */

static void post_recv(uint64_t wr_id, unsigned num_sge,
                      const struct qhca_seg_le *sge)
{
    if (scene.shared) {
        srq_put(&srq, wr_id, num_sge, sge);
        srq_ring(&srq);
    } else {
        rc_recv_raw(&peer, wr_id, num_sge, sge);
    }
}

/* One to four SGEs, with room for any message unless the peer is to fail. */
static void draw_recv(uint64_t wr_id)
{
    struct qhca_seg_le sge[4] = { 0 };
    unsigned n = 1 + draw(ARRAY_SIZE(sge));
    uint32_t len = 0;

    for (unsigned i = 0; i < n; i++) {
        uint32_t part = one_in(4) ? draw(200) : draw(NEXT);

        if (scene.trouble != PEER && i == n - 1) {
            part = MAX_LEN - MIN_OF(len, MAX_LEN);
        }
        sge[i].addr = at(DST) + len + draw(20000);
        sge[i].length = part;
        sge[i].lkey = node.mr.key;
        len += part;
    }
    if (peer_one_in(10)) {
        sge[n - 1].lkey = BAD_KEY;
    }
    if (peer_one_in(10)) {
        n = one_in(2) ? 0 : 60;         /* no SGE, or too many */
    }
    post_recv(wr_id, n, sge);
}

static void draw_recvs(uint64_t wr_id)
{
    unsigned n = scene.trouble == PEER ? draw(MAX_RECVS / 2) : MAX_RECVS;

    for (unsigned i = 0; i < n; i++) {
        draw_recv(wr_id + i);
    }
    if (g->dbrecs && !scene.shared && peer_one_in(20)) {
        rq_posted(g, &peer.rq, peer.o.rq_log + peer.rq_stride,
                  peer.rq_pi + 1000);
    }
}

/* ---- send WRs ---- */

static bool is_atomic(uint8_t opcode)
{
    return opcode == QHCA_WR_ATOMIC_CMP_AND_SWP ||
           opcode == QHCA_WR_ATOMIC_FETCH_AND_ADD;
}

static uint8_t draw_opcode(void)
{
    /* UC has the first 4, XRC the first 7. */
    static const uint8_t opcodes[] = {
        QHCA_WR_SEND, QHCA_WR_SEND_WITH_IMM, QHCA_WR_RDMA_WRITE,
        QHCA_WR_RDMA_WRITE_WITH_IMM, QHCA_WR_RDMA_READ,
        QHCA_WR_ATOMIC_CMP_AND_SWP, QHCA_WR_ATOMIC_FETCH_AND_ADD,
        QHCA_WR_FLUSH, QHCA_WR_ATOMIC_WRITE, QHCA_WR_SEND_WITH_INV,
    };
    static const uint8_t number[] = {
        [QHCA_QPT_UC] = 4, [QHCA_QPT_XRC_INI] = 7,
        [QHCA_QPT_RC] = ARRAY_SIZE(opcodes),
    };
    uint8_t opcode = opcodes[draw(number[scene.type])];

    /* Later WRs may need the key that is invalidated. */
    return opcode == QHCA_WR_SEND_WITH_INV && scene.trouble != PEER ?
           QHCA_WR_SEND : opcode;
}

/* Up to three SGEs of data to send, or of the buffer for a response. */
static void draw_sges(struct rc_wr *wr, uint32_t len)
{
    uint64_t addr = le64toh(wr->sge[0].addr);

    wr->num_sge = wr->opcode == QHCA_WR_RDMA_READ || len < 10 ? 1 :
                  1 + draw(3);
    for (unsigned i = 0; i < wr->num_sge; i++) {
        uint32_t part = i == wr->num_sge - 1 ? len : draw(len);

        wr->sge[i] = (struct qhca_seg_le) { addr, part, node.mr.key };
        addr += NEXT;
        len -= part;
    }
}

static void draw_keys(struct rc_wr *wr)
{
    bool writes = wr->opcode == QHCA_WR_RDMA_WRITE ||
                  wr->opcode == QHCA_WR_RDMA_WRITE_WITH_IMM;

    if (writes && one_in(4)) {
        wr->rkey = scene.window[draw(WINDOWS)];
        wr->rkey = wr->rkey ? wr->rkey : node.mr.key;
    }
    if (peer_one_in(15)) {
        wr->rkey ^= 1;
    }
    if (one_in(20)) {
        wr->sge[0].lkey = QHCA_NULL_LKEY;
    }
    if (wr->opcode == QHCA_WR_SEND_WITH_INV) {
        /* No READ may be using the window. */
        wr->flags |= QHCA_WQE_FENCE;
        wr->imm = htole32(one_in(3) ? BAD_KEY : scene.window[draw(WINDOWS)]);
    }
}

static struct rc_wr draw_wr(void)
{
    static const uint8_t flags[] = {
        QHCA_WQE_SIGNALED, QHCA_WQE_SIGNALED | QHCA_WQE_FENCE,
        QHCA_WQE_SIGNALED | QHCA_WQE_SOLICITED, 0,
    };
    uint8_t opcode = draw_opcode();
    uint32_t len = one_in(3) ? draw(300) : draw(MAX_LEN);
    struct rc_wr wr = rc_wr(&qp, opcode, SRC + draw(50000), len);

    rc_aim(&wr, &node, DST + draw(50000));
    wr.srqn = srq.srqn;
    wr.imm = draw(1u << 30);
    wr.flags = flags[draw(ARRAY_SIZE(flags))];
    if (opcode == QHCA_WR_FLUSH) {
        wr.num_sge = 0;
        wr.flush_type = QHCA_FLUSH_GLOBAL;
        wr.flush_len = len;
    } else if (is_atomic(opcode) || opcode == QHCA_WR_ATOMIC_WRITE) {
        wr.raddr &= ~7ull;
        wr.sge[0].length = 8;
        wr.sge[0].addr = at(opcode == QHCA_WR_ATOMIC_WRITE ? SRC : BACK);
        wr.swap_add = draw(1u << 30);
    } else {
        if (opcode == QHCA_WR_RDMA_READ) {
            wr.raddr = at(SRC) + draw(50000);
            wr.sge[0].addr = at(BACK);
        }
        draw_sges(&wr, len);
    }
    draw_keys(&wr);
    return wr;
}

/* Waits until all WRs posted have completed. */
static void let_it_end(void)
{
    rc_ring(&qp);
    guest_settle(g);
    guest_advance(g, A_LONG_TIME);
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

static void play(uint64_t seed, bool frames)
{
    unsigned first, more;

    memset(&scene, 0, sizeof(scene));
    memset(&srq, 0, sizeof(srq));
    scene.rng = seed * 0x9e3779b97f4a7c15u + 77;
    start_node();
    g->e->cfg.frames = frames;
    g->dbrecs = one_in(2);
    first = draw(5);
    scene.trouble = (enum trouble)MIN_OF(first, (unsigned)PEER);
    draw_qps();
    draw_windows();
    draw_bad_memory();
    memcpy(guest_ptr(g, at(0), NODE_MEM), pattern(), NODE_MEM);
    draw_recvs(100);
    first = 1 + draw(6);
    more = draw(3);
    for (unsigned i = 0; i < first; i++) {
        draw_send();
    }
    rc_ring(&qp);
    guest_settle(g);
    guest_advance(g, draw(3000000));
    if (scene.trouble == PEER) {
        draw_recvs(200);
    }
    for (unsigned i = 0; i < more; i++) {
        draw_send();
    }
    let_it_end();
}

static void look(struct seen *seen)
{
    struct gcq *cq[] = { &qp.scq, &qp.rcq, &peer.scq, &peer.rcq, &srq.cq };

    seen_look(seen, cq, scene.type == QHCA_QPT_XRC_INI ? 5 : 4);
    if (scene.shared) {
        (void)srq_query(&srq, &seen->srqc[0]);
    }
}

static void fuzz(void)
{
    static struct seen in_frames, direct;
    uint64_t n = seed_from_env("FUZZ_ITERATIONS", 2000);
    uint64_t seed = seed_from_env("FUZZ_SEED", 1), end = seed + n;
    unsigned failed[3] = { 0 }, waited = 0;

    for (; seed < end; seed++) {
        play(seed, true);
        look(&in_frames);
        play(seed, false);
        look(&direct);
        failed[scene.trouble] += seen_failed(&in_frames);
        waited += !seen_failed(&in_frames) &&
                  seen_count(&in_frames, QHCA_CNT_RX_RNR_NAK);
        if (!seen_same("in frames and direct", &in_frames, &direct)) {
            tap_note("replay: FUZZ_SEED=%llu FUZZ_ITERATIONS=1",
                     (unsigned long long)seed);
            tap_seed(seed);
            CHECK(!"the same");
        }
    }
    tap_note("of %llu, %u failed at the sender, %u at the peer, %u had to wait",
             (unsigned long long)n, failed[SENDER], failed[PEER], waited);
    CHECK_EQ(failed[NOBODY], 0);
    CHECK(n < 1000 || (failed[SENDER] && failed[PEER] && waited));
}

static const struct test tests[] = {
    { "B-060 random messages look the same with frames and without", fuzz },
};

int main(int argc, char **argv)
{
    harness_verify(VERIFY_SOMETIMES);
    return tap_main(argc, argv, tests, ARRAY_SIZE(tests), harness_cleanup);
}
