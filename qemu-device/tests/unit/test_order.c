/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work requests without packets, mixed with others: when they are executed,
 * when they complete, and that none is executed twice (IBTA 10.8.3).
 */
#include "harness/debug.h"
#include "harness/keys.h"
#include "harness/scripted.h"

#define RW      (QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE | \
                 QHCA_ACCESS_REMOTE_READ)
#define IOVA    0x123456000ull
#define PSN     0x111111u       /* sq_psn of RC_OPTS */

static struct fast f;

static void start(void)
{
    struct rc_opts o = RC_OPTS;

    o.sq_log = 8;
    o.qp_flags = KERNEL_QP;
    o.cq_log = 9;
    start_alone(&o);
    f = fast_create(&node, 4, 3);
}

static bool usable(uint32_t key)
{
    return key_allows(g, node.pdn, qp.qpn, key, IOVA, 1, 0);
}

static void put_reg(uint32_t key, unsigned flags)
{
    struct rc_wr wr = wr_reg(&qp, &f, key, IOVA, RW);

    wr.flags |= (uint8_t)flags;
    rc_put(&qp, &wr);
}

static void put_inv(uint32_t key)
{
    struct rc_wr wr = wr_inv(&qp, QHCA_WR_LOCAL_INV, key);

    rc_put(&qp, &wr);
}

/* REG_MR does not wait, but completes in order (B-064). */
static void reg_among_sends(void)
{
    start();
    put(QHCA_WR_SEND, 10);
    put_reg(f.key, 0);
    put(QHCA_WR_SEND, 10);
    put_reg(next_key(f.key), 0);        /* fails: Valid already */
    put(QHCA_WR_SEND, 10);
    go();
    peer_expect(&qp, RC_SEND_ONLY, PSN);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 1);
    peer_expect_none(&qp);
    CHECK(usable(f.key));
    rc_expect_none(&qp.scq);
    peer_ack(&qp, PSN);
    done(0, QHCA_WC_SUCCESS);
    done(1, QHCA_WC_SUCCESS);
    rc_expect_none(&qp.scq);
    peer_ack(&qp, PSN + 1);
    done(2, QHCA_WC_SUCCESS);
    done(3, QHCA_WC_MW_BIND_ERR);
    done(4, QHCA_WC_WR_FLUSH_ERR);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
}

/* B-052: LOCAL_INV waits for all WRs before it; all after it wait for it. */
static void inv_waits(void)
{
    struct rc_wr wr;

    start();
    put_reg(f.key, 0);
    wr = rc_wr(&qp, QHCA_WR_SEND, 0, 100);
    wr.sge[0].addr = IOVA;
    wr.sge[0].lkey = f.key;
    rc_put(&qp, &wr);
    put_inv(f.key);
    put_reg(next_key(f.key), 0);
    put(QHCA_WR_SEND, 10);
    go();
    done(0, QHCA_WC_SUCCESS);
    peer_expect(&qp, RC_SEND_ONLY, PSN);
    peer_expect_none(&qp);
    CHECK(usable(f.key));
    peer_nak(&qp, AETH_NAK_SEQ, PSN);           /* a retry, key still valid */
    peer_expect(&qp, RC_SEND_ONLY, PSN);
    peer_expect_none(&qp);
    peer_ack(&qp, PSN);
    done(1, QHCA_WC_SUCCESS);
    done(2, QHCA_WC_SUCCESS);
    done(3, QHCA_WC_SUCCESS);
    CHECK(!usable(f.key) && usable(next_key(f.key)));
    peer_expect(&qp, RC_SEND_ONLY, PSN + 1);
    peer_ack(&qp, PSN + 1);
    done(4, QHCA_WC_SUCCESS);
}

static void fence(void)
{
    start();
    put(QHCA_WR_RDMA_READ, 100);
    put_reg(f.key, QHCA_WQE_FENCE);
    go();
    CHECK(!usable(f.key));
    answer_read(RC_READ_RESP_ONLY, PSN, 100);
    CHECK(usable(f.key));
    done(0, QHCA_WC_SUCCESS);
    done(1, QHCA_WC_SUCCESS);
}

/* Lists read by the device: a WR executed twice reads its list twice. */
static unsigned lists_read;

static void on_dma(struct guest *guest, uint64_t addr, size_t len, bool write)
{
    (void)guest;
    (void)len;
    lists_read += addr == f.table && !write;
}

