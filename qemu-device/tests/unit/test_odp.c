/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: regions without pages: every access waits for the driver
 * to provide them, on each side of each kind of message.
 */
#include <stdio.h>

#include "harness/fixture.h"
#include "harness/odp.h"
#include "harness/snapshot.h"

#define HALF    (NODE_MEM / 2)
#define PAGE    QHCA_PAGE_SIZE

static struct odp odp;

static void start_odp(const struct rc_opts *o)
{
    start_pair(o);
    odp = odp_create(g, node.pdn, node.mr.addr, NODE_MEM);
}

/* ---- messages ---- */

enum side { LOCAL, REMOTE, BOTH };

/* @wr between the halves of the region, through @odp on one side or both. */
static struct rc_wr message(uint8_t opcode, uint32_t len, enum side side)
{
    struct rc_wr wr = rc_wr(&qp, opcode, 3, len);

    rc_aim(&wr, &node, HALF + 8);
    if (side != REMOTE) {
        wr.sge[0].lkey = odp.key;
    }
    if (side != LOCAL) {
        wr.rkey = odp.key;
    }
    return wr;
}

static void recv_odp(uint32_t len, enum side side)
{
    struct qhca_seg_le sge = {
        node.mr.addr + HALF + 8, len, side == LOCAL ? node.mr.key : odp.key
    };

    rc_recv_raw(&peer, 7, 1, &sge);
}

static bool takes_recv(uint8_t opcode)
{
    return opcode == QHCA_WR_SEND || opcode == QHCA_WR_RDMA_WRITE_WITH_IMM;
}

/* One message, all of whose pages are absent at first. */
static void transfer(uint8_t opcode, uint32_t len, enum side side)
{
    bool read = opcode == QHCA_WR_RDMA_READ;
    uint64_t a = node.mr.addr + 3, b = node.mr.addr + HALF + 8;
    struct rc_wr wr = message(opcode, len, side);
    static unsigned seed;
    uint64_t faults = counter(g, QHCA_CNT_PAGE_FAULT);

    seed += 3;
    guest_fill(g, read ? b : a, len, seed);
    guest_fill(g, read ? a : b, len, seed + 1);
    CHECK_EQ(odp_clear(&odp, 0, odp.num), QHCA_OK);
    if (takes_recv(opcode)) {
        recv_odp(len, side);
    }
    odp.served = 0;
    rc_post(&qp, &wr);
    odp_run(&odp, &node);
    CHECK(odp.served >= (side == BOTH ? 2 : 1));
    CHECK(counter(g, QHCA_CNT_PAGE_FAULT) >= faults + odp.served);
    rc_expect(&qp.scq, wr.wr_id, QHCA_WC_SUCCESS);
    if (takes_recv(opcode)) {
        rc_expect(&peer.rcq, 7, QHCA_WC_SUCCESS);
    }
    CHECK(guest_is_filled(g, read ? a : b, len, seed));
}

static void data_across(void)
{
    static const uint8_t ops[] = {
        QHCA_WR_SEND, QHCA_WR_RDMA_WRITE, QHCA_WR_RDMA_WRITE_WITH_IMM,
        QHCA_WR_RDMA_READ,
    };
    static const uint32_t lens[] = { 1, 100, 5000, 70000, 400000 };

    start_odp(&RC_OPTS);
    for (unsigned alone = 0; alone < 2; alone++) {
        for (unsigned i = 0; i < ARRAY_SIZE(ops) * ARRAY_SIZE(lens); i++) {
            uint8_t op = ops[i % ARRAY_SIZE(ops)];
            uint32_t len = lens[i / ARRAY_SIZE(ops)];

            odp.alone = alone;
            transfer(op, len, REMOTE);
            transfer(op, len, LOCAL);
            transfer(op, len, BOTH);
        }
    }
    CHECK_EQ(rc_state(&qp), QHCA_QPS_RTS);
    CHECK_EQ(rc_state(&peer), QHCA_QPS_RTS);
}

static void data_no_peek(void)
{
    start_odp(&RC_OPTS);
    g->no_peek = true;
    transfer(QHCA_WR_SEND, 70000, BOTH);
    transfer(QHCA_WR_RDMA_READ, 70000, BOTH);
    transfer(QHCA_WR_RDMA_WRITE, 70000, BOTH);
}

