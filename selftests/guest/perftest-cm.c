// SPDX-License-Identifier: GPL-2.0
/*
 * LD_PRELOAD for perftest -R: a connection is asked for once its server listens.
 * perftest makes two, the first for what both sides tell each other over it. With
 * the last word on that one the client resolves and connects, the server creates the
 * second identifier, binds and listens, and nothing orders the two. A client that
 * comes first is rejected (no such service), tries again and crashes, because it
 * uses identifiers that it has destroyed.
 *
 * And a server disconnects once it is connected. perftest alone does not wait for that: where
 * the kernel has not yet read the client's RTU, rdma_disconnect() succeeds without a message,
 * and then both sides wait for the other's for ever.
 *
 * CM_LISTENS names a FIFO: a byte for each connection that a server listens for.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

static bool is_server;

/* Opened for reading and writing, so that neither side blocks here. */
static int listens(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = open(getenv("CM_LISTENS"), O_RDWR | O_CLOEXEC);
	return fd;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	int (*next)(struct rdma_cm_id *id, int backlog) = dlsym(RTLD_NEXT, "rdma_listen");
	int rc = next(id, backlog);

	is_server = true;
	for (int i = 0; !rc && i < backlog; i++)	/* perftest's number of QPs */
		if (write(listens(), "", 1) != 1)
			abort();
	return rc;
}

/* If the server never comes, rdma_connect() reports it. */
int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	int (*next)(struct rdma_cm_id *id, struct rdma_conn_param *param) =
		dlsym(RTLD_NEXT, "rdma_connect");
	struct pollfd wait = { .fd = listens(), .events = POLLIN };
	char byte;

	if (poll(&wait, 1, 60000) == 1 && read(wait.fd, &byte, 1) != 1)
		abort();
	return next(id, param);
}

/* The next event of a server with one QP is ESTABLISHED, and stays for perftest to read. */
int rdma_disconnect(struct rdma_cm_id *id)
{
	int (*next)(struct rdma_cm_id *id) = dlsym(RTLD_NEXT, "rdma_disconnect");
	struct pollfd wait = { .fd = id->channel->fd, .events = POLLIN };

	if (is_server && id->qp_type == IBV_QPT_RC)
		poll(&wait, 1, 60000);
	is_server = false;	/* perftest disconnects the last QP twice */
	return next(id);
}
