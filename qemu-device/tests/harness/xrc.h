/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: an XRC domain with two SRQs, and QPs that send to them.
 */
#ifndef QHCA_TESTS_XRC_H
#define QHCA_TESTS_XRC_H

#include "fixture.h"

#define XRC(opcode) (SVC_XRC | (opcode))
#define XRC_PSN     0x222222u       /* rq_psn of RC_OPTS */

/* struct xrc - everything on the fixture's node */
struct xrc {
    uint32_t xrcdn;
    struct gsrq srq[2];         /* in PDs of their own */
    uint32_t pdn[2];
    struct gmr mr[2];           /* in those PDs, 4096 bytes, every right */
    struct rc_qp ini, tgt;
};

/* start_node() with the only struct xrc, its QPs like @o and in RESET. */
struct xrc *xrc_new(const struct rc_opts *o);
/* A QP of the requester, of the responder. */
struct rc_qp xrc_ini(const struct rc_opts *o);
struct rc_qp xrc_tgt(struct xrc *x, const struct rc_opts *o);
/* xrc_new() with @ini and @tgt connected to each other. */
struct xrc *xrc_loop(void);
/* Connects @q, which is one of the two, to a scripted peer. */
void xrc_alone(struct rc_qp *q);
/* Posts a receive WR of @len bytes at the start of SRQ @i's region. */
void xrc_recv(struct xrc *x, unsigned i, uint64_t wr_id, uint32_t len);
/* A WR from @ini to SRQ @i, aimed at that SRQ's region. */
struct rc_wr xrc_wr(struct xrc *x, unsigned i, uint8_t opcode, uint32_t len);
/* A request from @tgt's peer to SRQ @i, aimed at that SRQ's region. */
struct roce_packet xrc_packet(struct xrc *x, unsigned i, uint8_t opcode,
                              uint32_t psn, uint32_t dma_len);

#endif /* QHCA_TESTS_XRC_H */
