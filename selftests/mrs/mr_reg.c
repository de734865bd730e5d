// SPDX-License-Identifier: GPL-2.0
/* Registrations that are refused and leave nothing behind. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>

#include "lib/rdma.h"

#define PAGE	4096

static const struct {
	const char *name;
	int access, err;
} bad_access[] = {
	{ "remote write without local write", IBV_ACCESS_REMOTE_WRITE, EINVAL },
	{ "remote atomic without local write", IBV_ACCESS_REMOTE_ATOMIC, EINVAL },
	{ "unknown bit", IBV_ACCESS_LOCAL_WRITE | 1 << 15, EINVAL },
};

TEST_ROWS(flags, "F-002 F-018 access flags that are refused", bad_access)
{
	struct dev *d = dev_open_qhca();
	static char page[PAGE];

	errno = 0;
	CHECK(!ibv_reg_mr(d->pd, page, sizeof(page), row->access));
	CHECK_EQ(errno, row->err);
}

/* Returns how much memory the kernel has pinned for this process, in kB. */
static long pinned(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kb = -1;

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "VmPin: %ld", &kb);
	if (f)
		fclose(f);
	return kb;
}

TEST(unmapped, "F-015 memory that is not mapped")
{
	struct dev *d = dev_open();
	uint8_t *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct buf b;
	long before;
	int i;

	REQUIRE(p != MAP_FAILED);
	b = buf_new(d->pd, PAGE, LOCAL);
	munmap(p + 2 * PAGE, PAGE);
	before = pinned();
	CHECK(before > 0);
	for (i = 0; i < 100; i++) {
		errno = 0;
		CHECK(!ibv_reg_mr(d->pd, p, 4 * PAGE, LOCAL));
		CHECK_EQ(errno, EFAULT);
	}
	CHECK(!ibv_reg_mr(d->pd, NULL, PAGE, LOCAL));
	CHECK(!ibv_reg_mr(d->pd, p, -PAGE, LOCAL));
	CHECK_EQ(pinned(), before);
	CHECK_ERR(ibv_dereg_mr(b.mr), 0);
	CHECK(pinned() < before);
}
