/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rates and notifications under attack: strangers on the network, parameters
 * that change under load, saved states with edited gates.
 */
#include "harness/fields.h"
#include "harness/flows.h"
#include "harness/scripted.h"
#include "harness/snapshot.h"

#define SECOND  1000000000ull

static int set_rate(struct rc_qp *q, uint32_t kbit)
{
    struct qhca_qp_attr a = { .state = QHCA_QPS_RTS };

    a.rate_limit = htole32(kbit);
    return rc_modify(q, &a, QHCA_QP_STATE | QHCA_QP_RATE_LIMIT);
}

static void set_param(enum qhca_cc which, uint32_t value)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_SET_CONGESTION) };
    struct qhca_congestion c;

    for (unsigned i = 0; i < QHCA_CC_MAX; i++) {
        c.value[i] = htole32(g->e->congestion->value[i]);
    }
    c.value[which] = htole32(value);
    CHECK_EQ(guest_cmd_mbox(g, &cmd, &c, sizeof(c), NULL, 0, NULL), QHCA_OK);
}

static struct vhca_qp *q_of(const struct rc_qp *q)
{
    return vhca_qp_get(g->e, q->qpn);
}

/* ---- strangers ---- */

static void notify(struct rc_qp *q, const struct roce_packet *like)
{
    static const uint8_t payload[CNP_LEN];
    struct roce_packet p = *like;

    p.ackreq = false;
    peer_inject(q, &p, payload, sizeof(payload));
}

/* The address vector of a QP of type RAW is empty, as the address :: is. */
static void test_raw(void)
{
    struct rc_qp q;
    struct roce_packet p;

    start_gid(true, QHCA_NO_VLAN);
    set_param(QHCA_CC_RP_ENABLE, 1);
    q = flow_qp(&node);
    p = peer_packet(&q, ROCE_CNP, 0);
    notify(&q, &p);
    CHECK_EQ(q_of(&q)->gate.rp.rate, 0);
    CHECK_EQ(counter(g, QHCA_CNT_RP_CNP_HANDLED), 0);
    CHECK_EQ(counter(g, QHCA_CNT_RX_NO_QP), 1);
}

/* Only the peer may slow a QP down. */
static void test_forged(void)
{
    struct roce_packet p;

    start_type(QHCA_QPT_RC);
    set_param(QHCA_CC_RP_ENABLE, 1);
    p = peer_packet(&qp, ROCE_CNP, 0);
    p.pkey = 0x1234;
    notify(&qp, &p);
    CHECK_EQ(counter(g, QHCA_CNT_RX_BAD_PKEY), 1);
    p = peer_packet(&qp, ROCE_CNP, 0);
    p.sgid[15] ^= 1;
    notify(&qp, &p);
    CHECK_EQ(counter(g, QHCA_CNT_RX_BAD_ADDR), 1);
    CHECK_EQ(q_of(&qp)->gate.rp.rate, 0);
    CHECK_EQ(counter(g, QHCA_CNT_RP_CNP_HANDLED), 0);
}

/* ---- parameters ---- */

/* Without RP_ENABLE nothing is left of what notifications have done. */
static void test_switched_off(void)
{
    struct roce_packet p;

    start_type(QHCA_QPT_RC);
    set_param(QHCA_CC_RP_ENABLE, 1);
    set_param(QHCA_CC_RP_MIN_CUT, 0);
    set_param(QHCA_CC_RP_TIME, 131071);
    p = peer_packet(&qp, ROCE_CNP, 0);
    for (unsigned i = 0; i < 50; i++) {
        notify(&qp, &p);
    }
    CHECK_EQ(q_of(&qp)->gate.rp.rate, 10000);
    post(QHCA_WR_RDMA_WRITE, 4 * 1024);
    CHECK_EQ(peer_drain(&qp), 1);
    set_param(QHCA_CC_RP_ENABLE, 0);
    guest_advance(g, 1000000);
    CHECK_EQ(peer_drain(&qp), 3);
    CHECK_EQ(q_of(&qp)->gate.rp.rate, 0);
}

/* ---- time ---- */

/* A machine that has slept for years owes its QPs no packets. */
static void test_asleep(void)
{
    start_alone(&RC_OPTS);
    set_param(QHCA_CC_RP_ENABLE, 1);
    CHECK_EQ(set_rate(&qp, 1000), 0);
    post(QHCA_WR_RDMA_WRITE, 4 * 1024);
    CHECK_EQ(peer_drain(&qp), 1);
    *g->clock += 100000000 * SECOND;
    guest_advance(g, 0);
    CHECK_EQ(peer_drain(&qp), 1);
    guest_advance(g, 8000000);
    peer_expect_none(&qp);
    guest_advance(g, 1000000);
    CHECK_EQ(peer_drain(&qp), 1);
}

/* ---- saved states ---- */

/* Loads a state with one field of the transport edited. */
static bool loads(const char *name, uint64_t value, uint8_t how)
{
    struct field_edit edit = {
        .which = fields_find(g, "transport", name, 0), .how = how,
        .value = value,
    };
    size_t len;
    uint8_t *state = fields_save(g, &edit, 1, &len);

    return snapshot_load(g, state, len);
}

