/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: RC responder, the queue of responses. The queue is in the order
 * of the PSNs (D-013), even if requests are repeated: a requester that goes
 * back can use no response before the one that it lacks. Each PSN of a READ or
 * atomic is in the queue once at most, so replays cannot fill the queue.
 */
#include "responder.h"

/* Return the PSN for an ACK of everything that has been executed. */
static uint32_t executed(const struct vhca_qp *qp)
{
    return psn_add(qp->rsp.epsn, -1u);
}

/* Return the last PSN that the response answers or acknowledges. */
static uint32_t last_psn(const struct vhca_qp *qp,
                         const struct vhca_response *r)
{
    return r->kind != VHCA_RESP_READ ? r->psn :
           psn_add(r->psn, vhca_packets_of(r->length - r->done, qp->mtu) - 1);
}

/* Return the NAK that waits, last in the queue and for the ePSN, or NULL. */
static struct vhca_response *waiting_nak(struct vhca_qp *qp)
{
    struct vhca_response *last = vhca_response_at(&qp->rsp, qp->rsp.q_tail - 1);

    return vhca_response_queued(qp) && last->kind == VHCA_RESP_ACK &&
           last->syndrome != AETH_ACK ? last : NULL;
}

/* Return the place behind all responses that end before @psn. */
static uint32_t place_of(struct vhca_qp *qp, uint32_t psn)
{
    struct vhca_responder *s = &qp->rsp;
    uint32_t i = s->q_tail;

    while (i != s->q_head &&
           psn_diff(last_psn(qp, vhca_response_at(s, i - 1)), psn) >= 0) {
        i--;
    }
    return i;
}

static void insert(struct vhca_responder *s, uint32_t i,
                   const struct vhca_response *r)
{
    if (i == s->q_head && i != s->q_tail) {
        /* The place for data that were read early is for the first response. */
        vhca_response_at(s, i)->early = false;
        s->q_head = --i;
    } else {
        for (uint32_t to = s->q_tail++; to != i; to--) {
            *vhca_response_at(s, to) = *vhca_response_at(s, to - 1);
        }
    }
    *vhca_response_at(s, i) = *r;
}

/* ---- ACKs and NAKs ---- */

/*
 * ACKs are cumulative: change the one that is there, unless it acknowledges
 * more. So there are never two in a row, and the place that vhca_response_add()
 * leaves free is enough for one at the end.
 */
static void put_ack(struct vhca_qp *qp, uint8_t syndrome, uint32_t psn)
{
    struct vhca_responder *s = &qp->rsp;
    struct vhca_response *before, r = {
        .kind = VHCA_RESP_ACK,
        .syndrome = syndrome,
        .psn = psn,
        .msn = s->msn,
    };
    uint32_t i = s->q_tail;

    while (i != s->q_head &&
           psn_diff(vhca_response_at(s, i - 1)->psn, psn) > 0) {
        i--;
    }
    if (i != s->q_tail && vhca_response_at(s, i)->kind == VHCA_RESP_ACK) {
        return;
    }
    before = i == s->q_head ? NULL : vhca_response_at(s, i - 1);
    if (before && before->kind == VHCA_RESP_ACK) {
        r.length = psn == before->psn ? before->length : 0;
        *before = r;
    } else if (i == s->q_tail || vhca_response_room(qp)) {
        insert(s, i, &r);
    }
}

void vhca_response_owe(struct vhca_qp *qp)
{
    if (vhca_response_queued(qp)) {
        vhca_response_ack(qp, AETH_ACK, executed(qp));
    } else {
        qp->rsp.ack_owed = true;
    }
}

void vhca_response_settle(struct vhca_qp *qp)
{
    if (qp->rsp.ack_owed) {
        qp->rsp.ack_owed = false;
        put_ack(qp, AETH_ACK, executed(qp));
    }
}

uint32_t vhca_response_take_ack(struct qhca_engine *e, struct vhca_qp *qp)
{
    qp->rsp.ack_owed = false;
    vhca_count_qp(e, qp, QHCA_CNT_TX_ACK, 1);
    return executed(qp);
}

