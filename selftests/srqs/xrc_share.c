// SPDX-License-Identifier: GPL-2.0
/*
 * XRC between processes: domains by file, receiving for a QP of another process, and QPs opened by
 * number. The test itself is one process; the others are children that execute its orders one at a
 * time.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/xrc.h"

/* ---- a child that executes orders ---- */

/* struct helper - a child; messages in both directions are one number */
struct helper {
	pid_t pid;
	int sock;
};

static uint32_t get(int sock)
{
	uint32_t v = 0;

	REQUIRE(read(sock, &v, sizeof(v)) == sizeof(v));
	return v;
}

static void put(int sock, uint32_t v)
{
	REQUIRE(write(sock, &v, sizeof(v)) == sizeof(v));
}

static struct helper helper_new(int fd, void (*fn)(int sock, int fd))
{
	struct helper h;
	int sock[2];

	REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	h.pid = fork();
	REQUIRE(h.pid >= 0);
	if (!h.pid) {
		close(sock[0]);
		fn(sock[1], fd);
		_exit(0);
	}
	close(sock[1]);
	h.sock = sock[0];
	return h;
}

static void helper_end(struct helper *h)
{
	int status = -1;

	shutdown(h->sock, SHUT_RDWR);	/* other children may have inherited it */
	REQUIRE(waitpid(h->pid, &status, 0) == h->pid);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
}

static int new_file(void)
{
	int fd = memfd_create("xrcd", 0);

	REQUIRE(fd >= 0);
	return fd;
}

/* ---- domains ---- */

TEST(by_inode, "G-012 a domain belongs to an inode")
{
	struct dev *d = dev_open_qhca();
	int fd = new_file(), other = new_file();
	struct ibv_xrcd *a, *b;

	CHECK(!xrcd_open(d, fd, 0) && errno == EAGAIN);
	a = xrcd_new(d, fd, O_CREAT);
	CHECK(!xrcd_open(d, fd, O_CREAT | O_EXCL) && errno == EINVAL);
	CHECK(!xrcd_open(d, other, 0) && errno == EAGAIN);
	b = xrcd_open(d, dup(fd), 0);
	REQUIRE(b);
	CHECK_ERR(ibv_close_xrcd(a), 0);
	a = xrcd_open(d, fd, 0);
	REQUIRE(a);
	CHECK_ERR(ibv_close_xrcd(a), 0);
	CHECK_ERR(ibv_close_xrcd(b), 0);
	CHECK(!xrcd_open(d, fd, 0) && errno == EAGAIN);
	CHECK(xrcd_open(d, fd, O_CREAT | O_EXCL));
}

TEST(number, "J-001 many domains")
{
	struct dev *d = dev_open_qhca();
	struct ibv_xrcd *x[500];
	size_t i, round;

	for (round = 0; round < 2; round++) {
		for (i = 0; i < ARRAY_SIZE(x); i++)
			x[i] = xrcd_new(d, -1, O_CREAT);
		for (i = 0; i < ARRAY_SIZE(x); i++)
			CHECK_ERR(ibv_close_xrcd(x[i]), 0);
	}
}

/* ---- receiving for another process ---- */

/* Reports its SRQN, then for each message that the test announces the QPN of its completion. */
static void receiver(int sock, int fd)
{
	struct dev *d = dev_open();
	struct xsrq s = xsrq_new(d, xrcd_new(d, fd, 0), 16);
	struct buf b = buf_new(d->pd, 4096, LOCAL);
	struct ibv_wc wc;
	uint32_t seed;

	put(sock, s.srqn);
	while (read(sock, &seed, sizeof(seed)) == sizeof(seed)) {
		REQUIRE_OK(srq_post(s.srq, seed, &b, 0, 4096));
		put(sock, 0);		/* the receive WR is posted */
		wc = poll_ok(s.cq, seed);
		CHECK_EQ(wc.byte_len, 4096);
		check_fill(b.addr, 4096, seed, "received");
		put(sock, wc.qp_num);
	}
}

static void send_to(struct xrc *x, uint32_t srqn, uint32_t seed)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = xrc_wr(x, &sge, IBV_WR_SEND, 4096);

	wr.qp_type.xrc.remote_srqn = srqn;
	fill(x->buf.addr, 4096, seed);
	REQUIRE_OK(post_send(&x->p.a, &wr));
}

/* Makes the same connection as xrc_new(), but in the domain of @fd. */
static struct xrc connect_in(struct dev *d, int fd)
{
	struct xrc x = xrc_new(d, &CONN);
	struct qp_opts o = QP_OPTS;

	x.xrcd = xrcd_new(d, fd, O_CREAT);
	o.type = IBV_QPT_XRC_RECV;
	o.xrcd = x.xrcd;
	REQUIRE_OK(set_state(x.p.a.qp, IBV_QPS_RESET));
	x.p.b = end_new(d, &o);
	pair_connect(&x.p, &CONN);
	return x;
}

