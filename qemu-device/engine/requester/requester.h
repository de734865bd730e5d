/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, requester: the sending half of a QP. It reads send WQEs, sends
 * their packets, takes the responses, retries, and completes the work requests
 * in order (IBTA 9.7.2, 9.9.2; of UC 9.8.2, of UD 9.8.3).
 */
#ifndef QHCA_ENGINE_REQUESTER_H
#define QHCA_ENGINE_REQUESTER_H

#include "../qp/qp.h"

/* Request packets a QP may have sent and not seen acknowledged. */
#define VHCA_WINDOW         64u
/* An ACK is requested at least every so many packets. */
#define VHCA_ACKREQ_EVERY   16u
/* Timeouts in a row that do not count, with a share of one percent. */
#define VHCA_MAX_GRACES     100u
/*
 * A READ longer than this many packets is requested in pieces: PSNs are
 * compared in half windows of 2^23, so no request may span as many (D-003).
 */
#define VHCA_READ_PIECE     65536u
/*
 * A READ to pages that may be absent looks at the pages of this many bytes, and
 * then asks for these: data that arrive for an absent page are lost.
 */
#define VHCA_PAGED_PIECE    (1u << 20)

/*
 * struct vhca_swr - a send work request that has been started: the only copy of
 * its WQE, and the PSNs that it owns
 *
 * A QP has memory for these only while it has some outstanding: at the end of
 * its turn it leaves the memory to the next QP, and it always begins with the
 * first place. So thousands of QPs that send one message each use the same few
 * lines of the CPU's cache.
 */
struct vhca_swr {
    uint64_t wr_id;
    uint64_t raddr;
    uint64_t swap_add, compare;
    struct {
        struct qhca_av av;      /* port, GID index and PD have been checked */
        uint32_t qpn, qkey;
    } ud;
    uint32_t rkey;
    uint32_t srqn;              /* XRC: SRQ of the receiver */
    uint32_t imm;               /* network order */
    uint32_t inv_key;
    uint32_t length;
    uint32_t flush_len;         /* FLUSH: length in the WQE */
    uint8_t flush_type, flush_level;
    uint32_t first_psn, num_psn;
    uint16_t num_seg;
    uint8_t opcode;             /* enum qhca_wr_opcode */
    uint8_t flags;              /* QHCA_WQE_* */
    uint8_t fail;               /* status to fail with once it is the oldest */
    bool executed;              /* without packets: it has been executed */
    bool paged;                 /* its result goes to a region of type ODP */
    union {
        struct vhca_memop memop;
        struct vhca_seg seg[QHCA_MAX_SEND_SGE];
        uint8_t inline_data[QHCA_MAX_INLINE];
    };
};

/* Return the place of WQE @index, req.snd_wqe for the one at the cursor. */
static inline struct vhca_swr *vhca_swr_at(struct vhca_qp *qp, uint32_t index)
{
    return &qp->req.swr[(index - qp->req.swr_base) % VHCA_INFLIGHT];
}

/* ---- swqe.c: opcodes, and from the ring to struct vhca_swr ---- */

enum {
    VHCA_WR_INLINE = 0x1,     /* may carry inline data */
    VHCA_WR_8_BYTES = 0x2,    /* has exactly 8 bytes (B-032, B-074) */
    VHCA_WR_NO_DATA = 0x4,
    VHCA_WR_BARE = 0x8,       /* its one packet has no payload */
    VHCA_WR_RD_ATOMIC = 0x10, /* counts towards max_rd_atomic (D-067) */
    VHCA_WR_ATOMIC = 0x20,    /* answered by an ATOMIC ACKNOWLEDGE */
    VHCA_WR_HAS_RESULT = 0x40,    /* the response has data for its SGEs */
    VHCA_WR_TAKES_WR = 0x80,  /* takes a receive WR, so SE matters (B-045) */
    VHCA_WR_MEMOP = 0x100,    /* has no packets */
    VHCA_WR_KERNEL = 0x200,   /* names DMA addresses: not for processes */
    VHCA_WR_READ = 0x400,     /* the response has a PSN per MTU of data */
    VHCA_WR_KEY = 0x800,      /* names a key to invalidate */
};

/*
 * struct vhca_wr_info - the properties of a WR opcode
 * @types: set of QP types that may have it; empty: not offered
 * @rules: set of the above
 * @cqe: opcode of its completion
 * @packet: RC opcodes of its packets by place: middle, first, last, only
 */
struct vhca_wr_info {
    uint16_t types, rules;
    uint8_t cqe;
    uint8_t packet[4];
};

extern const struct vhca_wr_info vhca_wr_infos[256];

/* Unknown opcodes have an empty set of types. */
static inline const struct vhca_wr_info *vhca_wr_info(uint8_t opcode)
{
    return &vhca_wr_infos[opcode];
}

/* Whether the WR's opcode has one of @rules. */
static inline bool vhca_swr_is(const struct vhca_swr *wr, unsigned rules)
{
    return vhca_wr_info(wr->opcode)->rules & rules;
}

/*
 * Read send WQE @index into @wr, in one copy. If it is BAD, wr->fail says why;
 * wr_id and opcode are valid unless UNREADABLE.
 */
enum vhca_wqe_result vhca_wqe_fetch_send(struct qhca_engine *e,
                                         struct vhca_qp *qp, uint32_t index,
                                         struct vhca_swr *wr);
/* Copy @len bytes of the WR's data, inline or not, from byte @off on. */
enum vhca_mem_result vhca_swr_gather(struct qhca_engine *e, struct vhca_qp *qp,
                                     const struct vhca_swr *wr, uint64_t off,
                                     uint8_t *dst, size_t len);

