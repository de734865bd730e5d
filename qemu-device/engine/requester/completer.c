/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: RC requester, taking responses (IBTA 9.7.5 and 9.7.6). */
#include "requester.h"

static void complete_oldest(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_requester *r = &qp->req;
    bool at_cursor = r->snd_wqe == qp->sq.ci;

    vhca_sq_complete(e, qp);
    if (at_cursor) {
        /* A late response completed it after the cursor had gone back. */
        r->snd_wqe = qp->sq.ci;
        r->snd_psn = r->una_psn;
    }
}

/* There is progress: reset the retry counters (D-034). */
static void progress(struct vhca_qp *qp, uint32_t una)
{
    struct vhca_requester *r = &qp->req;

    r->una_psn = una;
    if (psn_diff(una, r->snd_psn) > 0) {
        r->snd_psn = una;
    }
    r->retries = qp->attr.retry_cnt;
    r->rnr_retries = qp->attr.rnr_retry;
    r->rewound = false;
    r->graces = 0;
}

static bool alive(const struct vhca_qp *qp)
{
    return qp->state == QHCA_QPS_RTS || qp->state == QHCA_QPS_SQD;
}

/*
 * Whether the response to @psn may have been on its way when the QP went back.
 * Responses come in the order of their PSNs, so this one was not if its request
 * was sent only later, or if it is not behind another response that was. There
 * can be several ACKs of the same PSN.
 */
static bool is_stale(struct vhca_requester *r, uint32_t psn, bool ack)
{
    bool sent_again = psn_diff(psn, r->snd_psn) < 0;
    bool behind = psn_diff(psn, r->stale_from) >= !ack;

    if (sent_again && (!behind || psn_diff(psn, r->stale_to) >= 0)) {
        return false;
    }
    if (behind) {
        r->stale_from = psn;
    }
    return true;
}

/*
 * The response to @psn, or ACK of it, shows that an earlier one to a READ or
 * atomic is lost (D-014), perhaps again. A network that duplicates packets can
 * make the latter look so: leave the last retry to the timer, if it runs.
 */
static void implied_nak(struct qhca_engine *e, struct vhca_qp *qp, uint32_t psn,
                        bool ack)
{
    struct vhca_requester *r = &qp->req;

    if (!r->rewound ||
        (!is_stale(r, psn, ack) && (r->retries || !qp->attr.timeout))) {
        vhca_requester_retry(e, qp);
        r->stale_from = psn;
    }
}

/* The peer has seen no request behind the one that it refuses. */
static void nothing_is_stale(struct vhca_qp *qp)
{
    qp->req.stale_to = qp->req.una_psn;
}

/*
 * Accept everything up to and including @psn, which is outstanding. Returns
 * false if a READ or atomic has to be answered first, or if the QP has failed.
 */
static bool ack_through(struct qhca_engine *e, struct vhca_qp *qp, uint32_t psn)
{
    struct vhca_requester *r = &qp->req;

    while (alive(qp) && qp->sq.ci != qp->sq.next &&
           psn_diff(psn, r->una_psn) >= 0) {
        struct vhca_swr *wr = vhca_swr_at(qp, qp->sq.ci);
        uint32_t n = psn_add(psn, -wr->first_psn);

        if (vhca_swr_is(wr, VHCA_WR_RD_ATOMIC) || wr->fail) {
            break;
        }
        if (n + 1 < wr->num_psn) {
            progress(qp, psn_add(psn, 1));
            break;
        }
        progress(qp, psn_add(wr->first_psn, wr->num_psn));
        complete_oldest(e, qp);
    }
    vhca_sq_fail_oldest(e, qp);
    return alive(qp) && psn_diff(psn, r->una_psn) < 0;
}

/* A response acknowledges all before its PSN; false: that cannot be. */
static bool accept_before(struct qhca_engine *e, struct vhca_qp *qp,
                          const struct roce_packet *p)
{
    if (p->psn == qp->req.una_psn ||
        ack_through(e, qp, psn_add(p->psn, -1u))) {
        return true;
    }
    if (alive(qp)) {
        implied_nak(e, qp, p->psn, roce_opcode(p->opcode)->op == OP_ACK);
    }
    return false;
}

/*
 * Return the oldest WR if it is a READ or atomic that @p answers. Such a
 * response cannot be a NAK.
 */
static struct vhca_swr *answered(struct vhca_qp *qp,
                                 const struct roce_packet *p)
{
    if (qp->sq.ci == qp->sq.next || p->psn != qp->req.una_psn ||
        AETH_TYPE(p->syndrome) != 0) {
        return NULL;
    }

    struct vhca_swr *wr = vhca_swr_at(qp, qp->sq.ci);

    return vhca_swr_is(wr, VHCA_WR_RD_ATOMIC) ? wr : NULL;
}