void vhca_response_ack(struct vhca_qp *qp, uint8_t syndrome, uint32_t psn)
{
    vhca_response_settle(qp);
    put_ack(qp, syndrome, psn);
}

uint32_t vhca_response_recall(struct vhca_qp *qp)
{
    const struct vhca_response *nak = waiting_nak(qp);

    if (!nak) {
        return qp->rsp.epsn;
    }
    qp->rsp.q_tail--;
    return psn_add(nak->psn, MAX_OF(nak->length, 1u));
}

void vhca_response_missed(struct vhca_qp *qp, uint32_t end)
{
    struct vhca_responder *s = &qp->rsp;
    int32_t n = psn_diff(end, s->epsn);
    struct vhca_response *nak;

    if (n <= 0) {
        return;
    }
    if (!s->nak_sent) {         /* once per gap (D-020) */
        s->nak_sent = true;
        vhca_response_ack(qp, AETH_NAK_SEQ, s->epsn);
    }
    nak = waiting_nak(qp);
    if (nak) {
        nak->length = MAX_OF(nak->length, (uint32_t)n);
    }
}

bool vhca_response_wait(struct qhca_engine *e, struct vhca_qp *qp, uint32_t psn)
{
    struct vhca_responder *s = &qp->rsp;
    unsigned n = qp->fault[QHCA_PAGE_RESPONSE].repeats + 1;
    struct vhca_response nak = {
        .kind = VHCA_RESP_ACK, .syndrome = vhca_page_rnr(n), .psn = psn,
        .msn = s->msn,
    };

    vhca_response_resume(e, qp, false);
    if (psn_diff(psn, vhca_response_at(s, s->q_head)->psn) > 0 ||
        !vhca_response_room(qp)) {
        return false;
    }
    insert(s, s->q_head, &nak);     /* it overtakes what waits */
    return true;
}

/* ---- responses to READs and atomics ---- */

bool vhca_response_add(struct vhca_qp *qp, const struct vhca_response *r)
{
    vhca_response_settle(qp);
    if (!vhca_response_room(qp)) {
        return false;
    }
    insert(&qp->rsp, place_of(qp, r->psn), r);  /* a NAK stays the last */
    return true;
}

/* Leave out the next @n packets of a READ's response. */
static void skip(const struct vhca_qp *qp, struct vhca_response *r, uint32_t n)
{
    uint32_t bytes = r->done + n * qp->mtu;

    r->psn = psn_add(r->psn, n);
    r->va += bytes;
    r->length -= bytes;
    r->done = 0;
    r->early = false;
}

/* @r answers all that the response at @i does, and more before it. */
static void take_over(struct vhca_responder *s, uint32_t i,
                      struct vhca_response *r)
{
    if (!vhca_response_at(s, i)->replay) {
        s->rd_pending -= !r->replay;
        r->replay = false;
    }
    for (s->q_tail--; i != s->q_tail; i++) {
        *vhca_response_at(s, i) = *vhca_response_at(s, i + 1);
    }
}

void vhca_response_repeat(struct vhca_qp *qp, struct vhca_response *r)
{
    struct vhca_responder *s = &qp->rsp;
    uint32_t i, last = last_psn(qp, r);

    vhca_response_settle(qp);
    i = place_of(qp, r->psn);
    while (i != s->q_tail) {
        struct vhca_response *queued = vhca_response_at(s, i);
        uint32_t end = last_psn(qp, queued);

        if (queued->kind == VHCA_RESP_ACK || psn_diff(queued->psn, last) > 0) {
            break;
        }
        if (psn_diff(queued->psn, r->psn) <= 0) {
            if (psn_diff(end, last) >= 0) {
                return;                         /* it is in line */
            }
            skip(qp, r, psn_add(end, 1 - r->psn));
            i++;
        } else if (psn_diff(end, last) <= 0) {
            take_over(s, i, r);
        } else {
            skip(qp, queued, psn_add(last, 1 - queued->psn));
            break;
        }
    }
    if (vhca_response_room(qp)) {
        insert(s, i, r);
    }
}
