// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca.ko: sending. Each fragment takes one WQE, each frame one CQE.
 *
 * The sender owns the producer index and NAPI the consumer index; the buffers
 * between them belong to the device.
 */
#include "eth.h"

/* Largest number of WQEs of a frame; the queue stops when fewer are free. */
#define QHCA_TX_STOP		QHCA_ETH_MAX_FRAGS
/* The queue is woken only above this, so that it does not stop again immediately. */
#define QHCA_TX_WAKE		(QHCA_TX_STOP + 8)

static u32 qhca_tx_pos(const struct qhca_txq *tx, u32 index)
{
	return index & (BIT(tx->log_size) - 1);
}

static u32 qhca_tx_room(const struct qhca_txq *tx)
{
	return BIT(tx->log_size) - (READ_ONCE(tx->pi) - READ_ONCE(tx->ci));
}

static void qhca_tx_unmap(struct qhca_chan *chan, const struct qhca_tx_buf *buf)
{
	struct device *dma_dev = &chan->nic->dev->pdev->dev;

	if (buf->is_page)
		dma_unmap_page(dma_dev, buf->dma, buf->len, DMA_TO_DEVICE);
	else if (buf->len)
		dma_unmap_single(dma_dev, buf->dma, buf->len, DMA_TO_DEVICE);
}

/* Write the WQE at @index for the fragment that is mapped in its buffer. */
static void qhca_tx_write_wqe(struct qhca_txq *tx, u32 index)
{
	struct qhca_eth_wqe *wqe = tx->mem.va;
	u32 pos = qhca_tx_pos(tx, index);

	wqe[pos] = (struct qhca_eth_wqe) {
		.wr_id = cpu_to_le64(index),
		.addr = cpu_to_le64(tx->buf[pos].dma),
		.length = cpu_to_le32(tx->buf[pos].len),
		.flags = cpu_to_le16(QHCA_ETH_MORE),
	};
}

/* Say in the first WQE what the device should do to the frame. */
static void qhca_tx_offload(struct qhca_eth_wqe *first, const struct sk_buff *skb)
{
	if (skb->ip_summed == CHECKSUM_PARTIAL) {
		first->flags |= cpu_to_le16(QHCA_ETH_CSUM);
		first->csum_start = cpu_to_le16(skb_checksum_start_offset(skb));
		first->csum_offset = cpu_to_le16(skb->csum_offset);
	}
	if (skb_is_gso(skb)) {
		first->flags |= cpu_to_le16(QHCA_ETH_TSO);
		first->mss = cpu_to_le16(skb_shinfo(skb)->gso_size);
	}
	if (skb_vlan_tag_present(skb)) {
		first->flags |= cpu_to_le16(QHCA_ETH_VLAN);
		first->vlan_tci = cpu_to_le16(skb_vlan_tag_get(skb));
	}
}

/* Map fragment @i of the frame; the linear part is fragment 0. */
static int qhca_tx_map(struct qhca_chan *chan, struct sk_buff *skb, unsigned int i,
		       struct qhca_tx_buf *buf)
{
	struct device *dma_dev = &chan->nic->dev->pdev->dev;
	const skb_frag_t *frag;

	buf->skb = NULL;
	buf->is_page = i > 0;
	if (i > 0) {
		frag = &skb_shinfo(skb)->frags[i - 1];
		buf->len = skb_frag_size(frag);
		buf->dma = skb_frag_dma_map(dma_dev, frag, 0, buf->len, DMA_TO_DEVICE);
	} else {
		buf->len = skb_headlen(skb);
		buf->dma = dma_map_single(dma_dev, skb->data, buf->len, DMA_TO_DEVICE);
	}
	return dma_mapping_error(dma_dev, buf->dma) ? -ENOMEM : 0;
}

/* Write the frame to the ring behind the producer index. Returns the number of its WQEs. */
static int qhca_tx_write_frame(struct qhca_chan *chan, struct sk_buff *skb)
{
	struct qhca_txq *tx = &chan->tx;
	unsigned int i, n = 1 + skb_shinfo(skb)->nr_frags;
	struct qhca_eth_wqe *wqe = tx->mem.va;
	u32 last = qhca_tx_pos(tx, tx->pi + n - 1);

	for (i = 0; i < n; i++) {
		if (qhca_tx_map(chan, skb, i, &tx->buf[qhca_tx_pos(tx, tx->pi + i)]))
			goto err;
		qhca_tx_write_wqe(tx, tx->pi + i);
	}
	qhca_tx_offload(&wqe[qhca_tx_pos(tx, tx->pi)], skb);
	wqe[last].flags &= ~cpu_to_le16(QHCA_ETH_MORE);
	tx->buf[last].skb = skb;
	return n;

err:
	while (i--)
		qhca_tx_unmap(chan, &tx->buf[qhca_tx_pos(tx, tx->pi + i)]);
	return -ENOMEM;
}

