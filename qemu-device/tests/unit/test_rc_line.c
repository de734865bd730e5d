/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: responses in line when the requester goes back, and a
 * requester that loses a response again. Nothing here waits for a timer.
 */
#include <stdio.h>

#include "harness/faults.h"
#include "harness/odp.h"
#include "harness/scripted.h"

#define MTU     1024u

/* ---- the responder, packet by packet ---- */

static unsigned sent, room;

static void block(struct guest *m, const uint8_t *frame, size_t len)
{
    (void)frame;
    (void)len;
    m->net_blocked = ++sent >= room;
}

/* A responder whose network takes @n packets from now on. */
static void start_line(const struct rc_opts *o, unsigned n)
{
    start_responder(o, QHCA_QPS_RTS);
    sent = 0;
    room = n;
    g->on_send = block;
    g->net_blocked = !n;
}

/* All that has been sent: PSN and opcode of each packet. */
static struct {
    uint32_t psn;
    uint8_t opcode;
} out[1200];
static unsigned num_out;

static void flow(void)
{
    struct roce_packet p;

    g->on_send = NULL;
    num_out = 0;
    for (unsigned i = 0; i < 100; i++) {
        guest_unblock(g);
        guest_settle(g);
        while (peer_next(&qp, &p)) {
            REQUIRE(num_out < ARRAY_SIZE(out));
            out[num_out].psn = p.psn;
            out[num_out++].opcode = p.opcode;
        }
    }
}

/* The last @n of the packets have the PSNs from @psn on, each once. */
static void last_are(uint32_t psn, unsigned n)
{
    REQUIRE(num_out >= n);
    for (unsigned i = 0; i < n; i++) {
        CHECK_EQ(out[num_out - n + i].psn, psn_add(psn, i));
    }
}

static const uint8_t kinds[] = {
    RC_READ_REQUEST, RC_FETCH_ADD, RC_CMP_SWAP, RC_FLUSH, RC_ATOMIC_WRITE,
};

/* A request of this kind for one packet. */
static void inject_kind(uint8_t opcode, uint32_t psn)
{
    struct roce_packet p = request(opcode, psn, 0, 8);

    p.flush_type = QHCA_FLUSH_GLOBAL;
    peer_inject(&qp, &p, data, opcode == RC_ATOMIC_WRITE ? 8 : 0);
}

/* The rest of a long READ is asked for again, and what is behind it. */
static void gone_back(void)
{
    static const uint32_t psns[] = { 0x222222, 0xffff80, 0xfffffe };

    for (unsigned i = 0; i < ARRAY_SIZE(psns) * ARRAY_SIZE(kinds); i++) {
        uint32_t psn = psns[i % ARRAY_SIZE(psns)];
        uint8_t kind = kinds[i / ARRAY_SIZE(psns)];
        struct rc_opts o = RC_OPTS;

        o.rq_psn = psn;
        start_line(&o, 2);
        inject_read(psn, 0, 300 * MTU);
        inject_kind(kind, psn_add(psn, 300));
        CHECK(g->net_blocked);
        inject_read(psn_add(psn, 1), MTU, 299 * MTU);
        inject_kind(kind, psn_add(psn, 300));
        flow();
        /* Some packets of the first answer were on their way. */
        last_are(psn_add(psn, 1), 300);
        CHECK(num_out < 400);
        CHECK_EQ(out[num_out - 300].opcode, RC_READ_RESP_FIRST);
        CHECK_EQ(out[num_out - 2].opcode, RC_READ_RESP_LAST);
        CHECK_EQ(vhca_qp_get(g->e, qp.qpn)->rsp.rd_pending, 0);
    }
}

/* The answer to a first request of any kind has left, and is lost. */
static void lost_answer(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
        for (unsigned k = 0; k < ARRAY_SIZE(kinds); k++) {
            struct rc_opts o = RC_OPTS;
            uint32_t psn = o.rq_psn;

            start_line(&o, 1);
            inject_kind(kinds[i], psn);
            inject_read(psn + 1, 0, 300 * MTU);
            inject_kind(kinds[k], psn + 301);
            inject_kind(kinds[i], psn);
            inject_read(psn + 1, 0, 300 * MTU);
            inject_kind(kinds[k], psn + 301);
            flow();
            last_are(psn, 302);
            CHECK(num_out < 400);
        }
    }
}

