// SPDX-License-Identifier: GPL-2.0
/* Mappings of the command file, event files, and children. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "fuzz.h"

/* Each thread has its own mappings, so that it never touches one that another has unmapped. */
static _Thread_local struct map {
	uint8_t *at;
	size_t len;
	int prot;
	bool discarded;
} maps[8];

static int some_prot(void)
{
	static const int prots[] = {
		PROT_WRITE, PROT_WRITE, PROT_READ | PROT_WRITE, PROT_READ, PROT_NONE,
		PROT_READ | PROT_WRITE | PROT_EXEC,
	};

	return prots[below(ARRAY_SIZE(prots))];
}

static uint64_t some_offset(int ctx)
{
	struct obj *dm = live(UVERBS_OBJECT_DM, ctx);

	switch (below(8)) {
	case 0:
		return (uint64_t)below(64) * PAGE;
	case 1:
		return nonsense() & ~(uint64_t)(PAGE - 1);
	case 2:
		return fuzz.db_key[below(CONTEXTS)] + (below(3) - 1) * PAGE;
	case 3:
		return objs[UVERBS_OBJECT_DM][below(OBJECTS)].key;
	case 4:
		return fuzz.db_key[ctx];
	default:
		return dm ? dm->key : fuzz.db_key[ctx];
	}
}

static size_t some_len(uint64_t offset, int ctx)
{
	uint32_t i;

	if (one_in(4))
		return one_in(4) ? nonsense() >> 20 : (1 + below(20)) * PAGE;
	for (i = 0; i < OBJECTS; i++)
		if (objs[UVERBS_OBJECT_DM][i].key == offset && objs[UVERBS_OBJECT_DM][i].len)
			return objs[UVERBS_OBJECT_DM][i].len;
	return PAGE;
}

static void map_one(struct map *m)
{
	static const int flags[] = {
		MAP_SHARED, MAP_SHARED, MAP_SHARED, MAP_SHARED | MAP_POPULATE,
		MAP_SHARED | MAP_LOCKED, MAP_PRIVATE, MAP_SHARED | MAP_NORESERVE,
	};
	int ctx = below(CONTEXTS), prot = some_prot();
	uint64_t offset = some_offset(ctx);
	size_t len = some_len(offset, ctx);
	void *p = mmap(NULL, len, prot, flags[below(ARRAY_SIZE(flags))], fuzz.fd[ctx], offset);

	if (p == MAP_FAILED)
		return;
	count(&fuzz.shared->maps);
	*m = (struct map){ .at = p, .len = len, .prot = prot };
}

/*
 * Touch only the first page: the others may be unmapped. The page of the clock does not come back
 * after MADV_DONTNEED: touching it is a SIGBUS.
 */
static void touch(struct map *m)
{
	uint64_t *p = (uint64_t *)m->at + below(PAGE / 8);

	if (m->discarded)
		return;
	if (m->prot & PROT_WRITE)
		__atomic_store_n(p, nonsense(), __ATOMIC_RELAXED);
	if (m->prot & PROT_READ)
		(void)__atomic_load_n((uint32_t *)p, __ATOMIC_RELAXED);
}

static void unmap(struct map *m)
{
	munmap(m->at, m->len);
	m->at = NULL;
}

static void move(struct map *m)
{
	size_t len = one_in(2) ? m->len : (1 + below(4)) * PAGE;
	void *p = mremap(m->at, m->len, len, MREMAP_MAYMOVE | (one_in(3) ? MREMAP_DONTUNMAP : 0));

	if (p == MAP_FAILED)
		return;
	if (p != m->at)
		munmap(m->at, m->len);
	m->at = p;
	m->len = len;
}

static void change(struct map *m)
{
	static const int advice[] = {
		MADV_DONTNEED, MADV_DONTFORK, MADV_DOFORK, MADV_WILLNEED, MADV_REMOVE,
	};
	int prot = some_prot(), how = advice[below(ARRAY_SIZE(advice))];

	if (one_in(3))
		m->discarded |= !madvise(m->at, m->len, how) && how == MADV_DONTNEED;
	else if (m->len > PAGE && one_in(2))
		munmap(m->at + m->len - PAGE, PAGE), m->len -= PAGE;
	else if (!mprotect(m->at, m->len, prot))
		m->prot = prot;
}

void map_something(void)
{
	struct map *m = &maps[below(ARRAY_SIZE(maps))];

	if (!m->at) {
		map_one(m);
		return;
	}
	switch (below(6)) {
	case 0:
		move(m);
		break;
	case 1:
		change(m);
		break;
	case 2:
		unmap(m);
		break;
	default:
		touch(m);
	}
}

/* ---- descriptors ---- */

void use_events(void)
{
	int kind = one_in(2) ? UVERBS_OBJECT_COMP_CHANNEL : UVERBS_OBJECT_ASYNC_EVENT;
	struct obj *o = live(kind, -1);
	struct pollfd p = { .events = POLLIN };
	uint8_t buf[64];

	if (!o)
		return;
	p.fd = o->handle;
	switch (below(8)) {
	case 0:
		if (one_in(4)) {
			o->life = STALE;
			close(p.fd);
		}
		break;
	case 1:
		fcntl(p.fd, F_SETFL, O_NONBLOCK | (one_in(2) ? O_ASYNC : 0));
		fcntl(p.fd, F_SETOWN, getpid());
		break;
	case 2:
		(void)!read(p.fd, (void *)(uintptr_t)odd_address(16), 16);
		break;
	case 3:
		(void)!read(p.fd, buf, below(sizeof(buf)));
		break;
	default:
		if (poll(&p, 1, 0) == 1)
			(void)!read(p.fd, buf, sizeof(buf));
	}
}

/* ---- children ---- */

/* The parent does not wait for the child. */
void fork_something(void)
{
	int i, ctx, n = 1 + below(60);

	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0; i < n; i++) {
		if (one_in(3))
			map_something();
		else
			any_call();
		if (one_in(20)) {
			ctx = below(CONTEXTS);
			close(fuzz.fd[ctx]);
			fuzz.fd[ctx] = -1;
		}
	}
	_exit(0);
}
