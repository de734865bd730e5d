/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * qhca device interface: flow rules, which say what Ethernet frames QPs of type RAW receive, and
 * spreads, by which several of them share the frames of a rule.
 * Other rules say which of the Ethernet queues a frame is for,.
 */
#ifndef QHCA_FLOW_H
#define QHCA_FLOW_H

#include "base.h"

/*
 * struct qhca_flow_key - the fields of a frame that rules look at, in network order. A field that
 * the frame does not have is 0.
 * @vlan_tci: of the outer tag
 * @ethertype: behind that tag
 * @headers: QHCA_FLOW_HAS_*
 * @proto: IPv4 protocol or IPv6 next header
 * @tclass: IPv4 TOS or IPv6 traffic class
 * @ttl: IPv4 TTL or IPv6 hop limit
 * @flow_label: IPv6, the low 20 bits
 * @src, @dst: IPv6 addresses; an IPv4 address has the first four bytes
 * @sport, @dport: of TCP or UDP; not of fragments
 * @ip_flags: IPv4: QHCA_FLOW_DONT_FRAG, QHCA_FLOW_MORE_FRAGS
 */
struct qhca_flow_key {
	__u8	dmac[6];
	__u8	smac[6];
	__be16	vlan_tci;
	__be16	ethertype;
	__u8	headers;
	__u8	proto;
	__u8	tclass;
	__u8	ttl;
	__be32	flow_label;
	__u8	src[16];
	__u8	dst[16];
	__be16	sport;
	__be16	dport;
	__u8	ip_flags;
	__u8	rsvd[3];
};
QHCA_ASSERT_SIZE(struct qhca_flow_key, 64);
QHCA_ASSERT_OFFSET(struct qhca_flow_key, src, 24);

#define QHCA_FLOW_HAS_VLAN	0x01
#define QHCA_FLOW_HAS_IPV4	0x02
#define QHCA_FLOW_HAS_IPV6	0x04
#define QHCA_FLOW_HAS_TCP	0x08	/* first or only fragment, behind any options */
#define QHCA_FLOW_HAS_UDP	0x10

#define QHCA_FLOW_DONT_FRAG	0x02
#define QHCA_FLOW_MORE_FRAGS	0x04

/*
 * struct qhca_flow - a rule, mailbox of CREATE_FLOW
 *
 * A frame matches if it has the bits of @key that @mask has. Of all rules that match a frame, only
 * those with the smallest @priority count: the oldest of them or, if the frame is to a group, all;
 * of QHCA_FLOW_ETH the oldest in any case.
 *
 * The object of the command is 0 or the number of a rule that this one
 * replaces, which keeps it.
 * @key: 0 where @mask is 0
 * @target: number of a QP of type RAW or of a spread, index of a receive queue, or number of an RSS
 *	context, by @action
 * @tag: put into the CQE of the frame; 0 with QHCA_FLOW_ETH
 * @order: enum qhca_flow_order
 */
struct qhca_flow {
	struct qhca_flow_key key;
	struct qhca_flow_key mask;
	__le32	priority;
	__le32	target;
	__le32	tag;
	__u8	action;		/* enum qhca_flow_action */
	__u8	order;
	__u8	rsvd[2];
};
QHCA_ASSERT_SIZE(struct qhca_flow, 144);
QHCA_ASSERT_OFFSET(struct qhca_flow, priority, 128);

enum qhca_flow_action {
	QHCA_FLOW_DROP = 0,	/* drop the frame; @target is 0 */
	QHCA_FLOW_QP = 1,
	QHCA_FLOW_SPREAD = 2,
	QHCA_FLOW_QUEUE = 3,	/* which need not exist; then the frame is lost */
	QHCA_FLOW_RSS = 4,	/* one of the queues of a context, or of all frames: 0 */
};

enum qhca_flow_order {
	QHCA_FLOW_FIRST = 0,	/* for all frames but RoCE's, before the Ethernet queues */
	QHCA_FLOW_REST = 1,	/* for those that their address filter does not accept */
	/* For the others, instead of SET_RSS; QUEUE and RSS are actions of this order alone. */
	QHCA_FLOW_ETH = 2,
};

/*
 * struct qhca_flow_counts - mailbox of QUERY_FLOW: what a rule has been applied to
 * @bytes: of the frames, without their checksum
 */
struct qhca_flow_counts {
	__le64	frames;
	__le64	bytes;
};
QHCA_ASSERT_SIZE(struct qhca_flow_counts, 16);

#define QHCA_FLOW_MAX		256u	/* rules */
#define QHCA_FLOW_PRIORITIES	65536u	/* the largest priority is one less */
#define QHCA_SPREAD_MAX		64u
#define QHCA_SPREAD_LOG_MAX	7

/*
 * struct qhca_spread - mailbox of CREATE_SPREAD
 * @key: of the Toeplitz hash
 * @types: QHCA_RSS_*, what is hashed; frames without a hash are for the first QP
 * @log_size: log2 of the QPs, which are chosen by the low bits of the hash
 * @qpn: QPs of type RAW, each any number of times
 */
struct qhca_spread {
	__u8	key[40];
	__le32	types;
	__u8	log_size;
	__u8	rsvd[19];
	__le32	qpn[1 << QHCA_SPREAD_LOG_MAX];
};
QHCA_ASSERT_SIZE(struct qhca_spread, 576);
QHCA_ASSERT_OFFSET(struct qhca_spread, qpn, 64);

#endif /* QHCA_FLOW_H */