/* Stop the queue if the next frame might not fit. */
static void qhca_tx_maybe_stop(struct qhca_chan *chan, struct netdev_queue *nq)
{
	struct qhca_txq *tx = &chan->tx;

	if (likely(qhca_tx_room(tx) >= QHCA_TX_STOP))
		return;
	netif_tx_stop_queue(nq);
	qhca_stat_add(&chan->stats->tx.stops, 1);
	/* Either this CPU sees the WQEs that NAPI has freed, or NAPI sees the stopped queue. */
	smp_mb();
	if (qhca_tx_room(tx) >= QHCA_TX_WAKE)
		netif_tx_start_queue(nq);
}

static void qhca_tx_ring(struct qhca_chan *chan)
{
	qhca_ring_slot(chan->nic->dev, chan->tx.slot, QHCA_DB_ETH,
		       qhca_db(chan->tx.number, chan->tx.pi));
	qhca_stat_add(&chan->stats->tx.doorbells, 1);
}

/* Whether the frame fits, perhaps after linearizing it. */
static bool qhca_tx_fits(struct qhca_chan *chan, struct sk_buff *skb)
{
	if (likely(skb_shinfo(skb)->nr_frags + 1 <= QHCA_ETH_MAX_FRAGS))
		return true;
	qhca_stat_add(&chan->stats->tx.linearized, 1);
	return !skb_linearize(skb);
}

/*
 * Return the channel of a send queue, or NULL: pktgen and AF_XDP choose a queue once, and do not
 * ask whether there are fewer by now.
 */
static struct qhca_chan *qhca_tx_chan(const struct qhca_nic *nic, unsigned int index)
{
	const struct qhca_chans *chans = rcu_dereference_bh(nic->chans);

	return likely(chans && index < chans->num) ? chans->chan[index] : NULL;
}

/**
 * qhca_xmit - ndo_start_xmit
 * @skb: the frame
 * @netdev: the netdev
 *
 * Context: BH off, under the lock of the send queue.
 * Return: NETDEV_TX_OK always, because the queue is stopped in time.
 */
netdev_tx_t qhca_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	u16 index = skb_get_queue_mapping(skb);
	struct netdev_queue *nq = netdev_get_tx_queue(netdev, index);
	struct qhca_nic *nic = netdev_priv(netdev);
	struct qhca_chan *chan = qhca_tx_chan(nic, index);
	unsigned int len = skb->len;
	struct qhca_txq *tx;
	int n;

	if (unlikely(!chan) || !qhca_tx_fits(chan, skb))
		goto drop;
	n = qhca_tx_write_frame(chan, skb);
	if (n < 0)
		goto drop;

	tx = &chan->tx;
	qhca_tx_stamp_start(nic, skb);
	skb_tx_timestamp(skb);
	/* NAPI must find the buffers below the index filled in. */
	smp_store_release(&tx->pi, tx->pi + n);
	qhca_tx_maybe_stop(chan, nq);
	/* NAPI may free the frame as soon as the doorbell has been rung. */
	if (__netdev_tx_sent_queue(nq, len, netdev_xmit_more()))
		qhca_tx_ring(chan);
	return NETDEV_TX_OK;

drop:
	dev_kfree_skb_any(skb);
	qhca_stat_add(&nic->stats[index].tx.dropped, 1);
	/* Earlier frames may rely on the doorbell of this one. */
	if (chan && !netdev_xmit_more())
		qhca_tx_ring(chan);
	return NETDEV_TX_OK;
}

/* Whether the frame is TCP over IP, behind at most one 802.1Q tag in the data. */
static bool qhca_can_tso(const struct sk_buff *skb)
{
	int l3 = skb_network_offset(skb);

	/* The device inserts no other type of tag. */
	if (skb_vlan_tag_present(skb) && skb->vlan_proto != htons(ETH_P_8021Q))
		return false;
	return l3 == ETH_HLEN ||
	       (l3 == VLAN_ETH_HLEN && eth_hdr(skb)->h_proto == htons(ETH_P_8021Q));
}

/**
 * qhca_features_check - ndo_features_check
 * @skb: the frame
 * @netdev: the netdev
 * @features: features that the core wants to use
 *
 * Return: the subset of @features that the device supports for this frame.
 */
netdev_features_t qhca_features_check(struct sk_buff *skb, struct net_device *netdev,
				      netdev_features_t features)
{
	if (skb_is_gso(skb) && !qhca_can_tso(skb))
		features &= ~NETIF_F_GSO_MASK;
	return vlan_features_check(skb, features);
}

/* Sums for the byte queue limits, which must match those given at xmit. */
struct qhca_tx_sum {
	unsigned int packets;
	unsigned int bytes;
};

/* Free the buffers from @ci up to and including @index. Returns the next index. */
static u32 qhca_tx_free_to(struct qhca_chan *chan, u32 ci, u32 index, int budget,
			   struct qhca_tx_sum *sum)
{
	struct qhca_txq *tx = &chan->tx;
	struct qhca_tx_buf *buf;

