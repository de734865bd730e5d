/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: QPs of type RAW, flow rules and spreads.
 */
#ifndef QHCA_TESTS_FLOWS_H
#define QHCA_TESTS_FLOWS_H

#include "frames.h"
#include "rc.h"

/* Where frames to send and received frames are in the memory of a node. */
#define FLOW_SEND   0u
#define FLOW_RECV   0x10000u
#define FLOW_STEP   0x4000u     /* from one receive buffer to the next */

/* A QP of type RAW in RTS. */
struct rc_qp flow_qp(struct node *n);
/* Sends @f as it is, and settles; returns the CQE, which must have @status. */
struct qhca_cqe flow_send(struct rc_qp *q, const struct frame *f,
                          unsigned flags, unsigned status);
/* Posts receive buffer @i, of @len bytes. */
void flow_recv(struct rc_qp *q, unsigned i, uint32_t len);
/* Whether the next CQE is of @f in buffer @i. */
bool flow_got(struct rc_qp *q, unsigned i, const struct frame *f);
/* Whether there is no CQE. */
bool flow_none(struct rc_qp *q);

/* A rule for all frames, which go to a QP or, if that is NULL, are dropped. */
struct qhca_flow flow_rule(const struct rc_qp *q);
/* Let the rule look at one more thing, which @f has. */
void flow_match_dmac(struct qhca_flow *r, const struct frame *f);
void flow_match_udp(struct qhca_flow *r, unsigned dport);
/* CREATE_FLOW; returns its status. */
int flow_create(struct guest *g, const struct qhca_flow *r, uint32_t *number);
/* A rule that must be possible; returns its number. */
uint32_t flow_add(struct guest *g, const struct qhca_flow *r);
/* CREATE_FLOW in place of rule @number; returns its status. */
int flow_replace(struct guest *g, const struct qhca_flow *r, uint32_t number);
/* QUERY_FLOW of a rule that there is. */
struct qhca_flow_counts flow_counts(struct guest *g, uint32_t number);
int flow_destroy(struct guest *g, uint32_t number);

/* CREATE_SPREAD; returns its status. */
int spread_create(struct guest *g, const struct qhca_spread *s,
                  uint32_t *number);

#endif /* QHCA_TESTS_FLOWS_H */
