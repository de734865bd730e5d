/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: what most tests start with. The machine and its queue
 * pairs are variables; each start_*() frees the old ones and creates new ones.
 */
#ifndef QHCA_TESTS_FIXTURE_H
#define QHCA_TESTS_FIXTURE_H

#include "srq.h"

extern struct node node;
extern struct guest *g;         /* of @node */
extern struct node far;         /* the scripted peer's, at first IPv4 */
extern struct rc_qp qp, peer;

/* RC_OPTS with another type of QP. */
struct rc_opts opts_of(uint8_t type);

/* One machine without a network. */
void start_node(void);
/* start_node() with these addresses; @far uses the same IP version. */
void start_gid(bool ipv6, uint16_t vlan);
/* start_node() with @qp in @state. The test is its peer: QPN 0x77 of @far. */
void start_in(const struct rc_opts *o, unsigned state);
/* start_in() with @qp in RTS. */
void start_alone(const struct rc_opts *o);
/* start_alone() with opts_of(@type). */
void start_type(uint8_t type);
/* start_node() with @qp and @peer, connected to each other. */
void start_pair(const struct rc_opts *o);

extern struct net *net;
extern struct node there;
/*
 * @qp on @node and @peer on @there, another machine on @net, connected to each
 * other. @one_place: the machines can access each other's memory.
 */
void start_net(const struct rc_opts *o, bool one_place);

/* Puts @n WRITEs of @len bytes to @node into @q's ring, without a doorbell. */
void post_writes(struct rc_qp *q, unsigned n, uint32_t len);
/* The next CQE of @qp's send CQ must be WR 0x1000 + @i, with @status. */
struct qhca_cqe done(unsigned i, unsigned status);
/* done() for @i from @first to before @end. */
void all_done(unsigned first, unsigned end, unsigned status);
/* Checks that @node's asynchronous EQ is empty. */
void no_event(void);
/* Whether @len bytes at @off of @node's region are all @byte. */
bool memory_is(uint64_t off, size_t len, uint8_t byte);

#define SHARED_MAX  3

extern struct gsrq srq;
extern struct rc_qp tx[SHARED_MAX], rx[SHARED_MAX];

/* start_node() with @pairs of RC QPs: tx[i] sends to rx[i], which uses @srq. */
void start_shared(unsigned log, unsigned sges, unsigned pairs,
                  const struct rc_opts *rx_opts);

/* A QP in RTS that receives from @srq; the test plays its peer. */
struct rc_qp srq_scripted(void);
/* Injects the first packet of a message of two packets. */
void srq_half_message(struct rc_qp *q);

/* start_in() on the present @node, for instance after start_gid(). */
void add_scripted(const struct rc_opts *o, unsigned state);

#endif /* QHCA_TESTS_FIXTURE_H */
