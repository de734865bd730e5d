/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * qhca_ib.ko: verbs of the qhca HCA. One file per verbs object; all files reach the device only
 * through <net/qhca/core.h>.
 */
#ifndef QHCA_IB_H
#define QHCA_IB_H

#include <linux/kfifo.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <net/qhca/core.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_counter.h>
#include <rdma/qhca-abi.h>
#include <rdma/uverbs_ioctl.h>

#include "counters.h"
#include "wq.h"

#define QHCA_IB_PORT		1
/* Per user context: address handles use no resource of the device, only kernel memory. */
#define QHCA_IB_MAX_AH		65536
/* An address vector has 8 bits for the GID index. */
#define QHCA_IB_MAX_GID		256
/* Block sizes that struct qhca_buf can describe. */
#define QHCA_IB_PAGE_SIZES	GENMASK_ULL(QHCA_BLOCK_SHIFT_MAX, QHCA_BLOCK_SHIFT_MIN)

/**
 * struct qhca_ib_dev - one HCA
 * @ibdev: the verbs device
 * @core: the PCI function
 * @limits: what the device offers
 * @ndev: its Ethernet port
 * @max_mtu: largest path MTU, an enum ib_mtu
 * @wq: ordered, so that events of a QP stay in order
 * @odp_wq: begins with page faults, and ends with empty memory; waits for no memory
 * @pager: provides pages of regions of kernel consumers; NULL until there is one
 * @qps: QPN to QP, for events; its lock is taken in hard IRQ
 * @srqs: SRQN to SRQ, for events; its lock is taken in hard IRQ
 * @rwqs: receive work queues that have been started, by the number of their QPs
 * @odps: regions with on-demand paging, by the number in their key
 * @targets: QPN to kernel QP of type XRC_TGT, for pollers of an SRQ's CQ
 * @events_nb: receives asynchronous events
 * @netdev_nb: receives changes of @ndev
 * @port_work: dispatches changes of port and device; not in @wq, because it waits for work of the
 *             core, and memory reclaim may wait for @wq
 * @gid_work: tells the device new MAC addresses; not in @wq either, because it waits for the lock
 *             under which GIDs are added
 * @flush_work: wakes kernel consumers once the device is dead and quiet
 * @announce: port and device events may be dispatched
 * @leaving: the device is about to be removed, and calls should not wait for memory any more
 * @port_active: the state that the last port event reported
 * @port_speed: the speed of the interface that consumers know, Mb/s; 0: none yet
 * @fatal_told: DEVICE_FATAL has been dispatched
 * @gid_lock: keeps SET_GID commands in order
 * @gid_valid: GIDs that the device has
 * @cqs_lock: protects @kernel_cqs
 * @kernel_cqs: list of struct qhca_ib_cq of kernel consumers
 * @num_flows: flow rules of QPs
 * @num_cqs: CQs of verbs, which leave some to the network device
 * @dm_lock: protects @dm_used
 * @dm_used: pages of device memory in use
 * @dm_va: mapping of all device memory
 * @has_p2pdma: other devices can get at device memory
 * @errs: counts failures of each verb
 */
struct qhca_ib_dev {
	struct ib_device ibdev;
	struct qhca_dev *core;
	const struct qhca_limits *limits;
	struct net_device *ndev;
	enum ib_mtu max_mtu;

	struct workqueue_struct *wq;
	struct workqueue_struct *odp_wq;
	struct qhca_ib_pager *pager;
	struct xarray qps;
	struct xarray srqs;
	struct xarray rwqs;
	struct xarray odps;
	struct xarray targets;
	struct notifier_block events_nb;
	struct notifier_block netdev_nb;
	struct work_struct port_work;
	struct work_struct gid_work;
	struct work_struct flush_work;
	bool announce;
	bool leaving;
	bool port_active;
	u32 port_speed;
	bool fatal_told;

	struct mutex gid_lock;	/* SET_GID */
	DECLARE_BITMAP(gid_valid, QHCA_IB_MAX_GID);

	spinlock_t cqs_lock;	/* @kernel_cqs */
	struct list_head kernel_cqs;

	atomic_t num_flows;
	atomic_t num_cqs;

	struct mutex dm_lock;	/* @dm_used */
	unsigned long *dm_used;
	void __iomem *dm_va;
	bool has_p2pdma;

	atomic64_t errs[QHCA_IB_NUM_ERRS];
};

/**
 * struct qhca_ib_ucontext - user context
 * @ibucontext: the verbs object
 * @db: mapping of its doorbell page, which the entry frees
 * @clock: mapping of the page of the PTP clock, or NULL
 * @uar: number of the doorbell page
 * @has_shadow: @shadow is in use, or will be
 * @shadow: memory for its doorbells
 * @num_ah: its address handles
 * @pager: provides pages of its regions with on-demand paging; NULL until there is one
 */
