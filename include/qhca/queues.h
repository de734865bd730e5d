/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * qhca device interface: the rings of the data path: work queue entries (WQE),
 * completion queue entries (CQE), event queue entries (EQE), and the
 * descriptors of the Ethernet queues.
 */
#ifndef QHCA_QUEUES_H
#define QHCA_QUEUES_H

#include "base.h"

/* One scatter/gather element. If the length is 0, address and key are not checked. */
struct qhca_sge {
	__le64	addr;
	__le32	length;
	__le32	lkey;
};
QHCA_ASSERT_SIZE(struct qhca_sge, 16);

/*
 * struct qhca_av - address vector: path to a peer.
 * @dgid: destination GID, network order
 * @dmac: destination Ethernet address
 * @sgid_index: index of the source GID
 * @hop_limit: IPv4 TTL or IPv6 hop limit
 * @flow_label: IPv6 flow label in the low 20 bits; it also determines the UDP source port
 * @pdn: protection domain of the address handle (UD); ignored in a QPC
 * @tclass: IPv4 TOS or IPv6 traffic class
 * @sl: service level; also the VLAN priority if the source GID has a VLAN
 * @port: port number, 1
 * @static_rate: enum ib_rate; sending is no faster; any value may be
 *               stored, and those that are no rate mean none
 */
struct qhca_av {
	__u8	dgid[16];
	__u8	dmac[6];
	__u8	sgid_index;
	__u8	hop_limit;
	__le32	flow_label;
	__le32	pdn;
	__u8	tclass;
	__u8	sl;
	__u8	port;
	__u8	static_rate;
	__u8	rsvd[4];
};
QHCA_ASSERT_SIZE(struct qhca_av, 40);
QHCA_ASSERT_OFFSET(struct qhca_av, flow_label, 24);

/* Q_Key of the GSI QP, whatever Q_Key the QP or the WQE has. */
#define QHCA_QKEY_GSI		0x80010000u
/* If the Q_Key of a WQE has this bit, the Q_Key of the QP is used. */
#define QHCA_QKEY_OWN		0x80000000u

/* Opcodes of send WQEs. */
#define QHCA_WR(id, number, ...)	QHCA_WR_##id = number,
enum qhca_wr_opcode {
#include "opcodes.def"
	QHCA_WR_MAX
};

/* Flags of send WQEs. */
#define QHCA_WQE_SIGNALED	0x01	/* write a CQE on success */
#define QHCA_WQE_SOLICITED	0x02	/* set BTH.SE */
#define QHCA_WQE_FENCE		0x04	/* wait for all earlier READs, atomics and FLUSHes */
#define QHCA_WQE_INLINE		0x08	/* the data is in the WQE */
#define QHCA_WQE_CSUM		0x10	/* RAW: fill in the checksums of IPv4, TCP and UDP */

/* Guarantees of a FLUSH for the writes before it; same bits as in the packet. */
#define QHCA_FLUSH_GLOBAL	0x01	/* visible to all */
#define QHCA_FLUSH_PERSISTENT	0x02	/* survives loss of power */

/* Writes that a FLUSH covers; same numbers as in the packet. */
enum qhca_flush_level {
	QHCA_FLUSH_RANGE = 0,	/* writes to the given range */
	QHCA_FLUSH_MR = 1,	/* writes to the region or window of its key */
};

/*
 * struct qhca_sq_wqe - a send WQE, followed by @count SGEs, or, with QHCA_WQE_INLINE, by @count
 * bytes of data. The stride of the ring is a power of two from QHCA_SQ_STRIDE_MIN to
 * QHCA_SQ_STRIDE_MAX. Written by the consumer; the device reads it once, after the doorbell that
 * covers it.
 * @wr_id: copied to the CQE
 * @opcode: enum qhca_wr_opcode
 * @flags: QHCA_WQE_*
 * @count: number of SGEs, or bytes of inline data
 * @imm: immediate data in network order; for *_INV the key to invalidate, little-endian (@inv_key)
 */
