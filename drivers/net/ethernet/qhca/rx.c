// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca.ko: receiving. Every WQE is a buffer, taken from a page pool: a page, if the device can
 * spread a frame that is larger over several of them, else as many pages as a frame may need, which
 * have to be contiguous.
 *
 * The buffer stays mapped while the frame lives, and a malicious device may write to it at any
 * time. So it holds nothing that the kernel relies on: headers, and small frames as a whole, are
 * copied into the linear part of the skb, which the device cannot reach; the rest of a large frame
 * is a fragment, or a fragment for each buffer.
 */
#include <net/page_pool/helpers.h>

#include "eth.h"

/* Copy at most that many bytes of a frame, which is enough for its headers. */
#define QHCA_RX_COPY		256

/* A doorbell costs more than withholding a few buffers for a while. */
#define QHCA_RX_RING_BATCH	16

static u32 qhca_rx_pos(const struct qhca_rxq *rx, u32 index)
{
	return index & (BIT(rx->log_size) - 1);
}

static void qhca_rx_write_wqe(struct qhca_rxq *rx, u32 index, struct page *page)
{
	struct qhca_eth_wqe *wqe = rx->mem.va;
	u32 pos = qhca_rx_pos(rx, index);

	rx->page[pos] = page;
	wqe[pos] = (struct qhca_eth_wqe) {
		.wr_id = cpu_to_le64(index),
		.addr = cpu_to_le64(page_pool_get_dma_addr(page) + NET_IP_ALIGN),
		.length = cpu_to_le32(rx->room),
	};
}

/* Fill all free entries of the ring with buffers, as far as memory allows. */
static void qhca_rxq_add(struct qhca_rxq *rx)
{
	struct page *page;

	while (rx->pi - rx->ci < BIT(rx->log_size)) {
		page = page_pool_dev_alloc_pages(rx->pool);
		if (!page)
			break;
		qhca_rx_write_wqe(rx, rx->pi, page);
		rx->pi++;
	}
}

/**
 * qhca_rxq_prefill - put buffers into the ring of a queue to be created
 * @chan: the channel
 *
 * Context: process.
 */
void qhca_rxq_prefill(struct qhca_chan *chan)
{
	qhca_rxq_add(&chan->rx);
	chan->rx.rung = chan->rx.pi;
}

/**
 * qhca_rxq_fill - give new buffers to the device
 * @chan: the channel
 *
 * Context: NAPI.
 * Return: false if the device has no buffers for a frame, and there is no memory for them.
 */
bool qhca_rxq_fill(struct qhca_chan *chan)
{
	struct qhca_rxq *rx = &chan->rx;

	qhca_rxq_add(rx);
	/* Ring for a few buffers only if the ring could not be filled. */
	if (rx->pi - rx->rung >= QHCA_RX_RING_BATCH ||
	    (rx->pi != rx->rung && rx->pi - rx->ci < BIT(rx->log_size))) {
		rx->rung = rx->pi;
		qhca_ring_slot(chan->nic->dev, rx->slot, QHCA_DB_ETH, qhca_db(rx->number, rx->pi));
		qhca_stats_kick(chan->nic);
	}
	return rx->rung - rx->ci >= rx->frags;
}

/* Take the oldest buffer out of the ring. */
static struct page *qhca_rx_take(struct qhca_rxq *rx)
{
	u32 pos = qhca_rx_pos(rx, rx->ci++);
	struct page *page = rx->page[pos];

	rx->page[pos] = NULL;
	return page;
}

/* Take the oldest buffer, of which the CPU will read @len bytes. */
static struct page *qhca_rx_take_data(struct qhca_chan *chan, u32 len)
{
	struct page *page = qhca_rx_take(&chan->rx);

	dma_sync_single_range_for_cpu(&chan->nic->dev->pdev->dev, page_pool_get_dma_addr(page),
				      NET_IP_ALIGN, len, DMA_FROM_DEVICE);
	return page;
}

/* Give back the buffers up to and including WQE @last. */
static void qhca_rx_skip(struct qhca_rxq *rx, u32 last)
{
	while (rx->ci != last + 1)
		page_pool_recycle_direct(rx->pool, qhca_rx_take(rx));
}

