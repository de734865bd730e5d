/* SPDX-License-Identifier: GPL-2.0 */
/* Ethernet frames, and objects that they are steered with, each made of the one before. */
#ifndef SELFTESTS_STEER_H
#define SELFTESTS_STEER_H

#include "rdma.h"

#define STEER_DMAC	"\x02\x11\x22\x33\x44\x55"
#define STEER_SMAC	"\x02\x66\x77\x88\x99\xaa"

/* Makes an Ethernet frame of @len bytes with IPv4 and UDP, between these addresses. */
void steer_frame(uint8_t *at, size_t len, uint16_t sport, uint16_t dport);

/* Destination of the rules of struct steer; no port has it. */
#define STEER_RULE_DMAC	"\x02\x00\x00\x00\x00\x01"

/* Flow rules that the QPs of a device can have, without those kept for ethtool -N. */
#define STEER_MAX_FLOWS	192u

/* struct steer - a WQ, a table of it, a QP with that table, and a rule of the QP */
struct steer {
	struct ibv_wq *wq;
	struct ibv_rwq_ind_table *table;
	struct ibv_qp *qp;
	struct ibv_flow *flow;
};

/*
 * Makes all of them; the WQ is in RDY and completes at @cq. Returns 0 or an errno value, and then
 * there is nothing.
 */
int steer_make(struct dev *d, struct ibv_cq *cq, struct steer *s);
/* Makes only the QP, of @s->table. Returns 0 or an errno value. */
int steer_qp(struct dev *d, struct steer *s);
/* Makes only the rule, of @s->qp. Returns 0 or an errno value. */
int steer_rule(struct steer *s);
/* Destroys what is left. Returns 0 or an errno value, and then it can be called again. */
int steer_unmake(struct steer *s);

#endif /* SELFTESTS_STEER_H */
