// SPDX-License-Identifier: GPL-2.0
/* Objects that exist or have existed, and deliberate mistakes about them. */
#include "fuzz.h"

struct obj objs[KINDS][OBJECTS];
static _Thread_local int mistakes;	/* mistakes left for this call */
static _Thread_local bool made;		/* this call has had a mistake */

void be_wrong(bool may)
{
	mistakes = may ? 1 + below(3) : 0;
	made = false;
}

bool been_wrong(void)
{
	return made;
}

bool odd(void)
{
	if (!mistakes || !one_in(12))
		return false;
	mistakes--;
	made = true;
	return true;
}

uint64_t nonsense(void)
{
	static const uint64_t odd[] = {
		0, 1, ~0ull, ~0u, 0x7fffffff, 0x80000000, 0xffff, 0x10000, 1ull << 32,
		1ull << 63, 0x7fffffffffffffff, 0xfffffffffffff000, PAGE - 1, PAGE,
		0xffffff, 0x1000000,
	};
	uint64_t n = chance();

	switch (below(4)) {
	case 0:
		return n;
	case 1:
		return 1ull << below(64);
	case 2:
		return n >> below(64);
	default:
		return odd[below(ARRAY_SIZE(odd))];
	}
}

uint64_t number(uint64_t good, uint64_t max)
{
	if (!odd())
		return good;
	return one_in(2) ? max + below(3) - 1 : nonsense();
}

/* Use mostly the same PD, because otherwise hardly any objects would fit together. */
static uint32_t first_of(int kind)
{
	return kind == UVERBS_OBJECT_PD && !one_in(8) ? 0 : below(OBJECTS);
}

struct obj *live(int kind, int ctx)
{
	uint32_t i, first = first_of(kind);
	struct obj *o;

	for (i = 0; i < OBJECTS; i++) {
		o = &objs[kind][(first + i) % OBJECTS];
		if (o->life == LIVE && (o->ctx == ctx || ctx < 0))
			return o;
	}
	return NULL;
}

uint32_t handle(int kind, int ctx)
{
	struct obj *o;

	if (odd()) {
		switch (below(4)) {
		case 0:
			return nonsense();
		case 1:
			return below(40);
		case 2:
			kind = below(KINDS);
			break;
		default:
			return objs[kind][below(OBJECTS)].handle;
		}
	}
	o = live(kind, ctx);
	return o ? o->handle : objs[kind][below(OBJECTS)].handle;
}

struct obj *place(int kind)
{
	uint32_t i, first = first_of(kind);

	for (i = 0; i < OBJECTS; i++)
		if (objs[kind][(first + i) % OBJECTS].life != LIVE)
			return &objs[kind][(first + i) % OBJECTS];
	return NULL;
}

/* Without a free slot the object exists, unknown, until its file is closed. */
void born(int kind, const struct obj *what)
{
	struct obj *o = place(kind);

	if (!o)
		return;
	*o = *what;
	__atomic_store_n(&o->life, LIVE, __ATOMIC_RELEASE);
}

void forget(int ctx)
{
	int kind, i;

	for (kind = 0; kind < KINDS; kind++)
		for (i = 0; i < OBJECTS; i++)
			if (objs[kind][i].ctx == ctx && objs[kind][i].life == LIVE)
				objs[kind][i].life = STALE;
}

uint32_t some_key(void)
{
	struct obj *o = live(one_in(8) ? UVERBS_OBJECT_MW : UVERBS_OBJECT_MR, -1);

	return o && !one_in(20) ? o->num : nonsense();
}

uint32_t some_qpn(void)
{
	struct obj *o = live(UVERBS_OBJECT_QP, -1);

	if (o && !one_in(10))
		return o->num;
	return one_in(2) ? below(8) : chance() & 0xffffff;
}
