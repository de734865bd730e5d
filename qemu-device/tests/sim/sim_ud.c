/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: what the simulator expects of UD. A WR succeeds whatever
 * happens to its message. The peer receives it complete or not at all, as often
 * as the network delivers it, and a message that is dropped uses no receive WR.
 */
#include "harness/debug.h"
#include "sim.h"

#define GRH         40
#define PATH_MTU    4096        /* nodes allow frames of 9000 bytes */

static void plan_wr(struct sim *s, struct sim_qp *a, unsigned i)
{
    struct sim_wr *w = &a->wr[i];

    w->wr.opcode = sim_rand(s, 2) ? QHCA_WR_SEND : QHCA_WR_SEND_WITH_IMM;
    w->wr.wr_id = (uint64_t)a->q.qpn << 32 | i;
    w->wr.imm = (uint32_t)test_random(&s->rng);
    w->wr.flags = sim_rand(s, 4) ? QHCA_WQE_SIGNALED : 0;
    w->wr.av = rc_wr(&a->q, 0, 0, 0).av;
    w->wr.qpn = a->q.peer_qpn;
    w->wr.qkey = a->q.o.qkey;
    w->seed = s->seed * 31 + i * 7 + a->q.qpn;
    w->len = sim_rand(s, sim_rand(s, 2) ? 20 : PATH_MTU + 100);
    w->local = sim_alloc(s, a->q.n, w->len);
    guest_fill(a->q.n->g, w->local, w->len, w->seed);
    sim_plan_sges(s, w, a->q.n->mr.key);
    if (sim_errs(s->kind) && !sim_rand(s, 10)) {
        w->bad = true;
        w->wr.av.port = 2;
    }
}

static void plan(struct sim *s, struct sim_qp *a, struct sim_qp *b)
{
    for (unsigned i = 0; i < a->num_wr; i++) {
        plan_wr(s, a, i);
    }
    b->num_rr = a->num_wr;
    for (unsigned i = 0; i < b->num_rr; i++) {
        b->rr_room[i] = GRH + (sim_rand(s, 8) ? PATH_MTU :
                                                sim_rand(s, PATH_MTU));
        b->rr_addr[i] = sim_alloc(s, b->q.n, b->rr_room[i]);
    }
    sim_unreliable_plan_bad(s, b);
}

/* Whether receive WR @rr of @q can have completed with the peer's WR @w. */
static bool is_message(struct sim_qp *q, unsigned rr, const struct sim_wr *w,
                       const struct qhca_cqe *c)
{
    bool imm = w->wr.opcode == QHCA_WR_SEND_WITH_IMM;

    return !w->bad && w->len <= PATH_MTU &&
           le32toh(c->byte_len) == GRH + w->len &&
           imm == !!(le16toh(c->flags) & QHCA_CQE_IMM) &&
           (!imm || c->imm == w->wr.imm) &&
           guest_has_pattern(q->q.n->g, q->rr_addr[rr] + GRH, w->len, w->seed);
}

static void judge_recv(struct sim *s, struct sim_qp *q,
                       const struct qhca_cqe *c)
{
    unsigned i, m, most = (s->net->dup ? 2 : 1) * (*sim_faults ? 2 : 1);

    if (!sim_unreliable_received(s, q, c, &i)) {
        return;
    }
    q->rr_filled[i] = true;
    if (le32toh(c->src_qp) != q->peer->q.qpn) {
        sim_fail(s, "UD receive WR %u is from QP 0x%x", i, le32toh(c->src_qp));
    }
    for (m = 0; m < q->peer->posted; m++) {
        if (q->copies[m] < most && is_message(q, i, &q->peer->wr[m], c)) {
            q->copies[m]++;
            return;
        }
    }
    sim_fail(s, "UD receive WR %u has a message that was not sent", i);
}

/*
 * No byte after a receive WR, or in one without a message, may be written. One
 * whose message met an absent page has the bytes before that.
 */
static void check_memory(struct sim *s, struct sim_qp *q)
{
    for (unsigned i = 0; i < q->num_rr; i++) {
        const uint8_t *p = guest_ptr(q->q.n->g, q->rr_addr[i],
                                     q->rr_room[i] + 1);
        bool clean = !p[q->rr_room[i]];

        for (uint32_t j = 0; !s->paged && !q->rr_filled[i] &&
                             j < q->rr_room[i]; j++) {
            clean = clean && !p[j];
        }
        if (!clean && !q->gone) {
            sim_fail(s, "memory of UD receive WR %u", i);
        }
    }
}

const struct sim_model sim_ud = {
    .plan = plan,
    .put_recv = sim_unreliable_put_recv,
    .judge_send = sim_unreliable_judge_send,
    .judge_recv = judge_recv,
    .complete = sim_unreliable_complete,
    .check_memory = check_memory,
};