struct qhca_sq_wqe {
	__le64	wr_id;
	__u8	opcode;
	__u8	flags;
	__le16	count;
	union {
		__be32	imm;
		__le32	inv_key;
	};
	union {
		struct {
			__le64	addr;	/* remote virtual address */
			__le32	rkey;
			__le32	srqn;	/* XRC: SRQ of the peer; also for SENDs */
		} rdma;
		struct {
			__le64	addr;	/* remote virtual address, 8-byte aligned */
			__le32	rkey;
			__le32	srqn;	/* at the same offset as in rdma */
			__le64	swap_add;
			__le64	compare;
		} atomic;
		struct {		/* FLUSH: has neither SGEs nor inline data */
			__le64	addr;	/* remote virtual address */
			__le32	rkey;
			__le32	rsvd;
			__le32	length;	/* QHCA_FLUSH_RANGE: length of the range in bytes */
			__u8	type;	/* QHCA_FLUSH_*, at least one bit */
			__u8	level;	/* enum qhca_flush_level */
		} flush;
		struct {
			struct qhca_av av;
			__le32	qpn;
			__le32	qkey;
		} ud;
		struct {		/* REG_MR */
			__le64	iova;	/* address of the first byte */
			__le64	length;
			__le64	table;	/* DMA address of the block addresses */
			__le32	key;	/* key of the region, with a new low byte */
			__le32	num_blocks;
			__le32	offset;	/* offset of the first byte in the first block */
			__le16	access;	/* QHCA_ACCESS_* */
			__u8	block_shift;
		} reg;
		struct {		/* BIND_MW */
			__le64	addr;	/* start of the window, as an address in the region */
			__le64	length;
			__le32	mw_key;	/* key of the window, with a new low byte */
			__le32	mr_key;
			__le16	access;	/* QHCA_ACCESS_REMOTE_*, ZERO_BASED */
		} bind;
		__u8	rsvd[48];
	};
};
QHCA_ASSERT_SIZE(struct qhca_sq_wqe, 64);
QHCA_ASSERT_OFFSET(struct qhca_sq_wqe, imm, 12);
QHCA_ASSERT_OFFSET(struct qhca_sq_wqe, rdma, 16);
QHCA_ASSERT_OFFSET(struct qhca_sq_wqe, rdma.srqn, 28);
QHCA_ASSERT_OFFSET(struct qhca_sq_wqe, atomic.srqn, 28);
QHCA_ASSERT_OFFSET(struct qhca_sq_wqe, atomic.compare, 40);

#define QHCA_SQ_STRIDE_MIN	128
#define QHCA_SQ_STRIDE_MAX	1024
#define QHCA_MAX_SEND_SGE	32
#define QHCA_MAX_INLINE		512

/* struct qhca_rq_wqe - a receive WQE, followed by @num_sge SGEs. */
struct qhca_rq_wqe {
	__le64	wr_id;
	__le16	num_sge;
	__u8	rsvd[6];
};
QHCA_ASSERT_SIZE(struct qhca_rq_wqe, 16);

#define QHCA_RQ_STRIDE_MIN	32
#define QHCA_RQ_STRIDE_MAX	1024
#define QHCA_MAX_RECV_SGE	32

/* Work that a CQE completes. */
#define QHCA_CQE(id, name, number)	QHCA_CQE_##id = number,
enum qhca_cqe_opcode {
#include "opcodes.def"
};

/* Completion status: same meanings and numbers as enum ibv_wc_status. */
enum qhca_cqe_status {
	QHCA_WC_SUCCESS = 0,
	QHCA_WC_LOC_LEN_ERR = 1,
	QHCA_WC_LOC_QP_OP_ERR = 2,
	QHCA_WC_LOC_PROT_ERR = 4,
	QHCA_WC_WR_FLUSH_ERR = 5,
	QHCA_WC_MW_BIND_ERR = 6,
	QHCA_WC_BAD_RESP_ERR = 7,
	QHCA_WC_LOC_ACCESS_ERR = 8,
	QHCA_WC_REM_INV_REQ_ERR = 9,
	QHCA_WC_REM_ACCESS_ERR = 10,
	QHCA_WC_REM_OP_ERR = 11,
	QHCA_WC_RETRY_EXC_ERR = 12,
	QHCA_WC_RNR_RETRY_EXC_ERR = 13,
	QHCA_WC_REM_ABORT_ERR = 16,
	QHCA_WC_FATAL_ERR = 19,
	QHCA_WC_GENERAL_ERR = 21,
};

