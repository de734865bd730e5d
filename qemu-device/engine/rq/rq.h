/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, rq: where received messages go: receive work requests, from the
 * QP's own queue, from a shared receive queue, or from the SRQ that an XRC
 * packet names.
 */
#ifndef QHCA_ENGINE_RQ_H
#define QHCA_ENGINE_RQ_H

#include "../qp/qp.h"

#define VHCA_MAX_SRQ            4096u
#define VHCA_MAX_XRCD           4096u
#define VHCA_SRQ_LOG_MAX        14

/*
 * struct vhca_srq - a shared receive queue
 *
 * The WRs in the ring and those @held together are never more than its entries,
 * so there is always room to give a WR back.
 */
struct vhca_srq {
    uint32_t srqn, uar;
    struct vhca_holder *pd;
    struct vhca_key_user user;
    struct vhca_wq wq;          /* ci: next WQE to be taken */
    uint32_t held;              /* WRs that QPs have taken and not completed */
    uint32_t counted;           /* the same, while the invariants are checked */
    bool moving;                /* resizing, and no WR was given back yet */
    uint32_t limit;             /* 0: not armed */
    uint32_t users;             /* QPs */
    bool failed;                /* can only be destroyed (G-010) */
    bool gone;                  /* XRC: being destroyed */
    struct vhca_async async;
    struct vhca_holder *xrcd;   /* XRC: its domain; else NULL */
    struct vhca_cq *cq;         /* XRC: where WRs complete; else NULL */
};

struct vhca_rqs {
    struct vhca_table srq;
    struct vhca_table xrcd;     /* users of a domain are SRQs and XRC_TGT QPs */
};

extern const struct vhca_room vhca_rq_room;

/* ---- recv.c ---- */

/*
 * Take the next receive WR, of the QP or of the SRQ that it has now, unless one
 * from there is in use.
 */
enum vhca_wqe_result vhca_recv_take(struct qhca_engine *e, struct vhca_qp *qp);
/* Return whose keys the receive WR in use has: its QP or its SRQ (G-003). */
static inline const struct vhca_key_user *
vhca_recv_user(const struct vhca_qp *qp)
{
    const struct vhca_srq *srq = qp->rsp.rwr.srq;

    VHCA_ASSERT(qp->rsp.rwr.taken);
    return srq ? &srq->user : &qp->user;
}

/*
 * The request or message that has taken the receive WR, if any has, does not
 * need it any more: let it be the next one of the queue that it is from.
 */
void vhca_recv_give_back(struct qhca_engine *e, struct vhca_qp *qp);
/* The receive WR in use is complete, or no message needs it any more. */
static inline void vhca_recv_end(struct vhca_rwr *rwr)
{
    rwr->taken = rwr->kept = false;
    rwr->srq = NULL;
}

/* Complete the receive WR in use; @p is the last packet of its message. */
void vhca_recv_complete(struct qhca_engine *e, struct vhca_qp *qp,
                        const struct roce_packet *p, uint8_t opcode,
                        uint32_t byte_len);
/* Complete it for an Ethernet frame; @tag of its rule, @flags of the CQE. */
void vhca_recv_complete_frame(struct qhca_engine *e, struct vhca_qp *qp,
                              uint32_t byte_len, uint32_t tag, uint16_t flags);
/* Fail the receive WR in use; the caller decides about the QP. */
void vhca_recv_fail(struct qhca_engine *e, struct vhca_qp *qp,
                    enum qhca_cqe_status status);
/* Whether a QP in ERR has receive WRs to flush or owes LAST_WQE_REACHED. */
bool vhca_recv_to_flush(const struct vhca_qp *qp);
/* Flush the oldest receive WR; with an SRQ, only the one in use. */
void vhca_recv_flush_one(struct qhca_engine *e, struct vhca_qp *qp);
/* Read WQE @index of a receive queue; wr_id is valid unless UNREADABLE. */
enum vhca_wqe_result vhca_rwr_fetch(struct qhca_engine *e,
                                    const struct vhca_wq *wq, uint32_t index,
                                    struct vhca_rwr *rwr);
