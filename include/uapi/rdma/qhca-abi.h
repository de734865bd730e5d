/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB */
/*
 * User ABI of qhca_ib: requests and responses of the verbs that carry driver data. CPU order, as in
 * every RDMA user ABI.
 *
 * How it may grow, without a new QHCA_UVERBS_ABI_VERSION:
 *
 * - A request grows at its end, or in reserved members: in both, 0 requests the old behaviour. A
 *   driver refuses a request with non-zero bytes that it does not know (EOPNOTSUPP), and a request
 *   shorter than the structure of version 1 (EINVAL).
 * - A response grows in the same places; 0 means "not there". A driver fills in as much as the
 *   provider has room for, even if that is nothing, and writes 0 behind what it knows. So a
 *   provider looks only at the response to find out what a driver can do.
 */
#ifndef QHCA_ABI_USER_H
#define QHCA_ABI_USER_H

#include <linux/types.h>
#include <rdma/ib_user_ioctl_cmds.h>

/* Raised only for changes that an older provider or driver cannot work with. */
#define QHCA_UVERBS_ABI_VERSION	1

/*
 * By this number, which libibverbs gets by netlink, it finds the provider without sysfs and
 * whatever the device's name. It is none of enum rdma_driver_id, in which each is assigned.
 */
#define QHCA_RDMA_DRIVER_ID	0x71686361

/* Map the doorbell page by mmap() of the command fd with this offset and length. */
struct qhca_alloc_ucontext_resp {
	__aligned_u64 db_mmap_key;
	__u32 db_page_size;
	__u32 max_send_sge;
	__u32 max_recv_sge;
	__u32 max_inline;
	__u32 null_lkey;	/* key of ibv_alloc_null_mr(); 0: not supported */
	__u32 max_shadow_slots;	/* 0: neither QHCA_METHOD_CREATE_SHADOW nor QHCA_CREATE_CQ_DBREC */
	/* struct qhca_clock_info, for reading only: as the doorbell page. */
	__aligned_u64 clock_mmap_key;
	__u32 clock_page_size;	/* 0: no PTP clock */
	__u32 reserved;
};

/* The values of UVERBS_METHOD_COUNTERS_READ, in this order. */
enum qhca_flow_counter {
	QHCA_FLOW_CNT_PACKETS,
	QHCA_FLOW_CNT_BYTES,
	QHCA_FLOW_CNT_MAX,
};

/*
 * Memory of the process for its doorbells: struct qhca_shadow with @slots, zeroed, at a page
 * boundary. A context can have one.
 */
struct qhca_create_shadow_req {
	__aligned_u64 addr;
	__u32 len;
	__u32 slots;
};

/*
 * The function's PTP clock. CQEs carry device time; the time of the clock in ns is
 *
 *	nsec + ((time - cycles) * mult + frac) / 2^QHCA_CLOCK_SHIFT
 *
 * rounded down, where time - cycles is a signed number of 64 bits and the product has 96. The
 * driver changes the page at any time: seq is odd during the change, and another number afterwards.
 */
struct qhca_clock_info {
	__u32 seq;
	__u32 mult;
	__aligned_u64 cycles;
	__aligned_u64 nsec;
	__aligned_u64 frac;
};

#define QHCA_CLOCK_SHIFT	31

enum qhca_methods_device {
	QHCA_METHOD_CREATE_SHADOW = 1U << UVERBS_ID_NS_SHIFT,
};

enum qhca_attrs_create_shadow {
	QHCA_ATTR_CREATE_SHADOW_REQ = 1U << UVERBS_ID_NS_SHIFT,
};

/*
 * Extended query_device. The driver reads the two clocks one right after the other; CQEs carry
 * device time.
 */
struct qhca_query_device_ex_resp {
	__aligned_u64 clock_ns;		/* device time */
	__aligned_u64 real_ns;		/* since the epoch */
	__u32 max_rate_limit;		/* of a QP, kbit/s; 0: QPs have no rate limit */
	__u32 rate_limit_qpts;		/* the types that have one, 1 << enum ib_qp_type */
};

struct qhca_alloc_pd_resp {
	__u32 pdn;
	__u32 reserved;
};

