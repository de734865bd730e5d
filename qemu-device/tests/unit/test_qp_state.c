/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the QP state machine and the QP commands, conformance A.
 */
#include "harness/debug.h"
#include "harness/fixture.h"
#include "tables.h"

#define S(s)    QHCA_QPS_##s
#define A(a)    QHCA_QP_##a

/* A static rate may come with each transition to RTS. */
static uint32_t optional(const struct table_a3 *r)
{
    return r->optional | (r->to == S(RTS) ? A(RATE_LIMIT) : 0);
}

static void check_ok(const struct table_a3 *r, uint32_t mask, bool ok)
{
    if (vhca_qp_transition_ok(r->type, r->from, r->to, mask | A(STATE)) != ok) {
        tap_note("%s type %u from %u to %u mask 0x%x", r->id, r->type, r->from,
                 r->to, mask);
        CHECK(!"judged rightly");
    }
}

static void check_pair(const struct table_a3 *r, bool legal)
{
    check_ok(r, r->required, legal);
    check_ok(r, r->required | optional(r), legal);
    for (unsigned bit = 1; bit < 32; bit++) {
        uint32_t b = 1u << bit;

        if (r->required & b) {                                  /* */
            check_ok(r, r->required & ~b, false);
        } else {                                                /* */
            check_ok(r, r->required | b, legal && (optional(r) & b));
        }
    }
}

static void test_table(void)
{
    for (uint8_t type = 0; type <= QHCA_QPT_XRC_TGT; type++) {
        for (uint8_t pair = 0; rc_a3(type, 0, 0) && pair < 49; pair++) {
            const struct table_a3 *row = rc_a3(type, pair / 7, pair % 7);
            struct table_a3 none = { "A.2", pair / 7, pair % 7, type, 0, 0 };

            check_pair(row ? row : &none, row);
        }
    }
}

/* Checks all pairs of states by command, except those an RC QP cannot reach. */
static void test_pairs(void)
{
    start_node();
    for (unsigned pair = 0; pair < 49; pair++) {
        uint8_t from = (uint8_t)(pair / 7), to = (uint8_t)(pair % 7);
        const struct table_a3 *r = rc_a3(QHCA_QPT_RC, from, to);
        uint32_t mask = r ? r->required | optional(r) : A(MIN_RNR_TIMER);
        struct qhca_qpc before, after;
        struct qhca_qp_attr a;
        int status;

        if (from == S(SQE)) {
            continue;           /* never RC */
        }
        add_scripted(&RC_OPTS, from);
        before = rc_query(&qp);
        a = rc_attr(&qp);
        a.state = to;
        a.retry_cnt = 3;
        status = rc_modify(&qp, &a, A(STATE) | mask);
        if (mask & A(CUR_STATE)) {
            CHECK_EQ(status, from == 0 ? 0 : QHCA_ERR_STATE);
            a.cur_state = from;
            status = rc_modify(&qp, &a, A(STATE) | mask);
        }
        if ((status == QHCA_OK) != !!r) {
            tap_note("from %u to %u: status %d", from, to, status);
            CHECK(!"judged rightly");
        }
        after = rc_query(&qp);
        CHECK_EQ(after.attr.state, r ? to : from);
        CHECK(r || !memcmp(&before, &after, sizeof(before)));   /* */
        CHECK_EQ(rc_destroy(&qp), QHCA_OK);
    }
}

