/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "seen.h"

void seen_clear(struct seen *seen)
{
    uint8_t *mem = seen->mem;
    size_t room = seen->room;

    memset(seen, 0, sizeof(*seen));
    seen->mem = mem;
    seen->room = room;
}

void seen_cqe(struct seen *seen, unsigned cq, const struct qhca_cqe *cqe)
{
    struct qhca_cqe *to = &seen->cqe[cq][seen->num_cqe[cq]++];

    REQUIRE(seen->num_cqe[cq] <= SEEN_MAX);
    *to = *cqe;
    to->timestamp = 0;
}

void seen_event(struct seen *seen, const struct qhca_eqe *eqe)
{
    struct qhca_eqe *to = &seen->event[seen->num_events++];

    REQUIRE(seen->num_events <= SEEN_EVENTS);
    *to = *eqe;
    to->timestamp = 0;
    to->owner = 0;              /* depends on the place in the ring */
}

void seen_end(struct seen *seen, struct guest *guest, uint64_t addr, size_t len)
{
    if (seen->room < seen->len + len) {
        seen->room = seen->len + len;
        seen->mem = realloc(seen->mem, seen->room);
        REQUIRE(seen->mem);
    }
    memcpy(seen->mem + seen->len, guest_ptr(guest, addr, len), len);
    seen->len += len;
    REQUIRE(seen->machines < SEEN_MACHINES);
    for (unsigned i = 0; i < QHCA_CNT_MAX; i++) {
        seen->cnt[seen->machines][i] = counter(guest, i);
    }
    seen->machines++;
}

void seen_queues(struct seen *seen, struct geq *async, struct gcq *const cq[],
                 unsigned num_cqs)
{
    struct qhca_cqe cqe;
    struct qhca_eqe eqe;

    for (unsigned i = 0; i < num_cqs; i++) {
        while (cq_poll(cq[i], &cqe)) {
            seen_cqe(seen, i, &cqe);
        }
    }
    while (eq_next(async, &eqe)) {
        seen_event(seen, &eqe);
    }
}

void seen_look(struct seen *seen, struct gcq *const cq[], unsigned num_cqs)
{
    seen_clear(seen);
    g->bad_to = 0;
    seen_queues(seen, &node.async, cq, num_cqs);
    seen->qpc[0] = rc_query(&qp);
    seen->qpc[1] = rc_query(&peer);
    seen_end(seen, g, node.mr.addr, NODE_MEM);
}

static bool has_failed(const struct qhca_qpc *c)
{
    return c->attr.state == QHCA_QPS_ERR || c->attr.state == QHCA_QPS_SQE;
}

uint64_t seen_count(const struct seen *seen, enum qhca_counter which)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < seen->machines; i++) {
        sum += seen->cnt[i][which];
    }
    return sum;
}

bool seen_failed(const struct seen *seen)
{
    bool failed = seen_count(seen, QHCA_CNT_RNR_RETRY_EXC) ||
                  seen_count(seen, QHCA_CNT_RX_REFUSED);

    for (unsigned i = 0; i < SEEN_QPS; i++) {
        failed = failed || has_failed(&seen->qpc[i]);
    }
    return failed;
}

/*
 * Counters of packets, and by how much one more ACK raises them: on the machine
 * that sends it, or on one of the machines, where it arrives (@there).
 */
static const struct {
    uint8_t which, per_ack;
    bool there;
} packets[] = {
    { QHCA_CNT_TX_PKTS, 1, false }, { QHCA_CNT_TX_BYTES, 62, false },
    { QHCA_CNT_RX_PKTS, 1, true }, { QHCA_CNT_RX_BYTES, 62, true },
    { QHCA_CNT_TX_ACK, 1, false }, { QHCA_CNT_RX_OUT_OF_SEQ, 0, false },
    { QHCA_CNT_RX_BAD_STATE, 0, false }, { QHCA_CNT_RETRANSMIT, 0, false },
};

void seen_no_packets(struct seen *seen)
{
    for (unsigned i = 0; i < ARRAY_SIZE(packets); i++) {
        for (unsigned m = 0; m < SEEN_MACHINES; m++) {
            seen->cnt[m][packets[i].which] = 0;
        }
    }
}

