/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: RC and XRC responder, requests that take one of its resources
 * (IBTA 9.7.4.1; FLUSH and ATOMIC WRITE: annex A19). They have answers of their
 * own and are remembered, so that a lost answer can be given again.
 */
#include "responder.h"

/* Whether there is a resource for it, and the packet is of a sane length. */
static bool admit(struct qhca_engine *e, struct qhca_qp *qp,
                  const struct roce_packet *p)
{
    if (qp->rsp.rd_pending >= qp->attr.max_dest_rd_atomic) {
        qhca_refuse_invalid(e, qp, p);
        return false;
    }
    if (!qhca_payload_ok(qp, p)) {
        qhca_refuse_length(e, qp, p);
        return false;
    }
    return true;
}

/*
 * The request has been executed, or will be read out of memory: answer @r goes
 * in line, @res in the slot of the oldest request (D-055). The caller has made
 * sure that there is room in the line.
 */
static void accept_request(struct qhca_engine *e, struct qhca_qp *qp,
                           const struct roce_packet *p, struct qhca_response *r,
                           struct qhca_rd_resource *res)
{
    struct qhca_responder *s = &qp->rsp;

    s->msn = psn_add(s->msn, 1);
    r->psn = p->psn;
    r->msn = s->msn;
    qhca_response_add(e, qp, r);
    res->valid = true;
    res->op = roce_opcode(p->opcode)->op;
    res->psn = p->psn;
    s->res_last = (s->res_last + 1) % qp->attr.max_dest_rd_atomic;
    s->res[s->res_last] = *res;
    s->rd_pending++;
    s->epsn = psn_add(s->epsn, res->num_psn);
}

void qhca_rx_read(struct qhca_engine *e, struct qhca_qp *qp,
                  const struct roce_packet *p)
{
    struct qhca_rd_resource res = {
        .va = p->va, .rkey = p->rkey, .length = p->dma_len,
        .num_psn = qhca_packets_of(p->dma_len, qp->mtu), .srqn = p->srqn,
    };
    struct qhca_response r = {
        .kind = QHCA_RESP_READ, .va = p->va, .rkey = p->rkey,
        .length = p->dma_len, .srqn = p->srqn,
    };

    if (!admit(e, qp, p)) {
        return;
    }
    if (p->dma_len > QHCA_MAX_MSG) {
        qhca_refuse_length(e, qp, p);
        return;
    }
    if (p->dma_len && !qhca_mr_check(e, &qp->user, p->rkey, p->va, p->dma_len,
                                     QHCA_ACCESS_REMOTE_READ)) {
        qhca_refuse_access(e, qp, p);
        return;
    }
    if (!qhca_response_room(qp)) {
        return;                 /* replays crowd the line: it is repeated */
    }
    accept_request(e, qp, p, &r, &res);
}

/*
 * The word of an atomic or ATOMIC WRITE. NULL: the request has been refused, or
 * is to be repeated, as there is no room for its answer.
 */
static struct qhca_mr *take_word(struct qhca_engine *e, struct qhca_qp *qp,
                                 const struct roce_packet *p, uint16_t access)
{
    struct qhca_mr *mr;

    if (p->va & 7) {
        qhca_refuse_invalid(e, qp, p);
        return NULL;
    }
    mr = qhca_mr_check(e, &qp->user, p->rkey, p->va, 8, access);
    if (!mr) {
        qhca_refuse_access(e, qp, p);
        return NULL;
    }
    /* Before memory changes. */
    return qhca_response_room(qp) ? mr : NULL;
}

/* What becomes of the word of a masked atomic that holds @old (B-075). */
static uint64_t masked_result(const struct roce_packet *p, uint64_t old)
{
    uint64_t mask = p->compare_mask;

    if (roce_opcode(p->opcode)->op == OP_MASKED_CAS) {
        return (old ^ p->compare) & mask ? old :
               (old & ~p->swap_mask) | (p->swap_add & p->swap_mask);
    }
    /*
     * The sum without the top bits of the fields carries into them and no
     * further; they themselves add without a carry.
     */
    return ((old & ~mask) + (p->swap_add & ~mask)) ^
           ((old ^ p->swap_add) & mask);
}

/*
 * QPs take turns, so that only a CPU can change the word meanwhile. One that
 * does so for ever does not hold up the device: false, as if memory were bad.
 */