/* A fault costs a peer that never retries nothing but one RNR NAK. */
static void few_retries(void)
{
    struct rc_opts o = RC_OPTS;

    o.retry = 0;
    o.rnr_retry = 1;
    start_odp(&o);
    transfer(QHCA_WR_SEND, 200000, BOTH);
    transfer(QHCA_WR_RDMA_WRITE, 200000, BOTH);
    transfer(QHCA_WR_RDMA_READ, 200000, BOTH);
    CHECK_EQ(counter(g, QHCA_CNT_TIMEOUT), 0);
    CHECK_EQ(counter(g, QHCA_CNT_RETRY_EXC), 0);
}

static void atomics(void)
{
    static const uint8_t ops[] = {
        QHCA_WR_ATOMIC_CMP_AND_SWP, QHCA_WR_ATOMIC_FETCH_AND_ADD,
        QHCA_WR_ATOMIC_WRITE,
    };

    start_odp(&RC_OPTS);
    for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
        struct rc_wr wr = message(ops[i], 8, BOTH);
        uint64_t *word = guest_ptr(g, node.mr.addr + HALF + 8, 8);

        *word = htole64(5);
        wr.compare = 5;
        wr.swap_add = 3;
        CHECK_EQ(odp_clear(&odp, 0, odp.num), QHCA_OK);
        odp.served = 0;
        if (ops[i] == QHCA_WR_ATOMIC_WRITE) {
            memset(guest_ptr(g, node.mr.addr + 3, 8), 9, 8);
        }
        rc_post(&qp, &wr);
        odp_run(&odp, &node);
        CHECK_EQ(odp.served, 2);
        rc_expect(&qp.scq, wr.wr_id, QHCA_WC_SUCCESS);
        CHECK_EQ(le64toh(*word), ops[i] == QHCA_WR_ATOMIC_CMP_AND_SWP ? 3 :
                                 ops[i] == QHCA_WR_ATOMIC_WRITE ?
                                 0x0909090909090909ull : 8);
    }
}

/* A page that can only be read serves reads, and its first write is a fault. */
static void read_only(void)
{
    struct qhca_page_fault f;
    struct rc_wr wr;

    start_odp(&RC_OPTS);
    odp_set(&odp, 0, odp.num, QHCA_PAGE_READ);
    wr = message(QHCA_WR_RDMA_READ, 100, REMOTE);
    rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
    no_event();
    wr = message(QHCA_WR_RDMA_WRITE, 100, REMOTE);
    rc_post(&qp, &wr);
    guest_run(g);
    CHECK(odp_fault(g, peer.qpn, QHCA_PAGE_REQUEST, &f));
    CHECK_EQ(f.write, 1);
    CHECK_EQ(le64toh(f.first), HALF / PAGE);
    CHECK_EQ(le64toh(f.num), 1);
    odp_run(&odp, &node);
    rc_expect(&qp.scq, wr.wr_id, QHCA_WC_SUCCESS);
}

/* A write faults on such a page even if a rule would delay some of its data. */
static void read_only_late(void)
{
    struct qhca_page_fault f;
    struct rc_wr wr;
    char rule[60];

    for (unsigned seed = 1; seed <= 20; seed++) {
        start_odp(&RC_OPTS);
        odp_set(&odp, 0, odp.num, QHCA_PAGE_READ);
        snprintf(rule, sizeof(rule), "seed=%u\nport order=adversarial", seed);
        guest_set_faults(g, rule);
        wr = message(QHCA_WR_RDMA_WRITE, 8, REMOTE);
        rc_post(&qp, &wr);
        guest_run(g);
        CHECK(odp_fault(g, peer.qpn, QHCA_PAGE_REQUEST, &f));
        odp_run(&odp, &node);
        rc_expect(&qp.scq, wr.wr_id, QHCA_WC_SUCCESS);
    }
}

/* Data that come late cost no fault more: one asks for all pages. */
static void few_retries_late(void)
{
    static const uint8_t ops[] = { QHCA_WR_RDMA_WRITE, QHCA_WR_SEND };
    struct rc_opts o = RC_OPTS;
    char rule[60];

    o.rnr_retry = 1;
    for (unsigned seed = 1; seed <= 200; seed++) {
        uint64_t at = HALF + 4096 - 50;
        struct rc_wr wr;

        start_odp(&o);
        snprintf(rule, sizeof(rule), "seed=%u\nport order=adversarial", seed);
        guest_set_faults(g, rule);
        wr = rc_wr(&qp, ops[seed % 2], 3, 100);
        rc_aim(&wr, &node, at);
        wr.rkey = odp.key;
        if (takes_recv(wr.opcode)) {
            struct qhca_seg_le sge = { node.mr.addr + at, 100, odp.key };

            rc_recv_raw(&peer, 7, 1, &sge);
        }
        rc_post(&qp, &wr);
        odp_run(&odp, &node);
        CHECK_EQ(odp.served, 1);
        rc_expect(&qp.scq, wr.wr_id, QHCA_WC_SUCCESS);
    }
}

