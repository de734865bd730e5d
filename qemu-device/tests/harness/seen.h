/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: all that the guest can see of queue pairs, to be compared
 * between a run in which packets are frames and one in which they need none.
 */
#ifndef QHCA_TESTS_SEEN_H
#define QHCA_TESTS_SEEN_H

#include "fixture.h"

#define SEEN_QPS    8
#define SEEN_CQS    (2 * SEEN_QPS + 1)
#define SEEN_SRQS   2
#define SEEN_MACHINES 2
#define SEEN_MAX    128         /* CQEs of a CQ */
#define SEEN_EVENTS 1024

/* struct seen - memory, completions, events, and states in the end */
struct seen {
    struct qhca_cqe cqe[SEEN_CQS][SEEN_MAX];
    unsigned num_cqe[SEEN_CQS];
    struct qhca_eqe event[SEEN_EVENTS];
    unsigned num_events;
    struct qhca_qpc qpc[SEEN_QPS];
    struct qhca_srqc srqc[SEEN_SRQS];   /* zero if there is no SRQ */
    uint64_t cnt[SEEN_MACHINES][QHCA_CNT_MAX];
    unsigned machines;
    uint8_t *mem;               /* a copy */
    size_t len, room;
};

/* ---- piece by piece ---- */

/* Forgets what @seen has; it is zero at first, and keeps its room. */
void seen_clear(struct seen *seen);
/* A CQE of the queue that is called @cq here. */
void seen_cqe(struct seen *seen, unsigned cq, const struct qhca_cqe *cqe);
void seen_event(struct seen *seen, const struct qhca_eqe *eqe);
/* Of one more machine: @guest's counters, and @len bytes of its memory. */
void seen_end(struct seen *seen, struct guest *guest, uint64_t addr,
              size_t len);

/* All that waits: CQEs of @cq, which are called by their index, and events. */
void seen_queues(struct seen *seen, struct geq *async, struct gcq *const cq[],
                 unsigned num_cqs);

/* ---- of the fixture ---- */

/*
 * Reads what @qp and @peer of the fixture, and nobody else, have led to; @cq
 * are their CQs.
 */
void seen_look(struct seen *seen, struct gcq *const cq[], unsigned num_cqs);

/* ---- comparing ---- */

/* What all machines have counted. */
uint64_t seen_count(const struct seen *seen, enum qhca_counter which);
/* How many packets there were is not compared. */
void seen_no_packets(struct seen *seen);

/* Whether a QP has failed, or a message. */
bool seen_failed(const struct seen *seen);
/* False: @name, which the differences are told of, was seen in another way. */
bool seen_same(const char *name, const struct seen *in_frames,
               const struct seen *direct);

#endif /* QHCA_TESTS_SEEN_H */
