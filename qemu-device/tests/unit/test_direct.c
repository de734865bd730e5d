/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: packets between QPs of one port need no frames, and many
 * may cross as one. The guest must not notice: each scene is played with frames
 * and without, and must look the same.
 */
#include <stdio.h>

#include "harness/seen.h"
#include "harness/xrc.h"

#define SRC     0u
#define DST     (NODE_MEM / 2)
#define FILL    7               /* seed of a pattern unlike the others */
#define LEN     200000u         /* more packets than fit a window */

/* struct scene - @num messages of @len bytes, and what goes wrong */
struct scene {
    const char *name;
    uint8_t type;               /* with ALONE: the QP is its own peer */
    uint8_t opcode, mtu;
    uint32_t len;
    unsigned num;
    void (*before)(struct rc_wr *wr);   /* runs before the first WR is posted */
};

/* ---- what can go wrong ---- */

static void short_recv(struct rc_wr *wr)
{
    (void)wr;
    rc_recv(&peer, 1, DST, LEN / 2 + 3);
}

static void post_recvs(struct rc_wr *wr)
{
    (void)wr;
    for (unsigned i = 1; i < 8; i++) {
        rc_recv(&peer, i, DST, LEN);
    }
}

/* The key of an SGE of no bytes does not count. */
static void recv_in_parts(struct rc_wr *wr)
{
    struct qhca_seg_le sge[4] = { { .lkey = htole32(0x77) } };

    for (unsigned i = 1; i < ARRAY_SIZE(sge); i++) {
        sge[i].addr = htole64(node.mr.addr + DST + (i - 1) * 100001);
        sge[i].length = htole32(70001);
        sge[i].lkey = htole32(node.mr.key);
    }
    rc_recv_raw(&peer, 100, ARRAY_SIZE(sge), sge);
    post_recvs(wr);
}

/* The last SGE of the receive WR names no memory. */
static void bad_recv_key(struct rc_wr *wr)
{
    struct qhca_seg_le sge[2] = {
        { htole64(node.mr.addr + DST), htole32(LEN / 2), htole32(node.mr.key) },
        { htole64(node.mr.addr + DST), htole32(LEN), htole32(0x1234) },
    };

    (void)wr;
    rc_recv_raw(&peer, 1, ARRAY_SIZE(sge), sge);
}

/* A receive WQE with more SGEs than the QP allows. */
static void bad_recv(uint64_t wr_id)
{
    static const struct qhca_seg_le none[4];

    rc_recv_raw(&peer, wr_id, 60, none);
}

static void bad_recv_wqe(struct rc_wr *wr)
{
    (void)wr;
    bad_recv(1);
}

static void bad_recv_next(struct rc_wr *wr)
{
    (void)wr;
    rc_recv(&peer, 1, DST, LEN);
    bad_recv(2);
    rc_recv(&peer, 3, DST, LEN);
}

static void bad_ring(struct rc_wr *wr)
{
    post_recvs(wr);
    guest_spoil(g, peer.rq.block[0], 1);
}

static void empty_recvs(struct rc_wr *wr)
{
    (void)wr;
    rc_recv_raw(&peer, 1, 0, NULL);
    rc_recv_raw(&peer, 2, 0, NULL);
}

static void bad_rkey(struct rc_wr *wr)
{
    post_recvs(wr);
    wr->rkey ^= 1;
}

static void past_the_end(struct rc_wr *wr)
{
    wr->raddr = node.mr.addr + NODE_MEM - LEN + 1;
}

/* DMA fails for one byte of the source or the destination. */
static void bad_byte(struct rc_wr *wr, uint64_t off)
{
    post_recvs(wr);
    guest_spoil(g, node.mr.addr + off, 1);
}

static void bad_target(struct rc_wr *wr)
{
    bad_byte(wr, DST + LEN / 2);
}

static void bad_start(struct rc_wr *wr)
{
    bad_byte(wr, DST + 1500);
}

static void bad_source(struct rc_wr *wr)
{
    bad_byte(wr, SRC + LEN / 2);
}