struct qhca_ib_ucontext {
	struct ib_ucontext ibucontext;
	struct qhca_ib_mmap_entry *db;
	struct qhca_ib_mmap_entry *clock;
	u32 uar;
	atomic_t has_shadow;
	struct qhca_ib_qmem shadow;
	atomic_t num_ah;
	struct qhca_ib_pager *pager;
};

/**
 * struct qhca_ib_pd - protection domain
 * @ibpd: the verbs object
 * @pdn: its number
 * @mw_made: memory windows ever allocated in it, counted before the command
 * @mw_gone: memory windows freed since, counted after the command
 *
 * While a window exists, it can keep a region from being destroyed.
 */
struct qhca_ib_pd {
	struct ib_pd ibpd;
	u32 pdn;
	atomic_t mw_made;
	atomic_t mw_gone;
};

/**
 * struct qhca_ib_xrcd - XRC domain
 * @ibxrcd: the verbs object
 * @xrcdn: its number
 * @kernel: it belongs to a kernel consumer
 */
struct qhca_ib_xrcd {
	struct ib_xrcd ibxrcd;
	u32 xrcdn;
	bool kernel;
};

/* The driver's part of a set of counters; the core allocates it. */
struct qhca_ib_counter {
	struct rdma_counter counter;
};

/**
 * struct qhca_ib_ah - address handle
 * @ibah: the verbs object
 * @ctx: user context that it counts against, or NULL for a kernel consumer
 * @av: the address vector
 */
struct qhca_ib_ah {
	struct ib_ah ibah;
	struct qhca_ib_ucontext *ctx;
	struct qhca_av av;
};

/**
 * struct qhca_ib_qp - queue pair
 * @ibqp: the verbs object
 * @mutex: serialises MODIFY_QP, ATTACH_MCAST and DETACH_MCAST
 * @state: last known state; the device may have moved the QP to SQE or ERR since
 * @qpn: QPN, used in doorbells and CQEs
 * @spread: number of its spread, if it has a table of WQs and nothing else of the below; else 0
 * @sig_all: every send WQE gives a CQE
 * @no_own_mcast: it gets no copy of what it sends to its multicast groups
 * @max_inline: largest inline data, as given at creation
 * @access: qp_access_flags as set, including those that the device does not know
 * @xrcd: XRC domain of a QP of type XRC_TGT, NULL for all others
 * @joined: multicast groups it is attached to; the core does not destroy it before it has left all
 * @shares: charge for these groups, or for the spread
 * @dying: a destroy is under way; the device may already have given its number to another QP
 * @sq: send queue
 * @rq: receive queue
 * @last_wqe: LAST_WQE_REACHED was reported since RESET; under the lock of struct qhca_ib_dev.qps
 * @events: enum qhca_event of events not yet delivered
 * @event_work: delivers @events
 * @faults: its page faults, or NULL
 */
struct qhca_ib_qp {
	struct ib_qp ibqp;
	struct mutex mutex;	/* MODIFY_QP and multicast groups */
	enum ib_qp_state state;
	u32 qpn;
	u32 spread;
	bool sig_all;
	bool no_own_mcast;
	u32 max_inline;
	int access;
	struct qhca_ib_xrcd *xrcd;
	struct list_head joined;
	struct qhca_ib_charge shares;
	bool dying;
	struct qhca_ib_wq sq;
	struct qhca_ib_wq rq;

	bool last_wqe;		/* under the lock of struct qhca_ib_dev.qps */
	DECLARE_KFIFO(events, u8, 16);
	struct work_struct event_work;
	struct qhca_ib_faults *faults;
};

static inline struct qhca_ib_dev *to_qdev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct qhca_ib_dev, ibdev);
}

static inline struct qhca_ib_ucontext *to_qctx(struct ib_ucontext *ibctx)
{
	return container_of(ibctx, struct qhca_ib_ucontext, ibucontext);
}

static inline struct qhca_ib_pd *to_qpd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct qhca_ib_pd, ibpd);
}

static inline struct qhca_ib_xrcd *to_qxrcd(struct ib_xrcd *ibxrcd)
{
	return container_of(ibxrcd, struct qhca_ib_xrcd, ibxrcd);
}

static inline struct qhca_ib_ah *to_qah(struct ib_ah *ibah)
{
	return container_of(ibah, struct qhca_ib_ah, ibah);
}

static inline struct qhca_ib_qp *to_qqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct qhca_ib_qp, ibqp);
}

