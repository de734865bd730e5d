/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: RC moves data: every opcode, length, MTU and SGE list, in
 * loopback and between two engines.
 */
#include "harness/fixture.h"
#include "tables.h"

#define HALF    (NODE_MEM / 2)

/* @peer's node. */
static struct node *end;

/* @loop: both QPs are on one engine and share its memory. */
static void start(bool loop, const struct rc_opts *o, bool ipv6, uint16_t vlan)
{
    harness_cleanup();
    net = loop ? NULL : net_new(1);
    node = node_new(net, 1);
    g = node.g;
    node_set_gid(&node, ipv6, vlan);
    end = &node;
    if (!loop) {
        end = &there;
        there = node_new(net, 2);
        node_set_gid(&there, ipv6, vlan);
    }
    qp = rc_create(&node, o);
    peer = rc_create(end, o);
    rc_connect(&qp, &peer);
}

static void start_wire(void)
{
    start(false, &RC_OPTS, false, QHCA_NO_VLAN);
}

static void settle(void)
{
    if (net) {
        net_run(net, 10000000000ull);
    } else {
        guest_settle(g);
    }
}

/* Does @wr, between two engines as well. */
static struct qhca_cqe finish(const struct rc_wr *wr)
{
    rc_post(&qp, wr);
    settle();
    return rc_expect(&qp.scq, wr->wr_id, QHCA_WC_SUCCESS);
}

/* Cuts @wr's buffer into @n SGEs, with an empty one that has no valid key. */
static void cut(struct rc_wr *wr, unsigned n)
{
    uint64_t addr = wr->sge[0].addr;
    uint32_t left = wr->sge[0].length, key = wr->sge[0].lkey;

    for (unsigned i = 0; i < n; i++) {
        uint32_t part = i == n - 1 ? left : left / 3;

        if (n > 2 && i == 1) {
            wr->sge[i] = (struct qhca_seg_le) { 0xdead, 0, 0xbad };  /* B-025 */
            continue;
        }
        wr->sge[i] = (struct qhca_seg_le) { addr, part, key };
        addr += part;
        left -= part;
    }
    wr->num_sge = n;
}

/* The same with @peer's buffer, which gets three SGEs. */
static void recv_cut(uint64_t wr_id, uint64_t off, uint32_t len)
{
    const struct qhca_seg_le sge[] = {
        { end->mr.addr + off, len / 3, end->mr.key }, { 0xdead, 0, 0xbad },
        { end->mr.addr + off + len / 3, len - len / 3, end->mr.key },
    };

    rc_recv_raw(&peer, wr_id, ARRAY_SIZE(sge), sge);
}

static void check_recv(uint8_t opcode, uint64_t wr_id, uint32_t len,
                       uint32_t imm)
{
    const struct table_b1 *row = rc_b1(opcode);
    struct qhca_cqe c;

    if (!row->takes_recv) {
        rc_expect_none(&peer.rcq);
        return;
    }
    c = rc_expect(&peer.rcq, wr_id, QHCA_WC_SUCCESS);
    CHECK_EQ(c.opcode, row->recv_cqe);
    CHECK_EQ(le32toh(c.byte_len), len);
    CHECK_EQ(le32toh(c.qpn), peer.qpn);
    CHECK_EQ(le16toh(c.flags) & (QHCA_CQE_IMM | QHCA_CQE_INV), row->recv_flags);
    CHECK(!(row->recv_flags & QHCA_CQE_IMM) || c.imm == imm);
}

/* One message from @qp, checked on both sides. */
static void transfer(uint8_t opcode, uint32_t len, unsigned sges)
{
    static unsigned seed;
    bool read = opcode == QHCA_WR_RDMA_READ;
    struct guest *gb = end->g;
    uint64_t a = node.mr.addr + 3, b = end->mr.addr + HALF + 5;
    struct rc_wr wr = rc_wr(&qp, opcode, 3, len);
    struct qhca_cqe c;

    seed++;
    guest_fill(g, a - 1, len + 2, seed * 2);
    guest_fill(gb, b - 1, len + 2, seed * 2 + 1);
    if (read) {
        guest_fill(gb, b, len, seed);
    } else {
        guest_fill(g, a, len, seed);
    }
    rc_aim(&wr, end, HALF + 5);
    wr.imm = 0x01020304 + seed;
    cut(&wr, sges);
    if (rc_b1(opcode)->takes_recv) {
        bool imm_only = opcode == QHCA_WR_RDMA_WRITE_WITH_IMM;

        if (sges > 2 && !imm_only) {
            recv_cut(seed, HALF + 5, len);
        } else {
            rc_recv(&peer, seed, HALF + 5, imm_only ? 0 : len);
        }
    }
    c = finish(&wr);
    CHECK_EQ(c.opcode, rc_cqe_opcode(&wr));
    CHECK(le16toh(c.flags) & QHCA_CQE_SQ);
    CHECK_EQ(le32toh(c.wqe_index), qp.sq_pi - 1);
    CHECK(!read || le32toh(c.byte_len) == len);                /* C-009 */
    check_recv(opcode, seed, len, wr.imm);
    CHECK(guest_is_filled(gb, b, len, seed));
    CHECK(guest_is_filled(g, a, len, seed));
    /* The bytes around it are unchanged. */
    CHECK(guest_is_filled(gb, b - 1, 1, seed * 2 + 1));
    CHECK(guest_is_filled(g, a - 1, 1, seed * 2));
}

