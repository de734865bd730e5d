/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A server for connections of the CM that sends every message back. A failure here ends the test.
 */
#ifndef SELFTESTS_ECHO_H
#define SELFTESTS_ECHO_H

#include <rdma/rdma_cma.h>

#include "rdma.h"

/* The longest message. */
#define ECHO_MSG	16384

/*
 * struct echo_window - ECHO_MSG bytes to write and read, with a word behind them that is 0 at
 * first, for one connection; it is the private data of ESTABLISHED
 */
struct echo_window {
	uint64_t addr;
	uint32_t rkey;
};

/* struct echo - address of the server, and its objects, which clients in this process may use */
struct echo {
	struct sockaddr_in addr;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
};

extern struct echo echo;

/* Returns the next event of @ch, which must be of @type; the caller acknowledges it. */
struct rdma_cm_event *cm_event(struct rdma_event_channel *ch, enum rdma_cm_event_type type);

/* Starts the server at @d's address, with threads of its own. */
void echo_open(const struct dev *d);
/* Waits until all clients have disconnected. Returns the number of connections. */
unsigned long echo_close(void);
struct rdma_conn_param echo_param(void);

#endif /* SELFTESTS_ECHO_H */
