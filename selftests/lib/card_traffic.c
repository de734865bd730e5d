// SPDX-License-Identifier: GPL-2.0
/* Frames through all queues of the network card. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "card.h"
#include "rdma.h"

#define QUEUES		8
#define STATS		1024
#define FLOWS		128	/* to find each queue */
#define FIRST_PORT	20000
#define DISCARD		9	/* a port without a listener */

/* struct counts - frames that each queue has moved */
struct counts {
	uint64_t rx[QUEUES], tx[QUEUES];
};

/* Places of the queues' counters in ethtool -S; 0: not there. */
static uint32_t num_stats, rx_at[QUEUES], tx_at[QUEUES];

static void find_counters(void)
{
	struct {
		struct ethtool_gstrings head;
		char names[STATS][ETH_GSTRING_LEN];
	} *all = calloc(1, sizeof(*all));
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	unsigned int queue;
	char rest[8];
	uint32_t i;

	REQUIRE(all);
	REQUIRE_OK(card_ethtool(&info));
	num_stats = info.n_stats;
	REQUIRE(num_stats <= STATS);
	all->head.cmd = ETHTOOL_GSTRINGS;
	all->head.string_set = ETH_SS_STATS;
	all->head.len = num_stats;
	REQUIRE_OK(card_ethtool(all));
	for (i = 0; i < num_stats; i++) {
		if (sscanf(all->names[i], "rx%u_packet%7s", &queue, rest) == 2 && queue < QUEUES)
			rx_at[queue] = i;
		if (sscanf(all->names[i], "tx%u_packet%7s", &queue, rest) == 2 && queue < QUEUES)
			tx_at[queue] = i;
	}
	free(all);
}

static struct counts count(void)
{
	static struct {
		struct ethtool_stats head;
		uint64_t data[STATS];
	} all;
	struct counts c = {};
	unsigned int i;

	if (!num_stats)
		find_counters();
	all.head.cmd = ETHTOOL_GSTATS;
	all.head.n_stats = num_stats;
	REQUIRE_OK(card_ethtool(&all));
	for (i = 0; i < QUEUES; i++) {
		c.rx[i] = rx_at[i] ? all.head.data[rx_at[i]] : 0;
		c.tx[i] = tx_at[i] ? all.head.data[tx_at[i]] : 0;
	}
	return c;
}

static struct sockaddr_in peer_address(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(DISCARD) };
	const char *peer = getenv("QHCA_PEER");

	if (!peer)
		test_skip("QHCA_PEER does not say where the gateway is");
	REQUIRE(inet_pton(AF_INET, peer, &to.sin_addr) == 1);
	to.sin_addr.s_addr = (to.sin_addr.s_addr & htonl(0xffffff00)) | htonl(254);
	return to;
}

/* The kernel repeats what gets no answer after a second. Returns 0 or an errno value. */
static int flow_once(uint16_t port)
{
	struct sockaddr_in to = peer_address(), from = {
		.sin_family = AF_INET, .sin_port = htons(port),
	};
	int err, on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct timeval patience = { .tv_sec = 5 };
	const char *name = getenv("QHCA_IF");

	REQUIRE(fd >= 0);
	/* Also without a route: the kernel may have had no memory for it. */
	REQUIRE(!setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, strlen(name)));
	REQUIRE(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	REQUIRE(!setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)));
	REQUIRE(!bind(fd, (struct sockaddr *)&from, sizeof(from)));
	err = connect(fd, (struct sockaddr *)&to, sizeof(to)) ? errno : 0;
	close(fd);
	return err;
}

void card_flow(uint16_t port)
{
	int64_t end = time_ms() + WAIT_MS;
	int err;

	do
		err = flow_once(port);
	while (err != ECONNREFUSED && time_ms() < end);
	if (err != ECONNREFUSED)
		FAIL("no answer to port %u: %s", port, strerror(err));
}

/* Returns a bit for each queue that the table names. */
static unsigned int rx_wanted(void)
{
	unsigned int i, queues = 0;
	struct card_rss rss;

	REQUIRE_OK(card_rss(0, &rss));
	for (i = 0; i < rss.size; i++)
		queues |= 1u << rss.queue[i];
	return queues;
}

/* Returns a bit for each queue that a CPU sends through. */
static unsigned int tx_wanted(void)
{
	char path[32], mask[64];
	unsigned int i, queues = 0;

	for (i = 0; i < QUEUES; i++) {
		snprintf(path, sizeof(path), "queues/tx-%u/xps_cpus", i);
		if (!card_read(path, mask, sizeof(mask)) && strspn(mask, "0,") != strlen(mask))
			queues |= 1u << i;
	}
	return queues;
}

static void move_to(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	REQUIRE(!sched_setaffinity(0, sizeof(set), &set));
}

void card_works(void)
{
	unsigned int i, n, rx = rx_wanted(), tx = tx_wanted(), cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct counts before = count(), now;
	cpu_set_t all;

	REQUIRE(!sched_getaffinity(0, sizeof(all), &all));
	for (n = 0; n < FLOWS && (rx || tx || n < 2 * cpus); n++) {
		move_to(n % cpus);
		card_flow(FIRST_PORT + n / cpus);
		now = count();
		for (i = 0; i < QUEUES; i++) {
			rx &= ~((now.rx[i] != before.rx[i]) << i);
			tx &= ~((now.tx[i] != before.tx[i]) << i);
		}
	}
	REQUIRE(!sched_setaffinity(0, sizeof(all), &all));
	if (rx || tx)
		FAIL("queues without a frame: %#x that receive, %#x that send", rx, tx);
}

/* Returns the queue above 0 that a frame of a new connection arrives in, or 0. */
static unsigned int queue_of(uint16_t port)
{
	struct counts before = count(), now;
	unsigned int i;

	card_flow(port);
	now = count();
	for (i = 1; i < QUEUES; i++)
		if (now.rx[i] != before.rx[i])
			return i;
	return 0;
}

uint16_t card_port(unsigned int queue, unsigned int skip)
{
	unsigned int n;

	for (n = 0; n < FLOWS; n++)
		if (queue_of(FIRST_PORT + 1000 + n) == queue && !skip--)
			return FIRST_PORT + 1000 + n;
	FAIL("no answer arrives in queue %u", queue);
	test_die();
}

void card_lands(uint16_t port, unsigned int queue)
{
	unsigned int got = queue_of(port);

	if (got != queue)
		FAIL("an answer to port %u is in queue %u, not %u", port, got, queue);
}
