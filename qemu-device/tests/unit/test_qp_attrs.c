/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: QPs in RTS use the optional attributes that an earlier
 * step of MODIFY_QP has set, and each state accepts the right packets. (PORT
 * and PKEY_INDEX are also optional, but each has only one value.)
 */
#include "harness/debug.h"
#include "harness/scripted.h"
#include "tables.h"

#define RQ_PSN  0x222222u       /* rq_psn of RC_OPTS */
#define SQ_PSN  0x111111u
#define LEN     8u

/*
 * Each step is a row of conformance A.3. The last two are for types with SQE,
 * which a QP enters when its send queue stops at an error.
 */
static const uint8_t way[] = {
    QHCA_QPS_INIT, QHCA_QPS_INIT, QHCA_QPS_RTR, QHCA_QPS_RTS, QHCA_QPS_RTS,
    QHCA_QPS_SQD, QHCA_QPS_SQD, QHCA_QPS_RTS, QHCA_QPS_SQE, QHCA_QPS_RTS,
};

static unsigned way_len(uint8_t type)
{
    bool reliable = type == QHCA_QPT_RC || type == QHCA_QPT_XRC_TGT;

    return ARRAY_SIZE(way) - (reliable ? 2 : 0);
}

/* Rights and Q_Keys are allowed in all steps but the first and to SQD, SQE. */
static unsigned steps_of(uint8_t type)
{
    return way_len(type) - (way_len(type) < ARRAY_SIZE(way) ? 2 : 3);
}

/* @qp in RESET, with @o's attributes; an XRC_TGT has a domain with an SRQ. */
static void start_anew(const struct rc_opts *o)
{
    struct rc_opts own = *o;

    start_responder(&RC_OPTS, QHCA_QPS_RESET);
    if (o->type == QHCA_QPT_XRC_TGT) {
        own.xrcdn = xrcd_create(g);
        srq = srq_create_xrc(&node, node.pdn, 3, 2, own.xrcdn);
    }
    add_scripted(&own, QHCA_QPS_RESET);
}

/* Injects the next request to @qp, of its service. */
static void ask(uint8_t opcode)
{
    static const uint8_t service[] = {
        [QHCA_QPT_RC] = SVC_RC, [QHCA_QPT_UC] = SVC_UC,
        [QHCA_QPT_XRC_TGT] = SVC_XRC,
    };
    struct roce_packet p = request(service[qp.o.type] | opcode, RQ_PSN, 0, LEN);

    p.srqn = srq.srqn;
    peer_inject(&qp, &p, data, LEN);
}

/* Posts a WR with an invalid opcode. */
static void stop_queue(void)
{
    struct rc_wr wr = rc_wr(&qp, 0x77, 0, 8);

    rc_post(&qp, &wr);
    REQUIRE(rc_state(&qp) == QHCA_QPS_SQE);
}

/*
 * Takes a new @qp with @o's attributes all the way; step @at, and no other,
 * takes attribute @bit from @then. False: the step does not allow it.
 */
static bool take_way(const struct rc_opts *o, unsigned at, uint32_t bit,
                     const struct rc_opts *then)
{
    uint8_t from = QHCA_QPS_RESET;

    start_anew(o);
    for (unsigned i = 0; i < way_len(o->type); from = way[i++]) {
        struct qhca_qp_attr a;
        uint32_t mask;

        if (way[i] == QHCA_QPS_SQE) {
            stop_queue();
            if (i == at) {
                return false;   /* no command leads to SQE */
            }
            continue;
        }
        mask = way[i] > from ? rc_step_mask(o->type, way[i]) : QHCA_QP_STATE;
        if (i == at) {
            mask |= bit;
            qp.o = *then;
            if (!vhca_qp_transition_ok(o->type, from, way[i], mask)) {
                return false;
            }
        }
        a = rc_attr(&qp);
        a.state = way[i];
        REQUIRE(rc_modify(&qp, &a, mask) == QHCA_OK);
    }
    return true;
}

static void check_right(const struct rc_opts *o)
{
    unsigned steps = 0;

    for (unsigned at = 1; at < way_len(o->type); at++) {
        struct rc_opts then = *o;

        then.access ^= QHCA_ACCESS_REMOTE_WRITE;
        if (take_way(o, at, QHCA_QP_ACCESS_FLAGS, &then)) {
            ask(RC_WRITE_ONLY);
            if (memcmp(guest_ptr(g, node.mr.addr, LEN), data, LEN) ?
                then.access : o->access) {
                tap_note("type %u, step %u: wrong rights", o->type, at);
                CHECK(!"the rights that were set");
            }
            steps++;
        }
    }
    CHECK_EQ(steps, steps_of(o->type));
}