/* ---- build.c ---- */

/*
 * Build the packet at the cursor in @burst, or up to @max of its message if
 * they go across; nothing else changes. Returns false if its buffers have
 * become inaccessible and the WR has failed, or waits for a page.
 */
bool vhca_requester_next(struct qhca_engine *e, struct vhca_qp *qp,
                         uint32_t max, struct vhca_burst *burst);
/*
 * Return the PSNs, from the cursor on, that one READ request asks for. If it is
 * repeated in part, it ends where the first one did: the peer takes no more for
 * a duplicate.
 */
static inline uint32_t vhca_read_piece(const struct vhca_qp *qp,
                                       const struct vhca_swr *wr)
{
    uint32_t n = psn_add(qp->req.snd_psn, -wr->first_psn);
    uint32_t piece = wr->paged ? VHCA_PAGED_PIECE / qp->mtu : VHCA_READ_PIECE;

    return MIN_OF(wr->num_psn - n, piece - n % piece);
}
/*
 * Packets between the oldest unacknowledged one and the cursor. Packets that
 * the peer will send do not count: max_rd_atomic limits READs, however long
 * they are.
 */
static inline uint32_t vhca_requester_unacked(const struct vhca_requester *r)
{
    uint32_t n = psn_add(r->snd_psn, -r->una_psn);

    return n - MIN_OF(n, r->read_psns);
}

/* ---- requester.c ---- */

/* Return the number of packets of @wr. */
uint32_t vhca_swr_packets(const struct vhca_qp *qp, const struct vhca_swr *wr);
/*
 * Read WQEs, and execute those without packets, within the budget. Returns
 * whether there is a packet to send now, for vhca_requester_next().
 */
bool vhca_requester_poll(struct qhca_engine *e, struct vhca_qp *qp);
/*
 * Advance the cursor after the packets in @p have been sent. For an unreliable
 * service this can complete the WR, and its owner may then reuse the buffers.
 */
void vhca_requester_sent(struct qhca_engine *e, struct vhca_qp *qp,
                         const struct roce_packet *p);
/* Leave the memory for send WRs to others, if no WR is outstanding. */
void vhca_requester_rest(struct qhca_engine *e, struct vhca_qp *qp);
/* Drop all send WRs, without CQEs. */
void vhca_requester_forget(struct qhca_engine *e, struct vhca_qp *qp);
/* Whether there is something to send now. */
bool vhca_requester_ready(struct vhca_qp *qp);
/* For SQD: put a WR back that has been read but of which nothing was sent. */
void vhca_requester_hold(struct vhca_qp *qp);

/* ---- retry.c ---- */

/* Go back to the oldest unacknowledged PSN, and send again from there. */
void vhca_requester_rewind(struct qhca_engine *e, struct vhca_qp *qp);
/* Rewind at the cost of one retry; fail the WR if there is none left. */
void vhca_requester_retry(struct qhca_engine *e, struct vhca_qp *qp);
/* (Re)start the ACK timer, or stop it if nothing is outstanding. */
void vhca_requester_timer(struct qhca_engine *e, struct vhca_qp *qp);
/* The WR at the cursor waits for the page that was just found absent. */
void vhca_requester_park(struct qhca_engine *e, struct vhca_qp *qp);
/*
 * Answer the open page fault of the requester: go on, or fail the WR that met
 * it.
 */
void vhca_requester_resume(struct qhca_engine *e, struct vhca_qp *qp,
                           bool deny);
/* The function of req.timer. */
void vhca_requester_timeout(struct qhca_engine *e, struct vhca_timer *t);

/* ---- snapshot.c ---- */

/* Walk over the requester, after the rest of the QP except for its number. */
void vhca_requester_walk(struct vhca_snap *s, struct vhca_qp *qp);
/* Whether the timer runs exactly if it has to. */
bool vhca_requester_timer_ok(const struct vhca_qp *qp);
extern const struct vhca_snap_ref vhca_requester_timer_ref;

/* ---- completer.c ---- */

/*
 * Take responses. Returns how many of the packets in @p have been dealt with:
 * all, or, if one of them needs anything special, the first.
 */
uint32_t vhca_completer_rx(struct qhca_engine *e, struct vhca_qp *qp,
                           const struct roce_packet *p);

/* Take an ACK that was handed across without a packet, in a turn of the QP. */
void vhca_completer_ack(struct qhca_engine *e, struct vhca_qp *qp,
                        uint32_t psn);

/* ---- complete.c: the end of send WRs, in order ---- */

/*
 * Complete the oldest send WR with success, with a CQE if it wants one, and
 * those behind it that have been executed without packets.
 */
void vhca_sq_complete(struct qhca_engine *e, struct vhca_qp *qp);
/*
 * Fail the oldest send WR with @status, and enter the state where the rest is
 * flushed: ERR for RC, SQE for the others, whose receive queue
 * continues to work.
 */
void vhca_sq_fail(struct qhca_engine *e, struct vhca_qp *qp,
                  enum qhca_cqe_status status);
/*
 * @wr has failed: it completes with @status once it is the oldest. Until then
 * nothing is started behind it.
 */
void vhca_sq_fail_wr(struct qhca_engine *e, struct vhca_qp *qp,
                     struct vhca_swr *wr, enum qhca_cqe_status status);
/* Fail the oldest send WR if it was found bad while others were before it. */
void vhca_sq_fail_oldest(struct qhca_engine *e, struct vhca_qp *qp);
/* Complete the oldest send WR, started or not, with a flush error. */
void vhca_sq_flush_one(struct qhca_engine *e, struct vhca_qp *qp);

#endif /* QHCA_ENGINE_REQUESTER_H */
