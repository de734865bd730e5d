/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Kinds of objects that users share, and what each object is charged with, as bounds.rst says. One
 * device and one CQ at a time.
 */
#ifndef SELFTESTS_KINDS_H
#define SELFTESTS_KINDS_H

#include "rdma.h"

/* Limits for rdma.max: of contexts, and of all other objects. */
#define KINDS_HANDLES	8
#define KINDS_OBJECTS	400

#define NUM_KINDS	20

/*
 * struct kind - a kind of objects
 * @make: makes the object number @i, and keeps it; NULL, with errno: not possible
 * @cost: how many objects one is charged with
 * @max: KINDS_HANDLES or KINDS_OBJECTS
 */
struct kind {
	const char *name;
	void *(*make)(int i);
	unsigned int (*cost)(void);
	int max;
};

extern const struct kind kinds[NUM_KINDS];

/* Objects are made on @d, and with @cq where they need one. */
void kinds_use(struct dev *d, struct ibv_cq *cq);
/* Makes what objects of the kind need besides. */
void kind_prepare(const struct kind *k);
/* Whether the kernel has the kind: it may lack on-demand paging. */
bool kind_offered(const struct kind *k);
/* Returns the kind of that name. */
const struct kind *kind_named(const char *name);

#endif /* SELFTESTS_KINDS_H */
