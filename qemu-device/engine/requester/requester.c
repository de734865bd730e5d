/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: requester, the sending half (IBTA 9.7.2, 9.9.2; of UC
 * 9.8.2, of UD 9.8.3).
 *
 * A WQE is started by copying it and giving it PSNs; from then on it lives in
 * qp->req.swr until it completes. One cursor (snd_psn, snd_wqe) walks over the
 * started WRs; going back N is moving the cursor to una_psn. A UC requester is
 * one whose packets are acknowledged by being sent.
 */
#include <stdlib.h>

#include "requester.h"

/*
 * A READ longer than this many packets is requested in pieces: PSNs are
 * compared in half windows of 2^23, so no request may span as many (D-003).
 */
#define READ_PIECE          65536u

/*
 * Packets between the oldest unacknowledged one and the cursor. What the peer
 * will send does not count: max_rd_atomic limits READs, however long they are.
 */
static uint32_t unacked(const struct vhca_requester *r)
{
    uint32_t n = psn_add(r->snd_psn, -r->una_psn);

    return n - MIN_OF(n, r->read_psns);
}

static bool window_full(const struct vhca_requester *r)
{
    /* In nearly all cases the first comparison is enough. */
    return psn_add(r->snd_psn, -r->una_psn) >= QHCA_WINDOW &&
           unacked(r) >= QHCA_WINDOW;
}

/* ---- starting WRs ---- */

static bool can_start(const struct vhca_qp *qp)
{
    return qp->state == QHCA_QPS_RTS && !qp->req.stopped &&
           qp->sq.next != qp->sq.pi &&
           qp->sq.next - qp->sq.ci < QHCA_INFLIGHT;
}

/* Check all local buffers of a WR before its first byte is sent (I-001). */
static bool buffers_ok(struct qhca_engine *e, struct vhca_qp *qp,
                       struct vhca_swr *wr)
{
    if (vhca_swr_is(wr, QHCA_RULE_MEMOP)) {
        return true;
    }
    if (vhca_swr_is(wr, QHCA_RULE_HAS_RESULT)) {
        return vhca_segs_check(e, &qp->user, wr->seg, wr->num_seg,
                               QHCA_ACCESS_LOCAL_WRITE);
    }
    /* Gathering a single packet checks its buffers. */
    return wr->num_psn == 1 ||
           vhca_segs_check(e, &qp->user, wr->seg, wr->num_seg, 0);
}

uint32_t vhca_swr_packets(const struct vhca_qp *qp, const struct vhca_swr *wr)
{
    if (vhca_swr_is(wr, QHCA_RULE_MEMOP)) {
        return 0;
    }
    /* Atomics (8 bytes) and FLUSH (none) are one packet as well. */
    return vhca_qp_is(qp, QHCA_DATAGRAM) ?
           1 : vhca_packets_of(wr->length, qp->mtu);
}

/* Return the place for the next WR, or NULL if there is no memory. */
static struct vhca_swr *next_place(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_requester *r = &qp->req;

    if (!r->swr) {
        r->swr = e->qps->spare_swr;
        e->qps->spare_swr = NULL;
    }
    if (!r->swr) {
        r->swr = calloc(QHCA_INFLIGHT, sizeof(*r->swr));
        if (!r->swr) {
            return NULL;
        }
        e->qps->num_swr++;
    }
    if (qp->sq.ci == qp->sq.next) {
        r->swr_base = qp->sq.next;
    }
    return vhca_swr_at(qp, qp->sq.next);
}

void vhca_requester_rest(struct qhca_engine *e, struct vhca_qp *qp)
{
    if (qp->sq.ci == qp->sq.next && !e->qps->spare_swr) {
        e->qps->spare_swr = qp->req.swr;
        qp->req.swr = NULL;
    }
}

void vhca_requester_forget(struct qhca_engine *e, struct vhca_qp *qp)
{
    if (qp->req.swr) {
        e->qps->num_swr--;
        free(qp->req.swr);
        qp->req.swr = NULL;
    }
}

