/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* qhca_ib.ko: on-demand paging, between its two files. */
#ifndef QHCA_IB_ODP_H
#define QHCA_IB_ODP_H

#include <rdma/ib_umem_odp.h>

#include "qhca_ib.h"

/**
 * struct qhca_ib_odp - a region whose pages come on demand
 * @dev: the HCA
 * @umem: the memory, or, if implicit, all of the process
 * @lock: if implicit, protects @pieces and their use, except by notifiers
 * @pieces: if implicit, struct ib_umem_odp by address; else empty
 * @num_pieces: how many
 * @key: of the region; 0: the device does not know it yet
 * @pdn: number of its PD
 * @iova: address of its first byte in work requests
 * @users: page faults being served, and one for the region
 * @idle: @users has become 0
 */
struct qhca_ib_odp {
	struct qhca_ib_dev *dev;
	struct ib_umem_odp *umem;
	struct mutex lock;	/* @pieces */
	struct xarray pieces;
	unsigned int num_pieces;
	u32 key;
	u32 pdn;
	u64 iova;
	refcount_t users;
	struct completion idle;
};

/* Address of page 0 of the region. */
static inline u64 qhca_ib_odp_base(const struct qhca_ib_odp *odp)
{
	return odp->umem->is_implicit_odp ? 0 : ib_umem_start(odp->umem);
}

struct qhca_ib_odp *qhca_ib_odp_alloc(struct qhca_ib_dev *dev, u64 start, u64 length, int access);
void qhca_ib_odp_free(struct qhca_ib_odp *odp);
ssize_t qhca_ib_odp_provide(struct qhca_ib_odp *odp, u64 va, u64 end, bool write, bool fault,
			    struct qhca_pages *pages);

#endif /* QHCA_IB_ODP_H */
