/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: XRC, a receive WR that waits for a page, and then another
 * request in the place of the one that took it: to another SRQ, or one that
 * needs no receive WR. The WR goes back to the SRQ it is from.
 */
#include "harness/debug.h"
#include "harness/keys.h"
#include "harness/odp.h"
#include "harness/snapshot.h"
#include "harness/xrc.h"

#define WAITS   0xaaaa      /* wr_id of the WR of SRQ 0 whose page is absent */
#define OTHER   0xbbbb          /* wr_id of a WR of SRQ 1 */

static struct xrc *x;
static struct odp odp;
static uint8_t data[4096];

static void inject(const struct gsrq *srq_to, unsigned i, uint8_t opcode,
                   uint32_t psn, size_t len)
{
    struct roce_packet p = xrc_packet(x, i, opcode, psn, (uint32_t)len);

    p.srqn = srq_to->srqn;
    peer_inject(&x->tgt, &p, data, len);
}

static void to_srq(unsigned i, uint8_t opcode, uint32_t psn, size_t len)
{
    inject(&x->srq[i], i, opcode, psn, len);
}

/* Put a WR of @sges segments in a region of PD @pdn without pages into @q. */
static void put_paged(struct gsrq *q, uint32_t pdn, unsigned sges)
{
    struct qhca_seg_le sge[QHCA_MAX_RECV_SGE];

    odp = odp_create(g, pdn, x->mr[0].addr, 4096);
    for (unsigned i = 0; i < sges; i++) {
        sge[i] = (struct qhca_seg_le) { x->mr[0].addr + 64 * i, 64, odp.key };
    }
    srq_put(q, WAITS, sges, sge);
    srq_ring(q);
}

static struct qhca_srqc query(struct gsrq *q)
{
    struct qhca_srqc c = { 0 };

    CHECK_EQ(srq_query(q, &c), QHCA_OK);
    return c;
}

/* The SRQ has @left WRs that no QP has taken; QPs hold @held. */
static void srq_has(struct gsrq *q, uint32_t left, uint32_t held)
{
    struct qhca_srqc c = query(q);

    CHECK_EQ(le32toh(c.pi) - le32toh(c.ci), left);
    CHECK_EQ(le32toh(c.held), held);
}

/* A WR of SRQ @i is complete, in its own CQ and in no other. */
static void got(unsigned i, uint64_t wr_id, unsigned status)
{
    struct qhca_cqe c = rc_expect(&x->srq[i].cq, wr_id, status);

    CHECK_EQ(le32toh(c.srqn), x->srq[i].srqn);
    rc_expect_none(&x->srq[0].cq);
    rc_expect_none(&x->srq[1].cq);
}

/* A scripted peer. SRQ 0 has a WR, which a SEND has taken and waits for. */
static void start_at(uint32_t pdn)
{
    put_paged(&x->srq[0], pdn, 1);
    xrc_alone(&x->tgt);
    xrc_recv(x, 1, OTHER, 64);
    memset(data, 0x11, sizeof(data));
    to_srq(0, RC_SEND_ONLY, XRC_PSN, 8);
    peer_expect_none(&x->tgt);
    srq_has(&x->srq[0], 0, 1);
    srq_has(&x->srq[1], 1, 0);
}

static void start(void)
{
    x = xrc_new(&RC_OPTS);
    start_at(x->pdn[0]);
}

/* The WR that has waited is the first of SRQ 0, and serves a SEND at @psn. */
static void first_again(uint32_t psn)
{
    srq_has(&x->srq[0], 1, 0);
    odp_set(&odp, 0, 1, ODP_ALL);
    peer_drain(&x->tgt);
    to_srq(0, RC_SEND_ONLY, psn, 8);
    peer_expect(&x->tgt, XRC(RC_ACKNOWLEDGE), psn);
    got(0, WAITS, QHCA_WC_SUCCESS);
    srq_has(&x->srq[0], 0, 0);
}

/* ---- a peer that changes its mind ---- */

