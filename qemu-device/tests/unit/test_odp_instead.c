/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a request that waits for a page, and another one with the
 * same PSN instead of it: a peer that went through RESET may send that. Only
 * the last request counts, and its response is as if it had come first.
 */
#include "harness/fixture.h"
#include "harness/odp.h"
#include "harness/snapshot.h"

#define PSN     0x222222u       /* rq_psn of RC_OPTS */
#define HALF    (NODE_MEM / 2)
#define MTU     1024u
#define ROOM    2000u           /* of a receive WR */
#define WAITS   7               /* wr_id of the WR whose page is absent */

static struct odp odp;
static uint8_t data[MTU];
static bool shared;             /* the QP receives from an SRQ */

/* ---- the request that waits ---- */

static const uint8_t waiting[] = {
    RC_SEND_ONLY, RC_SEND_FIRST, RC_SEND_ONLY_IMM, RC_SEND_ONLY_INV,
    RC_WRITE_ONLY, RC_WRITE_FIRST, RC_WRITE_ONLY_IMM, RC_FETCH_ADD,
};

static bool is_first(uint8_t opcode)
{
    return !(roce_opcode(opcode)->flags & OPF_LAST);
}

static bool needs_wr(uint8_t opcode)
{
    return roce_opcode(opcode)->op == OP_SEND ||
           roce_opcode(opcode)->flags & OPF_IMM;
}

static size_t len_of(uint8_t opcode)
{
    return !(roce_opcode(opcode)->flags & OPF_PAYLOAD) ? 0 :
           is_first(opcode) ? MTU : 8;
}

/* A request at PSN to @off of the region, through @key. */
static void request(uint8_t opcode, uint32_t key, uint64_t off, size_t len)
{
    struct roce_packet p = peer_request(&qp, opcode, PSN, off,
                                        is_first(opcode) ? MTU + 8 : 8);

    p.rkey = key;
    p.inv_key = 0xdead00;
    peer_inject(&qp, &p, data, len);
}

static void put_recv(uint64_t wr_id, uint64_t off, uint32_t key)
{
    const struct qhca_seg_le sge = { node.mr.addr + off, ROOM, key };

    if (shared) {
        srq_put(&srq, wr_id, 1, &sge);
        srq_ring(&srq);
    } else {
        rc_recv_raw(&qp, wr_id, 1, &sge);
    }
}

/* @opcode waits for a page; the one receive WR is in absent pages as well. */
static void start_waiting(uint8_t opcode)
{
    struct rc_opts o = RC_OPTS;

    start_node();
    if (shared) {
        srq = srq_create(&node, node.pdn, 3, 2);
        o.srqn = srq.srqn;
    }
    qp = rc_scripted(&node, &o, &far);
    odp = odp_create(g, node.pdn, node.mr.addr, NODE_MEM);
    put_recv(WAITS, HALF, odp.key);
    request(opcode, odp.key, 0, len_of(opcode));
    peer_expect_none(&qp);
    eq_expect(&node.async, QHCA_EVENT_PAGE_FAULT, qp.qpn);
}

/* The receive WR has not been used, and serves the next SEND, at @psn. */
static void wr_is_next(uint32_t psn)
{
    if (shared) {
        struct qhca_srqc c;

        CHECK_EQ(srq_query(&srq, &c), QHCA_OK);
        CHECK_EQ(le32toh(c.held), 0);
        CHECK_EQ(le32toh(c.pi) - le32toh(c.ci), 1);
    }
    odp_set(&odp, 0, odp.num, ODP_ALL);
    memset(data, 0x55, 9);
    peer_send(&qp, RC_SEND_ONLY, psn, data, 9 & ~3u);
    peer_expect(&qp, RC_ACKNOWLEDGE, psn);
    rc_expect(&qp.rcq, WAITS, QHCA_WC_SUCCESS);
    rc_expect_none(&qp.rcq);
    CHECK(memory_is(HALF, 8, 0x55));
}

/* ---- what comes instead, and succeeds ---- */

