/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the peer that a test plays by hand against the fixture's
 * @qp, packet by packet.
 */
#ifndef QHCA_TESTS_SCRIPTED_H
#define QHCA_TESTS_SCRIPTED_H

#include "fixture.h"

/* ---- as the requester: @qp responds ---- */

extern uint8_t data[4096];      /* payload of all requests */

/* start_in(), with a pattern in @data. */
void start_responder(const struct rc_opts *o, unsigned state);
/* A request to @qp; RETH and AtomicETH, if any, name @off of node's region. */
struct roce_packet request(uint8_t opcode, uint32_t psn, uint64_t off,
                           uint32_t dma_len);
/* Injects a request at the start of that region, with @len bytes of @data. */
void inject(uint8_t opcode, uint32_t psn, size_t len);
/* Injects a READ request of @len bytes at @off of that region. */
void inject_read(uint32_t psn, uint64_t off, uint32_t len);
void expect_ack(uint32_t psn, uint32_t msn);
void expect_nak(uint8_t syndrome, uint32_t psn);
/* @qp sends a NAK, enters ERR, raises @event unless it is 0, and is silent. */
void expect_refusal(uint8_t syndrome, uint32_t psn, unsigned event);

/* ---- as the responder: @qp requests ---- */

/* Puts a signaled WR in the send ring; both its ends are in node's region. */
void put(uint8_t opcode, uint32_t len);
/* Rings the doorbell for all WRs put, and settles. */
void go(void);
void post(uint8_t opcode, uint32_t len);    /* put and go */
void post_flags(uint8_t opcode, uint32_t len, uint8_t flags);
void answer_read(uint8_t opcode, uint32_t psn, size_t len);
/*
 * @qp is in ERR, runs no timer, sends and completes nothing more, and no event
 * is there that the test has not taken.
 */
void expect_dead(void);

#endif /* QHCA_TESTS_SCRIPTED_H */