static void send_elsewhere(void)
{
    static const uint8_t opcode[] = {
        RC_SEND_ONLY, RC_WRITE_ONLY_IMM, RC_SEND_ONLY_IMM,
    };

    for (unsigned n = 0; n < ARRAY_SIZE(opcode); n++) {
        start();
        to_srq(1, opcode[n], XRC_PSN, 8);
        peer_expect(&x->tgt, XRC(RC_ACKNOWLEDGE), XRC_PSN);
        got(1, OTHER, QHCA_WC_SUCCESS);
        srq_has(&x->srq[1], 0, 0);
        first_again(XRC_PSN + 1);
        eq_expect(&node.async, QHCA_EVENT_PAGE_FAULT, x->tgt.qpn);
        no_event();
    }
}

/* Requests without a receive WR, to the SRQ of the WR that waits or another. */
static void no_receive_wr(void)
{
    static const struct {
        uint8_t opcode, answer;
        uint32_t dma_len, len;
    } rows[] = {
        { RC_WRITE_ONLY, RC_ACKNOWLEDGE, 8, 8 },
        { RC_READ_REQUEST, RC_READ_RESP_ONLY, 8, 0 },
        { RC_FETCH_ADD, RC_ATOMIC_ACKNOWLEDGE, 8, 0 },
    };

    for (unsigned n = 0; n < 2 * ARRAY_SIZE(rows); n++) {
        unsigned i = n / ARRAY_SIZE(rows), r = n % ARRAY_SIZE(rows);
        struct roce_packet p;

        start();
        p = xrc_packet(x, i, rows[r].opcode, XRC_PSN, rows[r].dma_len);
        peer_inject(&x->tgt, &p, data, rows[r].len);
        if (le32toh(query(&x->srq[0]).held)) {
            tap_note("opcode 0x%02x to SRQ %u", rows[r].opcode, i);
        }
        peer_expect(&x->tgt, XRC(rows[r].answer), XRC_PSN);
        first_again(XRC_PSN + 1);
        srq_has(&x->srq[1], 1, 0);
    }
}

/* The first of two packets of a WRITE, in whose midst the WR must not be. */
static void write_elsewhere(void)
{
    static uint8_t big[1024];
    struct roce_packet p;

    start();
    p = xrc_packet(x, 1, RC_WRITE_FIRST, XRC_PSN, 1032);
    peer_inject(&x->tgt, &p, big, 1024);
    srq_has(&x->srq[0], 1, 0);
    to_srq(1, RC_WRITE_LAST_IMM, XRC_PSN + 1, 8);
    got(1, OTHER, QHCA_WC_SUCCESS);
    first_again(XRC_PSN + 2);
}

/* A peer alternates between SRQs; each keeps its WRs, whatever waits. */
static void to_and_fro(void)
{
    struct odp both[2];

    x = xrc_new(&RC_OPTS);
    put_paged(&x->srq[0], x->pdn[0], 1);
    both[0] = odp;
    odp = odp_create(g, x->pdn[1], x->mr[1].addr, 4096);
    srq_put(&x->srq[1], OTHER, 1, &(struct qhca_seg_le) {
        x->mr[1].addr, 64, odp.key
    });
    srq_ring(&x->srq[1]);
    both[1] = odp;
    xrc_alone(&x->tgt);
    for (unsigned n = 0; n < 20; n++) {
        unsigned i = n % 3 % 2;

        to_srq(i, RC_SEND_ONLY, XRC_PSN, 8);
        srq_has(&x->srq[i], 0, 1);
        srq_has(&x->srq[!i], 1, 0);
        peer_drain(&x->tgt);
    }
    odp_set(&both[0], 0, 1, ODP_ALL);
    odp_set(&both[1], 0, 1, ODP_ALL);
    to_srq(0, RC_SEND_ONLY, XRC_PSN, 8);
    got(0, WAITS, QHCA_WC_SUCCESS);
    to_srq(1, RC_SEND_ONLY, XRC_PSN + 1, 8);
    got(1, OTHER, QHCA_WC_SUCCESS);
}

/* ---- the same by verbs: RESET, and begin again with the same PSN ---- */

