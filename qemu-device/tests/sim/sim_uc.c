/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: what the simulator expects of UC. A WR succeeds whatever
 * happens to its message. The peer receives a message unchanged or not at all,
 * never twice and never out of order, and loses no receive WR.
 */
#include "harness/debug.h"
#include "sim.h"

/* ---- planning ---- */

/* A few packets, or more than fit the FIFO while the network is blocked. */
static uint32_t max_len(const struct sim *s, const struct sim_qp *q)
{
    bool many = s->kind == SIM_DRAIN_BAD && q->q.o.mtu == 1;

    return (many ? 120 : 4) * (128u << q->q.o.mtu);
}

static void plan_wr(struct sim *s, struct sim_qp *a, struct sim_qp *b,
                    unsigned i)
{
    static const uint8_t ops[] = {
        QHCA_WR_SEND, QHCA_WR_SEND, QHCA_WR_SEND_WITH_IMM, QHCA_WR_RDMA_WRITE,
        QHCA_WR_RDMA_WRITE_WITH_IMM,
    };
    struct sim_wr *w = &a->wr[i];

    w->wr.opcode = ops[sim_rand(s, ARRAY_SIZE(ops))];
    w->wr.wr_id = (uint64_t)a->q.qpn << 32 | i;
    w->wr.imm = (uint32_t)test_random(&s->rng);
    w->wr.flags = sim_rand(s, 4) ? QHCA_WQE_SIGNALED : 0;
    w->wr.rkey = b->q.n->mr.key;
    w->seed = s->seed * 31 + i * 7 + a->q.qpn;
    w->len = sim_rand(s, sim_rand(s, 2) ? 20 : max_len(s, a) + 1);
    w->local = sim_alloc(s, a->q.n, w->len);
    w->remote = sim_alloc(s, b->q.n, w->len);
    w->wr.raddr = w->remote;
    guest_fill(a->q.n->g, w->local, w->len, w->seed);
    sim_plan_sges(s, w, a->key);
    if (sim_errs(s->kind) && !sim_rand(s, 10)) {
        w->bad = true;
        w->wr.opcode = QHCA_WR_RDMA_READ;
    }
}

static void plan(struct sim *s, struct sim_qp *a, struct sim_qp *b)
{
    a->key = s->kind == SIM_DRAIN_BAD ? sim_second_key(s, a) : a->q.n->mr.key;
    for (unsigned i = 0; i < a->num_wr; i++) {
        plan_wr(s, a, b, i);
    }
    b->num_rr = a->num_wr;
    for (unsigned i = 0; i < b->num_rr; i++) {
        b->rr_room[i] = sim_rand(s, 8) ? max_len(s, b) :
                                         sim_rand(s, max_len(s, b));
        b->rr_addr[i] = sim_alloc(s, b->q.n, b->rr_room[i]);
    }
    sim_unreliable_plan_bad(s, b);
}

void sim_unreliable_put_recv(struct sim *s, struct sim_qp *q)
{
    unsigned i = q->rr_posted++;
    uint32_t cut = sim_rand(s, q->rr_room[i] + 1);
    struct qhca_seg_le sge[QHCA_MAX_RECV_SGE] = {
        { q->rr_addr[i], cut, q->q.n->mr.key },
        { q->rr_addr[i] + cut, q->rr_room[i] - cut, q->q.n->mr.key },
    };

    rc_recv_raw(&q->q, i, q->rr_bad[i] ? SIM_BAD_SGES : 2, sge);
}

/* ---- judging ---- */

/* Whether the WR must be flushed: it was posted while the QP was in SQE. */
static bool in_sqe(const struct sim_qp *q, unsigned i)
{
    return q->sqe || q->failed || i < q->flushed;
}

static bool may_succeed(const struct sim_qp *q, unsigned i, bool signaled)
{
    return !q->wr[i].bad && !in_sqe(q, i) &&
           !(q->wr[i].wr.flags & QHCA_WQE_SIGNALED) == !signaled;
}

