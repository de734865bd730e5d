/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: doorbell records of receive queues, which let the driver post
 * WQEs without a doorbell.
 *
 * The device reads the producer index when it needs a WQE. A QP in ERR needs
 * none, but has to flush those that are posted, so it asks for doorbells. The
 * device writes its wish before it reads the index, and the producer writes the
 * index before it reads the wish, so at least one of them sees the other's.
 */
#include "rq.h"

static uint64_t record(const struct vhca_wq *wq, size_t field)
{
    return vhca_wq_ring_bytes(wq) + field;
}

bool vhca_rq_look(struct qhca_engine *e, struct vhca_wq *wq, uint32_t held)
{
    uint32_t pi;

    if (!wq->dbrec) {
        return true;
    }
    if (!vhca_mem_read(e, &wq->mem, record(wq, 0), &pi, sizeof(pi))) {
        return false;
    }
    pi = le32toh(pi);
    if (!vhca_wq_index_ok(wq, pi, held)) {
        vhca_count(e, QHCA_CNT_BAD_DOORBELL);
        vhca_guest_error(e, "receive queue: producer index %u, was %u", pi,
                         wq->pi);
        return false;
    }
    wq->pi = pi;
    return true;
}

void vhca_recv_stop(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_wq *rq = &qp->rq;
    const uint32_t ring = htole32(1);

    if (!rq->dbrec || rq->rings) {
        return;
    }
    rq->rings = true;
    if (vhca_mem_write(e, &rq->mem,
                       record(rq, offsetof(struct qhca_rq_dbrec, ring)), &ring,
                       sizeof(ring))) {
        (void)vhca_rq_look(e, rq, 0);
    }
}

void vhca_recv_reset(struct qhca_engine *e, struct vhca_qp *qp)
{
    const struct qhca_rq_dbrec none = { 0 };

    if (qp->rq.dbrec) {
        (void)vhca_mem_write(e, &qp->rq.mem, record(&qp->rq, 0), &none,
                             sizeof(none));
    }
}
