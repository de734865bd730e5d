/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the sending half of a QP in a saved state: its PSNs, and the
 * work requests that have been started.
 */
#include <stdlib.h>

#include "../save/save.h"
#include "requester.h"

static const struct vhca_snap_field req_fields[] = {
    VHCA_SNAP_ANY(struct vhca_requester, swr_base),
    VHCA_SNAP_MAX(struct vhca_requester, PSN_MASK, next_psn, snd_psn, max_psn,
                  una_psn),
    VHCA_SNAP_ANY(struct vhca_requester, snd_wqe),
    VHCA_SNAP_MAX(struct vhca_requester, PSN_MASK, unasked),
    VHCA_SNAP_ANY(struct vhca_requester, rd_atomic),
    VHCA_SNAP_MAX(struct vhca_requester, 7, retries, rnr_retries),
    VHCA_SNAP_FLAG(struct vhca_requester, rewound),
    VHCA_SNAP_MAX(struct vhca_requester, PSN_MASK, stale_from, stale_to),
    VHCA_SNAP_MAX(struct vhca_requester, VHCA_MAX_GRACES, graces),
    VHCA_SNAP_FLAG(struct vhca_requester, rnr_wait, page_wait, stopped,
                   flushing),
    VHCA_SNAP_ANY(struct vhca_requester, flush_to),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_requester, 88);

static const struct vhca_snap_field swr_fields[] = {
    VHCA_SNAP_ANY(struct vhca_swr, wr_id, raddr, swap_add, compare),
    VHCA_SNAP_RAW(struct vhca_swr, ud.av),
    VHCA_SNAP_MAX(struct vhca_swr, QHCA_OBJ_MASK, ud.qpn),
    VHCA_SNAP_ANY(struct vhca_swr, ud.qkey, rkey),
    VHCA_SNAP_MAX(struct vhca_swr, QHCA_OBJ_MASK, srqn),
    VHCA_SNAP_RAW(struct vhca_swr, imm),
    VHCA_SNAP_ANY(struct vhca_swr, inv_key),
    VHCA_SNAP_MAX(struct vhca_swr, VHCA_MAX_MSG, length),
    VHCA_SNAP_ANY(struct vhca_swr, flush_len, flush_type, flush_level),
    VHCA_SNAP_MAX(struct vhca_swr, PSN_MASK, first_psn, num_psn),
    VHCA_SNAP_MAX(struct vhca_swr, QHCA_MAX_SEND_SGE, num_seg),
    VHCA_SNAP_ANY(struct vhca_swr, opcode, flags),
    VHCA_SNAP_MAX(struct vhca_swr, QHCA_WC_GENERAL_ERR, fail),
    VHCA_SNAP_FLAG(struct vhca_swr, executed, paged),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_swr, 640);

static const struct vhca_snap_field memop_fields[] = {
    VHCA_SNAP_ANY(struct vhca_memop, key, mr_key, addr, length, table,
                  num_blocks, offset, block_shift, access),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_memop, 48);

/* ---- one work request ---- */

/* Apply the checks of vhca_wqe_fetch_send(), except for the data. */
static bool rules_ok(const struct vhca_qp *qp, const struct vhca_swr *wr)
{
    const struct vhca_wr_info *info = vhca_wr_info(wr->opcode);
    uint16_t rules = info->rules;

    return (info->types & 1u << qp->type) &&
           (!(rules & VHCA_WR_KERNEL) || qp->user.reserved) &&
           (!(rules & VHCA_WR_8_BYTES) || wr->length == 8) &&
           (!(rules & VHCA_WR_NO_DATA) || (!wr->length && !wr->num_seg)) &&
           (wr->opcode != QHCA_WR_FLUSH ||
            (vhca_flush_kind_ok(wr->flush_type, wr->flush_level) &&
             wr->flush_len <= VHCA_MAX_MSG)) &&
           (!wr->executed || (rules & VHCA_WR_MEMOP)) &&
           (!vhca_qp_is(qp, VHCA_DATAGRAM) ||
            wr->ud.av.sgid_index < VHCA_MAX_GID);
}

