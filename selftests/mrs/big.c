// SPDX-License-Identifier: GPL-2.0
/*
 * A region beyond the memory of the machine: the same few MiB are mapped many times, so that they
 * back gigabytes of addresses. A program of its own, since not every machine can pin so much.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/window.h"

#define MIB		(1ull << 20)
#define GIB		(1ull << 30)
#define PIECE		(16 * MIB)

/* Returns a file of huge pages, if there are any: they take a quarter of the time to pin. */
static int piece(void)
{
	FILE *f = fopen("/proc/sys/vm/nr_hugepages", "r+");
	int have = 0, fd;

	if (f && fscanf(f, "%d", &have) == 1 && have < 32) {
		rewind(f);
		fprintf(f, "32\n");
	}
	if (f)
		fclose(f);
	fd = memfd_create("piece", MFD_HUGETLB);
	if (fd >= 0 && !ftruncate(fd, PIECE) && !fallocate(fd, 0, 0, PIECE))
		return fd;
	test_note("no huge pages");
	fd = memfd_create("piece", 0);
	REQUIRE(fd >= 0 && !ftruncate(fd, PIECE));
	return fd;
}

/*
 * Maps @len bytes, a multiple of PIECE. All pieces are the same memory, except for the last one,
 * which shows whether the end of a message arrived.
 */
static uint8_t *map_again(size_t len)
{
	int fd = piece(), last = piece();
	uint8_t *addr;
	size_t off;

	/* Reserve room to align to a huge page. */
	addr = mmap(NULL, len + PIECE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(addr != MAP_FAILED);
	addr += -(uintptr_t)addr & (PIECE - 1);
	for (off = 0; off < len; off += PIECE)
		REQUIRE(mmap(addr + off, PIECE, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_FIXED, off + PIECE < len ? fd : last, 0) ==
			addr + off);
	close(fd);
	close(last);
	return addr;
}

static struct buf big_buf(struct dev *d, size_t len)
{
	struct buf b = { .addr = map_again(len), .len = len };

	b.mr = ibv_reg_mr(d->pd, b.addr, len, REMOTE);
	if (!b.mr && errno == ENOMEM)
		test_skip("this machine cannot pin so much");
	REQUIRE(b.mr);
	return b;
}

static enum ibv_wc_status write_to(struct pair *p, const struct buf *src, const uint8_t *to,
				   uint32_t rkey)
{
	return rdma(&p->a, IBV_WR_RDMA_WRITE, src, 10, to, rkey);
}

TEST(region, "F-014 an MR of 5 GiB: beyond 32 bits, to the last byte")
{
	const size_t len = 5 * GIB;
	struct pair p = pair_default();
	struct buf src = buf_new(p.dev->pd, 4096, LOCAL);
	struct buf big = big_buf(p.dev, len);
	const size_t at[] = { 0, 4 * GIB - 5, 4 * GIB + 3 * PIECE + 7, len - 10 };
	size_t i;

	test_timeout(120);
	fill(src.addr, 4096, 9);
	for (i = 0; i < ARRAY_SIZE(at); i++) {
		memset(big.addr + at[i], 0, 10);
		CHECK_EQ(write_to(&p, &src, big.addr + at[i], big.mr->rkey), IBV_WC_SUCCESS);
		check_fill(big.addr + at[i], 10, 9, "written");
	}
	CHECK_EQ(write_to(&p, &src, big.addr + len - 9, big.mr->rkey), IBV_WC_REM_ACCESS_ERR);
	CHECK_ERR(ibv_dereg_mr(big.mr), 0);
}