static void verbs(void)
{
    struct rc_wr wr;

    x = xrc_new(&RC_OPTS);
    put_paged(&x->srq[0], x->pdn[0], 1);
    rc_connect(&x->ini, &x->tgt);
    xrc_recv(x, 1, OTHER, 64);
    wr = xrc_wr(x, 0, QHCA_WR_SEND, 8);
    rc_do(&x->ini, &wr);
    srq_has(&x->srq[0], 0, 1);
    CHECK_EQ(rc_set_state(&x->ini, QHCA_QPS_RESET), QHCA_OK);
    rc_bring_up(&x->ini, QHCA_QPS_RTS);
    wr = xrc_wr(x, 1, QHCA_WR_SEND, 8);
    rc_finish(&x->ini, &wr, QHCA_WC_SUCCESS);
    got(1, OTHER, QHCA_WC_SUCCESS);
    srq_has(&x->srq[0], 1, 0);
    srq_has(&x->srq[1], 0, 0);
    odp_set(&odp, 0, 1, ODP_ALL);
    wr = xrc_wr(x, 0, QHCA_WR_SEND, 8);
    rc_finish(&x->ini, &wr, QHCA_WC_SUCCESS);
    got(0, WAITS, QHCA_WC_SUCCESS);
}

/* ---- keys, buffers and rings ---- */

/* Both SRQs are in one PD, so that only the owner tells the WRs apart. */
static void one_pd(void)
{
    x = xrc_new(&RC_OPTS);
    x->srq[0] = srq_create_xrc(&node, x->pdn[1], 3, 2, x->xrcdn);
    start_at(x->pdn[1]);
    odp_set(&odp, 0, 1, ODP_ALL);
    memset(data, 0x42, 8);
    to_srq(1, RC_SEND_ONLY, XRC_PSN, 8);
    got(1, OTHER, QHCA_WC_SUCCESS);
    CHECK_EQ(*(uint8_t *)guest_ptr(g, x->mr[1].addr, 1), 0x42);
    CHECK_EQ(*(uint8_t *)guest_ptr(g, x->mr[0].addr, 1), 0);
    first_again(XRC_PSN + 1);
}

/*
 * The WR is larger than the WQEs of the SRQ that is named next, whose only
 * entry ends where its ring does.
 */
static void wider(void)
{
    struct gsrq wide, narrow;
    uint8_t ring_was[256], *ring_is;

    x = xrc_new(&RC_OPTS);
    wide = srq_create_xrc(&node, x->pdn[0], 3, 32, x->xrcdn);
    narrow = srq_create_xrc(&node, x->pdn[1], 3, 1, x->xrcdn);
    put_paged(&wide, x->pdn[0], 32);
    xrc_alone(&x->tgt);
    inject(&wide, 0, RC_SEND_ONLY, XRC_PSN, 8);
    srq_has(&wide, 0, 1);
    inject(&narrow, 1, RC_WRITE_ONLY, XRC_PSN, 4);
    REQUIRE(narrow.stride == 5 && narrow.log == 3);
    ring_is = guest_ptr(g, gbuf_addr(&narrow.ring, 0), sizeof(ring_was));
    memcpy(ring_was, ring_is, sizeof(ring_was));
    srq_has(&wide, 1, 0);
    CHECK_EQ(rc_set_state(&x->tgt, QHCA_QPS_RESET), QHCA_OK);
    CHECK(!memcmp(ring_was, ring_is, sizeof(ring_was)));
    srq_has(&wide, 1, 0);
    srq_has(&narrow, 0, 0);
}

/* ---- the end of the QP or of an SRQ ---- */

/* The WR that waits, after another request or not, ends as its SRQ says. */
static void ends(void)
{
    for (unsigned n = 0; n < 8; n++) {
        bool other = n & 1;

        start();
        if (other) {
            to_srq(1, RC_WRITE_ONLY, XRC_PSN, 8);
            peer_drain(&x->tgt);
        }
        switch (n / 2) {
        case 0:
            CHECK_EQ(rc_set_state(&x->tgt, QHCA_QPS_RESET), QHCA_OK);
            srq_has(&x->srq[0], 1, 0);
            break;
        case 1:
            CHECK_EQ(rc_destroy(&x->tgt), QHCA_OK);
            srq_has(&x->srq[0], 1, 0);
            break;
        case 2:
            CHECK_EQ(srq_destroy(&x->srq[0]), QHCA_OK);
            rc_expect_none(&x->srq[0].cq);
            break;
        default:                /* one in use is flushed */
            CHECK_EQ(rc_set_state(&x->tgt, QHCA_QPS_ERR), QHCA_OK);
            guest_settle(g);
            if (!other) {
                got(0, WAITS, QHCA_WC_WR_FLUSH_ERR);
            }
            srq_has(&x->srq[0], other, 0);
            break;
        }
        rc_expect_none(&x->srq[1].cq);
        srq_has(&x->srq[1], 1, 0);
        CHECK_EQ(srq_destroy(&x->srq[1]), QHCA_OK);
    }
}

