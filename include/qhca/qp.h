/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* qhca device interface: queue pairs: mailboxes of their commands. */
#ifndef QHCA_QP_H
#define QHCA_QP_H

#include "base.h"
#include "queues.h"

enum qhca_qp_type {
	QHCA_QPT_GSI = 1,	/* QPN 1; same numbers as enum ib_qp_type */
	QHCA_QPT_RC = 2,
	QHCA_QPT_UC = 3,
	QHCA_QPT_UD = 4,
	QHCA_QPT_RAW = 8,	/* Ethernet frames */
	QHCA_QPT_XRC_INI = 9,	/* sends only */
	QHCA_QPT_XRC_TGT = 10,	/* receives only, from the SRQs of its XRC domain */
};

/* Sets of QP types, for the opcodes of send WQEs. */
#define QHCA_TYPES_RC		(1u << QHCA_QPT_RC)
#define QHCA_TYPES_RC_UC	(QHCA_TYPES_RC | 1u << QHCA_QPT_UC)
#define QHCA_TYPES_RELIABLE	(QHCA_TYPES_RC | 1u << QHCA_QPT_XRC_INI)
#define QHCA_TYPES_CONNECTED	(QHCA_TYPES_RELIABLE | 1u << QHCA_QPT_UC)
#define QHCA_TYPES_NOT_GSI	(QHCA_TYPES_CONNECTED | 1u << QHCA_QPT_UD)
#define QHCA_TYPES_ANY		(QHCA_TYPES_NOT_GSI | 1u << QHCA_QPT_GSI | 1u << QHCA_QPT_RAW)

#define QHCA_QPN_GSI		1
#define QHCA_QPN_MCAST		QHCA_OBJ_MASK	/* destination QPN of multicast packets */

/* Same numbers as enum ib_qp_state. */
enum qhca_qp_state {
	QHCA_QPS_RESET = 0,
	QHCA_QPS_INIT = 1,
	QHCA_QPS_RTR = 2,
	QHCA_QPS_RTS = 3,
	QHCA_QPS_SQD = 4,
	QHCA_QPS_SQE = 5,
	QHCA_QPS_ERR = 6,
};

struct qhca_create_qp {
	struct qhca_buf sq;	/* ring of send WQEs */
	struct qhca_buf rq;	/* ring of receive WQEs */
	__le32	pdn;
	__le32	uar;
	__le32	send_cqn;
	__le32	recv_cqn;
	__u8	type;		/* enum qhca_qp_type */
	__u8	flags;		/* QHCA_QP_FLAG_* */
	__u8	sq_log_size;	/* log2 of the WQEs; without this queue num_blocks is 0 */
	__u8	sq_log_stride;
	__u8	rq_log_size;
	__u8	rq_log_stride;
	__u8	rsvd0[2];
	__le32	max_send_sge;
	__le32	max_recv_sge;
	__le32	max_inline;
	__le32	srqn;		/* the QP receives from this SRQ and has no rq; 0: none */
	__le32	xrcdn;		/* XRC_TGT: its XRC domain; others: 0 */
	__le32	rsvd1;
};
QHCA_ASSERT_SIZE(struct qhca_create_qp, 80);

#define QHCA_QP_FLAG_SIGNAL_ALL		0x01	/* sq_sig_all */
#define QHCA_QP_FLAG_RESERVED_LKEY	0x02	/* WQEs may use reserved_lkey */
#define QHCA_QP_FLAG_RQ_DBREC		0x04	/* struct qhca_rq_dbrec behind the ring of rq */
#define QHCA_QP_FLAG_NO_OWN_MCAST	0x08	/* UD: no copy of what the QP sends to its groups */
#define QHCA_QP_FLAG_MASK		0x0f

/* attr_mask of MODIFY_QP: same bits as enum ib_qp_attr_mask. */
#define QHCA_QP_STATE			0x00000001
#define QHCA_QP_CUR_STATE		0x00000002
#define QHCA_QP_EN_SQD_ASYNC_NOTIFY	0x00000004
#define QHCA_QP_ACCESS_FLAGS		0x00000008
#define QHCA_QP_PKEY_INDEX		0x00000010
#define QHCA_QP_PORT			0x00000020
#define QHCA_QP_QKEY			0x00000040
#define QHCA_QP_AV			0x00000080
#define QHCA_QP_PATH_MTU		0x00000100
#define QHCA_QP_TIMEOUT			0x00000200
#define QHCA_QP_RETRY_CNT		0x00000400
#define QHCA_QP_RNR_RETRY		0x00000800
#define QHCA_QP_RQ_PSN			0x00001000
#define QHCA_QP_MAX_QP_RD_ATOMIC	0x00002000
#define QHCA_QP_MIN_RNR_TIMER		0x00008000
#define QHCA_QP_SQ_PSN			0x00010000
#define QHCA_QP_MAX_DEST_RD_ATOMIC	0x00020000
#define QHCA_QP_DEST_QPN		0x00100000
#define QHCA_QP_RATE_LIMIT		0x02000000

