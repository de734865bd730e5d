/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * qhca.ko: the Ethernet port.
 *
 * struct qhca_nic is the private data of the netdev. While the interface is up it has channels: a
 * struct qhca_chan is a send and a receive queue, each with its CQ, and one NAPI instance for both,
 * on a CPU of its own if possible. A new MTU, ring size or number of channels needs new channels,
 * which are allocated before the old ones are stopped and replace them without losing frames.
 */
#ifndef QHCA_ETH_H
#define QHCA_ETH_H

#include <linux/dim.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/if_vlan.h>
#include <linux/skbuff.h>

#include "qhca.h"

#define QHCA_RING_MIN		BIT(QHCA_RING_LOG_MIN)
#define QHCA_TX_RING_DEFAULT	512u
#define QHCA_RX_RING_DEFAULT	1024u
#define QHCA_RING_MAX		4096u

#define QHCA_PORT_NUM		1

#define QHCA_RSS_ALL		(QHCA_RSS_IPV4 | QHCA_RSS_TCPV4 | QHCA_RSS_UDPV4 | \
				 QHCA_RSS_IPV6 | QHCA_RSS_TCPV6 | QHCA_RSS_UDPV6)

/* Adaptive moderation: a kernel that is not built for this driver may lack the library. */
#define QHCA_CAN_DIM	IS_REACHABLE(CONFIG_DIMLIB)

/**
 * struct qhca_eth_cq - CQ of an Ethernet queue
 * @core: event delivery
 * @mem: ring and doorbell record
 * @dbrec: doorbell record
 * @chan: the channel whose NAPI its events schedule
 * @log_size: log2 of the CQEs
 * @ci: consumer index
 * @usecs: how long its events wait at present
 * @adaptive: @dim changes @usecs
 * @events: number of events, for @dim
 * @dim: adaptive moderation
 */
struct qhca_eth_cq {
	struct qhca_cq_core core;
	struct qhca_ring_mem mem;
	struct qhca_cq_dbrec *dbrec;
	struct qhca_chan *chan;
	u8 log_size;
	u32 ci;
	u32 usecs;
	bool adaptive;
	u16 events;
	struct dim dim;
};

/**
 * struct qhca_tx_buf - the buffer of a send WQE
 * @skb: in the last WQE of a frame, else NULL
 * @dma: DMA address of the fragment
 * @len: bytes of the fragment
 * @is_page: mapped as a page
 */
struct qhca_tx_buf {
	struct sk_buff *skb;
	dma_addr_t dma;
	u32 len;
	bool is_page;
};

/**
 * struct qhca_txq - the send queue
 * @cq: CQ for its completions
 * @mem: ring of struct qhca_eth_wqe
 * @buf: one for each WQE
 * @log_size: log2 of the WQEs
 * @number: number of the queue, for doorbells; 0 if the device has none
 * @slot: slot of its doorbells
 * @pi: producer index, written by the sender
 * @ci: index of the oldest WQE not complete, written by NAPI
 */
struct qhca_txq {
	struct qhca_eth_cq cq;
	struct qhca_ring_mem mem;
	struct qhca_tx_buf *buf;
	u8 log_size;
	u32 number;
	int slot;
	u32 pi;
	u32 ci ____cacheline_aligned_in_smp;
};

/**
 * struct qhca_rxq - the receive queue
 * @cq: CQ for its completions
 * @mem: ring of struct qhca_eth_wqe
 * @page: buffer of each WQE
 * @pool: where pages come from
 * @log_size: log2 of the WQEs
 * @order: log2 of the pages of one buffer
 * @room: bytes of a buffer that the device may fill
 * @frags: buffers that a frame may take
 * @number: number of the queue, for doorbells; 0 if the device has none
 * @slot: slot of its doorbells
 * @pi: producer index
 * @rung: producer index of the last doorbell
 * @ci: next WQE to complete
 */
struct qhca_rxq {
	struct qhca_eth_cq cq;
	struct qhca_ring_mem mem;
	struct page **page;
	struct page_pool *pool;
	u8 log_size;
	u8 order;
	u8 frags;
	u32 room;
	u32 number;
	int slot;
	u32 pi;
	u32 rung;
	u32 ci;
};

/* struct qhca_moderation - delay of the events of a CQ; all 0: none */
struct qhca_moderation {
	u32 usecs;
	u32 frames;	/* 0: any number */
	bool adaptive;	/* the driver finds out, and the others do not count */
};

/**
 * struct qhca_chan - a send and a receive queue
 * @nic: the port
 * @index: of the channel, and of its queues in the netdev
 * @napi: polls both CQs
 * @closing: NAPI only finishes pending work
 * @arm_lock: arms of both CQs, and their adaptive moderation
 * @tx_mod: delay of the events of the send queue
 * @rx_mod: of the receive queue
 * @stats: statistics of both, which outlive the channel
 * @tx: the send queue
 * @rx: the receive queue
 */
