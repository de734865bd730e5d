/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: page faults of a responder that last longer than the ACK
 * timer of its peer, and all of its retries.
 */
#include "harness/faults.h"
#include "harness/odp.h"
#include "harness/snapshot.h"

#define HALF    (NODE_MEM / 2)
#define LEN     20000
#define MS      1000000ull

static struct odp odp;

static void start_slow(uint8_t retry, uint8_t rnr_retry)
{
    struct rc_opts o = RC_OPTS;

    o.retry = retry;
    o.rnr_retry = rnr_retry;
    start_pair(&o);
    odp = odp_create(g, node.pdn, node.mr.addr, NODE_MEM);
}

/* Post a message to or from absent pages of the peer; returns its wr_id. */
static uint64_t begin(uint8_t opcode)
{
    bool word = vhca_wr_info(opcode)->rules & VHCA_WR_8_BYTES;
    struct rc_wr wr = rc_wr(&qp, opcode, 0, word ? 8 : LEN);
    struct qhca_seg_le sge = { node.mr.addr + HALF, LEN, odp.key };

    wr.swap_add = 1;
    rc_aim(&wr, &node, HALF);
    wr.rkey = odp.key;
    rc_recv_raw(&peer, 7, 1, &sge);
    rc_post(&qp, &wr);
    guest_run(g);
    return wr.wr_id;
}

/* Let time pass; the driver answers only if it is @awake. */
static void wait_for(unsigned ms, bool awake)
{
    while (ms--) {
        guest_advance(g, MS);
        guest_run(g);
        if (awake) {
            odp_serve(&odp, &node);
        }
    }
}

static void wait_ms(unsigned ms)
{
    wait_for(ms, false);
}

static const uint8_t ops[] = {
    QHCA_WR_SEND, QHCA_WR_RDMA_WRITE, QHCA_WR_RDMA_WRITE_WITH_IMM,
    QHCA_WR_RDMA_READ, QHCA_WR_ATOMIC_FETCH_AND_ADD, QHCA_WR_ATOMIC_WRITE,
};

/* A QP that retries for ever without a receive WR does so without a page. */
static void patient(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
        bool read = ops[i] == QHCA_WR_RDMA_READ;
        uint64_t id, naks;

        start_slow(1, 7);
        guest_fill(g, node.mr.addr + (read ? HALF : 0), LEN, i);
        id = begin(ops[i]);
        wait_ms(3000);
        rc_expect_none(&qp.scq);
        CHECK_EQ(counter(g, QHCA_CNT_TIMEOUT), 1);
        /* 10 to 164 ms, and then every 328 ms. */
        naks = counter(g, QHCA_CNT_TX_RNR_NAK);
        CHECK(naks >= 10 && naks <= 16);
        odp_run(&odp, &node);
        wait_ms(400);
        rc_expect(&qp.scq, id, QHCA_WC_SUCCESS);
        CHECK_EQ(counter(g, QHCA_CNT_TIMEOUT), 1);
        CHECK_EQ(counter(g, QHCA_CNT_RETRY_EXC), 0);
        if (vhca_wr_info(ops[i])->rules & VHCA_WR_8_BYTES) {
            continue;
        }
        CHECK(guest_is_filled(g, node.mr.addr + (read ? 0 : HALF), LEN, i));
    }
}

/* The peer waits no longer than the fault had lasted before, and asks once. */
static void prompt(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
        uint64_t id, naks;

        start_slow(1, 7);
        id = begin(ops[i]);
        wait_ms(100);
        naks = counter(g, QHCA_CNT_TX_RNR_NAK);
        CHECK_EQ(naks, 4);      /* after 4, 14, 35, 76 ms */
        odp_serve(&odp, &node);
        wait_ms(100);
        rc_expect(&qp.scq, id, QHCA_WC_SUCCESS);
        CHECK_EQ(counter(g, QHCA_CNT_TX_RNR_NAK), naks);
    }
}

