/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Litmus tests: what a CPU may see of data that a device writes, when there is
 * a rule that lets them reach memory late and in any order, and when there is
 * none. Each test has one outcome that nobody expects. Some of them are legal:
 * then seeds are found that show them. The others must never occur.
 */
#include <stdio.h>

#include "harness/litmus.h"

#define SEEDS   400u

/* ---- what a test does ---- */

static void put_flush(struct rc_qp *q, uint64_t off, uint32_t len)
{
    struct rc_wr wr = rc_wr(q, QHCA_WR_FLUSH, 0, 0);

    wr.num_sge = 0;
    wr.flush_type = QHCA_FLUSH_GLOBAL;
    wr.flush_len = len;
    rc_aim(&wr, &node, off);
    rc_put(q, &wr);
}

/* Rings, and waits for a byte at @off that is not zero any more. */
static void ring_until(struct rc_qp *q, uint64_t off)
{
    rc_ring(q);
    for (unsigned i = 0; i < 1000 && !*spot(off); i++) {
        pass_time();
    }
    CHECK(*spot(off));
}

/* ---- the tests: each returns whether it has seen the odd outcome ---- */

/* WRITE x; WRITE y. The CPU sees y, and then not x. */
static bool flag(void)
{
    put_write(&qp, X, LEN);
    put_write(&qp, Y, 1);
    ring_until(&qp, Y);
    return !is_all(X, LEN, 0xff);
}

/* WRITE x. The CPU sees its last byte, and then not all of it. */
static bool last_byte(void)
{
    put_write(&qp, X, LEN);
    ring_until(&qp, X + LEN - 1);
    return !is_all(X, LEN, 0xff);
}

/* Rings, and watches a word. Returns whether the CPU has seen a part of it. */
static bool seen_in_part(void)
{
    rc_ring(&qp);
    for (unsigned i = 0; i < 200; i++) {
        if (!is_all(X, 8, 0) && !is_all(X, 8, 0xff)) {
            return true;
        }
        pass_time();
    }
    return false;
}

/* WRITE x of an aligned word. The CPU sees a part of it. */
static bool torn(void)
{
    put_write(&qp, X, 8);
    return seen_in_part();
}

/* ATOMIC WRITE x. The CPU sees a part of it. */
static bool torn_store(void)
{
    put_op(&qp, QHCA_WR_ATOMIC_WRITE, SRC, X, 8);
    return seen_in_part();
}

/* WRITE x. It is complete at its sender, and the CPU does not see x. */
static bool complete(void)
{
    put_write(&qp, X, LEN);
    ring_done(&qp, &qp.scq, 1);
    return !is_all(X, LEN, 0xff);
}

/* WRITE x; a message. It is received, and the CPU does not see x, or it. */
static bool then_message(uint8_t opcode)
{
    rc_recv(&peer, 1, Y, LEN);
    put_write(&qp, X, LEN);
    put_op(&qp, opcode, SRC, Y, LEN);
    ring_done(&qp, &peer.rcq, 1);
    return !is_all(X, LEN, 0xff) || !is_all(Y, LEN, 0xff);
}

static bool then_send(void)
{
    return then_message(QHCA_WR_SEND);
}

static bool then_imm(void)
{
    return then_message(QHCA_WR_RDMA_WRITE_WITH_IMM);
}

/* WRITE x on one connection; when it is complete, SEND on another. */
static bool then_other_send(void)
{
    rc_recv(&peer_two, 1, Y, LEN);
    put_write(&qp, X, LEN);
    ring_done(&qp, &qp.scq, 1);
    put_op(&qp_two, QHCA_WR_SEND, SRC, 0, LEN);
    ring_done(&qp_two, &peer_two.rcq, 1);
    return !is_all(X, LEN, 0xff);
}

