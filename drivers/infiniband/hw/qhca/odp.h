/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* qhca_ib.ko: on-demand paging, between its files. */
#ifndef QHCA_IB_ODP_H
#define QHCA_IB_ODP_H

#include <linux/kref.h>
#include <rdma/ib_umem_odp.h>

#include "qhca_ib.h"

/* An implicit region consists of pieces of this size, made where there are pages. */
#define QHCA_IB_ODP_PIECE_SHIFT	23

/**
 * struct qhca_ib_odp - a region whose pages come on demand
 * @ref: the region has one, and each request for its pages
 * @mm: the memory; held, but everything in it may be gone
 * @pager: provides its pages; held
 * @start: address of the first byte
 * @base: address of page 0
 * @end: address behind the last page
 * @writable: its pages may be given for writing
 * @implicit: it is all memory of the process
 * @key: of the region; 0: the device does not know it yet
 * @pdn: number of its PD
 * @iova: address of its first byte in work requests
 * @grow: serialises the making of pieces; taken before the mmap_lock, or without it
 * @lock: for the members that follow, except in notifiers; taken within the mmap_lock, or without
 *        it, so never held while memory is waited for
 * @ended: the region has been released, and none of the following exists; or it is about to be.
 *         Written under both locks
 * @dev: the HCA
 * @umem: the memory for the core
 * @pieces: if implicit, struct ib_umem_odp by address; else empty. Those with XA_MARK_0 may have
 *          become empty
 * @num_pieces: how many
 * @max_pieces: how many there may be; before one more, another goes
 * @evicted: index in @pieces of the one that went last
 * @trim: frees those that are marked and empty
 * @charge: the charge for its pages
 */
struct qhca_ib_odp {
	struct kref ref;
	struct mm_struct *mm;
	struct qhca_ib_pager *pager;
	u64 start;
	u64 base;
	u64 end;
	bool writable;
	bool implicit;
	u32 key;
	u32 pdn;
	u64 iova;

	struct mutex grow;	/* pieces are made */
	struct mutex lock;	/* the members that follow */
	bool ended;
	struct qhca_ib_dev *dev;
	struct ib_umem_odp *umem;
	struct xarray pieces;
	unsigned int num_pieces;
	unsigned int max_pieces;
	unsigned long evicted;
	struct work_struct trim;
	struct qhca_ib_charge charge;
};

/**
 * struct qhca_ib_pages - a request for pages of a region
 * @odp: the region; held
 * @va: address of a byte in the first page
 * @end: end of what is needed
 * @write: they are to be written
 * @fault: also pages that are not in memory
 * @all: all of them are needed, not only the first
 * @done: called at the end with 0 or a negative errno, see qhca_ib_odp_provide(); frees the request
 *
 * The rest is private to pages.c: @work provides the pages; @tries, how often it was tried;
 * @give_up, when to try no more, in jiffies.
 */
struct qhca_ib_pages {
	struct qhca_ib_odp *odp;
	u64 va;
	u64 end;
	bool write;
	bool fault;
	bool all;
	void (*done)(struct qhca_ib_pages *pages, int err);
	/* private: to pages.c */
	struct delayed_work work;
	unsigned int tries;
	unsigned long give_up;
};

/* struct qhca_ib_odp_scratch - where pages are in memory, as HMM_PFN_*, and for the device */
struct qhca_ib_odp_scratch {
	unsigned long pfn[QHCA_TABLE_ENTRIES];
	struct qhca_pages pages;
};

static inline bool qhca_ib_odp_in_range(const struct qhca_ib_odp *odp, u64 va, u64 end)
{
	return va < end && va >= odp->base && end <= odp->end;
}

/* odp.c */
struct qhca_ib_odp *qhca_ib_odp_alloc(struct qhca_ib_dev *dev, struct qhca_ib_pager *pager,
				      u64 start, u64 length, int access);
void qhca_ib_odp_hold(struct qhca_ib_odp *odp, bool hold);
void qhca_ib_odp_end(struct qhca_ib_odp *odp);
struct qhca_ib_odp *qhca_ib_odp_get(struct qhca_ib_dev *dev, u32 key);
void qhca_ib_odp_put(struct qhca_ib_odp *odp);
int qhca_ib_odp_provide(const struct qhca_ib_pages *pages);

/* odp_map.c */
extern const struct mmu_interval_notifier_ops qhca_ib_odp_mn_ops;
void qhca_ib_odp_clear(struct qhca_ib_odp *odp, u64 start, u64 end);
ssize_t qhca_ib_odp_map(const struct qhca_ib_pages *p, struct ib_umem_odp *umem, u64 va,
			struct qhca_ib_odp_scratch *s);

/* pager.c */
void qhca_ib_pager_queue(struct qhca_ib_pager *pager, struct delayed_work *work,
			 unsigned long delay);

/* pages.c */
bool qhca_ib_pages_init(struct qhca_ib_pages *pages, struct qhca_ib_odp *odp);
void qhca_ib_pages_ask(struct qhca_ib_pages *pages);
bool qhca_ib_pages_drop(struct qhca_ib_pages *pages);
void qhca_ib_pages_exit(struct qhca_ib_pages *pages);

#endif /* QHCA_IB_ODP_H */