static void succeeds(void)
{
    static const struct {
        uint8_t opcode, answer;
    } rows[] = {
        { RC_WRITE_ONLY, RC_ACKNOWLEDGE },
        { RC_READ_REQUEST, RC_READ_RESP_ONLY },
        { RC_CMP_SWAP, RC_ATOMIC_ACKNOWLEDGE },
        { RC_FETCH_ADD, RC_ATOMIC_ACKNOWLEDGE },
    };

    for (unsigned n = 0; n < ARRAY_SIZE(waiting) * ARRAY_SIZE(rows); n++) {
        uint8_t first = waiting[n / ARRAY_SIZE(rows)];
        uint8_t opcode = rows[n % ARRAY_SIZE(rows)].opcode;

        start_waiting(first);
        memset(data, 0x77, MTU);
        request(opcode, node.mr.key, 4096, len_of(opcode));
        peer_expect(&qp, rows[n % ARRAY_SIZE(rows)].answer, PSN);
        if (opcode == RC_WRITE_ONLY) {
            CHECK(memory_is(4096, 8, 0x77));
        }
        wr_is_next(PSN + 1);
        CHECK(memory_is(0, MTU, 0));    /* where the first was to go */
        no_event();
    }
}

/* A WRITE of several packets begins: the WR is not of that message. */
static void write_begins(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(waiting); i++) {
        struct roce_packet p;

        start_waiting(waiting[i]);
        request(RC_WRITE_FIRST, node.mr.key, 4096, MTU);
        p = peer_packet(&qp, RC_WRITE_LAST, PSN + 1);
        peer_inject(&qp, &p, data, 8);
        peer_drain(&qp);
        wr_is_next(PSN + 2);
    }
}

/* A longer or shorter one, or one of another kind, takes the same WR. */
static void takes_it(void)
{
    static const uint8_t rows[] = {
        RC_SEND_ONLY, RC_SEND_ONLY_IMM, RC_WRITE_ONLY_IMM,
    };

    for (unsigned n = 0; n < ARRAY_SIZE(waiting) * ARRAY_SIZE(rows); n++) {
        uint8_t first = waiting[n / ARRAY_SIZE(rows)];
        uint8_t opcode = rows[n % ARRAY_SIZE(rows)];
        size_t len = opcode == RC_WRITE_ONLY_IMM ? 8 : n & 1 ? 4 : 1000;
        struct qhca_cqe c;

        start_waiting(first);
        odp_set(&odp, 0, odp.num, ODP_ALL);
        memset(data, 0x33, MTU);
        request(opcode, node.mr.key, 4096, len);
        peer_expect(&qp, RC_ACKNOWLEDGE, PSN);
        c = rc_expect(&qp.rcq, WAITS, QHCA_WC_SUCCESS);
        CHECK_EQ(le32toh(c.byte_len), len);
        CHECK_EQ(le16toh(c.flags) & QHCA_CQE_IMM,
                 opcode == RC_SEND_ONLY ? 0 : QHCA_CQE_IMM);
        CHECK_EQ(le16toh(c.flags) & QHCA_CQE_INV, 0);
        CHECK(memory_is(opcode == RC_WRITE_ONLY_IMM ? 4096 : HALF, len, 0x33));
        rc_expect_none(&qp.rcq);
    }
}

/* ---- what comes instead, and is refused ---- */