static void test_values(void)
{
    static const struct {
        const char *what;
        uint8_t state;
        size_t off;
        uint8_t val;
    } bad[] = {
#define FIELD(f) offsetof(struct qhca_qp_attr, f)
        { "port 0", S(INIT), FIELD(port), 0 },
        { "port 2", S(INIT), FIELD(port), 2 },
        { "pkey_index 1", S(INIT), FIELD(pkey_index), 1 },
        { "access bit 15", S(INIT), FIELD(access) + 1, 0x80 },
        { "mtu 0", S(RTR), FIELD(path_mtu), 0 },
        { "mtu 6", S(RTR), FIELD(path_mtu), 6 },
        { "dest_qpn", S(RTR), FIELD(dest_qpn) + 3, 1 },
        { "dest_rd 17", S(RTR), FIELD(max_dest_rd_atomic), 17 },
        { "min_rnr 32", S(RTR), FIELD(min_rnr_timer), 32 },
        { "av port 0", S(RTR), FIELD(av.port), 0 },
        { "av port 2", S(RTR), FIELD(av.port), 2 },
        { "sgid empty", S(RTR), FIELD(av.sgid_index), 1 },
        { "sgid 200", S(RTR), FIELD(av.sgid_index), 200 },
        { "dgid not IPv4", S(RTR), FIELD(av.dgid), 0xfd },
        { "timeout 32", S(RTS), FIELD(timeout), 32 },
        { "retry_cnt 8", S(RTS), FIELD(retry_cnt), 8 },
        { "rnr_retry 8", S(RTS), FIELD(rnr_retry), 8 },
        { "rd_atomic 17", S(RTS), FIELD(max_rd_atomic), 17 },
        { "state 7", S(RTS), FIELD(state), 7 },
    };

    start_node();
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct qhca_qpc before, after;
        struct qhca_qp_attr a;
        int status;

        add_scripted(&RC_OPTS, bad[i].state - 1);
        before = rc_query(&qp);
        a = rc_attr(&qp);
        a.state = bad[i].state;
        ((uint8_t *)&a)[bad[i].off] = bad[i].val;
        status = rc_modify(&qp, &a, rc_step_mask(QHCA_QPT_RC, bad[i].state));
        if (status != QHCA_ERR_PARAM) {
            tap_note("%s: status %d", bad[i].what, status);
            CHECK(!"refused");
        }
        after = rc_query(&qp);
        CHECK(!memcmp(&before, &after, sizeof(before)));
        CHECK_EQ(rc_destroy(&qp), QHCA_OK);
    }
}

static void test_query(void)
{
    struct rc_opts o = RC_OPTS;
    struct qhca_qp_attr a;
    struct qhca_qpc c;

    o.rd_atomic = 3;
    o.dest_rd_atomic = 5;
    o.sq_psn = 0xff123456;      /* */
    o.rq_psn = 0x01ffffff;
    o.timeout = 31;
    o.min_rnr = 25;
    start_in(&o, S(RESET));
    CHECK_EQ(rc_state(&qp), S(RESET));
    rc_set_peer(&qp, &far, 0xfffffe);
    rc_bring_up(&qp, S(RTS));
    a = rc_attr(&qp);
    c = rc_query(&qp);
    CHECK_EQ(le32toh(c.attr.sq_psn), 0x123456);
    CHECK_EQ(le32toh(c.attr.rq_psn), 0xffffff);
    a.sq_psn = htole32(0x123456);
    a.rq_psn = htole32(0xffffff);
    a.state = a.cur_state = S(RTS);
    CHECK(!memcmp(&a, &c.attr, sizeof(a)));
    CHECK_EQ(le32toh(c.qpn), qp.qpn);
    CHECK_EQ(le32toh(c.send_cqn), qp.scq.cqn);
    CHECK_EQ(le32toh(c.recv_cqn), qp.rcq.cqn);
    CHECK_EQ(le32toh(c.next_psn), 0x123456);
    CHECK_EQ(le32toh(c.epsn), 0xffffff);
    /* without STATE the row is X to X, with its attributes. */
    CHECK_EQ(rc_modify(&qp, &a, A(MIN_RNR_TIMER)), QHCA_OK);
    CHECK_EQ(rc_modify(&qp, &a, A(TIMEOUT)), QHCA_ERR_STATE);
    CHECK_EQ(rc_set_state(&qp, S(RESET)), QHCA_OK);
    CHECK_EQ(rc_modify(&qp, &a, A(PORT)), QHCA_ERR_STATE);
    /* 0x4000: ALT_PATH, 0x80000: CAP. */
    CHECK_EQ(rc_modify(&qp, &a, 0x4000), QHCA_ERR_PARAM);
    CHECK_EQ(rc_modify(&qp, &a, 0x80000), QHCA_ERR_PARAM);
}