/* WRITE x; FETCH AND ADD y. The CPU sees y, and then not x. */
static bool then_add(void)
{
    struct rc_wr wr = rc_wr(&qp, QHCA_WR_ATOMIC_FETCH_AND_ADD, X + 0x1000, 8);

    put_write(&qp, X, LEN);
    wr.swap_add = 1;
    rc_aim(&wr, &node, Y);
    rc_put(&qp, &wr);
    ring_until(&qp, Y);
    return !is_all(X, LEN, 0xff);
}

/* WRITE x; ATOMIC WRITE y. */
static bool then_store(void)
{
    put_write(&qp, X, LEN);
    put_op(&qp, QHCA_WR_ATOMIC_WRITE, SRC, Y, 8);
    ring_until(&qp, Y);
    return !is_all(X, LEN, 0xff);
}

/* WRITE x; FLUSH x. The FLUSH is complete, and the CPU does not see x. */
static bool then_flush(void)
{
    put_write(&qp, X, LEN);
    put_flush(&qp, X, LEN);
    ring_done(&qp, &qp.scq, 2);
    return !is_all(X, LEN, 0xff);
}

/* WRITE x; READ y. The READ is complete, and the CPU does not see x. */
static bool then_read(void)
{
    put_write(&qp, X, LEN);
    put_op(&qp, QHCA_WR_RDMA_READ, Y, SRC, LEN);
    ring_done(&qp, &qp.scq, 2);
    return !is_all(X, LEN, 0xff);
}

/* READ into y. It is complete, and the CPU does not see its data. */
static bool read_data(void)
{
    put_op(&qp, QHCA_WR_RDMA_READ, Y, SRC, LEN);
    ring_done(&qp, &qp.scq, 1);
    return !is_all(Y, LEN, 0xff);
}

/* READ into y, without a CQE. The CPU sees the last byte, and then not all. */
static bool read_last(void)
{
    struct rc_wr wr = rc_wr(&qp, QHCA_WR_RDMA_READ, Y, LEN);

    wr.flags = 0;
    rc_aim(&wr, &node, SRC);
    rc_put(&qp, &wr);
    ring_until(&qp, Y + LEN - 1);
    return !is_all(Y, LEN, 0xff);
}

/* READ x while the CPU writes x: the start is new, the end is old. */
static bool read_torn(void)
{
    put_op(&qp, QHCA_WR_RDMA_READ, Y, X, LEN);
    rc_ring(&qp);
    memset(spot(X), 0xff, LEN);
    ring_done(&qp, &qp.scq, 1);
    return *spot(Y) == 0xff && !spot(Y)[LEN - 1];
}

/* WRITE x; READ x. The READ gets what was there before. */
static bool read_back(void)
{
    put_write(&qp, X, LEN);
    put_op(&qp, QHCA_WR_RDMA_READ, Y, X, LEN);
    ring_done(&qp, &qp.scq, 2);
    return !is_all(Y, LEN, 0xff);
}

/* WRITE x, complete; READ x on another connection gets what was there. */
static bool other_read(void)
{
    put_write(&qp, X, LEN);
    ring_done(&qp, &qp.scq, 1);
    put_op(&qp_two, QHCA_WR_RDMA_READ, Y, X, LEN);
    ring_done(&qp_two, &qp_two.scq, 1);
    return !is_all(Y, LEN, 0xff);
}

/* WRITE x; WRITE x again, of zeroes. In the end the first is there. */
static bool same_place(void)
{
    put_write(&qp, X, LEN);
    put_op(&qp, QHCA_WR_RDMA_WRITE, Y, X + 10, LEN - 20);
    ring_done(&qp, &qp.scq, 2);
    let_pass(1000000, 1000);
    return !is_all(X + 10, LEN - 20, 0) || !is_all(X, 10, 0xff);
}

/* WRITE x, complete; the device executes a command. Later x is written. */
static bool after_command(void)
{
    struct qhca_cmd nop = { .opcode = htole16(QHCA_CMD_NOP) };

    put_write(&qp, X, LEN);
    ring_done(&qp, &qp.scq, 1);
    CHECK_EQ(guest_cmd(g, &nop, NULL), QHCA_OK);
    memset(spot(X), 0, LEN);
    let_pass(1000000, 1000);
    return !is_all(X, LEN, 0);
}

