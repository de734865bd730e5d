/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the simulator's shared receive queues: one per node for
 * RC, and one of XRC, that QPs of different pairs receive from. Which WR a
 * message gets is not known beforehand, but each WR gets one message, and no WR
 * is lost: in the end each is complete or still in the SRQ, whatever happened
 * to the QPs.
 */
#include "sim.h"

/* Room for any message of a plan. */
#define ROOM    (16u * 4096)

static struct sim_srq *srq_of(struct sim *s, const struct sim_qp *qp)
{
    unsigned i = (unsigned)(qp->q.n - s->node);

    return qp->q.o.type == QHCA_QPT_XRC_TGT ? &s->xsrq[i] : &s->srq[i];
}

static struct sim_srq new_srq(struct sim *s, struct node *n, struct gsrq q)
{
    struct sim_srq srq = { .q = q };

    for (unsigned i = 0; i < 1u << q.log; i++) {
        srq.addr[i] = sim_alloc(s, n, ROOM);
    }
    return srq;
}

void sim_srq_create(struct sim *s, struct node *n)
{
    unsigned i = (unsigned)(n - s->node);

    s->srq[i] = new_srq(s, n, srq_create(n, n->pdn, 1 + sim_rand(s, 4), 3));
    s->xrcdn[i] = xrcd_create(n->g);
    s->xsrq[i] = new_srq(s, n, srq_create_xrc(n, n->pdn, 1 + sim_rand(s, 4), 3,
                                              s->xrcdn[i]));
}

/* ---- posting ---- */

void sim_srq_post(struct sim *s, struct sim_qp *qp, unsigned max)
{
    struct sim_srq *q = srq_of(s, qp);
    uint32_t key = qp->q.n->mr.key;
    bool any = false;

    if (sim_node_gone(s, qp->q.n)) {
        return;
    }
    for (unsigned i = 0; i < 1u << q->q.log && max > 0; i++) {
        uint32_t cut = sim_rand(s, ROOM);
        struct qhca_seg_le sge[QHCA_MAX_RECV_SGE] = {
            { q->addr[i], cut, key },
            { 0, 0, 0 },
            { q->addr[i] + cut, ROOM - cut, key },
        };

        if (q->id[i]) {
            continue;
        }
        q->id[i] = ++q->last_id << 8 | i;
        q->out++;
        q->bad[i] = sim_bad_recv(s);
        srq_put(&q->q, q->id[i], q->bad[i] ? SIM_BAD_SGES : 3, sge);
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

static bool limit_due(struct sim_srq *q, const struct qhca_eqe *e)
{
    if (e->type != QHCA_EVENT_SRQ_LIMIT_REACHED ||
        le32toh(e->obj) != q->q.srqn || !q->armed) {
        return false;
    }
    q->armed = false;
    return true;
}

bool sim_srq_event(struct sim *s, struct node *n, const struct qhca_eqe *e)
{
    return limit_due(&s->srq[n - s->node], e) ||
           limit_due(&s->xsrq[n - s->node], e);
}

/* ---- judging ---- */

/* Marks the WR of a CQE as complete; returns its buffer, 0: bad CQE. */
static uint64_t take_back(struct sim *s, struct sim_qp *qp,
                          const struct qhca_cqe *c)
{
    struct sim_srq *q = srq_of(s, qp);
    uint64_t id = le64toh(c->wr_id);
    unsigned i = id & 0xff;

    if (i >= 1u << q->q.log || !id || q->id[i] != id ||
        !(le16toh(c->flags) & QHCA_CQE_SRQ)) {
        sim_fail(s, "CQE of WR 0x%llx of the SRQ, which is not out",
                 (unsigned long long)id);
        return 0;
    }
    sim_judge_bad_recv(s, q->bad[i], c);
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

/* A QP in ERR or destroyed leaves its WRs to other QPs. */
const struct sim_model sim_srq = {
    .plan = plan,
    .judge_send = judge_send,
    .judge_recv = judge_recv,
    .complete = complete,
};

static struct sim_qp *find_qp(struct sim *s, const struct node *n, uint32_t qpn)
{
    for (unsigned i = 0; i < s->num_qps; i++) {
        if (s->qp[i].q.n == n && s->qp[i].q.qpn == qpn) {
            return &s->qp[i];
        }
    }
    return NULL;
}

void sim_xrc_poll(struct sim *s, struct node *n)
{
    struct sim_srq *q = &s->xsrq[n - s->node];
    struct qhca_cqe c;

    while (cq_poll(&q->q.cq, &c)) {
        sim_see_cqe(s, SEEN_CQS - 1, &c);
        struct sim_qp *qp = find_qp(s, n, le32toh(c.qpn));

        if (!qp || qp->q.o.type != QHCA_QPT_XRC_TGT ||
            !(le16toh(c.flags) & QHCA_CQE_XRC) ||
            le32toh(c.srqn) != q->q.srqn) {
            sim_fail(s, "CQE of QP 0x%x, SRQ 0x%x", le32toh(c.qpn),
                     le32toh(c.srqn));
        } else if (qp->gone) {
            (void)take_back(s, qp, &c);
        } else {
            judge_recv(s, qp, &c);
        }
    }
}

static void check_srq(struct sim *s, struct sim_srq *q)
{
    struct qhca_srqc c;

    CHECK_EQ(srq_query(&q->q, &c), 0);
    if (le32toh(c.pi) - le32toh(c.ci) + le32toh(c.held) != q->out) {
        sim_fail(s, "SRQ: %u WRs out, %u to be read, %u taken", q->out,
                 le32toh(c.pi) - le32toh(c.ci), le32toh(c.held));
    }
    CHECK_EQ(srq_destroy(&q->q), 0);
}

void sim_srq_check(struct sim *s, struct node *n)
{
    unsigned node = (unsigned)(n - s->node);

    /* CQEs of QPs that are destroyed or reset have not been polled yet. */
    for (unsigned i = 0; i < s->num_qps; i++) {
        struct sim_qp *qp = &s->qp[i];
        struct qhca_cqe cqe;

        while (qp->q.n == n && qp->q.o.srqn && cq_poll(&qp->q.rcq, &cqe)) {
            (void)take_back(s, qp, &cqe);
        }
    }
    sim_xrc_poll(s, n);
    check_srq(s, &s->srq[node]);
    check_srq(s, &s->xsrq[node]);
    sim_mind_check(s, node);
    CHECK_EQ(guest_cmd_obj(n->g, QHCA_CMD_DESTROY_CQ, s->xsrq[node].q.cq.cqn),
             0);
    CHECK_EQ(guest_cmd_obj(n->g, QHCA_CMD_DEALLOC_XRCD, s->xrcdn[node]), 0);
}
