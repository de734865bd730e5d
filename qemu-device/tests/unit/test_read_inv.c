/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RDMA_READ_WITH_INV: a READ that invalidates the key of its own buffer.
 */
#include "harness/debug.h"
#include "harness/fixture.h"
#include "harness/keys.h"
#include "harness/snapshot.h"
#include "tables.h"

#define IOVA    0x123456000ull
#define PSN     0x111111u       /* sq_psn of RC_OPTS */

static struct fast f;           /* two pages at IOVA, registered by reg() */

/* A kernel QP, whose peer is another QP or the test. */
static void start(bool scripted)
{
    struct rc_opts o = RC_OPTS;

    o.qp_flags = KERNEL_QP;
    if (scripted) {
        start_alone(&o);
    } else {
        start_pair(&o);
    }
    f = fast_create(&node, 4, 2);
}

static bool usable(uint32_t key, uint64_t addr)
{
    return key_allows(g, node.pdn, qp.qpn, key, addr, 1, 0);
}

static void reg(void)
{
    struct rc_wr wr = wr_reg(&qp, &f, f.key, IOVA, QHCA_ACCESS_LOCAL_WRITE);

    rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
}

/* A READ from the peer's memory into the region. */
static struct rc_wr wr_read_inv(uint32_t len)
{
    struct rc_wr wr = rc_wr(&qp, QHCA_WR_RDMA_READ_WITH_INV, 0, len);

    wr.sge[0].addr = IOVA;
    wr.sge[0].lkey = f.key;
    wr.imm = htole32(f.key);
    rc_aim(&wr, &node, 20000);
    return wr;
}

/* The CQE is as of a READ, and the key is Free before the CQE is written. */
static void read_inv(void)
{
    struct qhca_cqe cqe;
    struct rc_wr wr;

    start(false);
    guest_fill(g, node.mr.addr + 20000, 5000, 7);
    for (unsigned i = 0; i < 4; i++) {
        reg();
        wr = wr_read_inv(i % 2 ? 4000 : 0);
        cqe = rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
        CHECK_EQ(cqe.opcode, QHCA_CQE_RDMA_READ);
        CHECK_EQ(le32toh(cqe.byte_len), i % 2 ? 4000 : 0);
        CHECK_EQ(le16toh(cqe.flags), QHCA_CQE_SQ);
        CHECK(!usable(f.key, IOVA));
        f.key = next_key(f.key);
    }
    CHECK(guest_is_filled(g, gbuf_addr(&f.buf, 0), 4000, 7));
}

static void answer(uint8_t opcode, uint32_t psn)
{
    static const uint8_t zeros[1024];
    struct roce_packet p = peer_packet(&qp, opcode, psn);

    p.syndrome = AETH_ACK;
    peer_inject(&qp, &p, zeros, 1024);
}

/* The last response invalidates the key; a duplicate does so no more. */
static void read_inv_wire(void)
{
    struct rc_wr wr;

    start(true);
    reg();
    wr = wr_read_inv(2048);
    rc_do(&qp, &wr);
    CHECK_EQ(peer_expect(&qp, RC_READ_REQUEST, PSN).dma_len, 2048);
    answer(RC_READ_RESP_FIRST, PSN);
    CHECK(usable(f.key, IOVA));
    snapshot_cycle(g);
    answer(RC_READ_RESP_LAST, PSN + 1);
    rc_expect(&qp.scq, wr.wr_id, QHCA_WC_SUCCESS);
    CHECK(!usable(f.key, IOVA));
    reg();
    answer(RC_READ_RESP_LAST, PSN + 1);
    CHECK(usable(f.key, IOVA));
    /* A READ that fails does not invalidate the key. */
    wr = wr_read_inv(2048);
    rc_do(&qp, &wr);
    peer_expect(&qp, RC_READ_REQUEST, PSN + 2);
    peer_nak(&qp, AETH_NAK_ACCESS, PSN + 2);
    rc_expect(&qp.scq, wr.wr_id, QHCA_WC_REM_ACCESS_ERR);
    CHECK(usable(f.key, IOVA));
}

/* A key that LOCAL_INV refuses gives the same error, after the data. */
static void refused_read_inv(void)
{
    for (unsigned i = 0; i < 3; i++) {
        struct rc_wr wr;

        start(false);
        reg();
        wr = wr_read_inv(4000);
        wr.imm = htole32(i == 0 ? node.mr.key : i == 1 ? 0 : next_key(f.key));
        rc_finish(&qp, &wr, I_035_RQ);
        CHECK_EQ(rc_state(&qp), I_035_RQ_QP);
        CHECK(usable(f.key, IOVA));
        CHECK(usable(node.mr.key, node.mr.addr));
    }
}

static const struct test tests[] = {
    { "B-016 B-076 RDMA_READ_WITH_INV", read_inv },
    { "B-016 B-076 RDMA_READ_WITH_INV on the wire", read_inv_wire },
    { "B-016 I-035 RDMA_READ_WITH_INV of another key", refused_read_inv },
};

TEST_MAIN(tests)