static bool execute_masked(struct qhca_engine *e, struct qhca_mr *mr,
                           const struct roce_packet *p, uint64_t *orig)
{
    uint64_t found = 0;         /* guessed; the first try tells */

    for (unsigned i = 0; i < QHCA_MASKED_TRIES; i++) {
        if (!qhca_mr_cas(e, mr, p->va, found, masked_result(p, found), orig)) {
            return false;
        }
        if (*orig == found) {
            return true;
        }
        found = *orig;
    }
    return false;
}

static bool execute_atomic(struct qhca_engine *e, struct qhca_mr *mr,
                           const struct roce_packet *p, uint64_t *orig)
{
    switch (roce_opcode(p->opcode)->op) {
    case OP_CAS:
        return qhca_mr_cas(e, mr, p->va, p->compare, p->swap_add, orig);
    case OP_FAA:
        return qhca_mr_add(e, mr, p->va, p->swap_add, orig);
    default:
        return execute_masked(e, mr, p, orig);
    }
}

void qhca_rx_atomic(struct qhca_engine *e, struct qhca_qp *qp,
                    const struct roce_packet *p)
{
    struct qhca_rd_resource res = { .num_psn = 1 };
    struct qhca_response r = { .kind = QHCA_RESP_ATOMIC };
    struct qhca_mr *mr;

    if (!admit(e, qp, p)) {
        return;
    }
    mr = take_word(e, qp, p, QHCA_ACCESS_REMOTE_ATOMIC);
    if (!mr) {
        return;
    }
    if (!execute_atomic(e, mr, p, &res.orig)) {
        qhca_refuse_operation(e, qp, p, QHCA_WC_LOC_ACCESS_ERR);
        return;
    }
    r.orig = res.orig;
    accept_request(e, qp, p, &r, &res);
}

/* Whether the key gives what the FLUSH asks for (I-037). */
static bool may_flush(struct qhca_engine *e, struct qhca_qp *qp,
                      const struct roce_packet *p)
{
    uint16_t access = qhca_flush_access(p->flush_type);

    /* A range of no bytes names nothing, but its key has to be good. */
    if (p->flush_level == QHCA_FLUSH_MR || !p->dma_len) {
        return qhca_mr_check_whole(e, &qp->user, p->rkey, access);
    }
    return qhca_mr_check(e, &qp->user, p->rkey, p->va, p->dma_len, access);
}

/*
 * What was written before is where all can see it by now (B-073): writes are
 * visible when dma_write() returns. For persistence no key gives the right.
 */
void qhca_rx_flush(struct qhca_engine *e, struct qhca_qp *qp,
                   const struct roce_packet *p)
{
    struct qhca_rd_resource res = { .num_psn = 1 };
    struct qhca_response r = { .kind = QHCA_RESP_READ };

    if (!admit(e, qp, p)) {
        return;
    }
    if (!qhca_flush_kind_ok(p->flush_type, p->flush_level)) {
        qhca_refuse_invalid(e, qp, p);
        return;
    }
    if (p->flush_level == QHCA_FLUSH_RANGE && p->dma_len > QHCA_MAX_MSG) {
        qhca_refuse_length(e, qp, p);
        return;
    }
    if (!may_flush(e, qp, p)) {
        qhca_refuse_access(e, qp, p);
        return;
    }
    if (qhca_response_room(qp)) {
        accept_request(e, qp, p, &r, &res);
    }
}

void qhca_rx_atomic_write(struct qhca_engine *e, struct qhca_qp *qp,
                          const struct roce_packet *p)
{
    struct qhca_rd_resource res = { .num_psn = 1 };
    struct qhca_response r = { .kind = QHCA_RESP_READ };
    struct qhca_mr *mr;

    if (!admit(e, qp, p)) {
        return;
    }
    if (p->payload_len != 8 || p->dma_len != 8) {
        qhca_refuse_length(e, qp, p);
        return;
    }
    mr = take_word(e, qp, p, QHCA_ACCESS_REMOTE_WRITE);
    if (!mr) {
        return;
    }
    if (!qhca_mr_store(e, mr, p->va, p->payload)) {
        qhca_refuse_operation(e, qp, p, QHCA_WC_LOC_ACCESS_ERR);
        return;
    }
    accept_request(e, qp, p, &r, &res);
}