static int64_t more(const struct seen *a, const struct seen *b, unsigned m,
                    enum qhca_counter which)
{
    return (int64_t)(a->cnt[m][which] - b->cnt[m][which]);
}

/*
 * For counters of arriving packets. Their sum grows with the ACKs, but which
 * machine gets more or fewer ACKs is not known, so one machine's counter may
 * differ by as much as all ACKs.
 */
static bool arrivals_differ(unsigned i, unsigned m, const struct seen *a,
                            const struct seen *b)
{
    enum qhca_counter which = packets[i].which, ack = QHCA_CNT_TX_ACK;
    int64_t all = 0, here = more(a, b, m, which);
    uint64_t acks = MAX_OF(seen_count(a, ack), seen_count(b, ack));

    for (unsigned from = 0; from < a->machines; from++) {
        all += more(a, b, from, which) -
               more(a, b, from, ack) * packets[i].per_ack;
    }
    return all || (uint64_t)(here < 0 ? -here : here) >
                  acks * packets[i].per_ack;
}

/*
 * How many packets were in flight when something failed or found no receive WR,
 * and how many ACKs the others got, depends on the order of turns.
 */
static bool packets_differ(unsigned i, unsigned m, const struct seen *a,
                           const struct seen *b)
{
    if (seen_failed(a) || seen_count(a, QHCA_CNT_RX_RNR_NAK)) {
        return false;
    }
    return packets[i].there ? arrivals_differ(i, m, a, b) :
           more(a, b, m, packets[i].which) !=
           more(a, b, m, QHCA_CNT_TX_ACK) * packets[i].per_ack;
}

static bool count_differs(enum qhca_counter which, unsigned m,
                          const struct seen *a, const struct seen *b)
{
    for (unsigned i = 0; i < ARRAY_SIZE(packets); i++) {
        if (which == packets[i].which) {
            return packets_differ(i, m, a, b);
        }
    }
    return a->cnt[m][which] != b->cnt[m][which];
}

static bool same_counts(const char *name, const struct seen *a,
                        const struct seen *b)
{
    bool same = a->machines == b->machines;

    for (unsigned i = 0; i < a->machines * QHCA_CNT_MAX; i++) {
        unsigned m = i / QHCA_CNT_MAX;
        enum qhca_counter which = i % QHCA_CNT_MAX;

        if (count_differs(which, m, a, b)) {
            tap_note("%s: machine %u: %s %llu and %llu", name, m,
                     qhca_counter_name(which),
                     (unsigned long long)a->cnt[m][which],
                     (unsigned long long)b->cnt[m][which]);
            same = false;
        }
    }
    return same;
}

/* Notes the first CQE that differs. */
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
    size_t from = 0, to = a->len;

    while (from < to && a->mem[from] == b->mem[from]) {
        from++;
    }
    while (to > from && a->mem[to - 1] == b->mem[to - 1]) {
        to--;
    }
    if (from < to) {
        tap_note("bytes 0x%zx to 0x%zx", from, to);
    }
}

static bool same_states(const struct seen *a, const struct seen *b)
{
    bool same = true;

    for (unsigned i = 0; i < SEEN_QPS; i++) {
        same = same && a->qpc[i].attr.state == b->qpc[i].attr.state;
    }
    return same;
}

bool seen_same(const char *name, const struct seen *a, const struct seen *b)
{
    bool same = true;

#define CHECK_SAME(field, how) \
    if (!(how)) { \
        tap_note("%s: different " field, name); \
        same = false; \
    }
#define SAME(field) \
    CHECK_SAME(#field, !memcmp(&a->field, &b->field, sizeof(a->field)))
    CHECK_SAME("memory", a->len == b->len && !memcmp(a->mem, b->mem, a->len));
    SAME(num_cqe);
    SAME(cqe);
    SAME(num_events);
    SAME(event);
    CHECK_SAME("states", same_states(a, b));
    SAME(srqc);
    if (!seen_failed(a)) {
        SAME(qpc);
    }
#undef SAME
#undef CHECK_SAME
    same = same_counts(name, a, b) && same;
    if (!same) {
        tell_mem(a, b);
        tell_cqe(a, b);
    }
    return same;
}
