/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the ACK timer on a device that its operator's limits make
 * late.
 */
#include "harness/budget.h"

static struct rc_qp many[400];

/* 200 QPs of a slow device post four WRs each, to the next QP. */
static void start_many(unsigned share, unsigned bandwidth, uint8_t opcode,
                       const struct rc_opts *o)
{
    struct rc_wr wr;

    start_limited(share, bandwidth, o);
    for (unsigned i = 0; i < 400; i += 2) {
        many[i] = rc_create(&node, o);
        many[i + 1] = rc_create(&node, o);
        rc_connect(&many[i], &many[i + 1]);
    }
    guest_advance(g, 10000000000);
    for (unsigned i = 0; i < 400; i += 2) {
        for (unsigned j = 0; j < 4; j++) {
            wr = rc_wr(&many[i], opcode, 0, 65536);
            rc_aim(&wr, &node, NODE_MEM / 2);
            rc_put(&many[i], &wr);
        }
        rc_ring(&many[i]);
    }
}

/* A message that waits for the limit of either end is late, not lost. */
static void test_late(void)
{
    static const struct {
        unsigned share, bandwidth;
        uint8_t opcode;
    } c[] = {
        { 1, 0, QHCA_WR_RDMA_WRITE }, { 1, 0, QHCA_WR_RDMA_READ },
        { 0, 100, QHCA_WR_RDMA_WRITE }, { 0, 100, QHCA_WR_RDMA_READ },
        { 0, 20, QHCA_WR_RDMA_READ },
    };
    struct rc_opts o = RC_OPTS;
    struct qhca_cqe cqe;

    o.timeout = 14;                     /* 67 ms, a usual one */
    o.mtu = 5;
    for (unsigned j = 0; j < ARRAY_SIZE(c); j++) {
        start_many(c[j].share, c[j].bandwidth, c[j].opcode, &o);
        guest_advance(g, 100000000000);
        for (unsigned i = 0; i < 800; i++) {
            REQUIRE(cq_poll(&many[i / 4 * 2].scq, &cqe));
            CHECK_EQ(cqe.status, QHCA_WC_SUCCESS);
        }
        CHECK_EQ(counter(g, QHCA_CNT_TIMEOUT), 0);
    }
}

/* On a device that others keep busy, a dead peer is noticed all the same. */
static void test_dead_peer(void)
{
    static const struct {
        unsigned share, bandwidth;
    } c[] = { { 10, 0 }, { 0, 100 } };
    struct rc_opts o = RC_OPTS;
    struct qhca_cqe cqe;
    struct rc_wr wr;

    o.timeout = 8;                      /* 1 ms */
    o.retry = 1;
    for (unsigned j = 0; j < ARRAY_SIZE(c); j++) {
        start_many(c[j].share, c[j].bandwidth, QHCA_WR_RDMA_READ, &o);
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_QP, peer.qpn), QHCA_OK);
        wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 8);
        rc_put(&qp, &wr);
        rc_ring(&qp);
        while (!cq_poll(&qp.scq, &cqe)) {
            REQUIRE(!vhca_list_empty(c[j].share ? &g->e->qps->ready.busy :
                                                  &g->e->qps->tx_wait.busy));
            guest_advance(g, 1000000);
        }
        CHECK_EQ(cqe.status, QHCA_WC_RETRY_EXC_ERR);
    }
}

static const struct test tests[] = {
    { "D-045 what waits for a limit is not lost", test_late },
    { "D-045 nor does a limit hide a dead peer", test_dead_peer },
};

TEST_MAIN(tests)
