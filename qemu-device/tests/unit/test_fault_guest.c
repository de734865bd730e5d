/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: fault rules that the guest sets by commands.
 */
#include <stdio.h>

#include "harness/budget.h"
#include "harness/faults.h"

static char answer[4096];

static int set(const char *text, size_t len)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_SET_FAULTS) };

    return guest_cmd_mbox(g, &cmd, text, len, NULL, 0, NULL);
}

static int set_text(const char *text)
{
    return set(text, strlen(text) + 1);
}

static const char *query(void)
{
    REQUIRE(guest_query(g, QHCA_CMD_QUERY_FAULTS, 0, answer,
                        sizeof(answer)) == QHCA_OK);
    REQUIRE(memchr(answer, '\0', sizeof(answer)));
    return answer;
}

static uint64_t caps(void)
{
    struct qhca_device_attr attr;

    REQUIRE(guest_query(g, QHCA_CMD_QUERY_DEVICE, 0, &attr, sizeof(attr)) ==
            QHCA_OK);
    return le64toh(attr.caps);
}

static void test_allowed(void)
{
    start_node();
    CHECK(!(caps() & QHCA_CAP_FAULTS));
    CHECK_EQ(set_text("tx drop"), QHCA_ERR_NOT_SUPPORTED);
    CHECK_EQ(guest_query(g, QHCA_CMD_QUERY_FAULTS, 0, answer, sizeof(answer)),
             QHCA_ERR_NOT_SUPPORTED);
    CHECK(!g->e->fault_points);
    g->e->cfg.guest_faults = true;
    CHECK(caps() & QHCA_CAP_FAULTS);
    CHECK_EQ(set_text("tx drop"), QHCA_OK);
    CHECK(g->e->fault_points);
}

static void test_rules(void)
{
    start_pair(&RC_OPTS);
    g->e->cfg.guest_faults = true;
    CHECK(!strcmp(query(), ""));
    CHECK_EQ(set_text("cqe opcode=send once fail=rem_op_err\nseed=4\n"
                      "rx prob=1% drop"), QHCA_OK);
    rc_recv(&peer, 0, 0, 4096);
    faults_send();
    done(0, QHCA_WC_REM_OP_ERR);
    CHECK(!strcmp(query(), "seed=1\ncqe opcode=send once fail=rem_op_err"
                           "  # hits 1\nseed=4\nrx prob=1% drop"
                           "  # hits 0\n"));
    CHECK_EQ(set_text(query()), QHCA_OK);
    CHECK(strstr(query(), "fail=rem_op_err  # hits 0\n"));
    CHECK_EQ(set_text(""), QHCA_OK);
    CHECK(!strcmp(query(), ""));
    CHECK(!g->e->fault_points);
}

static void test_wrong(void)
{
    static char full[4096];

    start_node();
    g->e->cfg.guest_faults = true;
    CHECK_EQ(set_text("tx drop"), QHCA_OK);
    CHECK_EQ(set_text("rx drop\nrx  dorp once"), QHCA_ERR_PARAM);
    CHECK(!strcmp(query(), "# rx  dorp once\n#     ^ no such word: dorp\n"
                           "seed=1\ntx drop  # hits 0\n"));
    /* The text read can be written again: the error in it is a comment. */
    CHECK_EQ(set_text(query()), QHCA_OK);
    CHECK(!strcmp(query(), "seed=1\ntx drop  # hits 0\n"));

    memset(full, ' ', sizeof(full));
    CHECK_EQ(set(full, sizeof(full)), QHCA_ERR_PARAM);      /* no NUL */
    memcpy(full + 4080, "tx dorp", 8);
    CHECK_EQ(set(full, sizeof(full)), QHCA_ERR_PARAM);
    CHECK(strstr(query(), "# line 1, column 4084: no such word: dorp\n"));
    /* A line of 79 characters is shown, a longer one is not. */
    memset(full, 'x', 80);
    full[79] = 0;
    CHECK_EQ(set(full, 80), QHCA_ERR_PARAM);
    CHECK(strstr(query(), "# xxx"));
    full[79] = 'x';
    full[80] = 0;
    CHECK_EQ(set(full, 81), QHCA_ERR_PARAM);
    CHECK(strstr(query(), "# line 1, column 1: "));
    CHECK_EQ(set_text("timer remove"), QHCA_ERR_PARAM);
    CHECK(strstr(query(), "remove is not for the guest"));
    CHECK_EQ(g->removed, 0);
}