static void walk_data(struct vhca_snap *s, const struct vhca_qp *qp,
                      struct vhca_swr *wr)
{
    if (!vhca_snap_check(s, rules_ok(qp, wr), "opcode of a WR")) {
        return;
    }
    if (vhca_swr_is(wr, VHCA_WR_MEMOP)) {
        vhca_snap_fields(s, memop_fields, &wr->memop);
    } else if (wr->flags & QHCA_WQE_INLINE) {
        uint32_t room = vhca_swr_is(wr, VHCA_WR_8_BYTES) ? 8 : qp->max_inline;

        if (vhca_snap_check(s, vhca_swr_is(wr, VHCA_WR_INLINE) &&
                               !wr->num_seg && wr->length <= room,
                            "inline data")) {
            vhca_snap_raw(s, "inline data", wr->inline_data, wr->length);
        }
    } else {
        uint64_t length = vhca_segs_walk(s, wr->seg, wr->num_seg);

        vhca_snap_check(s, s->bad || length == wr->length, "length of a WR");
    }
}

/* If a WR is to fail, only what its CQE needs matters. */
static void walk_swr(struct vhca_snap *s, const struct vhca_qp *qp,
                     struct vhca_swr *wr)
{
    vhca_snap_fields(s, swr_fields, wr);
    if (!wr->fail) {
        walk_data(s, qp, wr);
    }
    if (!s->bad && wr->num_psn) {
        vhca_snap_check(s, (qp->mtu ||
                            vhca_qp_is(qp, VHCA_DATAGRAM | VHCA_RAW)) &&
                           wr->num_psn == vhca_swr_packets(qp, wr),
                        "packets of a WR");
    }
    vhca_snap_check(s, wr->num_psn || wr->fail ||
                       vhca_swr_is(wr, VHCA_WR_MEMOP), "packets of a WR");
}

/* ---- relations between them ---- */

/* Whether WRs are to be sent, not flushed. */
static bool is_sending(const struct vhca_qp *qp)
{
    return (qp->state == QHCA_QPS_RTS || qp->state == QHCA_QPS_SQD) &&
           !qp->req.flushing;
}

/* Whether @psn belongs to @wr; without packets it is where @wr begins. */
static bool inside(const struct vhca_swr *wr, uint32_t psn)
{
    uint32_t n = psn_add(psn, -wr->first_psn);

    return n < wr->num_psn || (!n && !wr->num_psn);
}

/* Return how many of @wr's PSNs are before @psn, all if it is not inside. */
static uint32_t before(const struct vhca_swr *wr, uint32_t psn)
{
    return MIN_OF(psn_add(psn, -wr->first_psn), wr->num_psn);
}

/* Count the PSNs of READs; only the oldest WR can be done in part. */
static uint32_t count_reads(struct vhca_qp *qp)
{
    const struct vhca_requester *r = &qp->req;
    uint32_t n = 0;

    for (uint32_t i = qp->sq.ci; i != qp->sq.next; i++) {
        const struct vhca_swr *wr = vhca_swr_at(qp, i);

        if (i - qp->sq.ci > r->snd_wqe - qp->sq.ci) {
            break;
        }
        if (vhca_swr_is(wr, VHCA_WR_READ)) {
            n += i == r->snd_wqe ? before(wr, r->snd_psn) : wr->num_psn;
            n -= i == qp->sq.ci ? before(wr, r->una_psn) : 0;
        }
    }
    return n;
}

/*
 * Whether each WR's PSNs end where the next WR's begin. The part of the oldest
 * that is done does not count: as many can be outstanding behind it.
 */
static bool chain_ok(struct vhca_qp *qp)
{
    uint32_t psn = qp->req.next_psn, total = 0;

    for (uint32_t i = qp->sq.next; i != qp->sq.ci; i--) {
        const struct vhca_swr *wr = vhca_swr_at(qp, i - 1);

        if (psn_add(wr->first_psn, wr->num_psn) != psn) {
            return false;
        }
        psn = wr->first_psn;
        total += wr->num_psn;
    }
    return qp->sq.ci == qp->sq.next ||
           total - before(vhca_swr_at(qp, qp->sq.ci), qp->req.una_psn) <=
           PSN_MASK;
}

static bool cursor_ok(struct vhca_qp *qp)
{
    const struct vhca_requester *r = &qp->req;
    uint32_t una = r->una_psn;
    uint32_t snd = psn_add(r->snd_psn, -una), max = psn_add(r->max_psn, -una);
    uint32_t oldest = qp->sq.ci;

    if (snd > max || max > psn_add(r->next_psn, -una) ||
        r->snd_wqe - oldest > qp->sq.next - oldest) {
        return false;
    }
    if (oldest == qp->sq.next) {
        return una == r->next_psn;
    }
    return inside(vhca_swr_at(qp, oldest), una) &&
           (r->snd_wqe == qp->sq.next ? r->snd_psn == r->next_psn :
            inside(vhca_swr_at(qp, r->snd_wqe), r->snd_psn));
}

