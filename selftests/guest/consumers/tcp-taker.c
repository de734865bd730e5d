// SPDX-License-Identifier: GPL-2.0
/*
 * tcp-taker serve DEVICE PORT		(in one machine)
 * tcp-taker visit ADDRESS PORT		(in the other)
 *
 * A process takes a TCP port from the kernel and gives it back, as bypasses of the kernel's stack
 * do: a flow rule steers the frames of that port to a QP of type RAW_PACKET, and the process
 * answers them itself. The kernel listens all the time. While the rule is there it sees nothing,
 * neither of new connections nor of one that stands; afterwards both work. In the first round the
 * process destroys its rule, in the second it is killed.
 *
 * The machines talk about the steps over PORT + 1, which no rule takes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOTS		64
#define SLOT		2048
#define SOON_MS		800	/* for what must not come */
#define LATE_MS		60000	/* for what must come */

#define MUST(what)	must(what, #what, __LINE__)

static void must(bool ok, const char *what, int line)
{
	if (ok)
		return;
	fprintf(stderr, "line %d: not %s: %s\n", line, what, strerror(errno));
	exit(1);
}

/* ---- sockets ---- */

static struct sockaddr_in address(const char *host, int port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };

	MUST(inet_pton(AF_INET, host, &addr.sin_addr) == 1);
	return addr;
}