struct qhca_chan {
	struct qhca_nic *nic;
	unsigned int index;
	struct napi_struct napi;
	bool closing;
	spinlock_t arm_lock;		/* arms, adaptive moderation */
	struct qhca_moderation tx_mod;
	struct qhca_moderation rx_mod;
	struct qhca_queue_stats *stats;
	struct qhca_txq tx;
	struct qhca_rxq rx;
};

/* struct qhca_chans - the channels of an interface that is up */
struct qhca_chans {
	struct qhca_nic *nic;
	unsigned int num;
	struct qhca_chan *chan[] __counted_by(num);
};

/* struct qhca_chan_params - settings that channels are made for */
struct qhca_chan_params {
	u32 channels;
	u32 mtu;
	u32 tx_entries;
	u32 rx_entries;
	struct qhca_moderation tx_mod;
	struct qhca_moderation rx_mod;
};

/**
 * struct qhca_tx_stats - statistics of a send queue since probe()
 * @packets: frames that the device sent; written by NAPI, as the next four
 * @bytes: their bytes, as the device counts them: with tag and padding
 * @tso: frames that the device segmented
 * @errors: frames that the device did not send
 * @wakes: times the queue was woken
 * @dropped: frames that were not given to the device; written by the sender, as all below
 * @stops: times the queue was stopped for lack of room
 * @doorbells: doorbells rung
 * @linearized: frames with too many fragments
 *
 * Each has one writer at a time; reads need no lock.
 */
struct qhca_tx_stats {
	u64 packets;
	u64 bytes;
	u64 tso;
	u64 errors;
	u64 wakes;
	u64 dropped;
	u64 stops;
	u64 doorbells;
	u64 linearized;
};

/**
 * struct qhca_rx_stats - statistics of a receive queue since probe(), written by NAPI
 * @packets: frames given to the stack
 * @bytes: their bytes, with the tag that the device removed
 * @multicast: those among them that are addressed to a group
 * @errors: frames that the device could not deliver, without @over_errors
 * @over_errors: frames that are larger than their buffers
 * @length_errors: frames of a length that makes no sense
 * @dropped: frames for which there was no memory
 * @csum_ok: frames whose checksums the device vouched for
 * @scattered: frames that the device has spread over several buffers
 * @polls: calls of the NAPI poll function
 */
struct qhca_rx_stats {
	u64 packets;
	u64 bytes;
	u64 multicast;
	u64 errors;
	u64 over_errors;
	u64 length_errors;
	u64 dropped;
	u64 csum_ok;
	u64 scattered;
	u64 polls;
};

/* struct qhca_queue_stats - statistics of a channel; other CPUs write other channels' */
struct qhca_queue_stats {
	struct qhca_tx_stats tx;
	struct qhca_rx_stats rx;
} ____cacheline_aligned_in_smp;

/* Add to a counter that other CPUs may read concurrently. */
static inline void qhca_stat_add(u64 *stat, u64 n)
{
	WRITE_ONCE(*stat, *stat + n);
}

/**
 * struct qhca_rss_context - an RSS context of the administrator's
 * @types: what is hashed, QHCA_RSS_*; 0: there is no such context
 * @rss: key and table
 */
struct qhca_rss_context {
	u32 types;
	struct qhca_rss rss;
};

/* Counters of the device that are part of the port's statistics. */
enum qhca_nic_counter {
	QHCA_NIC_MISSED,	/* frames without a buffer */
	QHCA_NIC_LENGTH,	/* frames of a wrong length */
	QHCA_NIC_NO_ROOM,	/* frames that came while many waited for others */
	QHCA_NIC_COUNTERS
};

/**
 * struct qhca_nic - private data of the netdev
 * @netdev: the netdev
 * @dev: the function
 * @chans: the channels while the interface is up, else NULL; changes under RTNL, senders read it
 * @params: settings of @chans, or of the next channels
 * @xps_num: number of channels that XPS was set for; 0: the next queues set it
 * @rss_types: what is hashed of received frames, QHCA_RSS_*; under RTNL
 * @rss: how frames are spread; the table counts only if the administrator has set it; under RTNL
 * @context: further RSS contexts, for rules, by number less 1; under RTNL
 * @ntuple: rules of the administrator's, by location; under RTNL
 * @stats: statistics of each channel that there can be
 * @counter: the device's counters that are part of the port's statistics, since probe(); written
 *	     under @port_lock
 * @counter_base: what they were at probe()
 * @stats_work: asks the device for them
 * @speed: speed of the port, Mb/s; changes under RTNL
 * @port_lock: serialises SET_PORT, SET_MCAST, and QUERY_COUNTERS
 * @port_on: the port may be on; under @port_lock
 * @rx_mode_work: passes the address filter to the device, which sleeps
 * @restart_work: replaces the queues after a failure
 * @speed_work: asks for the speed again
 * @tx_stamps: sent frames whose sender wants it get a timestamp; changes under RTNL
 * @rx_stamps: all received frames get one
 * @link_lock: keeps changes of the carrier in the order of register reads
 * @nb: receives asynchronous events
 */