/* D-026: a request that needs no receive WR fails with an event, not a CQE. */
static void refused(void)
{
    static const struct {
        uint8_t opcode, syndrome, event;
        uint32_t rkey;          /* 0: the node's */
    } rows[] = {
        { RC_WRITE_ONLY, AETH_NAK_ACCESS, QHCA_EVENT_QP_ACCESS_ERR, 0x1234 },
        { RC_READ_REQUEST, AETH_NAK_ACCESS, QHCA_EVENT_QP_ACCESS_ERR, 0x1234 },
        { RC_FETCH_ADD, AETH_NAK_ACCESS, QHCA_EVENT_QP_ACCESS_ERR, 0x1234 },
        { RC_SEND_LAST, AETH_NAK_INV_REQ, QHCA_EVENT_QP_REQ_ERR, 0 },
        { RC_WRITE_LAST_IMM, AETH_NAK_INV_REQ, QHCA_EVENT_QP_REQ_ERR, 0 },
        { RC_SEND_MIDDLE, AETH_NAK_INV_REQ, QHCA_EVENT_QP_REQ_ERR, 0 },
    };

    for (unsigned n = 0; n < ARRAY_SIZE(waiting) * ARRAY_SIZE(rows); n++) {
        unsigned r = n % ARRAY_SIZE(rows);
        uint8_t opcode = rows[r].opcode;

        start_waiting(waiting[n / ARRAY_SIZE(rows)]);
        request(opcode, rows[r].rkey ? rows[r].rkey : node.mr.key, 4096,
                len_of(opcode));
        CHECK_EQ(peer_expect(&qp, RC_ACKNOWLEDGE, PSN).syndrome,
                 rows[r].syndrome);
        eq_expect(&node.async, rows[r].event, qp.qpn);
        CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
        if (shared) {
            eq_expect(&node.async, QHCA_EVENT_LAST_WQE_REACHED, qp.qpn);
        } else {
            rc_expect(&qp.rcq, WAITS, QHCA_WC_WR_FLUSH_ERR);
        }
        rc_expect_none(&qp.rcq);
        no_event();
    }
}

/* A SEND that does not fit fails with the WR that it has, which waited. */
static void too_long(void)
{
    start_waiting(RC_SEND_ONLY);
    odp_set(&odp, 0, odp.num, ODP_ALL);
    request(RC_SEND_FIRST, node.mr.key, 0, MTU);
    peer_drain(&qp);
    peer_send(&qp, RC_SEND_LAST, PSN + 1, data, 1000);
    CHECK_EQ(peer_expect(&qp, RC_ACKNOWLEDGE, PSN + 1).syndrome,
             AETH_NAK_INV_REQ);
    rc_expect(&qp.rcq, WAITS, QHCA_WC_LOC_LEN_ERR);
    rc_expect_none(&qp.rcq);
}

/* ---- in the midst of a message ---- */

/* D-061: the second packet of a SEND waits, and something else comes. */
static void midway(void)
{
    static const uint8_t rows[] = { RC_SEND_ONLY, RC_WRITE_ONLY, RC_FETCH_ADD };

    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        struct roce_packet p;

        start_waiting(RC_SEND_FIRST);
        odp_set(&odp, 0, odp.num, ODP_ALL);
        request(RC_SEND_FIRST, 0, 0, MTU);
        peer_drain(&qp);
        CHECK_EQ(odp_clear(&odp, 0, odp.num), QHCA_OK);
        peer_send(&qp, RC_SEND_LAST, PSN + 1, data, 8);
        peer_expect_none(&qp);
        p = peer_request(&qp, rows[i], PSN + 1, 4096, 8);
        peer_inject(&qp, &p, data, len_of(rows[i]));
        CHECK_EQ(peer_expect(&qp, RC_ACKNOWLEDGE, PSN + 1).syndrome,
                 AETH_NAK_INV_REQ);
        rc_expect(&qp.rcq, WAITS, QHCA_WC_REM_INV_REQ_ERR);
    }
}

/* The last packet of a WRITE has taken the WR, and one without it comes. */
static void without_immediate(void)
{
    struct roce_packet p;

    start_waiting(RC_WRITE_FIRST);
    odp_set(&odp, 0, 1, ODP_ALL);
    request(RC_WRITE_FIRST, odp.key, 0, MTU);
    peer_drain(&qp);
    CHECK_EQ(odp_clear(&odp, 0, odp.num), QHCA_OK);
    p = peer_packet(&qp, RC_WRITE_LAST_IMM, PSN + 1);
    peer_inject(&qp, &p, data, 8);
    peer_expect_none(&qp);
    odp_set(&odp, 0, odp.num, ODP_ALL);
    p = peer_packet(&qp, RC_WRITE_LAST, PSN + 1);
    peer_inject(&qp, &p, data, 8);
    peer_expect(&qp, RC_ACKNOWLEDGE, PSN + 1);
    wr_is_next(PSN + 2);
}

/* ---- the answer to the fault of a request that was given up ---- */

