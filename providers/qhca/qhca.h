/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef QHCA_H
#define QHCA_H

#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ccan/array_size.h>
#include <ccan/list.h>

#include <infiniband/driver.h>
#include <util/udma_barrier.h>
#include <util/util.h>

#include <qhca/queues.h>
#include <qhca/regs.h>

#include "compat.h"

/*
 * A spinlock that is not taken if the user promised that there is only one thread.
 * pthread_spin_lock(), which other providers use, cannot be inlined: with it posting a
 * send WR takes 3 % more instructions, posting a receive WR 8 % and polling an empty CQ
 * 9 % (providers/bench).
 *
 * Under such a lock, only verbs that create or replace an object may enter the kernel.
 */
struct qhca_lock {
	atomic_bool taken;
	bool skip;
};

struct qhca_pd;

/* Use of memory: resource_type for the allocator of a parent domain. */
enum qhca_mem_type {
	QHCA_MEM_CQ = 1,
	QHCA_MEM_SQ = 2,
	QHCA_MEM_RQ = 3,
	QHCA_MEM_SRQ = 4,
	QHCA_MEM_SHADOW = 5,
};

/* Memory shared with the device: whole pages, not inherited by fork(). */
struct qhca_mem {
	void *addr;
	size_t len;
	enum qhca_mem_type type;
	struct qhca_pd *pd;	/* its allocator provided it; or NULL */
};

/* Doorbells in memory: three pages. */
#define QHCA_CTX_SLOTS	1408

struct qhca_clock_info;

struct qhca_context {
	struct verbs_context ibv_ctx;
	void *db;		/* doorbell page */
	size_t db_size;
	const struct qhca_clock_info *clock;	/* page of the PTP clock, or NULL */
	size_t clock_size;
	struct qhca_mem shadow_mem;	/* struct qhca_shadow, or empty */
	pthread_mutex_t slots_lock;	/* slots */
	uint64_t slots[QHCA_CTX_SLOTS / 64];	/* bits of those in use */
	bool single_threaded;
	uint32_t send_ops;	/* mask of enum ibv_wr_opcode that the device offers */
	uint32_t ece;		/* QHCA_ECE_* that it offers */
	uint32_t max_cqe;
	uint32_t max_qp_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline;
	uint32_t null_lkey;
	uint32_t max_srq_wr;
	uint32_t max_srq_sge;
	uint64_t wc_flags;	/* flags that extended CQs may request */
	pthread_mutex_t null_mrs_lock;
	struct list_head null_mrs;	/* struct qhca_null_mr */
};

/*
 * Options of enhanced connection establishment. The connection managers of both ends exchange them,
 * so they never change: requests that RC QPs of the device execute.
 */
enum qhca_ece {
	QHCA_ECE_FLUSH = 1 << 0,
	QHCA_ECE_ATOMIC_WRITE = 1 << 1,
};

struct qhca_td {
	struct ibv_td ibv_td;
	atomic_uint refs;	/* parent domains that use it */
};

/*
 * A protection domain, or a parent domain around one; either may be imported. After its
 * unimport it stays until the last object made from it has been destroyed.
 */
struct qhca_pd {
	struct ibv_pd ibv_pd;
	uint32_t pdn;
	atomic_uint refs;	/* 1 for its owner, 1 for every object made from it */
	struct qhca_pd *inner;	/* the PD inside a parent domain, else NULL */
	struct qhca_td *td;
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size,
		       size_t alignment, uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr,
		     uint64_t resource_type);
	void *pd_context;
};

/* An address handle: the address vector that is copied into each WQE. */
struct qhca_ah {
	struct ibv_ah ibv_ah;
	struct qhca_av av;
};

/* A work queue. The poster writes pi; the thread that polls the CQ writes ci. */
struct qhca_wq {
	struct qhca_lock lock;
	struct qhca_mem mem;
	uint32_t size;		/* number of WQEs, a power of two; 0: no such queue */
	uint32_t stride_shift;
	uint32_t max_sge;
	uint32_t max_inline;
	uint32_t pi;
	_Atomic(uint32_t) ci;
};

/* Entry in a CQ's table of QPs or XRC SRQs. */
struct qhca_link {
	struct qhca_link *next;
	uint32_t number;
	void *owner;
};

/* In an SRQ wq.ci is the number of completed WRs, in whatever order they complete. */
struct qhca_srq {
	struct verbs_srq vsrq;
	void *db;
	uint32_t srqn;
	struct qhca_wq wq;
	struct qhca_link link;	/* entry of an XRC SRQ in the table of its CQ */
	atomic_uint users;	/* QPs whose CQEs have not been removed yet */
};

struct qhca_send_op;