struct qhca_nic {
	struct net_device *netdev;
	struct qhca_dev *dev;
	struct qhca_chans __rcu *chans;
	struct qhca_chan_params params;
	unsigned int xps_num;
	u32 rss_types;
	struct qhca_rss rss;
	struct qhca_rss_context context[QHCA_RSS_CONTEXTS];
	struct list_head ntuple;
	struct qhca_queue_stats stats[QHCA_CHANNELS_MAX];
	u64 counter[QHCA_NIC_COUNTERS];
	u64 counter_base[QHCA_NIC_COUNTERS];
	struct delayed_work stats_work;
	u32 speed;
	struct mutex port_lock;		/* SET_PORT, SET_MCAST, QUERY_COUNTERS */
	bool port_on;
	struct work_struct rx_mode_work;
	struct work_struct restart_work;
	struct work_struct speed_work;
	bool tx_stamps;
	bool rx_stamps;
	spinlock_t link_lock;		/* carrier */
	struct notifier_block nb;
};

/**
 * qhca_rss_types - what is hashed of the frames of a context
 * @nic: the port
 * @context: any number
 *
 * Context: process, RTNL.
 * Return: QHCA_RSS_*; 0 if there is no such context.
 */
static inline u32 qhca_rss_types(const struct qhca_nic *nic, u32 context)
{
	if (!context)
		return nic->rss_types;
	return context <= QHCA_RSS_CONTEXTS ? nic->context[context - 1].types : 0;
}

/* stats.c */
extern const struct netdev_stat_ops qhca_stat_ops;
int qhca_stats_init(struct qhca_nic *nic);
int qhca_stats_fetch(struct qhca_nic *nic, __le64 *counters);
void qhca_stats_kick(struct qhca_nic *nic);
void qhca_get_stats64(struct net_device *netdev, struct rtnl_link_stats64 *s);
int qhca_get_sset_count(struct net_device *netdev, int sset);
void qhca_get_strings(struct net_device *netdev, u32 sset, u8 *data);
void qhca_get_ethtool_stats(struct net_device *netdev, struct ethtool_stats *stats, u64 *data);

/* netdev.c */
unsigned int qhca_nic_max_channels(const struct qhca_nic *nic);
int qhca_nic_change(struct qhca_nic *nic, const struct qhca_chan_params *params);

/* port.c */
int qhca_port_query(struct qhca_nic *nic, struct qhca_port_attr *attr);
int qhca_port_set(struct qhca_nic *nic, bool on);
int qhca_port_sync(struct qhca_nic *nic);
void qhca_port_rx_mode_work(struct work_struct *work);
void qhca_port_update_carrier(struct qhca_nic *nic);

/* chan.c */
struct qhca_chan *qhca_chan_alloc(struct qhca_nic *nic, const struct qhca_chan_params *params,
				  unsigned int index);
void qhca_chan_free(struct qhca_chan *chan);
int qhca_chan_create_cqs(struct qhca_chan *chan);
void qhca_chan_destroy_cqs(struct qhca_chan *chan);
int qhca_chan_create_queues(struct qhca_chan *chan, struct qhca_chan *old);
void qhca_chan_destroy_queues(struct qhca_chan *chan);
void qhca_chan_enable(struct qhca_chan *chan);
void qhca_chan_disable(struct qhca_chan *chan);
void qhca_chan_kick(struct qhca_chan *chan);

/* ntuple.c */
void qhca_ntuple_apply(struct qhca_nic *nic, unsigned int channels);
void qhca_ntuple_off(struct qhca_nic *nic);
void qhca_ntuple_free(struct qhca_nic *nic);
unsigned int qhca_ntuple_max_queue(const struct qhca_nic *nic);
bool qhca_ntuple_uses(const struct qhca_nic *nic, u32 context);
void qhca_ntuple_forget(struct qhca_nic *nic, u32 context);
int qhca_set_rxnfc(struct net_device *netdev, struct ethtool_rxnfc *info);
int qhca_get_rxnfc(struct net_device *netdev, struct ethtool_rxnfc *info, u32 *locations);

/* ntuple_flow.c */
int qhca_ntuple_flow(const struct qhca_nic *nic, const struct ethtool_rx_flow_spec *fs,
		     u32 context, unsigned int channels, struct qhca_flow *flow);

