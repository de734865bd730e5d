/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, rq: where received messages go. Receive work requests, of
 * the QP's own queue, of a shared receive queue, or of one that a packet of XRC
 * names.
 */
#ifndef QHCA_ENGINE_RQ_H
#define QHCA_ENGINE_RQ_H

#include "../qp/qp.h"

#define QHCA_MAX_SRQ            4096u
#define QHCA_MAX_XRCD           4096u
#define QHCA_SRQ_LOG_MAX        14

/*
 * struct vhca_srq - a shared receive queue
 *
 * WRs in the ring and those @held are never more than the ring has entries, so
 * there is always room in it for one that comes back.
 */
struct vhca_srq {
    uint32_t srqn, uar;
    struct vhca_pd *pd;
    struct vhca_key_user user;
    struct vhca_wq wq;          /* ci: next WQE to be taken */
    uint32_t held;              /* WRs that QPs have taken and not completed */
    bool moving;                /* being resized, and none has come back */
    uint32_t limit;             /* 0: not armed */
    uint32_t users;             /* QPs */
    bool failed;                /* only destroy helps (G-010) */
    bool gone;                  /* XRC: being destroyed */
    struct vhca_async async;
    struct vhca_xrcd *xrcd;     /* XRC: its domain, and */
    struct vhca_cq *cq;         /* where it completes; else NULL */
};

/* struct vhca_xrcd - an XRC domain: its users are SRQs and XRC_TGT QPs */
struct vhca_xrcd {
    struct vhca_holder base;
};

struct vhca_rqs {
    struct vhca_table srq, xrcd;
};

extern const struct vhca_room vhca_rq_room;

/* ---- recv.c ---- */

/*
 * Makes the next receive WR, of the QP or of its SRQ, the one in use, unless
 * one is.
 */
enum vhca_wqe_result vhca_recv_take(struct qhca_engine *e, struct vhca_qp *qp);
/*
 * Scatters @len bytes over the receive WR in use, from byte @off of it on; the
 * range is inside. Keys are those of the QP's PD, or of its SRQ's (G-003).
 */
enum vhca_mem_result vhca_recv_write(struct qhca_engine *e, struct vhca_qp *qp,
                                     uint64_t off, const void *buf, size_t len);
/* The same, of which nothing is counted if it fails. */
bool vhca_recv_try_write(struct qhca_engine *e, struct vhca_qp *qp,
                         uint64_t off, const void *buf, size_t len);
/* The receive WR in use has its message, of which @p is the last packet. */
void vhca_recv_complete(struct qhca_engine *e, struct vhca_qp *qp,
                        const struct roce_packet *p, uint8_t opcode,
                        uint32_t byte_len);
/* The receive WR in use fails; what that means for the QP is the caller's. */
void vhca_recv_fail(struct qhca_engine *e, struct vhca_qp *qp,
                    enum qhca_cqe_status status);
/* Whether a QP in ERR has receive WRs to flush, or LAST_WQE_REACHED to say. */
bool vhca_recv_to_flush(const struct vhca_qp *qp);
/* Flushes the oldest receive WR; of an SRQ's, only the one in use. */
void vhca_recv_flush_one(struct qhca_engine *e, struct vhca_qp *qp);
/* Reads WQE @index of a receive queue; wr_id is valid unless UNREADABLE. */
enum vhca_wqe_result vhca_rwr_fetch(struct qhca_engine *e,
                                    const struct vhca_wq *wq, uint32_t index,
                                    struct vhca_rwr *rwr);
/* Writes @rwr back as WQE @index. False: the ring cannot be written. */
bool vhca_rwr_store(struct qhca_engine *e, const struct vhca_wq *wq,
                    uint32_t index, const struct vhca_rwr *rwr);

/* ---- dbrec.c: doorbell records; for queues without one nothing to do ---- */