/* ---- the driver denies a page ---- */

static void denied(void)
{
    static const struct {
        uint8_t opcode;
        enum side side;
        unsigned send, recv;    /* status; recv 0: no receive WR fails */
    } rows[] = {
        { QHCA_WR_SEND, LOCAL, QHCA_WC_LOC_PROT_ERR, 0 },
        { QHCA_WR_RDMA_WRITE, LOCAL, QHCA_WC_LOC_PROT_ERR, 0 },
        { QHCA_WR_RDMA_READ, LOCAL, QHCA_WC_LOC_PROT_ERR, 0 },
        { QHCA_WR_ATOMIC_FETCH_AND_ADD, LOCAL, QHCA_WC_LOC_PROT_ERR, 0 },
        { QHCA_WR_SEND, REMOTE, QHCA_WC_REM_OP_ERR, QHCA_WC_LOC_PROT_ERR },
        { QHCA_WR_RDMA_WRITE, REMOTE, QHCA_WC_REM_ACCESS_ERR, 0 },
        { QHCA_WR_RDMA_READ, REMOTE, QHCA_WC_REM_ACCESS_ERR, 0 },
        { QHCA_WR_ATOMIC_FETCH_AND_ADD, REMOTE, QHCA_WC_REM_ACCESS_ERR, 0 },
        { QHCA_WR_ATOMIC_WRITE, REMOTE, QHCA_WC_REM_ACCESS_ERR, 0 },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        bool word = vhca_wr_info(rows[i].opcode)->rules & VHCA_WR_8_BYTES;
        struct rc_wr wr;
        struct qhca_eqe eqe;

        start_odp(&RC_OPTS);
        odp.deny = true;
        wr = message(rows[i].opcode, word ? 8 : 20000, rows[i].side);
        recv_odp(20000, rows[i].side);
        rc_post(&qp, &wr);
        guest_run(g);
        REQUIRE(eq_next(&node.async, &eqe));
        CHECK_EQ(eqe.type, QHCA_EVENT_PAGE_FAULT);
        CHECK_EQ(odp_answer(&odp, le32toh(eqe.obj)), 1);
        guest_settle(g);
        rc_expect(&qp.scq, wr.wr_id, rows[i].send);
        CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
        if (rows[i].recv) {
            rc_expect(&peer.rcq, 7, rows[i].recv);
        }
    }
}

/* ---- no answers, or late ones ---- */

static void unanswered(void)
{
    struct qhca_page_fault f;
    struct rc_wr wr;
    struct qhca_eqe eqe;

    start_odp(&RC_OPTS);
    wr = message(QHCA_WR_SEND, 100, LOCAL);
    rc_recv(&peer, 7, HALF, 100);
    rc_post(&qp, &wr);
    guest_run(g);
    eq_expect(&node.async, QHCA_EVENT_PAGE_FAULT, qp.qpn);
    no_event();
    CHECK(odp_fault(g, qp.qpn, QHCA_PAGE_SEND, &f));
    for (unsigned i = 0; i < 3; i++) {
        guest_advance(g, VHCA_PAGE_WAIT_NS);
        guest_run(g);
        REQUIRE(eq_next(&node.async, &eqe));
        CHECK_EQ(eqe.type, QHCA_EVENT_PAGE_FAULT);
    }
    /* All the events are of one fault. */
    CHECK_EQ(counter(g, QHCA_CNT_PAGE_FAULT), 1);
    odp_set(&odp, 0, 1, ODP_ALL);
    CHECK_EQ(odp_resume(g, qp.qpn, QHCA_PAGE_SEND, le32toh(f.sn) + 1, 0),
             QHCA_ERR_STATE);
    CHECK_EQ(odp_resume(g, qp.qpn, QHCA_PAGE_SEND, le32toh(f.sn), 0), QHCA_OK);
    CHECK_EQ(odp_resume(g, qp.qpn, QHCA_PAGE_SEND, le32toh(f.sn), 0),
             QHCA_ERR_STATE);
    guest_settle(g);
    rc_expect(&qp.scq, wr.wr_id, QHCA_WC_SUCCESS);
    rc_expect(&peer.rcq, 7, QHCA_WC_SUCCESS);
}