/* Log why a request is refused, if dynamic debug is on for this module. Evaluates to @err. */
#define qhca_ib_refuse(dev, err, fmt, ...)				\
	({								\
		ibdev_dbg(&(dev)->ibdev, fmt "\n", ##__VA_ARGS__);	\
		(err);							\
	})

static inline bool qhca_ib_has(const struct qhca_ib_dev *dev, u64 cap)
{
	return dev->limits->caps & cap;
}

/* Pages of an MR for fast registration. Pieces of any size take two words of the device each. */
static inline u32 qhca_ib_max_fast_reg(const struct qhca_ib_dev *dev)
{
	return dev->limits->max_fast_reg_blocks / 2;
}

static inline int qhca_ib_gid_len(const struct qhca_ib_dev *dev)
{
	return min_t(u32, dev->limits->max_gid, QHCA_IB_MAX_GID);
}

/* QPs of type XRC_TGT are shared between processes: the core gives them no user object. */
static inline bool qhca_ib_is_kernel_qp(const struct qhca_ib_qp *qp)
{
	return qp->xrcd ? qp->xrcd->kernel : !qp->ibqp.uobject;
}

/* Bytes of a receive WQE, for receive queues and SRQs. */
static inline u32 qhca_ib_rq_stride(u32 max_sge)
{
	return max_t(u32, QHCA_RQ_STRIDE_MIN,
		     roundup_pow_of_two(sizeof(struct qhca_rq_wqe) +
					max_sge * sizeof(struct qhca_sge)));
}

/* Bytes of a receive ring and its doorbell record. */
static inline size_t qhca_ib_rq_bytes(u32 size, u8 log_stride)
{
	return ((size_t)size << log_stride) + sizeof(struct qhca_rq_dbrec);
}

/*
 * Tell the device about the WQEs up to @pi of a ring of @size WQEs. Returns true if the caller has
 * to ring the doorbell too. The caller serialises posting.
 */
static inline bool qhca_ib_rq_posted(const struct qhca_ib_qmem *mem, u32 size, u8 log_stride,
				     u32 pi)
{
	struct qhca_rq_dbrec *dbrec = mem->ring.va + ((size_t)size << log_stride);

	dma_wmb();	/* write the WQEs before their index */
	WRITE_ONCE(dbrec->pi, cpu_to_le32(pi));
	mb();		/* write pi before reading ring; the device does the reverse */
	return READ_ONCE(dbrec->ring);
}

struct qhca_ib_srq;

/* cmd.c */
int qhca_ib_query(struct qhca_ib_dev *dev, enum qhca_cmd_opcode opcode, u32 obj, void *out,
		  size_t len);
int qhca_ib_dereg(struct qhca_ib_dev *dev, u32 key, struct qhca_ib_pd *pd);

/* charge.c */
int qhca_ib_charge(struct qhca_ib_dev *dev, struct qhca_ib_charge *charge, u64 used, u64 all);
int qhca_ib_charge_odp(struct qhca_ib_dev *dev, struct qhca_ib_charge *charge, u64 pages);
void qhca_ib_uncharge(struct qhca_ib_dev *dev, struct qhca_ib_charge *charge, u64 used, u64 all);
void qhca_ib_uncharge_all(struct qhca_ib_dev *dev, struct qhca_ib_charge *charge);

/* qmem.c */
int qhca_ib_pinned_table(struct qhca_ib_dev *dev, struct qhca_ib_pinned *mem, unsigned long pgsz,
			 struct qhca_table *table);
void qhca_ib_pinned_put(struct qhca_ib_dev *dev, struct qhca_ib_pinned *mem);
int qhca_ib_qmem_get_user(struct qhca_ib_dev *dev, struct qhca_ib_qmem *mem, u64 addr, u32 len,
			  u64 min_len);
int qhca_ib_refuse_attrs(struct qhca_ib_dev *dev, const struct uverbs_attr_bundle *attrs,
			 const u16 *ids, unsigned int num);
int qhca_ib_qmem_get_kernel(struct qhca_ib_dev *dev, struct qhca_ib_qmem *mem, size_t len);
void qhca_ib_qmem_free_table(struct qhca_ib_qmem *mem);
void qhca_ib_qmem_put(struct qhca_ib_dev *dev, struct qhca_ib_qmem *mem);
int qhca_ib_wq_get_user(struct qhca_ib_dev *dev, struct qhca_ib_wq *wq, u32 max_wr, u32 stride,
			u32 max_stride, size_t tail, const struct qhca_ib_user_wq *user);
int qhca_ib_wq_get_kernel(struct qhca_ib_dev *dev, struct qhca_ib_wq *wq, u32 max_wr, u32 stride,
			  size_t tail);
void qhca_ib_wq_put(struct qhca_ib_dev *dev, struct qhca_ib_wq *wq);

/* events.c */
int qhca_ib_events_init(struct qhca_ib_dev *dev);
void qhca_ib_events_cleanup(struct qhca_ib_dev *dev);
int qhca_ib_announce(struct qhca_ib_dev *dev);
void qhca_ib_silence(struct qhca_ib_dev *dev);
void qhca_ib_report_port_event(struct ib_device *ibdev, struct net_device *ndev,
			       unsigned long event);

/* qp_events.c */
void qhca_ib_qp_event_work(struct work_struct *work);
void qhca_ib_qp_event(struct qhca_ib_dev *dev, u8 type, u32 qpn);
void qhca_ib_flush_last_wqe(struct qhca_ib_dev *dev);

/* device.c */
int qhca_ib_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			 struct ib_udata *udata);
int qhca_ib_modify_device(struct ib_device *ibdev, int mask, struct ib_device_modify *modify);
void qhca_ib_get_dev_fw_str(struct ib_device *ibdev, char *str);

