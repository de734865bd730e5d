// SPDX-License-Identifier: GPL-2.0
/*
 * The errno values that programs see for the statuses of commands, as the table of
 * Documentation/hardware.rst has them, whichever command it is.
 */
#include <stdio.h>

#include "lib/faults.h"

static struct dev *d;
static struct ibv_cq *cq;
static uint8_t page[4096] __attribute__((aligned(4096)));

__attribute__((destructor)) static void clear(void)
{
	faults_clear();
}

static const struct {
	const char *name;
	int err;
} statuses[] = {
	{ "opcode", EOPNOTSUPP },
	{ "param", EINVAL },
	{ "limit", EINVAL },
	{ "obj", ENOENT },
	{ "busy", EBUSY },
	{ "state", EINVAL },
	{ "no_resource", ENOMEM },
	{ "dma", EFAULT },
	{ "not_supported", EOPNOTSUPP },
	{ "perm", EPERM },
};

static bool alloc_pd(void)
{
	return ibv_alloc_pd(d->ctx);
}

static bool reg_mr(void)
{
	return ibv_reg_mr(d->pd, page, sizeof(page), LOCAL);
}

static bool alloc_mw(void)
{
	return ibv_alloc_mw(d->pd, IBV_MW_TYPE_1);
}

static bool create_cq(void)
{
	return ibv_create_cq(d->ctx, 16, NULL, NULL, 0);
}

static bool resize_cq(void)
{
	return !ibv_resize_cq(cq, 128);
}

static bool create_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };

	return ibv_create_srq(d->pd, &init);
}

static bool create_qp(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = { 2, 2, 1, 1, 0 },
	};

	return ibv_create_qp(d->pd, &init);
}

static const struct {
	const char *opcode;
	bool (*call)(void);
} commands[] = {
	{ "alloc_pd", alloc_pd },
	{ "reg_mr", reg_mr },
	{ "alloc_mw", alloc_mw },
	{ "create_cq", create_cq },
	{ "resize_cq", resize_cq },
	{ "create_srq", create_srq },
	{ "create_qp", create_qp },
};

TEST_ROWS(errnos, "J-022 the errno of a command that the device refuses", statuses)
{
	char rule[80];
	size_t i;

	d = faults_open();
	cq = cq_new(d, 16, NULL);
	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		snprintf(rule, sizeof(rule), "cmd opcode=%s once fail=%s", commands[i].opcode,
			 row->name);
		REQUIRE_OK(faults_set(rule));
		errno = 0;
		CHECK(!commands[i].call());
		if (errno != row->err)
			test_note("%s", commands[i].opcode);
		CHECK_ERR(errno, row->err);
		faults_clear();
		CHECK(commands[i].call());
	}
}
