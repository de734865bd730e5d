// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts, PDs and MRs that another process, or the same one, imports by command fd and handle:
 * they work like the originals.
 */
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/import.h"

#define MSG	IMPORT_MSG

static struct dev *own;
static struct buf buf;		/* registered in @own */

static void setup(void)
{
	own = dev_open_qhca();
	buf = buf_new(own->pd, 8192, REMOTE);
}

TEST(keys, "import: an MR has the keys and the length of the original")
{
	struct dev *d;
	struct ibv_mr *mr;

	setup();
	d = dev_import(own);
	mr = ibv_import_mr(d->pd, buf.mr->handle);
	REQUIRE(mr);
	CHECK_EQ(mr->lkey, buf.mr->lkey);
	CHECK_EQ(mr->rkey, buf.mr->rkey);
	CHECK_EQ(mr->length, buf.mr->length);
	CHECK_EQ(mr->handle, buf.mr->handle);
	CHECK(!mr->addr);
	CHECK(mr->pd == d->pd && mr->context == d->ctx);
	CHECK_EQ(d->ctx->num_comp_vectors, own->ctx->num_comp_vectors);
	/* The imported MR has no memory of this process that could be replaced. */
	CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			      LOCAL), IBV_REREG_MR_ERR_INPUT);
}

TEST(traffic, "import: QPs of both contexts use the memory of one")
{
	struct buf theirs;
	struct pair p;
	struct dev *d;

	setup();
	d = dev_import(own);
	theirs = buf_import(d, &buf);
	p = pair_across(own, d, IBV_QPT_RC);
	write_half(&p.a, &buf, 1);
	write_half(&p.b, &theirs, 2);
	ping_pong(&p);
}

TEST(datagram, "import: an address handle carries the number of the PD")
{
	struct dev *d;
	struct ibv_sge in, out;
	struct ibv_send_wr wr;
	struct buf theirs;
	struct pair p;

	setup();
	d = dev_import(own);
	theirs = buf_import(d, &buf);
	p = pair_across(own, d, IBV_QPT_UD);
	fill(buf.addr, MSG, 3);
	in = buf_sge(&buf, 4096, MSG + 40);
	REQUIRE_OK(post_recv(&p.a, 2, &in, 1));
	out = buf_sge(&theirs, 0, MSG);
	wr = wr_send(1, &out, 1);
	wr.wr.ud.ah = own_ah(d, d->pd);
	wr.wr.ud.remote_qpn = p.a.qp->qp_num;
	wr.wr.ud.remote_qkey = CONN.qkey;
	REQUIRE_OK(post_send(&p.b, &wr));
	poll_ok(p.b.send_cq, 1);
	CHECK_EQ(poll_ok(p.a.recv_cq, 2).byte_len, MSG + 40);
	check_fill(buf.addr + 4096 + 40, MSG, 3, "datagram");
}

/* Another process */

struct parcel {
	uint32_t pd, mr;
	uint64_t addr, len;
	int gid_index;
	union ibv_gid gid;
};

static void send_parcel(int sock, int fd, const struct parcel *parcel)
{
	char control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec iov = { (void *)parcel, sizeof(*parcel) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	REQUIRE(sendmsg(sock, &msg, 0) == sizeof(*parcel));
}

static int recv_parcel(int sock, struct parcel *parcel)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { parcel, sizeof(*parcel) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	int fd;

	if (recvmsg(sock, &msg, 0) != sizeof(*parcel) || !CMSG_FIRSTHDR(&msg))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* Writes to and reads from memory that this process has not mapped. */
static int other_process(int sock)
{
	struct parcel parcel;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p;
	struct buf b;
	struct dev d = { 0 };
	int fd = recv_parcel(sock, &parcel);

	d.ctx = fd < 0 ? NULL : ibv_import_device(fd);
	REQUIRE(d.ctx);
	d.gid = parcel.gid;
	d.gid_index = parcel.gid_index;
	d.pd = ibv_import_pd(d.ctx, parcel.pd);
	REQUIRE(d.pd);
	b = (struct buf){ .addr = (uint8_t *)parcel.addr, .len = parcel.len };
	b.mr = ibv_import_mr(d.pd, parcel.mr);
	REQUIRE(b.mr);
	p = pair_across(&d, &d, IBV_QPT_RC);
	sge = buf_sge(&b, 0, MSG);
	wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1, parcel.addr + 4096,
		     b.mr->rkey);
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.a.send_cq, 1);
	ping_pong(&p);
	ibv_destroy_qp(p.a.qp);
	ibv_destroy_qp(p.b.qp);
	ibv_unimport_mr(b.mr);
	ibv_unimport_pd(d.pd);
	REQUIRE_OK(ibv_close_device(d.ctx));
	return 77;
}

