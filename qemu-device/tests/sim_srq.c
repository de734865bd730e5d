/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the simulator's shared receive queues: one per node, that
 * QPs of different pairs receive from. Which WR a message gets cannot be
 * planned; what counts is that each WR goes to one message, and that none gets
 * lost: in the end each has completed or is still in the SRQ, whatever became
 * of the QPs.
 */
#include "sim.h"

/* Room for any message of a plan. */
#define ROOM    (16u * 4096)

static struct sim_srq *srq_of(struct sim *s, const struct node *n)
{
    return &s->srq[n - s->node];
}

void sim_srq_create(struct sim *s, struct node *n)
{
    struct sim_srq *q = srq_of(s, n);

    memset(q, 0, sizeof(*q));
    q->q = srq_create(n, n->pdn, 1 + sim_rand(s, 4), 3);
    for (unsigned i = 0; i < 1u << q->q.log; i++) {
        q->addr[i] = sim_alloc(s, n, ROOM);
    }
}

/* ---- posting ---- */

void sim_srq_post(struct sim *s, struct sim_qp *qp, unsigned max)
{
    struct sim_srq *q = srq_of(s, qp->q.n);
    uint32_t key = qp->q.n->mr.key;
    bool any = false;

    for (unsigned i = 0; i < 1u << q->q.log && max > 0; i++) {
        uint32_t cut = sim_rand(s, ROOM);
        struct qhca_seg_le sge[3] = {
            { q->addr[i], cut, key },
            { 0, 0, 0 },
            { q->addr[i] + cut, ROOM - cut, key },
        };

        if (q->id[i]) {
            continue;
        }
        q->id[i] = ++q->last_id << 8 | i;
        q->out++;
        srq_put(&q->q, q->id[i], 3, sge);
        any = true;
        max--;
    }
    if (any) {
        srq_ring(&q->q);
    }
    if (!q->armed && !sim_rand(s, 8)) {
        q->armed = true;
        CHECK_EQ(srq_limit(&q->q, 1 + sim_rand(s, 1u << q->q.log)), 0);
    }
}

bool sim_srq_event(struct sim *s, struct node *n, const struct qhca_eqe *e)
{
    struct sim_srq *q = srq_of(s, n);

    if (e->type != QHCA_EVENT_SRQ_LIMIT_REACHED ||
        le32toh(e->obj) != q->q.srqn || !q->armed) {
        return false;
    }
    q->armed = false;
    return true;
}

/* ---- judging ---- */

/* The WR of a CQE comes back to the program; returns its buffer, 0: bad CQE. */
static uint64_t take_back(struct sim *s, struct sim_qp *qp,
                          const struct qhca_cqe *c)
{
    struct sim_srq *q = srq_of(s, qp->q.n);
    uint64_t id = le64toh(c->wr_id);
    unsigned i = id & 0xff;

    if (i >= 1u << q->q.log || !id || q->id[i] != id ||
        !(le16toh(c->flags) & QHCA_CQE_SRQ)) {
        sim_fail(s, "CQE of WR 0x%llx of the SRQ, which is not out",
                 (unsigned long long)id);
        return 0;
    }
    q->id[i] = 0;
    q->out--;
    return q->addr[i];
}

static void judge_recv(struct sim *s, struct sim_qp *q,
                       const struct qhca_cqe *c)
{
    uint64_t addr = take_back(s, q, c);
    const struct sim_wr *w;

    if (!addr) {
        return;
    }
    if (c->status != QHCA_WC_SUCCESS) {
        if (!q->may_fail) {
            sim_fail(s, "receive WR status %u", c->status);
        }
        return;
    }
    if (q->rr_done == q->num_rr) {
        sim_fail(s, "more messages than were sent");
        return;
    }
    w = &q->peer->wr[q->taker[q->rr_done++]];
    sim_judge_message(s, q, w, c,
                      w->wr.opcode == QHCA_WR_RDMA_WRITE_WITH_IMM ? w->remote :
                                                                    addr);
}

static void plan(struct sim *s, struct sim_qp *a, struct sim_qp *b)
{
    sim_rc.plan(s, a, b);
}

static void judge_send(struct sim *s, struct sim_qp *q,
                       const struct qhca_cqe *c)
{
    sim_rc.judge_send(s, q, c);
}

static bool complete(const struct sim_qp *q)
{
    return sim_rc.complete(q);
}

/* A QP in ERR or gone leaves its messages' WRs to others. */
const struct sim_model sim_srq = {
    .plan = plan,
    .judge_send = judge_send,
    .judge_recv = judge_recv,
    .complete = complete,
};

void sim_srq_check(struct sim *s, struct node *n)
{
    struct sim_srq *q = srq_of(s, n);
    struct qhca_srqc c;

    /* CQEs of QPs that are gone: nobody has polled them. */
    for (unsigned i = 0; i < s->num_qps; i++) {
        struct sim_qp *qp = &s->qp[i];
        struct qhca_cqe cqe;

        while (qp->q.n == n && qp->q.o.srqn && cq_poll(&qp->q.rcq, &cqe)) {
            (void)take_back(s, qp, &cqe);
        }
    }
    CHECK_EQ(srq_query(&q->q, &c), 0);
    if (le32toh(c.pi) - le32toh(c.ci) + le32toh(c.returned) != q->out) {
        sim_fail(s, "SRQ: %u WRs out, %u to be read, %u given back", q->out,
                 le32toh(c.pi) - le32toh(c.ci), le32toh(c.returned));
    }
    CHECK_EQ(srq_destroy(&q->q), 0);
}
