/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A server for connections of the CM, which sends every message back. A failure here
 * ends the test.
 */
#ifndef SELFTESTS_ECHO_H
#define SELFTESTS_ECHO_H

#include <rdma/rdma_cma.h>

#include "rdma.h"

/* The longest message. */
#define ECHO_MSG	16384

/*
 * struct echo_window - ECHO_MSG bytes to write and read, and a word behind them that is
 * 0 at first, of a connection alone; in the private data of ESTABLISHED
 */
struct echo_window {
	uint64_t addr;
	uint32_t rkey;
};

/* struct echo - where it is, and what it uses, as its clients in this process may */
struct echo {
	struct sockaddr_in addr;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
};

extern struct echo echo;

/* The next event of @ch, which has to be of @type; the caller acknowledges it. */
struct rdma_cm_event *cm_event(struct rdma_event_channel *ch, enum rdma_cm_event_type type);

/* At @d's address, with threads of its own. */
void echo_open(const struct dev *d);
/* Waits until all clients have gone; how many connections there were. */
unsigned long echo_close(void);
struct rdma_conn_param echo_param(void);

#endif /* SELFTESTS_ECHO_H */
