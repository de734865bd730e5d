// SPDX-License-Identifier: GPL-2.0
/*
 * Not a test by itself: the core takes MADs in slowly, so that the device goes meanwhile.
 * When it goes, the core destroys the QP of the MADs first and stops the worker of their CQ
 * afterwards; until then the worker posts receives to that QP.
 */
#include <linux/delay.h>
#include <linux/kprobes.h>

#include "kverbs.h"

static unsigned int kv_mad_ms;

static int kv_mad_taken(struct kprobe *p, struct pt_regs *regs)
{
	mdelay(kv_mad_ms);
	return 0;
}

static struct kprobe kv_mad_probe = {
	.symbol_name = "ib_mad_post_receive_mads",
	.pre_handler = kv_mad_taken,
};

int kv_mads_slow(unsigned int ms)
{
	kv_mad_ms = ms;
	return ms ? register_kprobe(&kv_mad_probe) : 0;
}

void kv_mads_fast(void)
{
	if (kv_mad_ms)
		unregister_kprobe(&kv_mad_probe);
}
