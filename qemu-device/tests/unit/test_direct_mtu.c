/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the two ends of a connection disagree about the path MTU.
 * Packets that cross as one must have the effect that they have as frames.
 */
#include <stdio.h>

#include "harness/seen.h"

#define SRC     0u
#define DST     (NODE_MEM / 2)

static void connect_qps(uint8_t mine, uint8_t peers)
{
    struct rc_opts o = RC_OPTS;

    o.mtu = mine;
    o.retry = o.rnr_retry = 1;
    qp = rc_create(&node, &o);
    o.mtu = peers;
    peer = rc_create(&node, &o);
    rc_connect(&qp, &peer);
}

static void play(uint8_t opcode, uint8_t mine, uint8_t peers, uint32_t len,
                 bool frames, struct seen *seen)
{
    struct gcq *cq[] = { &qp.scq, &qp.rcq, &peer.scq, &peer.rcq };
    struct rc_wr wr;

    start_node();
    g->e->cfg.frames = frames;
    connect_qps(mine, peers);
    guest_fill(g, node.mr.addr, NODE_MEM, 7);
    rc_recv(&peer, 1, DST, len);
    wr = rc_wr(&qp, opcode, SRC, len);
    rc_aim(&wr, &node, DST);
    rc_do(&qp, &wr);
    guest_advance(g, 10000000000ull);
    seen_look(seen, cq, ARRAY_SIZE(cq));
}

static void test_mtus(void)
{
    static const uint8_t opcodes[] = {
        QHCA_WR_SEND, QHCA_WR_RDMA_WRITE, QHCA_WR_RDMA_READ,
    };
    static const uint32_t lens[] = { 100, 512, 2048, 5000, 65536 };
    static struct seen in_frames, direct;

    for (unsigned i = 0; i < 5 * 5 * ARRAY_SIZE(opcodes); i++) {
        uint8_t a = (uint8_t)(1 + i % 5), b = (uint8_t)(1 + i / 5 % 5);
        uint8_t opcode = opcodes[i / 25];

        for (unsigned l = 0; l < ARRAY_SIZE(lens); l++) {
            char name[80];

            snprintf(name, sizeof(name), "opcode %u, %u bytes, MTU %u and %u",
                     opcode, lens[l], 128u << a, 128u << b);
            play(opcode, a, b, lens[l], true, &in_frames);
            play(opcode, a, b, lens[l], false, &direct);
            CHECK(seen_same(name, &in_frames, &direct));
        }
    }
}

/* Only the first packet counts of a response that does not fit. */
static void test_counts(void)
{
    static struct seen seen;

    for (unsigned frames = 0; frames < 2; frames++) {
        play(QHCA_WR_RDMA_READ, 1, 3, 65536, frames, &seen);
        CHECK_EQ(counter(g, QHCA_CNT_RX_PKTS), 2);      /* and the request */
    }
}

static const struct test tests[] = {
    { "MTUs that differ have the same effect with and without frames",
      test_mtus },
    { "a response of another MTU is one packet", test_counts },
};

TEST_MAIN(tests)
