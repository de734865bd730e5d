/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: two connections on one node, whose data may be late, and
 * a CPU that looks at memory while data arrive.
 */
#ifndef QHCA_TESTS_LITMUS_H
#define QHCA_TESTS_LITMUS_H

#include "budget.h"

/* Places in the memory of the node, and how much of each is used. */
#define SRC     0u              /* ones */
#define X       0x4000u         /* zeroes */
#define Y       0x8000u
#define Z       0xc000u
#define LEN     200u

/* The connection beside @qp and @peer. */
extern struct rc_qp qp_two, peer_two;

/* Both connections; @frames: packets do not cross. */
void start_litmus(bool frames);
/* The bytes at @off. */
uint8_t *spot(uint64_t off);
/* Whether @len bytes at @off are all @value. */
bool is_all(uint64_t off, size_t len, uint8_t value);
/* Ones at SRC, zeroes at X, Y and Z. */
void litmus_clear(void);
/* Put a WR in the send ring that moves data between two places. */
void put_op(struct rc_qp *q, uint8_t opcode, uint64_t from, uint64_t to,
            uint32_t len);
/* A WRITE of ones. */
void put_write(struct rc_qp *q, uint64_t to, uint32_t len);
/* Lets a little time pass. */
void pass_time(void);
/* Rings, and waits for @n CQEs of success. */
void ring_done(struct rc_qp *q, struct gcq *cq, unsigned n);
/* Rings, and waits for a byte at @off that is not zero any more. */
void ring_until(struct rc_qp *q, uint64_t off);
/* Rings, and watches a word at X. Returns whether a part of it was seen. */
bool seen_in_part(void);
/* Polls until there is no CQE; all must be of success. */
void drain_cq(struct gcq *cq);

/*
 * Each test has one odd outcome. Some outcomes are legal: then there are seeds
 * that show them. The others must never occur.
 */
struct litmus {
    const char *name;
    bool (*odd)(void);          /* whether that outcome has been seen */
    bool legal;
};

/* Returns how often test @t has its odd outcome with @rule. */
unsigned litmus_run(const struct litmus *t, const char *rule);
/* Data reach memory in any order: what is legal occurs, and nothing else. */
void litmus_all(const struct litmus *t, size_t n, bool frames);
/* Without a rule nothing is odd. */
void litmus_in_order(const struct litmus *t, size_t n);

#endif /* QHCA_TESTS_LITMUS_H */
