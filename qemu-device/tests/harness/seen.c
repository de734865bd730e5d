/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "seen.h"

void seen_look(struct seen *seen, struct gcq *const cq[], unsigned num_cqs)
{
    memset(seen, 0, sizeof(*seen));
    g->bad_to = 0;
    memcpy(seen->mem, guest_ptr(g, node.mr.addr, NODE_MEM), NODE_MEM);
    for (unsigned i = 0; i < num_cqs; i++) {
        unsigned *n = &seen->num_cqe[i];

        while (*n < SEEN_MAX && cq_poll(cq[i], &seen->cqe[i][*n])) {
            seen->cqe[i][(*n)++].timestamp = 0;
        }
    }
    while (seen->num_events < SEEN_MAX &&
           eq_next(&node.async, &seen->event[seen->num_events])) {
        seen->num_events++;
    }
    seen->qpc[0] = rc_query(&qp);
    seen->qpc[1] = rc_query(&peer);
    for (unsigned i = 0; i < QHCA_CNT_MAX; i++) {
        seen->cnt[i] = counter(g, i);
    }
}

static bool has_failed(const struct qhca_qpc *c)
{
    return c->attr.state == QHCA_QPS_ERR || c->attr.state == QHCA_QPS_SQE;
}

bool seen_failed(const struct seen *seen)
{
    return has_failed(&seen->qpc[0]) || has_failed(&seen->qpc[1]) ||
           seen->cnt[QHCA_CNT_RNR_RETRY_EXC] || seen->cnt[QHCA_CNT_RX_REFUSED];
}

/*
 * How many packets were on their way when something failed or found no receive
 * WR, and how often the others have been acknowledged, is a matter of who has
 * had its turn.
 */
static bool count_differs(enum qhca_counter which, const struct seen *a,
                          const struct seen *b)
{
    static const struct { uint8_t which, per_ack; } packets[] = {
        { QHCA_CNT_TX_PKTS, 1 }, { QHCA_CNT_TX_BYTES, 62 },
        { QHCA_CNT_RX_PKTS, 1 }, { QHCA_CNT_RX_BYTES, 62 },
        { QHCA_CNT_TX_ACK, 1 }, { QHCA_CNT_RX_OUT_OF_SEQ, 0 },
        { QHCA_CNT_RX_BAD_STATE, 0 }, { QHCA_CNT_RETRANSMIT, 0 },
    };
    uint64_t acks = a->cnt[QHCA_CNT_TX_ACK] - b->cnt[QHCA_CNT_TX_ACK];

    for (unsigned i = 0; i < ARRAY_SIZE(packets); i++) {
        if (which == packets[i].which) {
            return !seen_failed(a) && !a->cnt[QHCA_CNT_RX_RNR_NAK] &&
                   a->cnt[which] - b->cnt[which] != acks * packets[i].per_ack;
        }
    }
    return a->cnt[which] != b->cnt[which];
}

/* Where two runs differ first, for the report. */
static void tell_cqe(const struct seen *a, const struct seen *b)
{
    for (unsigned i = 0; i < SEEN_CQS; i++) {
        for (unsigned n = 0; n < SEEN_MAX; n++) {
            if (memcmp(&a->cqe[i][n], &b->cqe[i][n], sizeof(a->cqe[i][n]))) {
                tap_note("CQ %u, CQE %u: WR 0x%llx status %u, WR 0x%llx "
                         "status %u", i, n,
                         (unsigned long long)le64toh(a->cqe[i][n].wr_id),
                         a->cqe[i][n].status,
                         (unsigned long long)le64toh(b->cqe[i][n].wr_id),
                         b->cqe[i][n].status);
                return;
            }
        }
    }
}

static void tell_mem(const struct seen *a, const struct seen *b)
{
    unsigned from = 0, to = NODE_MEM;

    while (from < to && a->mem[from] == b->mem[from]) {
        from++;
    }
    while (to > from && a->mem[to - 1] == b->mem[to - 1]) {
        to--;
    }
    if (from < to) {
        tap_note("bytes 0x%x to 0x%x", from, to);
    }
}

bool seen_same(const char *name, const struct seen *a, const struct seen *b)
{
    bool same = true;

#define SAME(field) \
    if (memcmp(&a->field, &b->field, sizeof(a->field))) { \
        tap_note("%s: other " #field, name); \
        same = false; \
    }
    SAME(mem);
    SAME(num_cqe);
    SAME(cqe);
    SAME(num_events);
    SAME(event);
    SAME(qpc[0].attr.state);
    SAME(qpc[1].attr.state);
    SAME(srqc);
    if (!seen_failed(a)) {
        SAME(qpc);
    }
#undef SAME
    for (unsigned i = 0; i < QHCA_CNT_MAX; i++) {
        if (count_differs(i, a, b)) {
            tap_note("%s: %s %llu and %llu", name, qhca_counter_name(i),
                     (unsigned long long)a->cnt[i],
                     (unsigned long long)b->cnt[i]);
            same = false;
        }
    }
    if (!same) {
        tell_mem(a, b);
        tell_cqe(a, b);
    }
    return same;
}