static void bad_end(struct rc_wr *wr)
{
    bad_byte(wr, SRC + LEN - 1);
}

/* The null key between two parts that can be read in place. */
static void null_middle(struct rc_wr *wr)
{
    post_recvs(wr);
    wr->num_sge = 3;
    wr->sge[1] = wr->sge[2] = wr->sge[0];
    wr->sge[0].length = wr->sge[2].length = LEN / 4;
    wr->sge[1].length = LEN / 2;
    wr->sge[1].lkey = VHCA_NULL_LKEY;
    wr->sge[2].addr += LEN / 2;
}

static void no_right(struct rc_wr *wr)
{
    struct qhca_qp_attr a = { .access = htole16(0) };

    (void)wr;
    REQUIRE(rc_modify(&peer, &a, QHCA_QP_ACCESS_FLAGS) == QHCA_OK);
}

/* The port's MTU is smaller than the path's. */
static void small_port(struct rc_wr *wr)
{
    post_recvs(wr);
    port_enable(g, test_mac, QHCA_PORT_ENABLE, 600);
}

static void port_down(struct rc_wr *wr)
{
    (void)wr;
    qhca_engine_set_link(g->e, *g->clock, false);
}

static void peer_gone(struct rc_wr *wr)
{
    (void)wr;
    REQUIRE(rc_set_state(&peer, QHCA_QPS_ERR) == QHCA_OK);
}

/* A READ waits for its response, before a SEND that is too long. */
static void read_in_front(struct rc_wr *wr)
{
    struct rc_wr send = rc_wr(&qp, QHCA_WR_SEND, SRC, 118069);
    struct rc_wr read = rc_wr(&qp, QHCA_WR_RDMA_READ, SRC, 157);

    (void)wr;
    rc_recv(&peer, 1, DST, 118975);
    rc_recv(&peer, 2, DST + 118975, 33050);
    rc_aim(&read, &node, DST + 160000);
    rc_put(&qp, &send);
    rc_put(&qp, &read);
}

#define RC      QHCA_QPT_RC
#define UC      QHCA_QPT_UC
#define SEND    QHCA_WR_SEND
#define WRITE   QHCA_WR_RDMA_WRITE
#define IMM     QHCA_WR_RDMA_WRITE_WITH_IMM
#define READ    QHCA_WR_RDMA_READ
#define ALONE   0x80

