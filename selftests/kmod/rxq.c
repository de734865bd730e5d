// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the network card: which parts of a received frame are in memory that the device can
 * write. While the frame lives, its buffer may be mapped for the device.
 */
#include <linux/completion.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>

#include "eth.h"
#include "kverbs.h"

#define KV_RX_WAIT	(20 * HZ)
#define KV_RX_FRAMES	16

/*
 * struct kv_rxq - frames received while another process pings
 * @tap: receives the frames
 * @buffers: buffers that the device had at the start, unsorted
 * @num: number of @buffers
 * @small: frames that are copied as a whole
 * @large: larger frames
 * @bad: frames whose header or shared info is in one of the buffers
 * @enough: enough frames of both kinds have arrived
 */
struct kv_rxq {
	struct packet_type tap;
	struct page **buffers;
	u32 num;
	unsigned int small, large, bad;
	struct completion enough;
};

static bool kv_rxq_is_buffer(const struct kv_rxq *r, const void *va)
{
	struct page *page = virt_to_head_page(va);
	u32 i;

	for (i = 0; i < r->num; i++)
		if (r->buffers[i] == page)
			return true;
	return false;
}

static int kv_rxq_frame(struct sk_buff *skb, struct net_device *netdev, struct packet_type *tap,
			struct net_device *orig)
{
	struct kv_rxq *r = container_of(tap, struct kv_rxq, tap);

	if (skb->pkt_type != PACKET_OUTGOING) {
		if (kv_rxq_is_buffer(r, skb_shinfo(skb)) || kv_rxq_is_buffer(r, skb->data))
			r->bad++;
		if (skb->len < 128)
			r->small++;
		else if (skb->len > 1000)
			r->large++;
		if (r->small >= KV_RX_FRAMES && r->large >= KV_RX_FRAMES)
			complete(&r->enough);
	}
	consume_skb(skb);
	return NET_RX_SUCCESS;
}

/* Records the buffers that the device has now; it uses a queue's in order. */
static bool kv_rxq_note(struct kv *kv, struct kv_rxq *r, struct net_device *netdev)
{
	struct qhca_nic *nic = netdev_priv(netdev);
	const struct qhca_chans *chans;
	const struct qhca_rxq *rx;
	bool ok = false;
	u32 i, queue, n;

	rtnl_lock();
	chans = rtnl_dereference(nic->chans);
	if (KV_CHECK(kv, chans)) {
		n = BIT(chans->chan[0]->rx.log_size);
		r->num = chans->num * n;
		r->buffers = kvcalloc(r->num, sizeof(*r->buffers), GFP_KERNEL);
		for (i = 0, queue = 0; r->buffers && queue < chans->num; queue++) {
			rx = &chans->chan[queue]->rx;
			for (; i < (queue + 1) * n; i++)
				r->buffers[i] = READ_ONCE(rx->page[i % n]);
		}
		ok = KV_CHECK(kv, r->buffers);
	}
	rtnl_unlock();
	return ok;
}

static void kv_rxq_shared(struct kv *kv)
{
	struct net_device *netdev = kv_netdev(kv);
	struct kv_rxq r = { .tap = { .type = htons(ETH_P_ALL), .func = kv_rxq_frame } };

	if (!netdev)
		return;
	init_completion(&r.enough);
	if (kv_rxq_note(kv, &r, netdev)) {
		r.tap.dev = netdev;
		dev_add_pack(&r.tap);
		KV_CHECK(kv, wait_for_completion_timeout(&r.enough, KV_RX_WAIT));
		dev_remove_pack(&r.tap);
		KV_CHECK(kv, r.small && r.large);
		KV_CHECK_EQ(kv, r.bad, 0);
	}
	kvfree(r.buffers);
	dev_put(netdev);
}

const struct kv_test kv_rxq_tests[] = {
	{ "the buffer of a received frame holds nothing that the kernel relies on", kv_rxq_shared },
	{ }
};