/* port.c */
int qhca_ib_port_init(struct qhca_ib_dev *dev);
bool qhca_ib_port_is_active(struct qhca_ib_dev *dev);
int qhca_ib_active_mtu(const struct qhca_ib_dev *dev);
int qhca_ib_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr);
int qhca_ib_query_port_speed(struct ib_device *ibdev, u32 port, u64 *speed);
int qhca_ib_get_port_immutable(struct ib_device *ibdev, u32 port,
			       struct ib_port_immutable *immutable);
enum rdma_link_layer qhca_ib_get_link_layer(struct ib_device *ibdev, u32 port);
int qhca_ib_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey);
int qhca_ib_add_gid(const struct ib_gid_attr *attr, void **context);
int qhca_ib_del_gid(const struct ib_gid_attr *attr, void **context);
void qhca_ib_gid_work(struct work_struct *work);

/* mad.c */
int qhca_ib_process_mad(struct ib_device *ibdev, int flags, u32 port, const struct ib_wc *in_wc,
			const struct ib_grh *in_grh, const struct ib_mad *in, struct ib_mad *out,
			size_t *out_size, u16 *out_pkey_index);

/* restrack.c */
int qhca_ib_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr);
int qhca_ib_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq);
int qhca_ib_fill_res_cq_entry_raw(struct sk_buff *msg, struct ib_cq *ibcq);
int qhca_ib_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp);
int qhca_ib_fill_res_qp_entry_raw(struct sk_buff *msg, struct ib_qp *ibqp);
int qhca_ib_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq);
int qhca_ib_fill_res_srq_entry_raw(struct sk_buff *msg, struct ib_srq *ibsrq);

/* ucontext.c */
extern const struct uapi_definition qhca_ib_ucontext_defs[];
int qhca_ib_alloc_ucontext(struct ib_ucontext *ibctx, struct ib_udata *udata);
void qhca_ib_dealloc_ucontext(struct ib_ucontext *ibctx);
int qhca_ib_query_ucontext(struct ib_ucontext *ibctx, struct uverbs_attr_bundle *attrs);
void qhca_ib_disassociate_ucontext(struct ib_ucontext *ibctx);
u32 qhca_ib_udata_uar(struct ib_udata *udata);

/* pd.c */
extern const struct uapi_definition qhca_ib_pd_defs[];
int qhca_ib_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int qhca_ib_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

/* xrc.c */
int qhca_ib_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);
int qhca_ib_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);

/* ah.c */
void qhca_ib_av_from_attr(struct qhca_av *av, const struct rdma_ah_attr *attr, u32 pdn);
void qhca_ib_av_to_attr(struct qhca_ib_dev *dev, struct rdma_ah_attr *attr,
			const struct qhca_av *av);
int qhca_ib_check_ah_attr(struct qhca_ib_dev *dev, const struct rdma_ah_attr *attr);
int qhca_ib_check_gid_user(struct qhca_ib_dev *dev, const struct rdma_ah_attr *attr,
			   struct ib_udata *udata);
int qhca_ib_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *attr, struct ib_udata *udata);
int qhca_ib_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int qhca_ib_destroy_ah(struct ib_ah *ibah, u32 flags);

/* mcast.c */
int qhca_ib_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int qhca_ib_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);

/* qp.c */
int qhca_ib_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr,
		      struct ib_udata *udata);
int qhca_ib_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
void qhca_ib_qp_clean(struct qhca_ib_qp *qp);

/* modify.c */
int qhca_ib_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		      struct ib_udata *udata);
int qhca_ib_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		     struct ib_qp_init_attr *init_attr);

/* post.c */
int qhca_ib_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad_wr);
int qhca_ib_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr);

#include "cq.h"
#include "mmap.h"
#include "mr.h"
#include "rwq.h"
#include "srq.h"

#endif /* QHCA_IB_H */
