/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a schedule that is played twice, once with packets that
 * are frames and once with packets that cross, on one machine or between two in
 * one place. Their guests must not see a difference.
 */
#include <stdio.h>

#include "harness/debug.h"
#include "harness/story.h"
#include "sim.h"

/* Longer than all retries of a packet, also of a device with limits. */
#define A_LONG_TIME     400000000ull

/* ---- the machine ---- */

static bool one_in(struct sim *s, unsigned n)
{
    return !sim_rand(s, n);
}

unsigned sim_both_nodes(struct sim *s)
{
    struct net *n = s->net;
    unsigned nodes;

    sim_stream(s, SIM_STREAM_NODES);
    /* A network that is blocked for long makes QPs fail. */
    nodes = sim_blocks(s->kind) ? 1 : 1 + sim_rand(s, 2);
    sim_stream(s, SIM_STREAM_SETUP);
    n->loss = n->corrupt = n->dup = n->reorder = 0;
    n->latency = 100;
    return nodes;
}

struct guest *sim_both_machine(struct sim *s, unsigned i)
{
    unsigned share, bandwidth;
    struct guest *g;

    sim_stream(s, SIM_STREAM_BOTH);
    share = one_in(s, 8) ? 20 + sim_rand(s, 50) : 0;
    bandwidth = one_in(s, 8) ? 1000 + sim_rand(s, 20000) : 0;
    if (sim_drains(s->kind)) {
        share = bandwidth = 0;  /* limits change when QPs are drained */
    }
    g = guest_new_limited(i + 1, share, bandwidth);
    g->no_peek = one_in(s, 4);
    sim_stream(s, SIM_STREAM_SETUP);
    return g;
}

/*
 * How long two devices, or one with limits, rates, page faults or a rule for
 * the order, take depends on the path of the packets. QPs then wait long for a
 * receive WR, or before they send again.
 */
bool sim_both_slow(const struct sim *s)
{
    return s->node[0].g->limited ||
           (s->seen &&
            (s->num_nodes > 1 || s->paged || s->rated || *s->order));
}

static const struct vhca_requester *requester(const struct sim_qp *q)
{
    return &vhca_qp_get(q->q.n->g->e, q->q.qpn)->req;
}

/* Whether @q and its peer have got RNR NAKs and send again at the same time. */
static bool both_wait(const struct sim_qp *q)
{
    const struct vhca_requester *a, *b;

    if (q->gone || q->peer->gone) {
        return false;
    }
    a = requester(q);
    b = requester(q->peer);
    return a->rnr_wait && b->rnr_wait && a->timer.deadline == b->timer.deadline;
}

/*
 * How much a call does before its budget is used up depends also on the path of
 * the packets. Therefore the guest waits before its next step.
 */
void sim_both_settle(struct sim *s)
{
    if (!s->seen) {
        return;
    }
    net_run(s->net, sim_both_slow(s) ? A_LONG_TIME : 0);
    for (unsigned i = 0; i < s->num_qps; i++) {
        s->at_once = s->at_once || both_wait(&s->qp[i]);
    }
}

void sim_both_cut(struct sim *s)
{
    for (unsigned i = 0; s->seen && i < s->num_nodes; i++) {
        qhca_engine_set_link(s->node[i].g->e, s->net->clock, false);
    }
}

/*
 * Which of several QPs gets a WR of an SRQ that was empty depends on the order
 * of their turns.
 */
bool sim_both_share(struct sim *s, struct sim_srq *q)
{
    return !s->seen || !q->users++;
}

/* ---- faults ---- */

/*
 * Rules that lose, duplicate, delay or refuse packets. None makes a QP fail by
 * itself, because the order of turns decides what is acknowledged by then.
 * Between two machines each frame gets a response of its own, but packets that
 * cross in one turn share one, so there it is a matter of time whether a NAK is
 * sent before the missing packet arrives (@near). On a device with limits it is
 * a matter of time which packets are sent before a delayed one arrives (@late),
 * and only RC puts that right.
 */
static const struct fault {
    const char *text;
    bool fails;                 /* the QP or its peer fails */
    bool near;                  /* only for one machine */
    bool late;                  /* not for datagrams and UC with limits */
} faults[] = {
    { .text = "tx qpn=%u opcode=*.send_* nth=%u once drop" },
    { .text = "rx qpn=%u opcode=*.send_* nth=%u once drop" },
    { .text = "tx qpn=%u opcode=*.write_* nth=%u once drop" },
    { .text = "rx qpn=%u opcode=*.write_* nth=%u once duplicate" },
    { .text = "tx qpn=%u opcode=*.read_request nth=%u once drop" },
    { .text = "rx qpn=%u opcode=*.read_response_* nth=%u once drop" },
    { .text = "tx qpn=%u opcode=*.read_response_* nth=%u once corrupt=icrc" },
    { .text = "rx qpn=%u opcode=*.send_* nth=%u once nak=rnr" },
    { .text = "rx qpn=%u opcode=*.write_* nth=%u once nak=psn_seq_err" },
    { .text = "tx qpn=%u opcode=*.send_* nth=%u once delay=300us",
      .late = true },
    { .text = "tx qpn=%u opcode=*.write_* nth=%u once reorder", .near = true },
    { .text = "rx qpn=%u opcode=*.send_* nth=%u once nak=rem_op_err",
      .fails = true },
    { .text = "rx qpn=%u opcode=*.write_* nth=%u once nak=rem_access_err",
      .fails = true },
};

