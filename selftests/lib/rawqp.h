/* SPDX-License-Identifier: GPL-2.0 */
/*
 * QPs of type RAW_PACKET, and flow rules. A frame for which the port has a rule does not leave the
 * machine, so one QP sends and others of the same device receive.
 */
#ifndef SELFTESTS_RAWQP_H
#define SELFTESTS_RAWQP_H

#include "steer.h"

#define LEN	120	/* bytes of a frame */

/* struct raw - a QP that sends, and its memory: what is sent, and from LEN on what is received */
struct raw {
	struct dev *d;
	struct end e;
	struct buf b;
};

/* Makes the frame that a QP sends. */
void put_frame(const struct buf *b, uint16_t dport);
/* From RESET to RTR, where it receives. */
void raw_bring_up(struct ibv_qp *qp);
/* A QP in RTS; @cq: where it receives, NULL: a new one. */
struct raw raw_new_at(struct dev *d, struct ibv_cq *cq);
struct raw raw_new(struct dev *d);
void raw_recv(struct raw *r, uint64_t id);
void raw_send(struct raw *r, unsigned int flags);
/* Whether @from's frame arrives at @to. */
bool arrives(struct raw *from, struct raw *to);

/* struct rule - attributes of a flow and up to three specifications behind them */
struct rule {
	struct ibv_flow_attr attr;
	uint8_t spec[256];
};

struct rule rule_new(void);
void rule_add(struct rule *r, const void *spec, size_t size);
/* Let the rule look at the destination of put_frame()'s frames, or at a UDP port. */
void match_dmac(struct rule *r);
void match_udp(struct rule *r, uint16_t dport);
/* Makes a rule that must be possible. */
struct ibv_flow *must(struct raw *r, const struct rule *rule);

#endif /* SELFTESTS_RAWQP_H */
