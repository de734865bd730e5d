// SPDX-License-Identifier: GPL-2.0
/*
 * Measurements for `make bench` that perftest has no options for: message rates by size and by the
 * number of QPs, MRs and SGEs used, the cost of objects, and the limits of the machine itself.
 * Prints lines "# figure SERIES X VALUE", with rates in 1/s and bandwidths in MiB/s.
 *
 * BENCH_MS is the time to measure each value, BENCH_X the list of X (default: all). The title of a
 * test begins with the name by which -t selects it.
 */
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <qhca/queues.h>
#include <qhca/regs.h>

#include "lib/uverbs.h"

#define MIB		1048576
#define MAX_MSG		(8 * MIB)
#define DEPTH		64	/* messages in flight */
#define IN_FLIGHT	(2 * MIB)	/* bytes in flight, unless one message is larger */
#define FRAME		4096	/* bytes of data in a frame of the largest path MTU */
#define SGE_LEN		64
#define MANY_SECONDS	600

/* ---- values of X, and time ---- */

/* Fills @x with the numbers N,N,… in BENCH_X, or in @all if that is not set. Returns how many. */
static int points(const char *all, unsigned long *x, int max)
{
	const char *text = getenv("BENCH_X");
	char *end;
	int n = 0;

	for (text = text ? text : all; *text; text = *end ? end + 1 : end) {
		REQUIRE(n < max);
		x[n] = strtoul(text, &end, 0);
		REQUIRE(end != text && x[n]);
		n++;
	}
	REQUIRE(n);
	return n;
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static int64_t budget_ns(void)
{
	return from_env("BENCH_MS", 100) * 1000000LL;
}

static void print_figure(const char *series, unsigned long x, double value)
{
	test_note("figure %s %lu %.6g", series, x, value);
}

/* Returns how often @fn can be called in a second. */
static double rate_of(void (*fn)(void *arg), void *arg)
{
	int64_t start, ns, budget = budget_ns();
	unsigned long done = 0, batch = 1;

	fn(arg);
	start = now_ns();
	for (;;) {
		for (unsigned long i = 0; i < batch; i++)
			fn(arg);
		done += batch;
		ns = now_ns() - start;
		if (ns >= budget)
			return done * 1e9 / ns;
		/* Looks at the clock about a hundred times, however long @fn takes. */
		batch = 1 + done * (budget / 100) / (ns + 1);
		if (batch > done)
			batch = done;
	}
}

/* ---- messages ---- */

/* struct load - messages of one kind, on several QPs and with several MRs in turn */
struct load {
	struct dev *dev;
	struct ibv_cq *cq, *recv_cq;
	struct pair *pairs;
	unsigned long num_pairs, senders;	/* number of pairs, and of ends that send */
	struct buf src, dst;
	struct ibv_mr **mrs;		/* MRs of src and dst; NULL: the buffers' own */
	unsigned long num_mrs;
	enum ibv_wr_opcode opcode;
	uint32_t len;			/* length of an SGE */
	int num_sge;
};

static void load_open(struct load *l, size_t len, unsigned long max_qps)
{
	test_timeout(MANY_SECONDS);
	l->dev = dev_open();
	l->cq = cq_new(l->dev, 4 * DEPTH, NULL);
	l->recv_cq = cq_new(l->dev, 4 * DEPTH, NULL);
	l->src = buf_new(l->dev->pd, 2 * len, REMOTE);
	l->dst = l->src;
	l->dst.addr += len;
	fill(l->src.addr, 2 * len, 1);
	l->pairs = calloc(max_qps / 2 + 1, sizeof(*l->pairs));
	REQUIRE(l->pairs);
	l->num_sge = 1;
}

/*
 * Adds QPs until @n can send, each with room for all messages. Their receive queues are short,
 * because the memory for receive requests does not suffice for thousands of long queues.
 */
static void load_qps(struct load *l, unsigned long n, uint32_t sges)
{
	struct qp_opts o = QP_OPTS;
	struct conn c = CONN;

	o.send_cq = l->cq;
	o.recv_cq = l->recv_cq;
	o.send_wr = DEPTH;
	o.recv_wr = l->opcode == IBV_WR_SEND ? 2 * DEPTH : 1;
	o.send_sge = sges;
	c.mtu = l->dev->port.active_mtu;
	c.timeout = 18;
	c.rd_atomic = l->dev->attr.max_qp_rd_atom;
	c.dest_rd_atomic = c.rd_atomic;
	while (l->num_pairs < (n + 1) / 2)
		l->pairs[l->num_pairs++] = pair_new(l->dev, &o, &c);
	l->senders = n;
}

static void load_recv(struct load *l, struct end *e)
{
	struct ibv_sge sge = buf_sge(&l->src, l->dst.addr - l->src.addr, l->len);

	REQUIRE_OK(post_recv(e, 0, &sge, 1));
}

static void load_send(struct load *l, unsigned long n)
{
	struct ibv_mr *mr = l->mrs ? l->mrs[n % l->num_mrs] : l->src.mr;
	unsigned long sender = n % l->senders;
	struct pair *p = &l->pairs[sender / 2];
	struct ibv_sge sge[32];
	struct ibv_send_wr wr;
	uintptr_t src = (uintptr_t)l->src.addr, dst = (uintptr_t)l->dst.addr;
	int i;

	for (i = 0; i < l->num_sge; i++)
		sge[i] = (struct ibv_sge){ src + i * 2 * l->len, l->len, mr->lkey };
	wr = wr_rdma(0, l->opcode, sge, l->num_sge, dst, mr->rkey);
	REQUIRE_OK(post_send(sender % 2 ? &p->b : &p->a, &wr));
}

/* Polls completions, each of which must be a success. Returns how many. */
static int load_reap(struct ibv_cq *cq)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(cq, ARRAY_SIZE(wc), wc), i;

	REQUIRE(n >= 0);
	for (i = 0; i < n; i++)
		if (wc[i].status != IBV_WC_SUCCESS) {
			FAIL("%s", ibv_wc_status_str(wc[i].status));
			test_die();
		}
	return n;
}