static const struct scene scenes[] = {
    { "RC SEND", RC, SEND, 3, LEN, 5, post_recvs },
    { "RC SEND into three SGEs", RC, SEND, 2, LEN, 5, recv_in_parts },
    { "RC SEND of nothing", RC, SEND, 3, 0, 5, post_recvs },
    { "RC SEND with immediate", RC, QHCA_WR_SEND_WITH_IMM, 1, 70003, 5,
      post_recvs },
    { "RC WRITE", RC, WRITE, 5, LEN, 5, NULL },
    { "RC WRITE of one byte", RC, WRITE, 5, 1, 5, NULL },
    { "RC WRITE of whole packets", RC, WRITE, 5, 8 * 4096, 5, NULL },
    { "RC WRITE with immediate", RC, IMM, 2, LEN, 5, post_recvs },
    { "RC SEND too long behind a READ", RC, SEND, 5, 38228, 1, read_in_front },
    { "RC READ", RC, READ, 4, LEN, 5, NULL },
    { "RC READ of nothing", RC, READ, 4, 0, 5, NULL },
    { "RC atomic", RC, QHCA_WR_ATOMIC_FETCH_AND_ADD, 4, 8, 5, NULL },
    { "RC ATOMIC WRITE", RC, QHCA_WR_ATOMIC_WRITE, 4, 8, 5, NULL },
    { "RC FLUSH", RC, QHCA_WR_FLUSH, 4, 0, 5, NULL },
    { "UC SEND", UC, SEND, 3, LEN, 5, post_recvs },
    { "UC WRITE with immediate", UC, IMM, 2, LEN, 5, post_recvs },
    { "no receive WR", RC, SEND, 3, LEN, 1, NULL },
    { "no receive WR for the last packet", RC, IMM, 3, LEN, 1, NULL },
    { "UC, no receive WR", UC, SEND, 3, LEN, 2, NULL },
    { "a receive WR that is too short", RC, SEND, 3, LEN, 2, short_recv },
    { "UC, a receive WR that is too short", UC, SEND, 3, LEN, 2, short_recv },
    { "a receive WR with a bad key", RC, SEND, 3, LEN, 2, bad_recv_key },
    { "UC, a receive WR with a bad key", UC, SEND, 3, LEN, 2, bad_recv_key },
    { "SEND, a bad receive WQE", RC, SEND, 3, LEN, 2, bad_recv_wqe },
    { "SEND of one packet, a bad receive WQE", RC, SEND, 3, 10, 2,
      bad_recv_wqe },
    { "UC SEND, a bad receive WQE", UC, SEND, 3, LEN, 2, bad_recv_wqe },
    { "WRITE with immediate, a bad receive WQE", RC, IMM, 3, LEN, 2,
      bad_recv_wqe },
    { "UC WRITE with immediate, a bad receive WQE", UC, IMM, 3, LEN, 2,
      bad_recv_wqe },
    { "SEND, then a bad receive WQE", RC, SEND, 3, LEN, 3, bad_recv_next },
    { "UC SEND, then a bad receive WQE", UC, SEND, 3, LEN, 3, bad_recv_next },
    { "WRITE with immediate, then a bad receive WQE", RC, IMM, 3, LEN, 3,
      bad_recv_next },
    { "SEND, an unreadable receive WQE", RC, SEND, 3, LEN, 2, bad_ring },
    { "UC SEND, an unreadable receive WQE", UC, SEND, 3, LEN, 2, bad_ring },
    { "WRITE with immediate, an unreadable receive WQE", RC, IMM, 3, LEN, 2,
      bad_ring },
    { "SEND into no SGE", RC, SEND, 3, LEN, 2, empty_recvs },
    { "UC SEND into no SGE", UC, SEND, 3, LEN, 2, empty_recvs },
    { "WRITE with immediate, a receive WR of no SGE", RC, IMM, 3, LEN, 2,
      empty_recvs },
    { "WRITE, a bad R_Key", RC, WRITE, 3, LEN, 2, bad_rkey },
    { "UC WRITE, a bad R_Key", UC, WRITE, 3, LEN, 2, bad_rkey },
    { "WRITE with immediate, a bad R_Key", RC, IMM, 3, 5000, 2, bad_rkey },
    { "UC WRITE with immediate, a bad R_Key", UC, IMM, 3, 5000, 2, bad_rkey },
    { "WRITE with immediate, bad memory", RC, IMM, 3, 5000, 2, bad_start },
    { "WRITE of two packets, bad memory", RC, WRITE, 3, 2048, 2, bad_start },
    { "SEND, bad memory from the start", RC, SEND, 3, 5000, 2, bad_start },
    { "WRITE with immediate, nothing posted", RC, IMM, 3, 5000, 2, NULL },
    { "UC WRITE with immediate, nothing posted", UC, IMM, 3, 5000, 2, NULL },
    { "READ, a bad R_Key", RC, READ, 3, LEN, 2, bad_rkey },
    { "WRITE past the end", RC, WRITE, 3, LEN, 2, past_the_end },
    { "WRITE, bad memory", RC, WRITE, 3, LEN, 2, bad_target },
    { "UC WRITE, bad memory", UC, WRITE, 3, LEN, 2, bad_target },
    { "SEND, bad memory", RC, SEND, 3, LEN, 2, bad_target },
    { "READ, bad memory to read", RC, READ, 3, LEN, 2, bad_target },
    { "WRITE, bad memory to send", RC, WRITE, 3, LEN, 2, bad_source },
    { "UC SEND, bad memory to send", UC, SEND, 3, LEN, 2, bad_source },
    { "READ, bad memory to read into", RC, READ, 3, LEN, 2, bad_source },
    { "READ, bad memory at the end", RC, READ, 3, LEN, 2, bad_end },
    { "SEND of the null key", RC, SEND, 3, LEN, 2, null_middle },
    { "READ into the null key", RC, READ, 3, LEN, 2, null_middle },
    { "SEND that invalidates a bad key", RC, QHCA_WR_SEND_WITH_INV, 3, 100, 2,
      post_recvs },
    { "WRITE without the right", RC, WRITE, 3, LEN, 2, no_right },
    { "a port of a small MTU", RC, SEND, 3, LEN, 1, small_port },
    { "a port that is down", RC, WRITE, 3, LEN, 1, port_down },
    { "a peer in ERR", RC, WRITE, 3, LEN, 1, peer_gone },
    { "its own peer", RC | ALONE, SEND, 3, LEN, 5, post_recvs },
    { "its own peer, READ", RC | ALONE, READ, 3, LEN, 5, NULL },
    { "its own peer, no right", RC | ALONE, WRITE, 3, LEN, 2, no_right },
    { "its own peer, bad key of a READ", RC | ALONE, READ, 3, LEN, 2,
      bad_rkey },
    { "its own peer, READ of bad memory", RC | ALONE, READ, 3, LEN, 2,
      bad_target },
    { "its own peer, READ into bad memory", RC | ALONE, READ, 3, LEN, 2,
      bad_source },
    { "its own peer, UC", UC | ALONE, SEND, 3, LEN, 3, bad_target },
};

