/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca simulator: schedules without ACK timers, in which nothing hides a hang.
 * The network loses only what the next packet of the same QP shows to be
 * missing: a packet that may get lost is held until another one follows. If
 * none does, it goes on late. After a loss the connection loses nothing more
 * until both ends have made good for it: who repeats a request cannot know
 * whether a response is to the first one. Some requests come twice. Most WRs
 * are READs and atomics, and ports may be slow, so that responses queue.
 */
#include "harness/debug.h"
#include "harness/story.h"
#include "sim.h"

void sim_gaps_draw(struct sim *s)
{
    uint64_t rng = s->rng;

    sim_stream(s, SIM_STREAM_GAPS);
    s->untimed = s->has & SIM_HAS(UNTIMED);
    s->mbit = s->has & SIM_HAS(LINE) ? 200 + sim_rand(s, 1500) : 0;
    s->net->filter = NULL;
    s->rng = rng;
}

static void hand_on(struct sim *s, unsigned from, struct sim_held *h)
{
    struct net *n = s->net;

    if (h->len) {
        n->filter = NULL;
        net_send(n, from, h->data, h->len);
        n->filter = sim_gaps_filter;
        h->len = 0;
    }
}

/* The QP that sends the frame to its peer, or NULL. */
static struct sim_qp *sender(struct sim *s, unsigned from, const uint8_t *frame,
                             const struct roce_packet *p)
{
    for (unsigned i = 0; i < s->num_qps; i++) {
        struct sim_qp *q = &s->qp[i];

        if (!q->gone && q->q.n->g->net_port == from &&
            q->q.peer_qpn == p->dest_qp &&
            !memcmp(frame, q->q.peer_mac, sizeof(q->q.peer_mac))) {
            return q;
        }
    }
    return NULL;
}

static bool is_response(const struct roce_packet *p)
{
    uint8_t op = roce_opcode(p->opcode)->op;

    return op == OP_ACK || op == OP_READ_RESP || op == OP_ATOMIC_ACK;
}

static struct vhca_qp *engine_qp(const struct sim_qp *q)
{
    return q->gone ? NULL : vhca_qp_get(q->q.n->g->e, q->q.qpn);
}

/*
 * Whether the connection can make good for the loss of a packet. A responder
 * that has sent a NAK waits for one request, and says nothing about others.
 */
static bool may_lose(const struct sim_qp *requester,
                     const struct roce_packet *p)
{
    const struct vhca_qp *v = engine_qp(requester);
    const struct vhca_qp *peer = engine_qp(requester->peer);

    return v && peer && (is_response(p) || !peer->rsp.nak_sent) &&
           vhca_qp_is(v, VHCA_RELIABLE) && v->state == QHCA_QPS_RTS &&
           !v->req.rewound && v->req.una_psn != v->req.max_psn &&
           (!requester->hurt ||
            psn_diff(v->req.una_psn, requester->whole_at) >= 0) &&
           AETH_TYPE(is_response(p) ? p->syndrome : 0) == 0 &&
           p->opcode != ROCE_CNP;
}

static void lose(struct sim *s, struct sim_qp *requester, struct sim_held *h)
{
    story_say("net", requester->q.n->g->net_port, s->net->clock,
              "loses the one before, PSN 0x%x", h->psn);
    requester->hurt = true;
    requester->whole_at = engine_qp(requester)->req.max_psn;
    s->saw[SIM_SAW_GAP]++;
    s->net->lost++;
    h->len = 0;
}

static void hold(struct sim_held *h, const struct roce_packet *p,
                 const uint8_t *frame, size_t len)
{
    memcpy(h->data, frame, len);
    h->len = len;
    h->psn = p->psn;
}

bool sim_gaps_filter(struct net *n, unsigned from, uint8_t *frame, size_t len)
{
    struct sim *s = n->opaque;
    struct sim_qp *q, *requester;
    struct roce_packet p;
    struct sim_held *h;

    q = roce_parse(&p, frame, len) == ROCE_OK ? sender(s, from, frame, &p) :
                                               NULL;
    if (!q) {
        return true;
    }
    requester = is_response(&p) ? q->peer : q;
    h = &q->held_back[is_response(&p)];
    if (h->len && psn_diff(p.psn, h->psn) > 0 && may_lose(requester, &p)) {
        lose(s, requester, h);
        return true;
    }
    hand_on(s, from, h);
    if (may_lose(requester, &p) && !sim_rand_of(&s->gaps_rng, 10)) {
        hold(h, &p, frame, len);
        return false;
    }
    if (!is_response(&p) && q->model != &sim_uc && q->model != &sim_ud &&
        !sim_rand_of(&s->gaps_rng, 25)) {
        struct sim_held *twice = &q->twice;

        hand_on(s, from, twice);        /* some other packet, late */
        hold(twice, &p, frame, len);
    }
    return true;
}

void sim_gaps_end_round(struct sim *s)
{
    for (unsigned i = 0; s->untimed && i < s->num_qps; i++) {
        struct sim_qp *q = &s->qp[i];
        unsigned from = q->q.n->g->net_port;

        hand_on(s, from, &q->held_back[0]);
        hand_on(s, from, &q->held_back[1]);
        hand_on(s, from, &q->twice);
    }
}

void sim_gaps_net(struct sim *s)
{
    struct net *n = s->net;

    n->opaque = s;
    if (!s->untimed) {
        return;
    }
    n->loss = n->corrupt = n->dup = n->reorder = 0;
    s->gaps_rng = s->seed * 2 + 1;
    if (!sim_limits.no_loss) {
        n->filter = sim_gaps_filter;
    }
}

void sim_gaps_qp(struct sim *s, struct rc_opts *o)
{
    if (s->untimed) {
        o->timeout = 0;
    }
}

void sim_gaps_stop(struct sim *s)
{
    sim_gaps_end_round(s);
    s->net->filter = NULL;
}