/*
 * Write @rwr, which is from a queue with this stride, back as WQE @index.
 * Returns false if DMA failed.
 */
bool vhca_rwr_store(struct qhca_engine *e, const struct vhca_wq *wq,
                    uint32_t index, const struct vhca_rwr *rwr);

/* ---- recv.c: doorbell records; queues without one are left alone ---- */

/*
 * Read the producer index of @wq; @held as for vhca_wq_index_ok(). Returns
 * false if DMA failed or the index is out of range.
 */
bool vhca_rq_look(struct qhca_engine *e, struct vhca_wq *wq, uint32_t held);
/*
 * For a QP in ERR: ask for doorbells from now on, and learn what was posted
 * before. Does nothing the second time.
 */
void vhca_recv_stop(struct qhca_engine *e, struct vhca_qp *qp);
/* For a QP in RESET: write the doorbell record's initial value. */
void vhca_recv_reset(struct qhca_engine *e, struct vhca_qp *qp);

/* ---- srq.c ---- */

/* Check the parameters of CREATE_SRQ; returns enum qhca_cmd_status. */
int vhca_srq_check_create(const struct qhca_engine *e,
                          const struct qhca_cmd_create_srq *r);
/* Find the objects it refers to, without counting it as a user of them. */
int vhca_srq_find_objects(struct qhca_engine *e, struct vhca_srq *srq,
                          const struct qhca_cmd_create_srq *r);
/* Free all SRQs, for a reset; the QPs must have been freed. */
void vhca_srq_free_all(struct qhca_engine *e);
/* Count @by users more for each object that it refers to. */
void vhca_srq_count_users(struct vhca_srq *srq, int by);
/* Return SRQ @srqn, a number which may come from guest or network, or NULL. */
struct vhca_srq *vhca_srq_get(struct qhca_engine *e, uint32_t srqn);
/* SRQ doorbell; one that has failed refuses it. */
bool vhca_srq_doorbell(struct qhca_engine *e, const struct vhca_db *db);
/* vhca_recv_take() for a QP with an SRQ and without a receive WR in use. */
enum vhca_wqe_result vhca_srq_take(struct qhca_engine *e, struct vhca_qp *qp);
/*
 * End the use of a receive WR of an SRQ, which is complete, or whose SRQ is
 * destroyed.
 */
void vhca_srq_release(struct vhca_rwr *rwr);
/* Give it back to the SRQ that it is from, for the next QP to take. */
void vhca_srq_give_back(struct qhca_engine *e, struct vhca_rwr *rwr);
/* Let the SRQ fail forever, and raise SRQ_ERR. */
void vhca_srq_fail(struct qhca_engine *e, struct vhca_srq *srq);

/* ---- snapshot.c ---- */

void vhca_rq_walk(struct vhca_snap *s);
/* Whether QPs hold as many WRs as @counted, and the ring has room for them. */
bool vhca_srq_counts_ok(const struct vhca_srq *srq);

/* ---- xrc.c ---- */

/*
 * Let an XRC_TGT QP receive from the SRQ that the request names, and use its
 * keys; QPs of other types stay as they are. Returns false if the SRQ does not
 * exist, is of another domain, or is not the one of the message in progress.
 */
bool vhca_xrc_select(struct qhca_engine *e, struct vhca_qp *qp,
                     const struct roce_packet *p);
/*
 * Set @user to the one whose keys the response to a request to SRQ @srqn uses.
 * Returns false if the SRQ is gone.
 */
bool vhca_xrc_user(struct qhca_engine *e, const struct vhca_qp *qp,
                   uint32_t srqn, struct vhca_key_user *user);
/*
 * Make @srq unknown to requests, and take it, and WRs of it, from all QPs.
 * *@done, initially 0, is the progress. Returns false if the budget ended
 * first.
 */
bool vhca_xrc_srq_gone(struct qhca_engine *e, struct vhca_srq *srq,
                       uint32_t *done);
/*
 * Let the SRQs fail that complete on @cq, which has failed. Returns false if
 * the budget ended first.
 */
bool vhca_xrc_cq_failed(struct qhca_engine *e, struct vhca_cq *cq);

#endif /* QHCA_ENGINE_RQ_H */