/* Returns messages per second, with @window in flight, for @budget ns until all are done. */
static double load_run(struct load *l, unsigned long window, int64_t budget)
{
	bool sends = l->opcode == IBV_WR_SEND, over = false;
	unsigned long posted = 0, done = 0, i;
	int64_t start = now_ns();

	while (!over || done < posted) {
		while (!over && posted - done < window)
			load_send(l, posted++);
		for (i = sends ? load_reap(l->recv_cq) : 0; i; i--)
			load_recv(l, &l->pairs[0].b);
		done += load_reap(l->cq);
		over = over || now_ns() - start >= budget;
	}
	return done * 1e9 / (now_ns() - start);
}

/* Measures with as many messages in flight as DEPTH and IN_FLIGHT allow, but at least two. */
static double load_rate(struct load *l)
{
	unsigned long window = IN_FLIGHT / (l->len * l->num_sge), i;

	window = window < 2 ? 2 : window > DEPTH ? DEPTH : window;
	for (i = 0; l->opcode == IBV_WR_SEND && i < 2 * window; i++)
		load_recv(l, &l->pairs[0].b);
	load_run(l, window, 0);		/* warm up */
	return load_run(l, window, budget_ns());
}

static const struct kind {
	const char *name;
	enum ibv_wr_opcode opcode;
} kinds[] = {
	{ "write", IBV_WR_RDMA_WRITE },
	{ "read", IBV_WR_RDMA_READ },
	{ "send", IBV_WR_SEND },
};

#define SIZES	"8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768,65536,131072,"	\
		"262144,524288,1048576,2097152,4194304,8388608"