/* A retried READ has other packet opcodes, so only lengths are certain. */
static bool length_ok(const struct vhca_qp *qp, const struct vhca_swr *wr,
                      const struct roce_packet *p, bool last)
{
    uint32_t done = psn_add(p->psn, -wr->first_psn);
    uint64_t left = vhca_swr_is(wr, VHCA_WR_HAS_RESULT) ?
                    wr->length - (uint64_t)done * qp->mtu : 0;

    return p->payload_len == MIN_OF((uint64_t)qp->mtu * p->num_psn, left) &&
           (!last || roce_opcode(p->opcode)->flags & OPF_LAST);
}

/* All data have arrived: READ_WITH_INV invalidates its key now. */
static bool end_of_read(struct qhca_engine *e, struct vhca_qp *qp,
                        const struct vhca_swr *wr)
{
    if (vhca_swr_is(wr, VHCA_WR_KEY) &&
        !vhca_mr_invalidate(e, &qp->user, wr->inv_key, false)) {
        vhca_sq_fail(e, qp, QHCA_WC_MW_BIND_ERR);
        return false;
    }
    return true;
}

/*
 * A response has met an absent page. Treat it as lost: ask for it again when
 * the page is there.
 */
static void lose_response(struct qhca_engine *e, struct vhca_qp *qp)
{
    vhca_requester_rewind(e, qp);
    vhca_requester_park(e, qp);
}

/* Returns how many of the packets in @p have been taken. */
static uint32_t take_read_data(struct qhca_engine *e, struct vhca_qp *qp,
                               const struct vhca_swr *wr,
                               const struct roce_packet *p)
{
    uint32_t n = psn_add(p->psn, -wr->first_psn);
    uint64_t at = (uint64_t)n * qp->mtu;
    enum vhca_mem_result result = VHCA_MEM_OK;
    struct roce_packet first;
    bool last;

    if (!vhca_same_mtu(qp, p)) {
        first = roce_first_of(p);
        p = &first;
    }
    last = n + p->num_psn == wr->num_psn;
    if (!length_ok(qp, wr, p, last)) {
        vhca_sq_fail(e, qp, QHCA_WC_BAD_RESP_ERR);
        return 1;
    }
    if (p->num_psn > 1 &&
        vhca_scatter(e, qp->qpn, &qp->user, wr->seg, wr->num_seg, at, p)) {
        first = roce_first_of(p);
        p = &first;
        last = false;
    }
    if (p->num_psn == 1) {
        result = vhca_scatter(e, qp->qpn, &qp->user, wr->seg, wr->num_seg, at,
                              p);
    }
    if (result == VHCA_MEM_FAULT) {
        lose_response(e, qp);
        return 1;
    }
    if (result != VHCA_MEM_OK) {
        vhca_sq_fail(e, qp, QHCA_WC_LOC_PROT_ERR);
        return 1;
    }
    if (last && !end_of_read(e, qp, wr)) {
        return p->num_psn;
    }
    if (vhca_swr_is(wr, VHCA_WR_READ)) {
        /* Late responses may be to more PSNs than were requested again. */
        qp->req.read_psns -= MIN_OF(qp->req.read_psns, p->num_psn);
    }
    progress(qp, psn_add(p->psn, p->num_psn));
    if (last) {
        complete_oldest(e, qp);
    }
    return p->num_psn;
}

static uint32_t rx_read_response(struct qhca_engine *e, struct vhca_qp *qp,
                                 const struct roce_packet *p)
{
    struct vhca_swr *wr;

    if (!accept_before(e, qp, p)) {
        return 1;
    }
    wr = answered(qp, p);
    if (!wr || vhca_swr_is(wr, VHCA_WR_ATOMIC)) {
        vhca_sq_fail(e, qp, QHCA_WC_BAD_RESP_ERR);
        return 1;
    }
    return take_read_data(e, qp, wr, p);
}

static void rx_atomic_response(struct qhca_engine *e, struct vhca_qp *qp,
                               const struct roce_packet *p)
{
    enum vhca_mem_result result;
    struct vhca_swr *wr;

    if (!accept_before(e, qp, p)) {
        return;
    }
    wr = answered(qp, p);
    if (!wr || !vhca_swr_is(wr, VHCA_WR_ATOMIC)) {
        vhca_sq_fail(e, qp, QHCA_WC_BAD_RESP_ERR);
        return;
    }
    /* Memory holds the value in the guest's byte order (F-021). */
    uint64_t orig = htole64(vhca_word(e, p->atomic_orig));

    result = vhca_segs_write(e, qp->qpn, &qp->user, wr->seg, wr->num_seg, 0,
                             &orig, sizeof(orig));
    if (result == VHCA_MEM_FAULT) {
        lose_response(e, qp);
        return;
    }
    if (vhca_write_counted(e, result) != VHCA_MEM_OK) {
        vhca_sq_fail(e, qp, QHCA_WC_LOC_PROT_ERR);
        return;
    }
    progress(qp, psn_add(p->psn, 1));
    complete_oldest(e, qp);
}

/* RNR timer code to nanoseconds (IBTA table 45; D-035 to D-038). */
static uint64_t rnr_ns(uint8_t code)
{
    /* Units of 10 us. */
    static const uint32_t timer[32] = {
        65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
        256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
        16384, 24576, 32768, 49152,
    };

    return timer[code & 31] * 10000ull;
}

