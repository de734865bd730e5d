/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * qhca device interface: the command queue.
 *
 * The driver fills the ring entry at its producer index and rings QHCA_DB_CMD;
 * the device executes commands in ring order and answers each with one entry of
 * the completion ring. An entry, and the mailbox it names, belong to the device
 * until its completion arrives; then the entry may be used again. Vector 0 is
 * raised once for each batch of completions.
 */
#ifndef QHCA_CMD_H
#define QHCA_CMD_H

#include "base.h"
#include "congestion.h"
#include "flow.h"
#include "mr.h"
#include "qp.h"
#include "queues.h"

/* Opcodes. "in" and "out" name what the mailbox holds before and after. */
#define QHCA_COMMAND(id, name, number)			QHCA_CMD_##id = number,
#define QHCA_COMMAND_IN(id, name, number, type)		QHCA_CMD_##id = number, /* in: type */
#define QHCA_COMMAND_OUT(id, name, number, type)	QHCA_CMD_##id = number, /* out: type */
enum qhca_cmd_opcode {
#include "commands.def"
};

/* Status of a command. Documentation/hardware.rst gives the errno for each. */
enum qhca_cmd_status {
	QHCA_OK = 0,
	QHCA_ERR_OPCODE = 1,	/* unknown command */
	QHCA_ERR_PARAM = 2,	/* a field has a value that is never valid */
	QHCA_ERR_LIMIT = 3,	/* a size above the advertised limit */
	QHCA_ERR_OBJ = 4,	/* no object with that number */
	QHCA_ERR_BUSY = 5,	/* another object uses the object */
	QHCA_ERR_STATE = 6,	/* the state of the object does not allow it */
	QHCA_ERR_NO_RESOURCE = 7,	/* all objects of that kind are in use */
	QHCA_ERR_DMA = 8,	/* the mailbox or a table cannot be read or written */
	QHCA_ERR_NOT_SUPPORTED = 9,	/* known, but not offered */
	QHCA_ERR_PERM = 10,	/* the object belongs to another PD or doorbell page */
};

/* Bodies: bytes 16 to 63 of a command. */

struct qhca_cmd_set_port {	/* QHCA_CMD_SET_PORT */
	__u8	mac[6];		/* unicast address to receive */
	__u8	port;		/* 1 */
	__u8	flags;		/* QHCA_PORT_* */
	__le32	mtu;		/* largest Ethernet payload, sent and received, behind two tags */
};
QHCA_ASSERT_SIZE(struct qhca_cmd_set_port, 12);

#define QHCA_PORT_ENABLE	0x01	/* receive and send frames */
#define QHCA_PORT_PROMISC	0x02	/* pass every frame to the Ethernet queue */
#define QHCA_PORT_ALLMULTI	0x04	/* pass every multicast frame to it */

struct qhca_cmd_set_mcast {	/* QHCA_CMD_SET_MCAST replaces the whole list */
	__le32	count;
};
QHCA_ASSERT_SIZE(struct qhca_cmd_set_mcast, 4);

struct qhca_cmd_set_gid {	/* QHCA_CMD_SET_GID */
	__u8	gid[16];	/* network order; IPv4 as ::ffff:a.b.c.d */
	__u8	smac[6];	/* source MAC address of frames sent from this GID */
	__le16	vlan;		/* VLAN identifier, or QHCA_NO_VLAN */
	__le16	index;
	__u8	port;
	__u8	valid;		/* 0 clears the entry, and the rest is ignored */
};
QHCA_ASSERT_SIZE(struct qhca_cmd_set_gid, 28);

#define QHCA_NO_VLAN		0xffff

/* UD WQEs on a doorbell page other than 0 can use only the GIDs allowed for that page. */
struct qhca_cmd_allow_gid {	/* QHCA_CMD_ALLOW_GID */
	__le32	uar;		/* doorbell page */
	__le16	index;
	__u8	port;
	__u8	allow;		/* 1: allow this entry; 0: allow none, index is ignored */
};
QHCA_ASSERT_SIZE(struct qhca_cmd_allow_gid, 8);