/* A request comes twice, but the requester has not gone back. */
static void twice(void)
{
    struct rc_opts o = RC_OPTS;
    uint32_t psn = o.rq_psn;

    start_line(&o, 0);
    inject_read(psn, 0, 200 * MTU);
    inject_kind(RC_FETCH_ADD, psn + 200);
    inject_read(psn, 0, 200 * MTU);
    inject_kind(RC_FETCH_ADD, psn + 200);
    flow();
    last_are(psn, 201);
    CHECK(num_out < 300);
}

/* Only some packets are asked for again: the others come, and in order. */
static void some(void)
{
    struct rc_opts o = RC_OPTS;
    uint32_t psn = o.rq_psn;
    unsigned i;

    start_line(&o, 2);
    inject_read(psn, 0, 300 * MTU);
    inject_read(psn + 1, MTU, 150 * MTU);
    flow();
    last_are(psn + 1, 299);
    i = num_out - 299;
    CHECK_EQ(out[i].opcode, RC_READ_RESP_FIRST);
    CHECK_EQ(out[i + 149].opcode, RC_READ_RESP_LAST);
    CHECK_EQ(out[i + 150].opcode, RC_READ_RESP_FIRST);
    CHECK_EQ(out[i + 298].opcode, RC_READ_RESP_LAST);
}

/* D-012: the ACK of a WRITE is not kept behind the READ that follows. */
static void ack_first(void)
{
    struct rc_opts o = RC_OPTS;
    uint32_t psn = o.rq_psn;
    unsigned acks = 0;

    start_line(&o, 1);
    inject(RC_WRITE_ONLY, psn, 8);
    inject_read(psn + 1, 0, 300 * MTU);
    inject(RC_WRITE_ONLY, psn + 301, 8);
    inject(RC_WRITE_ONLY, psn, 8);
    flow();
    for (unsigned i = 0; i < num_out; i++) {
        if (out[i].opcode == RC_ACKNOWLEDGE) {
            CHECK_EQ(out[i].psn, acks++ < 2 ? psn : psn + 301);
            CHECK(acks == 3 || i < 100);
        }
    }
    CHECK_EQ(acks, 3);
}

/*
 * The repeated request gets the rest of the READ, but is not a late double: the
 * memory must still be there (D-069).
 */
static void still_owed(void)
{
    struct rc_opts o = RC_OPTS;
    uint32_t psn = o.rq_psn;

    start_line(&o, 2);
    inject_read(psn, 0, 300 * MTU);
    inject_read(psn + 1, MTU, 299 * MTU);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, node.mr.key), QHCA_OK);
    flow();
    CHECK_EQ(out[num_out - 1].opcode, RC_ACKNOWLEDGE);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
}

/* ---- two machines ---- */

static unsigned responses, lose_at;
static bool lost;

static bool lose_one(struct net *n, unsigned from, uint8_t *frame, size_t len)
{
    struct roce_packet p;

    (void)n;
    if (roce_parse(&p, frame, len) == ROCE_OK && from == 1 && !lost &&
        p.opcode == RC_READ_RESP_MIDDLE && ++responses == lose_at) {
        lost = true;
        return false;
    }
    return true;
}

static struct odp odp;

static void serve(struct net *n)
{
    (void)n;
    odp_serve(&odp, &node);
}

/* READs of @len and of 8 bytes by @key must be complete before any timer. */
static void put_read(uint64_t off, uint32_t len, uint32_t key)
{
    struct rc_wr wr = rc_wr(&qp, QHCA_WR_RDMA_READ, off, len);

    wr.sge[0].lkey = key;
    rc_aim(&wr, &there, 0);
    rc_put(&qp, &wr);
}

static void read_both(uint32_t len, uint32_t key, unsigned wire_us)
{
    uint64_t begin = net->clock;
    struct qhca_cqe cqe;
    unsigned n = 0;

    put_read(0, len, key);
    put_read(len, 8, key);
    rc_ring(&qp);
    for (unsigned i = 0; i < 2000 && n < 2; i++) {
        net_advance(net, 100000);
        while (cq_poll(&qp.scq, &cqe)) {
            CHECK_EQ(cqe.status, QHCA_WC_SUCCESS);
            n++;
        }
    }
    CHECK_EQ(n, 2);
    CHECK((net->clock - begin) / 1000 < 3 * wire_us);
}