/* ---- the table ---- */

static const struct litmus {
    const char *name;
    bool (*odd)(void);
    bool legal;
} litmus[] = {
    { "WRITE x; WRITE y: y, not x", flag, true },
    { "WRITE: the last byte, not all", last_byte, true },
    { "WRITE of a word: a part", torn, true },
    { "WRITE complete: not there", complete, true },
    { "WRITE x complete; SEND elsewhere received: not x", then_other_send,
      true },
    { "READ: the last byte, not all", read_last, true },
    { "READ x, being written: its start, not its end", read_torn, true },
    { "ATOMIC WRITE: a part", torn_store, false },
    { "WRITE x; SEND received: not x", then_send, false },
    { "WRITE x; WRITE with imm received: not x", then_imm, false },
    { "WRITE x; FETCH AND ADD y: y, not x", then_add, false },
    { "WRITE x; ATOMIC WRITE y: y, not x", then_store, false },
    { "WRITE x; FLUSH complete: not x", then_flush, false },
    { "WRITE x; READ complete: not x", then_read, false },
    { "READ complete: not its data", read_data, false },
    { "WRITE x; READ x: not x", read_back, false },
    { "WRITE x complete; READ x elsewhere: not x", other_read, false },
    { "WRITE x; WRITE x: the first one stays", same_place, false },
    { "WRITE x; a command is done: x comes later", after_command, false },
};

static bool run_once(const struct litmus *t)
{
    bool odd;

    litmus_clear();
    odd = t->odd();
    let_pass(1000000, 1000);
    drain_cq(&qp.scq);
    drain_cq(&peer.rcq);
    drain_cq(&qp_two.scq);
    drain_cq(&peer_two.rcq);
    return odd;
}

/* Returns how often test @t has its odd outcome with @rule. */
static unsigned run(const struct litmus *t, const char *rule)
{
    unsigned odd = 0;
    char text[100];

    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        snprintf(text, sizeof(text), "seed=%u\n%s", seed, rule);
        guest_set_faults(g, text);
        odd += run_once(t);
    }
    return odd;
}

static void run_all(bool frames)
{
    start_litmus(frames);
    for (unsigned i = 0; i < ARRAY_SIZE(litmus); i++) {
        const struct litmus *t = &litmus[i];
        unsigned n = run(t, "port order=adversarial");

        tap_note("%-50s %s: %u of %u", t->name, t->legal ? "legal" : "never",
                 n, SEEDS);
        CHECK(t->legal ? n && n < SEEDS : !n);
    }
}

static void test_across(void)
{
    run_all(false);
}

static void test_frames(void)
{
    run_all(true);
}

/* Without a rule, nothing is odd. */
static void test_in_order(void)
{
    for (unsigned frames = 0; frames < 2; frames++) {
        start_litmus(frames);
        for (unsigned i = 0; i < ARRAY_SIZE(litmus); i++) {
            CHECK(!run_once(&litmus[i]));
        }
    }
}

/* Pieces end at multiples of the grain, so words are whole. */
static void test_grain(void)
{
    const struct litmus words = { .odd = torn }, lines = { .odd = last_byte };

    start_litmus(false);
    CHECK_EQ(run(&words, "port order=adversarial grain=8"), 0);
    CHECK(run(&lines, "port order=adversarial grain=8"));
    CHECK(run(&lines, "port order=adversarial grain=64"));
    CHECK_EQ(run(&lines, "port order=adversarial grain=256"), 0);
}

static const struct test tests[] = {
    { "packets that cross", test_across },
    { "frames", test_frames },
    { "without a rule", test_in_order },
    { "the grain", test_grain },
};

TEST_MAIN(tests)
