/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: fault rules for packets that leave and arrive. */
#include "link.h"

void vhca_rule_take(struct qhca_engine *e, struct vhca_rule_held *h)
{
    vhca_spend_bytes(e, h->len, VHCA_UNIT_FRAME);
    if (vhca_port_up(e)) {
        vhca_roce_take(e, h->frame, h->len, h->from);
    }
    vhca_rule_release(e, h);
}

/*
 * Whether a second frame gets a turn of its own: the first one has used up the
 * budget, or may still be on its way to members of a group.
 */
static bool comes_later(const struct qhca_engine *e,
                        const struct vhca_rule_frame *f)
{
    return f->qpn == QHCA_QPN_MCAST || !vhca_may_go_on(e);
}

/* Release the frame that waits for @f to pass. */
static void release_behind(struct qhca_engine *e,
                           const struct vhca_rule_frame *f)
{
    struct vhca_rule_held *h = vhca_rule_behind(e, f);

    if (h && comes_later(e, f)) {
        vhca_rule_hurry(e, h);
    } else if (h) {
        vhca_rule_take(e, h);
    }
}

/* Receive the frame @times times, after a rule has acted on it. */
static void arrive(struct qhca_engine *e, const struct vhca_rule_frame *f,
                   unsigned times)
{
    if (f->does.action == VHCA_RULE_NAK &&
        vhca_roce_refuse(e, f->frame, f->len, f->from,
                         (uint8_t)f->does.value)) {
        return;
    }
    if (f->does.action == VHCA_RULE_RAISE) {
        struct vhca_qp *qp = vhca_qp_get(e, f->qpn);

        if (qp) {
            vhca_rule_raise(e, qp, &f->does);
        }
    }
    if (times) {
        vhca_roce_take(e, f->frame, f->len, f->from);
    }
    if (times > 1 && comes_later(e, f)) {
        vhca_rule_repeat(e, f);
    } else if (times > 1) {
        vhca_spend_bytes(e, f->len, VHCA_UNIT_FRAME);
        vhca_roce_take(e, f->frame, f->len, f->from);
    }
    if (times) {
        release_behind(e, f);
    }
}

void vhca_rule_rx(struct qhca_engine *e, const uint8_t *frame, size_t len,
                   uint32_t from)
{
    uint8_t copy[ROCE_MAX_FRAME];
    struct vhca_rule_frame f = {
        .point = VHCA_RULE_RX, .frame = copy, .len = len, .from = from,
    };

    if (len > sizeof(copy)) {
        vhca_roce_take(e, frame, len, from);
        return;
    }
    memcpy(copy, frame, len);
    arrive(e, &f, vhca_rule_frame(e, &f));
}

/* Send the frame that waits for a packet of @qp to leave. */
static void send_behind(struct qhca_engine *e, const struct vhca_qp *qp)
{
    const struct vhca_rule_frame f = {
        .point = VHCA_RULE_TX, .qpn = qp->qpn,
    };
    struct vhca_rule_held *h = vhca_rule_behind(e, &f);

    if (h) {
        vhca_rule_send(e, h);
    }
}

/* Send the frame @times times, after a rule has acted on it. */
static void leave(struct qhca_engine *e, struct vhca_qp *qp,
                  const struct vhca_way *way, const struct vhca_burst *burst,
                  const struct vhca_rule_frame *f, unsigned times)
{
    if (f->does.action == VHCA_RULE_RAISE) {
        vhca_rule_raise(e, qp, &f->does);
    }
    for (unsigned i = 0; i < times; i++) {
        vhca_link_frame(e, qp, way, burst, f->len);
    }
    if (times) {
        send_behind(e, qp);
    }
}

static struct vhca_rule_frame frame_of(const struct vhca_qp *qp,
                                        const struct vhca_way *way,
                                        struct vhca_burst *burst, size_t len)
{
    return (struct vhca_rule_frame) {
        .point = VHCA_RULE_TX, .frame = burst->frame, .len = len,
        .qpn = qp->qpn, .from = qp->qpn, .loop = way->loop, .net = way->net,
    };
}

void vhca_rule_tx(struct qhca_engine *e, struct vhca_qp *qp,
                   const struct vhca_way *way, struct vhca_burst *burst,
                   size_t len)
{
    struct vhca_rule_frame f = frame_of(qp, way, burst, len);
    unsigned times = vhca_rule_frame(e, &f);

    leave(e, qp, way, burst, &f, times);
}

/*
 * Apply the rules for sending, then those for receiving, to a packet that
 * crosses. @point: at which of them a rule acted.
 */
static struct vhca_effect judge(struct qhca_engine *e, const struct vhca_qp *qp,
                               const struct vhca_way *way,
                               const struct roce_packet *p,
                               enum vhca_rule_point *point)
{
    struct vhca_effect does = { .action = VHCA_RULE_NONE };

    *point = VHCA_RULE_TX;
    if (vhca_rules_at(e, VHCA_RULE_TX)) {
        does = vhca_rule_packet(e, VHCA_RULE_TX, qp->qpn, p);
    }
    if (does.action == VHCA_RULE_NONE &&
        vhca_rules_at(way->at, VHCA_RULE_RX)) {
        *point = VHCA_RULE_RX;
        does = vhca_rule_packet(way->at, VHCA_RULE_RX, way->peer->qpn, p);
    }
    return does;
}

void vhca_rule_cross(struct qhca_engine *e, struct vhca_qp *qp,
                      const struct vhca_way *way, struct vhca_burst *burst)
{
    enum vhca_rule_point point;
    struct vhca_effect does = judge(e, qp, way, &burst->p, &point);
    struct vhca_rule_frame f;
    struct roce_packet p;
    unsigned times;

    if (does.action == VHCA_RULE_NONE) {
        vhca_link_cross(e, qp, way, &burst->p);
        send_behind(e, qp);
        f = (struct vhca_rule_frame) {
            .point = VHCA_RULE_RX, .qpn = way->peer->qpn,
        };
        release_behind(way->at, &f);
        return;
    }
    f = frame_of(qp, way, burst, vhca_link_finish(qp, way, burst));
    f.does = does;
    vhca_count_sent(e, qp, 1, f.len);
    (void)roce_parse(&p, f.frame, f.len);       /* built here: well-formed */
    if (point == VHCA_RULE_TX) {
        times = vhca_rule_act(e, &f, &p);
        leave(e, qp, way, burst, &f, times);
        return;
    }
    f.point = VHCA_RULE_RX;
    f.qpn = p.dest_qp;
    f.from = way->loop ? qp->qpn : 0;
    vhca_port_pay(e, f.len);
    times = vhca_rule_act(way->at, &f, &p);
    arrive(way->at, &f, times);
    send_behind(e, qp);
}

void vhca_rule_send(struct qhca_engine *e, struct vhca_rule_held *h)
{
    bool looped = h->loop && vhca_tx(e, h->frame, h->len, h->from);
    bool sent = h->net && vhca_tx(e, h->frame, h->len, 0);

    if (!looped && !sent && vhca_running(e)) {
        /* The frame has counted as sent, but there is no room now. */
        vhca_count_qp(e, vhca_qp_get(e, h->from), QHCA_CNT_TX_DROPPED, 1);
    }
    vhca_rule_release(e, h);
}
