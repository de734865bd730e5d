/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Litmus tests of READs and atomics: what they get, and what a CPU may see. */
#include "harness/litmus.h"

/* Each returns whether it has seen the odd outcome. */

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

/* READ of an aligned word, which the CPU writes then. It gets a part of it. */
static bool read_word(void)
{
    put_op(&qp, QHCA_WR_RDMA_READ, Y, X, 8);
    rc_ring(&qp);
    memset(spot(X), 0xff, 8);
    ring_done(&qp, &qp.scq, 1);
    return !is_all(Y, 8, 0) && !is_all(Y, 8, 0xff);
}

/* READ into y, complete. The CPU writes y, and later y is written again. */
static bool read_later(void)
{
    put_op(&qp, QHCA_WR_RDMA_READ, Y, SRC, LEN);
    ring_done(&qp, &qp.scq, 1);
    memset(spot(Y), 0, LEN);
    let_pass(1000000, 1000);
    return !is_all(Y, LEN, 0);
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

/* WRITE x; READ y. The READ is complete, and the CPU does not see x. */
static bool then_read(void)
{
    put_write(&qp, X, LEN);
    put_op(&qp, QHCA_WR_RDMA_READ, Y, SRC, LEN);
    ring_done(&qp, &qp.scq, 2);
    return !is_all(X, LEN, 0xff);
}

/*
 * READ y; READ x, while the CPU writes x and then y. The first one gets the new
 * y, and the second one the old x.
 */
static bool read_read(void)
{
    static unsigned start;
    struct rc_wr wr = rc_wr(&qp, QHCA_WR_RDMA_READ, Z, LEN);

    rc_aim(&wr, &node, Y);
    rc_put(&qp, &wr);
    wr = rc_wr(&qp, QHCA_WR_RDMA_READ, Z + 0x1000, LEN);
    rc_aim(&wr, &node, X);
    rc_put(&qp, &wr);
    rc_ring(&qp);
    for (unsigned i = start++ % 30; i > 0; i--) {
        pass_time();
    }
    memset(spot(X), 0xff, LEN);
    pass_time();
    memset(spot(Y), 0xff, LEN);
    ring_done(&qp, &qp.scq, 2);
    return *spot(Z) && !is_all(Z + 0x1000, LEN, 0xff);
}

/* READ x; a moment later, WRITE x. */
static void read_then_write(uint8_t flags)
{
    struct rc_wr wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, SRC, LEN);

    put_op(&qp, QHCA_WR_RDMA_READ, Y, X, LEN);
    rc_ring(&qp);
    pass_time();
    wr.flags |= flags;
    rc_aim(&wr, &node, X);
    rc_put(&qp, &wr);
    ring_done(&qp, &qp.scq, 2);
}

/* The READ gets a part of what is written behind it. */
static bool read_write(void)
{
    read_then_write(0);
    return !is_all(Y, LEN, 0) && !is_all(Y, LEN, 0xff);
}

/* With a fence it gets any of that. */
static bool read_fence_write(void)
{
    read_then_write(QHCA_WQE_FENCE);
    return !is_all(Y, LEN, 0);
}

/* ATOMIC WRITE x. The CPU sees a part of it. */
static bool torn_store(void)
{
    put_op(&qp, QHCA_WR_ATOMIC_WRITE, SRC, X, 8);
    return seen_in_part();
}

/* WRITE x; ATOMIC WRITE y. */
static bool then_store(void)
{
    put_write(&qp, X, LEN);
    put_op(&qp, QHCA_WR_ATOMIC_WRITE, SRC, Y, 8);
    ring_until(&qp, Y);
    return !is_all(X, LEN, 0xff);
}

/* Adds one to a word; what was there before comes to Z. */
static void put_add(uint64_t to)
{
    struct rc_wr wr = rc_wr(&qp, QHCA_WR_ATOMIC_FETCH_AND_ADD, Z, 8);

    wr.swap_add = 1;
    rc_aim(&wr, &node, to);
    rc_put(&qp, &wr);
}

/* WRITE x; FETCH AND ADD y. The CPU sees y, and then not x. */
static bool then_add(void)
{
    put_write(&qp, X, LEN);
    put_add(Y);
    ring_until(&qp, Y);
    return !is_all(X, LEN, 0xff);
}

/* FETCH AND ADD x; READ x. The READ gets what was there before. */
static bool add_read(void)
{
    put_add(X);
    put_op(&qp, QHCA_WR_RDMA_READ, Y, X, 8);
    ring_done(&qp, &qp.scq, 2);
    return *spot(Y) != 1;
}

/* WRITE x; FETCH AND ADD x. It adds to what was there before. */
static bool write_add(void)
{
    put_write(&qp, X, 8);
    put_add(X);
    ring_done(&qp, &qp.scq, 2);
    return !is_all(Z, 8, 0xff) || !is_all(X, 8, 0);
}

/* FETCH AND ADD, complete. The CPU does not see what was there before. */
static bool add_result(void)
{
    memset(spot(X), 0xff, 8);
    put_add(X);
    ring_done(&qp, &qp.scq, 1);
    return !is_all(Z, 8, 0xff);
}

/* ---- the table ---- */

static const struct litmus litmus[] = {
    { "READ: the last byte, not all", read_last, true },
    { "READ x, being written: its start, not its end", read_torn, true },
    { "READ of a word, being written: a part", read_word, true },
    { "READ x; WRITE x: the READ gets a part of it", read_write, true },
    { "ATOMIC WRITE: a part", torn_store, false },
    { "WRITE x; FETCH AND ADD y: y, not x", then_add, false },
    { "WRITE x; ATOMIC WRITE y: y, not x", then_store, false },
    { "WRITE x; READ complete: not x", then_read, false },
    { "READ complete: not its data", read_data, false },
    { "READ complete: its data come later", read_later, false },
    { "WRITE x; READ x: not x", read_back, false },
    { "WRITE x complete; READ x elsewhere: not x", other_read, false },
    { "READ x; WRITE x with a fence: any of it", read_fence_write, false },
    { "READ y; READ x: new y, old x", read_read, false },
    { "FETCH AND ADD x; READ x: before the add", add_read, false },
    { "WRITE x; FETCH AND ADD x: before the WRITE", write_add, false },
    { "FETCH AND ADD complete: not its result", add_result, false },
};

static void test_across(void)
{
    litmus_all(litmus, ARRAY_SIZE(litmus), false);
}

static void test_frames(void)
{
    litmus_all(litmus, ARRAY_SIZE(litmus), true);
}

static void test_in_order(void)
{
    litmus_in_order(litmus, ARRAY_SIZE(litmus));
}

/* Pieces that a READ gets early begin and end at multiples of the grain. */
static void test_grain(void)
{
    const struct litmus words = { .odd = read_word },
                        lines = { .odd = read_torn };

    start_litmus(false);
    CHECK_EQ(litmus_run(&words, "port order=adversarial grain=8"), 0);
    CHECK(litmus_run(&lines, "port order=adversarial grain=8"));
    CHECK_EQ(litmus_run(&lines, "port order=adversarial grain=256"), 0);
}

static const struct test tests[] = {
    { "packets that cross", test_across },
    { "frames", test_frames },
    { "without a rule", test_in_order },
    { "the grain", test_grain },
};

TEST_MAIN(tests)
