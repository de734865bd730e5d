/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the simulator's FLUSHes and ATOMIC WRITEs.
 *
 * A FLUSH needs no model of its own: when it is complete, the writes before it
 * are complete as well, and their data is checked.
 */
#include "sim.h"

/* Allocates an aligned word with an unused byte after it. */
static uint64_t alloc_word(struct sim *s, struct node *n)
{
    return (sim_alloc(s, n, 8 + 7) + 7) & ~7ull;
}

void sim_place_setup(struct sim *s, struct sim_qp *a, struct sim_qp *b)
{
    a->store_word = alloc_word(s, b->q.n);
}

void sim_plan_flush(struct sim *s, struct sim_qp *a, unsigned i)
{
    struct sim_wr *w = &a->wr[i], *before = i ? &a->wr[i - 1] : NULL;

    w->memop = true;
    w->wr.num_sge = 0;
    w->wr.flush_type = QHCA_FLUSH_GLOBAL;
    w->wr.flush_level = (uint8_t)sim_rand(s, 2);
    w->wr.flush_len = w->len;
    if (before && before->wr.opcode == QHCA_WR_RDMA_WRITE && !before->bad) {
        w->wr.raddr = before->remote;
        w->wr.flush_len = before->len;
    }
    w->len = 0;
}

void sim_plan_store(struct sim *s, struct sim_qp *a, unsigned i)
{
    struct sim_wr *w = &a->wr[i];

    w->remote = sim_rand(s, 2) ? a->store_word :
                                 alloc_word(s, a->peer->q.n);
}

/* Whether the word has the value of WR @from, or of a later WR before @end. */
static bool written_by(struct sim_qp *q, unsigned from, unsigned end)
{
    uint64_t word = q->wr[from].remote;

    for (unsigned i = from; i < end; i++) {
        const struct sim_wr *w = &q->wr[i];

        if (w->wr.opcode == QHCA_WR_ATOMIC_WRITE && w->remote == word &&
            guest_has_pattern(q->peer->q.n->g, word, 8, w->seed)) {
            return true;
        }
    }
    return false;
}

void sim_judge_store(struct sim *s, struct sim_qp *q, unsigned i)
{
    if (!q->peer->gone && !written_by(q, i, q->posted)) {
        sim_fail(s, "ATOMIC WRITE %u is complete, its word is another", i);
    }
}

void sim_check_store(struct sim *s, struct sim_qp *q)
{
    unsigned last = q->num_wr;

    for (unsigned i = 0; i < q->num_wr; i++) {
        const struct sim_wr *w = &q->wr[i];

        if (w->wr.opcode == QHCA_WR_ATOMIC_WRITE && !w->bad &&
            w->remote == q->store_word) {
            last = i;
        }
    }
    if (last < q->num_wr && !q->failed && !q->gone && !q->peer->gone &&
        !q->may_fail && !written_by(q, last, last + 1)) {
        sim_fail(s, "a word holds what it did before ATOMIC WRITE %u", last);
    }
}
