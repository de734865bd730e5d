/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: fault rules where packets of QPs leave and arrive.
 */
#include "link.h"

void qhca_fault_take(struct qhca_engine *e, struct qhca_fault_held *h)
{
    qhca_spend_bytes(e, h->len, QHCA_UNIT_FRAME);
    if (qhca_port_up(e)) {
        qhca_roce_take(e, h->frame, h->len, h->from);
    }
    qhca_fault_release(e, h);
}

static void raise_event(struct qhca_engine *e,
                        const struct qhca_fault_frame *f)
{
    struct qhca_qp *qp = qhca_qp_get(e, f->qpn);

    if (qp) {
        qhca_fault_raise(e, qp, &f->does);
    }
}

/*
 * @f has passed. A held frame for a group, which may have many members, gets a
 * step of its own.
 */
static void release_behind(struct qhca_engine *e,
                           const struct qhca_fault_frame *f)
{
    struct qhca_fault_held *h = qhca_fault_behind(e, f);

    if (h && f->qpn == QHCA_QPN_MCAST) {
        qhca_fault_hurry(e, h);
    } else if (h) {
        qhca_fault_take(e, h);
    }
}

/* The frame arrives so many times, behind its rule. */
static void arrive(struct qhca_engine *e, const struct qhca_fault_frame *f,
                   unsigned times)
{
    if (f->does.action == QHCA_FAULT_NAK &&
        qhca_roce_refuse(e, f->frame, f->len, f->from,
                         (uint8_t)f->does.value)) {
        return;
    }
    if (f->does.action == QHCA_FAULT_RAISE) {
        raise_event(e, f);
    }
    if (times) {
        qhca_roce_take(e, f->frame, f->len, f->from);
    }
    if (times > 1 && f->qpn == QHCA_QPN_MCAST) {
        qhca_fault_repeat(e, f);
    } else if (times > 1) {
        qhca_spend_bytes(e, f->len, QHCA_UNIT_FRAME);
        qhca_roce_take(e, f->frame, f->len, f->from);
    }
    if (times) {
        release_behind(e, f);
    }
}

void qhca_fault_rx(struct qhca_engine *e, const uint8_t *frame, size_t len,
                   uint32_t from)
{
    uint8_t copy[ROCE_MAX_FRAME];
    struct qhca_fault_frame f = {
        .point = QHCA_FAULT_RX, .frame = copy, .len = len, .from = from,
    };

    if (len > sizeof(copy)) {
        qhca_roce_take(e, frame, len, from);
        return;
    }
    memcpy(copy, frame, len);
    arrive(e, &f, qhca_fault_frame(e, &f));
}

/* The frame leaves so many times, behind its rule. */
static void leave(struct qhca_engine *e, struct qhca_qp *qp,
                  const struct qhca_way *way, const struct qhca_burst *burst,
                  const struct qhca_fault_frame *f, unsigned times)
{
    struct qhca_fault_held *h;

    if (f->does.action == QHCA_FAULT_RAISE) {
        qhca_fault_raise(e, qp, &f->does);
    }
    for (unsigned i = 0; i < times; i++) {
        qhca_link_frame(e, qp, way, burst, f->len);
    }
    h = times ? qhca_fault_behind(e, f) : NULL;
    if (h) {
        qhca_fault_send(e, h);
    }
}

static struct qhca_fault_frame frame_of(const struct qhca_qp *qp,
                                        const struct qhca_way *way,
                                        struct qhca_burst *burst, size_t len)
{
    return (struct qhca_fault_frame) {
        .point = QHCA_FAULT_TX, .frame = burst->frame, .len = len,
        .qpn = qp->qpn, .from = qp->qpn, .loop = way->loop, .net = way->net,
    };
}

void qhca_fault_tx(struct qhca_engine *e, struct qhca_qp *qp,
                   const struct qhca_way *way, struct qhca_burst *burst,
                   size_t len)
{
    struct qhca_fault_frame f = frame_of(qp, way, burst, len);
    unsigned times = qhca_fault_frame(e, &f);

    leave(e, qp, way, burst, &f, times);
}

/*
 * What a rule for packets that leave, or for those that arrive, does to one
 * that crosses; it is at *@point then.
 */
static struct qhca_fault judge(struct qhca_engine *e, const struct qhca_qp *qp,
                               const struct qhca_way *way,
                               const struct roce_packet *p,
                               enum qhca_fault_point *point)
{
    struct qhca_fault does = { .action = QHCA_FAULT_NONE };

    *point = QHCA_FAULT_TX;
    if (qhca_faults_at(e, QHCA_FAULT_TX)) {
        does = qhca_fault_packet(e, QHCA_FAULT_TX, qp->qpn, p);
    }
    if (does.action == QHCA_FAULT_NONE && qhca_faults_at(e, QHCA_FAULT_RX)) {
        *point = QHCA_FAULT_RX;
        does = qhca_fault_packet(e, QHCA_FAULT_RX, way->peer->qpn, p);
    }
    return does;
}

/* Frames that were held back until a packet of these QPs has passed. */
static void release_both(struct qhca_engine *e, const struct qhca_qp *qp,
                         const struct qhca_way *way)
{
    struct qhca_fault_frame f = {
        .point = QHCA_FAULT_TX, .qpn = qp->qpn,
    };
    struct qhca_fault_held *h = qhca_fault_behind(e, &f);

    if (h) {
        qhca_fault_send(e, h);
    }
    f.point = QHCA_FAULT_RX;
    f.qpn = way->peer->qpn;
    release_behind(e, &f);
}

void qhca_fault_cross(struct qhca_engine *e, struct qhca_qp *qp,
                      const struct qhca_way *way, struct qhca_burst *burst)
{
    enum qhca_fault_point point;
    struct qhca_fault does = judge(e, qp, way, &burst->p, &point);
    struct qhca_fault_frame f;
    struct roce_packet p;
    unsigned times;

    if (does.action == QHCA_FAULT_NONE) {
        qhca_link_cross(e, qp, way->peer, &burst->p);
        release_both(e, qp, way);
        return;
    }
    f = frame_of(qp, way, burst, qhca_link_finish(qp, way, burst));
    f.does = does;
    qhca_count_sent(e, qp, 1, f.len);
    (void)roce_parse(&p, f.frame, f.len);       /* our own: it is well-formed */
    if (point == QHCA_FAULT_TX) {
        times = qhca_fault_act(e, &f, &p);
        leave(e, qp, way, burst, &f, times);
        return;
    }
    f.point = QHCA_FAULT_RX;
    f.qpn = p.dest_qp;
    qhca_pace_take(&e->port->pace, e->now, f.len);
    times = qhca_fault_act(e, &f, &p);
    arrive(e, &f, times);
}

void qhca_fault_send(struct qhca_engine *e, struct qhca_fault_held *h)
{
    if (h->loop) {
        qhca_tx(e, h->frame, h->len, h->from);
    }
    if (h->net) {
        qhca_tx(e, h->frame, h->len, 0);
    }
    qhca_fault_release(e, h);
}
