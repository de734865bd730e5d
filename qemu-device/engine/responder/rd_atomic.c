/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: RC and XRC responder, requests that take one of its resources
 * (IBTA 9.7.4.1; FLUSH and ATOMIC WRITE: annex A19). They have responses of
 * their own and are remembered, so that a lost response can be repeated.
 */
#include "responder.h"

/*
 * Whether there is a resource for the request, and its length is sane. Earlier
 * data of the QP have to be in memory for all of these requests.
 */
static enum vhca_rx_result admit(struct qhca_engine *e,
                                 const struct vhca_qp *qp,
                                 const struct roce_packet *p)
{
    vhca_late_finish(e, qp->qpn);
    if (qp->rsp.rd_pending >= qp->attr.max_dest_rd_atomic) {
        return VHCA_RX_RESOURCES;
    }
    return vhca_payload_ok(qp, p) ? VHCA_RX_DONE : VHCA_RX_LENGTH;
}

/*
 * Queue response @r, and remember the request as @res in the place of the
 * oldest one (D-055). Replays can fill the queue: before changing memory, a
 * request has to make sure that there is room.
 */
static enum vhca_rx_result rd_atomic_answer(struct vhca_qp *qp,
                                            const struct roce_packet *p,
                                            struct vhca_response *r,
                                            struct vhca_rd_resource *res)
{
    struct vhca_responder *s = &qp->rsp;

    if (!vhca_response_room(qp)) {
        return VHCA_RX_REPEAT;
    }
    s->msn = psn_add(s->msn, 1);
    r->psn = p->psn;
    r->msn = s->msn;
    vhca_response_add(qp, r);
    res->valid = true;
    res->op = roce_opcode(p->opcode)->op;
    res->psn = p->psn;
    s->res_last = (s->res_last + 1) % qp->attr.max_dest_rd_atomic;
    s->res[s->res_last] = *res;
    s->rd_pending++;
    s->epsn = psn_add(s->epsn, res->num_psn);
    return VHCA_RX_ANSWERED;
}

void vhca_responder_limit(struct vhca_qp *qp, unsigned before)
{
    struct vhca_responder *s = &qp->rsp;
    unsigned n = MIN_OF(before, qp->attr.max_dest_rd_atomic);
    struct vhca_rd_resource old[VHCA_MAX_RD_ATOMIC];

    memcpy(old, s->res, sizeof(old));
    memset(s->res, 0, sizeof(s->res));
    for (unsigned i = 0; i < n; i++) {
        s->res[n - 1 - i] = old[(s->res_last + before - i) % before];
    }
    s->res_last = n ? n - 1 : 0;
}

enum vhca_rx_result vhca_rx_read(struct qhca_engine *e, struct vhca_qp *qp,
                                 const struct roce_packet *p)
{
    struct vhca_rd_resource res = {
        .va = p->va, .rkey = p->rkey, .length = p->dma_len,
        .num_psn = vhca_packets_of(p->dma_len, qp->mtu), .srqn = p->srqn,
    };
    struct vhca_response r = {
        .kind = VHCA_RESP_READ, .va = p->va, .rkey = p->rkey,
        .length = p->dma_len, .srqn = p->srqn,
    };
    enum vhca_rx_result result = admit(e, qp, p);

    if (result != VHCA_RX_DONE) {
        return result;
    }
    if (p->dma_len > VHCA_MAX_MSG) {
        return VHCA_RX_LENGTH;
    }
    if (p->dma_len && !vhca_mr_check(e, &qp->user, p->rkey, p->va, p->dma_len,
                                     QHCA_ACCESS_REMOTE_READ)) {
        return VHCA_RX_ACCESS;
    }
    return rd_atomic_answer(qp, p, &r, &res);
}

/* Find the 8 bytes of an atomic or ATOMIC WRITE, and room for the response. */
static enum vhca_rx_result take_word(struct qhca_engine *e, struct vhca_qp *qp,
                                     const struct roce_packet *p,
                                     uint16_t access, struct vhca_mr **mr)
{
    if (p->va & 7) {
        return VHCA_RX_ALIGNMENT;
    }
    *mr = vhca_mr_check(e, &qp->user, p->rkey, p->va, 8, access);
    if (!*mr) {
        return VHCA_RX_ACCESS;
    }
    return vhca_response_room(qp) ? VHCA_RX_DONE : VHCA_RX_REPEAT;
}

/*
 * Add to a big-endian word,
 which the host's atomic addition cannot do. QPs take
 * turns, so only a CPU can change the word in between. One that does so forever
 * must not hold up the device: give up as if DMA had failed.
 */