/* Where a queue rings in memory; shadow NULL: it rings in BAR 2. */
struct qhca_slot {
	struct qhca_shadow *shadow;
	uint32_t index;
};

struct qhca_qp {
	struct verbs_qp vqp;
	void *db;
	struct qhca_slot sq_slot;
	uint32_t qpn;
	uint32_t send_ops;	/* mask of enum ibv_wr_opcode allowed on this QP */
	uint32_t ece;		/* QHCA_ECE_* of this device or, when it is known, of both ends */
	struct qhca_wq sq;
	struct qhca_wq rq;
	struct qhca_srq *srq;	/* used instead of rq, or NULL */
	struct qhca_link send_link;
	struct qhca_link recv_link;
	/* For ibv_wr_*(), from wr_start() to wr_complete(), under the lock of sq: */
	uint32_t wr_first;	/* pi at wr_start() */
	int wr_err;		/* first error */
	struct qhca_sq_wqe *wr_wqe;	/* WQE being built, NULL after an error */
	const struct qhca_send_op *wr_op;
};

/*
 * Table of QPs or XRC SRQs that complete on a CQ, by number. Accessed only under the
 * lock of the CQ, so that no poller can reach an entry that has been removed.
 */
struct qhca_map {
	struct qhca_link **bucket;
	uint32_t num_buckets;	/* a power of two */
	uint32_t count;
	struct qhca_link *last;	/* result of the last lookup */
};

struct qhca_cq {
	struct verbs_cq vcq;
	struct qhca_lock lock;
	struct qhca_mem mem;
	struct qhca_pd *pd;	/* parent domain, or NULL */
	struct qhca_cqe *ring;
	struct qhca_cq_dbrec *dbrec;
	void *db;
	uint32_t log_size;
	uint32_t cqn;
	uint32_t ci;
	uint32_t end;		/* do not poll beyond this index */
	bool arm_in_record;
	/* The rest of the arms, and dbrec for them; may be taken under the other lock. */
	struct qhca_lock arm_lock;
	uint32_t arm_sn;	/* of the last arm */
	uint32_t arm_any_sn;	/* of the last arm for any CQE */
	struct qhca_map qps;
	struct qhca_map srqs;	/* XRC SRQs */
	struct qhca_cqe *cur;	/* current CQE, between start_poll() and end_poll() */
	_Atomic(uint64_t) wall_offset;	/* minus device time, at wall_checked */
	_Atomic(uint64_t) wall_checked;	/* monotonic time, 0: never */
};

static inline struct qhca_context *to_qctx(struct ibv_context *ibctx)
{
	return container_of(ibctx, struct qhca_context, ibv_ctx.context);
}

static inline struct qhca_pd *to_qpd(struct ibv_pd *ibpd)
{
	return container_of(ibpd, struct qhca_pd, ibv_pd);
}

/* Without a PD, as for an XRC target QP, this and qhca_pd_put() do nothing. */
static inline void qhca_pd_get(struct qhca_pd *pd)
{
	if (pd)
		atomic_fetch_add(&pd->refs, 1);
}

static inline struct qhca_td *to_qtd(struct ibv_td *ibtd)
{
	return container_of(ibtd, struct qhca_td, ibv_td);
}

static inline struct qhca_ah *to_qah(struct ibv_ah *ibah)
{
	return container_of(ibah, struct qhca_ah, ibv_ah);
}

static inline struct qhca_cq *to_qcq(struct ibv_cq *ibcq)
{
	return container_of(ibcq, struct qhca_cq, vcq.cq);
}

static inline struct qhca_qp *to_qqp(struct ibv_qp *ibqp)
{
	return container_of(ibqp, struct qhca_qp, vqp.qp);
}

static inline struct qhca_srq *to_qsrq(struct ibv_srq *ibsrq)
{
	return container_of(ibsrq, struct qhca_srq, vsrq.srq);
}

static inline void qhca_lock_init(struct qhca_lock *lock,
				  const struct qhca_context *ctx,
				  bool single_threaded)
{
	atomic_init(&lock->taken, false);
	lock->skip = single_threaded || ctx->single_threaded;
}

