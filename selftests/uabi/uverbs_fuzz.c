// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes the user ABI through the command file, without libibverbs: requests for all methods, most
 * of them valid, some with a few mistakes, and rings, doorbells and mappings, in processes that are
 * killed. Afterwards everything must be as before, and a bystander must not have noticed anything.
 *
 * FUZZ_SEED determines what each thread does (not when), FUZZ_MS is the duration. FUZZ_TABLE=1
 * prints the results of each method.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <qhca/counters.h>

#include "uabi/fuzz/fuzz.h"
#include "lib/uverbs.h"

#define PROCESSES	2
#define LONG_LIFE	4000	/* upper limit, in calls of all processes */
/* After this many calls every method must have succeeded, and failed in the driver. */
#define ENOUGH_CALLS	20000
/* For verbs that rarely fail in the driver: some ten times in 50000 calls. */
#define ENOUGH_FOR_RARE	400000

struct fuzz fuzz;

/* ---- state that must be the same afterwards ---- */

struct snapshot {
	char resources[1024];
	long long objects;		/* objects of the device; -1: the host does not answer */
	long long pinned;		/* pinned pages */
	long contexts;			/* contexts that can be opened */
	bool dm;			/* all device memory can be allocated */
	long long available;		/* KiB */
	uint64_t counters[QHCA_CNT_MAX];
};

/* Returns the number behind @name in a file of lines. */
static long long number_in(const char *path, const char *name)
{
	char line[256];
	size_t len = strlen(name);
	long long n = -1;
	FILE *f = fopen(path, "r");

	REQUIRE(f);
	while (n < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, len) && strchr(": ", line[len]))
			n = atoll(line + len + 1);
	fclose(f);
	return n;
}

static long long device_objects(void)
{
	static const char args[] =
		"\"path\": \"/machine/peripheral/qhca0\", \"property\": \"objects\"";
	char cmd[256];
	long long n = -1;
	FILE *f;

	snprintf(cmd, sizeof(cmd),
		 "qhca-host qmp '{\"execute\": \"qom-get\", \"arguments\": {%s}}' 2>/dev/null",
		 args);
	f = popen(cmd, "r");
	REQUIRE(f);
	if (fscanf(f, "{\"return\": %lld", &n) != 1)
		n = -1;
	pclose(f);
	return n;
}

static long contexts_to_open(struct dev *d)
{
	struct rlimit limit = { 8192, 8192 };
	struct ibv_context **ctx = calloc(4096, sizeof(*ctx));
	long n, i;

	REQUIRE(ctx && !setrlimit(RLIMIT_NOFILE, &limit));
	for (n = 0; n < 4096; n++) {
		ctx[n] = ibv_open_device(d->ctx->device);
		if (!ctx[n])
			break;
	}
	for (i = 0; i < n; i++)
		ibv_close_device(ctx[i]);
	free(ctx);
	return n;
}

static uint64_t dm_size(struct dev *d)
{
	struct ibv_device_attr_ex attr;

	REQUIRE_OK(ibv_query_device_ex(d->ctx, NULL, &attr));
	return attr.max_dm_size;
}

static bool dm_whole(struct dev *d)
{
	struct ibv_alloc_dm_attr a = { .length = dm_size(d) };
	struct ibv_dm *dm = a.length ? ibv_alloc_dm(d->ctx, &a) : NULL;

	return dm ? !ibv_free_dm(dm) : !a.length;
}

static struct snapshot look(struct dev *d)
{
	struct snapshot s = { .contexts = contexts_to_open(d), .dm = dm_whole(d) };
	size_t i;

	for (i = 0; i < QHCA_CNT_MAX; i++)
		s.counters[i] = hw_counter(qhca_counter_names[i]);
	resources(s.resources, sizeof(s.resources));
	s.objects = device_objects();
	s.pinned = number_in("/proc/vmstat", "nr_foll_pin_acquired") -
		   number_in("/proc/vmstat", "nr_foll_pin_released");
	write_file("/proc/sys/vm/drop_caches", "3");
	s.available = number_in("/proc/meminfo", "MemAvailable");
	return s;
}

static void compare(const struct snapshot *before, const struct snapshot *after)
{
	if (strcmp(before->resources, after->resources))
		FAIL("before: %s after: %s", before->resources, after->resources);
	CHECK_EQ(after->objects, before->objects);
	CHECK_EQ(after->pinned, before->pinned);
	CHECK_EQ(after->contexts, before->contexts);
	CHECK(before->dm && after->dm);
	test_note("%lld objects, %ld contexts, %lld pages pinned, %lld KiB less memory",
		  after->objects, after->contexts, after->pinned,
		  before->available - after->available);
}