static enum vhca_mem_result add_by_cas(struct qhca_engine *e,
                                       struct vhca_mr *mr,
                                       const struct roce_packet *p,
                                       uint64_t *orig)
{
    enum vhca_mem_result result;
    uint64_t found = 0;         /* a guess; the first attempt corrects it */

    for (unsigned i = 0; i < VHCA_ADD_TRIES; i++) {
        result = vhca_mr_cas(e, mr, p->va, found, found + p->swap_add, orig);
        if (result != VHCA_MEM_OK || *orig == found) {
            return result;
        }
        found = *orig;
    }
    return VHCA_MEM_DMA;
}

static enum vhca_mem_result execute_atomic(struct qhca_engine *e,
                                           struct vhca_mr *mr,
                                           const struct roce_packet *p,
                                           uint64_t *orig)
{
    if (roce_opcode(p->opcode)->op == OP_CAS) {
        return vhca_mr_cas(e, mr, p->va, p->compare, p->swap_add, orig);
    }
    return e->big_endian ? add_by_cas(e, mr, p, orig) :
                           vhca_mr_add(e, mr, p->va, p->swap_add, orig);
}

enum vhca_rx_result vhca_rx_atomic(struct qhca_engine *e, struct vhca_qp *qp,
                                   const struct roce_packet *p)
{
    struct vhca_rd_resource res = { .num_psn = 1 };
    struct vhca_response r = { .kind = VHCA_RESP_ATOMIC };
    enum vhca_rx_result result = admit(e, qp, p);
    struct vhca_mr *mr;

    if (result == VHCA_RX_DONE) {
        result = take_word(e, qp, p, QHCA_ACCESS_REMOTE_ATOMIC, &mr);
    }
    if (result == VHCA_RX_DONE) {
        result = vhca_rx_memory(execute_atomic(e, mr, p, &res.orig));
    }
    if (result != VHCA_RX_DONE) {
        return result;
    }
    r.orig = res.orig;
    return rd_atomic_answer(qp, p, &r, &res);
}

/* Whether the key allows what the FLUSH requests (I-037). */
static bool may_flush(struct qhca_engine *e, struct vhca_qp *qp,
                      const struct roce_packet *p)
{
    uint16_t access = vhca_flush_access(p->flush_type);

    /* A range of no bytes needs no access, but a valid key. */
    if (p->flush_level == QHCA_FLUSH_MR || !p->dma_len) {
        return vhca_mr_check_whole(e, &qp->user, p->rkey, access);
    }
    return vhca_mr_check(e, &qp->user, p->rkey, p->va, p->dma_len, access);
}

/*
 * Earlier writes are visible to all by now (B-073): dma_write() makes them so
 * before it returns. No key has the right to persistence.
 */
enum vhca_rx_result vhca_rx_flush(struct qhca_engine *e, struct vhca_qp *qp,
                                  const struct roce_packet *p)
{
    struct vhca_rd_resource res = { .num_psn = 1 };
    struct vhca_response r = { .kind = VHCA_RESP_READ };
    enum vhca_rx_result result = admit(e, qp, p);

    if (result != VHCA_RX_DONE) {
        return result;
    }
    if (!vhca_flush_kind_ok(p->flush_type, p->flush_level)) {
        return VHCA_RX_FLUSH;
    }
    if (p->flush_level == QHCA_FLUSH_RANGE && p->dma_len > VHCA_MAX_MSG) {
        return VHCA_RX_LENGTH;
    }
    return may_flush(e, qp, p) ? rd_atomic_answer(qp, p, &r,
                                                  &res) : VHCA_RX_ACCESS;
}

enum vhca_rx_result vhca_rx_atomic_write(struct qhca_engine *e,
                                         struct vhca_qp *qp,
                                         const struct roce_packet *p)
{
    struct vhca_rd_resource res = { .num_psn = 1 };
    struct vhca_response r = { .kind = VHCA_RESP_READ };
    enum vhca_rx_result result = admit(e, qp, p);
    struct vhca_mr *mr;

    if (result == VHCA_RX_DONE && (p->payload_len != 8 || p->dma_len != 8)) {
        result = VHCA_RX_LENGTH;
    }
    if (result == VHCA_RX_DONE) {
        result = take_word(e, qp, p, QHCA_ACCESS_REMOTE_WRITE, &mr);
    }
    if (result == VHCA_RX_DONE) {
        result = vhca_rx_memory(vhca_mr_store(e, mr, p->va, p->payload));
    }
    return result == VHCA_RX_DONE ? rd_atomic_answer(qp, p, &r, &res) : result;
}