/* ---- playing them ---- */

static void start(const struct scene *s, bool frames)
{
    struct rc_opts o = opts_of((uint8_t)(s->type & ~ALONE));

    o.mtu = s->mtu;
    o.retry = 1;
    o.rnr_retry = 1;
    start_node();
    g->e->cfg.frames = frames;
    qp = rc_create(&node, &o);
    if (s->type & ALONE) {
        qp.o.rq_psn = qp.o.sq_psn;
        rc_set_peer(&qp, &node, qp.qpn);
        rc_bring_up(&qp, QHCA_QPS_RTS);
        peer = qp;
    } else {
        peer = rc_create(&node, &o);
        rc_connect(&qp, &peer);
    }
    guest_fill(g, node.mr.addr, NODE_MEM, FILL);
}

static void play(const struct scene *s)
{
    struct rc_wr wr = rc_wr(&qp, s->opcode, SRC, s->len);

    rc_aim(&wr, &node, DST);
    if (s->opcode == QHCA_WR_FLUSH) {
        wr.num_sge = 0;
        wr.flush_type = QHCA_FLUSH_GLOBAL;
    }
    if (s->before) {
        s->before(&wr);
    }
    for (unsigned i = 0; i < s->num; i++) {
        wr.wr_id = 0x1000 + i;
        rc_put(&qp, &wr);
    }
    rc_ring(&qp);
    guest_settle(g);
    guest_advance(g, 10000000000ull);
    qhca_engine_set_link(g->e, *g->clock, true);
}

static void look(const struct scene *s, struct seen *seen)
{
    struct gcq *cq[] = { &qp.scq, &qp.rcq, &peer.scq, &peer.rcq };

    seen_look(seen, cq, s->type & ALONE ? 2 : 4);
}

/*
 * A QP that is its own peer and fails drops responses that are still frames;
 * responses without frames have arrived already. The buffer of a failed READ
 * is undefined, but each byte must be an old one or a correct new one.
 */
static void forgive_part(const struct scene *s, struct seen *in_frames,
                         struct seen *direct)
{
    if (!(s->type & ALONE) || s->opcode != READ || !seen_failed(in_frames)) {
        return;
    }
    for (unsigned i = SRC; i < SRC + s->len; i++) {
        uint8_t old = guest_pattern(i, FILL);
        uint8_t new = guest_pattern(i - SRC + DST, FILL);

        if ((direct->mem[i] != old && direct->mem[i] != new) ||
            (in_frames->mem[i] != old && in_frames->mem[i] != new)) {
            return;
        }
    }
    memcpy(direct->mem + SRC, in_frames->mem + SRC, s->len);
}

