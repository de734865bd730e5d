// SPDX-License-Identifier: GPL-2.0
/* The sender: a thread for each rail, which connects, sends, gives up and connects again. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "railcp.h"

#define PATIENCE	3.0	/* seconds that a chunk may take, whatever the adapter says */
#define LATE		1.0	/* the same for a program that keeps its QPs */
#define GIVE_UP		8.0	/* seconds without any rail */
#define AGAIN		200000	/* microseconds between two attempts to connect */

static int told;		/* rails that have told the peer that all has been sent */
static bool stop;

static bool finished(void)
{
	uint64_t total;

	return __atomic_load_n(&stop, __ATOMIC_RELAXED) || plan_over(&total);
}

/* TCP over the rail, or -1 after a second. */
static int dial(int rail)
{
	struct sockaddr_in me = { .sin_family = AF_INET };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(opts.port) };
	struct timeval second = { .tv_sec = 1 };
	int fd = socket(AF_INET, SOCK_STREAM, 0), error = 0;
	socklen_t size = sizeof(error);
	struct pollfd wait = { .fd = fd, .events = POLLOUT };

	inet_pton(AF_INET, opts.ip[rail], &me.sin_addr);
	inet_pton(AF_INET, opts.peer[rail], &to.sin_addr);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	if (bind(fd, (struct sockaddr *)&me, sizeof(me)) ||
	    (connect(fd, (struct sockaddr *)&to, sizeof(to)) && errno != EINPROGRESS) ||
	    poll(&wait, 1, 1000) != 1 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) ||
	    error) {
		close(fd);
		return -1;
	}
	fcntl(fd, F_SETFL, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
	return fd;
}

/* Send one message, and see that it arrives. */
static bool deliver(struct link *l, uint64_t type, uint64_t number)
{
	double end = now() + 2;
	struct ibv_wc wc;

	fill(link_place(l, 0), type, number);
	if (!link_send(l, 0))
		return false;
	while (now() < end && !l->broken) {
		if (link_poll(l, &wc, 1))
			return wc.status == IBV_WC_SUCCESS;
		link_wait(l, 100);
	}
	return false;
}

/* A rail that says it works need not work yet: nothing but a message's arrival shows that. */
static bool rail_connect(struct link *l, int rail)
{
	int sock;

	if (!link_open(l, rail))
		return false;
	sock = dial(rail);
	return sock >= 0 && link_greet(l, sock, true) && deliver(l, PROBE, 0);
}

static void rail_post(struct link *l, uint64_t *posted)
{
	int64_t number;
	double oldest;

	while (plan_flight(l->rail, &oldest) < WINDOW) {
		number = plan_take(l->rail);
		if (number < 0)
			return;
		/* The place is free: the chunk before in it has completed, or does not matter. */
		fill(link_place(l, *posted), DATA, number);
		if (!link_send(l, *posted))
			l->broken = true;
		(*posted)++;
	}
}

static void rail_complete(struct link *l)
{
	struct ibv_wc wc[WINDOW];
	int i, count = link_poll(l, wc, WINDOW);

	for (i = 0; i < count; i++) {
		if (wc[i].status == IBV_WC_SUCCESS)
			plan_done(l->rail, link_place(l, wc[i].wr_id)[1]);
		else
			l->broken = true;
	}
}

/* The mistake of KEEP_QPS: what the port says is all that counts, and the QP stays as it is. */
static void rail_keep(struct link *l, bool *active)
{
	l->broken = false;
	if (l->active != *active)
		plan_live(l->rail, l->active);
	*active = l->active;
	plan_late(l->rail, LATE);
}

/* Until all has been sent, or the rail has failed. */
static void rail_pump(struct link *l)
{
	uint64_t total, posted = 0;
	bool active = true;
	double oldest;

	while (!l->broken && !finished()) {
		if (l->active)
			rail_post(l, &posted);
		rail_complete(l);
		if (l->broken && !(opts.wrong & KEEP_QPS))
			break;
		link_wait(l, plan_flight(l->rail, &oldest) < WINDOW ? 1 : 20);
		if (opts.wrong & KEEP_QPS)
			rail_keep(l, &active);
		else if (oldest > PATIENCE && !(opts.wrong & COMPLETIONS_ONLY))
			l->broken = true;
	}
	if (plan_over(&total) && !l->broken && deliver(l, END, total))
		__atomic_add_fetch(&told, 1, __ATOMIC_RELAXED);
}

static void *rail_thread(void *arg)
{
	int rail = (intptr_t)arg;
	struct link l = { .sock = -1 };
	bool failed = false;

	while (!finished() && !(failed && opts.wrong & NEVER_REBUILD)) {
		if (rail_connect(&l, rail)) {
			plan_live(rail, true);
			rail_pump(&l);
			failed = true;
			if (!finished())
				plan_live(rail, false);
		}
		link_close(&l);
		usleep(AGAIN);
	}
	return NULL;
}

int send_all(void)
{
	pthread_t threads[MAX_RAILS];
	uint64_t total;
	intptr_t i;

	plan_start();
	for (i = 0; i < opts.rails; i++)
		pthread_create(&threads[i], NULL, rail_thread, (void *)i);
	while (!finished()) {
		usleep(100000);
		if (plan_dark() > GIVE_UP && !(opts.wrong & RETRY_FOREVER)) {
			fprintf(stderr, "railcp: no rail has worked for %.0f s\n", GIVE_UP);
			__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
		}
	}
	for (i = 0; i < opts.rails; i++)
		pthread_join(threads[i], NULL);
	plan_over(&total);
	if (!stop && !told)
		fprintf(stderr, "railcp: no rail was left to say that all has been sent\n");
	printf("sent: %llu chunks\n", (unsigned long long)total);
	return stop || !told;
}