TEST(process, "import: by a process that has only the fd and the handles")
{
	struct parcel parcel;
	int sock[2], status;
	struct pair p;
	pid_t pid;

	REQUIRE_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, sock));
	pid = fork();
	REQUIRE(pid >= 0);
	if (!pid)
		_exit(other_process(sock[1]));
	setup();
	fill(buf.addr, MSG, 9);
	parcel = (struct parcel){
		.pd = own->pd->handle, .mr = buf.mr->handle,
		.addr = (uintptr_t)buf.addr, .len = buf.len,
		.gid = own->gid, .gid_index = own->gid_index,
	};
	send_parcel(sock[0], own->ctx->cmd_fd, &parcel);
	REQUIRE(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 77);
	check_fill(buf.addr + 4096, MSG, 9, "copied by the other process");
	/* Its unimports do not affect the originals. */
	p = pair_across(own, own, IBV_QPT_RC);
	write_half(&p.a, &buf, 10);
}

/* Events go to the context that created the object. */

TEST(async, "import: asynchronous events of objects of the imported context")
{
	struct ibv_srq_attr limit = { .srq_limit = 1 };
	struct qp_opts o = QP_OPTS;
	struct ibv_srq *srq;
	struct pair p;
	struct dev *d;

	setup();
	d = dev_import(own);
	srq = srq_new(d, 8, 1);
	p.dev = own;
	p.a = end_new(own, &o);
	o.srq = srq;
	p.b = end_new(d, &o);
	pair_connect(&p, &CONN);
	REQUIRE_OK(srq_post(srq, 2, &buf, 0, MSG));
	REQUIRE_OK(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	struct ibv_sge sge = buf_sge(&buf, 4096, MSG);
	struct ibv_send_wr wr = wr_send(1, &sge, 1);

	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.a.send_cq, 1);
	async_expect(d->ctx, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	async_none(own->ctx);
}

TEST(comp, "import: completion channels of both contexts")
{
	struct ibv_comp_channel *ch[2];
	struct qp_opts o = QP_OPTS;
	struct ibv_send_wr wr = wr_send(1, NULL, 0);
	struct pair p;
	struct dev *d;
	struct ibv_cq *cq;

	setup();
	d = dev_import(own);
	ch[0] = ibv_create_comp_channel(own->ctx);
	ch[1] = ibv_create_comp_channel(d->ctx);
	REQUIRE(ch[0] && ch[1]);
	p.dev = own;
	o.recv_cq = cq_new(own, 8, ch[0]);
	p.a = end_new(own, &o);
	o.recv_cq = cq_new(d, 8, ch[1]);
	p.b = end_new(d, &o);
	pair_connect(&p, &CONN);
	REQUIRE_OK(ibv_req_notify_cq(p.a.recv_cq, 0));
	REQUIRE_OK(ibv_req_notify_cq(p.b.recv_cq, 0));
	REQUIRE_OK(post_recv(&p.b, 2, NULL, 0));
	REQUIRE_OK(post_send(&p.a, &wr));
	REQUIRE(cq_event_wait(ch[1], &cq, WAIT_MS));
	CHECK(cq == p.b.recv_cq);
	CHECK(!cq_event_wait(ch[0], &cq, QUIET_MS));
	poll_ok(p.a.send_cq, 1);
	poll_ok(p.b.recv_cq, 2);
}