/* Doorbells of a page in memory; the object number of DESTROY_SHADOW is the page's. */
struct qhca_cmd_create_shadow {	/* QHCA_CMD_CREATE_SHADOW */
	struct qhca_buf buf;	/* struct qhca_shadow, zeroed */
	__le32	uar;		/* doorbell page */
	__le32	slots;		/* 1 to QHCA_SHADOW_SLOTS_MAX */
};
QHCA_ASSERT_SIZE(struct qhca_cmd_create_shadow, 24);

/* A new EQ is armed: its first event raises the vector. */
struct qhca_cmd_create_eq {	/* QHCA_CMD_CREATE_EQ */
	struct qhca_buf buf;	/* ring of struct qhca_eqe */
	__le16	vector;		/* MSI-X vector to raise */
	__u8	log_size;	/* log2 of the entries */
	__u8	flags;		/* QHCA_EQ_* */
	__le32	rsvd;
};
QHCA_ASSERT_SIZE(struct qhca_cmd_create_eq, 24);

#define QHCA_EQ_ASYNC		0x01	/* receives all but COMP events; only one may exist */

struct qhca_cmd_create_ethq {	/* QHCA_CMD_CREATE_ETHQ */
	struct qhca_buf buf;	/* ring of struct qhca_eth_wqe */
	__le32	cqn;
	__u8	log_size;
	__u8	dir;		/* enum qhca_eth_dir */
	__u8	flags;		/* QHCA_ETHQ_* */
	__u8	index;		/* among the queues of that direction */
	__le32	pi;		/* initial producer index: number of WQEs already in the ring */
	__u8	frags;		/* with QHCA_ETHQ_SCATTER: so many WQEs have room for any frame */
	__u8	rsvd2[3];
};
QHCA_ASSERT_SIZE(struct qhca_cmd_create_ethq, 32);

#define QHCA_ETHQ_REPLACE	0x01	/* first destroy that queue, if it exists */
#define QHCA_ETHQ_SCATTER	0x02	/* RX: spread a frame */

enum qhca_eth_dir {
	QHCA_ETH_TX = 0,
	QHCA_ETH_RX = 1,
};

/* Spread received frames over the receive queues. Replaces what was set before. */
struct qhca_cmd_set_rss {	/* QHCA_CMD_SET_RSS */
	__le32	types;		/* QHCA_RSS_*; 0: none, whatever the mailbox has */
	__le32	context;	/* 0, or one for the frames of rules */
};
QHCA_ASSERT_SIZE(struct qhca_cmd_set_rss, 8);

#define QHCA_RSS_CONTEXTS	32u	/* numbered from 1 on; 0 is for all other frames */

/* Hash addresses, and for TCP and UDP also ports. Frames without a hash go to queue 0. */
#define QHCA_RSS_IPV4		0x01	/* addresses, of all frames that the next two leave */
#define QHCA_RSS_TCPV4		0x02
#define QHCA_RSS_UDPV4		0x04
#define QHCA_RSS_IPV6		0x08	/* addresses, of all frames that the next two leave */
#define QHCA_RSS_TCPV6		0x10
#define QHCA_RSS_UDPV6		0x20

/*
 * RESIZE_CQ moves the CQ to a new ring, which is zeroed like every ring. CQEs that were not
 * consumed, according to the doorbell record of the old ring, become its entries 0, 1, 2 ... in
 * their old order and in the first phase; both indices start from 0 again. An arm stays in force;
 * if arms are in the doorbell record, the consumer has copied them to the new one. On error the CQ
 * keeps the old ring.
 */
struct qhca_cmd_create_cq {	/* QHCA_CMD_CREATE_CQ, QHCA_CMD_RESIZE_CQ */
	struct qhca_buf buf;	/* ring of struct qhca_cqe, then qhca_cq_dbrec */
	__le32	uar;		/* doorbell page */
	__le32	eqn;		/* event queue for its COMP events */
	__le32	cqn;		/* RESIZE_CQ: the CQ; uar, eqn and flags are ignored */
	__u8	log_size;	/* log2 of the entries */
	__u8	flags;		/* QHCA_CQ_DBREC */
	__u8	rsvd[2];
};
QHCA_ASSERT_SIZE(struct qhca_cmd_create_cq, 32);