static void sweep(bool loop, uint8_t mtu_code, bool ipv6, uint16_t vlan)
{
    static const uint8_t ops[] = {
        QHCA_WR_SEND, QHCA_WR_SEND_WITH_IMM, QHCA_WR_RDMA_WRITE,
        QHCA_WR_RDMA_WRITE_WITH_IMM, QHCA_WR_RDMA_READ,
    };
    uint32_t mtu = 128u << mtu_code;
    const uint32_t lens[] = {
        0, 1, 3, 4, 5, 63, 64, mtu - 1, mtu, mtu + 1, 2 * mtu, 3 * mtu + 7,
        64 * mtu, 65 * mtu + 1,
    };
    struct rc_opts o = RC_OPTS;

    o.mtu = mtu_code;
    o.sq_psn = 0xffff80;        /* wraps (D-003) */
    o.rq_psn = 0xfffffe;
    start(loop, &o, ipv6, vlan);
    for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
        for (size_t j = 0; j < ARRAY_SIZE(ops); j++) {
            transfer(ops[j], lens[i], 1 + (unsigned)(i + j) % 4);
        }
    }
    CHECK_EQ(counter(g, QHCA_CNT_RETRANSMIT), 0);
    CHECK_EQ(counter(g, QHCA_CNT_RX_OUT_OF_SEQ), 0);
    CHECK_EQ(counter(g, QHCA_CNT_TIMEOUT), 0);
    CHECK_EQ(g->errors, 0);
}

static void test_loop(void)
{
    for (uint8_t mtu = 1; mtu <= 5; mtu++) {
        sweep(true, mtu, false, QHCA_NO_VLAN);
    }
    sweep(true, 3, true, 77);
}

static void test_wire(void)
{
    for (uint8_t mtu = 1; mtu <= 5; mtu++) {
        sweep(false, mtu, false, QHCA_NO_VLAN);
    }
}

static void test_wire_v6(void)
{
    sweep(false, 3, true, QHCA_NO_VLAN);
    sweep(false, 5, true, 4094);
    sweep(false, 1, false, 1);
}

static void test_inline(void)
{
    char data[64];

    start_wire();
    memset(data, 'x', sizeof(data));
    for (unsigned len = 0; len <= sizeof(data); len++) {
        struct rc_wr wr = rc_wr(&qp, len & 1 ? QHCA_WR_SEND_WITH_IMM :
                                     QHCA_WR_SEND, 0, 0);

        wr.flags |= QHCA_WQE_INLINE;
        wr.inline_data = data;
        wr.inline_len = len;
        data[0] = (char)len;
        rc_recv(&peer, len, 0, len);
        finish(&wr);
        CHECK_EQ(le32toh(rc_expect(&peer.rcq, len, 0).byte_len), len);
        CHECK(!memcmp(guest_ptr(there.g, there.mr.addr, 64), data, len));
    }
}

/* Executes an atomic on the word at HALF; returns the old value. */
static uint64_t atomic(uint8_t opcode, uint64_t swap_add, uint64_t compare)
{
    struct rc_wr wr = rc_wr(&qp, opcode, 0, 8);
    struct qhca_cqe c;
    uint64_t old;

    rc_aim(&wr, end, HALF);
    wr.swap_add = swap_add;
    wr.compare = compare;
    cut(&wr, 3);                                                /* B-032 */
    c = finish(&wr);
    CHECK_EQ(c.opcode, opcode == QHCA_WR_ATOMIC_CMP_AND_SWP ?
                       QHCA_CQE_COMP_SWAP : QHCA_CQE_FETCH_ADD);
    CHECK_EQ(le32toh(c.byte_len), 8);                           /* C-009 */
    memcpy(&old, guest_ptr(g, node.mr.addr, 8), 8);
    return le64toh(old);
}