/* Each size has its own pair, so that it finds no receive requests of another length. */
TEST_ROWS(sizes, "sizes: bandwidth by size of a message", kinds)
{
	unsigned long x[32];
	int i, n = points(SIZES, x, ARRAY_SIZE(x));
	struct load l = { .opcode = row->opcode };

	load_open(&l, MAX_MSG, ARRAY_SIZE(x));
	for (i = 0; i < n; i++) {
		l.num_pairs = 0;
		load_qps(&l, 1, 1);
		l.len = x[i];
		print_figure(row->name, x[i], load_rate(&l) * x[i] / MIB);
		REQUIRE_OK(ibv_destroy_qp(l.pairs[0].a.qp));
		REQUIRE_OK(ibv_destroy_qp(l.pairs[0].b.qp));
		while (load_reap(l.recv_cq))
			;
	}
}

TEST(qps, "qps: WRITEs of 8 bytes by number of QPs that send")
{
	struct load l = { .opcode = IBV_WR_RDMA_WRITE, .len = 8 };
	unsigned long x[16];
	int i, n = points("1,4,16,64,256,1024,4096", x, ARRAY_SIZE(x));

	load_open(&l, FRAME, x[n - 1]);
	for (i = 0; i < n; i++) {
		load_qps(&l, x[i], 1);
		print_figure("qps", x[i], load_rate(&l));
	}
}

TEST(mrs, "mrs: WRITEs of 8 bytes by number of MRs they use in turn")
{
	struct load l = { .opcode = IBV_WR_RDMA_WRITE, .len = 8 };
	unsigned long x[16];
	int i, n = points("1,16,256,4096,60000", x, ARRAY_SIZE(x));

	load_open(&l, FRAME, 1);
	load_qps(&l, 1, 1);
	l.mrs = calloc(x[n - 1], sizeof(l.mrs[0]));
	REQUIRE(l.mrs);
	for (i = 0; i < n; i++) {
		for (; l.num_mrs < x[i]; l.num_mrs++) {
			l.mrs[l.num_mrs] = ibv_reg_mr(l.dev->pd, l.src.addr, l.src.len, REMOTE);
			REQUIRE(l.mrs[l.num_mrs]);
		}
		print_figure("mrs", x[i], load_rate(&l));
	}
}

TEST(sges, "sges: WRITEs by number of SGEs, of 64 bytes each")
{
	struct load l = { .opcode = IBV_WR_RDMA_WRITE, .len = SGE_LEN };
	unsigned long x[16];
	int i, n = points("1,2,4,8,16", x, ARRAY_SIZE(x));

	load_open(&l, 2 * FRAME, 1);
	load_qps(&l, 1, x[n - 1]);
	for (i = 0; i < n; i++) {
		l.num_sge = x[i];
		print_figure("sges", x[i], load_rate(&l));
	}
}

/* ---- objects ---- */

static void reg_dereg(void *arg)
{
	struct buf *b = arg;
	struct ibv_mr *mr = ibv_reg_mr(b->mr->pd, b->addr, b->len, REMOTE);

	REQUIRE(mr);
	REQUIRE_OK(ibv_dereg_mr(mr));
}

TEST(registration, "registration: MRs registered and deregistered by size")
{
	struct dev *d = dev_open();
	unsigned long x[16];
	int i, n = points("4096,65536,1048576,16777216,268435456", x, ARRAY_SIZE(x));

	test_timeout(MANY_SECONDS);
	for (i = 0; i < n; i++) {
		struct buf b = buf_new(d->pd, x[i], REMOTE);	/* touches its pages */

		print_figure("registration", x[i], rate_of(reg_dereg, &b));
		buf_free(&b);
	}
}

/* struct life - data that all QPs of life() share */
struct life {
	struct dev *dev;
	struct qp_opts opts;
};

static void live_and_die(void *arg)
{
	struct life *l = arg;
	struct end e = end_in(l->dev, &l->opts, IBV_QPS_RTS);

	REQUIRE_OK(ibv_destroy_qp(e.qp));
}

