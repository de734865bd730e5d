// SPDX-License-Identifier: GPL-2.0
/*
 * One user takes everything that its cgroup allows (rdma.max), one kind of object after the other,
 * and keeps it. Further requests fail with EAGAIN, and another user works as if it were alone.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/cgroup.h"

#define PAGE		4096
#define HANDLES		8
#define OBJECTS		400
/* A region of that many pages, none of which is contiguous with the one before. */
#define BLOCKS		8192
/* Number of block addresses of the device, for all users. */
#define ALL_BLOCKS	(1u << 24)
#define ALL_GROUPS	512u
/* Largest number of other objects that a user has. */
#define OTHERS		16

static struct dev *d;
static struct ibv_cq *cq;
static struct ibv_qp *ud;
static uint8_t page[PAGE] __attribute__((aligned(PAGE)));
static uint8_t *scattered;

/* ---- kinds of objects */

static void *make_context(int i)
{
	return ibv_open_device(d->ctx->device);
}

static void *make_pd(int i)
{
	return ibv_alloc_pd(d->ctx);
}

static void *make_cq(int i)
{
	return ibv_create_cq(d->ctx, 1, NULL, NULL, 0);
}

static void *make_qp(int i)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = { 2, 2, 1, 1, 0 },
	};

	return ibv_create_qp(d->pd, &init);
}

static void *make_srq(int i)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };

	return ibv_create_srq(d->pd, &init);
}

static void *make_mr(int i)
{
	return ibv_reg_mr(d->pd, page, PAGE, REMOTE);
}

static void *make_mw(int i)
{
	return ibv_alloc_mw(d->pd, IBV_MW_TYPE_1);
}

static void *make_ah(int i)
{
	struct ibv_ah_attr attr = own_address(d);

	return ibv_create_ah(d->pd, &attr);
}

static void *make_xrcd(int i)
{
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};

	return ibv_open_xrcd(d->ctx, &init);
}

static void *make_dm(int i)
{
	struct ibv_alloc_dm_attr attr = { .length = PAGE };

	return ibv_alloc_dm(d->ctx, &attr);
}

static union ibv_gid group_gid(int i)
{
	return (union ibv_gid){ .raw = { 0xff, 0x0e, [14] = i >> 8, i } };
}

static void *make_group(int i)
{
	union ibv_gid gid = group_gid(i);

	errno = ibv_attach_mcast(ud, &gid, 0);
	return errno ? NULL : ud;
}

static void *make_blocks(int i)
{
	return ibv_reg_mr(d->pd, scattered, (size_t)BLOCKS * PAGE, REMOTE);
}

static unsigned int parts(void)
{
	return d->attr.max_pd < d->attr.max_qp ? d->attr.max_pd : d->attr.max_qp;
}

/* Charge for an object that takes no other resource. */
static unsigned int one(void)
{
	return 1;
}

static unsigned int dm_cost(void)
{
	struct ibv_device_attr_ex attr;

	REQUIRE_OK(ibv_query_device_ex(d->ctx, NULL, &attr));
	return 1 + (uint64_t)PAGE * parts() / attr.max_dm_size;
}

static unsigned int group_cost(void)
{
	return parts() / ALL_GROUPS;
}

static unsigned int blocks_cost(void)
{
	return 1 + (uint64_t)BLOCKS * parts() / ALL_BLOCKS;
}

static const struct kind {
	const char *name;
	void *(*make)(int i);
	unsigned int (*cost)(void);
	int max;
} kinds[] = {
	{ "contexts", make_context, one, HANDLES },
	{ "PDs", make_pd, one, OBJECTS },
	{ "CQs", make_cq, one, OBJECTS },
	{ "QPs", make_qp, one, OBJECTS },
	{ "SRQs", make_srq, one, OBJECTS },
	{ "regions", make_mr, one, OBJECTS },
	{ "windows", make_mw, one, OBJECTS },
	{ "address handles", make_ah, one, OBJECTS },
	{ "XRC domains", make_xrcd, one, OBJECTS },
	{ "device memory", make_dm, dm_cost, OBJECTS },
	{ "multicast groups", make_group, group_cost, OBJECTS },
	{ "block addresses", make_blocks, blocks_cost, OBJECTS },
};

/* ---- the users */

static struct ibv_qp *ud_new(struct dev *dev)
{
	struct qp_opts o = QP_OPTS;