/* Retries from different PSNs before a REG_MR do not execute it again. */
static void retries(void)
{
    start();
    g->on_dma = on_dma;
    lists_read = 0;
    put(QHCA_WR_SEND, 10);
    put(QHCA_WR_SEND, 10);
    put_reg(f.key, 0);
    put(QHCA_WR_SEND, 10);
    go();
    CHECK_EQ(peer_drain(&qp), 3);
    for (unsigned i = 0; i < 3; i++) {
        peer_nak(&qp, AETH_NAK_SEQ, PSN);
        CHECK_EQ(peer_drain(&qp), 3);
    }
    guest_advance(g, 4096ull << 10);            /* the ACK timer */
    CHECK_EQ(peer_drain(&qp), 3);
    peer_nak(&qp, AETH_NAK_SEQ, PSN + 1);
    done(0, QHCA_WC_SUCCESS);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 1);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 2);
    peer_nak(&qp, AETH_NAK_SEQ, PSN + 2);       /* right after the REG_MR */
    done(1, QHCA_WC_SUCCESS);
    done(2, QHCA_WC_SUCCESS);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 2);
    peer_ack(&qp, PSN + 2);
    done(3, QHCA_WC_SUCCESS);
    CHECK_EQ(lists_read, 1);
    CHECK(usable(f.key) && g->host.deadline == UINT64_MAX);
}

/*
 * The send cursor is back before the REG_MR when an ACK of everything
 * arrives.
 */
static void late_ack(void)
{
    start();
    put(QHCA_WR_SEND, 10);
    put_reg(f.key, 0);
    put_reg(next_key(f.key), 0);        /* fails when its turn comes */
    go();
    CHECK_EQ(peer_drain(&qp), 1);
    peer_nak(&qp, AETH_RNR_NAK | 14, PSN);              /* go back, and wait */
    CHECK_EQ(peer_drain(&qp), 0);
    peer_ack(&qp, PSN);
    done(0, QHCA_WC_SUCCESS);
    done(1, QHCA_WC_SUCCESS);
    done(2, QHCA_WC_MW_BIND_ERR);
}

static void late_ack_and_on(void)
{
    start();
    put(QHCA_WR_SEND, 10);
    put_reg(f.key, 0);
    put(QHCA_WR_SEND, 3000);
    go();
    CHECK_EQ(peer_drain(&qp), 4);
    peer_nak(&qp, AETH_RNR_NAK | 14, PSN);
    peer_ack(&qp, PSN + 1);
    done(0, QHCA_WC_SUCCESS);
    done(1, QHCA_WC_SUCCESS);
    guest_advance(g, 2000000);
    peer_expect(&qp, RC_SEND_MIDDLE, PSN + 2);
    peer_expect(&qp, RC_SEND_LAST, PSN + 3);
    peer_ack(&qp, PSN + 3);
    done(2, QHCA_WC_SUCCESS);
}

/* SQD keeps executed WRs, and gives the others back. */
static void drain(void)
{
    start();
    put(QHCA_WR_SEND, 10);
    put_reg(f.key, 0);
    put_inv(f.key);
    put(QHCA_WR_SEND, 10);
    go();
    CHECK_EQ(peer_drain(&qp), 1);
    CHECK_EQ(rc_drain(&qp), QHCA_OK);
    CHECK(rc_query(&qp).sq_draining);
    CHECK_EQ(le32toh(rc_query(&qp).sq_next), 2);
    peer_nak(&qp, AETH_NAK_SEQ, PSN);
    CHECK_EQ(peer_drain(&qp), 1);
    peer_ack(&qp, PSN);
    done(0, QHCA_WC_SUCCESS);
    done(1, QHCA_WC_SUCCESS);
    rc_expect_none(&qp.scq);
    CHECK(usable(f.key));
    eq_expect(&node.async, QHCA_EVENT_SQ_DRAINED, qp.qpn);
    CHECK(!rc_query(&qp).sq_draining);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    guest_settle(g);
    done(2, QHCA_WC_SUCCESS);
    CHECK(!usable(f.key));
    peer_expect(&qp, RC_SEND_ONLY, PSN + 1);
    peer_ack(&qp, PSN + 1);
    done(3, QHCA_WC_SUCCESS);
}

/* SQD when a WR without packets is the last, and when there are no others. */
static void drain_last(void)
{
    start();
    put(QHCA_WR_SEND, 10);
    put_reg(f.key, 0);
    go();
    CHECK_EQ(peer_drain(&qp), 1);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_SQD), QHCA_OK);
    CHECK_EQ(le32toh(rc_query(&qp).sq_next), 2);
    peer_ack(&qp, PSN);
    done(0, QHCA_WC_SUCCESS);
    done(1, QHCA_WC_SUCCESS);
    put_inv(f.key);
    go();
    rc_expect_none(&qp.scq);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    guest_settle(g);
    done(2, QHCA_WC_SUCCESS);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_SQD), QHCA_OK);
    CHECK(!rc_query(&qp).sq_draining);
}