/* Flags of CQEs. */
#define QHCA_CQE_SQ		0x0001	/* completes a send WQE */
#define QHCA_CQE_GRH		0x0002	/* 40 bytes of GRH precede the payload */
#define QHCA_CQE_IMM		0x0004	/* @imm is valid */
#define QHCA_CQE_INV		0x0008	/* @inv_key is valid */
#define QHCA_CQE_SOLICITED	0x0010	/* the message carried BTH.SE */
#define QHCA_CQE_IPV4		0x0020	/* UD: the GRH holds an IPv4 header */
#define QHCA_CQE_VLAN		0x0040	/* @vlan_tci is valid */
#define QHCA_CQE_SRQ		0x0080	/* @wqe_index is an index of the SRQ */
#define QHCA_CQE_CSUM_OK	0x0100	/* RAW, Ethernet RX: IP, TCP and UDP checksums are right */
#define QHCA_CQE_XRC		0x0200	/* @srqn is valid; @qpn may be another process's */
#define QHCA_CQE_HASH		0x0400	/* Ethernet RX: @hash is valid */
#define QHCA_CQE_HASH_L4	0x0800	/* @hash includes ports */

/*
 * struct qhca_cqe - completion, written by the device, @owner last.
 * @wr_id: copied from the WQE
 * @timestamp: device time in ns
 * @qpn: local QPN, or Ethernet queue number
 * @byte_len: bytes received, read, or exchanged
 * @imm: immediate data in network order, if QHCA_CQE_IMM
 * @inv_key: key the peer invalidated, if QHCA_CQE_INV
 * @hash: Toeplitz hash of the addresses, if QHCA_CQE_HASH
 * @flow_tag: RAW: the tag of the flow rule
 * @src_qp: sender's QPN (UD)
 * @wqe_index: free-running index of the WQE; all earlier ones of that queue are also complete (in
 *             an SRQ only this one, see hardware.rst)
 * @vendor_err: 0 in this version
 * @smac: sender's Ethernet address (UD)
 * @srqn: SRQ of the WQE, if QHCA_CQE_XRC
 * @opcode: enum qhca_cqe_opcode, valid for errors as well
 * @status: enum qhca_cqe_status
 * @owner: phase in bit 0
 */
struct qhca_cqe {
	__le64	wr_id;
	__le64	timestamp;
	__le32	qpn;
	__le32	byte_len;
	union {
		__be32	imm;
		__le32	inv_key;
		__le32	hash;
		__le32	flow_tag;
	};
	__le32	src_qp;
	__le32	wqe_index;
	__le32	vendor_err;
	__le16	flags;
	__le16	pkey_index;
	__le16	vlan_tci;
	__u8	smac[6];
	__u8	sl;
	__u8	rsvd0[3];
	__le32	srqn;
	__u8	rsvd1;
	__u8	opcode;
	__u8	status;
	__u8	owner;
};
QHCA_ASSERT_SIZE(struct qhca_cqe, 64);
QHCA_ASSERT_OFFSET(struct qhca_cqe, flags, 40);
QHCA_ASSERT_OFFSET(struct qhca_cqe, srqn, 56);
QHCA_ASSERT_OFFSET(struct qhca_cqe, owner, 63);

/*
 * struct qhca_cq_dbrec - doorbell record of a CQ, directly behind its ring; initially 0
 * @ci: free-running consumer index, written by the consumer after it has taken CQEs; the device
 *      reads it to find free entries
 * @arm: of a CQ with QHCA_CQ_DBREC: its arms, written in one access; the device reads them after
 * each CQE
 */
struct qhca_cq_dbrec {
	__le32	ci;
	__u8	rsvd0[4];
	__le64	arm;
	__u8	rsvd1[48];
};
#define QHCA_CQ_ARM_SN		0x00000000ffffffffull	/* number of the last arm, from 1 on */
#define QHCA_CQ_ARM_ANY_SN	0xffffffff00000000ull	/* of the last that any CQE answers */
QHCA_ASSERT_OFFSET(struct qhca_cq_dbrec, arm, 8);
QHCA_ASSERT_SIZE(struct qhca_cq_dbrec, 64);

