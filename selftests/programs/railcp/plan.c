// SPDX-License-Identifier: GPL-2.0
/* Which rail sends which chunk: the one that can have it there first. */
#include <pthread.h>
#include <string.h>

#include "railcp.h"

#define PROBE_EVERY	0.25	/* seconds: a rail that seems slow sends a chunk nevertheless */
#define FIRST_GUESS	0.001	/* seconds that a chunk takes on a rail that is new */

enum { TO_DO = -1, DONE = -2 };

/* All rails share it. owner[] has the rail that sends the chunk, or one of the above. */
static struct {
	pthread_mutex_t lock;
	uint64_t base;			/* number of the first chunk of the batch */
	int owner[BATCH], home[BATCH];	/* home: the rail that has had it first */
	double since[BATCH];		/* when it was taken */
	int flight[MAX_RAILS];
	bool live[MAX_RAILS];
	double takes[MAX_RAILS];	/* seconds per chunk, lately */
	double last[MAX_RAILS];		/* when the rail has last had something done */
	double took[MAX_RAILS];		/* when it has last taken one */
	double end, dark;
	bool over;
} plan = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void new_batch(void)
{
	int i;

	for (i = 0; i < BATCH; i++) {
		plan.owner[i] = TO_DO;
		plan.home[i] = TO_DO;
	}
}

void plan_start(void)
{
	int rail;

	for (rail = 0; rail < MAX_RAILS; rail++)
		plan.takes[rail] = FIRST_GUESS;
	plan.dark = now();
	plan.end = now() + opts.seconds;
	new_batch();
}

static int others(int rail)
{
	int i, count = 0;

	for (i = 0; i < opts.rails; i++)
		count += i != rail && plan.live[i];
	return count;
}

/* Seconds that the other rails need for what they have and for @left chunks. */
static double elsewhere(int rail, int left)
{
	double rate = 0;
	int i;

	for (i = 0; i < opts.rails; i++) {
		if (i == rail || !plan.live[i])
			continue;
		left += plan.flight[i];
		rate += 1 / plan.takes[i];
	}
	return left / rate;
}

/* Whether chunk @i may be for @rail, whatever the rails' speeds are. */
static bool allowed(int rail, int i)
{
	int share = (plan.base + i) % opts.rails;

	if (plan.owner[i] != TO_DO)
		return false;
	if (opts.wrong & RETRY_FOREVER && plan.home[i] != TO_DO)
		return plan.home[i] == rail;
	/* Late parts go another way, and the next batch tries this one again. */
	if (opts.wrong & KEEP_QPS && plan.home[i] == rail && others(rail))
		return false;
	return !(opts.wrong & SPLIT_EVENLY) || share == rail || !plan.live[share];
}

/* Whether one more chunk, of @left, arrives earlier over @rail than over all others. */
static bool worth_it(int rail, int left)
{
	if (opts.wrong & (SPLIT_EVENLY | RETRY_FOREVER) || !others(rail))
		return true;
	if (!plan.flight[rail] && now() - plan.took[rail] > PROBE_EVERY)
		return true;
	return (plan.flight[rail] + 1) * plan.takes[rail] <= elsewhere(rail, left);
}

int64_t plan_take(int rail)
{
	int i, left = 0, found = -1;

	pthread_mutex_lock(&plan.lock);
	for (i = BATCH - 1; i >= 0 && !plan.over; i--) {
		left += plan.owner[i] == TO_DO;
		if (allowed(rail, i))
			found = i;
	}
	if (found >= 0 && plan.live[rail] && worth_it(rail, left)) {
		plan.owner[found] = rail;
		plan.home[found] = rail;
		plan.flight[rail]++;
		plan.since[found] = now();
		plan.took[rail] = plan.since[found];
	} else {
		found = -1;
	}
	pthread_mutex_unlock(&plan.lock);
	return found < 0 ? -1 : (int64_t)plan.base + found;
}

static void finish(int i)
{
	plan.owner[i] = DONE;
	for (i = 0; i < BATCH; i++)
		if (plan.owner[i] != DONE)
			return;
	plan.base += BATCH;
	plan.over = now() >= plan.end || plan.base + BATCH > MOST;
	if (!plan.over)
		new_batch();
}

void plan_done(int rail, uint64_t number)
{
	double begin;
	uint64_t i;

	pthread_mutex_lock(&plan.lock);
	i = number - plan.base;
	/* Another rail may have sent it since. */
	if (i < BATCH && plan.owner[i] == rail) {
		begin = plan.since[i] > plan.last[rail] ? plan.since[i] : plan.last[rail];
		plan.last[rail] = now();
		plan.takes[rail] = 0.9 * plan.takes[rail] + 0.1 * (plan.last[rail] - begin);
		plan.flight[rail]--;
		finish(i);
	}
	pthread_mutex_unlock(&plan.lock);
}

/* The chunks that @rail has had for so long are to do again. */
static int release(int rail, double seconds)
{
	int i, count = 0;

	for (i = 0; i < BATCH; i++) {
		if (plan.owner[i] != rail || now() - plan.since[i] < seconds)
			continue;
		plan.owner[i] = TO_DO;
		plan.flight[rail]--;
		count++;
	}
	return count;
}

int plan_late(int rail, double seconds)
{
	int count;

	pthread_mutex_lock(&plan.lock);
	count = release(rail, seconds);
	pthread_mutex_unlock(&plan.lock);
	return count;
}

int plan_flight(int rail, double *oldest)
{
	int i, flight;

	pthread_mutex_lock(&plan.lock);
	*oldest = 0;
	for (i = 0; i < BATCH; i++)
		if (plan.owner[i] == rail && now() - plan.since[i] > *oldest)
			*oldest = now() - plan.since[i];
	flight = plan.flight[rail];
	pthread_mutex_unlock(&plan.lock);
	return flight;
}

void plan_live(int rail, bool live)
{
	int i, lost = 0;

	pthread_mutex_lock(&plan.lock);
	if (plan.live[rail] != live && !live && !others(rail))
		plan.dark = now();
	plan.live[rail] = live;
	if (live)
		plan.takes[rail] = FIRST_GUESS;
	for (i = 0; i < BATCH && opts.wrong & LOSE_FLIGHT; i++) {
		if (plan.owner[i] == rail) {
			plan.flight[rail]--;
			lost++;
			finish(i);
		}
	}
	if (!live)
		lost += release(rail, 0);
	pthread_mutex_unlock(&plan.lock);
	if (live)
		say("rail %d works", rail);
	else
		say("rail %d does not work; it had %d chunks", rail, lost);
}

bool plan_over(uint64_t *total)
{
	bool over;

	pthread_mutex_lock(&plan.lock);
	over = plan.over;
	*total = plan.base;
	pthread_mutex_unlock(&plan.lock);
	return over;
}

double plan_dark(void)
{
	double seconds;

	pthread_mutex_lock(&plan.lock);
	seconds = others(-1) ? 0 : now() - plan.dark;
	pthread_mutex_unlock(&plan.lock);
	return seconds;
}