/* Read the next WQE and give it its PSNs. */
static void start_wqe(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_requester *r = &qp->req;
    struct vhca_swr *wr = next_place(e, qp);
    enum vhca_wqe_result res = QHCA_WQE_UNREADABLE;

    if (wr) {
        res = vhca_wqe_fetch_send(e, qp, qp->sq.next, wr);
    }
    if (res == QHCA_WQE_UNREADABLE) {
        vhca_qp_error(e, qp, QHCA_EVENT_QP_FATAL);
        return;
    }
    wr->first_psn = r->next_psn;
    wr->num_psn = 0;
    qp->sq.next++;
    if (res == QHCA_WQE_OK) {
        wr->num_psn = vhca_swr_packets(qp, wr);
        if (!buffers_ok(e, qp, wr)) {
            wr->fail = QHCA_WC_LOC_PROT_ERR;
        }
    }
    if (wr->fail) {
        wr->num_psn = 0;
        r->stopped = true;
        vhca_sq_fail_oldest(e, qp);
        return;
    }
    r->next_psn = psn_add(r->next_psn, wr->num_psn);
}

void vhca_requester_hold(struct vhca_qp *qp)
{
    struct vhca_requester *r = &qp->req;

    if (qp->sq.ci != qp->sq.next) {
        /* Only the last one read can be: the next is read when it is sent. */
        struct vhca_swr *wr = vhca_swr_at(qp, qp->sq.next - 1);

        if (r->max_psn == wr->first_psn && !wr->executed) {
            qp->sq.next--;
            r->next_psn = wr->first_psn;
            /* A bad WR will be judged again, but not another before it. */
            r->stopped = r->stopped && !wr->fail;
        }
    }
}

void vhca_requester_abandon(struct vhca_qp *qp)
{
    struct vhca_requester *r = &qp->req;

    r->next_psn = r->max_psn = r->una_psn = r->snd_psn;
    r->read_psns = 0;
    r->snd_wqe = qp->sq.ci;
    r->stopped = false;
}

/* ---- what may be sent now ---- */

/* Whether a WR waits for a fence or for a READ resource (B-051, D-067). */
static bool held_back(const struct vhca_qp *qp, const struct vhca_swr *wr)
{
    const struct vhca_requester *r = &qp->req;

    if (wr->executed) {
        return false;
    }
    if (r->snd_psn != wr->first_psn) {
        /* The next piece of a READ follows when all of the last has come. */
        return vhca_swr_is(wr, QHCA_RULE_READ) && r->una_psn != r->snd_psn;
    }
    if ((wr->flags & QHCA_WQE_FENCE) && r->rd_atomic) {
        return true;
    }
    if (wr->opcode == QHCA_WR_LOCAL_INV) {
        return r->snd_wqe != qp->sq.ci;     /* must be the oldest (B-052) */
    }
    return vhca_swr_is(wr, QHCA_RULE_RD_ATOMIC) &&
           r->rd_atomic >= qp->attr.max_rd_atomic;
}

bool vhca_requester_ready(struct vhca_qp *qp)
{
    const struct vhca_requester *r = &qp->req;

    if ((qp->state != QHCA_QPS_RTS && qp->state != QHCA_QPS_SQD) ||
        r->rnr_wait || r->flushing || window_full(r)) {
        return false;
    }
    if (r->snd_wqe == qp->sq.next) {
        return can_start(qp);
    }

    const struct vhca_swr *wr = vhca_swr_at(qp, r->snd_wqe);

    return !wr->fail && !held_back(qp, wr);
}

/* ---- packets ---- */

/* Whether to request an ACK with the @n packets being built (D-010). */
static bool ask_for_ack(const struct vhca_qp *qp, uint32_t n, bool last)
{
    const struct vhca_requester *r = &qp->req;

    return vhca_qp_is(qp, QHCA_RELIABLE) &&
           (last || r->unasked + n >= QHCA_ACKREQ_EVERY ||
            unacked(r) + n >= QHCA_WINDOW);
}

/*
 * Return how many packets of @wr may be sent at once, from its @n-th on, but no
 * more than @max. Retransmissions go one by one, and so does the last packet of
 * a WRITE with immediate data: without a receive WR it is refused, but not the
 * others.
 */
static uint32_t at_once(const struct vhca_requester *r,
                        const struct vhca_swr *wr, uint32_t n, uint32_t max)
{
    if (r->snd_psn != r->max_psn) {
        return 1;
    }
    if (wr->opcode == QHCA_WR_RDMA_WRITE_WITH_IMM) {
        max = MIN_OF(max, MAX_OF(wr->num_psn - n - 1, 1u));
    }
    return MIN_OF(max, QHCA_WINDOW - unacked(r));
}