/* ---- the bystander ---- */

struct bystander {
	pid_t pid;
	bool *end;
	uint32_t *rounds;
};

static void stand_by(bool *end, uint32_t *rounds)
{
	enum { LEN = 20000 };
	struct pair p = pair_default();
	struct buf out = buf_new(p.dev->pd, LEN, LOCAL), in = buf_new(p.dev->pd, LEN, REMOTE);
	struct ibv_sge sge = buf_sge(&out, 0, LEN);
	struct ibv_send_wr wr;

	for (; !__atomic_load_n(end, __ATOMIC_RELAXED); (*rounds)++) {
		fill(out.addr, LEN, *rounds);
		wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1, (uintptr_t)in.addr, in.mr->rkey);
		REQUIRE_OK(post_send(&p.a, &wr));
		poll_ok(p.a.send_cq, 1);
		check_fill(in.addr, LEN, *rounds, "written");
		memset(out.addr, 0, LEN);
		wr = wr_rdma(2, IBV_WR_RDMA_READ, &sge, 1, (uintptr_t)in.addr, in.mr->rkey);
		REQUIRE_OK(post_send(&p.a, &wr));
		poll_ok(p.a.send_cq, 2);
		check_fill(out.addr, LEN, *rounds, "read");
		ping_pong(&p);
	}
	async_none(p.dev->ctx);
}

static struct bystander bystander_start(void)
{
	void *mem = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct bystander b = { .end = mem, .rounds = (uint32_t *)mem + 1 };

	REQUIRE(mem != MAP_FAILED);
	b.pid = fork();
	REQUIRE(b.pid >= 0);
	if (!b.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		stand_by(b.end, b.rounds);
		_exit(0);
	}
	while (!__atomic_load_n(b.rounds, __ATOMIC_RELAXED) && !waitpid(b.pid, NULL, WNOHANG))
		sleep_ms(1);
	return b;
}

static void bystander_stop(struct bystander *b)
{
	int status = -1;

	__atomic_store_n(b->end, true, __ATOMIC_RELAXED);
	waitpid(b->pid, &status, 0);
	if (status)
		FAIL("the bystander has ended with status %#x", status);
	CHECK(*b->rounds > 1);
}

/* ---- the processes ---- */

struct child {
	pid_t pid;
	uint64_t seed;
	uint32_t life;
};

static uint32_t calls(void)
{
	return __atomic_load_n(&fuzz.shared->calls, __ATOMIC_RELAXED);
}

static void start(struct child *c, uint64_t seed)
{
	c->seed = seed;
	c->life = calls() + below(LONG_LIFE);
	c->pid = fork();
	REQUIRE(c->pid >= 0);
	if (!c->pid) {
		worker(seed);
		_exit(0);
	}
}

static bool ended(const struct child *c)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, c->pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

/* If the process cannot be killed, this ends with the timeout of the harness. */
static void stop(struct child *c)
{
	int status;

	kill(c->pid, SIGKILL);
	REQUIRE(waitpid(c->pid, &status, 0) == c->pid);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		FAIL("seed %#llx: ended by itself, status %#x", (unsigned long long)c->seed,
		     status);
}

static unsigned int run(long seed, long ms)
{
	struct child children[PROCESSES], *c;
	int64_t end = time_ms() + ms;
	unsigned int n = 0;

	for (c = children; c < children + PROCESSES; c++)
		start(c, seed * 0x10000 + n++);
	for (; time_ms() < end; sleep_ms(20)) {
		for (c = children; c < children + PROCESSES; c++) {
			if (calls() < c->life && !ended(c))
				continue;
			stop(c);
			start(c, seed * 0x10000 + n++);
		}
	}
	for (c = children; c < children + PROCESSES; c++)
		stop(c);
	return n;
}

/* ---- results ---- */

static bool documented(const struct method *m, int err)
{
	static const int errs[] = {
		0, EINVAL, ENOMEM, EFAULT, EBUSY, ENOENT, EOPNOTSUPP, EPROTONOSUPPORT, ENOSPC,
		EAGAIN, EBADF, EPERM, EACCES,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(errs); i++)
		if (errs[i] == err)
			return true;
	return memchr(m->also, err, sizeof(m->also));
}

