/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: all that the guest can see of queue pairs, to compare a
 * run in which packets are frames with one in which they cross directly.
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

/* struct seen - memory, completions, events and final states */
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

/* Empties @seen, but keeps its buffer. At first @seen must be zero. */
void seen_clear(struct seen *seen);
/* Adds a CQE of the CQ with index @cq. */
void seen_cqe(struct seen *seen, unsigned cq, const struct qhca_cqe *cqe);
void seen_event(struct seen *seen, const struct qhca_eqe *eqe);
/* Adds a machine: @guest's counters and @len bytes of its memory. */
void seen_end(struct seen *seen, struct guest *guest, uint64_t addr,
              size_t len);

/* Adds all CQEs that wait in @cq[] and all events that wait in @async. */
void seen_queues(struct seen *seen, struct geq *async, struct gcq *const cq[],
                 unsigned num_cqs);

/* ---- of the fixture ---- */

/*
 * Fills @seen from the fixture's @qp and @peer, which must be the only QPs;
 * @cq are their CQs.
 */
void seen_look(struct seen *seen, struct gcq *const cq[], unsigned num_cqs);

/* ---- comparing ---- */

/* Sum of a counter over all machines. */
uint64_t seen_count(const struct seen *seen, enum qhca_counter which);
/* Clears the counters of packets, so that they are not compared. */
void seen_no_packets(struct seen *seen);

/* Whether a QP or a message has failed. */
bool seen_failed(const struct seen *seen);
/* Whether both runs looked the same; otherwise notes about @name say where. */
bool seen_same(const char *name, const struct seen *in_frames,
               const struct seen *direct);

#endif /* QHCA_TESTS_SEEN_H */