/*
 * Whether the cursor, while nothing is sent, is where a reset or
 * vhca_sq_fail() has left it, in front of the WRs to be flushed.
 */
static bool cursor_rests(const struct vhca_qp *qp)
{
    const struct vhca_requester *r = &qp->req;
    const struct vhca_wq *sq = &qp->sq;

    return r->snd_wqe == sq->ci && r->snd_psn == r->next_psn &&
           r->max_psn == r->next_psn && r->una_psn == r->next_psn &&
           !r->stopped && !r->rnr_wait && !r->page_wait &&
           (!r->flushing || sq->next - sq->ci <= r->flush_to - sq->ci);
}

/* Whether the WRs that have begun take as many resources as are in use. */
static bool rd_atomic_ok(struct vhca_qp *qp)
{
    unsigned n = 0;

    for (uint32_t i = qp->sq.ci; i != qp->sq.next; i++) {
        n += vhca_swr_is(vhca_swr_at(qp, i), VHCA_WR_RD_ATOMIC);
    }
    return qp->req.rd_atomic <= n;
}

/* Whether the queue has stopped for a WR that will fail, or for none. */
static bool stopped_ok(struct vhca_qp *qp)
{
    bool fails = false;

    for (uint32_t i = qp->sq.ci; i != qp->sq.next; i++) {
        fails = fails || vhca_swr_at(qp, i)->fail;
    }
    return qp->req.stopped == fails;
}

/* A QP in ERR sends nothing until a reset has cleared all of this. */
static bool psns_ok(struct vhca_qp *qp)
{
    if (qp->state == QHCA_QPS_ERR) {
        return true;
    }
    return rd_atomic_ok(qp) &&
           (is_sending(qp) ?
            chain_ok(qp) && cursor_ok(qp) && stopped_ok(qp) : cursor_rests(qp));
}

static bool queue_ok(const struct vhca_qp *qp)
{
    const struct vhca_wq *sq = &qp->sq;
    uint32_t posted = sq->pi - sq->ci, started = sq->next - sq->ci;

    if (started > VHCA_INFLIGHT || started > posted ||
        (started && !qp->req.swr) || (posted && !sq->present)) {
        return false;
    }
    if (qp->state < QHCA_QPS_RTS) {
        return !posted && !qp->req.flushing;
    }
    return qp->state == QHCA_QPS_ERR || !qp->req.flushing ||
           qp->req.flush_to - sq->ci <= posted;
}

void vhca_requester_walk(struct vhca_snap *s, struct vhca_qp *qp)
{
    struct vhca_requester *r = &qp->req;
    bool has_swr = vhca_snap_num(s, "swr", r->swr != NULL, 1, 1);

    vhca_snap_fields(s, req_fields, r);
    if (s->load && has_swr && !s->bad) {
        r->swr = calloc(VHCA_INFLIGHT, sizeof(*r->swr));
        if (!r->swr) {
            vhca_snap_refuse(s, "swr", "cannot be allocated");
        }
    }
    if (!vhca_snap_check(s, queue_ok(qp), "send queue")) {
        return;
    }
    for (uint32_t i = qp->sq.ci; i != qp->sq.next && !s->bad; i++) {
        walk_swr(s, qp, vhca_swr_at(qp, i));
    }
    if (!s->bad) {
        vhca_snap_check(s, psns_ok(qp), "PSNs");
    }
    if (s->load && !s->bad && is_sending(qp)) {
        r->read_psns = count_reads(qp);
    }
}

bool vhca_requester_timer_ok(const struct vhca_qp *qp)
{
    const struct vhca_requester *r = &qp->req;

    if (!r->timer.pos) {
        return !(r->rnr_wait || r->page_wait) || !is_sending(qp);
    }
    return is_sending(qp) &&
           (r->page_wait || (vhca_qp_is(qp, VHCA_RELIABLE) &&
                             (r->rnr_wait || r->una_psn != r->max_psn)));
}

const struct vhca_snap_ref vhca_requester_timer_ref = {
    "QP", offsetof(struct vhca_qp, req.timer), vhca_qp_slot, vhca_qp_at_slot,
    vhca_requester_timeout
};