TEST(life, "life: QPs created, connected, in RTS and destroyed")
{
	struct life l = { dev_open(), QP_OPTS };

	test_timeout(MANY_SECONDS);
	l.opts.send_cq = cq_new(l.dev, 64, NULL);
	l.opts.recv_cq = l.opts.send_cq;
	print_figure("life", 1, rate_of(live_and_die, &l));
}

/* ---- limits of the machine ---- */

/* struct copy - @len bytes to copy, or to send in frames */
struct copy {
	uint8_t *src, *dst;
	size_t len;
	int sock;
};

static void copy_hot(void *arg)
{
	struct copy *c = arg;

	memcpy(c->dst, c->src, c->len);
	asm volatile("" : : "r"(c->dst) : "memory");
}

/* Nothing receives the frames, so the kernel drops them when the socket is full. */
static void send_frames(void *arg)
{
	struct copy *c = arg;
	size_t off, len;

	for (off = 0; off < c->len; off += len) {
		len = c->len - off < FRAME ? c->len - off : FRAME;
		REQUIRE(send(c->sock, c->src + off, len, 0) == (ssize_t)len);
	}
}

/* Returns a socket that sends to itself over the loopback interface. */
static int loop_socket(void)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(addr);
	int sock = socket(AF_INET, SOCK_DGRAM, 0);

	REQUIRE(sock >= 0);
	REQUIRE(!bind(sock, (struct sockaddr *)&addr, len));
	REQUIRE(!getsockname(sock, (struct sockaddr *)&addr, &len));
	REQUIRE(!connect(sock, (struct sockaddr *)&addr, len));
	return sock;
}

static const struct limit {
	const char *name;
	void (*fn)(void *copy);
} limits[] = {
	{ "memcpy", copy_hot },
	{ "syscall", send_frames },
};

TEST_ROWS(bytes, "limit: bandwidth without RDMA", limits)
{
	unsigned long x[32];
	int i, n = points(SIZES, x, ARRAY_SIZE(x));
	struct copy c = { malloc(MAX_MSG), malloc(MAX_MSG), 0, loop_socket() };

	REQUIRE(c.src && c.dst);
	memset(c.src, 1, MAX_MSG);
	memset(c.dst, 2, MAX_MSG);
	for (i = 0; i < n; i++) {
		c.len = x[i];
		print_figure(row->name, x[i], rate_of(row->fn, &c) * x[i] / MIB);
	}
}

/* struct bell - a receive queue whose doorbell is rung without a new index */
struct bell {
	atomic_ullong *reg;
	uint64_t value;
};

static void ring_for_nothing(void *arg)
{
	struct bell *b = arg;

	atomic_store_explicit(b->reg, b->value, memory_order_relaxed);
}

TEST(doorbell, "doorbell: MMIO writes that change nothing")
{
	struct dev *d = dev_open_qhca();
	struct uv uv = uv_open(d);
	struct qhca_create_cq_req cq_req = uv_cq_req(uv_mem(2 * FRAME), 6);
	struct qhca_create_qp_req qp_req = uv_qp_req(uv_mem(FRAME), uv_mem(FRAME), 4);
	const struct ibv_qp_cap cap = { 16, 16, 4, 1, 0 };
	uint64_t bad = hw_counter("bad_doorbell");
	struct uv_cq cq;
	struct uv_qp qp;
	struct bell bell;

	REQUIRE_OK(uv_create_cq(&uv, 64, &cq_req, sizeof(cq_req), &cq));
	REQUIRE_OK(uv_create_qp(&uv, &cq, &cap, &qp_req, sizeof(qp_req), &qp));
	REQUIRE_OK(uv_qp_to_init(&uv, &qp));
	bell.reg = (atomic_ullong *)((uint8_t *)uv.db + QHCA_DB_RQ);
	bell.value = QHCA_PREP(QHCA_DB_INDEX, 1ull) | qp.qpn;
	print_figure("doorbell", 1, rate_of(ring_for_nothing, &bell));
	CHECK_EQ(hw_counter("bad_doorbell"), bad);
}
