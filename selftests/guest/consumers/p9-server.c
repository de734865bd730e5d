// SPDX-License-Identifier: GPL-2.0
/*
 * p9-server ADDRESS PORT PATH
 *
 * A server for Linux's 9P client over RDMA: messages come and go by SEND, one each, and a diod for
 * each connection answers them.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>

#define DEPTH	64		/* more than the client has requests under way */
#define MSIZE	(128 << 10)	/* more than diod takes */

struct conn {
	struct rdma_cm_id *id;
	struct ibv_mr *recv_mr, *send_mr;
	char recv[DEPTH][MSIZE];
	char send[MSIZE];
	int fd;			/* of diod */
	pid_t pid;
};

static const char *path;
extern char **environ;

static int all(ssize_t (*io)(int, void *, size_t), int fd, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = io(fd, (char *)buf + done, len - done);

		if (n <= 0)
			return -1;
		done += n;
	}
	return 0;
}

static ssize_t put(int fd, void *buf, size_t len) { return write(fd, buf, len); }

/* Wait for the other side to disconnect; then let the queues drain. */
static void *wait_end(void *arg)
{
	struct conn *conn = arg;
	struct rdma_cm_event *event;
	int over = 0;

	while (!over && !rdma_get_cm_event(conn->id->channel, &event)) {
		over = event->event != RDMA_CM_EVENT_ESTABLISHED;
		rdma_ack_cm_event(event);
	}
	rdma_disconnect(conn->id);
	return NULL;
}

/* Pass diod's answers to the client. A message begins with its length. */
static void *answer(void *arg)
{
	struct conn *conn = arg;
	struct ibv_wc wc;
	uint32_t len;

	while (!all(read, conn->fd, conn->send, sizeof(len))) {
		memcpy(&len, conn->send, sizeof(len));
		len = le32toh(len);
		if (len < sizeof(len) || len > MSIZE)
			errx(1, "answer of %u bytes", len);
		if (all(read, conn->fd, conn->send + sizeof(len), len - sizeof(len)))
			break;
		if (rdma_post_send(conn->id, NULL, conn->send, len, conn->send_mr,
				   IBV_SEND_SIGNALED) ||
		    rdma_get_send_comp(conn->id, &wc) <= 0 || wc.status)
			break;
	}
	rdma_disconnect(conn->id);
	return NULL;
}

static void requests(struct conn *conn)
{
	struct ibv_wc wc;

	while (rdma_get_recv_comp(conn->id, &wc) > 0 && !wc.status) {
		char *buf = (char *)(uintptr_t)wc.wr_id;

		if (all(put, conn->fd, buf, wc.byte_len) ||
		    rdma_post_recv(conn->id, buf, buf, MSIZE, conn->recv_mr))
			break;
	}
}

static int start_diod(struct conn *conn)
{
	char fd[12], *argv[] = { "diod", "-f", "-n", "-L", "stderr", "-r", fd, "-w", fd, "-e",
				 (char *)path, NULL };
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv))
		return -1;
	conn->fd = sv[0];
	fcntl(conn->fd, F_SETFD, FD_CLOEXEC);
	snprintf(fd, sizeof(fd), "%d", sv[1]);
	errno = posix_spawnp(&conn->pid, "diod", NULL, NULL, argv, environ);
	close(sv[1]);
	return errno ? -1 : 0;
}

static void *serve(void *arg)
{
	struct conn *conn = arg;
	pthread_t threads[2];
	int i;

	conn->recv_mr = rdma_reg_msgs(conn->id, conn->recv, sizeof(conn->recv));
	conn->send_mr = rdma_reg_msgs(conn->id, conn->send, sizeof(conn->send));
	if (!conn->recv_mr || !conn->send_mr)
		err(1, "memory");
	for (i = 0; i < DEPTH; i++)
		if (rdma_post_recv(conn->id, conn->recv[i], conn->recv[i], MSIZE, conn->recv_mr))
			err(1, "post");
	if (start_diod(conn) || rdma_accept(conn->id, NULL))
		err(1, "accept");
	pthread_create(&threads[0], NULL, wait_end, conn);
	pthread_create(&threads[1], NULL, answer, conn);
	requests(conn);
	shutdown(conn->fd, SHUT_RDWR);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	close(conn->fd);
	waitpid(conn->pid, NULL, 0);
	rdma_dereg_mr(conn->recv_mr);
	rdma_dereg_mr(conn->send_mr);
	rdma_destroy_ep(conn->id);
	free(conn);
	return NULL;
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP }, *info;
	struct ibv_qp_init_attr attr = {
		.cap = { DEPTH, DEPTH, 1, 1, 0 }, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
	};
	struct rdma_cm_id *listener, *id;

	if (argc != 4)
		errx(2, "p9-server ADDRESS PORT PATH");
	path = argv[3];
	signal(SIGPIPE, SIG_IGN);
	if (rdma_getaddrinfo(argv[1], argv[2], &hints, &info) ||
	    rdma_create_ep(&listener, info, NULL, &attr) || rdma_listen(listener, 8))
		err(1, "%s:%s", argv[1], argv[2]);
	while (!rdma_get_request(listener, &id)) {
		struct conn *conn = calloc(1, sizeof(*conn));
		pthread_t thread;

		if (!conn)
			err(1, "memory");
		conn->id = id;
		pthread_create(&thread, NULL, serve, conn);
		pthread_detach(thread);
	}
	err(1, "request");
}