/* rss.c */
int qhca_rss_apply(struct qhca_nic *nic, unsigned int channels);
void qhca_rss_off(struct qhca_nic *nic);
u32 qhca_get_rx_ring_count(struct net_device *netdev);
u32 qhca_get_rxfh_key_size(struct net_device *netdev);
u32 qhca_get_rxfh_indir_size(struct net_device *netdev);
int qhca_get_rxfh(struct net_device *netdev, struct ethtool_rxfh_param *rxfh);
int qhca_set_rxfh(struct net_device *netdev, struct ethtool_rxfh_param *rxfh,
		  struct netlink_ext_ack *extack);
int qhca_create_rxfh_context(struct net_device *netdev, struct ethtool_rxfh_context *ctx,
			     const struct ethtool_rxfh_param *rxfh,
			     struct netlink_ext_ack *extack);
int qhca_modify_rxfh_context(struct net_device *netdev, struct ethtool_rxfh_context *ctx,
			     const struct ethtool_rxfh_param *rxfh,
			     struct netlink_ext_ack *extack);
int qhca_remove_rxfh_context(struct net_device *netdev, struct ethtool_rxfh_context *ctx,
			     u32 number, struct netlink_ext_ack *extack);
int qhca_get_rxfh_fields(struct net_device *netdev, struct ethtool_rxfh_fields *fields);
int qhca_set_rxfh_fields(struct net_device *netdev, const struct ethtool_rxfh_fields *fields,
			 struct netlink_ext_ack *extack);

/* chans.c */
struct qhca_chans *qhca_chans_alloc(struct qhca_nic *nic, const struct qhca_chan_params *params);
void qhca_chans_free(struct qhca_chans *chans);
int qhca_chans_start(struct qhca_chans *chans);
void qhca_chans_stop(struct qhca_chans *chans);
int qhca_chans_prepare(struct qhca_chans *chans);
void qhca_chans_unprepare(struct qhca_chans *chans);
int qhca_chans_replace(struct qhca_chans *old, struct qhca_chans *new);

/* eth_cq.c */
int qhca_eth_cq_create(struct qhca_eth_cq *cq, struct qhca_chan *chan, u8 log_size,
		       const struct qhca_moderation *mod);
void qhca_eth_cq_destroy(struct qhca_eth_cq *cq);
bool qhca_eth_cq_next(struct qhca_eth_cq *cq, struct qhca_cqe *cqe);
bool qhca_eth_cq_is_empty(const struct qhca_eth_cq *cq);
void qhca_eth_cq_update(struct qhca_eth_cq *cq);
void qhca_eth_cq_arm(struct qhca_eth_cq *cq);
int qhca_eth_cq_moderate(struct qhca_eth_cq *cq, u32 usecs, u32 frames);

/* eth_dim.c */
void qhca_eth_dim_init(struct qhca_eth_cq *cq);
void qhca_eth_dim_stop(struct qhca_eth_cq *cq);
void qhca_eth_dim(struct qhca_eth_cq *cq, u64 packets, u64 bytes);

/* stamps.c */
void qhca_rx_stamp(const struct qhca_chan *chan, struct sk_buff *skb, const struct qhca_cqe *cqe);
void qhca_tx_stamp_start(const struct qhca_nic *nic, struct sk_buff *skb);
void qhca_tx_stamp_end(const struct qhca_chan *chan, struct sk_buff *skb,
		       const struct qhca_cqe *cqe);
int qhca_hwtstamp_get(struct net_device *netdev, struct kernel_hwtstamp_config *config);
int qhca_hwtstamp_set(struct net_device *netdev, struct kernel_hwtstamp_config *config,
		      struct netlink_ext_ack *extack);
int qhca_get_ts_info(struct net_device *netdev, struct kernel_ethtool_ts_info *info);

/* tx.c */
int qhca_txq_alloc(struct qhca_chan *chan, u32 entries);
void qhca_txq_free(struct qhca_chan *chan);
void qhca_txq_drain(struct qhca_chan *chan);
void qhca_tx_poll(struct qhca_chan *chan, int budget);
netdev_features_t qhca_features_check(struct sk_buff *skb, struct net_device *netdev,
				      netdev_features_t features);
netdev_tx_t qhca_xmit(struct sk_buff *skb, struct net_device *netdev);

/* rx.c */
int qhca_rxq_alloc(struct qhca_chan *chan, u32 entries, u32 mtu);
void qhca_rxq_free(struct qhca_chan *chan);
void qhca_rxq_drain(struct qhca_chan *chan);
void qhca_rxq_prefill(struct qhca_chan *chan);
bool qhca_rxq_fill(struct qhca_chan *chan);
int qhca_rx_poll(struct qhca_chan *chan, int budget);

/* ethtool.c */
extern const struct ethtool_ops qhca_ethtool_ops;

#endif /* QHCA_ETH_H */
