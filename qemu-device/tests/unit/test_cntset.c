/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: counters of QPs.
 */
#include "harness/debug.h"
#include "harness/odp.h"
#include "harness/scripted.h"

#define MTU     1024u
#define SND     0x111111u       /* sq_psn of RC_OPTS */
#define RCV     0x222222u

static uint32_t set_alloc(void)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_ALLOC_CNTSET) };

    return guest_create(g, &cmd);
}

static int set_bind(uint32_t qpn, uint32_t set)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_BIND_CNTSET) };

    cmd.bind_cntset.qpn = htole32(qpn);
    cmd.bind_cntset.cntset = htole32(set);
    return guest_cmd(g, &cmd, NULL);
}

static int query(unsigned opcode, uint32_t obj, uint64_t *cnt)
{
    int status = guest_query(g, opcode, obj, cnt, QHCA_CNT_MAX * sizeof(*cnt));

    for (unsigned i = 0; i < QHCA_CNT_MAX; i++) {
        cnt[i] = le64toh(cnt[i]);
    }
    return status;
}

static uint64_t of_set(uint32_t set, enum qhca_counter which)
{
    uint64_t cnt[QHCA_CNT_MAX] = { 0 };

    CHECK_EQ(query(QHCA_CMD_QUERY_CNTSET, set, cnt), QHCA_OK);
    return cnt[which];
}

/* The counts of all sets and of QPs without a set add up to the total. */
static void check_sum(const uint32_t *set, unsigned n)
{
    uint64_t all[QHCA_CNT_MAX], sum[QHCA_CNT_MAX], cnt[QHCA_CNT_MAX];

    CHECK_EQ(query(QHCA_CMD_QUERY_COUNTERS, 1, all), QHCA_OK);
    CHECK_EQ(query(QHCA_CMD_QUERY_CNTSET, 0, sum), QHCA_OK);
    for (unsigned i = 0; i < n; i++) {
        CHECK_EQ(query(QHCA_CMD_QUERY_CNTSET, set[i], cnt), QHCA_OK);
        for (unsigned j = 0; j < QHCA_CNT_MAX; j++) {
            sum[j] += cnt[j];
        }
    }
    for (unsigned j = 0; j < QHCA_CNT_MAX; j++) {
        if (sum[j] != all[j]) {
            tap_note("counter %u", j);
        }
        CHECK_EQ(sum[j], all[j]);
    }
}

static void start(void)
{
    struct rc_opts o = RC_OPTS;

    o.rnr_retry = 1;
    start_alone(&o);
}

/* Sends three packets, which are acknowledged; returns their bytes. */
static uint64_t send_three(struct rc_qp *q, uint32_t psn)
{
    struct rc_wr wr = rc_wr(q, QHCA_WR_SEND, 0, 2 * MTU + 100);
    unsigned first = g->num_sent;
    uint64_t bytes = 0;

    rc_do(q, &wr);
    CHECK_EQ(g->num_sent, first + 3);
    for (unsigned i = first; i < g->num_sent; i++) {
        bytes += g->sent[i].len;
    }
    peer_ack(q, psn + 2);
    guest_settle(g);
    peer_drain(q);
    return bytes;
}

static void traffic(void)
{
    struct rc_qp other;
    uint32_t set[2];
    uint64_t bytes;

    start();
    other = rc_scripted(&node, &RC_OPTS, &far);
    set[0] = set_alloc();
    set[1] = set_alloc();
    CHECK_EQ(set_bind(qp.qpn, set[0]), QHCA_OK);
    bytes = send_three(&qp, SND);
    CHECK_EQ(of_set(set[0], QHCA_CNT_TX_PKTS), 3);
    CHECK_EQ(of_set(set[0], QHCA_CNT_TX_BYTES), bytes);
    CHECK_EQ(of_set(set[0], QHCA_CNT_RX_PKTS), 1);
    CHECK_EQ(of_set(0, QHCA_CNT_TX_PKTS), 0);
    CHECK_EQ(counter(g, QHCA_CNT_TX_PKTS), 3);
    send_three(&other, SND);            /* has no set */
    CHECK_EQ(of_set(set[0], QHCA_CNT_TX_PKTS), 3);
    CHECK_EQ(of_set(0, QHCA_CNT_TX_PKTS), 3);

    /* One set for both QPs, then another set for one of them. */
    CHECK_EQ(set_bind(other.qpn, set[0]), QHCA_OK);
    send_three(&other, SND + 3);
    CHECK_EQ(of_set(set[0], QHCA_CNT_TX_PKTS), 6);
    CHECK_EQ(set_bind(qp.qpn, set[1]), QHCA_OK);
    send_three(&qp, SND + 3);
    CHECK_EQ(of_set(set[0], QHCA_CNT_TX_PKTS), 6);
    CHECK_EQ(of_set(set[1], QHCA_CNT_TX_PKTS), 3);
    CHECK_EQ(set_bind(qp.qpn, 0), QHCA_OK);
    send_three(&qp, SND + 6);
    CHECK_EQ(of_set(set[1], QHCA_CNT_TX_PKTS), 3);
    CHECK_EQ(of_set(0, QHCA_CNT_TX_PKTS), 6);
    check_sum(set, 2);
}

static void dup(void)
{
    inject(RC_SEND_ONLY, RCV - 1, 0);
}

static void gap(void)
{
    inject(RC_SEND_ONLY, RCV + 3, 0);
}

static void no_receive(void)
{
    inject(RC_SEND_ONLY, RCV, 0);
}

static void stranger(void)
{
    struct roce_packet p = peer_packet(&qp, RC_SEND_ONLY, RCV);

    p.sgid[15] ^= 1;
    peer_inject(&qp, &p, NULL, 0);
}

