/* SPDX-License-Identifier: GPL-2.0 */
/* XRC. A function without an error to return ends the test when it fails. */
#ifndef SELFTESTS_XRC_H
#define SELFTESTS_XRC_H

#include "rdma.h"

/* Opens the domain of @fd's inode, -1: a private one; skips the test if there are none. */
struct ibv_xrcd *xrcd_new(struct dev *d, int fd, int oflags);
/* Opens a domain; returns NULL and sets errno on failure. */
struct ibv_xrcd *xrcd_open(struct dev *d, int fd, int oflags);

/* struct xsrq - an SRQ of a domain, with its own CQ */
struct xsrq {
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	uint32_t srqn;
};

struct xsrq xsrq_new(struct dev *d, struct ibv_xrcd *xrcd, uint32_t max_wr);
/* Creates an SRQ with @attr unchanged; returns NULL and sets errno on failure. */
struct ibv_srq *xsrq_try(struct dev *d, struct ibv_xrcd *xrcd, struct ibv_cq *cq);

/* struct xrc - a connection within the device, and an SRQ for its messages */
struct xrc {
	struct dev *d;
	struct ibv_xrcd *xrcd;
	struct xsrq srq;
	struct pair p;		/* a sends, b receives */
	struct buf buf;
};

#define XRC_BUF		(64 * 1024)
/* Offset of the second half of the buffer: the first is sent, the second received into. */
#define XRC_HALF	(XRC_BUF / 2)

struct xrc xrc_new(struct dev *d, const struct conn *c);
/* Makes a WR for that SRQ on @x's sender, of @len bytes, with the address of the second half. */
struct ibv_send_wr xrc_wr(struct xrc *x, struct ibv_sge *sge, enum ibv_wr_opcode opcode,
			  uint32_t len);

#endif /* SELFTESTS_XRC_H */
