// SPDX-License-Identifier: GPL-2.0
/*
 * One user takes all that his cgroup may have (rdma.max), of one kind after the other, and
 * keeps it. What he gets then is EAGAIN, and another user works as if he were not there.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/rdma.h"

#define PAGE		4096
#define HANDLES		8
#define OBJECTS		400
/* A region of that many pages, none of which follows the one before it in memory. */
#define BLOCKS		8192
/* That many block addresses has the device for all. */
#define ALL_BLOCKS	(1u << 24)
#define ALL_GROUPS	512u
/* No more objects than that does he have besides those that he takes. */
#define OTHERS		16

static struct dev *d;
static struct ibv_cq *cq;
static struct ibv_qp *ud;
static uint8_t page[PAGE] __attribute__((aligned(PAGE)));
static uint8_t *scattered;

#define MOUNT		"/sys/fs/cgroup"
#define GROUP		MOUNT "/qhca-selftest"

static struct shared {
	atomic_int done, go;
	int error;
} *shared;

/* ---- what there is to take */

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

static void *make_group(int i)
{
	union ibv_gid gid = { .raw = { 0xff, 0x0e, [14] = i >> 8, i } };

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

/* What each of those counts for. */
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

/* ---- the cgroup */

/* The line of a file of the cgroup that begins with @key; "" if there is none. */
static void get(const char *path, const char *key, char *line, size_t len)
{
	FILE *f = fopen(path, "r");
	bool found = false;

	REQUIRE(f);
	while (!found && fgets(line, len, f))
		found = !strncmp(line, key, strlen(key));
	fclose(f);
	if (!found)
		*line = '\0';
}

static void limit(const char *format, ...)
{
	char line[200];
	va_list args;
	int n;

	n = snprintf(line, sizeof(line), "%s ", dev_name());
	va_start(args, format);
	vsnprintf(line + n, sizeof(line) - n, format, args);
	va_end(args);
	REQUIRE_OK(write_file(GROUP "/rdma.max", line));
}

/*
 * Not with a limit: the kernel would keep it until the device goes, in a list of the cgroup
 * that is gone by then (rdmacg_css_offline(), since 4.11).
 */
static void cgroup_remove(void)
{
	if (!access(GROUP "/rdma.max", F_OK))
		limit("hca_handle=max hca_object=max");
	CHECK(!rmdir(GROUP));
}

/* Where only we see it: others have mounted cgroup2 there, or something else. */
static void cgroup_new(const char *controller)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", MOUNT, "cgroup2", 0, NULL))
		test_skip("no cgroup2");
	if (write_file(MOUNT "/cgroup.subtree_control", controller))
		test_skip("no cgroup controller %s", controller + 1);
	if (!access(GROUP, F_OK))
		cgroup_remove();
	REQUIRE(!mkdir(GROUP, 0755));
}

/* ---- the users */

static pid_t start(void (*fn)(const struct kind *k), const struct kind *k, uid_t uid, bool limited)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	REQUIRE(pid >= 0);
	if (pid)
		return pid;
	if (limited)
		REQUIRE_OK(write_file(GROUP "/cgroup.procs", "0"));
	REQUIRE(!setgroups(0, NULL) && !setresgid(uid, uid, uid) && !setresuid(uid, uid, uid));
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fn(k);
	fflush(stdout);
	_exit(0);
}

static struct ibv_qp *ud_new(struct dev *dev)
{
	struct qp_opts o = QP_OPTS;

	o.type = IBV_QPT_UD;
	o.send_cq = cq;
	o.recv_cq = cq;
	return end_in(dev, &o, IBV_QPS_INIT).qp;
}