/*
 * struct qhca_rq_dbrec - doorbell record of a receive queue or SRQ created with one, directly
 * behind the ring; initially 0
 * @pi: free-running producer index, written by the producer after the WQEs; the device reads it
 *      when it has no WQE left
 * @ring: written by the device: if not 0, the device does not read @pi any more and needs a
 *        doorbell; the producer reads this after it has written @pi
 */
struct qhca_rq_dbrec {
	__le32	pi;
	__le32	ring;
	__u8	rsvd[56];
};
QHCA_ASSERT_SIZE(struct qhca_rq_dbrec, 64);

/* struct qhca_cqc - CQ context in the device. */
struct qhca_cqc {
	__le32	cqn;
	__le32	uar;
	__le32	eqn;
	__le32	pi;		/* free-running producer index */
	__le32	ci;		/* last value read from the doorbell record */
	__le32	arm_sn;		/* sequence number of the last arm */
	__u8	log_size;
	__u8	state;		/* enum qhca_cq_state */
	__u8	arm;		/* enum qhca_cq_arm */
	__u8	rsvd;
	__le32	users;		/* queues that use the CQ */
	__le32	count;		/* set by MODIFY_CQ */
	__le32	period;		/* set by MODIFY_CQ, us */
};
QHCA_ASSERT_SIZE(struct qhca_cqc, 40);

enum qhca_cq_state {
	QHCA_CQ_OK = 0,
	QHCA_CQ_ERROR = 1,	/* overrun, or unwritable ring; the CQ must be destroyed */
};

enum qhca_cq_arm {
	QHCA_CQ_NOT_ARMED = 0,
	QHCA_CQ_ARM_SOLICITED = 1,
	QHCA_CQ_ARM_NEXT = 2,
};

/* Types of events. Events of an object have its number in @obj. */
#define QHCA_EVENT(id, name, number, ...)	QHCA_EVENT_##id = number,
enum qhca_event {
#include "events.def"
};

/* struct qhca_eqe - event, written by the device, @owner last. */
struct qhca_eqe {
	__u8	type;		/* enum qhca_event */
	__u8	rsvd0[3];
	__le32	obj;
	__le32	arm_sn;
	__le32	rsvd1;
	__le64	timestamp;	/* device time in ns */
	__u8	rsvd2[7];
	__u8	owner;
};
QHCA_ASSERT_SIZE(struct qhca_eqe, 32);
QHCA_ASSERT_OFFSET(struct qhca_eqe, owner, 31);

/* Flags of Ethernet WQEs. */
#define QHCA_ETH_MORE		0x0001	/* TX: the frame continues in the next WQE */
#define QHCA_ETH_CSUM		0x0002	/* TX: fill in a 16-bit ones-complement checksum */
#define QHCA_ETH_VLAN		0x0004	/* TX: insert @vlan_tci */
#define QHCA_ETH_TSO		0x0008	/* TX: segment TCP, @mss bytes each */

/*
 * struct qhca_eth_wqe - one buffer of an Ethernet queue. TX: a fragment of a frame; csum_*, mss and
 * vlan_tci count in the first fragment. RX: a buffer for a whole frame, or with QHCA_ETHQ_SCATTER
 * for a part of one. Each frame has one CQE, with the index of its last fragment; its byte_len
 * counts the bytes on the wire, inserted tags included, of all frames if the device has segmented
 * it.
 * @csum_start: offset in the frame where checksumming starts; TSO: offset of the TCP header
 * @csum_offset: offset of the checksum field from @csum_start; not used with TSO
 * @mss: TSO: payload bytes of each frame but the last
 */
struct qhca_eth_wqe {
	__le64	wr_id;
	__le64	addr;
	__le32	length;
	__le16	flags;
	__le16	vlan_tci;
	__le16	csum_start;
	__le16	csum_offset;
	__le16	mss;
	__u8	rsvd[2];
};
QHCA_ASSERT_SIZE(struct qhca_eth_wqe, 32);

#define QHCA_ETH_MAX_FRAGS	20
#define QHCA_ETH_MTU_MIN	68
#define QHCA_ETH_MTU_MAX	9000

#endif /* QHCA_QUEUES_H */