/* A peer that counts its retries fails when it has none left. */
static void impatient(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
        uint64_t id;

        start_slow(7, 3);
        id = begin(ops[i]);
        wait_ms(70);
        rc_expect_none(&qp.scq);
        wait_ms(30);
        rc_expect(&qp.scq, id, QHCA_WC_RNR_RETRY_EXC_ERR);
        CHECK_EQ(counter(g, QHCA_CNT_TX_RNR_NAK), 4);
    }
}

/* The page is denied while the peer waits: it need not ask again. */
static void denied(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
        uint64_t id;

        start_slow(1, 7);
        odp.deny = true;
        id = begin(ops[i]);
        wait_ms(40);
        CHECK_EQ(odp_answer(&odp, peer.qpn), 1);
        guest_settle(g);
        rc_expect(&qp.scq, id, ops[i] == QHCA_WR_SEND ? QHCA_WC_REM_OP_ERR :
                                                        QHCA_WC_REM_ACCESS_ERR);
    }
}

/* A READ waits in its middle, and its peer lacks what has been sent before. */
static void middle(void)
{
    static const char *const rules[] = {
        "", "tx opcode=*.read_response_first once drop",
    };

    for (unsigned i = 0; i < ARRAY_SIZE(rules); i++) {
        uint64_t id;

        start_slow(1, 7);
        faults_set(rules[i]);
        guest_fill(g, node.mr.addr + HALF, LEN, i);
        odp_set(&odp, HALF / QHCA_PAGE_SIZE, 2, ODP_ALL);
        id = begin(QHCA_WR_RDMA_READ);
        wait_ms(500);
        rc_expect_none(&qp.scq);
        CHECK_EQ(counter(g, QHCA_CNT_RETRY_EXC), 0);
        odp_run(&odp, &node);
        wait_ms(400);
        rc_expect(&qp.scq, id, QHCA_WC_SUCCESS);
        CHECK(guest_is_filled(g, node.mr.addr, LEN, i));
    }
}

/* WRs that wait behind the message keep their order. */
static void behind(void)
{
    uint64_t id[ARRAY_SIZE(ops)];

    for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
        unsigned n = 0;

        start_slow(1, 7);
        id[n++] = begin(ops[i]);
        id[n++] = begin(QHCA_WR_RDMA_READ);
        id[n++] = begin(QHCA_WR_ATOMIC_FETCH_AND_ADD);
        id[n++] = begin(QHCA_WR_RDMA_WRITE);
        wait_ms(300);
        wait_for(400, true);
        for (unsigned j = 0; j < n; j++) {
            rc_expect(&qp.scq, id[j], QHCA_WC_SUCCESS);
        }
        CHECK_EQ(counter(g, QHCA_CNT_RETRY_EXC), 0);
        /* The value that the last atomic has found. */
        CHECK_EQ(le64toh(*(uint64_t *)guest_ptr(g, node.mr.addr, 8)),
                 ops[i] == QHCA_WR_ATOMIC_FETCH_AND_ADD);
    }
}

static void saved(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
        uint64_t id;

        start_slow(1, 7);
        id = begin(ops[i]);
        wait_ms(20);
        snapshot_every(1);
        wait_ms(180);
        odp_run(&odp, &node);
        wait_ms(200);
        snapshot_every(0);
        rc_expect(&qp.scq, id, QHCA_WC_SUCCESS);
    }
    CHECK(snapshot_count() > 10);
}

static const struct test tests[] = {
    { "D-039 a peer that retries for ever waits for the driver", patient },
    { "a peer that waits asks once when the page is there", prompt },
    { "D-039 a peer that counts its retries gives up", impatient },
    { "a page is denied while the peer waits", denied },
    { "a READ waits in its middle", middle },
    { "messages behind one that waits", behind },
    { "saved and loaded while the peer waits", saved },
};

TEST_MAIN(tests)
