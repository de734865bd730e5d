/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: what the tests of memory windows start with: a machine and
 * pairs of QPs on it.
 */
#ifndef QHCA_TESTS_WINDOWS_H
#define QHCA_TESTS_WINDOWS_H

#include "debug.h"
#include "fixture.h"
#include "keys.h"

#define RD      QHCA_ACCESS_REMOTE_READ
#define WR      QHCA_ACCESS_REMOTE_WRITE
#define ATOMIC  QHCA_ACCESS_REMOTE_ATOMIC
#define ZERO    QHCA_ACCESS_ZERO_BASED

#define NUM_TYPES   2

extern struct rc_qp other, other_peer;
extern const unsigned types[NUM_TYPES];     /* of memory windows */

/* start_pair() with kernel QPs. */
void start(void);
/* start() with a second pair, of user QPs: @other and @other_peer. */
void start_two_pairs(void);

/* Another region in the QPs' PD, at the addresses of the node's. */
uint32_t region(unsigned access, unsigned type);

/* Address of a byte of the node's memory. */
uint64_t at(uint64_t off);
/* These post a WR and expect it to end with @status. */
void bind_window(struct rc_qp *q, uint32_t key, uint64_t off, uint64_t len,
                 unsigned access, unsigned status);
void invalidate(struct rc_qp *q, uint32_t key, unsigned status);
/* Whether work of @q, or of its peer, may use @key. */
bool usable(const struct rc_qp *q, uint32_t key, uint64_t addr, uint64_t len,
            unsigned access);
/* Status of an operation that @from sends to window @key over the wire. */
unsigned use(struct rc_qp *from, uint8_t opcode, uint32_t key, uint64_t addr,
             uint32_t len);

#endif /* QHCA_TESTS_WINDOWS_H */