/* Operator and guest have rules of their own; the operator's apply first. */
static void test_two_owners(void)
{
    char text[1000] = "", shown[VHCA_RULES_TEXT];

    faults_pair("rx opcode=rc.send_only once drop");
    g->e->cfg.guest_faults = true;
    CHECK_EQ(set_text("rx opcode=rc.send_only times=2 duplicate"), QHCA_OK);
    CHECK(!strstr(query(), "drop"));
    faults_send();
    CHECK(strstr(query(), "hits 0"));
    faults_sent(0);
    CHECK(strstr(query(), "hits 1"));
    faults_set("tx once drop; tx once drop");
    CHECK(strstr(query(), "hits 1"));
    CHECK_EQ(set_text(""), QHCA_OK);
    qhca_engine_get_faults(g->e, shown, sizeof(shown));
    CHECK(strstr(shown, "tx once drop"));

    /* The guest's rules are limited, which leaves room for the operator's. */
    for (unsigned i = 0; i < VHCA_RULE_GUEST; i++) {
        strcat(text, "tx once drop\n");
    }
    CHECK_EQ(set_text(text), QHCA_OK);
    strcat(text, "tx once drop\n");
    CHECK_EQ(set_text(text), QHCA_ERR_PARAM);
    CHECK(strstr(query(), "more than 16 rules"));
}

/* The longest text possible fits the mailbox. */
static void test_bound(void)
{
    char rule[VHCA_RULE_TEXT + 40], text[4096] = "";

    start_node();
    g->e->cfg.guest_faults = true;
    for (unsigned i = 0; i < VHCA_RULE_GUEST; i++) {
        snprintf(rule, sizeof(rule), "seed=1844674407370955161%u\ntx drop "
                 "qpn=0x%0*u\n", i % 6, (int)VHCA_RULE_TEXT - 16, 1);
        strcat(text, rule);
    }
    CHECK_EQ(set_text(text), QHCA_OK);
    for (unsigned i = 0; i < VHCA_RULE_GUEST; i++) {
        g->e->rules->rule[i].hits = UINT64_MAX;
    }
    CHECK_EQ(set_text("tx xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
             QHCA_ERR_PARAM);
    CHECK(strlen(query()) > 2400);
    CHECK(!strcmp(answer + strlen(answer) - 7, "551615\n"));
}

/* ---- packets for a large group ---- */

#define MEMBERS     VHCA_MAX_MCAST_QP
#define HELD        64u

static struct rc_qp *last;      /* member of the group */

static void start_held(const char *text)
{
    last = start_group(HELD + 6);
    g->e->cfg.guest_faults = true;
    CHECK_EQ(set_text(text), QHCA_OK);
}

/* Lets a packet for the group arrive; returns the units of that call. */
static unsigned arrives(uint32_t psn)
{
    struct roce_packet p = peer_to_group(&qp, psn, full_group);
    uint8_t frame[MAX_FRAME] = { 0 };

    p.payload_len = 4096;
    guest_rx(g, frame, roce_finish(&p, frame));
    return g->e->spent;
}

static unsigned num_received(void)
{
    struct qhca_cqe cqe;
    unsigned n = 0;

    while (cq_poll(&last->rcq, &cqe)) {
        CHECK_EQ(cqe.status, QHCA_WC_SUCCESS);
        n++;
    }
    return n;
}

/*
 * A rule for packets to a group makes no call cost more than one delivery.
 * harness/bounds.c checks single calls, this test their results.
 */
static void test_group(void)
{
    unsigned one;

    start_held("rx opcode=ud.send_only times=64 reorder");
    for (unsigned i = 0; i < HELD; i++) {
        CHECK(arrives(i) < 64);
    }
    CHECK_EQ(g->e->rules->num_held, HELD);
    one = arrives(HELD);
    tap_note("%u units for a packet to %u QPs, %u held", one, MEMBERS, HELD);
    CHECK(one >= 2048 && one < 2048 + QHCA_MAX_RECV_SGE + 16);
    guest_settle(g);
    CHECK_EQ(num_received(), 1);        /* held packets wait for a timer */
    guest_advance(g, 1);
    CHECK_EQ(num_received(), 1);
    CHECK_EQ(g->e->rules->num_held, HELD - 1);
    guest_advance(g, 100000000);
    CHECK_EQ(num_received(), HELD - 1);
    CHECK_EQ(g->e->rules->num_held, 0);

    start_held("rx opcode=ud.send_only times=1 duplicate");
    one = arrives(0);
    CHECK(one < 2048 + QHCA_MAX_RECV_SGE + 16);
    guest_advance(g, 1000);
    CHECK_EQ(num_received(), 2);

    start_held("rx opcode=rc.* drop");  /* these are not such packets */
    (void)arrives(0);
    guest_advance(g, 1000);
    CHECK_EQ(num_received(), 1);
}

static const struct test tests[] = {
    { "the guest sets rules only if the operator allows it", test_allowed },
    { "rules and their hits", test_rules },
    { "wrong rules", test_wrong },
    { "rules of the operator and of the guest", test_two_owners },
    { "the longest answer", test_bound },
    { "packets for a large group", test_group },
};

TEST_MAIN(tests)