void sim_both_faults(struct sim *s)
{
    const struct fault *f = &faults[0];
    struct sim_qp *q = &s->qp[0];
    bool unreliable;
    char text[120];

    if (!s->seen || sim_drains(s->kind) || s->paged) {
        return;                 /* SQD would drain, and pages delay, others */
    }
    sim_stream(s, SIM_STREAM_BOTH);
    if (!one_in(s, 3)) {
        return;
    }
    f += sim_rand(s, ARRAY_SIZE(faults));
    q += sim_rand(s, s->num_qps);
    if (f->near && s->num_nodes > 1) {
        return;
    }
    unreliable = q->model == &sim_uc || q->model == &sim_ud;
    if (unreliable && f->fails) {
        return;                 /* these kinds plan what fails */
    }
    if (unreliable && f->late && s->node[0].g->limited) {
        return;
    }
    if (f->fails) {
        q->may_fail = q->peer->may_fail = true;
    }
    snprintf(text, sizeof(text), f->text, q->q.qpn, 1 + sim_rand(s, 10));
    story_say("net", 0, s->net->clock, "%s", text);
    sim_rules(s, q->q.n->g, text);
    s->ruled = true;
    s->lossy |= !strstr(text, "duplicate");
}

/* ---- recording ---- */

void sim_see_cqe(struct sim *s, unsigned cq, const struct qhca_cqe *c)
{
    if (s->seen) {
        seen_cqe(s->seen, cq, c);
    }
}

/* Sorts events by object: only the order of one object's events matters. */
void sim_see_event(struct sim *s, const struct qhca_eqe *e)
{
    struct qhca_eqe *at, last;

    if (!s->seen) {
        return;
    }
    seen_event(s->seen, e);
    at = &s->seen->event[s->seen->num_events - 1];
    for (last = *at; at > s->seen->event && at[-1].obj > last.obj; at--) {
        at[0] = at[-1];
    }
    *at = last;
}

void sim_see_qp(struct sim *s, const struct sim_qp *q, const struct qhca_qpc *c)
{
    if (s->seen) {
        s->seen->qpc[q - s->qp] = *c;
    }
}

/* Clears counters that depend on timing. */
static void forget(const struct sim *s, uint64_t *cnt)
{
    if (sim_errs(s->kind)) {
        /* A bad WR behind another one may have been read, or not. */
        cnt[QHCA_CNT_BAD_WQE] = cnt[QHCA_CNT_BAD_KEY] = 0;
    }
    if (s->paged) {
        /*
         * How much was sent before a fault, and must be sent again, depends
         * on time; on a device with limits, so do answers and timeouts.
         */
        cnt[QHCA_CNT_PAGE_FAULT] = cnt[QHCA_CNT_TIMEOUT] = 0;
        cnt[QHCA_CNT_TX_RNR_NAK] = cnt[QHCA_CNT_RX_RNR_NAK] = 0;
        cnt[QHCA_CNT_TX_NAK_SEQ] = cnt[QHCA_CNT_RX_NAK_SEQ] = 0;
        cnt[QHCA_CNT_BAD_CMD] = 0;
    }
    if (s->lossy) {
        /*
         * A packet sent again after a loss may have arrived before: an ACK
         * covers all packets that crossed in one turn, but only those frames
         * that asked for it.
         */
        cnt[QHCA_CNT_RX_DUPLICATE] = 0;
    }
    if (s->marked) {
        cnt[QHCA_CNT_NP_CNP_SENT] = 0;
        cnt[QHCA_CNT_RP_CNP_HANDLED] = cnt[QHCA_CNT_RP_CNP_IGNORED] = 0;
        /* Fewer ACKs are sent, and marked, if packets cross. */
        cnt[QHCA_CNT_NP_ECN_MARKED_ROCE_PACKETS] = 0;
    }
    if (sim_both_slow(s)) {
        /* How often a sender tries again depends on time. */
        cnt[QHCA_CNT_TX_RNR_NAK] = 0;
        cnt[QHCA_CNT_RX_RNR_NAK] = !!cnt[QHCA_CNT_RX_RNR_NAK];
    }
}

void sim_see_end(struct sim *s)
{
    if (!s->seen) {
        return;
    }
    for (unsigned i = 0; i < s->num_nodes; i++) {
        struct node *n = &s->node[i];

        seen_end(s->seen, n->g, n->mr.addr + s->shared_end[i],
                 s->used[i] - s->shared_end[i]);
    }
    for (unsigned i = 0; i < s->num_nodes; i++) {
        forget(s, s->seen->cnt[i]);
    }
    if (s->lossy || s->marked) {
        /* A loss is noticed, and a notification due, sooner or later. */
        seen_no_packets(s->seen);
    }
}
