// SPDX-License-Identifier: GPL-2.0
/*
 * The textbook application, from the list of devices to releasing the last object, directly on
 * libibverbs without lib/: two processes that find the device by its GUID, and each other by a
 * socket.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/rdma.h"

#define HALF	(64 * 1024)	/* size of data sent; the peer writes behind it */
#define WORD	(2 * HALF)	/* offset of the word for atomics */
#define LEN	(2 * HALF + 4096)
#define RIGHTS	(REMOTE | IBV_ACCESS_REMOTE_ATOMIC)
#define START	1000		/* initial value of the word */

/* struct hello - data that the peers exchange */
struct hello {
	union ibv_gid gid;
	uint32_t qpn, psn;
	uint64_t addr;
	uint32_t rkey;
};

struct app {
	int sock;
	struct ibv_context *ctx;
	struct ibv_port_attr port;
	int gid_index;
	struct ibv_pd *pd;
	uint8_t *buf;
	struct ibv_mr *mr;
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	unsigned int events;
	struct ibv_qp *qp;
	struct hello mine, peer;
};

/* ---- steps 1 to 7: resources ---- */

/* Returns the GUID of the device under test, as an administrator would have noted it. */
static uint64_t wanted_guid(void)
{
	unsigned int w[4];
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/node_guid", dev_name());
	f = fopen(path, "r");
	if (!f)
		test_skip("no RDMA device %s", dev_name());
	REQUIRE(fscanf(f, "%x:%x:%x:%x", &w[0], &w[1], &w[2], &w[3]) == 4);
	fclose(f);
	return (uint64_t)w[0] << 48 | (uint64_t)w[1] << 32 | w[2] << 16 | w[3];
}

static void open_by_guid(struct app *a, uint64_t guid)
{
	struct ibv_device **list;
	int i, n, found = 0;

	list = ibv_get_device_list(&n);
	REQUIRE(list);
	for (i = 0; i < n; i++) {
		if (be64toh(ibv_get_device_guid(list[i])) != guid)
			continue;
		a->ctx = ibv_open_device(list[i]);
		REQUIRE(a->ctx);
		found++;
	}
	CHECK_EQ(found, 1);
	ibv_free_device_list(list);
	REQUIRE(found);
}

/* Finds a device of the right kind, a port that is up, and an address. */
static void look_around(struct app *a, uint64_t guid)
{
	struct ibv_gid_entry e[256];
	struct ibv_device_attr attr;
	ssize_t i, n;

	REQUIRE_OK(ibv_query_device(a->ctx, &attr));
	CHECK(be64toh(attr.node_guid) == guid);
	CHECK(attr.phys_port_cnt >= 1);
	REQUIRE_OK(ibv_query_port(a->ctx, PORT, &a->port));
	CHECK_EQ(a->port.state, IBV_PORT_ACTIVE);
	a->gid_index = -1;
	n = ibv_query_gid_table(a->ctx, e, ARRAY_SIZE(e), 0);
	for (i = 0; i < n && a->gid_index < 0; i++) {
		if (e[i].port_num != PORT || e[i].gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    e[i].gid.raw[10] != 0xff)
			continue;
		a->gid_index = e[i].gid_index;
		a->mine.gid = e[i].gid;
	}
	REQUIRE(a->gid_index >= 0);
}

static void make_objects(struct app *a)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2,
			 .max_recv_sge = 2 },
	};

	a->pd = ibv_alloc_pd(a->ctx);
	REQUIRE(a->pd);
	a->buf = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(a->buf != MAP_FAILED);
	a->mr = ibv_reg_mr(a->pd, a->buf, LEN, RIGHTS);
	REQUIRE(a->mr);
	a->ch = ibv_create_comp_channel(a->ctx);
	REQUIRE(a->ch);
	a->cq = ibv_create_cq(a->ctx, 64, a, a->ch, 0);
	REQUIRE(a->cq);
	REQUIRE_OK(ibv_req_notify_cq(a->cq, 0));
	init.send_cq = a->cq;
	init.recv_cq = a->cq;
	a->qp = ibv_create_qp(a->pd, &init);
	REQUIRE(a->qp);
}