static struct qhca_create_qp good_create(struct node *n, struct gcq *cq)
{
    struct gbuf b = guest_buf(n->g, 8192, 12, 0);

    return (struct qhca_create_qp) {
        .sq = b.desc, .rq = b.desc, .pdn = htole32(n->pdn), .uar = htole32(1),
        .send_cqn = htole32(cq->cqn), .recv_cqn = htole32(cq->cqn),
        .type = QHCA_QPT_RC, .sq_log_size = 5, .sq_log_stride = 8,
        .rq_log_size = 6, .rq_log_stride = 7, .max_send_sge = htole32(12),
        .max_recv_sge = htole32(7), .max_inline = htole32(192),
    };
}

static void test_create_errors(void)
{
    struct node n = node_new(NULL, 1);
    struct gcq cq = cq_create(n.g, &n.comp, 1, 4);
    struct qhca_create_qp good = good_create(&n, &cq), c;
    const struct qhca_device_attr attr = device_attr(n.g);
    unsigned objects = qhca_engine_num_objects(n.g->e);
    uint32_t qpn = 0;

#define REFUSE(field, val, status) \
    (c = good, c.field = (val), \
     CHECK_EQ(rc_create_raw(n.g, &c, &qpn), (status)))
    REFUSE(pdn, htole32(n.pdn + 1), QHCA_ERR_OBJ);
    REFUSE(send_cqn, htole32(cq.cqn ^ 1), QHCA_ERR_OBJ);
    REFUSE(recv_cqn, 0, QHCA_ERR_OBJ);
    REFUSE(uar, htole32(NUM_UARS), QHCA_ERR_PARAM);
    REFUSE(type, 7, QHCA_ERR_NOT_SUPPORTED);
    REFUSE(type, 11, QHCA_ERR_NOT_SUPPORTED);
    REFUSE(flags, 0x80, QHCA_ERR_PARAM);
    REFUSE(flags, QHCA_QP_FLAG_NO_OWN_MCAST, QHCA_ERR_PARAM);   /* RC */
    /* J-035: at the limit something else is wrong, beyond it is too much. */
    REFUSE(sq_log_size, (uint8_t)le32toh(attr.max_sq_wr_log), QHCA_ERR_PARAM);
    REFUSE(sq_log_size, (uint8_t)le32toh(attr.max_sq_wr_log) + 1,
           QHCA_ERR_LIMIT);
    REFUSE(rq_log_size, (uint8_t)le32toh(attr.max_rq_wr_log), QHCA_ERR_PARAM);
    REFUSE(rq_log_size, (uint8_t)le32toh(attr.max_rq_wr_log) + 1,
           QHCA_ERR_LIMIT);
    REFUSE(rq_log_size, 255, QHCA_ERR_LIMIT);
    REFUSE(sq_log_size, 6, QHCA_ERR_PARAM);     /* buffer too small */
    REFUSE(sq_log_stride, 6, QHCA_ERR_PARAM);
    REFUSE(sq_log_stride, 11, QHCA_ERR_PARAM);
    REFUSE(rq_log_stride, 200, QHCA_ERR_PARAM);
    REFUSE(rq_log_stride, 4, QHCA_ERR_PARAM);
    REFUSE(max_send_sge, attr.max_send_sge, QHCA_ERR_PARAM);
    REFUSE(max_send_sge, htole32(le32toh(attr.max_send_sge) + 1),
           QHCA_ERR_LIMIT);
    REFUSE(max_recv_sge, attr.max_recv_sge, QHCA_ERR_PARAM);
    REFUSE(max_recv_sge, htole32(le32toh(attr.max_recv_sge) + 1),
           QHCA_ERR_LIMIT);
    REFUSE(max_inline, attr.max_inline, QHCA_ERR_PARAM);
    REFUSE(max_inline, htole32(le32toh(attr.max_inline) + 1), QHCA_ERR_LIMIT);
    REFUSE(max_send_sge, htole32(13), QHCA_ERR_PARAM);  /* above the stride */
    REFUSE(max_recv_sge, htole32(8), QHCA_ERR_PARAM);
    REFUSE(max_inline, htole32(193), QHCA_ERR_PARAM);
    CHECK_EQ(qhca_engine_num_objects(n.g->e), objects);

    for (unsigned i = 0; i < 300; i++) {
        REQUIRE(rc_create_raw(n.g, &good, &qpn) == QHCA_OK);
        CHECK(qpn > 1 && qpn < 0xffffff);                       /* */
        CHECK_EQ(guest_cmd_obj(n.g, QHCA_CMD_DESTROY_CQ, cq.cqn),
                 QHCA_ERR_BUSY);
        CHECK_EQ(guest_cmd_obj(n.g, QHCA_CMD_DEALLOC_PD, n.pdn),
                 QHCA_ERR_BUSY);
        CHECK_EQ(guest_cmd_obj(n.g, QHCA_CMD_DESTROY_QP, qpn), QHCA_OK);
        CHECK_EQ(guest_cmd_obj(n.g, QHCA_CMD_DESTROY_QP, qpn), QHCA_ERR_OBJ);
    }
    CHECK_EQ(guest_cmd_obj(n.g, QHCA_CMD_DESTROY_CQ, cq.cqn), QHCA_OK);
}