static void test_same(void)
{
    static struct seen in_frames, direct;

    for (unsigned i = 0; i < ARRAY_SIZE(scenes); i++) {
        start(&scenes[i], true);
        play(&scenes[i]);
        CHECK(g->e->port->loop.tail || scenes[i].before == port_down);
        look(&scenes[i], &in_frames);
        start(&scenes[i], false);
        play(&scenes[i]);
        CHECK(!g->e->port->loop.tail || scenes[i].before == small_port ||
              scenes[i].type & ALONE);
        look(&scenes[i], &direct);
        forgive_part(&scenes[i], &in_frames, &direct);
        CHECK(seen_same(scenes[i].name, &in_frames, &direct));
    }
}

/* Each byte is copied once, to its final place. */
static void test_one_copy(void)
{
    static const uint8_t opcodes[] = {
        QHCA_WR_RDMA_WRITE, QHCA_WR_SEND, QHCA_WR_RDMA_READ,
        QHCA_WR_RDMA_WRITE_WITH_IMM,
    };

    for (unsigned i = 0; i < ARRAY_SIZE(opcodes); i++) {
        struct rc_opts o = RC_OPTS;
        struct rc_wr wr;

        o.mtu = 5;
        start_pair(&o);
        guest_fill(g, node.mr.addr, 65536, 5);
        rc_recv(&peer, 1, DST, 65536);
        wr = rc_wr(&qp, opcodes[i], SRC, 65536);
        if (opcodes[i] == QHCA_WR_RDMA_READ) {
            wr.sge[0].addr = htole64(node.mr.addr + DST);
            rc_aim(&wr, &node, SRC);
        } else {
            rc_aim(&wr, &node, DST);
        }
        rc_put(&qp, &wr);
        g->reads = g->writes = 0;
        rc_ring(&qp);
        done(0, QHCA_WC_SUCCESS);
        CHECK(guest_is_filled(g, node.mr.addr + DST, 65536, 5));
        /* WQEs and CQEs, and a write for each page, as dma_peek() has it. */
        CHECK(g->reads <= 2);
        CHECK(g->writes <= 65536 / 4096 + 2);
        /* One look at each page, and one write to it. */
        CHECK(g->cost.dma <= 2 * (65536 / 4096) + 6);
        CHECK_EQ(counter(g, QHCA_CNT_TX_PKTS),
                 16 + (opcodes[i] == QHCA_WR_RDMA_READ ? 1 :
                       counter(g, QHCA_CNT_TX_ACK)));
    }
}

/* While a datagram waits as a frame, packets after it also become frames. */
static void test_behind_a_frame(void)
{
    static const uint8_t frame[64];

    start_pair(&RC_OPTS);
    post_writes(&qp, 2, 100);
    qp.sq_pi = 1;
    rc_ring(&qp);
    done(0, QHCA_WC_SUCCESS);
    heap_use(g->heap);
    REQUIRE(vhca_fifo_push(&g->e->port->loop, frame, sizeof(frame), qp.qpn,
                           0));
    heap_use(NULL);
    vhca_qp_schedule(g->e, vhca_qp_get(g->e, qp.qpn));
    vhca_qp_get(g->e, qp.qpn)->sq.pi = 2;
    g->e->limit = 1000;
    vhca_qp_turn(g->e);
    CHECK_EQ(vhca_fifo_used(&g->e->port->loop), 2);
    qhca_engine_run(g->e, *g->clock);
    done(1, QHCA_WC_SUCCESS);
}

static const struct test tests[] = {
    { "B-060 the guest sees the same with frames and without", test_same },
    { "packets that cross at once are copied once", test_one_copy },
    { "a packet behind a frame is a frame", test_behind_a_frame },
};

TEST_MAIN(tests)
