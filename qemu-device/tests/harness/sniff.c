/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: what the sniffer demands of the packets of a QP, one after
 * the other.
 */
#include <stdlib.h>
#include <string.h>

#include "sniff.h"
#include "tables.h"
#include "tap.h"

#define PSNS        0x1000000u
#define PSN_MASK    (PSNS - 1)
#define HALF        (PSNS / 2)
#define BUCKETS     64u
#define HISTORY_MAX 8192u

/* A request as it was first sent; @n: its PSNs. */
struct request {
    uint32_t psn, n;
    uint64_t digest;
    uint64_t va;                /* of a READ */
    uint32_t dma_len;
};

/*
 * struct requests - the requests of a QP
 * @moved: sniff_moved() has been called since the last one
 * @next: the first PSN that no packet has had
 * @open: kind of the unfinished message, or E2_NONE
 * @left: bytes that it has to bring yet, if it is a WRITE
 * @whole: its first packet has been heard
 * @past: requests that have been sent, the oldest first, in a ring of @size
 * @forgot: some that have been sent are not there any more
 */
struct requests {
    bool begun, moved, whole, forgot;
    uint32_t next;
    uint8_t open;
    uint32_t left;
    struct request *past;
    uint32_t first, num, size;
};

/*
 * struct responses - the responses of a QP
 * @next: PSN of the next READ data, if it is @reading
 * @rest: and for a READ that waits (@waits) while an earlier one is repeated
 * @psn, @msn: of the ACK or NAK with the latest PSN, if there is one (@acked)
 */
struct responses {
    bool reading, waits, acked;
    uint32_t next, rest, psn, msn;
};

struct flow {
    struct flow *link;
    uint32_t qpn;
    struct requests req;
    struct responses rsp;
};

struct sniffer {
    struct flow *bucket[BUCKETS];
};

struct sniffer *sniffer_new(void)
{
    struct sniffer *s = calloc(1, sizeof(*s));

    REQUIRE(s);
    return s;
}

static void forget(struct flow *f)
{
    free(f->req.past);
    memset(&f->req, 0, sizeof(f->req));
    memset(&f->rsp, 0, sizeof(f->rsp));
}

void sniffer_free(struct sniffer *s)
{
    for (unsigned i = 0; s && i < BUCKETS; i++) {
        while (s->bucket[i]) {
            struct flow *f = s->bucket[i];

            s->bucket[i] = f->link;
            forget(f);
            free(f);
        }
    }
    free(s);
}

static struct flow *flow_of(struct sniffer *s, uint32_t qpn)
{
    struct flow **head = &s->bucket[qpn % BUCKETS], *f;

    for (f = *head; f; f = f->link) {
        if (f->qpn == qpn) {
            return f;
        }
    }
    f = calloc(1, sizeof(*f));
    REQUIRE(f);
    f->qpn = qpn;
    f->link = *head;
    *head = f;
    return f;
}

void sniff_state(struct sniffer *s, uint32_t qpn, unsigned from, unsigned to)
{
    struct flow *f = flow_of(s, qpn);

    if (from == QHCA_QPS_RESET || to == QHCA_QPS_RESET) {
        forget(f);
    } else if (to == QHCA_QPS_SQE || to == QHCA_QPS_ERR) {
        f->req.open = E2_NONE;
    }
}

void sniff_moved(struct sniffer *s, uint32_t qpn)
{
    struct flow *f;

    if (s) {
        f = flow_of(s, qpn);
        forget(f);
        f->req.moved = f->req.forgot = true;
    }
}

/* ---- what has been sent ---- */

static uint64_t mix(uint64_t h, const uint8_t *p, size_t len)
{
    while (len > 0) {
        uint64_t word = 0;
        size_t n = len < 8 ? len : 8;

        memcpy(&word, p, n);
        h = (h ^ word) * 0x9e3779b97f4a7c15ull;
        h ^= h >> 29;
        p += n;
        len -= n;
    }
    return h;
}