/* Tell a hypervisor that this CPU only waits, perhaps for another one. */
static inline void qhca_relax(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static inline void qhca_lock(struct qhca_lock *lock)
{
	if (lock->skip)
		return;
	while (unlikely(atomic_exchange_explicit(&lock->taken, true,
						 memory_order_acquire)))
		while (atomic_load_explicit(&lock->taken, memory_order_relaxed))
			qhca_relax();
}

static inline void qhca_unlock(struct qhca_lock *lock)
{
	if (!lock->skip)
		atomic_store_explicit(&lock->taken, false, memory_order_release);
}

/*
 * Return an error from a verb. The manual pages promise "the value of errno", so set
 * errno as well, whether the kernel or the provider has refused the request.
 */
static inline int qhca_ret(int err)
{
	if (unlikely(err))
		errno = err;
	return err;
}

int qhca_mem_alloc(struct qhca_mem *mem, size_t len, struct qhca_pd *pd,
		   enum qhca_mem_type type);
void qhca_mem_free(struct qhca_mem *mem);
void qhca_shadow_init(struct qhca_context *ctx, uint32_t max_slots);
void qhca_shadow_free(struct qhca_context *ctx);
void qhca_slot_get(struct qhca_context *ctx, struct qhca_slot *slot);
void qhca_slot_put(struct qhca_context *ctx, struct qhca_slot *slot);

struct qhca_alloc_ucontext_resp;
void qhca_clock_map(struct qhca_context *ctx, int cmd_fd,
		    const struct qhca_alloc_ucontext_resp *resp);
void qhca_clock_unmap(struct qhca_context *ctx);
uint64_t qhca_clock_ns(const struct qhca_clock_info *clock, uint64_t cycles);
int qhca_query_clock(struct ibv_context *ibctx, uint64_t *device_ns,
		     uint64_t *real_ns);
int qhca_query_rt_values(struct ibv_context *ibctx,
			 struct ibv_values_ex *values);
int qhca_query_port_speed(struct ibv_context *ibctx, uint32_t port,
			  uint64_t *speed);
int qhca_query_port(struct ibv_context *ibctx, uint8_t port,
		    struct ibv_port_attr *attr);
struct ibv_pd *qhca_alloc_pd(struct ibv_context *ibctx);
void qhca_pd_put(struct qhca_pd *pd);
int qhca_dealloc_pd(struct ibv_pd *ibpd);
struct ibv_pd *qhca_import_pd(struct ibv_context *ibctx, uint32_t handle);
void qhca_unimport_pd(struct ibv_pd *ibpd);
struct ibv_td *qhca_alloc_td(struct ibv_context *ibctx,
			     struct ibv_td_init_attr *attr);
int qhca_dealloc_td(struct ibv_td *ibtd);
struct ibv_pd *qhca_alloc_parent_domain(struct ibv_context *ibctx,
					struct ibv_parent_domain_init_attr *attr);
struct ibv_mr *qhca_mr_made(struct ibv_pd *ibpd, struct verbs_mr *vmr, int err);
struct ibv_mr *qhca_reg_mr(struct ibv_pd *ibpd, void *addr, size_t length,
			   uint64_t hca_va, int access);
struct ibv_mr *qhca_alloc_null_mr(struct ibv_pd *ibpd);
void qhca_null_mrs_init(struct qhca_context *ctx);
void qhca_null_mrs_free(struct qhca_context *ctx);
struct ibv_mr *qhca_reg_dmabuf_mr(struct ibv_pd *ibpd, uint64_t offset,
				  size_t length, uint64_t iova, int fd,
				  int access);
struct ibv_dmah *qhca_alloc_dmah(struct ibv_context *ibctx,
				 struct ibv_dmah_init_attr *attr);
int qhca_dealloc_dmah(struct ibv_dmah *ibdmah);
struct ibv_mr *qhca_reg_mr_ex(struct ibv_pd *ibpd,
			      struct ibv_mr_init_attr *attr);
int qhca_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *ibpd,
		  void *addr, size_t length, int access);
int qhca_dereg_mr(struct verbs_mr *vmr);
struct ibv_mr *qhca_import_mr(struct ibv_pd *ibpd, uint32_t handle);
void qhca_unimport_mr(struct ibv_mr *ibmr);

struct ibv_dm *qhca_alloc_dm(struct ibv_context *ibctx,
			     struct ibv_alloc_dm_attr *attr);
int qhca_free_dm(struct ibv_dm *ibdm);
struct ibv_dm *qhca_import_dm(struct ibv_context *ibctx, uint32_t handle);
void qhca_unimport_dm(struct ibv_dm *ibdm);
int qhca_dm_export_dmabuf_fd(struct ibv_dm *ibdm);
struct ibv_mr *qhca_reg_dm_mr(struct ibv_pd *ibpd, struct ibv_dm *ibdm,
			      uint64_t offset, size_t length,
			      unsigned int access);

struct ibv_mw *qhca_alloc_mw(struct ibv_pd *ibpd, enum ibv_mw_type type);
int qhca_dealloc_mw(struct ibv_mw *mw);
int qhca_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw,
		 struct ibv_mw_bind *bind);

struct ibv_ah *qhca_create_ah(struct ibv_pd *ibpd, struct ibv_ah_attr *attr);
int qhca_destroy_ah(struct ibv_ah *ibah);