/* Whether the device has everything that the method needs. */
static bool can_succeed(const struct method *m)
{
	if (strstr(m->name, "DMABUF"))
		return !access("/dev/udmabuf", F_OK);
	if (strstr(m->name, "SHADOW"))
		return fuzz.has_shadow;
	return fuzz.has_dm || !strstr(m->name, "DM_");
}

static void judge(size_t index, bool enough)
{
	const struct tally *s = &fuzz.shared->tallies[index];
	const struct method *m = method(index);
	int err;

	if (m->refused && s->right)
		FAIL("%s: not supported, but has succeeded", m->name);
	if (!m->refused && !s->right && enough && can_succeed(m))
		FAIL("%s: has never succeeded, was refused %u times", m->name, s->refused);
	for (err = 0; err < MAX_ERRNO; err++)
		if (s->err[err / 8] >> err % 8 & 1 && !documented(m, err))
			FAIL("%s: error %d (%s)", m->name, err, strerror(err));
}

static void judge_error(const char *verb)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_err", verb);
	if (!dev_counter(name) && (fuzz.has_dm || !strstr(name, "dm")))
		FAIL("%s is 0", name);
}

/* Some requests of each verb must have reached the driver and failed there. */
static void judge_errors(void)
{
	static const char *const verbs[] = {
		"alloc_ucontext", "mmap", "alloc_pd", "create_ah", "reg_mr", "rereg_mr",
		"alloc_dm", "create_cq", "modify_cq", "create_qp", "modify_qp",
		"create_srq", "modify_srq",
	};
	static const char *const rare[] = { "alloc_mw", "alloc_xrcd" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(verbs) && calls() >= ENOUGH_CALLS; i++)
		judge_error(verbs[i]);
	for (i = 0; i < ARRAY_SIZE(rare) && calls() >= ENOUGH_FOR_RARE; i++)
		judge_error(rare[i]);
}

static void table(const struct snapshot *before)
{
	const struct tally *t = fuzz.shared->tallies;
	char errs[64];
	size_t i, n;
	int err;

	for (i = 0; i < QHCA_CNT_MAX; i++) {
		n = hw_counter(qhca_counter_names[i]) - before->counters[i];
		if (n)
			test_note("%-28s %7zu", qhca_counter_names[i], n);
	}
	for (i = 0; i < num_methods(); i++, t++) {
		for (err = 1, n = 0; err < MAX_ERRNO && n < sizeof(errs) - 5; err++)
			if (t->err[err / 8] >> err % 8 & 1)
				n += sprintf(errs + n, " %d", err);
		errs[n] = '\0';
		test_note("%-28s %7u ok %7u refused%s", method(i)->name, t->ok, t->refused, errs);
	}
}

static bool has_shadow(struct dev *d)
{
	struct uv uv = uv_open_file(d);

	REQUIRE_OK(uv_get_context(&uv));
	close(uv.fd);
	return uv.ctx.max_shadow_slots;
}

static void prepare(struct dev *d)
{
	snprintf(fuzz.path, sizeof(fuzz.path), "/dev/infiniband/%s", d->ctx->device->dev_name);
	fuzz.attr = d->attr;
	fuzz.gid = d->gid;
	fuzz.gid_index = d->gid_index;
	fuzz.has_dm = dm_size(d);
	fuzz.has_shadow = has_shadow(d);
	fuzz.shared = mmap(NULL, sizeof(*fuzz.shared), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(fuzz.shared != MAP_FAILED);
	REQUIRE(num_methods() <= MAX_METHODS);
}

TEST(fuzz_uverbs, "J-018 J-020 abi: requests, rings and mappings at random")
{
	long seed = from_env("FUZZ_SEED", 1), ms = from_env("FUZZ_MS", 10000);
	struct dev *d = dev_open_qhca();
	struct snapshot before, after;
	struct bystander b;
	unsigned int n;
	size_t i;

	test_timeout(ms / 1000 + 120);
	test_note("replay: FUZZ_SEED=%ld FUZZ_MS=%ld uverbs_fuzz", seed, ms);
	chance_seed(seed);
	prepare(d);
	before = look(d);
	b = bystander_start();
	n = run(seed, ms);
	bystander_stop(&b);
	after = look(d);
	test_note("%u processes: %u calls, %u mappings, %u doorbells; %u rounds beside them", n,
		  fuzz.shared->calls, fuzz.shared->maps, fuzz.shared->rings, *b.rounds);
	compare(&before, &after);
	for (i = 0; i < num_methods(); i++)
		judge(i, calls() >= ENOUGH_CALLS);
	judge_errors();
	if (from_env("FUZZ_TABLE", 0))
		table(&before);
}