static void start_slow(uint8_t timeout, uint8_t retry, unsigned mbit)
{
    struct rc_opts o = RC_OPTS;
    char text[40];

    o.timeout = timeout;
    o.retry = retry;
    start_net(&o, false);
    snprintf(text, sizeof(text), "port bandwidth=%u", mbit);
    guest_set_faults(there.g, text);
    net->filter = lose_one;
    responses = 0;
    lost = false;
    lose_at = 20;
}

static void one_lost(void)
{
    static const struct {
        uint8_t timeout, retry;
    } with[] = { { 14, 7 }, { 0, 7 }, { 14, 1 } };

    for (unsigned i = 0; i < ARRAY_SIZE(with); i++) {
        start_slow(with[i].timeout, with[i].retry, 1000);
        read_both(500000, node.mr.key, 4000);
        CHECK(lost);
    }
}

/* The response arrives, but the page for it is gone. */
static void local_page(void)
{
    struct qhca_cqe cqe;
    unsigned n = 0;

    start_slow(0, 7, 1000);
    lose_at = 0;
    odp = odp_create(node.g, node.pdn, node.mr.addr, NODE_MEM);
    odp_set(&odp, 0, odp.num, ODP_ALL);
    net->on_step = serve;
    net->opaque = NULL;
    put_read(0, 500000, odp.key);
    put_read(600000, 8, odp.key);
    rc_ring(&qp);
    for (unsigned i = 0; i < 200 && n < 2; i++) {
        net_advance(net, 100000);
        if (i == 10 || i == 20) {
            CHECK_EQ(odp_clear(&odp, 0, odp.num), QHCA_OK);
        }
        n += cq_poll(&qp.scq, &cqe);
    }
    CHECK_EQ(n, 2);
    CHECK(odp.served > 0);
}

/*
 * A long READ into pages is requested in pieces. If data of one are lost, the
 * QP asks for them again, and for no more than was executed (D-051).
 */
static void piece(void)
{
    const uint32_t len = 3u << 20;
    struct rc_opts o = RC_OPTS;
    struct qhca_cqe cqe;
    struct rc_wr wr;
    struct gmr near, far_off;
    bool complete = false;

    o.timeout = 0;
    start_net(&o, false);
    near = mr_create(node.g, node.pdn, len, QHCA_ACCESS_LOCAL_WRITE);
    far_off = mr_create(there.g, there.pdn, len,
                        REMOTE_ALL | QHCA_ACCESS_LOCAL_WRITE);
    guest_fill(there.g, far_off.addr, len, 5);
    odp = odp_create(node.g, node.pdn, near.addr, len);
    net->on_step = serve;
    net->filter = lose_one;
    responses = 0;
    lost = false;
    lose_at = 700;
    wr = rc_wr(&qp, QHCA_WR_RDMA_READ, 0, len);
    wr.sge[0] = (struct qhca_seg_le) { near.addr, len, odp.key };
    wr.raddr = far_off.addr;
    wr.rkey = far_off.key;
    rc_put(&qp, &wr);
    rc_ring(&qp);
    for (unsigned i = 0; i < 1000 && !complete; i++) {
        net_advance(net, 100000);
        complete = cq_poll(&qp.scq, &cqe);
    }
    CHECK(lost);
    REQUIRE(complete);
    CHECK_EQ(cqe.status, QHCA_WC_SUCCESS);
    CHECK(guest_is_filled(node.g, near.addr, len, 5));
}

/* ---- the requester, packet by packet ---- */

#define SQ_PSN  0x111111u

/* Two READs, of which only the second is answered. */
static void start_two(uint8_t timeout, uint8_t retry)
{
    struct rc_opts o = RC_OPTS;

    o.timeout = timeout;
    o.retry = retry;
    start_alone(&o);
    post(QHCA_WR_RDMA_READ, 8);
    post(QHCA_WR_RDMA_READ, 8);
    CHECK_EQ(peer_drain(&qp), 2);
    answer_read(RC_READ_RESP_ONLY, SQ_PSN + 1, 8);
    CHECK_EQ(peer_drain(&qp), 2);       /* an implied NAK (D-014) */
}