/* As many QPs as max_qp says, and one more. */
static void test_max_qp(void)
{
    struct node n = node_new(NULL, 1);
    struct gcq cq = cq_create(n.g, &n.comp, 1, 4);
    struct qhca_create_qp c = good_create(&n, &cq);
    uint32_t max = le32toh(device_attr(n.g).max_qp), qpn, last = 0;

    for (uint32_t i = 0; i < max; i++) {
        REQUIRE(rc_create_raw(n.g, &c, &qpn) == QHCA_OK);
        last = qpn;
    }
    CHECK_EQ(rc_create_raw(n.g, &c, &qpn), QHCA_ERR_NO_RESOURCE);
    CHECK_EQ(guest_cmd_obj(n.g, QHCA_CMD_DESTROY_QP, last), QHCA_OK);
    CHECK_EQ(rc_create_raw(n.g, &c, &qpn), QHCA_OK);
    CHECK(qpn != last);
}

/* Doorbells by state (A.1), on a page of another QP, and out of range. */
static void test_doorbells(void)
{
    start_node();
    for (unsigned state = 0; state < ARRAY_SIZE(table_a1); state++) {
        uint64_t bad = counter(g, QHCA_CNT_BAD_DOORBELL);

        if (state == S(SQE)) {
            continue;           /* never RC */
        }
        add_scripted(&RC_OPTS, state);
        ring(g, 1, QHCA_DB_SQ, qp.qpn, 0);
        bad += !table_a1[state].post_send;
        CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), bad);
        ring(g, 1, QHCA_DB_RQ, qp.qpn, 0);
        bad += !table_a1[state].post_recv;
        CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), bad);
        ring(g, 2, QHCA_DB_RQ, qp.qpn, 0);             /* J-020 */
        ring(g, 2, QHCA_DB_SQ, qp.qpn, 0);
        ring(g, 1, QHCA_DB_RQ, qp.qpn, (1u << qp.o.rq_log) + 1);
        ring(g, 1, QHCA_DB_SQ, qp.qpn, UINT32_MAX);
        CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), bad + 4);
        CHECK_EQ(rc_destroy(&qp), QHCA_OK);
    }
}