static void rx_rnr_nak(struct qhca_engine *e, struct vhca_qp *qp,
                       const struct roce_packet *p)
{
    struct vhca_requester *r = &qp->req;

    vhca_count_qp(e, qp, QHCA_CNT_RX_RNR_NAK, 1);
    if (!r->rnr_retries) {
        vhca_count_qp(e, qp, QHCA_CNT_RNR_RETRY_EXC, 1);
        vhca_sq_fail(e, qp, QHCA_WC_RNR_RETRY_EXC_ERR);
        return;
    }
    if (r->rnr_retries != 7) {          /* 7: retry forever (D-032) */
        r->rnr_retries--;
    }
    vhca_requester_rewind(e, qp);
    nothing_is_stale(qp);
    r->rnr_wait = true;
    vhca_timer_set(e, &r->timer, e->now + rnr_ns(AETH_CODE(p->syndrome)));
}

/* Completion status of the fatal NAKs (D-021, D-024). */
static enum qhca_cqe_status nak_status(uint8_t syndrome)
{
    switch (syndrome) {
    case AETH_NAK_INV_REQ:
        return QHCA_WC_REM_INV_REQ_ERR;
    case AETH_NAK_ACCESS:
        return QHCA_WC_REM_ACCESS_ERR;
    case AETH_NAK_OP:
        return QHCA_WC_REM_OP_ERR;
    default:
        return QHCA_WC_BAD_RESP_ERR;
    }
}

static void rx_nak(struct qhca_engine *e, struct vhca_qp *qp,
                   const struct roce_packet *p)
{
    /* A NAK of @psn acknowledges all before it (D-020, D-025). */
    if (!accept_before(e, qp, p)) {
        return;
    }
    if (AETH_TYPE(p->syndrome) == AETH_RNR_NAK) {
        rx_rnr_nak(e, qp, p);
    } else if (p->syndrome == AETH_NAK_SEQ) {
        vhca_count_qp(e, qp, QHCA_CNT_RX_NAK_SEQ, 1);
        vhca_requester_retry(e, qp);
        nothing_is_stale(qp);
    } else {
        vhca_count_qp(e, qp, QHCA_CNT_RX_NAK_FATAL, 1);
        vhca_sq_fail(e, qp, nak_status(p->syndrome));
    }
}

/* The peer acknowledges everything up to @psn. */
static void accepted(struct qhca_engine *e, struct vhca_qp *qp, uint32_t psn)
{
    if (!ack_through(e, qp, psn) && alive(qp)) {
        implied_nak(e, qp, psn, true);
    }
}

/* Whether @psn is outstanding; a response to any other is dropped (D-015). */
static bool outstanding(const struct vhca_qp *qp, uint32_t psn)
{
    return qp->sq.ci != qp->sq.next && psn_diff(psn, qp->req.una_psn) >= 0 &&
           psn_diff(psn, qp->req.max_psn) < 0;
}

/* Continue after a response; @una: the oldest PSN before it. */
static void completer_go_on(struct qhca_engine *e, struct vhca_qp *qp,
                            uint32_t una)
{
    vhca_sq_fail_oldest(e, qp);
    if (!alive(qp)) {
        return;
    }
    vhca_requester_rest(e, qp);
    if (qp->req.una_psn != una) {
        vhca_requester_timer(e, qp);
    }
    vhca_qp_check_drained(e, qp);
}

void vhca_completer_ack(struct qhca_engine *e, struct vhca_qp *qp, uint32_t psn)
{
    uint32_t una = qp->req.una_psn;

    if (outstanding(qp, psn)) {
        accepted(e, qp, psn);
        completer_go_on(e, qp, una);
    }
}

uint32_t vhca_completer_rx(struct qhca_engine *e, struct vhca_qp *qp,
                           const struct roce_packet *p)
{
    struct vhca_requester *r = &qp->req;
    uint32_t una = r->una_psn;
    uint32_t taken = 1;

    if (!outstanding(qp, p->psn)) {
        return 1;
    }
    /* NAKs that arrive during the RNR wait concern packets sent before it. */
    if (r->rnr_wait && (AETH_TYPE(p->syndrome) == AETH_RNR_NAK ||
                        p->syndrome == AETH_NAK_SEQ)) {
        return 1;
    }
    switch (roce_opcode(p->opcode)->op) {
    case OP_READ_RESP:
        taken = rx_read_response(e, qp, p);
        break;
    case OP_ATOMIC_ACK:
        rx_atomic_response(e, qp, p);
        break;
    default:
        if (AETH_TYPE(p->syndrome) != 0) {
            rx_nak(e, qp, p);
        } else {
            accepted(e, qp, p->psn);
        }
        break;
    }
    completer_go_on(e, qp, una);
    if (vhca_requester_ready(qp)) {
        vhca_qp_schedule(e, qp);
    }
    return taken;
}