static void atomics(bool loop)
{
    uint64_t *word;

    start(loop, &RC_OPTS, false, QHCA_NO_VLAN);
    word = guest_ptr(end->g, end->mr.addr + HALF, 8);
    *word = htole64(0xfffffffffffffffe);
    CHECK(atomic(QHCA_WR_ATOMIC_FETCH_AND_ADD, 5, 0) == 0xfffffffffffffffe);
    CHECK(le64toh(*word) == 3);                                 /* B-072 */
    CHECK(atomic(QHCA_WR_ATOMIC_CMP_AND_SWP, 9, 4) == 3);
    CHECK(le64toh(*word) == 3);
    CHECK(atomic(QHCA_WR_ATOMIC_CMP_AND_SWP, 0x0102030405060708, 3) == 3);
    CHECK(le64toh(*word) == 0x0102030405060708);
    CHECK(atomic(QHCA_WR_ATOMIC_FETCH_AND_ADD, 0, 0) == 0x0102030405060708);
}

static void test_atomics(void)
{
    atomics(true);
    atomics(false);
}

/* F-020: QPs of several MTUs add to one word; each finds another value. */
static void test_adders(void)
{
    enum { QPS = 3, ADDS = 8 };
    struct rc_qp from[QPS], to[QPS];
    uint64_t found = 0, *word;

    start_wire();
    for (unsigned i = 0; i < QPS; i++) {
        struct rc_opts o = RC_OPTS;

        o.mtu = (uint8_t)(1 + 2 * i);
        from[i] = rc_create(&node, &o);
        to[i] = rc_create(end, &o);
        rc_connect(&from[i], &to[i]);
    }
    for (unsigned n = 0; n < QPS * ADDS; n++) {
        struct rc_wr wr = rc_wr(&from[n % QPS], QHCA_WR_ATOMIC_FETCH_AND_ADD,
                                8 * n, 8);

        rc_aim(&wr, end, HALF);
        wr.swap_add = 1;
        rc_post(&from[n % QPS], &wr);
    }
    settle();
    for (unsigned n = 0; n < QPS * ADDS; n++) {
        word = guest_ptr(g, node.mr.addr + 8 * n, 8);
        rc_expect(&from[n % QPS].scq, 0x1000 + n / QPS, QHCA_WC_SUCCESS);
        REQUIRE(le64toh(*word) < QPS * ADDS);
        found |= 1ull << le64toh(*word);
    }
    word = guest_ptr(end->g, end->mr.addr + HALF, 8);
    CHECK_EQ(le64toh(*word), QPS * ADDS);
    CHECK_EQ(found, (1ull << QPS * ADDS) - 1);
}

/* D-085: one QP talks to itself. */
static void test_self(void)
{
    struct rc_wr wr;

    start_node();
    qp = rc_create(&node, &RC_OPTS);
    qp.o.rq_psn = qp.o.sq_psn;
    rc_connect(&qp, &qp);
    guest_fill(g, node.mr.addr, 5000, 3);
    rc_recv(&qp, 42, HALF, 5000);
    wr = rc_wr(&qp, QHCA_WR_SEND, 0, 5000);
    rc_post(&qp, &wr);
    wr = rc_wr(&qp, QHCA_WR_RDMA_READ, 10000, 5000);
    rc_aim(&wr, &node, HALF);
    rc_do(&qp, &wr);
    rc_expect(&qp.rcq, 42, QHCA_WC_SUCCESS);
    done(0, QHCA_WC_SUCCESS);
    done(1, QHCA_WC_SUCCESS);
    CHECK(guest_is_filled(g, node.mr.addr + HALF, 5000, 3));
    CHECK(guest_is_filled(g, node.mr.addr + 10000, 5000, 3));
}