#define QHCA_CQ_DBREC		0x01	/* armed by its doorbell record; needs QHCA_CAP_SHADOW */

/* The device delays an event until @count CQEs are written or @period us have passed. */
struct qhca_cmd_modify_cq {	/* QHCA_CMD_MODIFY_CQ */
	__le32	cqn;
	__le32	count;		/* 0 or 1: do not delay events */
	__le32	period;		/* in us; 0: do not delay events */
};
QHCA_ASSERT_SIZE(struct qhca_cmd_modify_cq, 12);

/*
 * RESIZE_SRQ moves the SRQ to a new ring with WQEs of the same stride. Indices continue: a WQE with
 * index i that no QP has taken is at i modulo the new size. With QHCA_SRQ_LIMIT the command sets
 * the limit as well. On error nothing has changed.
 */
struct qhca_cmd_create_srq {	/* QHCA_CMD_CREATE_SRQ, QHCA_CMD_RESIZE_SRQ */
	struct qhca_buf buf;	/* ring of receive WQEs, and its doorbell record */
	__le32	pdn;		/* PD of the L_Keys in its WQEs */
	__le32	uar;		/* doorbell page */
	__le32	max_sge;
	__le32	srqn;		/* RESIZE_SRQ: the SRQ; uses buf, log_size, flags, limit only */
	__le32	limit;		/* RESIZE_SRQ with QHCA_SRQ_LIMIT: new limit */
	__u8	log_size;	/* log2 of the WQEs */
	__u8	log_stride;
	__u8	flags;		/* QHCA_SRQ_* */
	__u8	rsvd;
	__le32	xrcdn;		/* CREATE_SRQ: its XRC domain; 0: none */
	__le32	cqn;		/* CREATE_SRQ with xrcdn: CQ for its completions */
};
QHCA_ASSERT_SIZE(struct qhca_cmd_create_srq, 48);

#define QHCA_SRQ_RESERVED_LKEY	0x01	/* CREATE_SRQ: WQEs may use reserved_lkey */
#define QHCA_SRQ_LIMIT		0x02	/* RESIZE_SRQ: set @limit */
#define QHCA_SRQ_DBREC		0x04	/* CREATE_SRQ: struct qhca_rq_dbrec behind the ring */

struct qhca_cmd_modify_srq {	/* QHCA_CMD_MODIFY_SRQ */
	__le32	srqn;
	__le32	limit;		/* raise SRQ_LIMIT_REACHED below that many WQEs; 0: never */
};
QHCA_ASSERT_SIZE(struct qhca_cmd_modify_srq, 8);

struct qhca_cmd_modify_qp {	/* QHCA_CMD_MODIFY_QP */
	__le32	qpn;
	__le32	attr_mask;	/* QHCA_QP_*: attributes that the mailbox holds */
};
QHCA_ASSERT_SIZE(struct qhca_cmd_modify_qp, 8);

struct qhca_cmd_mcast {		/* QHCA_CMD_ATTACH_MCAST, QHCA_CMD_DETACH_MCAST */
	__u8	gid[16];	/* network order; IPv4 as ::ffff:a.b.c.d */
	__le32	qpn;		/* a QP of type UD */
};
QHCA_ASSERT_SIZE(struct qhca_cmd_mcast, 20);

/* From now on the events of the QP are counted in this set instead of the previous one. */
struct qhca_cmd_bind_cntset {	/* QHCA_CMD_BIND_CNTSET */
	__le32	qpn;
	__le32	cntset;		/* 0: count them in no set */
};
QHCA_ASSERT_SIZE(struct qhca_cmd_bind_cntset, 8);

struct qhca_cmd_obj {		/* every DESTROY, DEREG, DEALLOC and QUERY */
	__le32	obj;		/* object number, MR key, or port */
};
QHCA_ASSERT_SIZE(struct qhca_cmd_obj, 4);

