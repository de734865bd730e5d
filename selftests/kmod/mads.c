// SPDX-License-Identifier: GPL-2.0
/*
 * Not a test by itself: this makes the core slow to handle MADs, so that the device is removed
 * before it has. Then the core destroys the QP for MADs first and stops the worker of its CQ
 * afterwards; until then the worker posts receives to that QP.
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>

#include "kverbs.h"

static unsigned int mad_ms;
module_param(mad_ms, uint, 0444);
MODULE_PARM_DESC(mad_ms, "Delay when a MAD is handled, in ms");

static int kv_mad_taken(struct kprobe *p, struct pt_regs *regs)
{
	mdelay(mad_ms);
	return 0;
}

static struct kprobe kv_mad_probe = {
	.symbol_name = "ib_mad_post_receive_mads",
	.pre_handler = kv_mad_taken,
};

int kv_mads_slow(void)
{
	return mad_ms ? register_kprobe(&kv_mad_probe) : 0;
}

void kv_mads_fast(void)
{
	if (mad_ms)
		unregister_kprobe(&kv_mad_probe);
}