/*
 * Learns what has been posted to @wq; @held as for vhca_wq_index_ok(). False:
 * the record cannot be read, or makes no sense.
 */
bool vhca_rq_look(struct qhca_engine *e, struct vhca_wq *wq, uint32_t held);
/*
 * A QP in ERR: from now on a doorbell says what is posted, and what was posted
 * before is known. Does nothing the second time.
 */
void vhca_recv_stop(struct qhca_engine *e, struct vhca_qp *qp);
/* A QP in RESET: its record is as it was at first. */
void vhca_recv_reset(struct qhca_engine *e, struct vhca_qp *qp);

/* ---- srq.c ---- */

/* Whether an SRQ can be as the command describes it: enum qhca_cmd_status. */
int vhca_srq_check_create(const struct qhca_engine *e,
                          const struct qhca_cmd_create_srq *r);
/* Finds what it refers to; who counts the users is the caller. */
int vhca_srq_find_objects(struct qhca_engine *e, struct vhca_srq *srq,
                          const struct qhca_cmd_create_srq *r);
/* After the QPs. */
void vhca_srq_free_all(struct qhca_engine *e);
/* The objects it refers to have one user more, or less. */
void vhca_srq_count_users(struct vhca_srq *srq, int by);
/* The SRQ of number @srqn, which may come from guest or network, or NULL. */
struct vhca_srq *vhca_srq_get(struct qhca_engine *e, uint32_t srqn);
/*
 * SRQ doorbell. False: no such queue on that page, it has failed, or the index
 * is out of range.
 */
bool vhca_srq_doorbell(struct qhca_engine *e, unsigned page, uint32_t srqn,
                       uint32_t pi);
/* vhca_recv_take() of a QP with an SRQ and no receive WR in use. */
enum vhca_wqe_result vhca_srq_take(struct qhca_engine *e, struct vhca_qp *qp);
/* The receive WR in use, of the SRQ, is complete, or its SRQ goes. */
void vhca_srq_release(struct vhca_qp *qp);
/* The receive WR in use goes back to the SRQ, for the next QP to take. */
void vhca_srq_give_back(struct qhca_engine *e, struct vhca_qp *qp);
/* The SRQ has failed, for good; its owner is told. */
void vhca_srq_fail(struct qhca_engine *e, struct vhca_srq *srq);

/* ---- snapshot.c ---- */

void vhca_rq_walk(struct vhca_snap *s);
/* Whether its ring has room for all the WRs that QPs hold. */
bool vhca_srq_counts_ok(const struct vhca_srq *srq);

/* ---- xrc.c ---- */

/* The XRC domain of number @xrcdn, or NULL. */
struct vhca_xrcd *vhca_xrcd_get(struct qhca_engine *e, uint32_t xrcdn);
/*
 * The SRQ that a request to a QP of type XRC_TGT names is where it receives
 * from, and whose keys it uses; QPs of other types are fine as they are. False:
 * no such SRQ, one of another domain, or not that of the message in progress.
 */
bool vhca_xrc_select(struct qhca_engine *e, struct vhca_qp *qp,
                     const struct roce_packet *p);
/*
 * Whose keys the answer to a request to SRQ @srqn uses. False: the SRQ is gone.
 */
bool vhca_xrc_user(struct qhca_engine *e, const struct vhca_qp *qp,
                   uint32_t srqn, struct vhca_key_user *user);
/*
 * @srq goes: no request finds it any more, and QPs that have a WR of it lose
 * that; *@done, at first 0, is how far that has come. False: not all of them
 * yet, as the budget goes.
 */
bool vhca_xrc_srq_gone(struct qhca_engine *e, struct vhca_srq *srq,
                       uint32_t *done);
/*
 * The SRQs that complete on @cq have failed with it. False: the budget did not
 * do for all of them.
 */
bool vhca_xrc_cq_failed(struct qhca_engine *e, struct vhca_cq *cq);

#endif /* QHCA_ENGINE_RQ_H */