/* struct qhca_cmd - one command, written by the driver. */
struct qhca_cmd {
	__le16	opcode;		/* enum qhca_cmd_opcode */
	__u8	polled;		/* not 0: the driver looks for the answer, no interrupt */
	__u8	rsvd;
	__le32	token;		/* chosen by the driver, echoed in the completion */
	__le64	mailbox;	/* DMA address, QHCA_PAGE_SIZE aligned; 0: no mailbox */
	union {
		__u8	body[48];
		struct qhca_cmd_obj obj;
		struct qhca_cmd_set_port set_port;
		struct qhca_cmd_set_mcast set_mcast;
		struct qhca_cmd_set_gid set_gid;
		struct qhca_cmd_allow_gid allow_gid;
		struct qhca_cmd_create_shadow create_shadow;
		struct qhca_cmd_create_eq create_eq;
		struct qhca_cmd_create_ethq create_ethq;
		struct qhca_cmd_set_rss set_rss;
		struct qhca_cmd_reg_mr reg_mr;
		struct qhca_cmd_alloc_mw alloc_mw;
		struct qhca_cmd_pages pages;
		struct qhca_cmd_create_cq create_cq;
		struct qhca_cmd_modify_cq modify_cq;
		struct qhca_cmd_create_srq create_srq;
		struct qhca_cmd_modify_srq modify_srq;
		struct qhca_cmd_modify_qp modify_qp;
		struct qhca_cmd_resume_qp resume_qp;
		struct qhca_cmd_mcast mcast;
		struct qhca_cmd_bind_cntset bind_cntset;
	};
};
QHCA_ASSERT_SIZE(struct qhca_cmd, 64);
QHCA_ASSERT_OFFSET(struct qhca_cmd, body, 16);

/* struct qhca_cmd_comp - one command completion, written by the device. */
struct qhca_cmd_comp {
	__le16	opcode;		/* echoed from the command */
	__le16	slot;		/* ring position of the command */
	__le32	token;		/* echoed from the command */
	__u8	status;		/* enum qhca_cmd_status */
	__u8	rsvd0[7];
	__le32	obj;		/* object number; for REG_MR and ALLOC_MW the key */
	__u8	rsvd1[43];
	__u8	owner;		/* phase in bit 0 */
};
QHCA_ASSERT_SIZE(struct qhca_cmd_comp, 64);
QHCA_ASSERT_OFFSET(struct qhca_cmd_comp, obj, 16);
QHCA_ASSERT_OFFSET(struct qhca_cmd_comp, owner, 63);

/* Mailboxes: QHCA_PAGE_SIZE bytes each. */

/* struct qhca_device_attr - limits of the device. It can deliver each of them to the full. */
struct qhca_device_attr {
	__le64	fw_version;	/* major << 32 | minor << 16 | patch */
	__le64	node_guid;	/* modified EUI-64 of the permanent MAC */
	__le64	max_mr_size;
	__le64	caps;		/* QHCA_CAP_* */
	__le32	max_pd;
	__le32	max_mr;
	__le32	max_cq;
	__le32	max_qp;
	__le32	max_ethq;	/* both directions together; a power of two */
	__le32	max_uar;	/* doorbell pages, page 0 included */
	__le32	max_gid;
	__le32	max_mcast;	/* Ethernet multicast addresses */
	__le32	max_table_blocks;	/* block addresses of all objects together */
	__le32	max_cqe_log;
	__le32	max_sq_wr_log;
	__le32	max_rq_wr_log;
	__le32	max_ethq_log;
	__le32	max_send_sge;
	__le32	max_recv_sge;
	__le32	max_inline;
	__le32	max_rd_atomic;	/* for each QP, as initiator and as responder */
	__le32	reserved_lkey;	/* key that stands for DMA addresses (QHCA_QP_FLAG_RESERVED_LKEY) */
	__le32	max_msg_size;
	__le32	max_fast_reg_blocks;	/* blocks of a region of type FAST; twice its pieces */
	__le32	max_mw;
	__le32	max_srq;
	__le32	max_srq_wr_log;
	__le32	max_srq_sge;
	__le32	max_cq_count;	/* largest count of MODIFY_CQ */
	__le32	max_cq_period;	/* largest period of MODIFY_CQ, us */
	__le32	max_mcast_grp;	/* multicast groups of UD QPs */
	__le32	max_mcast_qp;	/* QPs in one multicast group */
	__le32	max_tso;	/* largest frame that the device segments, bytes; 0: none */
	__le32	max_xrcd;
	__le32	null_lkey;	/* reads as 0, writes are ignored; any QP, any PD */
	__le32	max_cntset;	/* sets of counters for QPs */
};
QHCA_ASSERT_SIZE(struct qhca_device_attr, 160);

