// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the network card that need its internal functions. Kernel probes look at the send queue
 * while it sends frames.
 */
#include <linux/etherdevice.h>
#include <linux/kprobes.h>
#include <linux/netdevice.h>

#include "eth.h"
#include "kverbs.h"

#define KV_FRAMES	32

/* struct kv_txq - what the probes have recorded; @tx is polled on one CPU at a time */
struct kv_txq {
	struct kprobe polled, updated;
	struct qhca_txq *tx;
	u32 ci;			/* consumer index of the WQEs when the poll began */
	unsigned int updates;	/* updates of the consumer index of the CQ */
	unsigned int early;	/* updates after WQEs had already been freed */
};

static int kv_txq_polled(struct kprobe *p, struct pt_regs *regs)
{
	struct kv_txq *t = container_of(p, struct kv_txq, polled);
	struct qhca_chan *chan = (void *)regs_get_kernel_argument(regs, 0);

	t->ci = chan->tx.ci;
	t->tx = &chan->tx;
	return 0;
}

static int kv_txq_updated(struct kprobe *p, struct pt_regs *regs)
{
	struct kv_txq *t = container_of(p, struct kv_txq, updated);

	if (!t->tx || (void *)regs_get_kernel_argument(regs, 0) != &t->tx->cq)
		return 0;
	t->early += t->tx->ci != t->ci;
	WRITE_ONCE(t->updates, t->updates + 1);
	return 0;
}

/* Sends a frame that no host receives. */
static bool kv_txq_send(struct net_device *netdev)
{
	static const u8 nobody[ETH_ALEN] = { 0x02, 0, 0, 0, 0, 0x01 };
	struct sk_buff *skb = alloc_skb(LL_RESERVED_SPACE(netdev) + ETH_ZLEN, GFP_KERNEL);

	if (!skb)
		return false;
	skb_reserve(skb, LL_RESERVED_SPACE(netdev));
	skb_put_zero(skb, ETH_ZLEN - ETH_HLEN);
	skb->dev = netdev;
	skb->protocol = htons(ETH_P_LOOPBACK);
	dev_hard_header(skb, netdev, ETH_P_LOOPBACK, nobody, NULL, skb->len);
	return !dev_queue_xmit(skb);
}

static void kv_txq_run(struct kv *kv, struct kv_txq *t, struct net_device *netdev)
{
	unsigned long end = jiffies + KV_WAIT;
	unsigned int i, before;

	for (i = 0; i < KV_FRAMES && time_before(jiffies, end); i++) {
		before = READ_ONCE(t->updates);
		KV_CHECK(kv, kv_txq_send(netdev));
		while (READ_ONCE(t->updates) == before && time_before(jiffies, end))
			usleep_range(50, 100);
	}
	KV_CHECK_EQ(kv, i, KV_FRAMES);
}

/*
 * A sender that finds free WQEs posts frames to them, whose completions need room in the CQ: the
 * device must know about that room first.
 */
static void kv_txq_order(struct kv *kv)
{
	struct kv_txq t = {
		.polled = { .symbol_name = "qhca_tx_poll", .pre_handler = kv_txq_polled },
		.updated = { .symbol_name = "qhca_eth_cq_update",
			     .pre_handler = kv_txq_updated },
	};
	struct kprobe *probes[] = { &t.polled, &t.updated };
	struct net_device *netdev = kv_netdev(kv);
	int ret;

	if (!netdev)
		return;
	ret = register_kprobes(probes, ARRAY_SIZE(probes));
	if (ret == -EOPNOTSUPP) {
		kv->skip = "a kernel without probes";
	} else if (KV_CHECK_EQ(kv, ret, 0)) {
		kv_txq_run(kv, &t, netdev);
		unregister_kprobes(probes, ARRAY_SIZE(probes));
		KV_CHECK_EQ(kv, t.early, 0);
	}
	dev_put(netdev);
}

const struct kv_test kv_txq_tests[] = {
	{ "CQEs of sent frames are freed before their WQEs", kv_txq_order },
	{ }
};
