// SPDX-License-Identifier: GPL-2.0
/*
 * Page faults while memory is short: the driver serves them in a worker, whose allocations fail now
 * and then. As nomem, this is not in tests.list.
 */
#include <sys/mman.h>

#include "lib/failing.h"
#include "lib/rdma.h"

#define PERCENT	5

TEST(pages, "pages are provided although allocations fail")
{
	unsigned int i, rounds = 100, bad = 0;
	const uint32_t len = 32 * 4096;
	struct ibv_mr *odp;
	uint8_t *mem;
	struct buf src;
	struct pair p;

	test_timeout(300);
	failing_allow();
	p = pair_default();
	src = buf_new(p.dev->pd, len, LOCAL);
	mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(mem != MAP_FAILED);
	odp = ibv_reg_mr(p.dev->pd, mem, len, REMOTE | IBV_ACCESS_ON_DEMAND);
	REQUIRE(odp);
	failing_workers(PERCENT);
	for (i = 0; i < rounds && !bad; i++) {
		struct ibv_sge sge = buf_sge(&src, 0, len);
		struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1, (uintptr_t)mem,
						odp->rkey);

		REQUIRE_OK(madvise(mem, len, MADV_DONTNEED));
		REQUIRE(failing_mark(true));
		fill(src.addr, len, i);
		REQUIRE_OK(post_send(&p.a, &wr));
		bad = poll_get(p.a.send_cq).status;
		if (!bad)
			check_fill(mem, len, i, "WRITE");
	}
	failing_workers(0);
	failing_mark(false);
	CHECK_EQ(bad, IBV_WC_SUCCESS);
	test_note("%u messages of %u", i, rounds);
	CHECK_ERR(ibv_dereg_mr(odp), 0);
	ping_pong(&p);
}
