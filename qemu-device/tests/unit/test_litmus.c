/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Litmus tests of WRITEs and messages: what a CPU may see of their data. */
#include "harness/litmus.h"

/* Each returns whether it has seen the odd outcome. */

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

/* WRITE x of an aligned word. The CPU sees a part of it. */
static bool torn(void)
{
    put_write(&qp, X, 8);
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

/* SEND; WRITE y. The CPU sees the first byte of y, and then not all of it. */
static bool send_write(void)
{
    rc_recv(&peer, 1, X, LEN);
    put_op(&qp, QHCA_WR_SEND, SRC, 0, LEN);
    put_write(&qp, Y, LEN);
    ring_until(&qp, Y);
    return !is_all(Y, LEN, 0xff);
}

static void put_flush(struct rc_qp *q, uint64_t off, uint32_t len)
{
    struct rc_wr wr = rc_wr(q, QHCA_WR_FLUSH, 0, 0);

    wr.num_sge = 0;
    wr.flush_type = QHCA_FLUSH_GLOBAL;
    wr.flush_len = len;
    rc_aim(&wr, &node, off);
    rc_put(q, &wr);
}

/* WRITE x; FLUSH x. The FLUSH is complete, and the CPU does not see x. */
static bool then_flush(void)
{
    put_write(&qp, X, LEN);
    put_flush(&qp, X, LEN);
    ring_done(&qp, &qp.scq, 2);
    return !is_all(X, LEN, 0xff);
}

/* WRITE x, complete; its receiver sends x on. That is not what was written. */
static bool forward(void)
{
    rc_recv(&peer_two, 1, Y, LEN);
    put_write(&qp, X, LEN);
    ring_done(&qp, &qp.scq, 1);
    put_op(&qp_two, QHCA_WR_SEND, X, 0, LEN);
    ring_done(&qp_two, &peer_two.rcq, 1);
    return !is_all(Y, LEN, 0xff);
}

/* WRITE x, complete; a WRITE of zeroes to x elsewhere, complete. Ones stay. */
static bool other_write(void)
{
    put_write(&qp, X, LEN);
    ring_done(&qp, &qp.scq, 1);
    put_op(&qp_two, QHCA_WR_RDMA_WRITE, Y, X, LEN);
    ring_done(&qp_two, &qp_two.scq, 1);
    let_pass(1000000, 1000);
    return !is_all(X, LEN, 0);
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

static const struct litmus litmus[] = {
    { "WRITE x; WRITE y: y, not x", flag, true },
    { "WRITE: the last byte, not all", last_byte, true },
    { "WRITE of a word: a part", torn, true },
    { "WRITE complete: not there", complete, true },
    { "WRITE x complete; SEND elsewhere received: not x", then_other_send,
      true },
    { "SEND; WRITE y: its first byte, not all", send_write, true },
    { "WRITE x; SEND received: not x", then_send, false },
    { "WRITE x; WRITE with imm received: not x", then_imm, false },
    { "WRITE x; FLUSH complete: not x", then_flush, false },
    { "WRITE x complete; SEND of x from there: not x", forward, false },
    { "WRITE x complete; WRITE x elsewhere: the first stays", other_write,
      false },
    { "WRITE x; WRITE x: the first one stays", same_place, false },
    { "WRITE x; a command is done: x comes later", after_command, false },
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

/* Pieces end at multiples of the grain, so words are whole. */
static void test_grain(void)
{
    const struct litmus words = { .odd = torn }, lines = { .odd = last_byte };

    start_litmus(false);
    CHECK_EQ(litmus_run(&words, "port order=adversarial grain=8"), 0);
    CHECK(litmus_run(&lines, "port order=adversarial grain=8"));
    CHECK(litmus_run(&lines, "port order=adversarial grain=64"));
    CHECK_EQ(litmus_run(&lines, "port order=adversarial grain=256"), 0);
}

static const struct test tests[] = {
    { "packets that cross", test_across },
    { "frames", test_frames },
    { "without a rule", test_in_order },
    { "the grain", test_grain },
};

TEST_MAIN(tests)
