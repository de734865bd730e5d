/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data that reach memory late: for how long, and what ends that. */
#include "harness/litmus.h"
#include "harness/snapshot.h"

/* Nothing is late for longer than the rule says. */
static void test_within(void)
{
    start_litmus(false);
    for (unsigned seed = 1; seed <= 400; seed++) {
        guest_set_faults(g, "port order=adversarial within=5us");
        litmus_clear();
        put_write(&qp, X, LEN);
        rc_ring(&qp);
        let_pass(5001, 100);
        CHECK(is_all(X, LEN, 0xff));
        drain_cq(&qp.scq);
    }
    CHECK_EQ(g->host.deadline, UINT64_MAX);
}

/* "Within a nanosecond" is the next one, and each piece has been hit. */
static void test_at_once(void)
{
    unsigned late = 0;

    start_litmus(false);
    guest_set_faults(g, "port order=adversarial within=1us");
    g->e->rules->disorder->within = 1;
    for (unsigned i = 0; i < 50; i++) {
        uint64_t hits = guest_fault_hits(g);

        litmus_clear();
        put_write(&qp, X, LEN);
        rc_ring(&qp);
        CHECK_EQ(guest_fault_hits(g) > hits, g->e->memory->late.num > 0);
        late += g->e->memory->late.num > 0;
        let_pass(1, 100);
        CHECK(is_all(X, LEN, 0xff));
        drain_cq(&qp.scq);
    }
    CHECK(late > 0);
}

/* Whether a WRITE of 64 bytes to X leaves only its first part late. */
static bool one_is_late(void)
{
    litmus_clear();
    put_write(&qp, X, 64);
    rc_ring(&qp);
    drain_cq(&qp.scq);
    return g->e->memory->late.num == 1 && !is_all(X, 64, 0);
}

/* The device itself looks behind data that are late, and they stay late. */
static void test_beside(void)
{
    const struct vhca_rule_data *h;
    struct vhca_key_user user = { 0 };
    struct vhca_mr *mr;
    uint8_t byte;

    start_litmus(false);
    guest_set_faults(g, "port order=adversarial within=1ms grain=1");
    for (unsigned i = 0; !one_is_late(); i++) {
        REQUIRE(i < 1000);
        let_pass(2000000, 100);
    }
    user.pd = vhca_qp_get(g->e, qp.qpn)->pd;
    h = g->e->rules->data;
    mr = vhca_mr_check(g->e, &user, node.mr.key, h->addr, 1, 0);
    REQUIRE(mr);
    vhca_mr_read(g->e, mr, h->addr + h->len, &byte, 1);
    vhca_mr_read(g->e, mr, h->addr - 1, &byte, 1);
    CHECK_EQ(g->e->memory->late.num, 1);
    vhca_mr_read(g->e, mr, h->addr + h->len - 1, &byte, 1);
    CHECK_EQ(g->e->memory->late.num, 0);
    CHECK_EQ(byte, 0xff);
}

/* An event tells of nothing that has not reached memory. */
static void test_event(void)
{
    unsigned late = 0;

    start_litmus(false);
    for (unsigned seed = 1; seed <= 50; seed++) {
        guest_set_faults(g, "port order=adversarial within=1ms");
        litmus_clear();
        put_write(&qp, X, LEN);
        rc_ring(&qp);
        late += g->e->memory->late.num > 0;
        qhca_engine_set_link(g->e, *g->clock, seed % 2 == 0);
        CHECK_EQ(g->e->memory->late.num, 0);
        drain_cq(&qp.scq);
    }
    CHECK(late > 0);
}

/* A saved state has nothing that is late: it is in memory by then. */
static void test_saved(void)
{
    uint8_t *state;
    size_t len;

    start_litmus(false);
    for (unsigned seed = 1; seed <= 20; seed++) {
        litmus_clear();
        put_write(&qp, X, LEN);
        put_op(&qp_two, QHCA_WR_RDMA_READ, Y, X, LEN);
        rc_ring(&qp);
        rc_ring(&qp_two);
        state = snapshot_save(g, &len);
        CHECK(is_all(X, LEN, 0xff));
        CHECK(snapshot_load(g, state, len));
        ring_done(&qp, &qp.scq, 1);
        ring_done(&qp_two, &qp_two.scq, 1);
        CHECK(is_all(Y, LEN, 0xff));
    }
}

/* After a reset nothing is written, and no READ waits. */
static void test_reset(void)
{
    start_litmus(false);
    guest_set_faults(g, "port order=adversarial");
    put_write(&qp, X, 2000);
    put_op(&qp_two, QHCA_WR_RDMA_READ, Y, SRC, LEN);
    rc_ring(&qp_two);
    rc_ring(&qp);
    CHECK(g->e->memory->late.num && g->host.deadline != UINT64_MAX);
    qhca_engine_reset(g->e, *g->clock);
    memset(spot(X), 0, LEN);
    CHECK_EQ(g->e->memory->late.num, 0);
    let_pass(1000000, 1000);
    CHECK(is_all(X, LEN, 0));
    CHECK_EQ(g->host.deadline, UINT64_MAX);
}

/* Data that do not fit are written now, and in the end all are right. */
static void test_full(void)
{
    const uint32_t len = 100000;

    start_litmus(false);
    guest_set_faults(g, "port order=adversarial");
    for (unsigned i = 0; i < 20; i++) {
        guest_fill(g, node.mr.addr + SRC, len, i);
        rc_recv(&peer, 1, NODE_MEM / 2, len);
        put_op(&qp, QHCA_WR_SEND, SRC, 0, len);
        ring_done(&qp, &peer.rcq, 1);
        CHECK(guest_is_filled(g, node.mr.addr + NODE_MEM / 2, len, i));
        put_op(&qp, QHCA_WR_RDMA_READ, NODE_MEM / 4, SRC, len);
        ring_done(&qp, &qp.scq, 2);
        CHECK(guest_is_filled(g, node.mr.addr + NODE_MEM / 4, len, i));
    }
}

/*
 * Data read early are for one READ. The next READ of the QP has the same number
 * and address here, as after 2^24 others.
 */
static void test_once(void)
{
    struct vhca_qp *q;

    start_litmus(false);
    guest_set_faults(g, "port order=adversarial");
    q = vhca_qp_get(g->e, peer.qpn);
    for (unsigned i = 0; i < 50; i++) {
        litmus_clear();
        put_op(&qp, QHCA_WR_RDMA_READ, Y, X, LEN);
        ring_done(&qp, &qp.scq, 1);
        CHECK(is_all(Y, LEN, 0));
        q->rsp.msn = psn_add(q->rsp.msn, -1u);
        memset(spot(X), 0xff, LEN);
        put_op(&qp, QHCA_WR_RDMA_READ, Y, X, LEN);
        ring_done(&qp, &qp.scq, 1);
        CHECK(is_all(Y, LEN, 0xff));
    }
}

static const struct test tests[] = {
    { "for how long", test_within },
    { "for no longer than a nanosecond", test_at_once },
    { "what is beside them", test_beside },
    { "an event", test_event },
    { "a saved state", test_saved },
    { "a reset", test_reset },
    { "large messages", test_full },
    { "data read early", test_once },
};

TEST_MAIN(tests)
