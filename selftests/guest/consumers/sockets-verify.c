// SPDX-License-Identifier: GPL-2.0
/*
 * sockets-verify serve|visit ADDRESS PORT
 *
 * A plain program of sockets, to be run over rsockets by preload. Both ends send a long
 * stream at the same time, without blocking, as an event loop does; they take turns
 * with small messages; one closes its half. Every byte is checked. It uses only calls
 * that the preload library has: no SOCK_CLOEXEC, no accept4().
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STREAM	(8u << 20)
#define LAST	300007u
#define TURNS	500
#define PIECE	150001u		/* as much as is asked for at a time */

static int fd, me;
static uint8_t *out, *in;

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static uint8_t byte(int who, uint32_t i)
{
	return (uint8_t)((i + 7919 * who) * 2654435761u >> 13);
}

static void check(const uint8_t *p, uint32_t from, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (p[i] == byte(!me, from + i))
			continue;
		fprintf(stderr, "byte %zu is %#x, not %#x\n", from + i, p[i], byte(!me, from + i));
		exit(1);
	}
}

static void both_ways(void)
{
	struct pollfd pfd = { .fd = fd };
	uint32_t sent = 0, got = 0, len;
	ssize_t n;

	if (fcntl(fd, F_SETFL, O_NONBLOCK))
		die("F_SETFL");
	while (sent < STREAM || got < STREAM) {
		pfd.events = (got < STREAM ? POLLIN : 0) | (sent < STREAM ? POLLOUT : 0);
		if (poll(&pfd, 1, 30000) != 1)
			die("nothing happens");
		if (pfd.revents & POLLOUT) {
			len = STREAM - sent;
			n = send(fd, out + sent, len < PIECE ? len : PIECE, 0);
			if (n < 0 && errno != EAGAIN)
				die("send");
			sent += n > 0 ? n : 0;
		}
		if (pfd.revents & POLLIN) {
			len = STREAM - got;
			n = recv(fd, in + got, len < PIECE ? len : PIECE, 0);
			if (!n || (n < 0 && errno != EAGAIN))
				die("recv");
			got += n > 0 ? n : 0;
		}
	}
	check(in, 0, STREAM);
	if (fcntl(fd, F_SETFL, 0))
		die("F_SETFL");
}

static void send_all(const void *p, size_t len)
{
	while (len) {
		ssize_t n = send(fd, p, len, 0);

		if (n <= 0)
			die("send");
		p = (const char *)p + n;
		len -= n;
	}
}

static void recv_all(size_t len)
{
	size_t got = 0;
	ssize_t n;

	memset(in, 0, len);
	for (; got < len; got += n) {
		n = recv(fd, in + got, len - got, 0);
		if (n <= 0)
			die("recv");
	}
	check(in, 0, len);
}

static void turns(void)
{
	for (uint32_t i = 0; i < 2 * TURNS; i++) {
		if ((i & 1) == (uint32_t)me)
			send_all(out, 1 + i * 7 % 3001);
		else
			recv_all(1 + i * 7 % 3001);
	}
}

/* Earlier data arrives, and then the end of it; the other half goes on. */
static void half_closed(void)
{
	uint8_t end;

	if (me) {
		send_all(out, LAST);
		if (shutdown(fd, SHUT_WR))
			die("shutdown");
		recv_all(1000);
		return;
	}
	recv_all(LAST);
	if (recv(fd, &end, 1, 0))
		die("more than was sent");
	send_all(out, 1000);
}

static void dial(const char *address, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	int s = socket(AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, address, &a.sin_addr);
	if (me) {
		if (connect(s, (struct sockaddr *)&a, sizeof(a)))
			die("connect");
		fd = s;
		return;
	}
	if (bind(s, (struct sockaddr *)&a, sizeof(a)) || listen(s, 1))
		die("listen");
	fd = accept(s, NULL, NULL);
	if (fd < 0)
		die("accept");
	close(s);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	me = !strcmp(argv[1], "visit");
	out = malloc(STREAM);
	in = malloc(STREAM);
	if (!out || !in)
		die("malloc");
	for (uint32_t i = 0; i < STREAM; i++)
		out[i] = byte(me, i);
	dial(argv[2], atoi(argv[3]));
	both_ways();
	turns();
	half_closed();
	if (close(fd))
		die("close");
	printf("%u bytes both ways, %u turns: right\n", STREAM, TURNS);
	return 0;
}
