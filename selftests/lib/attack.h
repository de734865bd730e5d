/* SPDX-License-Identifier: GPL-2.0 */
/* Attacks of one process on another on the same device. */
#ifndef SELFTESTS_ATTACK_H
#define SELFTESTS_ATTACK_H

#include <stdatomic.h>

#include "rdma.h"

#define ANY_ACCESS	(REMOTE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

/* QPs of the victim; LIVE_A sends to LIVE_B, all others wait. */
enum { LIVE_A, LIVE_B, RC_A, RC_B, SRQ_A, SRQ_B, UC_A, UC_B, UD_A, NUM_QPS };

/* struct target - what every attacker knows about the victim */
struct target {
	atomic_uint psn;		/* PSN of LIVE_A's next packet */
	uint32_t qpn[NUM_QPS];
	uint32_t pdn, cqn, srqn;
	uint64_t addr;			/* of @len bytes that all keys but keys[3] cover */
	uint32_t len;
	uint32_t keys[4];
};

/* Tries all attacks repeatedly for @ms and counts the rounds in @times. Success fails the test. */
void attack(struct target *target, long ms, atomic_int *times);

#endif /* SELFTESTS_ATTACK_H */