/* Pages that come without an answer are found by the next attempt. */
static void found_without_answer(void)
{
    static const enum side sides[] = { LOCAL, REMOTE };
    static const uint8_t ops[] = { QHCA_WR_SEND, QHCA_WR_RDMA_READ };

    for (unsigned i = 0; i < 4; i++) {
        struct rc_wr wr;

        start_odp(&RC_OPTS);
        wr = message(ops[i / 2], 100, sides[i % 2]);
        recv_odp(100, sides[i % 2]);
        rc_post(&qp, &wr);
        guest_run(g);
        odp_set(&odp, 0, odp.num, ODP_ALL);
        guest_advance(g, 10000000);     /* longer than the ACK timer */
        rc_expect(&qp.scq, wr.wr_id, QHCA_WC_SUCCESS);
    }
}

/* Answers to QPs that have gone on, failed, or been reset change nothing. */
static void late_answers(void)
{
    static const unsigned states[] = { QHCA_QPS_ERR, QHCA_QPS_RESET };
    struct qhca_page_fault f;

    for (unsigned i = 0; i < 12; i++) {
        enum side side = i / 2 % 3 ? REMOTE : LOCAL;
        uint8_t op = i / 2 % 3 == 2 ? QHCA_WR_RDMA_READ : QHCA_WR_RDMA_WRITE;
        struct rc_qp *q = side == LOCAL ? &qp : &peer;
        struct rc_wr wr;
        unsigned kind = i / 2 % 3;

        start_odp(&RC_OPTS);
        wr = message(op, 100, side);
        rc_post(&qp, &wr);
        guest_run(g);
        REQUIRE(odp_fault(g, q->qpn, kind, &f));
        CHECK_EQ(rc_set_state(q, states[i % 2]), QHCA_OK);
        CHECK_EQ(odp_resume(g, q->qpn, kind, le32toh(f.sn), i >= 6),
                 i % 2 ? QHCA_ERR_STATE : QHCA_OK);
        guest_settle(g);
        CHECK_EQ(rc_state(q), states[i % 2]);
    }
}

/* Pages that go away while a message is on its way come again. */
static void cleared_amid(void)
{
    start_odp(&RC_OPTS);
    for (unsigned i = 0; i < 4; i++) {
        static const uint8_t ops[] = {
            QHCA_WR_SEND, QHCA_WR_RDMA_WRITE, QHCA_WR_RDMA_READ,
            QHCA_WR_RDMA_READ,
        };
        struct rc_wr wr = message(ops[i], 300000, i == 3 ? LOCAL : BOTH);
        bool read = ops[i] == QHCA_WR_RDMA_READ;
        uint64_t a = node.mr.addr + 3, b = node.mr.addr + HALF + 8;
        unsigned turns = 0;

        guest_fill(g, read ? b : a, 300000, i);
        guest_fill(g, read ? a : b, 300000, i + 9);
        if (ops[i] == QHCA_WR_SEND) {
            recv_odp(300000, BOTH);
        }
        rc_post(&qp, &wr);
        while (turns < 1000 && qp.sq_pi != rc_query(&qp).sq_ci) {
            guest_run(g);
            odp_serve(&odp, &node);
            if (turns++ % 7 < 3) {
                odp_clear(&odp, turns % odp.num, 1);
            }
            guest_advance(g, 20000);
        }
        odp_run(&odp, &node);
        rc_expect(&qp.scq, wr.wr_id, QHCA_WC_SUCCESS);
        CHECK(guest_is_filled(g, read ? a : b, 300000, i));
        if (ops[i] == QHCA_WR_SEND) {
            rc_expect(&peer.rcq, 7, QHCA_WC_SUCCESS);
        }
    }
}

/* A device that has loaded the state of one with faults goes on. */
static void saved(void)
{
    static const uint8_t ops[] = {
        QHCA_WR_SEND, QHCA_WR_RDMA_WRITE, QHCA_WR_RDMA_READ,
    };

    snapshot_every(1);
    start_odp(&RC_OPTS);
    for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
        transfer(ops[i], 70000, BOTH);
    }
    snapshot_every(0);
    CHECK(snapshot_count() > 10);
}

static const struct test tests[] = {
    { "every message, absent on either side or both", data_across },
    { "the same where memory cannot be read in place", data_no_peek },
    { "a page fault costs one RNR NAK and no retry", few_retries },
    { "atomics", atomics },
    { "a page that can only be read", read_only },
    { "such a page, and data that come late", read_only_late },
    { "few faults with data that come late", few_retries_late },
    { "the driver denies a page", denied },
    { "a fault that nobody answers is reported again", unanswered },
    { "pages that come without an answer", found_without_answer },
    { "answers that come too late", late_answers },
    { "pages are cleared amid messages", cleared_amid },
    { "saved and loaded after every call", saved },
};

TEST_MAIN(tests)