/* a QP in RESET can enter ERR, flushes WRs, and can be set up again. */
static void test_reset_to_err(void)
{
    start_node();
    qp = rc_create(&node, &RC_OPTS);
    CHECK_EQ(rc_set_state(&qp, S(ERR)), QHCA_OK);
    CHECK_EQ(rc_state(&qp), S(ERR));
    rc_recv(&qp, 7, 0, 64);
    rc_send(&qp, 8);
    rc_expect(&qp.rcq, 7, QHCA_WC_WR_FLUSH_ERR);
    done(0, QHCA_WC_WR_FLUSH_ERR);
    CHECK_EQ(rc_set_state(&qp, S(INIT)), QHCA_ERR_STATE);
    CHECK_EQ(rc_set_state(&qp, S(RESET)), QHCA_OK);
    qp.sq_pi = qp.rq_pi = 0;
    qp.o.rq_psn = qp.o.sq_psn;
    rc_connect(&qp, &qp);
    rc_recv(&qp, 8, 0, 64);
    rc_send(&qp, 8);
    rc_expect(&qp.rcq, 8, QHCA_WC_SUCCESS);
    done(0, QHCA_WC_SUCCESS);
}

/* A WR of that opcode, with as much data as it takes. */
static struct rc_wr wr_of(uint8_t opcode)
{
    struct rc_wr wr = rc_wr(&qp, opcode, 0, 8);

    rc_aim(&wr, &node, 0);
    wr.num_sge = opcode != QHCA_WR_BIND_MW && opcode != QHCA_WR_LOCAL_INV &&
                 opcode != QHCA_WR_REG_MR && opcode != QHCA_WR_FLUSH;
    wr.flush_type = 1;
    return wr;
}

/* B.1: each other opcode is refused, and stops the queue. */
static void check_opcodes(uint8_t type)
{
    struct rc_opts o = opts_of(type);
    bool reliable = type == QHCA_QPT_RC || type == QHCA_QPT_XRC_INI;

    o.qp_flags = KERNEL_QP;
    for (unsigned op = 0; op < 256; op++) {
        const struct table_b1 *row = rc_b1((uint8_t)op);
        bool has = row && row->types & 1u << type, refused;
        struct qhca_cqe cqe;
        struct rc_wr wr;

        start_alone(&o);
        wr = wr_of((uint8_t)op);
        rc_do(&qp, &wr);
        refused = cq_poll(&qp.scq, &cqe) && cqe.status == I_051_RQ;
        if (refused == has) {
            tap_note("%s opcode %u, type %u", row ? row->id : "none", op, type);
            CHECK(!"refused rightly");
        }
        if (refused) {
            peer_expect_none(&qp);
            CHECK_EQ(rc_state(&qp), reliable ? S(ERR) : S(SQE));
        }
    }
}

static void test_opcodes(void)
{
    check_opcodes(QHCA_QPT_UD);
    check_opcodes(QHCA_QPT_UC);
    check_opcodes(QHCA_QPT_RC);
    check_opcodes(QHCA_QPT_XRC_INI);
}

static const struct test tests[] = {
    { "A-030..A-036 A-040..A-059 A-060 A-061 the table, all types",
      test_table },
    { "A-030 A-031 A-032 A-033 A-034 A-036 A-062 A-066 pairs, by command",
      test_pairs },
    { "A-063 A-064 A-065 values", test_values },
    { "A-067 A-068 A-069 A-073 PSNs are masked; what cannot be modified",
      test_query },
    { "A-010 A-011 A-012 A-020 J-035 creation, errors, destruction",
      test_create_errors },
    { "A-012 A-022 J-001 max_qp QPs, and one more", test_max_qp },
    { "A-001 A-002 A-003 A-004 A-005 A-007 J-020 doorbells by state",
      test_doorbells },
    { "A-030 RESET to ERR", test_reset_to_err },
    { "B-001..B-014 B-016 B-020 I-051 opcodes, types of QPs", test_opcodes },
};

TEST_MAIN(tests)
