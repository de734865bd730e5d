/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>

#include "litmus.h"

#define STEP_NS 1000u
#define SEEDS   400u

struct rc_qp qp_two, peer_two;

uint8_t *spot(uint64_t off)
{
    return guest_ptr(g, node.mr.addr + off, LEN);
}

bool is_all(uint64_t off, size_t len, uint8_t value)
{
    const uint8_t *p = spot(off);

    for (size_t i = 0; i < len; i++) {
        if (p[i] != value) {
            return false;
        }
    }
    return true;
}

void litmus_clear(void)
{
    memset(spot(SRC), 0xff, LEN);
    memset(spot(X), 0, LEN);
    memset(spot(Y), 0, LEN);
    memset(spot(Z), 0, LEN);
}

void put_op(struct rc_qp *q, uint8_t opcode, uint64_t from, uint64_t to,
            uint32_t len)
{
    struct rc_wr wr = rc_wr(q, opcode, from, len);

    rc_aim(&wr, &node, to);
    rc_put(q, &wr);
}

void put_write(struct rc_qp *q, uint64_t to, uint32_t len)
{
    put_op(q, QHCA_WR_RDMA_WRITE, SRC, to, len);
}

void pass_time(void)
{
    let_pass(STEP_NS, 1000);
}

void ring_done(struct rc_qp *q, struct gcq *cq, unsigned n)
{
    struct qhca_cqe c;

    rc_ring(q);
    for (unsigned i = 0; i < 100000 && n; i++) {
        if (cq_poll(cq, &c)) {
            CHECK_EQ(c.status, QHCA_WC_SUCCESS);
            n--;
        } else {
            pass_time();
        }
    }
    CHECK_EQ(n, 0);
}

void drain_cq(struct gcq *cq)
{
    struct qhca_cqe c;

    while (cq_poll(cq, &c)) {
        CHECK_EQ(c.status, QHCA_WC_SUCCESS);
    }
}

void start_litmus(bool frames)
{
    struct rc_opts o = RC_OPTS;

    start_limited(0, 0, &o);
    g->e->cfg.frames = frames;
    qp_two = rc_create(&node, &o);
    peer_two = rc_create(&node, &o);
    rc_connect(&qp_two, &peer_two);
}

void ring_until(struct rc_qp *q, uint64_t off)
{
    rc_ring(q);
    for (unsigned i = 0; i < 1000 && !*spot(off); i++) {
        pass_time();
    }
    CHECK(*spot(off));
}

bool seen_in_part(void)
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

unsigned litmus_run(const struct litmus *t, const char *rule)
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

void litmus_all(const struct litmus *t, size_t n, bool frames)
{
    start_litmus(frames);
    for (; n > 0; t++, n--) {
        unsigned odd = litmus_run(t, "port order=adversarial");

        tap_note("%-54s %s: %u of %u", t->name, t->legal ? "legal" : "never",
                 odd, SEEDS);
        CHECK(t->legal ? odd && odd < SEEDS : !odd);
    }
}

void litmus_in_order(const struct litmus *t, size_t n)
{
    for (unsigned frames = 0; frames < 2; frames++) {
        start_litmus(frames);
        for (size_t i = 0; i < n; i++) {
            CHECK(!run_once(&t[i]));
        }
    }
}
