/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: receive WQEs announced by a doorbell record. With
 * QHCA_TEST_DBREC the harness rings only if the record asks for it.
 */
#include <stdlib.h>

#include "harness/fixture.h"
#include "harness/snapshot.h"

static struct qhca_rq_dbrec *record_at(const struct gbuf *ring, unsigned log)
{
    return guest_ptr(g, gbuf_addr(ring, 1ull << log),
                     sizeof(struct qhca_rq_dbrec));
}

static struct qhca_rq_dbrec *record(const struct rc_qp *q)
{
    return record_at(&q->rq, q->o.rq_log + q->rq_stride);
}

static struct qhca_rq_dbrec *srq_record(void)
{
    return record_at(&srq.ring, srq.log + srq.stride);
}

static void send(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct rc_wr wr = rc_wr(&qp, QHCA_WR_SEND, 0, 100);

        rc_post(&qp, &wr);
    }
    guest_settle(g);
}

/* ---- the QP's own queue ---- */

static void without_doorbell(void)
{
    start_pair(&RC_OPTS);
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < 40; i++) {
            rc_recv(&peer, i, 0, 4096);
        }
        CHECK(!record(&peer)->ring);
        send(40);
        for (unsigned i = 0; i < 40; i++) {
            rc_expect(&peer.rcq, i, QHCA_WC_SUCCESS);
            rc_expect(&qp.scq, 0x1000 + round * 40 + i, QHCA_WC_SUCCESS);
        }
    }
    CHECK_EQ(counter(g, QHCA_CNT_TX_RNR_NAK), 0);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 0);
}

static void too_late(void)
{
    start_pair(&RC_OPTS);
    send(1);
    CHECK_EQ(counter(g, QHCA_CNT_TX_RNR_NAK), 1);
    rc_recv(&peer, 7, 0, 4096);
    guest_advance(g, 1000000000);
    rc_expect(&peer.rcq, 7, QHCA_WC_SUCCESS);
    rc_expect(&qp.scq, 0x1000, QHCA_WC_SUCCESS);
}

static void queried(void)
{
    struct qhca_srqc c;

    start_pair(&RC_OPTS);
    rc_recv(&peer, 1, 0, 4096);
    CHECK_EQ(le32toh(rc_query(&peer).rq_pi), 1);
    start_shared(4, 4, 1, &RC_OPTS);
    srq_post(&srq, 1, 0, 4096);
    CHECK_EQ(srq_query(&srq, &c), QHCA_OK);
    CHECK_EQ(le32toh(c.pi), 1);
    srq_record()->pi = htole32(17);
    CHECK_EQ(srq_query(&srq, &c), QHCA_ERR_STATE);
}

/* In ERR every WQE is flushed, whenever it was posted. */
static void flushed(void)
{
    start_pair(&RC_OPTS);
    rc_recv(&peer, 1, 0, 4096);
    rc_recv(&peer, 2, 0, 4096);
    CHECK_EQ(rc_set_state(&peer, QHCA_QPS_ERR), QHCA_OK);
    guest_settle(g);
    rc_expect(&peer.rcq, 1, QHCA_WC_WR_FLUSH_ERR);
    rc_expect(&peer.rcq, 2, QHCA_WC_WR_FLUSH_ERR);
    CHECK(record(&peer)->ring);
    rc_recv(&peer, 3, 0, 4096);
    guest_settle(g);
    rc_expect(&peer.rcq, 3, QHCA_WC_WR_FLUSH_ERR);
    rc_expect_none(&peer.rcq);
}

/* A WQE posted after the QP is in ERR and before the device reports it. */
static void flushed_between(void)
{
    start_pair(&RC_OPTS);
    vhca_qp_error(g->e, vhca_qp_get(g->e, peer.qpn), 0);
    CHECK(!record(&peer)->ring);
    rc_recv(&peer, 1, 0, 4096);
    CHECK(!record(&peer)->ring);
    g->host.todo = 0;
    qhca_engine_run(g->e, *g->clock);
    CHECK(record(&peer)->ring);
    rc_expect(&peer.rcq, 1, QHCA_WC_WR_FLUSH_ERR);
}

static void begins_anew(void)
{
    flushed();
    CHECK_EQ(rc_set_state(&peer, QHCA_QPS_RESET), QHCA_OK);
    CHECK(!record(&peer)->ring && !record(&peer)->pi);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RESET), QHCA_OK);
    rc_connect(&qp, &peer);
    rc_recv(&peer, 9, 0, 4096);
    CHECK(!record(&peer)->ring);
    send(1);
    rc_expect(&peer.rcq, 9, QHCA_WC_SUCCESS);
}

/* An index that decreases or exceeds the ring is like an unreadable ring. */
static void nonsense(void)
{
    static const uint32_t wrong[] = { 65, 0x80000000, 0xffffffff };

    for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++) {
        start_pair(&RC_OPTS);
        record(&peer)->pi = htole32(wrong[i]);
        send(1);
        CHECK_EQ(rc_state(&peer), QHCA_QPS_ERR);
        CHECK(counter(g, QHCA_CNT_BAD_DOORBELL) > 0);
        eq_expect(&node.async, QHCA_EVENT_QP_FATAL, peer.qpn);
        rc_expect_none(&peer.rcq);
    }
}