static int listen_at(int port)
{
	struct sockaddr_in addr = address("0.0.0.0", port);
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	MUST(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	MUST(!bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	MUST(!listen(fd, 8));
	return fd;
}

/* Returns a connection, or -1 and sets errno. */
static int connect_to(const char *host, int port)
{
	struct sockaddr_in addr = address(host, port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	close(fd);
	return -1;
}

static bool readable(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, ms) == 1;
}

static void say(int fd, const char *word)
{
	MUST(write(fd, word, 8) == 8);
}

static void hear(int fd, const char *word)
{
	char got[8];

	MUST(readable(fd, LATE_MS));
	MUST(recv(fd, got, sizeof(got), MSG_WAITALL) == sizeof(got));
	MUST(!memcmp(got, word, sizeof(got)));
}

/* ---- frames ---- */

struct frame {
	struct ether_header eth;
	struct iphdr ip;
	struct tcphdr tcp;
} __attribute__((packed));

/* Frames that the process has taken; both processes have it. */
struct counts {
	unsigned int syns, data;
};

struct port {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;		/* SLOTS to receive, and one to send */
	volatile struct counts *counts;
};

static uint32_t sum16(const void *p, size_t len, uint32_t sum)
{
	const uint8_t *b = p;
	size_t i;

	for (i = 0; i < len; i += 2)
		sum += b[i] << 8 | (i + 1 < len ? b[i + 1] : 0);
	return sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons(~sum);
}

static void post_recv(struct port *p, uint64_t slot)
{
	struct ibv_sge sge = { (uintptr_t)p->buf + slot * SLOT, SLOT, p->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	MUST(!ibv_post_recv(p->qp, &wr, &bad));
}

/* Refuses a connection, as a kernel without a listener does. */
static void refuse(struct port *p, const struct frame *in)
{
	struct frame *out = (struct frame *)(p->buf + SLOTS * SLOT);
	struct ibv_sge sge = { (uintptr_t)out, 60, p->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = SLOTS, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	memset(out, 0, 60);
	memcpy(out->eth.ether_dhost, in->eth.ether_shost, 6);
	memcpy(out->eth.ether_shost, in->eth.ether_dhost, 6);
	out->eth.ether_type = in->eth.ether_type;
	out->ip = (struct iphdr){ .version = 4, .ihl = 5, .tot_len = htons(40), .ttl = 64,
		.protocol = IPPROTO_TCP, .saddr = in->ip.daddr, .daddr = in->ip.saddr };
	out->ip.check = fold(sum16(&out->ip, 20, 0));
	out->tcp = (struct tcphdr){ .source = in->tcp.dest, .dest = in->tcp.source,
		.ack_seq = htonl(ntohl(in->tcp.seq) + 1), .doff = 5, .rst = 1, .ack = 1 };
	out->tcp.check = fold(sum16(&out->tcp, 20,
				    sum16(&out->ip.saddr, 8, IPPROTO_TCP + 20)));
	MUST(!ibv_post_send(p->qp, &wr, &bad));
}

static void take(struct port *p, const struct ibv_wc *wc)
{
	const struct frame *in = (const struct frame *)(p->buf + wc->wr_id * SLOT);

	MUST(wc->status == IBV_WC_SUCCESS);
	if (wc->wr_id == SLOTS)		/* a refusal is sent */
		return;
	MUST(wc->byte_len >= sizeof(*in) && in->ip.protocol == IPPROTO_TCP);
	if (in->tcp.syn) {
		p->counts->syns++;
		refuse(p, in);
	} else if (ntohs(in->ip.tot_len) > 4 * (in->ip.ihl + in->tcp.doff)) {
		p->counts->data++;
	}
	post_recv(p, wc->wr_id);
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			return ibv_open_device(list[i]);
	return NULL;
}

static void raw_open(struct port *p, const char *device)
{
	struct ibv_context *ctx = open_device(device);
	struct ibv_pd *pd;
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 8, .max_recv_wr = SLOTS, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RAW_PACKET,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	uint64_t i;

	MUST(ctx);
	pd = ibv_alloc_pd(ctx);
	p->cq = ibv_create_cq(ctx, 2 * SLOTS, NULL, NULL, 0);
	p->buf = aligned_alloc(4096, (SLOTS + 2) * SLOT);
	MUST(pd && p->cq && p->buf);
	p->mr = ibv_reg_mr(pd, p->buf, (SLOTS + 1) * SLOT, IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = p->cq;
	init.recv_cq = p->cq;
	p->qp = ibv_create_qp(pd, &init);
	MUST(p->mr && p->qp);
	MUST(!ibv_modify_qp(p->qp, &attr, IBV_QP_STATE | IBV_QP_PORT));
	attr.qp_state = IBV_QPS_RTR;
	MUST(!ibv_modify_qp(p->qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	MUST(!ibv_modify_qp(p->qp, &attr, IBV_QP_STATE));
	for (i = 0; i < SLOTS; i++)
		post_recv(p, i);
}

static struct ibv_flow *steer(struct port *p, int port)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_tcp_udp tcp;
	} rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 1,
			  .port = 1 },
		.tcp = { .type = IBV_FLOW_SPEC_TCP, .size = sizeof(rule.tcp),
			 .val.dst_port = htons(port), .mask.dst_port = 0xffff },
	};

	return ibv_create_flow(p->qp, &rule.attr);
}

/* ---- both sides ---- */

enum { DESTROYS, IS_KILLED, ROUNDS };

/* The process that takes the port: until it may stop, is killed, or has no parent. */
static void taker(const char *device, int port, int control, int stop[2], struct counts *counts)
{
	struct port p = { .counts = counts };
	struct ibv_flow *flow;
	struct ibv_wc wc;
	int n;

	close(stop[1]);
	raw_open(&p, device);
	flow = steer(&p, port);
	MUST(flow);
	say(control, "taken  ");
	while ((n = ibv_poll_cq(p.cq, 1, &wc)) || !readable(stop[0], 0)) {
		MUST(n >= 0);
		if (n)
			take(&p, &wc);
	}
	MUST(!ibv_destroy_flow(flow));
	MUST(!ibv_destroy_qp(p.qp));
	exit(0);
}

static void nothing_seen(int listener, int conn)
{
	char byte;

	MUST(!readable(listener, 0));
	MUST(recv(conn, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
}

/* A word on a connection to the kernel comes back. */
static void echo(int conn, const char *word)
{
	hear(conn, word);
	say(conn, word);
}

/* One round: the process takes the port, the other side tries, the port is given back. */
static void serve_round(const char *device, int port, int round, const int fd[3])
{
	int listener = fd[0], control = fd[1], conn = fd[2], stop[2], status, more;
	struct counts *counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	MUST(counts != MAP_FAILED && !pipe(stop));
	pid = fork();
	if (!pid)
		taker(device, port, control, stop, counts);
	hear(control, "refused");
	nothing_seen(listener, conn);
	printf("round %d: %u SYNs, %u frames with data\n", round, counts->syns, counts->data);
	MUST(counts->syns && counts->data);

	if (round == IS_KILLED)
		MUST(!kill(pid, SIGKILL));
	else
		MUST(write(stop[1], "", 1) == 1);
	MUST(waitpid(pid, &status, 0) == pid);
	MUST(round == IS_KILLED ? WIFSIGNALED(status) : !status);
	say(control, "given  ");
	echo(conn, "during ");
	more = accept(listener, NULL, NULL);
	MUST(more >= 0);
	echo(more, "after  ");
	close(more);
}

static void serve(const char *device, int port)
{
	int listener = listen_at(port), meeting = listen_at(port + 1), control, conn, round;

	control = accept(meeting, NULL, NULL);
	conn = accept(listener, NULL, NULL);
	MUST(control >= 0 && conn >= 0);
	echo(conn, "before ");
	for (round = 0; round < ROUNDS; round++)
		serve_round(device, port, round, (int [3]){ listener, control, conn });
	hear(control, "over   ");
}

static void visit(const char *host, int port)
{
	int control, conn, more, round, i;

	for (i = 0; (control = connect_to(host, port + 1)) < 0 && i < 600; i++)
		usleep(100000);
	conn = connect_to(host, port);
	MUST(control >= 0 && conn >= 0);
	say(conn, "before ");
	hear(conn, "before ");
	for (round = 0; round < ROUNDS; round++) {
		hear(control, "taken  ");
		say(conn, "during ");
		MUST(!readable(conn, SOON_MS));
		MUST(connect_to(host, port) < 0 && errno == ECONNREFUSED);
		say(control, "refused");

		hear(control, "given  ");
		hear(conn, "during ");	/* the kernel sends again, and is answered */
		more = connect_to(host, port);
		MUST(more >= 0);
		say(more, "after  ");
		hear(more, "after  ");
		close(more);
	}
	say(control, "over   ");
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(180);
	if (argc == 4 && !strcmp(argv[1], "serve"))
		serve(argv[2], atoi(argv[3]));
	else if (argc == 4 && !strcmp(argv[1], "visit"))
		visit(argv[2], atoi(argv[3]));
	else
		return 2;
	printf("%s: done\n", argv[1]);
	return 0;
}