/* Each answer to the second shows that one to the first is lost. */
static void lost_again(void)
{
    start_two(0, 7);
    for (unsigned i = 0; i < 6; i++) {
        answer_read(RC_READ_RESP_ONLY, SQ_PSN + 1, 8);
        peer_expect(&qp, RC_READ_REQUEST, SQ_PSN);
        peer_expect(&qp, RC_READ_REQUEST, SQ_PSN + 1);
        peer_expect_none(&qp);
    }
    answer_read(RC_READ_RESP_ONLY, SQ_PSN + 1, 8);      /* that was the last */
    done(0, QHCA_WC_RETRY_EXC_ERR);

    start_two(10, 1);                   /* the timer has the last word */
    answer_read(RC_READ_RESP_ONLY, SQ_PSN + 1, 8);
    peer_expect_none(&qp);
    answer_read(RC_READ_RESP_ONLY, SQ_PSN, 8);
    done(0, 0);
    answer_read(RC_READ_RESP_ONLY, SQ_PSN + 1, 8);
    done(1, 0);
}

/* Packets that were on their way when the QP went back show nothing new. */
static void stale(void)
{
    start_alone(&RC_OPTS);
    post(QHCA_WR_RDMA_READ, 4 * MTU);                   /* +0 to +3 */
    post(QHCA_WR_RDMA_READ, 8);                         /* +4 */
    post(QHCA_WR_SEND, 8);                              /* +5 */
    CHECK_EQ(peer_drain(&qp), 3);
    answer_read(RC_READ_RESP_MIDDLE, SQ_PSN + 1, MTU);
    CHECK_EQ(peer_drain(&qp), 3);
    answer_read(RC_READ_RESP_MIDDLE, SQ_PSN + 2, MTU);
    answer_read(RC_READ_RESP_LAST, SQ_PSN + 3, MTU);
    answer_read(RC_READ_RESP_ONLY, SQ_PSN + 4, 8);
    peer_ack(&qp, SQ_PSN + 5);
    peer_ack(&qp, SQ_PSN + 5);          /* of another repeated SEND */
    peer_expect_none(&qp);
    answer_read(RC_READ_RESP_MIDDLE, SQ_PSN + 1, MTU);  /* the new answer */
    CHECK_EQ(peer_drain(&qp), 3);
    post(QHCA_WR_SEND, 8);                              /* +6 */
    CHECK_EQ(peer_drain(&qp), 1);
    peer_ack(&qp, SQ_PSN + 6);          /* was not sent before */
    CHECK_EQ(peer_drain(&qp), 4);
}

/* A NAK says that nothing behind it has been executed. */
static void after_nak(void)
{
    start_alone(&RC_OPTS);
    post(QHCA_WR_RDMA_READ, 8);
    post(QHCA_WR_SEND, 8);
    CHECK_EQ(peer_drain(&qp), 2);
    peer_nak(&qp, AETH_NAK_SEQ, SQ_PSN);
    CHECK_EQ(peer_drain(&qp), 2);
    peer_ack(&qp, SQ_PSN + 1);
    CHECK_EQ(peer_drain(&qp), 2);
}

static const struct test tests[] = {
    { "D-013 D-003 the requester goes back into a READ", gone_back },
    { "D-013 D-052 the requester goes back behind an answer", lost_answer },
    { "D-013 D-050 requests that come twice", twice },
    { "D-013 D-051 some packets are asked for again", some },
    { "D-050 D-012 the ACK of a duplicate", ack_first },
    { "D-069 D-051 the rest of a READ is no late double", still_owed },
    { "D-014 a response is lost, and no timer expires", one_lost },
    { "D-014 F-018 a response meets no page, with no timer", local_page },
    { "D-051 D-006 the rest of a piece of a READ", piece },
    { "D-014 D-046 the same response is lost again", lost_again },
    { "D-014 responses from before", stale },
    { "D-014 D-020 nothing is behind a NAK", after_nak },
};

TEST_MAIN(tests)
