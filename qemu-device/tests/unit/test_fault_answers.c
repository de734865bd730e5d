/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a fault rule ends the QP that is sending an answer.
 */
#include "harness/fixture.h"
#include "harness/snapshot.h"

static void ends(const char *rule, uint8_t opcode)
{
    static uint8_t state[1 << 20];
    char why[160] = "";
    struct rc_wr wr;
    uint64_t before;

    start_pair(&RC_OPTS);
    for (unsigned i = 0; i < 30; i++) {
        wr = rc_wr(&qp, opcode, 0, 8);
        rc_aim(&wr, &node, 4096);
        rc_post(&qp, &wr);
    }
    guest_settle(g);
    guest_set_faults(g, rule);
    wr = rc_wr(&qp, opcode, 0, 8);
    rc_aim(&wr, &node, 4096);
    before = counter(g, QHCA_CNT_TX_PKTS);
    rc_do(&qp, &wr);
    tap_note("%s: %llu packets for one request and its answer", rule,
             (unsigned long long)(counter(g, QHCA_CNT_TX_PKTS) - before));
    CHECK(counter(g, QHCA_CNT_TX_PKTS) - before <= 3);
    CHECK_EQ(rc_state(&peer), QHCA_QPS_ERR);
    if (!qhca_engine_save(g->e, *g->clock, state, sizeof(state), why,
                          sizeof(why))) {
        tap_note("not saved: %s", why);
        CHECK(false);
    }
}

static void test_ack(void)
{
    ends("tx opcode=rc.acknowledge once event=qp_fatal", QHCA_WR_RDMA_WRITE);
}

static void test_read(void)
{
    ends("tx opcode=rc.read_response_* once event=qp_req_err",
         QHCA_WR_RDMA_READ);
}

static void test_atomic(void)
{
    ends("tx opcode=rc.atomic_acknowledge once event=qp_access_err",
         QHCA_WR_ATOMIC_FETCH_AND_ADD);
}

static const struct test tests[] = {
    { "the QP that sends an ACK ends by rule", test_ack },
    { "the QP that sends READ data ends by rule", test_read },
    { "the QP that sends the answer to an atomic ends by rule", test_atomic },
};

TEST_MAIN(tests)