static void stale_answer(void)
{
    for (unsigned deny = 0; deny < 2; deny++) {
        struct qhca_page_fault f;

        start_waiting(RC_WRITE_ONLY);
        REQUIRE(odp_fault(g, qp.qpn, QHCA_PAGE_REQUEST, &f));
        /* The new request takes the WR, and a second one finds none. */
        odp_set(&odp, 0, odp.num, ODP_ALL);
        request(RC_SEND_ONLY, 0, 0, 8);
        peer_send(&qp, RC_SEND_ONLY, PSN + 1, data, 8);
        rc_expect(&qp.rcq, WAITS, QHCA_WC_SUCCESS);
        peer_drain(&qp);
        CHECK_EQ(odp_resume(g, qp.qpn, QHCA_PAGE_REQUEST, le32toh(f.sn), deny),
                 QHCA_OK);
        guest_settle(g);
        peer_expect_none(&qp);
        CHECK_EQ(rc_state(&qp), QHCA_QPS_RTS);
    }
}

/* The request that comes instead, at the same PSN, meets an empty queue. */
static void stale_at_psn(void)
{
    for (unsigned deny = 0; deny < 2; deny++) {
        struct rc_opts o = RC_OPTS;
        struct qhca_page_fault f;

        start_alone(&o);
        odp = odp_create(g, node.pdn, node.mr.addr, NODE_MEM);
        request(RC_WRITE_ONLY, odp.key, 0, 8);
        REQUIRE(odp_fault(g, qp.qpn, QHCA_PAGE_REQUEST, &f));
        request(RC_SEND_ONLY, 0, 0, 8);
        CHECK_EQ(peer_expect(&qp, RC_ACKNOWLEDGE, PSN).syndrome,
                 AETH_RNR_NAK | o.min_rnr);
        CHECK_EQ(odp_resume(g, qp.qpn, QHCA_PAGE_REQUEST, le32toh(f.sn), deny),
                 QHCA_OK);
        guest_settle(g);
        peer_expect_none(&qp);
        rc_recv(&qp, 3, 0, 100);
        request(RC_SEND_ONLY, 0, 0, 8);
        peer_expect(&qp, RC_ACKNOWLEDGE, PSN);
        rc_expect(&qp.rcq, 3, QHCA_WC_SUCCESS);
    }
}

/* ---- the same in other surroundings ---- */

static void everything(void)
{
    succeeds();
    write_begins();
    takes_it();
    refused();
    too_long();
    midway();
    without_immediate();
    stale_answer();
}

static void in_srq(void)
{
    shared = true;
    everything();
    shared = false;
}

static void saved(void)
{
    snapshot_every(1);
    without_immediate();
    shared = true;
    without_immediate();
    takes_it();
    shared = false;
    snapshot_every(0);
    CHECK(snapshot_count() > 100);
}

/* A request that waits with a WR is flushed with it. */
static void flushed(void)
{
    for (unsigned i = 0; i < 2 * ARRAY_SIZE(waiting); i++) {
        shared = i & 1;
        start_waiting(waiting[i / 2]);
        CHECK_EQ(rc_set_state(&qp, QHCA_QPS_ERR), QHCA_OK);
        guest_settle(g);
        if (!shared || needs_wr(waiting[i / 2])) {
            rc_expect(&qp.rcq, WAITS, QHCA_WC_WR_FLUSH_ERR);
        }
        rc_expect_none(&qp.rcq);
    }
    shared = false;
}

static const struct test tests[] = {
    { "D-090 a request without a receive WR instead", succeeds },
    { "D-090 a WRITE of several packets instead", write_begins },
    { "D-090 another request with a receive WR instead", takes_it },
    { "D-026 D-090 one that is refused instead", refused },
    { "D-066 D-090 a longer one instead", too_long },
    { "D-061 D-090 another one in the midst of a message", midway },
    { "D-090 a WRITE ends without the immediate data that waited",
      without_immediate },
    { "D-090 the answer comes when another request has come", stale_answer },
    { "D-090 the same at the same PSN", stale_at_psn },
    { "D-090 G-020 all of it with an SRQ", in_srq },
    { "A-097 A-102 those that wait are flushed", flushed },
    { "D-090 G-020 saved and loaded after every call", saved },
};

TEST_MAIN(tests)