/* struct qhca_qp_attr - attributes of a QP, with the values of struct ib_qp_attr. */
struct qhca_qp_attr {
	struct qhca_av av;
	__le32	qkey;
	__le32	rq_psn;
	__le32	sq_psn;
	__le32	dest_qpn;
	__le16	access;		/* QHCA_ACCESS_REMOTE_* */
	__le16	pkey_index;
	__u8	state;		/* enum qhca_qp_state */
	__u8	cur_state;
	__u8	path_mtu;	/* 1 to 5: 256 to 4096 bytes */
	__u8	max_rd_atomic;
	__u8	max_dest_rd_atomic;
	__u8	min_rnr_timer;
	__u8	timeout;
	__u8	retry_cnt;
	__u8	rnr_retry;
	__u8	en_sqd_async_notify;
	__u8	port;
	__u8	rsvd[5];
	__le32	rate_limit;	/* kbit/s; 0: none */
};
QHCA_ASSERT_SIZE(struct qhca_qp_attr, 80);
QHCA_ASSERT_OFFSET(struct qhca_qp_attr, state, 60);

/* struct qhca_qpc - QP context: attributes and progress. */
struct qhca_qpc {
	struct qhca_qp_attr attr;
	__le32	qpn;
	__le32	pdn;
	__le32	uar;
	__le32	send_cqn;
	__le32	recv_cqn;
	__le32	sq_pi;		/* producer index of the send queue */
	__le32	sq_next;	/* index of the next send WQE to start */
	__le32	sq_ci;		/* index of the oldest send WQE not complete */
	__le32	rq_pi;
	__le32	rq_ci;
	__le32	next_psn;	/* PSN of the next new request packet */
	__le32	una_psn;	/* PSN of the oldest request packet not acknowledged */
	__le32	epsn;		/* PSN that the responder expects next */
	__le32	msn;
	__u8	type;
	__u8	flags;
	__u8	sq_draining;	/* 1: in SQD, still draining */
	__u8	retries_left;
	__u8	rnr_retries_left;
	__u8	rsvd[3];
	__le32	srqn;		/* 0: none; XRC_TGT: SRQ of the latest request */
	__le32	xrcdn;		/* 0: none */
};
QHCA_ASSERT_SIZE(struct qhca_qpc, 152);
QHCA_ASSERT_OFFSET(struct qhca_qpc, type, 136);

/* The part of a QP that waits for a page. */
enum qhca_page_fault_kind {
	QHCA_PAGE_SEND = 0,	/* the send queue: data to send, or room for a response */
	QHCA_PAGE_REQUEST = 1,	/* a request of the peer, which was dropped */
	QHCA_PAGE_RESPONSE = 2,	/* the response to an RDMA READ of the peer */
	QHCA_PAGE_KINDS
};

/* struct qhca_page_fault - the last page fault of a kind */
struct qhca_page_fault {
	__le64	first;		/* pages that are needed, or will be soon: the first is absent */
	__le64	num;
	__le32	key;		/* of the region */
	__le32	sn;		/* number of the fault, for RESUME_QP */
	__u8	open;		/* 1: RESUME_QP has not answered it */
	__u8	write;		/* 1: it is to be written */
	__u8	rsvd[6];
};
QHCA_ASSERT_SIZE(struct qhca_page_fault, 32);

struct qhca_page_faults {	/* mailbox of QHCA_CMD_QUERY_PAGE_FAULTS */
	struct qhca_page_fault fault[QHCA_PAGE_KINDS];
};
QHCA_ASSERT_SIZE(struct qhca_page_faults, 96);

/*
 * Answer a page fault: the QP tries again, or, with @deny, fails as if the key did not allow the
 * access. Status STATE: another fault has taken its place, or it has been answered.
 */
struct qhca_cmd_resume_qp {	/* QHCA_CMD_RESUME_QP */
	__le32	qpn;
	__le32	sn;
	__u8	kind;		/* enum qhca_page_fault_kind */
	__u8	deny;
	__u8	rsvd[2];
};
QHCA_ASSERT_SIZE(struct qhca_cmd_resume_qp, 12);

#endif /* QHCA_QP_H */