/*
 * Build the next packets of a SEND or WRITE, one if they become frames. Returns
 * false if the buffers have become inaccessible.
 */
static bool build_data(struct qhca_engine *e, struct vhca_qp *qp,
                       const struct vhca_swr *wr, uint32_t max,
                       struct vhca_burst *burst)
{
    const struct vhca_requester *r = &qp->req;
    uint32_t n = psn_add(r->snd_psn, -wr->first_psn);
    uint64_t off = (uint64_t)n * qp->mtu, left = wr->length - off;
    size_t len = (size_t)MIN_OF(left, (uint64_t)qp->mtu);
    struct roce_packet *p = &burst->p;
    bool copy, last;

    /* The 8 bytes of an ATOMIC WRITE must be in one piece. */
    if (burst->across && !vhca_swr_is(wr, QHCA_RULE_8_BYTES)) {
        max = at_once(r, wr, n, max);
        vhca_swr_view(e, qp, wr, off,
                      (size_t)MIN_OF(left, (uint64_t)max * qp->mtu),
                      &burst->view);
    }
    copy = !vhca_burst_in_place(burst, qp->mtu, left);
    last = n + p->num_psn == wr->num_psn;
    p->opcode = vhca_qp_service(qp) |
                vhca_wr_info(wr->opcode)->packet[last * 2 + (n == 0)];
    p->va = wr->raddr;
    p->rkey = wr->rkey;
    p->dma_len = wr->length;
    p->imm = wr->imm;
    p->inv_key = wr->inv_key;
    p->srqn = wr->srqn;
    p->solicited = last && (wr->flags & QHCA_WQE_SOLICITED) &&
                   vhca_swr_is(wr, QHCA_RULE_TAKES_WR);
    p->ackreq = ask_for_ack(qp, p->num_psn, last);
    return !copy ||
           vhca_swr_gather(e, qp, wr, off, vhca_burst_payload(burst, len),
                           len) == QHCA_MEM_OK;
}

/* Return the PSNs, from the cursor on, that one READ request asks for. */
static uint32_t read_piece(const struct vhca_requester *r,
                           const struct vhca_swr *wr)
{
    return MIN_OF(wr->num_psn - psn_add(r->snd_psn, -wr->first_psn),
                  READ_PIECE);
}

/* Build the request of a READ, or of what is missing of it (D-006). */
static void build_read(const struct vhca_qp *qp, const struct vhca_swr *wr,
                       struct roce_packet *p)
{
    const struct vhca_requester *r = &qp->req;
    uint32_t n = psn_add(r->snd_psn, -wr->first_psn);
    uint64_t off = (uint64_t)n * qp->mtu;

    p->opcode = vhca_qp_service(qp) | RC_READ_REQUEST;
    p->va = wr->raddr + off;
    p->rkey = wr->rkey;
    p->dma_len = (uint32_t)MIN_OF(wr->length - off,
                                  (uint64_t)read_piece(r, wr) * qp->mtu);
    p->srqn = wr->srqn;
    p->ackreq = true;
}

/* Build a request without payload: atomic or FLUSH. */
static void build_bare(const struct vhca_qp *qp, const struct vhca_swr *wr,
                       struct roce_packet *p)
{
    uint8_t opcode = vhca_wr_info(wr->opcode)->packet[3];
    uint8_t op = roce_opcode(opcode)->op;

    p->opcode = vhca_qp_service(qp) | opcode;
    p->va = wr->raddr;
    p->rkey = wr->rkey;
    p->swap_add = wr->swap_add;
    p->compare = op == OP_CAS || op == OP_MASKED_CAS ? wr->compare : 0;
    p->swap_mask = op == OP_MASKED_CAS ? wr->swap_mask : 0;
    p->compare_mask = wr->compare_mask;
    p->srqn = wr->srqn;
    p->dma_len = wr->flush_len;
    p->flush_type = wr->flush_type;
    p->flush_level = wr->flush_level;
    p->ackreq = true;
}