static void flush(void)
{
    start();
    put(QHCA_WR_SEND, 10);
    put_reg(f.key, 0);
    put_inv(f.key);
    put_reg(f.key, 0);
    go();
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_ERR), QHCA_OK);
    guest_settle(g);
    all_done(0, 4, QHCA_WC_WR_FLUSH_ERR);
    put_inv(f.key);
    go();
    done(4, QHCA_WC_WR_FLUSH_ERR);
    CHECK(usable(f.key));
}

/* Behind a slow WR, more WRs without packets than a QP starts at a time. */
static void many(void)
{
    start();
    put(QHCA_WR_SEND, 10);
    for (unsigned i = 0; i < 100; i++) {
        put_reg(f.key, 0);
        put_inv(f.key);
    }
    go();
    rc_expect_none(&qp.scq);
    peer_ack(&qp, PSN);
    all_done(0, 201, QHCA_WC_SUCCESS);
    CHECK(!usable(f.key));
    CHECK_EQ(g->host.deadline, UINT64_MAX);
}

/* The CQE of a later WR says that the slots of unsignaled ones are free. */
static void unsignaled(void)
{
    struct qhca_cqe cqe;

    start();
    for (unsigned i = 0; i < 600; i++) {
        struct rc_wr wr = i % 2 ? wr_inv(&qp, QHCA_WR_LOCAL_INV, f.key) :
                                  wr_reg(&qp, &f, f.key, IOVA, RW);

        wr.flags = i % 50 == 49 ? QHCA_WQE_SIGNALED : 0;
        rc_post(&qp, &wr);
        if (wr.flags) {
            guest_settle(g);
            cqe = rc_expect(&qp.scq, 0x1000 + i, QHCA_WC_SUCCESS);
            CHECK_EQ(le32toh(cqe.wqe_index), i);
            CHECK_EQ(cqe.opcode, QHCA_CQE_LOCAL_INV);
        }
    }
}

/* On UC nothing is acknowledged, and a failure leads to SQE. */
static void unreliable(void)
{
    struct rc_opts o = RC_OPTS;

    o.type = QHCA_QPT_UC;
    o.qp_flags = KERNEL_QP;
    start();
    qp = rc_scripted(&node, &o, &far);
    put(QHCA_WR_SEND, 10);
    put_reg(f.key, 0);
    put(QHCA_WR_SEND, 10);
    put_inv(f.key);
    put_inv(next_key(f.key));
    put_reg(f.key, 0);
    go();
    CHECK_EQ(peer_drain(&qp), 2);
    all_done(0, 4, QHCA_WC_SUCCESS);
    done(4, QHCA_WC_MW_BIND_ERR);
    done(5, QHCA_WC_WR_FLUSH_ERR);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_SQE);
    CHECK(!usable(f.key));
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    put_reg(f.key, 0);
    go();
    done(6, QHCA_WC_SUCCESS);
    CHECK(usable(f.key));
}

/* WRs without packets must not have SGEs or inline data. */
static void malformed(void)
{
    struct rc_wr wr;

    for (unsigned i = 0; i < 2; i++) {
        start();
        wr = wr_inv(&qp, QHCA_WR_LOCAL_INV, f.key);
        wr.num_sge = i ? 0 : 1;
        wr.flags |= i ? QHCA_WQE_INLINE : 0;
        rc_finish(&qp, &wr, QHCA_WC_LOC_QP_OP_ERR);
    }
}

static const struct test tests[] = {
    { "B-064 F-027 REG_MR among SENDs", reg_among_sends },
    { "B-052 LOCAL_INV waits, and later WRs wait for it", inv_waits },
    { "B-051 FENCE", fence },
    { "D-048 a retry does not repeat WRs without packets", retries },
    { "a late ACK while the cursor is back before a REG_MR", late_ack },
    { "a late ACK, then the rest is sent again", late_ack_and_on },
    { "A-084 A-085 A-087 SQD", drain },
    { "A-084 A-087 SQD with WRs without packets last, and alone", drain_last },
    { "A-097 A-099 flush", flush },
    { "more WRs than a QP starts at a time", many },
    { "unsignaled WRs, which the CQE of a later one counts", unsignaled },
    { "B-010 B-011 A-091 UC", unreliable },
    { "WRs without packets must not have data", malformed },
};

TEST_MAIN(tests)