/*
 * Bounds of the limits that a driver shifts or divides by. A driver refuses a device with smaller
 * limits, and uses no more than these bounds if the limits are larger.
 */
#define QHCA_RING_LOG_MIN	6	/* max_cqe_log, max_ethq_log */
#define QHCA_RING_LOG_MAX	24	/* max_*_log */
#define QHCA_TSO_MIN		16384	/* max_tso, if not 0 */
#define QHCA_DM_SIZE_MAX	(1u << 30)	/* QHCA_BAR_DM */

/* Capabilities that not every device of this interface version has. */
#define QHCA_CAP_FAULTS		0x01ull	/* the guest may set fault rules */
#define QHCA_CAP_SHADOW		0x02ull	/* doorbells in memory: CREATE_SHADOW */

struct qhca_port_attr {
	__le32	speed;		/* Mb/s */
	__u8	link_up;
	__u8	rsvd[3];
	__le32	max_mtu;	/* largest Ethernet payload */
	__le32	mtu;
	__le32	bad_pkey_cntr;	/* stops at 0xffff */
	__le32	qkey_viol_cntr;	/* stops at 0xffff */
};
QHCA_ASSERT_SIZE(struct qhca_port_attr, 24);

struct qhca_mcast_list {
	__u8	mac[512][8];	/* bytes 6 and 7 reserved */
};
QHCA_ASSERT_SIZE(struct qhca_mcast_list, 4096);

#define QHCA_RSS_KEY_LEN	40
#define QHCA_RSS_ENTRIES	128

/*
 * struct qhca_rss - how to spread received frames
 * @key: of the Toeplitz hash
 * @queue: index of the receive queue, which exists, by the low bits of the hash
 */
struct qhca_rss {
	__u8	key[QHCA_RSS_KEY_LEN];
	__u8	rsvd[24];
	__u8	queue[QHCA_RSS_ENTRIES];
};
QHCA_ASSERT_SIZE(struct qhca_rss, 192);
QHCA_ASSERT_OFFSET(struct qhca_rss, queue, 64);

/*
 * struct qhca_faults_text - fault rules in the format of Documentation/faults.rst
 * @text: zero-terminated. QUERY_FAULTS: the rules of the guest with their hits, behind a comment
 *        with the error of the last SET_FAULTS
 */
struct qhca_faults_text {
	__u8	text[4096];
};
QHCA_ASSERT_SIZE(struct qhca_faults_text, 4096);

/* struct qhca_srqc - SRQ context in the device. */
struct qhca_srqc {
	__le32	srqn;
	__le32	pdn;
	__le32	uar;
	__le32	pi;		/* free-running producer index */
	__le32	ci;		/* index of the next WQE to read */
	__le32	held;		/* WQEs that QPs have read but not completed */
	__le32	limit;		/* 0: not armed */
	__le32	max_sge;
	__le32	users;		/* QPs that use the SRQ */
	__u8	log_size;
	__u8	log_stride;
	__u8	flags;		/* QHCA_SRQ_RESERVED_LKEY, QHCA_SRQ_DBREC */
	__u8	rsvd;
	__le32	xrcdn;		/* 0: none */
	__le32	cqn;		/* CQ of an XRC SRQ; 0: none */
};
QHCA_ASSERT_SIZE(struct qhca_srqc, 48);

/*
 * Counters: QUERY_COUNTERS returns one __le64 for each. All are monotonic; only a reset of the
 * whole machine clears them.
 */
#define QHCA_COUNTER(id, ...)	QHCA_CNT_##id,
enum qhca_counter {
#include "counters.def"
	QHCA_CNT_MAX
};

#endif /* QHCA_CMD_H */