/* The digest of all that a retransmission repeats: AckReq may be another. */
static uint64_t digest(const struct sniffed *p)
{
    uint8_t header[64];

    memcpy(header, p->bth, p->header_len);
    header[8] = 0;
    if (p->kind == E2_RDMA_READ_REQUEST) {      /* it may be part of one */
        memset(header + 9, 0, 3);
        memset(header + p->header_len - 16, 0, 8);
        memset(header + p->header_len - 4, 0, 4);
    }
    return mix(mix(p->payload_len, header, p->header_len), p->payload,
               p->payload_len);
}

static struct request *past_at(const struct requests *r, uint32_t i)
{
    return &r->past[(r->first + i) % r->size];
}

static void grow(struct requests *r)
{
    uint32_t size = r->size ? 2 * r->size : 16;
    struct request *more = calloc(size, sizeof(*more));

    REQUIRE(more);
    for (uint32_t i = 0; i < r->num; i++) {
        more[i] = *past_at(r, i);
    }
    free(r->past);
    r->past = more;
    r->size = size;
    r->first = 0;
}

/* The oldest may be forgotten, so that PSNs are never ambiguous. */
static void remember(struct requests *r, const struct sniffed *p, uint32_t n)
{
    while (r->num && (r->num == HISTORY_MAX ||
                      ((p->psn + n - past_at(r, 0)->psn) & PSN_MASK) > HALF)) {
        r->first = (r->first + 1) % r->size;
        r->num--;
        r->forgot = true;
    }
    if (r->num == r->size) {
        grow(r);
    }
    *past_at(r, r->num++) = (struct request) {
        .psn = p->psn, .n = n, .digest = digest(p), .va = p->va,
        .dma_len = p->dma_len,
    };
}