/* The even pages of a file, again and again. */
static uint8_t *scatter(void)
{
	int i, fd = memfd_create("scattered", 0);
	uint8_t *mem;

	REQUIRE(fd >= 0 && !ftruncate(fd, 64 * PAGE));
	mem = mmap(NULL, (size_t)BLOCKS * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(mem != MAP_FAILED);
	for (i = 0; i < BLOCKS; i++)
		REQUIRE(mmap(mem + (size_t)i * PAGE, PAGE, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_FIXED, fd, i % 32 * 2 * PAGE) != MAP_FAILED);
	return mem;
}

/* Takes as many as there are, and keeps them until he is killed. */
static void greedy(const struct kind *k)
{
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
	test_note("%d times %u", n, cost);
	CHECK(cost >= 1);
	CHECK(n * cost <= (unsigned int)k->max);
	CHECK(n * cost + cost + OTHERS > (unsigned int)k->max);
	fflush(stdout);
	atomic_store(&shared->done, 1);
	pause();
}

/* One of each, and a message. */
static void modest(const struct kind *k)
{
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
			FAIL("no more %s: %s", k->name, strerror(errno));
	CHECK(!ibv_close_device(second));
}

static void ended(pid_t pid, const char *who, int want)
{
	int status;

	REQUIRE(waitpid(pid, &status, 0) == pid);
	if (status != want)
		FAIL("%s: status %#x", who, status);
}

/* What he had is nobody's again. */
static void check_returned(void)
{
	int64_t end = time_ms() + WAIT_MS;
	unsigned int handles, objects;
	char line[200];

	do {
		get(GROUP "/rdma.current", dev_name(), line, sizeof(line));
		if (!*line || (sscanf(line, "%*s hca_handle=%u hca_object=%u", &handles,
				      &objects) == 2 && !handles && !objects))
			return;
		sleep_ms(50);
	} while (time_ms() < end);
	FAIL("rdma.current: %s", line);
}

static void prepare(const char *controller)
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	if (geteuid())
		test_skip("not root, who can be two others");
	dev_open_qhca();
	test_timeout(120);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	REQUIRE(shared != MAP_FAILED && !setrlimit(RLIMIT_MEMLOCK, &all));
	cgroup_new(controller);
}

/* Until the user has got as far as @done. */
static void wait_done(pid_t pid, int done)
{
	while (atomic_load(&shared->done) < done && !waitpid(pid, NULL, WNOHANG))
		sleep_ms(10);
	REQUIRE(atomic_load(&shared->done) >= done);
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	ended(pid, "who took all", SIGKILL);
}

TEST_ROWS(others, "J-001 J-018 a user takes all that his cgroup may have; another one works", kinds)
{
	pid_t pid;

	prepare("+rdma");
	limit("hca_handle=%d hca_object=%d", HANDLES, OBJECTS);
	pid = start(greedy, row, 10001, true);
	wait_done(pid, 1);
	CHECK_ERR(shared->error, EAGAIN);
	ended(start(modest, row, 10002, false), "the other user", 0);
	stop(pid);
	check_returned();
	cgroup_remove();
}

#define REGIONS		4000

static void register_many(const struct kind *k)
{
	int i;

	d = dev_open_qhca();
	atomic_store(&shared->done, 1);
	while (!atomic_load(&shared->go))
		sleep_ms(1);
	for (i = 0; i < REGIONS; i++)
		REQUIRE(make_mr(i));
	atomic_store(&shared->done, 2);
	pause();
}

static long slab(void)
{
	const char *key = "slab_unreclaimable ";
	char line[200];

	get(GROUP "/memory.stat", key, line, sizeof(line));
	REQUIRE(*line);
	return atol(line + strlen(key));
}

TEST(memory, "J-018 what the driver keeps of a region is the memory of the cgroup of its user")
{
	long before, after;
	pid_t pid;

	prepare("+memory");
	pid = start(register_many, NULL, 10001, true);
	wait_done(pid, 1);
	before = slab();
	atomic_store(&shared->go, 1);
	wait_done(pid, 2);
	after = slab();
	test_note("%ld bytes for each region", (after - before) / REGIONS);
	CHECK(after - before >= REGIONS * 128);
	stop(pid);
	cgroup_remove();
}
