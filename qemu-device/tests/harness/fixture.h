/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: what most tests start with. The machine and its queue
 * pairs are variables; each start_*() makes them anew and frees what there was.
 */
#ifndef QHCA_TESTS_FIXTURE_H
#define QHCA_TESTS_FIXTURE_H

#include "srq.h"

extern struct node node;
extern struct guest *g;         /* node's */
extern struct node far;         /* of a scripted peer, at first IPv4 */
extern struct rc_qp qp, peer;

/* RC_OPTS for a QP of another type. */
struct rc_opts opts_of(uint8_t type);

/* One machine without a network. */
void start_node(void);
/* The same with these addresses, @far's to match. */
void start_gid(bool ipv6, uint16_t vlan);
/* And on it @qp in @state, whose peer is the test: QPN 0x77 of @far. */
void start_in(const struct rc_opts *o, unsigned state);
/* The same in RTS. */
void start_alone(const struct rc_opts *o);
/* @qp and @peer, both on @node, connected. */
void start_pair(const struct rc_opts *o);

/* Puts @n WRITEs of @len bytes to @node into @q's ring, without a doorbell. */
void post_writes(struct rc_qp *q, unsigned n, uint32_t len);
/* The next CQE of @qp's sends; their wr_ids are 0x1000 + posting order. */
struct qhca_cqe done(unsigned i, unsigned status);
/* No asynchronous event waits. */
void no_event(void);
/* Whether @len bytes at @off of @node's region are all @byte. */
bool memory_is(uint64_t off, size_t len, uint8_t byte);

#define SHARED_MAX  3

extern struct gsrq srq;
extern struct rc_qp tx[SHARED_MAX], rx[SHARED_MAX];

/* @srq and @pairs of RC QPs: tx[i] sends to rx[i], which receives from @srq. */
void start_shared(unsigned log, unsigned sges, unsigned pairs,
                  const struct rc_opts *rx_opts);

/* A QP in RTS that receives from @srq, and whose peer is the test. */
struct rc_qp srq_scripted(void);
/* Its peer sends it the first packet of a message of two, and no more. */
void srq_half_message(struct rc_qp *q);

/* @qp on @node as it is: start_gid() may have come before. */
void add_scripted(const struct rc_opts *o, unsigned state);

#endif /* QHCA_TESTS_FIXTURE_H */