/* Make an skb of the frame of @len bytes in the oldest buffers, up to WQE @last. */
static struct sk_buff *qhca_rx_build_skb(struct qhca_chan *chan, u32 len, u32 last)
{
	struct sk_buff *skb = napi_alloc_skb(&chan->napi, QHCA_RX_COPY);
	struct qhca_rxq *rx = &chan->rx;
	u32 off, n = min(len, rx->room);
	struct page *page;
	const void *frame;

	if (!skb) {
		qhca_rx_skip(rx, last);
		return NULL;
	}
	page = qhca_rx_take_data(chan, n);
	frame = page_address(page) + NET_IP_ALIGN;
	off = n > QHCA_RX_COPY ? eth_get_headlen(chan->nic->netdev, frame, QHCA_RX_COPY) : n;
	skb_put_data(skb, frame, off);
	if (off == n) {
		page_pool_recycle_direct(rx->pool, page);
		return skb;
	}
	skb_mark_for_recycle(skb);
	for (;;) {
		skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, NET_IP_ALIGN + off, n - off,
				PAGE_SIZE << rx->order);
		if (skb->len == len)
			return skb;
		off = 0;
		n = min(len - skb->len, rx->room);
		page = qhca_rx_take_data(chan, n);
	}
}

static void qhca_rx_deliver(struct qhca_chan *chan, struct sk_buff *skb,
			    const struct qhca_cqe *cqe)
{
	struct net_device *netdev = chan->nic->netdev;
	u16 flags = le16_to_cpu(cqe->flags);

	qhca_rx_stamp(chan, skb, cqe);
	skb_record_rx_queue(skb, chan->index);
	skb->protocol = eth_type_trans(skb, netdev);
	qhca_stat_add(&chan->stats->rx.multicast, skb->pkt_type == PACKET_MULTICAST);
	if (netdev->features & NETIF_F_RXCSUM && flags & QHCA_CQE_CSUM_OK) {
		skb->ip_summed = CHECKSUM_UNNECESSARY;
		qhca_stat_add(&chan->stats->rx.csum_ok, 1);
	}
	if (netdev->features & NETIF_F_RXHASH && flags & QHCA_CQE_HASH)
		skb_set_hash(skb, le32_to_cpu(cqe->hash), flags & QHCA_CQE_HASH_L4 ?
			     PKT_HASH_TYPE_L4 : PKT_HASH_TYPE_L3);
	if (flags & QHCA_CQE_VLAN)
		__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q), le16_to_cpu(cqe->vlan_tci));
	napi_gro_receive(&chan->napi, skb);
}

/* Whether a frame of @len bytes takes @used buffers. */
static bool qhca_rx_len_ok(const struct qhca_rxq *rx, u32 len, u32 used)
{
	return len >= ETH_HLEN && len <= rx->frags * rx->room &&
	       DIV_ROUND_UP(len, rx->room) == used;
}

static void qhca_rx_count_bad(struct qhca_rx_stats *stats, u8 status)
{
	switch (status) {
	case QHCA_WC_SUCCESS:
		qhca_stat_add(&stats->length_errors, 1);
		break;
	case QHCA_WC_LOC_LEN_ERR:
		qhca_stat_add(&stats->over_errors, 1);
		break;
	default:
		qhca_stat_add(&stats->errors, 1);
	}
}

/* Handle the completion of the next @used buffers. */
static void qhca_rx_one(struct qhca_chan *chan, const struct qhca_cqe *cqe, u32 used)
{
	struct qhca_rx_stats *stats = &chan->stats->rx;
	u32 len = le32_to_cpu(cqe->byte_len);
	struct qhca_rxq *rx = &chan->rx;
	u32 last = rx->ci + used - 1;
	struct sk_buff *skb;

	if (cqe->status != QHCA_WC_SUCCESS || !qhca_rx_len_ok(rx, len, used)) {
		qhca_rx_skip(rx, last);
		qhca_rx_count_bad(stats, cqe->status);
		return;
	}
	skb = qhca_rx_build_skb(chan, len, last);
	if (!skb) {
		qhca_stat_add(&stats->dropped, 1);
		return;
	}
	qhca_stat_add(&stats->scattered, used > 1);
	if (cqe->flags & cpu_to_le16(QHCA_CQE_VLAN))
		len += VLAN_HLEN;
	qhca_stat_add(&stats->packets, 1);
	qhca_stat_add(&stats->bytes, len);
	qhca_rx_deliver(chan, skb, cqe);
}

