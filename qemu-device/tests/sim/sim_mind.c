/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca simulator: requesters that change their mind. Before the first WR of its
 * plan a QP sends another request, which meets an absent page, or finds no
 * receive WR; then it goes through RESET and begins again with the same PSN. If
 * it is of XRC, that request may be for an SRQ that no other QP uses.
 */
#include "sim.h"

#define ROOM    64u
#define LEN     8u
#define WAIT_NS 500000u         /* long enough for a page fault */

void sim_mind_setup(struct sim *s, unsigned i)
{
    struct node *n = &s->node[i];
    struct gsrq *q = &s->other[i];
    struct qhca_seg_le sge = { n->mr.addr, ROOM, n->mr.key };

    /* Page faults get no answer until the plan begins. */
    s->fickle = s->has & SIM_HAS(MIND);
    if (s->fickle) {
        *q = srq_create_xrc(n, n->pdn, 1, 1, s->xrcdn[i]);
        srq_put(q, 1, 1, &sge);
        srq_ring(q);
    }
}

/* Whether the request finds room in the first receive WR of the plan. */
static bool fits(const struct sim_qp *a, const struct sim_qp *b)
{
    const struct sim_wr *w = &a->wr[b->taker[0]];

    return sim_shares_rq(b) || !b->num_rr ||
           (w->wr.opcode != QHCA_WR_RDMA_WRITE_WITH_IMM && w->len >= LEN);
}

static void change(struct sim *s, struct sim_qp *a, struct sim_qp *b)
{
    static const uint8_t opcodes[] = {
        QHCA_WR_SEND, QHCA_WR_SEND_WITH_IMM, QHCA_WR_RDMA_WRITE_WITH_IMM,
        QHCA_WR_RDMA_WRITE,
    };
    unsigned node = (unsigned)(b->q.n - s->node);
    struct qhca_page_fault f;
    struct rc_wr wr = rc_wr(&a->q, opcodes[sim_rand(s, 4)], 0, 0);

    wr.flags |= QHCA_WQE_INLINE;
    wr.inline_data = "a change";
    wr.inline_len = LEN;
    rc_aim(&wr, b->q.n, 0);
    if (b->q.o.type == QHCA_QPT_XRC_TGT) {
        wr.srqn = sim_rand(s, 2) ? s->other[node].srqn :
                                   s->xsrq[node].q.srqn;
    }
    sim_post_recv(s, b, sim_rand(s, 4));
    rc_post(&a->q, &wr);
    net_run(s->net, WAIT_NS);
    s->saw[SIM_SAW_CHANGE] += odp_fault(b->q.n->g, b->q.qpn,
                                        QHCA_PAGE_REQUEST, &f);
    CHECK_EQ(rc_set_state(&a->q, QHCA_QPS_RESET), QHCA_OK);
    net_clear(s->net);          /* what comes later would be executed */
    rc_bring_up(&a->q, QHCA_QPS_RTS);
}

void sim_mind_change(struct sim *s)
{
    void (*answers)(struct net *) = s->net->on_step;

    if (!s->fickle) {
        return;
    }
    sim_stream(s, SIM_STREAM_MIND);
    s->net->on_step = NULL;
    for (unsigned i = 0; i < s->num_qps; i += 2) {
        struct sim_qp *a = &s->qp[i], *b = a + 1;

        if (vhca_qp_is(vhca_qp_get(a->q.n->g->e, a->q.qpn), VHCA_RELIABLE) &&
            fits(a, b) && sim_rand(s, 2)) {
            change(s, a, b);
        }
    }
    s->net->on_step = answers;
}

/*
 * A QP that fails before it gets another request flushes what it keeps for the
 * one that waits.
 */
static bool may_be_flushed(const struct sim *s, unsigned i)
{
    unsigned k = 0;

    while (k < s->num_qps &&
           (s->qp[k].q.n != &s->node[i] || !s->qp[k].may_fail ||
            s->qp[k].q.o.type != QHCA_QPT_XRC_TGT)) {
        k++;
    }
    return k < s->num_qps;
}

void sim_mind_check(struct sim *s, unsigned i)
{
    struct gsrq *q = &s->other[i];
    struct qhca_srqc c;
    struct qhca_cqe cqe;
    uint32_t left;

    if (!s->fickle) {
        return;
    }
    left = !may_be_flushed(s, i) || !cq_peek(&q->cq, &cqe);
    if (!left) {
        rc_expect(&q->cq, 1, QHCA_WC_WR_FLUSH_ERR);
    }
    CHECK_EQ(srq_query(q, &c), QHCA_OK);
    if (le32toh(c.held) || le32toh(c.pi) - le32toh(c.ci) != left) {
        sim_fail(s, "the other SRQ has %u WRs, %u taken",
                 le32toh(c.pi) - le32toh(c.ci), le32toh(c.held));
    }
    rc_expect_none(&q->cq);
    CHECK_EQ(srq_destroy(q), QHCA_OK);
    CHECK_EQ(guest_cmd_obj(s->node[i].g, QHCA_CMD_DESTROY_CQ, q->cq.cqn),
             QHCA_OK);
}