/* The request that had @psn among its PSNs, or NULL if it is forgotten. */
static const struct request *recall(const struct requests *r, uint32_t psn)
{
    uint32_t low = 0, high = r->num;

    while (low < high) {
        uint32_t middle = (low + high) / 2;
        const struct request *at = past_at(r, middle);
        uint32_t off = (psn - at->psn) & PSN_MASK;

        if (off < at->n) {
            return at;
        }
        if (off < HALF) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

static const char *repeats(const struct requests *r, const struct sniffed *p,
                           uint32_t mtu)
{
    const struct request *was = recall(r, p->psn);
    uint32_t done;

    if (!was) {
        return r->forgot ? NULL :
               "D-006: a retransmission of what was never sent";
    }
    done = (p->psn - was->psn) & PSN_MASK;
    if (digest(p) != was->digest) {
        return "D-006: a retransmission with another content";
    }
    return p->va == was->va + (uint64_t)done * mtu &&
           p->dma_len == was->dma_len - done * mtu ? NULL :
           "D-006: what is repeated of a READ";
}

/* ---- requests ---- */

static const char *message(struct requests *r, const struct sniffed *p)
{
    if (r->moved && !p->first) {
        r->open = p->kind;
        r->whole = false;
    }
    r->moved = false;
    if (p->first != (r->open == E2_NONE) ||
        (!p->first && r->open != p->kind)) {
        return "D-061: FIRST, MIDDLE and LAST in their order";
    }
    r->open = p->last ? E2_NONE : p->kind;
    if (p->kind != E2_RDMA_WRITE) {
        return NULL;
    }
    r->whole = p->first || r->whole;
    r->left = (p->first ? p->dma_len : r->left) - (uint32_t)p->payload_len;
    return p->last && r->left && r->whole ?
           "D-005, D-064: RETH says the total length" : NULL;
}

static uint32_t psns_of(const struct sniffed *p, uint32_t mtu)
{
    return p->kind == E2_RDMA_READ_REQUEST && p->dma_len ?
           p->dma_len / mtu + !!(p->dma_len % mtu) : 1;
}

static const char *request(struct requests *r, const struct sniffed *p,
                           const struct sniff_qp *qp)
{
    bool repeatable = p->service == SNIFF_RC || p->service == SNIFF_XRC;
    uint32_t n = psns_of(p, qp->mtu), behind;

    if (!r->begun) {
        r->next = r->moved ? p->psn : qp->sq_psn;
    }
    r->begun = true;
    behind = (r->next - p->psn) & PSN_MASK;

    /* Also a datagram that is too long to be sent has a PSN (B-030). */
    if (behind && !(p->service == SNIFF_UD && behind >= HALF)) {
        return !repeatable || behind >= HALF ? "D-001: the next PSN" :
               repeats(r, p, qp->mtu);
    }
    r->next = (p->psn + n) & PSN_MASK;
    if (repeatable) {
        remember(r, p, n);
    }
    return message(r, p);
}

/* ---- responses ---- */

static const char *read_data(struct responses *r, const struct sniffed *p)
{
    const char *why = NULL;

    if (p->first && r->reading && ((p->psn - r->next) & PSN_MASK) >= HALF) {
        r->rest = r->waits ? r->rest : r->next;
        r->waits = true;
    } else if (!p->first && r->waits && p->psn == r->rest) {
        r->waits = false;
    } else if (!p->first && (!r->reading || p->psn != r->next)) {
        why = "D-002: READ data in the order of their PSNs";
    }
    r->reading = !p->last;
    r->next = (p->psn + 1) & PSN_MASK;
    return why;
}

/*
 * While READ data are under way an earlier request can be answered again, and
 * they can wait for a page (D-039). A NAK ends them.
 */
static const char *answer(struct responses *r, const struct sniffed *p)
{
    bool ahead = ((p->psn - r->next) & PSN_MASK) < HALF;

    if (p->kind == E2_RDMA_READ_RESPONSE) {
        return read_data(r, p);
    }
    if (p->syndrome > 0x60) {
        r->reading = r->waits = false;
    }
    return r->reading && ahead && (p->syndrome & 0xe0) != 0x20 ?
           "D-013: an answer amid READ data" : NULL;
}

/*
 * No new ACK or NAK has a smaller MSN than the ones before. A result has the
 * MSN of its request, or the present one if the request is repeated.
 */
static const char *response(struct responses *r, const struct sniffed *p)
{
    const char *why = answer(r, p);

    if (p->kind != E2_ACKNOWLEDGE ||
        (r->acked && ((p->psn - r->psn - 1) & PSN_MASK) >= HALF)) {
        return why;
    }
    if (!why && r->acked && ((p->msn - r->msn) & PSN_MASK) >= HALF) {
        why = "D-016: MSN goes back";
    }
    r->acked = true;
    r->psn = p->psn;
    r->msn = p->msn;
    return why;
}

static const char *size(const struct sniffed *p, uint32_t mtu)
{
    if (p->kind == E2_CNP || p->service == SNIFF_UD) {
        return p->payload_len <= 4096 ? NULL : "D-075: one packet";
    }
    if (!p->last) {
        return p->payload_len == mtu ? NULL :
               "D-004: FIRST and MIDDLE have PMTU bytes";
    }
    return p->payload_len <= mtu && (p->first || p->payload_len) ? NULL :
           "D-004: LAST has 1 to PMTU bytes, ONLY up to PMTU";
}

/* The NAK that says why may leave a QP in ERR. */
static const char *state(const struct sniffed *p, unsigned state)
{
    const struct table_a1 *may = &table_a1[state];
    bool nak = p->kind == E2_ACKNOWLEDGE && p->syndrome > 0x60;

    return (p->response || p->kind == E2_CNP ? may->answer : may->ask) ||
           (state == QHCA_QPS_ERR && nak) ? NULL : may->id;
}

const char *sniff_next(struct sniffer *s, const struct sniff_qp *qp,
                       const struct sniffed *p)
{
    struct flow *f = flow_of(s, qp->qpn);
    const char *why = state(p, qp->state);

    why = why ? why : size(p, qp->mtu);
    if (p->kind == E2_CNP || why) {
        return why;
    }
    return p->response ? response(&f->rsp, p) : request(&f->req, p, qp);
}