/* The answer to a fault about an SRQ that is gone by then. */
static void srq_goes(void)
{
    struct qhca_page_fault f;

    for (unsigned i = 0; i < 2; i++) {
        start();
        REQUIRE(odp_fault(g, x->tgt.qpn, QHCA_PAGE_REQUEST, &f));
        CHECK_EQ(srq_destroy(&x->srq[0]), QHCA_OK);
        CHECK_EQ(odp_resume(g, x->tgt.qpn, QHCA_PAGE_REQUEST, le32toh(f.sn),
                            0), QHCA_OK);
        guest_settle(g);
        CHECK_EQ(peer_expect(&x->tgt, XRC(RC_ACKNOWLEDGE), XRC_PSN).syndrome,
                 AETH_RNR_NAK | 1);
        to_srq(i, RC_SEND_ONLY, XRC_PSN, 8);
        CHECK_EQ(peer_expect(&x->tgt, XRC(RC_ACKNOWLEDGE), XRC_PSN).syndrome,
                 i ? AETH_ACK : AETH_NAK_INV_REQ);
        if (i) {
            rc_expect(&x->srq[1].cq, OTHER, QHCA_WC_SUCCESS);
        }
        rc_expect_none(&x->srq[0].cq);
        CHECK_EQ(rc_state(&x->tgt), i ? QHCA_QPS_RTS : QHCA_QPS_ERR);
    }
}

/*
 * The driver denies the page of a request that the peer has given up for one
 * that meets an empty SRQ, or else of the request that waits.
 */
static void denied(void)
{
    for (unsigned other = 0; other < 2; other++) {
        struct qhca_page_fault f;

        x = xrc_new(&RC_OPTS);
        put_paged(&x->srq[0], x->pdn[0], 1);
        xrc_alone(&x->tgt);
        to_srq(0, RC_SEND_ONLY, XRC_PSN, 8);
        REQUIRE(odp_fault(g, x->tgt.qpn, QHCA_PAGE_REQUEST, &f));
        if (other) {
            to_srq(1, RC_SEND_ONLY, XRC_PSN, 8);
            CHECK_EQ(peer_drain(&x->tgt), 1);
        }
        CHECK_EQ(odp_resume(g, x->tgt.qpn, QHCA_PAGE_REQUEST, le32toh(f.sn),
                            1), QHCA_OK);
        guest_settle(g);
        if (other) {
            peer_expect_none(&x->tgt);
            first_again(XRC_PSN);
        } else {
            CHECK_EQ(peer_expect(&x->tgt, XRC(RC_ACKNOWLEDGE),
                                 XRC_PSN).syndrome, AETH_NAK_OP);
            got(0, WAITS, QHCA_WC_LOC_PROT_ERR);
        }
        CHECK_EQ(rc_state(&x->tgt), other ? QHCA_QPS_RTS : QHCA_QPS_ERR);
    }
}

/* ---- saved states ---- */

static void saved(void)
{
    snapshot_every(1);
    send_elsewhere();
    no_receive_wr();
    to_and_fro();
    ends();
    denied();
    snapshot_every(0);
    CHECK(snapshot_count() > 100);
}

static const struct test tests[] = {
    { "G-012 G-020 a message to another SRQ instead", send_elsewhere },
    { "G-012 G-020 a request without a receive WR instead", no_receive_wr },
    { "G-012 G-020 a WRITE with immediate data instead", write_elsewhere },
    { "G-012 G-020 from one SRQ to the other and back", to_and_fro },
    { "G-012 G-020 RESET and the same PSN", verbs },
    { "G-003 G-020 two SRQs in one PD", one_pd },
    { "G-012 G-020 SRQs of different strides", wider },
    { "A-102 G-008 G-020 the QP or an SRQ ends", ends },
    { "G-012 an SRQ for which a request waits is destroyed", srq_goes },
    { "G-012 G-020 the page of a request that was given up is denied", denied },
    { "G-012 G-020 saved and loaded after every call", saved },
};

TEST_MAIN(tests)