static void nak_seq(void)
{
    rc_send(&qp, 10);
    peer_nak(&qp, AETH_NAK_SEQ, SND);
}

static void nak_op(void)
{
    rc_send(&qp, 10);
    peer_nak(&qp, AETH_NAK_OP, SND);
}

static void rnr(void)
{
    rc_send(&qp, 10);
    for (unsigned i = 0; i < 2; i++) {
        peer_nak(&qp, AETH_RNR_NAK | 1, SND);
        guest_advance(g, 20000);     /* past the RNR wait, before a timeout */
    }
}

static void silence(void)
{
    rc_send(&qp, 10);
    guest_advance(g, 60000000000);
}

static const struct {
    const char *name;
    void (*provoke)(void);
    struct {
        enum qhca_counter which;
        uint64_t n;
    } want[3];
} causes[] = {
    { "duplicate", dup, { { QHCA_CNT_RX_DUPLICATE, 1 },
                          { QHCA_CNT_RX_PKTS, 1 }, { QHCA_CNT_TX_ACK, 1 } } },
    { "gap", gap, { { QHCA_CNT_RX_OUT_OF_SEQ, 1 },
                    { QHCA_CNT_TX_NAK_SEQ, 1 } } },
    { "RNR", no_receive, { { QHCA_CNT_TX_RNR_NAK, 1 } } },
    { "stranger", stranger, { { QHCA_CNT_RX_BAD_ADDR, 1 } } },
    { "sequence error", nak_seq, { { QHCA_CNT_RX_NAK_SEQ, 1 },
                                   { QHCA_CNT_RETRANSMIT, 1 },
                                   { QHCA_CNT_TX_PKTS, 2 } } },
    { "fatal NAK", nak_op, { { QHCA_CNT_RX_NAK_FATAL, 1 } } },
    { "peer not ready", rnr, { { QHCA_CNT_RX_RNR_NAK, 2 },
                               { QHCA_CNT_RNR_RETRY_EXC, 1 } } },
    { "no peer", silence, { { QHCA_CNT_TIMEOUT, 8 }, { QHCA_CNT_RETRY_EXC, 1 },
                            { QHCA_CNT_RETRANSMIT, 7 } } },
};

static void errors(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(causes); i++) {
        uint32_t set;

        start();
        set = set_alloc();
        CHECK_EQ(set_bind(qp.qpn, set), QHCA_OK);
        causes[i].provoke();
        guest_settle(g);
        for (unsigned j = 0; j < 3 && causes[i].want[j].n; j++) {
            if (of_set(set, causes[i].want[j].which) != causes[i].want[j].n) {
                tap_note("%s, %u", causes[i].name, j);
            }
            CHECK_EQ(of_set(set, causes[i].want[j].which),
                     causes[i].want[j].n);
        }
        check_sum(&set, 1);
    }
}

static void life(void)
{
    uint64_t cnt[QHCA_CNT_MAX];
    uint32_t set, more, n = 1;

    start();
    set = set_alloc();
    CHECK_EQ(query(QHCA_CMD_QUERY_CNTSET, set ^ 0x800000, cnt), QHCA_ERR_OBJ);
    CHECK_EQ(set_bind(qp.qpn, set ^ 0x800000), QHCA_ERR_OBJ);
    CHECK_EQ(set_bind(qp.qpn ^ 0x800000, set), QHCA_ERR_OBJ);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_CNTSET, 0), QHCA_ERR_OBJ);
    CHECK_EQ(set_bind(qp.qpn, set), QHCA_OK);
    CHECK_EQ(set_bind(qp.qpn, set), QHCA_OK);
    send_three(&qp, SND);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_CNTSET, set), QHCA_ERR_BUSY);
    CHECK_EQ(rc_destroy(&qp), QHCA_OK);
    CHECK_EQ(of_set(set, QHCA_CNT_TX_PKTS), 3);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_CNTSET, set), QHCA_OK);
    /* Counts of a set that is freed are in the total, but in no other set. */
    CHECK_EQ(of_set(0, QHCA_CNT_TX_PKTS), 0);
    CHECK_EQ(counter(g, QHCA_CNT_TX_PKTS), 3);
    for (more = set_alloc(); n < VHCA_MAX_CNTSET; n++) {
        set = set_alloc();
    }
    {
        struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_ALLOC_CNTSET) };

        CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_NO_RESOURCE);
    }
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_CNTSET, more), QHCA_OK);
    set_alloc();
    /* The next driver has no sets. */
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    guest_enable(g, 5);
    CHECK_EQ(of_set(0, QHCA_CNT_TX_PKTS), 3);
    CHECK_EQ(query(QHCA_CMD_QUERY_CNTSET, set, cnt), QHCA_ERR_OBJ);
}

/* A fault counts once, for the QP as well, however often it is met. */
static void page_faults(void)
{
    uint32_t set;
    struct odp odp;
    struct rc_wr wr;

    start();
    odp = odp_create(g, node.pdn, node.mr.addr, NODE_MEM);
    set = set_alloc();
    CHECK_EQ(set_bind(qp.qpn, set), QHCA_OK);
    wr = rc_wr(&qp, QHCA_WR_SEND, 0, 100);
    wr.sge[0].lkey = odp.key;
    rc_do(&qp, &wr);
    for (unsigned i = 0; i < 3; i++) {
        guest_advance(g, VHCA_PAGE_WAIT_NS);
        CHECK_EQ(of_set(set, QHCA_CNT_PAGE_FAULT), 1);
    }
    check_sum(&set, 1);
}

static const struct test tests[] = {
    { "J-025 packets and bytes of those QPs, and of no others", traffic },
    { "J-025 errors are the QP's too", errors },
    { "J-025 sets come and go", life },
    { "J-025 page faults", page_faults },
};

TEST_MAIN(tests)
