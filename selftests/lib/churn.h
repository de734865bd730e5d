/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Creates, uses, changes and destroys objects of all kinds at random, rightly and wrongly, in as
 * many threads as call churn_thread().
 */
#ifndef SELFTESTS_CHURN_H
#define SELFTESTS_CHURN_H

#include <pthread.h>

#include "chance.h"
#include "rdma.h"

/* Call this once in a process; @ops counts the operations of its threads. */
void churn_open(uint32_t *ops);
/* Does not return; @seed is a number. */
void *churn_thread(void *seed);

/* ---- declarations for the files of this ---- */

#define SLOTS		6
#define MAX_CQE		(1 << 17)	/* of 64 bytes; less than the limit, for many users */
#define BUF_LEN		65536	/* an MR starts in the first half of twice as many bytes */

/*
 * struct slot - a place for an object. Threads lock it for reading to use the object, so that they
 * meet in the provider and not here; to create or destroy the object they lock it for writing.
 */
struct slot {
	pthread_rwlock_t lock;
	void *obj;
	uint8_t *mem;			/* for MRs */
};

enum kind { PD, DM, MR, CQ, SRQ, MW, AH, QP, WQ, TABLE, FLOW, COUNTERS, KINDS };

struct churn {
	struct dev *dev;
	struct ibv_comp_channel *channel;
	uint32_t *ops;
	struct slot slots[KINDS][SLOTS];
};

extern struct churn churn;

struct slot *pick(enum kind kind);
/* Locks and returns a slot; returns NULL if there is no such object now. */
struct slot *use(enum kind kind);
void unuse(struct slot *s);
void make_or_destroy(void *unused);
/* Does one of @ops with an object, if there is one. */
void use_one(enum kind kind, const struct op *ops, size_t n);
/* Returns a receive WR; @sge has two elements. */
struct ibv_recv_wr some_recv(struct ibv_sge *sge);

/* churn_raw.c */
void *new_wq(struct ibv_pd *pd);
void *new_table(void);
void *new_spread(struct ibv_pd *pd);
void *new_flow(void);
void *new_counters(void);
void use_wq(void *unused);
void use_counters(void *unused);

#endif /* SELFTESTS_CHURN_H */