/* ---- step 8: connecting ---- */

static void both_here(struct app *a)
{
	char c = 'x';

	REQUIRE(write(a->sock, &c, 1) == 1);
	REQUIRE(read(a->sock, &c, 1) == 1);
}

static void connect_qps(struct app *a)
{
	struct conn c = CONN;
	struct dev d = { .gid_index = a->gid_index };
	struct ibv_qp_attr attr;
	int mask;

	a->mine.qpn = a->qp->qp_num;
	a->mine.psn = lrand48() & 0xffffff;
	a->mine.addr = (uintptr_t)a->buf;
	a->mine.rkey = a->mr->rkey;
	REQUIRE(write(a->sock, &a->mine, sizeof(a->mine)) == sizeof(a->mine));
	REQUIRE(read(a->sock, &a->peer, sizeof(a->peer)) == sizeof(a->peer));
	c.access = RIGHTS;
	c.mtu = a->port.active_mtu;
	c.dest_qpn = a->peer.qpn;
	c.rq_psn = a->peer.psn;
	c.sq_psn = a->mine.psn;
	d.gid = a->peer.gid;
	mask = attr_init(&attr, &c);
	REQUIRE_OK(ibv_modify_qp(a->qp, &attr, mask));
	mask = attr_rtr(&attr, &d, &c);
	REQUIRE_OK(ibv_modify_qp(a->qp, &attr, mask));
	mask = attr_rts(&attr, &c);
	REQUIRE_OK(ibv_modify_qp(a->qp, &attr, mask));
}

/* ---- step 9: data ---- */

/* Sleeps until the event of the next completion; there is never more than one completion. */
static struct ibv_wc completion(struct app *a, uint64_t id)
{
	struct ibv_wc wc = { 0 };
	struct ibv_cq *cq;
	void *context;

	REQUIRE_OK(ibv_get_cq_event(a->ch, &cq, &context));
	CHECK(cq == a->cq && context == a);
	a->events++;
	REQUIRE_OK(ibv_req_notify_cq(a->cq, 0));
	REQUIRE(ibv_poll_cq(a->cq, 1, &wc) == 1);
	CHECK_EQ(wc.wr_id, id);
	if (wc.status)
		FAIL("%llu: %s", (unsigned long long)id, ibv_wc_status_str(wc.status));
	return wc;
}

static const struct kind {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode sent, received;
	bool recv, imm;
} kinds[] = {
	{ "SEND", IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, true, false },
	{ "SEND with imm.", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV, true, true },
	{ "WRITE", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, 0, false, false },
	{ "WRITE with imm.", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE,
	  IBV_WC_RECV_RDMA_WITH_IMM, true, true },
	{ "READ", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, 0, false, false },
	{ "fetch and add", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, 0, false, false },
	{ "compare and swap", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, 0, false, false },
};

static void client(struct app *a, const struct kind *k, unsigned int seed)
{
	uint64_t *found = (uint64_t *)(a->buf + HALF);
	struct ibv_sge sge = { (uintptr_t)a->buf, HALF, a->mr->lkey };
	struct ibv_send_wr wr = wr_rdma(seed, k->opcode, &sge, 1, a->peer.addr + HALF,
					a->peer.rkey), *bad;
	struct ibv_wc wc;

	fill(a->buf, HALF, seed);
	wr.imm_data = htobe32(seed);
	if (k->opcode == IBV_WR_RDMA_READ) {
		sge.addr += HALF;
		wr.wr.rdma.remote_addr = a->peer.addr;
	}
	if (is_atomic(k->opcode)) {
		sge.addr += HALF;
		sge.length = 8;
		wr.wr.atomic.remote_addr = a->peer.addr + WORD;
		wr.wr.atomic.compare_add = k->sent == IBV_WC_FETCH_ADD ? 5 : START + 5;
		wr.wr.atomic.swap = START;
	}
	REQUIRE_OK(ibv_post_send(a->qp, &wr, &bad));
	wc = completion(a, seed);
	CHECK_EQ(wc.opcode, k->sent);
	if (k->opcode == IBV_WR_RDMA_READ)
		check_fill(a->buf + HALF, HALF, seed + 1, k->name);
	if (is_atomic(k->opcode))
		CHECK_EQ(*found, k->sent == IBV_WC_FETCH_ADD ? START : START + 5);
}