struct ibv_cq *qhca_create_cq(struct ibv_context *ibctx, int cqe,
			      struct ibv_comp_channel *channel,
			      int comp_vector);
struct ibv_cq_ex *qhca_create_cq_ex(struct ibv_context *ibctx,
				    struct ibv_cq_init_attr_ex *attr);
int qhca_resize_cq(struct ibv_cq *ibcq, int cqe);
int qhca_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr);
int qhca_destroy_cq(struct ibv_cq *ibcq);
int qhca_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc);
int qhca_req_notify_cq(struct ibv_cq *ibcq, int solicited_only);
void qhca_cq_fill_ops(const struct qhca_context *ctx, struct ibv_cq_ex *ibcq,
		      uint64_t wc_flags);
int qhca_cq_add(struct qhca_cq *cq, struct qhca_map *map,
		struct qhca_link *link);
void qhca_cq_del(struct qhca_cq *cq, struct qhca_map *map,
		 struct qhca_link *link);
void qhca_cq_clean_qp(struct qhca_cq *cq, struct qhca_qp *qp);
void qhca_cq_clean_srq(struct qhca_cq *cq, struct qhca_srq *srq);

struct ibv_srq *qhca_create_srq(struct ibv_pd *ibpd,
				struct ibv_srq_init_attr *attr);
struct ibv_srq *qhca_create_srq_ex(struct ibv_context *ibctx,
				   struct ibv_srq_init_attr_ex *attr);
int qhca_get_srq_num(struct ibv_srq *ibsrq, uint32_t *srq_num);
int qhca_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr,
		    int attr_mask);
int qhca_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr);
int qhca_destroy_srq(struct ibv_srq *ibsrq);
int qhca_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr);

void qhca_qp_init(struct qhca_qp *qp, const struct qhca_context *ctx,
		  const struct qhca_pd *pd);
int qhca_qp_join_cqs(struct qhca_qp *qp);
void qhca_qp_clean_cqs(struct qhca_qp *qp);
void qhca_qp_leave_cqs(struct qhca_qp *qp);
void qhca_wq_reset(struct qhca_wq *wq);
void qhca_rq_size(struct qhca_wq *rq, uint32_t max_wr, uint32_t max_sge);
struct ibv_qp *qhca_create_qp(struct ibv_pd *ibpd,
			      struct ibv_qp_init_attr *attr);
struct ibv_qp *qhca_create_qp_ex(struct ibv_context *ibctx,
				 struct ibv_qp_init_attr_ex *attr);
int qhca_query_ece(struct ibv_qp *ibqp, struct ibv_ece *ece);
int qhca_set_ece(struct ibv_qp *ibqp, struct ibv_ece *ece);
/* The options of enhanced connection establishment that a new QP has. */
uint32_t qhca_offered_ece(const struct qhca_context *ctx, enum ibv_qp_type type);
int qhca_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
		   int attr_mask);
int qhca_modify_qp_rate_limit(struct ibv_qp *ibqp,
			      struct ibv_qp_rate_limit_attr *attr);
int qhca_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask,
		  struct ibv_qp_init_attr *init_attr);
int qhca_destroy_qp(struct ibv_qp *ibqp);

struct ibv_wq *qhca_create_wq(struct ibv_context *ibctx,
			      struct ibv_wq_init_attr *attr);
int qhca_modify_wq(struct ibv_wq *ibwq, struct ibv_wq_attr *attr);
int qhca_destroy_wq(struct ibv_wq *ibwq);
struct ibv_rwq_ind_table *
qhca_create_rwq_ind_table(struct ibv_context *ibctx,
			  struct ibv_rwq_ind_table_init_attr *attr);
int qhca_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table);
void qhca_rss_caps(struct ibv_rss_caps *caps);
struct ibv_qp *qhca_create_rss_qp(struct ibv_context *ibctx,
				  struct ibv_qp_init_attr_ex *attr);

struct ibv_xrcd *qhca_open_xrcd(struct ibv_context *ibctx,
				struct ibv_xrcd_init_attr *attr);
int qhca_close_xrcd(struct ibv_xrcd *ibxrcd);
struct ibv_qp *qhca_open_qp(struct ibv_context *ibctx,
			    struct ibv_qp_open_attr *attr);

uint32_t qhca_send_ops(enum ibv_qp_type type);
int qhca_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr);
int qhca_post_bind(struct ibv_qp *ibqp, const struct ibv_send_wr *wr);
int qhca_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr);
int qhca_qp_fill_ops(struct qhca_qp *qp, uint64_t send_ops_flags);

#endif /* QHCA_H */
