/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: all that the guest can see of two queue pairs, to be
 * compared between a run in which packets are frames and one in which they
 * need none.
 */
#ifndef QHCA_TESTS_SEEN_H
#define QHCA_TESTS_SEEN_H

#include "fixture.h"

#define SEEN_CQS    5
#define SEEN_MAX    64

/* struct seen - memory, completions, events, and states in the end */
struct seen {
    uint8_t mem[NODE_MEM];
    struct qhca_cqe cqe[SEEN_CQS][SEEN_MAX];
    unsigned num_cqe[SEEN_CQS];
    struct qhca_eqe event[SEEN_MAX];
    unsigned num_events;
    struct qhca_qpc qpc[2];
    struct qhca_srqc srqc;      /* zero if there is no SRQ */
    uint64_t cnt[QHCA_CNT_MAX];
};

/*
 * Reads what @qp and @peer of the fixture, and nobody else, have led to; @cq
 * are their CQs.
 */
void seen_look(struct seen *seen, struct gcq *const cq[], unsigned num_cqs);
/* Whether a QP has failed, or a message. */
bool seen_failed(const struct seen *seen);
/* False: @name, which the differences are told of, was seen in another way. */
bool seen_same(const char *name, const struct seen *in_frames,
               const struct seen *direct);

#endif /* QHCA_TESTS_SEEN_H */
