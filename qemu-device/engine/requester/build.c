/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: requester, building the packet at the cursor. */
#include "requester.h"

/*
 * Return how many packets of @wr may be sent together, from its @n-th on, but
 * no more than @max. Retransmissions go one by one, and so does the last packet
 * of a WRITE with immediate data: without a receive WR the peer refuses it, but
 * not the others.
 */
static uint32_t burst_max(const struct vhca_requester *r,
                          const struct vhca_swr *wr, uint32_t n, uint32_t max)
{
    if (r->snd_psn != r->max_psn) {
        return 1;
    }
    if (wr->opcode == QHCA_WR_RDMA_WRITE_WITH_IMM) {
        max = MIN_OF(max, MAX_OF(wr->num_psn - n - 1, 1u));
    }
    return MIN_OF(max, VHCA_WINDOW - vhca_requester_unacked(r));
}

/*
 * Build the next packets of a SEND or WRITE, one if they become frames. Returns
 * whether the buffers are accessible.
 */
static enum vhca_mem_result build_data(struct qhca_engine *e,
                                       struct vhca_qp *qp,
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
    if (burst->crosses && !vhca_swr_is(wr, VHCA_WR_8_BYTES) &&
        !(wr->flags & QHCA_WQE_INLINE)) {
        max = burst_max(r, wr, n, max);
        vhca_segs_view(e, &qp->user, wr->seg, wr->num_seg, off,
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
                   vhca_swr_is(wr, VHCA_WR_TAKES_WR);
    p->ackreq = vhca_qp_is(qp, VHCA_RELIABLE) &&                /* D-010 */
                (last || r->unasked + p->num_psn >= VHCA_ACKREQ_EVERY ||
                 vhca_requester_unacked(r) + p->num_psn >= VHCA_WINDOW);
    return !copy ? VHCA_MEM_OK :
           vhca_swr_gather(e, qp, wr, off, vhca_burst_payload(burst, len), len);
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
                                  (uint64_t)vhca_read_piece(qp, wr) * qp->mtu);
    p->srqn = wr->srqn;
    p->ackreq = true;
}

/* Build a request without payload: atomic or FLUSH. */
static void build_bare(const struct vhca_qp *qp, const struct vhca_swr *wr,
                       struct roce_packet *p)
{
    uint8_t opcode = vhca_wr_info(wr->opcode)->packet[3];

    p->opcode = vhca_qp_service(qp) | opcode;
    p->va = wr->raddr;
    p->rkey = wr->rkey;
    p->swap_add = wr->swap_add;
    p->compare = opcode == RC_CMP_SWAP ? wr->compare : 0;
    p->srqn = wr->srqn;
    p->dma_len = wr->flush_len;
    p->flush_type = wr->flush_type;
    p->flush_level = wr->flush_level;
    p->ackreq = true;
}

/* Whether there are pages for the response to the request at the cursor. */
static enum vhca_mem_result probe_result(struct qhca_engine *e,
                                         struct vhca_qp *qp,
                                         const struct vhca_swr *wr)
{
    uint32_t n = psn_add(qp->req.snd_psn, -wr->first_psn);
    uint64_t off = (uint64_t)n * qp->mtu;

    return vhca_segs_probe(e, &qp->user, wr->seg, wr->num_seg, off,
                           MIN_OF(wr->length - off,
                                  (uint64_t)vhca_read_piece(qp, wr) * qp->mtu));
}

/* Build a datagram; its sender learns only that it has been sent. */
static enum vhca_mem_result build_datagram(struct qhca_engine *e,
                                           struct vhca_qp *qp,
                                           const struct vhca_swr *wr,
                                           struct vhca_burst *burst)
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
    return burst->unsent ? VHCA_MEM_OK :
           vhca_swr_gather(e, qp, wr, 0, vhca_burst_payload(burst, wr->length),
                           wr->length);
}

bool vhca_requester_next(struct qhca_engine *e, struct vhca_qp *qp,
                         uint32_t max, struct vhca_burst *burst)
{
    struct vhca_requester *r = &qp->req;
    struct vhca_swr *wr = vhca_swr_at(qp, r->snd_wqe);
    enum vhca_mem_result result = VHCA_MEM_OK;

    burst->p.psn = r->snd_psn;
    if (vhca_swr_is(wr, VHCA_WR_READ)) {
        build_read(qp, wr, &burst->p);
        result = wr->paged ? probe_result(e, qp, wr) : VHCA_MEM_OK;
    } else if (vhca_swr_is(wr, VHCA_WR_BARE)) {
        build_bare(qp, wr, &burst->p);
        result = wr->paged ? probe_result(e, qp, wr) : VHCA_MEM_OK;
    } else if (vhca_qp_is(qp, VHCA_DATAGRAM)) {
        result = build_datagram(e, qp, wr, burst);
    } else {
        result = build_data(e, qp, wr, max, burst);
    }
    if (result == VHCA_MEM_FAULT) {
        vhca_requester_park(e, qp);
    } else if (result != VHCA_MEM_OK) {
        vhca_sq_fail_wr(e, qp, wr, QHCA_WC_LOC_PROT_ERR);
    }
    return result == VHCA_MEM_OK;
}