static void server(struct app *a, const struct kind *k, unsigned int seed)
{
	struct ibv_wc wc;

	if (k->recv) {
		wc = completion(a, 500 + seed);
		CHECK_EQ(wc.opcode, k->received);
		CHECK_EQ(wc.byte_len, HALF);
		CHECK_EQ(!!(wc.wc_flags & IBV_WC_WITH_IMM), k->imm);
		CHECK(!k->imm || be32toh(wc.imm_data) == seed);
	}
	both_here(a);
	if (k->recv || k->opcode == IBV_WR_RDMA_WRITE)
		check_fill(a->buf + HALF, HALF, seed, k->name);
	if (is_atomic(k->opcode))
		CHECK_EQ(*(uint64_t *)(a->buf + WORD), k->sent == IBV_WC_FETCH_ADD ?
			 START + 5 : START);
}

static void transfer(struct app *a, bool serving)
{
	struct ibv_sge sge = { (uintptr_t)a->buf + HALF, HALF, a->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	unsigned int seed;

	*(uint64_t *)(a->buf + WORD) = START;
	for (seed = 1; seed <= 3 * ARRAY_SIZE(kinds); seed++) {
		const struct kind *k = &kinds[seed % ARRAY_SIZE(kinds)];

		if (serving) {
			memset(a->buf + HALF, 0, HALF);
			fill(a->buf, HALF, seed + 1);		/* data for the READ */
			wr.wr_id = 500 + seed;
			if (k->recv)
				REQUIRE_OK(ibv_post_recv(a->qp, &wr, &bad));
		}
		both_here(a);
		if (serving) {
			server(a, k, seed);
		} else {
			client(a, k, seed);
			both_here(a);
		}
	}
}

/* ---- step 10: destroy each object before those it was made from ---- */

static void release(struct app *a)
{
	CHECK_ERR(ibv_dealloc_pd(a->pd), EBUSY);	/* too early: still in use */
	CHECK_ERR(ibv_destroy_cq(a->cq), EBUSY);
	ibv_ack_cq_events(a->cq, a->events);
	CHECK_ERR(ibv_destroy_qp(a->qp), 0);
	CHECK_ERR(ibv_destroy_cq(a->cq), 0);
	CHECK_ERR(ibv_destroy_comp_channel(a->ch), 0);
	CHECK_ERR(ibv_dereg_mr(a->mr), 0);
	CHECK_ERR(munmap(a->buf, LEN), 0);
	CHECK_ERR(ibv_dealloc_pd(a->pd), 0);
	CHECK_ERR(ibv_close_device(a->ctx), 0);
}

static void application(int sock, bool serving)
{
	struct app a = { .sock = sock };
	uint64_t guid = wanted_guid();

	srand48(getpid());
	open_by_guid(&a, guid);
	look_around(&a, guid);
	make_objects(&a);
	connect_qps(&a);
	transfer(&a, serving);
	both_here(&a);
	release(&a);
}

TEST(ten_steps, "J-018 J-007 A-011 C-022 C-023 the application of ten steps")
{
	char before[1024];
	int sock[2], status;
	pid_t child;

	wanted_guid();
	resources(before, sizeof(before));
	REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	child = fork();
	REQUIRE(child >= 0);
	application(sock[!child], !child);
	if (!child)
		_exit(0);		/* report only once, but its failures count */
	REQUIRE(waitpid(child, &status, 0) == child);
	CHECK_EQ(status, 0);
	check_resources(before);
}