	o.type = IBV_QPT_UD;
	o.send_cq = cq;
	o.recv_cq = cq;
	return end_in(dev, &o, IBV_QPS_INIT).qp;
}

/* Maps the even pages of a file many times. */
static uint8_t *scatter(void)
{
	int i, fd = memfd_create("scattered", 0);
	uint8_t *mem;

	REQUIRE(fd >= 0);
	/* With the odd pages, or the even ones may be neighbours in memory. */
	for (i = 0; i < 64; i++)
		REQUIRE(pwrite(fd, "", 1, (off_t)i * PAGE) == 1);
	mem = mmap(NULL, (size_t)BLOCKS * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(mem != MAP_FAILED);
	for (i = 0; i < BLOCKS; i++)
		REQUIRE(mmap(mem + (size_t)i * PAGE, PAGE, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_FIXED, fd, i % 32 * 2 * PAGE) != MAP_FAILED);
	return mem;
}

/* Takes as many objects as it can get, and keeps them until it is killed. */
static void greedy(const void *arg)
{
	const struct kind *k = arg;
	unsigned int cost;
	int n;

	d = dev_open_qhca();
	cq = cq_new(d, 16, NULL);
	if (k->make == make_group)
		ud = ud_new(d);
	if (k->make == make_blocks)
		scattered = scatter();
	cost = k->cost();
	for (n = 0; k->make(n); n++)
		;
	shared->error = errno;
	test_note("%d objects, each charged as %u", n, cost);
	CHECK(cost >= 1);
	CHECK(n * cost <= (unsigned int)k->max);
	CHECK(n * cost + cost + OTHERS > (unsigned int)k->max);
	fflush(stdout);
	atomic_store(&shared->done, 1);
	pause();
}

/* Creates one object of each kind, and sends a message. */
static void modest(const void *arg)
{
	const struct kind *k;
	struct ibv_context *second;
	struct pair p;
	struct buf b;

	d = dev_open_qhca();
	p = pair_new(d, &QP_OPTS, &CONN);
	cq = p.a.send_cq;
	ping_pong(&p);
	ud = ud_new(d);
	scattered = scatter();
	b = buf_new(d->pd, 1 << 20, REMOTE);
	REQUIRE(b.mr);
	second = make_context(0);
	REQUIRE(second);
	for (k = kinds + 1; k < kinds + ARRAY_SIZE(kinds); k++)
		if (!k->make(600))
			FAIL("no %s: %s", k->name, strerror(errno));
	CHECK(!ibv_close_device(second));
}

/* After the user has ended, its cgroup is charged with nothing. */
static void check_returned(void)
{
	int64_t end = time_ms() + WAIT_MS;
	unsigned int handles, objects;
	char line[200];

	do {
		cgroup_line("rdma.current", dev_name(), line, sizeof(line));
		if (!*line || (sscanf(line, "%*s hca_handle=%u hca_object=%u", &handles,
				      &objects) == 2 && !handles && !objects))
			return;
		sleep_ms(50);
	} while (time_ms() < end);
	FAIL("rdma.current: %s", line);
}

TEST_ROWS(others, "J-001 J-018 a user takes all that its cgroup allows; another one works", kinds)
{
	pid_t pid;

	cgroup_open("+rdma");
	cgroup_limit("hca_handle=%d hca_object=%d", HANDLES, OBJECTS);
	pid = user_start(greedy, row, 10001, true);
	user_wait(pid, 1);
	CHECK_ERR(shared->error, EAGAIN);
	user_ended(user_start(modest, row, 10002, false), "the other user", 0);
	user_stop(pid);
	check_returned();
	cgroup_remove();
}

/* Leaves a group, and destroys the QP even if that failed. */
static void leaving(const void *arg)
{
	union ibv_gid gid = group_gid(1);

	d = dev_open_qhca();
	cq = cq_new(d, 16, NULL);
	ud = ud_new(d);
	REQUIRE(make_group(1));
	if (ibv_detach_mcast(ud, &gid, 0))
		test_note("cannot leave the group");
	ibv_destroy_qp(ud);
}

TEST(left, "J-018 destroying a QP uncharges its multicast groups")
{
	cgroup_open("+rdma");
	cgroup_limit("hca_handle=%d hca_object=%d", HANDLES, OBJECTS);
	user_ended(user_start(leaving, NULL, 10001, true), "the leaving user", 0);
	check_returned();
	cgroup_remove();
}