TEST(two, "G-012 G-003 one connection, SRQs of two processes")
{
	int fd = new_file();
	struct xrc x = connect_in(dev_open_qhca(), fd);
	struct helper h[2];
	uint32_t srqn[2], i;

	for (i = 0; i < 2; i++) {
		h[i] = helper_new(fd, receiver);
		srqn[i] = get(h[i].sock);
	}
	CHECK(srqn[0] != srqn[1]);
	for (i = 0; i < 10; i++) {
		put(h[i & 1].sock, 10 + i);
		get(h[i & 1].sock);
		send_to(&x, srqn[i & 1], 10 + i);
		poll_ok(x.p.a.send_cq, 100 + IBV_WR_SEND);
		CHECK_EQ(get(h[i & 1].sock), x.p.b.qp->qp_num);
	}
	helper_end(&h[0]);
	helper_end(&h[1]);

	/* The end of a process destroys only its own SRQ. */
	CHECK_EQ(get_state(x.p.b.qp), IBV_QPS_RTS);
	send_to(&x, srqn[0], 1);
	poll_expect(x.p.a.send_cq, 100 + IBV_WR_SEND, IBV_WC_REM_INV_REQ_ERR);
	async_expect(x.d->ctx, IBV_EVENT_QP_ACCESS_ERR, x.p.b.qp);
}

/* ---- QPs by number ---- */

static struct ibv_qp *open_qp(struct dev *d, struct ibv_xrcd *xrcd, uint32_t qpn, int type)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = qpn,
		.xrcd = xrcd,
		.qp_type = type,
	};

	errno = 0;
	return ibv_open_qp(d->ctx, &attr);
}

/*
 * Opens the QP with the number it gets and reports its state; waits; reports it again. (Uverbs
 * delivers the events of a QP only to its creator.)
 */
static void opener(int sock, int fd)
{
	struct dev *d = dev_open();
	struct ibv_qp *qp = open_qp(d, xrcd_new(d, fd, 0), get(sock), IBV_QPT_XRC_RECV);

	REQUIRE(qp);
	put(sock, get_state(qp));
	get(sock);
	put(sock, get_state(qp));
	put(sock, ibv_destroy_qp(qp));
}

TEST(opened, "G-012 a QP opened by its number is the same QP")
{
	struct dev *d = dev_open_qhca();
	int fd = new_file();
	struct xrc x = connect_in(d, fd);
	struct helper h = helper_new(fd, opener);

	put(h.sock, x.p.b.qp->qp_num);
	CHECK_EQ(get(h.sock), IBV_QPS_RTS);
	REQUIRE_OK(set_state(x.p.b.qp, IBV_QPS_ERR));
	async_expect(d->ctx, IBV_EVENT_QP_LAST_WQE_REACHED, x.p.b.qp);
	put(h.sock, 0);
	CHECK_EQ(get(h.sock), IBV_QPS_ERR);
	CHECK_EQ(get(h.sock), 0);
	helper_end(&h);
	CHECK_EQ(get_state(x.p.b.qp), IBV_QPS_ERR);
}

TEST(outlives, "G-012 an opened QP outlives its creator and keeps the domain")
{
	struct dev *d = dev_open_qhca();
	struct xrc x = connect_in(d, new_file());
	uint32_t qpn = x.p.b.qp->qp_num;
	struct ibv_qp *qp = open_qp(d, x.xrcd, qpn, IBV_QPT_XRC_RECV);
	struct ibv_qp_attr a;
	struct conn c = CONN;

	REQUIRE(qp);
	REQUIRE_OK(ibv_destroy_qp(x.p.b.qp));
	CHECK_EQ(get_state(qp), IBV_QPS_RTS);
	CHECK_ERR(ibv_close_xrcd(x.xrcd), EBUSY);
	REQUIRE_OK(set_state(qp, IBV_QPS_RESET));
	CHECK_ERR(ibv_modify_qp(qp, &a, attr_init(&a, &c)), 0);
	REQUIRE_OK(ibv_destroy_qp(qp));
	CHECK(!open_qp(d, x.xrcd, qpn, IBV_QPT_XRC_RECV));
	CHECK_ERR(ibv_close_xrcd(x.xrcd), 0);
}

TEST(not_opened, "G-012 QPs that cannot be opened by number")
{
	struct dev *d = dev_open_qhca();
	struct xrc x = connect_in(d, new_file());
	struct ibv_xrcd *other = xrcd_new(d, -1, O_CREAT);
	struct end rc = end_new(d, &QP_OPTS);
	uint32_t qpn = x.p.b.qp->qp_num;

	CHECK(!open_qp(d, other, qpn, IBV_QPT_XRC_RECV) && errno);
	CHECK(!open_qp(d, x.xrcd, qpn ^ 0x800000, IBV_QPT_XRC_RECV) && errno);
	CHECK(!open_qp(d, x.xrcd, rc.qp->qp_num, IBV_QPT_XRC_RECV) && errno);
	CHECK(!open_qp(d, x.xrcd, x.p.a.qp->qp_num, IBV_QPT_XRC_SEND) && errno);
	CHECK(!open_qp(d, x.xrcd, qpn, IBV_QPT_RC) && errno);
	CHECK(open_qp(d, x.xrcd, qpn, IBV_QPT_XRC_RECV));
}
