// SPDX-License-Identifier: GPL-2.0
/* Devices, memory, counters, time. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "rdma.h"

void sleep_ms(unsigned int ms)
{
	usleep(ms * 1000);
}

int64_t time_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

const char *dev_name(void)
{
	const char *name = getenv("RDMA_DEVICE");

	if (!name || !*name)
		name = getenv("QHCA_DEV");
	return name && *name ? name : "qhca0";
}

static struct ibv_context *open_by_name(const char *name)
{
	struct ibv_context *ctx = NULL;
	struct ibv_device **list;
	int i, n = 0;

	list = ibv_get_device_list(&n);
	for (i = 0; list && i < n; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name))
			continue;
		ctx = ibv_open_device(list[i]);
		if (!ctx)
			FAIL("cannot open %s: %s", name, strerror(errno));
		REQUIRE(ctx);
	}
	if (list)
		ibv_free_device_list(list);
	return ctx;
}

/* Finds the port's first GID of RoCE v2 and IPv4. */
static bool find_gid(struct dev *d)
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };
	struct ibv_gid_entry e[256];
	ssize_t i, n;

	n = ibv_query_gid_table(d->ctx, e, ARRAY_SIZE(e), 0);
	for (i = 0; i < n; i++) {
		if (e[i].port_num != PORT ||
		    e[i].gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    memcmp(e[i].gid.raw, v4, sizeof(v4)))
			continue;
		d->gid = e[i].gid;
		d->gid_index = e[i].gid_index;
		return true;
	}
	return false;
}

struct dev *dev_open(void)
{
	struct dev *d = calloc(1, sizeof(*d));

	REQUIRE(d);
	d->ctx = open_by_name(dev_name());
	if (!d->ctx && getenv("RDMA_DEVICE")) {
		FAIL("no RDMA device %s", dev_name());
		test_die();
	}
	if (!d->ctx)
		test_skip("no RDMA device %s", dev_name());
	d->qhca = !strncmp(dev_name(), "qhca", 4);
	REQUIRE_OK(ibv_query_device(d->ctx, &d->attr));
	REQUIRE_OK(ibv_query_port(d->ctx, PORT, &d->port));
	if (!find_gid(d)) {
		FAIL("%s has no GID for IPv4 and RoCE v2", dev_name());
		test_die();
	}
	d->pd = ibv_alloc_pd(d->ctx);
	REQUIRE(d->pd);
	return d;
}

struct dev *dev_open_qhca(void)
{
	struct dev *d = dev_open();

	if (!d->qhca)
		test_skip("qhca only");
	return d;
}

bool kernel_before(unsigned int major, unsigned int minor)
{
	struct utsname kernel;
	unsigned int x, y;

	REQUIRE(!uname(&kernel));
	REQUIRE(sscanf(kernel.release, "%u.%u", &x, &y) == 2);
	return x < major || (x == major && y < minor);
}

bool has_flush(struct ibv_context *ctx)
{
	struct ibv_device_attr_ex attr;

	REQUIRE_OK(ibv_query_device_ex(ctx, NULL, &attr));
	return attr.device_cap_flags_ex & IB_UVERBS_DEVICE_FLUSH_GLOBAL || !kernel_before(6, 2);
}

void need_flush(struct ibv_context *ctx)
{
	if (!has_flush(ctx))
		test_skip("Linux before 6.2 has no FLUSH");
}

uint32_t mtu_bytes(enum ibv_mtu mtu)
{
	return 128u << mtu;
}

struct buf buf_new(struct ibv_pd *pd, size_t len, int access)
{
	struct buf b = { .len = len };

	if (access & IBV_ACCESS_FLUSH_GLOBAL)
		need_flush(pd->context);
	b.addr = mmap(NULL, len, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(b.addr != MAP_FAILED);
	b.mr = ibv_reg_mr(pd, b.addr, len, access);
	REQUIRE(b.mr);
	return b;
}

void buf_free(struct buf *b)
{
	REQUIRE_OK(ibv_dereg_mr(b->mr));
	REQUIRE(!munmap(b->addr, b->len));
}

struct ibv_sge buf_sge(const struct buf *b, size_t off, uint32_t len)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)b->addr + off,
		.length = len,
		.lkey = b->mr->lkey,
	};
}

/* Directories of the counters of the port, and of the device. */
#define PORT_COUNTERS	"ports/1/hw_counters"
#define DEVICE_COUNTERS	"hw_counters"

static bool counter_read(const char *dir, const char *name, uint64_t *value)
{
	unsigned long long v;
	char path[512];
	FILE *f;
	int n;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/%s/%s", dev_name(), dir, name);
	f = fopen(path, "r");
	if (!f)
		return false;
	n = fscanf(f, "%llu", &v);
	fclose(f);
	if (n == 1)
		*value = v;
	return n == 1;
}

bool hw_counter_exists(const char *name)
{
	uint64_t value;

	return counter_read(PORT_COUNTERS, name, &value);
}

static uint64_t counter_in(const char *dir, const char *name)
{
	uint64_t value = 0, lifespan = 10;

	/* The core shows values that may be this many milliseconds old. */
	counter_read(dir, "lifespan", &lifespan);
	sleep_ms(3 * lifespan);	/* longer, because on a busy machine jiffies lag behind */
	if (!counter_read(dir, name, &value)) {
		FAIL("no hardware counter %s", name);
		test_die();
	}
	return value;
}

uint64_t hw_counter(const char *name)
{
	return counter_in(PORT_COUNTERS, name);
}

uint64_t dev_counter(const char *name)
{
	return counter_in(DEVICE_COUNTERS, name);
}

bool rdma_tool(const char *prefix, const char *args, char *text, size_t len)
{
	char cmd[200];
	size_t n;
	FILE *f;

	if (system("command -v rdma >/dev/null"))
		test_skip("no rdma(8)");
	snprintf(cmd, sizeof(cmd), "%s rdma %s", prefix, args);
	f = popen(cmd, "r");
	REQUIRE(f);
	n = fread(text, 1, len - 1, f);
	text[n] = '\0';
	REQUIRE(n < len - 1);
	return !pclose(f);
}

void resources(char *text, size_t len)
{
	REQUIRE(rdma_tool("", "resource show", text, len));
	REQUIRE(*text);
}

void check_resources(const char *before)
{
	char after[1024];

	resources(after, sizeof(after));
	if (strcmp(before, after))
		FAIL("before: %s, after: %s", before, after);
}

int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), err = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) < 0)
		err = errno;
	close(fd);
	return err;
}

long from_env(const char *name, long val)
{
	const char *text = getenv(name);

	return text ? strtol(text, NULL, 0) : val;
}