/*
 * Responses for another process that imports the command fd; they have the same layout as struct
 * qhca_alloc_ucontext_resp and struct qhca_alloc_pd_resp.
 */
enum qhca_attrs_query_context {
	QHCA_ATTR_QUERY_CONTEXT_RESP = 1U << UVERBS_ID_NS_SHIFT,
};

enum qhca_methods_pd {
	QHCA_METHOD_PD_QUERY = 1U << UVERBS_ID_NS_SHIFT,
};

enum qhca_attrs_pd_query {
	QHCA_ATTR_PD_QUERY_HANDLE = 1U << UVERBS_ID_NS_SHIFT,
	QHCA_ATTR_PD_QUERY_RESP,
};

/* Map device memory by mmap() of the command fd with this offset and length. */
struct qhca_alloc_dm_resp {
	__aligned_u64 mmap_key;
	__aligned_u64 mmap_len;
};

enum qhca_attrs_alloc_dm {
	QHCA_ATTR_ALLOC_DM_RESP = 1U << UVERBS_ID_NS_SHIFT,
};

/* Response for another process that imports the device memory. */
struct qhca_query_dm_resp {
	struct qhca_alloc_dm_resp alloc;
	__aligned_u64 length;
};

enum qhca_methods_dm {
	QHCA_METHOD_DM_QUERY = 1U << UVERBS_ID_NS_SHIFT,
};

enum qhca_attrs_dm_query {
	QHCA_ATTR_DM_QUERY_HANDLE = 1U << UVERBS_ID_NS_SHIFT,
	QHCA_ATTR_DM_QUERY_RESP,
};

/* Ring of 2^n struct qhca_cqe, then one struct qhca_cq_dbrec. */
struct qhca_create_cq_req {
	__aligned_u64 buf_addr;
	__u32 buf_len;
	__u32 log_size;
	/* Version 1 ended here. */
	__u32 flags;
	__u32 reserved;
};

#define QHCA_CREATE_CQ_DBREC	0x01	/* arms are in the doorbell record */

struct qhca_create_cq_resp {
	__u32 cqn;
	__u32 reserved;
};

/* Arms in the doorbell record have been copied to the new one. */
struct qhca_resize_cq_req {
	__aligned_u64 buf_addr;
	__u32 buf_len;
	__u32 log_size;
};

/* Ring of 2^log_size receive WQEs of 2^log_stride bytes, then one struct qhca_rq_dbrec. */
struct qhca_create_srq_req {
	__aligned_u64 buf_addr;
	__u32 buf_len;
	__u8 log_size;
	__u8 log_stride;
	__u8 reserved[2];
};

struct qhca_create_srq_resp {
	__u32 srqn;
	__u32 reserved;
};

/* With IB_SRQ_MAX_WR: the new ring, with WQEs of the same stride, and its doorbell record. */
struct qhca_modify_srq_req {
	__aligned_u64 buf_addr;
	__u32 buf_len;
	__u32 log_size;
};

/* Rings as of CQs and SRQs, sq without a doorbell record. Length 0: the QP has no such queue. */
struct qhca_create_qp_req {
	__aligned_u64 sq_addr;
	__aligned_u64 rq_addr;
	__u32 sq_len;
	__u32 rq_len;
	__u8 sq_log_size;
	__u8 sq_log_stride;
	__u8 rq_log_size;
	__u8 rq_log_stride;
	__u8 reserved[4];
	/* Version 1 ended here. With a table of WQs, and then nothing of the above: */
	__u32 rx_hash_types;	/* QHCA_RSS_* */
	__u8 rx_hash_key[40];	/* of the Toeplitz hash */
	__u8 reserved2[4];
};

struct qhca_create_qp_resp {
	__u32 qpn;
	__u32 reserved;
};

/* Ring as of an SRQ. */
struct qhca_create_wq_req {
	__aligned_u64 buf_addr;
	__u32 buf_len;
	__u8 log_size;
	__u8 log_stride;
	__u8 reserved[2];
};

struct qhca_create_wq_resp {
	__u32 wqn;
	__u32 reserved;
};

/* Route to the destination that the kernel has found. */
struct qhca_create_ah_resp {
	__u8 dmac[6];
	__u8 hop_limit;
	__u8 reserved;
};

#endif /* QHCA_ABI_USER_H */