static void test_rights(void)
{
    static const uint8_t types[] = {
        QHCA_QPT_RC, QHCA_QPT_UC, QHCA_QPT_XRC_TGT,
    };

    for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
        struct rc_opts o = opts_of(types[i]);

        o.access = 0;
        check_right(&o);
        o.access = QHCA_ACCESS_REMOTE_WRITE;
        check_right(&o);
    }
}

/* The GSI QP accepts a Q_Key as well, but always uses its well-known one. */
static void check_qkey(uint8_t type)
{
    struct rc_opts o = opts_of(type), then = o;
    bool gsi = type == QHCA_QPT_GSI;
    unsigned steps = 0;

    then.qkey++;
    for (unsigned at = 1; at < way_len(o.type); at++) {
        struct roce_packet p;

        if (!take_way(&o, at, QHCA_QP_QKEY, &then)) {
            continue;
        }
        rc_recv(&qp, at, 0, 40 + LEN);
        p = peer_packet(&qp, SVC_UD | RC_SEND_ONLY, 0);
        p.qkey = gsi ? then.qkey : o.qkey;
        peer_inject(&qp, &p, data, LEN);
        rc_expect_none(&qp.rcq);
        p.qkey = gsi ? QHCA_QKEY_GSI : then.qkey;
        peer_inject(&qp, &p, data, LEN);
        rc_expect(&qp.rcq, at, QHCA_WC_SUCCESS);
        steps++;
    }
    CHECK_EQ(steps, steps_of(o.type));
}

static void test_qkey(void)
{
    check_qkey(QHCA_QPT_UD);
    check_qkey(QHCA_QPT_GSI);
}

/* The timer is required for RTR and optional in later steps. */
static void check_rnr_timer(uint8_t type, uint8_t service)
{
    struct rc_opts o = opts_of(type), then = o;
    unsigned steps = 0;

    then.min_rnr = 17;
    for (unsigned at = 3; at < way_len(o.type); at++) {
        if (take_way(&o, at, QHCA_QP_MIN_RNR_TIMER, &then)) {
            ask(RC_SEND_ONLY);
            CHECK_EQ(peer_expect(&qp, service | RC_ACKNOWLEDGE, RQ_PSN)
                     .syndrome, AETH_RNR_NAK | then.min_rnr);
            steps++;
        }
    }
    CHECK_EQ(steps, steps_of(type) - 2);
}

static void test_rnr_timer(void)
{
    check_rnr_timer(QHCA_QPT_RC, SVC_RC);
    check_rnr_timer(QHCA_QPT_XRC_TGT, SVC_XRC);
}

/* ---- packets by state ---- */

/* The packet must be counted as received, or as wrong for the QP's state. */
static void check_taken(bool taken, uint64_t pkts, uint64_t bad)
{
    CHECK_EQ(counter(g, QHCA_CNT_RX_PKTS), pkts + taken);
    CHECK_EQ(counter(g, QHCA_CNT_RX_BAD_STATE), bad + !taken);
}

static void test_by_state(void)
{
    static const uint8_t responses[] = {
        RC_ACKNOWLEDGE, RC_READ_RESP_ONLY, RC_ATOMIC_ACKNOWLEDGE,
    };

    for (unsigned state = 0; state < ARRAY_SIZE(table_a1); state++) {
        uint64_t pkts, bad;

        if (state == QHCA_QPS_SQE) {
            continue;           /* never RC */
        }
        start_responder(&RC_OPTS, state);
        for (unsigned n = 0; n < ARRAY_SIZE(responses); n++) {
            struct roce_packet p = peer_packet(&qp, responses[n], SQ_PSN);

            pkts = counter(g, QHCA_CNT_RX_PKTS);
            bad = counter(g, QHCA_CNT_RX_BAD_STATE);
            peer_inject(&qp, &p, NULL, 0);
            check_taken(table_a1[state].responses, pkts, bad);
        }
        pkts = counter(g, QHCA_CNT_RX_PKTS);
        bad = counter(g, QHCA_CNT_RX_BAD_STATE);
        inject(RC_WRITE_ONLY, RQ_PSN, LEN);
        check_taken(table_a1[state].requests, pkts, bad);
        CHECK_EQ(rc_state(&qp), state);
    }
}

static const struct test tests[] = {
    { "A-043 A-044 A-045 A-047 A-048 A-050 A-051 A-052 A-054 A-056 A-057 "
      "A-072 rights",
      test_rights },
    { "A-043 A-046 A-049 A-053 A-058 A-072 D-080 E-043 the Q_Key", test_qkey },
    { "A-047 A-050 A-051 A-056 A-072 the RNR timer", test_rnr_timer },
    { "A-001 A-002 A-003 A-004 A-005 A-007 E-045 "
      "requests and responses by state",
      test_by_state },
};

TEST_MAIN(tests)
