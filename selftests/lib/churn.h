/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Objects of all kinds that come, are used, change and go at random, rightly and
 * wrongly, in as many threads as there are to call churn_thread().
 */
#ifndef SELFTESTS_CHURN_H
#define SELFTESTS_CHURN_H

#include <pthread.h>

#include "chance.h"
#include "rdma.h"

/* Once in a process; what its threads do is counted in @ops. */
void churn_open(uint32_t *ops);
/* Does not end; @seed is a number. */
void *churn_thread(void *seed);

/* ---- what the files of this share ---- */

#define SLOTS		6
#define MAX_CQE		(1 << 17)	/* of 64 bytes; the device's limit is for a machine alone */
#define BUF_LEN		65536	/* an MR starts in the first half of twice as many bytes */

/*
 * struct slot - a place for an object. To use one it is locked for reading, so that
 * threads meet in the provider and not here; to make or destroy one, for writing.
 */
struct slot {
	pthread_rwlock_t lock;
	void *obj;
	uint8_t *mem;			/* MRs */
};

enum kind { PD, DM, MR, CQ, SRQ, MW, AH, QP, KINDS };

struct churn {
	struct dev *dev;
	struct ibv_comp_channel *channel;
	uint32_t *ops;
	struct slot slots[KINDS][SLOTS];
};

extern struct churn churn;

struct slot *pick(enum kind kind);
/* NULL, and nothing is locked, if there is no such object now. */
struct slot *use(enum kind kind);
void unuse(struct slot *s);
void make_or_destroy(void *unused);

#endif /* SELFTESTS_CHURN_H */