/* Build a datagram; its sender learns only that it has been sent. */
static bool build_datagram(struct qhca_engine *e, struct vhca_qp *qp,
                           const struct vhca_swr *wr, struct vhca_burst *burst)
{
    bool imm = wr->opcode == QHCA_WR_SEND_WITH_IMM;
    bool own = qp->type == QHCA_QPT_GSI || (wr->ud.qkey & QHCA_QKEY_OWN);
    struct roce_packet *p = &burst->p;

    p->opcode = SVC_UD | (imm ? RC_SEND_ONLY_IMM : RC_SEND_ONLY);
    p->imm = wr->imm;
    p->solicited = wr->flags & QHCA_WQE_SOLICITED;
    p->qkey = own ? vhca_qp_qkey(qp) : wr->ud.qkey;
    p->src_qp = qp->qpn;
    /* A message too long for a packet completes, but is not sent (B-030). */
    burst->unsent = wr->length > vhca_port_path_mtu(e);
    return burst->unsent ||
           vhca_swr_gather(e, qp, wr, 0, vhca_burst_payload(burst, wr->length),
                           wr->length) == QHCA_MEM_OK;
}

bool vhca_requester_next(struct qhca_engine *e, struct vhca_qp *qp,
                         uint32_t max, struct vhca_burst *burst)
{
    struct vhca_requester *r = &qp->req;
    struct vhca_swr *wr = vhca_swr_at(qp, r->snd_wqe);
    bool ok = true;

    burst->p.psn = r->snd_psn;
    if (vhca_swr_is(wr, QHCA_RULE_READ)) {
        build_read(qp, wr, &burst->p);
    } else if (vhca_swr_is(wr, QHCA_RULE_BARE)) {
        build_bare(qp, wr, &burst->p);
    } else if (vhca_qp_is(qp, QHCA_DATAGRAM)) {
        ok = build_datagram(e, qp, wr, burst);
    } else {
        ok = build_data(e, qp, wr, max, burst);
    }
    if (!ok) {
        wr->fail = QHCA_WC_LOC_PROT_ERR;
        r->stopped = true;
        vhca_sq_fail_oldest(e, qp);
    }
    return ok;
}

/* Unreliable: the WR completes when its last packet has been sent (B-061). */
static void sent_for_good(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_requester *r = &qp->req;

    r->una_psn = r->snd_psn;
    if (r->snd_wqe != qp->sq.ci) {
        vhca_sq_complete(e, qp);
        vhca_qp_check_drained(e, qp);
    }
}

void vhca_requester_sent(struct qhca_engine *e, struct vhca_qp *qp,
                         const struct vhca_burst *burst)
{
    struct vhca_requester *r = &qp->req;
    struct vhca_swr *wr = vhca_swr_at(qp, r->snd_wqe);
    bool opens = r->snd_psn == wr->first_psn;
    uint32_t n = burst->p.num_psn;

    VHCA_ASSERT(burst->p.psn == r->snd_psn);
    if (psn_diff(r->snd_psn, r->max_psn) < 0) {
        vhca_count_qp(e, qp, QHCA_CNT_RETRANSMIT, 1);
    }
    if (vhca_swr_is(wr, QHCA_RULE_READ)) {
        n = read_piece(r, wr);
        r->read_psns += n;
    } else if (!vhca_swr_is(wr, QHCA_RULE_BARE)) {
        r->unasked = burst->p.ackreq ? 0 : r->unasked + n;
    }
    r->snd_psn = psn_add(r->snd_psn, n);
    /* A READ that continues in its middle after a rewind counts as well. */
    if (vhca_swr_is(wr, QHCA_RULE_RD_ATOMIC) && (opens || !r->rd_atomic)) {
        r->rd_atomic++;
    }
    if (psn_diff(r->snd_psn, r->max_psn) > 0) {
        r->max_psn = r->snd_psn;
    }
    if (r->snd_psn == psn_add(wr->first_psn, wr->num_psn)) {
        r->snd_wqe++;
    }
    if (!vhca_qp_is(qp, QHCA_RELIABLE)) {
        sent_for_good(e, qp);
    }
}

bool vhca_requester_poll(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_requester *r = &qp->req;

    while (vhca_may_go_on(e) && vhca_requester_ready(qp)) {
        if (r->snd_wqe == qp->sq.next) {
            start_wqe(e, qp);   /* the WQE may be bad, or have to wait */
        } else if (vhca_swr_is(vhca_swr_at(qp, r->snd_wqe), QHCA_RULE_MEMOP)) {
            vhca_memop_step(e, qp);
        } else {
            return true;
        }
    }
    return false;
}
