// SPDX-License-Identifier: GPL-2.0
/* Memory that a CPU executes, and the device writes to. */
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/rdma.h"

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
} writers[] = {
	{ "RDMA_WRITE", IBV_WR_RDMA_WRITE },
	{ "FETCH_AND_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD },
};

#ifdef __x86_64__
/* Whether an emulated CPU cannot know that the device, another process, writes code. */
static bool cpu_is_blind(void)
{
	const char *variant = getenv("QHCA_VARIANT"), *accel = getenv("QHCA_ACCEL");

	return variant && strstr(variant, "server") && accel && !strcmp(accel, "tcg");
}

static void overwrite(enum ibv_wr_opcode opcode)
{
	const uint8_t mov_ret[] = { 0xb8, 0, 0, 0, 0, 0xc3, 0, 0 };
	const uint64_t one = 1 << 8;	/* adds to the operand of mov */
	struct conn c = CONN;
	uint32_t i, regs[4];
	struct ibv_send_wr wr;
	struct buf src, code;
	struct ibv_sge sge;
	struct pair p;

	if (cpu_is_blind())
		test_skip("TCG does not see code that another process writes");
	c.access |= IBV_ACCESS_REMOTE_ATOMIC;
	p = pair_new(dev_open(), &QP_OPTS, &c);
	src = buf_new(p.dev->pd, 4096, LOCAL);
	code = buf_new(p.dev->pd, 4096, REMOTE | IBV_ACCESS_REMOTE_ATOMIC);
	sge = buf_sge(&src, 0, sizeof(mov_ret));
	wr = wr_rdma(1, opcode, &sge, 1, (uintptr_t)code.addr, code.mr->rkey);
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr.wr.atomic.compare_add = one;
	REQUIRE_OK(mprotect(code.addr, code.len, PROT_READ | PROT_WRITE | PROT_EXEC));
	memcpy(code.addr, mov_ret, sizeof(mov_ret));
	memcpy(src.addr, mov_ret, sizeof(mov_ret));
	for (i = 0; i < 20; i++) {
		__cpuid(0, regs[0], regs[1], regs[2], regs[3]); /* serialises */
		CHECK_EQ(((uint32_t (*)(void))code.addr)(), i);
		src.addr[1] = i + 1;
		REQUIRE_OK(post_send(&p.a, &wr));
		poll_ok(p.a.send_cq, 1);
	}
}
#else
static void overwrite(enum ibv_wr_opcode opcode)
{
	test_skip("the code is for x86");
}
#endif

/* An emulated CPU must not execute an old translation of the code. */
TEST_ROWS(code, "B-004 B-072 code that is overwritten by RDMA runs as written", writers)
{
	overwrite(row->opcode);
}