	do {
		buf = &tx->buf[qhca_tx_pos(tx, ci)];
		qhca_tx_unmap(chan, buf);
		if (!buf->skb)
			continue;
		sum->packets++;
		sum->bytes += buf->skb->len;
		napi_consume_skb(buf->skb, budget);
		buf->skb = NULL;
	} while (ci++ != index);
	return ci;
}

/* Whether the CQE is for the last WQE of a frame that the device has; @ci is the oldest WQE. */
static bool qhca_tx_cqe_ok(const struct qhca_txq *tx, u32 ci, u32 index)
{
	/* Pairs with the release in qhca_xmit(). */
	u32 pending = smp_load_acquire(&tx->pi) - ci;

	return index - ci < pending && tx->buf[qhca_tx_pos(tx, index)].skb;
}

static void qhca_tx_wake(struct qhca_chan *chan, struct netdev_queue *nq)
{
	/* Pairs with the barrier in qhca_tx_maybe_stop(). */
	smp_mb();
	if (likely(!netif_tx_queue_stopped(nq)) || READ_ONCE(chan->closing) ||
	    qhca_tx_room(&chan->tx) < QHCA_TX_WAKE)
		return;
	qhca_stat_add(&chan->stats->tx.wakes, 1);
	netif_tx_wake_queue(nq);
}

static void qhca_tx_count(struct qhca_tx_stats *stats, const struct sk_buff *skb,
			  const struct qhca_cqe *cqe)
{
	if (cqe->status != QHCA_WC_SUCCESS) {
		qhca_stat_add(&stats->errors, 1);
		return;
	}
	qhca_stat_add(&stats->packets, skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1);
	qhca_stat_add(&stats->tso, skb_is_gso(skb));
	qhca_stat_add(&stats->bytes, le32_to_cpu(cqe->byte_len));
}

/**
 * qhca_tx_poll - free frames that have been sent
 * @chan: the channel
 * @budget: budget of NAPI, for the skb cache
 *
 * Context: NAPI, or netpoll.
 */
void qhca_tx_poll(struct qhca_chan *chan, int budget)
{
	struct net_device *netdev = chan->nic->netdev;
	struct netdev_queue *nq = netdev_get_tx_queue(netdev, chan->index);
	struct qhca_txq *tx = &chan->tx;
	unsigned int left = BIT(tx->log_size);
	struct qhca_tx_sum sum = {};
	struct qhca_cqe cqe;
	struct sk_buff *skb;
	u32 index, ci = tx->ci;

	while (left-- && qhca_eth_cq_next(&tx->cq, &cqe)) {
		index = le32_to_cpu(cqe.wqe_index);
		if (!qhca_tx_cqe_ok(tx, ci, index)) {
			qhca_health_die(chan->nic->dev, "an Ethernet completion makes no sense");
			break;
		}
		skb = tx->buf[qhca_tx_pos(tx, index)].skb;
		qhca_tx_count(&chan->stats->tx, skb, &cqe);
		qhca_tx_stamp_end(chan, skb, &cqe);
		ci = qhca_tx_free_to(chan, ci, index, budget, &sum);
	}
	if (!sum.packets)
		return;
	qhca_eth_cq_update(&tx->cq);
	/*
	 * Let the sender use the free WQEs only now: the CQEs of its next frames need room, which
	 * the device must already know about.
	 */
	smp_store_release(&tx->ci, ci);
	netdev_tx_completed_queue(nq, sum.packets, sum.bytes);
	qhca_tx_wake(chan, nq);
}

/**
 * qhca_txq_drain - free frames that will never be sent
 * @chan: the channel, whose send queue is destroyed
 *
 * Context: process.
 */
void qhca_txq_drain(struct qhca_chan *chan)
{
	struct qhca_tx_sum sum = {};
	struct qhca_txq *tx = &chan->tx;

	if (tx->ci == tx->pi)
		return;
	tx->ci = qhca_tx_free_to(chan, tx->ci, tx->pi - 1, 0, &sum);
	qhca_stat_add(&chan->stats->tx.dropped, sum.packets);
}

/**
 * qhca_txq_alloc - allocate the memory of the send queue
 * @chan: the channel
 * @entries: WQEs, a power of two
 *
 * Return: 0 or -ENOMEM.
 */
int qhca_txq_alloc(struct qhca_chan *chan, u32 entries)
{
	struct qhca_txq *tx = &chan->tx;
	struct qhca_buf buf;
	int ret;

	tx->log_size = ilog2(entries);
	tx->buf = kvcalloc(entries, sizeof(*tx->buf), GFP_KERNEL);
	if (!tx->buf)
		return -ENOMEM;
	ret = qhca_ring_mem_alloc(chan->nic->dev, &tx->mem,
				  entries * sizeof(struct qhca_eth_wqe), &buf);
	if (ret)
		kvfree(tx->buf);
	return ret;
}

/**
 * qhca_txq_free - undo qhca_txq_alloc()
 * @chan: the channel, stopped
 */
void qhca_txq_free(struct qhca_chan *chan)
{
	qhca_ring_mem_free(chan->nic->dev, &chan->tx.mem);
	kvfree(chan->tx.buf);
}