static void unreadable(void)
{
    start_pair(&RC_OPTS);
    rc_recv(&peer, 1, 0, 4096);
    guest_spoil(g, gbuf_addr(&peer.rq,
                             1ull << (peer.o.rq_log + peer.rq_stride)), 64);
    send(1);
    CHECK_EQ(rc_state(&peer), QHCA_QPS_ERR);
    eq_expect(&node.async, QHCA_EVENT_QP_FATAL, peer.qpn);
}

/* A record needs a ring in front of it and must lie in the ring's buffer. */
static void refused(void)
{
    struct rc_opts o = RC_OPTS;
    struct qhca_create_qp c = { 0 };
    uint32_t qpn;

    start_pair(&o);
    c.sq = qp.sq.desc;
    c.rq = qp.rq.desc;
    c.pdn = htole32(node.pdn);
    c.uar = htole32(1);
    c.send_cqn = c.recv_cqn = htole32(qp.scq.cqn);
    c.type = QHCA_QPT_RC;
    c.sq_log_size = (uint8_t)o.sq_log;
    c.sq_log_stride = (uint8_t)qp.sq_stride;
    c.rq_log_size = (uint8_t)o.rq_log;
    c.rq_log_stride = (uint8_t)qp.rq_stride;
    c.flags = QHCA_QP_FLAG_RQ_DBREC;
    CHECK_EQ(rc_create_raw(g, &c, &qpn), QHCA_OK);
    c.rq = guest_buf(g, 1ull << (o.rq_log + qp.rq_stride), 12, 0).desc;
    CHECK_EQ(rc_create_raw(g, &c, &qpn), QHCA_ERR_PARAM);
    memset(&c.rq, 0, sizeof(c.rq));
    CHECK_EQ(rc_create_raw(g, &c, &qpn), QHCA_ERR_PARAM);
    c.flags = 0;
    CHECK_EQ(rc_create_raw(g, &c, &qpn), QHCA_OK);
}

/* ---- shared receive queues ---- */

static void send_shared(unsigned wr_id)
{
    rc_send(&tx[0], 100);
    rc_expect(&rx[0].rcq, wr_id, QHCA_WC_SUCCESS);
}

/* The limit counts WQEs that are posted, whether or not the device knows. */
static void limit(void)
{
    start_shared(4, 4, 1, &RC_OPTS);
    srq_fill(&srq, 6, 4096);
    CHECK_EQ(srq_limit(&srq, 4), QHCA_OK);
    no_event();
    send_shared(0);
    srq_post(&srq, 6, 0, 4096);
    send_shared(1);
    send_shared(2);
    no_event();
    send_shared(3);
    eq_expect(&node.async, QHCA_EVENT_SRQ_LIMIT_REACHED, srq.srqn);
    CHECK(!srq_record()->ring);
}

static void resized(void)
{
    start_shared(4, 4, 1, &RC_OPTS);
    srq_fill(&srq, 9, 4096);
    CHECK_EQ(srq_resize(&srq, 3, 0, 0), QHCA_ERR_STATE);
    CHECK_EQ(srq_resize(&srq, 6, 0, 0), QHCA_OK);
    srq_post(&srq, 9, 0, 4096);
    for (unsigned i = 0; i < 10; i++) {
        send_shared(i);
    }
}

static void shared_nonsense(void)
{
    start_shared(4, 4, 1, &RC_OPTS);
    srq_record()->pi = htole32(17);
    CHECK_EQ(srq_limit(&srq, 1), QHCA_OK);
    eq_expect(&node.async, QHCA_EVENT_SRQ_ERR, srq.srqn);
    CHECK_EQ(srq_limit(&srq, 1), QHCA_ERR_STATE);
}

/* ---- both ---- */

static void saved(void)
{
    flushed();
    snapshot_cycle(g);
    rc_recv(&peer, 4, 0, 4096);
    guest_settle(g);
    rc_expect(&peer.rcq, 4, QHCA_WC_WR_FLUSH_ERR);
    start_shared(4, 4, 1, &RC_OPTS);
    srq_post(&srq, 1, 0, 4096);
    snapshot_cycle(g);
    srq_post(&srq, 2, 0, 4096);
    send_shared(1);
    send_shared(2);
}

static const struct test tests[] = {
    { "WQEs are found without a doorbell", without_doorbell },
    { "a WQE posted too late is used after the RNR wait", too_late },
    { "QUERY_QP and QUERY_SRQ count the WQEs", queried },
    { "A-098 A-099 in ERR all WQEs are flushed", flushed },
    { "A-098 a WQE posted while the QP enters ERR", flushed_between },
    { "A-104 after RESET the record starts from 0", begins_anew },
    { "an index that makes no sense", nonsense },
    { "a record that cannot be read", unreadable },
    { "a record without a ring, or outside of it", refused },
    { "G-005 G-006 an SRQ's limit", limit },
    { "G-007 an SRQ's new ring", resized },
    { "H-010 an SRQ's index that makes no sense", shared_nonsense },
    { "saved and loaded", saved },
};

int main(int argc, char **argv)
{
    setenv("QHCA_TEST_DBREC", "1", 1);
    return tap_main(argc, argv, tests, ARRAY_SIZE(tests), harness_cleanup);
}
