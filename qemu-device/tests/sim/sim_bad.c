/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the simulator's bad WRs, to send and to receive.
 */
#include "sim.h"

void sim_plan_bad(struct sim *s, struct sim_qp *a, struct sim_wr *w)
{
    uint64_t end = a->peer->q.n->mr.addr + SIM_REGION;

    w->bad = true;
    switch (sim_rand(s, 4)) {
    case 0:
        w->wr.opcode = 0x7f;
        break;
    case 3:
        if (w->wr.opcode == QHCA_WR_RDMA_WRITE && w->len) {
            w->wr.raddr = end - sim_rand(s, w->len);    /* past the end */
            break;
        }
        /* fall through */
    case 1:
        if (w->len) {
            w->wr.sge[0].lkey ^= 0x80;
            w->wr.sge[0].length = w->len;
            w->wr.num_sge = 1;
            break;
        }
        /* fall through */
    default:
        w->wr.opcode = QHCA_WR_RDMA_READ;
        w->wr.rkey ^= 0x80;
        w->wr.num_sge = 1;
        w->len = 8;
        w->local = sim_alloc(s, a->q.n, 8);
        w->wr.sge[0] = (struct qhca_seg_le) { w->local, 8, a->q.n->mr.key };
        break;
    }
}

/* ---- receive WQEs ---- */

bool sim_bad_recv(struct sim *s)
{
    return sim_errs(s->kind) && !sim_rand(s, 40);
}

/* For an SRQ it is not known beforehand which WR @w gets. */
void sim_plan_bad_recv(struct sim *s, struct sim_qp *a, struct sim_qp *b,
                       struct sim_wr *w)
{
    bool shared = sim_shares_rq(b) && sim_errs(s->kind);

    w->refused = !sim_shares_rq(b) && sim_bad_recv(s);
    if (shared || w->refused) {
        a->may_fail = b->may_fail = true;
    }
}

void sim_unreliable_plan_bad(struct sim *s, struct sim_qp *b)
{
    for (unsigned i = 0; i < b->num_rr; i++) {
        b->rr_bad[i] = sim_bad_recv(s);
        b->may_fail = b->may_fail || b->rr_bad[i];
    }
}

void sim_judge_bad_recv(struct sim *s, bool bad, const struct qhca_cqe *c)
{
    if (bad && c->status == QHCA_WC_LOC_QP_OP_ERR) {
        s->saw[SIM_SAW_BAD_RECV]++;
    } else if (bad ? c->status != QHCA_WC_WR_FLUSH_ERR :
                     c->status == QHCA_WC_LOC_QP_OP_ERR) {
        sim_fail(s, "receive WQE of WR 0x%llx %s, status %u",
                 (unsigned long long)le64toh(c->wr_id), bad ? "bad" : "good",
                 c->status);
    }
}

static bool is_zero(const struct sim_qp *q, uint64_t addr, uint32_t len)
{
    const uint8_t *p = guest_ptr(q->q.n->g, addr, len);
    uint32_t i = 0;

    while (i < len && !p[i]) {
        i++;
    }
    return i == len;
}

void sim_check_refused(struct sim *s, struct sim_qp *q, unsigned i)
{
    const struct sim_wr *w = &q->wr[i];

    /* A WRITE has written all but its last packet by then. */
    if (w->refused && w->wr.opcode != QHCA_WR_RDMA_WRITE_WITH_IMM &&
        !is_zero(q->peer, w->remote, w->len)) {
        sim_fail(s, "SEND %u was refused, but has left data", i);
    }
}
