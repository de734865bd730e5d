// SPDX-License-Identifier: GPL-2.0
/* The receiver: a thread for each connection, which looks at all data. */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "railcp.h"

#define NOBODY	20.0		/* seconds without a connection that works */

static struct {
	pthread_mutex_t lock;
	bool wrong;			/* a message was not what was sent */
	uint64_t total;			/* how many there are, once the sender has said so */
	uint64_t twice;
	double heard;			/* when a message has last arrived */
	uint8_t has[MOST];
} peer = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void take(const uint64_t *words)
{
	bool good = intact(words);

	pthread_mutex_lock(&peer.lock);
	peer.heard = now();
	if (!good) {
		fprintf(stderr, "railcp: a message with wrong data\n");
		peer.wrong = true;
	} else if (words[0] == END) {
		peer.total = words[1];
	} else if (words[0] == DATA && words[1] < MOST) {
		peer.twice += peer.has[words[1]];
		peer.has[words[1]] = 1;
	}
	pthread_mutex_unlock(&peer.lock);
}

/* Data that has arrived counts, even if the connection has ended since. */
static void drain(struct link *l)
{
	struct ibv_wc wc;

	while (link_poll(l, &wc, 1)) {
		if (wc.status != IBV_WC_SUCCESS) {
			l->broken = true;
			continue;
		}
		take(link_place(l, wc.wr_id));
		if (!link_recv(l, wc.wr_id))
			l->broken = true;
	}
}

/* The rail that the connection has come over, or -1. */
static int rail_of(int sock)
{
	struct sockaddr_in name;
	socklen_t size = sizeof(name);
	char ip[INET_ADDRSTRLEN];
	int rail;

	if (getsockname(sock, (struct sockaddr *)&name, &size))
		return -1;
	inet_ntop(AF_INET, &name.sin_addr, ip, sizeof(ip));
	for (rail = 0; rail < opts.rails; rail++)
		if (!strcmp(ip, opts.ip[rail]))
			return rail;
	return -1;
}

static void *serve(void *arg)
{
	int sock = (intptr_t)arg, rail = rail_of(sock);
	struct link l = { .sock = sock };

	if (rail >= 0 && link_open(&l, rail) && link_greet(&l, sock, false)) {
		while (!l.broken && !peer.wrong) {
			link_wait(&l, 100);
			drain(&l);
		}
		drain(&l);
	}
	link_close(&l);
	return NULL;
}

static int verdict(void)
{
	uint64_t i, missing = 0;

	for (i = 0; i < peer.total; i++)
		missing += !peer.has[i];
	printf("received: %llu chunks, %llu more than once\n", (unsigned long long)peer.total,
	       (unsigned long long)peer.twice);
	if (missing)
		fprintf(stderr, "railcp: %llu chunks have not arrived\n",
			(unsigned long long)missing);
	return missing || peer.wrong;
}

int receive_all(int listener)
{
	struct pollfd wait = { .fd = listener, .events = POLLIN };
	struct timeval second = { .tv_sec = 1 };
	pthread_t thread;
	int sock;

	peer.heard = now();
	while (!peer.total && !peer.wrong && now() - peer.heard < NOBODY) {
		if (poll(&wait, 1, 100) != 1)
			continue;
		sock = accept(listener, NULL, NULL);
		setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
		if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)sock))
			close(sock);
		else
			pthread_detach(thread);
	}
	if (!peer.total && !peer.wrong)
		fprintf(stderr, "railcp: nothing has come for %.0f s\n", NOBODY);
	/* The last message has arrived, but the sender may not know yet. */
	sleep(1);
	return verdict() || !peer.total;
}