/* More WRs than the rings have slots, half of them unsignaled. */
static void test_stream(void)
{
    struct rc_opts o = RC_OPTS;
    uint32_t sent = 0, completed = 0, received = 0;
    struct qhca_cqe c;

    o.sq_log = o.rq_log = 7;
    start(false, &o, false, QHCA_NO_VLAN);
    while (completed < 3 * 128 / 2) {
        while (peer.rq_pi - received < 128) {
            rc_recv(&peer, peer.rq_pi, 0, 4096);
        }
        while (sent - 2 * completed < 128) {
            struct rc_wr wr = rc_wr(&qp, QHCA_WR_SEND, sent % 512, sent % 999);

            wr.wr_id = sent;
            wr.flags = sent & 1 ? QHCA_WQE_SIGNALED : 0;        /* B-042 */
            rc_put(&qp, &wr);
            sent++;
        }
        rc_ring(&qp);
        settle();
        while (cq_poll(&qp.scq, &c)) {
            CHECK_EQ(le64toh(c.wr_id), 2 * completed + 1);
            completed++;
        }
        while (cq_poll(&peer.rcq, &c)) {
            CHECK_EQ(le64toh(c.wr_id), received);
            CHECK_EQ(le32toh(c.byte_len), received % 999);
            received++;
        }
    }
    CHECK_EQ(received, sent);
}

/* The flag of a WR has no effect if the QP signals all of them. */
static void test_signal_all(void)
{
    struct rc_opts o = RC_OPTS;

    o.qp_flags = QHCA_QP_FLAG_SIGNAL_ALL;
    start(true, &o, false, QHCA_NO_VLAN);
    for (unsigned i = 0; i < 6; i++) {
        struct rc_wr wr = rc_wr(&qp, i < 3 ? QHCA_WR_RDMA_WRITE :
                                             QHCA_WR_RDMA_READ, 0, 8);

        rc_aim(&wr, &node, HALF);
        wr.flags = i & 1 ? QHCA_WQE_SIGNALED : 0;
        CHECK_EQ(le32toh(finish(&wr).wqe_index), i);
        rc_expect_none(&qp.scq);
    }
}

/* D-003, B-026: a message of very many packets, in both directions. */
static void test_large(void)
{
    struct rc_opts o = RC_OPTS;
    const uint32_t len = 5000000;
    struct gmr ma, mb;
    struct rc_wr wr;

    o.mtu = 1;                  /* 19532 packets */
    o.sq_psn = 0xffff00;
    start(false, &o, false, QHCA_NO_VLAN);
    ma = mr_create(g, node.pdn, len, QHCA_ACCESS_LOCAL_WRITE);
    mb = mr_create(there.g, there.pdn, len,
                   REMOTE_ALL | QHCA_ACCESS_LOCAL_WRITE);
    for (unsigned i = 0; i < 2; i++) {
        wr = rc_wr(&qp, i ? QHCA_WR_RDMA_READ : QHCA_WR_RDMA_WRITE, 0, len);
        wr.sge[0].addr = ma.addr;
        wr.sge[0].lkey = ma.key;
        wr.raddr = mb.addr;
        wr.rkey = mb.key;
        guest_fill(i ? there.g : g, i ? mb.addr : ma.addr, len, i + 1);
        finish(&wr);
        CHECK(guest_is_filled(there.g, mb.addr, len, i + 1));
        CHECK(guest_is_filled(g, ma.addr, len, i + 1));
    }
    CHECK_EQ(counter(g, QHCA_CNT_RETRANSMIT), 0);
}

/* B-029: without data, address and key are ignored. */
static void test_zero_rkey(void)
{
    static const uint8_t ops[] = { QHCA_WR_RDMA_WRITE, QHCA_WR_RDMA_READ };

    start_wire();
    for (size_t i = 0; i < 2; i++) {
        struct rc_wr wr = rc_wr(&qp, ops[i], 0, 0);

        wr.num_sge = (unsigned)i;
        wr.raddr = UINT64_MAX;
        wr.rkey = 0x12345678;
        finish(&wr);
    }
}

static const struct test tests[] = {
    { "A-106 B-001 B-002 B-004 B-005 B-006 B-025 B-028 C-007 C-009 "
      "D-001 D-002 D-004 D-005 D-010 D-085 loopback, all MTUs", test_loop },
    { "B-001 B-002 B-004 B-005 B-006 B-028 C-007 "
      "D-001 D-002 D-004 D-005 D-010 between two engines, all MTUs",
      test_wire },
    { "E-001 E-002 IPv6 and VLANs", test_wire_v6 },
    { "B-053 inline data of every length", test_inline },
    { "B-007 B-008 B-032 B-072 C-009 F-021 atomics", test_atomics },
    { "D-085 a QP to itself", test_self },
    { "B-037 B-040 B-042 B-064 B-065 C-012 three times round the rings",
      test_stream },
    { "B-040 all WRs signaled", test_signal_all },
    { "B-026 D-003 a message of 19532 packets each way", test_large },
    { "B-029 no data at an arbitrary address", test_zero_rkey },
    { "F-020 several QPs add to one word", test_adders },
};

TEST_MAIN(tests)