void sim_unreliable_judge_send(struct sim *s, struct sim_qp *q,
                               const struct qhca_cqe *c)
{
    bool ok;
    unsigned i;

    if (!sim_send_in_order(s, q, c, &i)) {
        return;
    }
    for (; q->done < i; q->done++) {
        if (!may_succeed(q, q->done, false)) {
            sim_fail(s, "no CQE of WR %u", q->done);
        }
    }
    q->done = q->freed = i + 1;
    switch (c->status) {
    case QHCA_WC_SUCCESS:
        ok = may_succeed(q, i, true);
        break;
    case QHCA_WC_WR_FLUSH_ERR:
        ok = in_sqe(q, i) || q->may_fail;
        q->failed = q->failed || !in_sqe(q, i);
        break;
    default:
        ok = (q->wr[i].bad || q->wr[i].doomed) && !in_sqe(q, i);
        q->sqe = true;
        q->held = q->drained_owed = false;      /* the error has ended SQD */
        break;
    }
    if (!ok) {
        sim_fail(s, "WR %u status %u", i, c->status);
    }
}

/* Whether receive WR @rr of @q can have completed with the peer's WR @w. */
static bool is_message(struct sim_qp *q, unsigned rr, const struct sim_wr *w,
                       const struct qhca_cqe *c)
{
    bool imm = w->wr.opcode != QHCA_WR_SEND;
    bool write = w->wr.opcode == QHCA_WR_RDMA_WRITE_WITH_IMM;

    if (w->bad || !sim_takes_rr(w->wr.opcode) ||
        le32toh(c->byte_len) != w->len || (imm && c->imm != w->wr.imm) ||
        imm != !!(le16toh(c->flags) & QHCA_CQE_IMM) ||
        c->opcode != (write ? QHCA_CQE_RECV_RDMA_WITH_IMM : QHCA_CQE_RECV) ||
        (!write && w->len > q->rr_room[rr])) {
        return false;
    }
    return guest_has_pattern(q->q.n->g, write ? w->remote : q->rr_addr[rr],
                             w->len, w->seed);
}

bool sim_unreliable_received(struct sim *s, struct sim_qp *q,
                             const struct qhca_cqe *c, unsigned *i)
{
    if (!sim_recv_in_order(s, q, c, i)) {
        return false;
    }
    q->rr_done++;
    sim_judge_bad_recv(s, q->rr_bad[*i], c);
    if (c->status != QHCA_WC_SUCCESS && !q->rr_bad[*i] &&
        (c->status != QHCA_WC_WR_FLUSH_ERR || !q->may_fail)) {
        sim_fail(s, "receive WR %u status %u", *i, c->status);
    }
    return c->status == QHCA_WC_SUCCESS;
}

static void judge_recv(struct sim *s, struct sim_qp *q,
                       const struct qhca_cqe *c)
{
    unsigned i, m;

    if (!sim_unreliable_received(s, q, c, &i)) {
        return;
    }
    /* If several look alike, choosing the first leaves most to later CQEs. */
    for (m = q->received; m < q->peer->posted; m++) {
        if (is_message(q, i, &q->peer->wr[m], c)) {
            q->received = m + 1;
            return;
        }
    }
    sim_fail(s, "UC receive WR %u has no message sent after WR %u", i,
             q->received);
}

bool sim_unreliable_complete(const struct sim_qp *q)
{
    return q->failed || (q->done == q->num_wr && !q->held && !q->sqe);
}

/* Whether each byte is 0 or, if @written, of the pattern, up to @len. */
static bool is_partly(struct sim_qp *q, uint64_t addr, uint32_t len,
                      unsigned seed, bool written)
{
    const uint8_t *p = guest_ptr(q->q.n->g, addr, len + 1);

    for (uint32_t i = 0; i < len; i++) {
        if (p[i] && !(written && p[i] == guest_pattern(i, seed))) {
            return false;
        }
    }
    return !p[len];
}

static void check_memory(struct sim *s, struct sim_qp *q)
{
    for (unsigned i = 0; i < q->peer->num_wr; i++) {
        const struct sim_wr *w = &q->peer->wr[i];
        bool write = w->wr.opcode == QHCA_WR_RDMA_WRITE ||
                     w->wr.opcode == QHCA_WR_RDMA_WRITE_WITH_IMM;

        if (!is_partly(q, w->remote, w->len, w->seed, write && !w->bad)) {
            sim_fail(s, "memory that UC WR %u did not write", i);
        }
    }
    for (unsigned i = 0; i < q->num_rr; i++) {
        if (*(uint8_t *)guest_ptr(q->q.n->g, q->rr_addr[i] + q->rr_room[i],
                                  1)) {
            sim_fail(s, "memory behind UC receive WR %u", i);
        }
    }
}

const struct sim_model sim_uc = {
    .plan = plan,
    .put_recv = sim_unreliable_put_recv,
    .judge_send = sim_unreliable_judge_send,
    .judge_recv = judge_recv,
    .complete = sim_unreliable_complete,
    .check_memory = check_memory,
};