/* A QP that has no peer, or has not started, can owe no notification. */
static void test_owed(void)
{
    static const uint8_t types[] = { QHCA_QPT_UD, QHCA_QPT_RAW };

    for (unsigned t = 0; t < ARRAY_SIZE(types); t++) {
        if (types[t] == QHCA_QPT_RAW) {
            start_node();
            qp = flow_qp(&node);
        } else {
            start_type(types[t]);
        }
        CHECK(!loads("cnp_owed", 1, FIELD_SET));
        CHECK(strstr(snapshot_why(), "cnp_owed"));
    }
    for (unsigned state = QHCA_QPS_RESET; state <= QHCA_QPS_RTS; state++) {
        start_in(&RC_OPTS, state);
        CHECK_EQ(loads("cnp_owed", 1, FIELD_SET), state >= QHCA_QPS_RTR);
    }
}

/* No packet costs as much as to close the gate for longer. */
static void test_far_times(void)
{
    static const struct {
        const char *name;
        uint64_t most;
    } rows[] = {
        { "gate.next", 70000ull * 8 * 1000000 }, { "gate.quiet", 4095000 },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        start_alone(&RC_OPTS);
        q_of(&qp)->gate.next = q_of(&qp)->gate.quiet = g->e->now;
        CHECK(loads(rows[i].name, rows[i].most, FIELD_ADD));
        start_alone(&RC_OPTS);
        q_of(&qp)->gate.next = q_of(&qp)->gate.quiet = g->e->now;
        CHECK(!loads(rows[i].name, rows[i].most + 1000000000000ull, FIELD_ADD));
        CHECK(strstr(snapshot_why(), rows[i].name));
    }
}

/* The longest that a gate can be closed can be saved. */
static void test_longest(void)
{
    static const uint8_t to[6] = { 0x52, 0x54, 0, 9, 9, 9 };
    struct frame f = udp_frame(to, 1, 2, 7, 8900);
    struct rc_wr wr;
    struct rc_qp q;

    start_node();
    port_enable(g, test_mac, 0, 9000);
    q = flow_qp(&node);
    CHECK_EQ(set_rate(&q, 1), 0);
    for (unsigned i = 0; i < 2; i++) {
        wr = rc_wr(&q, QHCA_WR_SEND, 0, (uint32_t)f.len);
        memcpy(guest_ptr(g, node.mr.addr, f.len), f.data, f.len);
        rc_put(&q, &wr);
    }
    rc_ring(&q);
    guest_settle(g);
    CHECK_EQ(g->num_sent, 1);
    snapshot_cycle(g);
    guest_advance(g, f.len * 8000000 - 1);
    CHECK_EQ(g->num_sent, 1);
    guest_advance(g, 1);
    CHECK_EQ(g->num_sent, 2);
}

/* ---- many ---- */

#define PACED   1000u

/*
 * The gates of many QPs open at a time, and the harness looks at what each call
 * costs. A QP without a limit does not wait for them.
 */
static void test_many(void)
{
    static struct rc_qp paced[PACED];
    struct rc_opts o = RC_OPTS;
    unsigned sent = 0;

    o.sq_log = o.rq_log = 1;
    start_pair(&RC_OPTS);
    o.timeout = 0;
    for (unsigned i = 0; i < PACED; i++) {
        struct rc_wr wr;

        paced[i] = rc_scripted(&node, &o, &far);
        CHECK_EQ(set_rate(&paced[i], 1), 0);
        wr = rc_wr(&paced[i], QHCA_WR_RDMA_WRITE, 0, 2048);
        wr.raddr = node.mr.addr;
        wr.rkey = node.mr.key;
        rc_put(&paced[i], &wr);
        rc_ring(&paced[i]);
        peer_drain(&paced[i]);
    }
    for (unsigned i = 0; i < PACED; i++) {
        struct vhca_qp *v = q_of(&paced[i]);

        REQUIRE(v->gate.timer.pos);
        v->gate.next = g->e->now + SECOND;
        vhca_timer_set(g->e, &v->gate.timer, v->gate.next);
    }
    *g->clock += SECOND;
    post_writes(&qp, 1, 64);
    rc_ring(&qp);
    for (unsigned i = 0; i < 3 && !q_of(&qp)->sq.ci; i++) {
        guest_advance(g, 0);
    }
    done(0, QHCA_WC_SUCCESS);
    for (unsigned i = 0; i < 1000 && sent < PACED; i++) {
        guest_advance(g, 1000);
        sent += peer_drain(&qp);
    }
    CHECK(sent >= PACED);
}

static const struct test tests[] = {
    { "E-041 a QP without a peer", test_raw },
    { "E-041 notifications of strangers", test_forged },
    { "the reaction point is switched off", test_switched_off },
    { "years later", test_asleep },
    { "a notification that nobody can owe", test_owed },
    { "times too far away", test_far_times },
    { "the longest wait", test_longest },
    { "many QPs", test_many },
};

TEST_MAIN(tests)