/**
 * qhca_rx_poll - pass received frames to the stack
 * @chan: the channel
 * @budget: maximum number of frames
 *
 * Context: NAPI.
 * Return: number of CQEs taken.
 */
int qhca_rx_poll(struct qhca_chan *chan, int budget)
{
	struct qhca_rxq *rx = &chan->rx;
	struct qhca_cqe cqe;
	u32 used;
	int n;

	qhca_stat_add(&chan->stats->rx.polls, 1);
	for (n = 0; n < budget && qhca_eth_cq_next(&rx->cq, &cqe); n++) {
		/* The device takes buffers in order, so it must have begun with this one. */
		used = le32_to_cpu(cqe.wqe_index) + 1 - rx->ci;
		if (!used || used > rx->frags || used > rx->rung - rx->ci) {
			qhca_health_die(chan->nic->dev, "an Ethernet completion makes no sense");
			break;
		}
		qhca_rx_one(chan, &cqe, used);
	}
	if (n)
		qhca_eth_cq_update(&rx->cq);
	return n;
}

/**
 * qhca_rxq_drain - free the buffers that were not used
 * @chan: the channel, whose receive queue is destroyed
 *
 * Context: process.
 */
void qhca_rxq_drain(struct qhca_chan *chan)
{
	struct qhca_rxq *rx = &chan->rx;

	for (; rx->ci != rx->pi; rx->ci++)
		page_pool_put_full_page(rx->pool, rx->page[qhca_rx_pos(rx, rx->ci)], false);
}

static int qhca_rx_pool_create(struct qhca_chan *chan)
{
	struct qhca_rxq *rx = &chan->rx;
	struct page_pool_params params = {
		.flags = PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV,
		.order = rx->order,
		.pool_size = BIT(rx->log_size),
		.nid = dev_to_node(&chan->nic->dev->pdev->dev),
		.dev = &chan->nic->dev->pdev->dev,
		.dma_dir = DMA_FROM_DEVICE,
		.offset = NET_IP_ALIGN,
		.max_len = rx->room,
	};

	rx->pool = page_pool_create(&params);
	return PTR_ERR_OR_ZERO(rx->pool);
}

/*
 * Choose buffers for frames of @len bytes. Allocations of several contiguous pages fail when memory
 * is fragmented, so a frame above a page is spread.
 */
static void qhca_rx_set_size(struct qhca_chan *chan, u32 len)
{
	struct qhca_rxq *rx = &chan->rx;

	rx->room = len;
	rx->frags = 1;
	rx->order = get_order(NET_IP_ALIGN + len);
	if (!rx->order)
		return;
	rx->room = PAGE_SIZE - NET_IP_ALIGN;
	rx->frags = DIV_ROUND_UP(len, rx->room);
	rx->order = 0;
}

/**
 * qhca_rxq_alloc - allocate the memory of the receive queue, without its buffers
 * @chan: the channel
 * @entries: WQEs, a power of two
 * @mtu: MTU of the frames
 *
 * Return: 0 or a negative errno.
 */
int qhca_rxq_alloc(struct qhca_chan *chan, u32 entries, u32 mtu)
{
	struct qhca_rxq *rx = &chan->rx;
	struct qhca_buf buf;
	int ret;

	rx->log_size = ilog2(entries);
	/* Leave room for tags that the device does not strip. */
	qhca_rx_set_size(chan, ETH_HLEN + 2 * VLAN_HLEN + mtu);
	rx->page = kvcalloc(entries, sizeof(*rx->page), GFP_KERNEL);
	if (!rx->page)
		return -ENOMEM;
	ret = qhca_ring_mem_alloc(chan->nic->dev, &rx->mem,
				  entries * sizeof(struct qhca_eth_wqe), &buf);
	if (ret)
		goto err_page;
	ret = qhca_rx_pool_create(chan);
	if (ret)
		goto err_mem;
	return 0;

err_mem:
	qhca_ring_mem_free(chan->nic->dev, &rx->mem);
err_page:
	kvfree(rx->page);
	return ret;
}

/**
 * qhca_rxq_free - undo qhca_rxq_alloc()
 * @chan: the channel, stopped
 */
void qhca_rxq_free(struct qhca_chan *chan)
{
	struct qhca_rxq *rx = &chan->rx;

	page_pool_destroy(rx->pool);
	qhca_ring_mem_free(chan->nic->dev, &rx->mem);
	kvfree(rx->page);
}
