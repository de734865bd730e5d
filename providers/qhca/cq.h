/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The ring of a CQ, for code that creates and resizes (cq.c) or polls it (poll.c). */
#ifndef QHCA_CQ_H
#define QHCA_CQ_H

#include "qhca.h"

static inline struct qhca_cqe *cqe_at(const struct qhca_cq *cq, uint32_t index)
{
	return cq->ring + (index & ((1u << cq->log_size) - 1));
}

/* The phase of a valid CQE alternates with every pass over the ring. */
static inline bool cqe_valid(const struct qhca_cq *cq,
			     const struct qhca_cqe *cqe, uint32_t index)
{
	uint8_t phase = index >> cq->log_size & 1 ? 0 : QHCA_OWNER_PHASE;
	uint8_t owner = *(const volatile uint8_t *)&cqe->owner;

	return (owner & QHCA_OWNER_PHASE) == phase;
}

/* Return consumed CQEs to the device, after the last read of them. */
static inline void cq_write_ci(struct qhca_cq *cq)
{
	atomic_thread_fence(memory_order_release);
	udma_to_device_barrier();
	*(volatile __le32 *)&cq->dbrec->ci = htole32(cq->ci);
}

static inline struct qhca_cq_dbrec *cq_dbrec(void *ring, uint32_t log_size)
{
	return (void *)((struct qhca_cqe *)ring + (1u << log_size));
}

/* Write the last arm to a doorbell record, from which the device reads it. */
static inline void cq_write_arm(const struct qhca_cq *cq, struct qhca_cq_dbrec *dbrec)
{
	uint64_t arm = QHCA_PREP(QHCA_CQ_ARM_SN, (uint64_t)cq->arm_sn) |
		       QHCA_PREP(QHCA_CQ_ARM_ANY_SN, (uint64_t)cq->arm_any_sn);

	__atomic_store_n(&dbrec->arm, htole64(arm), __ATOMIC_RELAXED);
}

static inline struct qhca_link **map_bucket(struct qhca_map *map,
					    uint32_t number)
{
	return &map->bucket[number & (map->num_buckets - 1)];
}

static inline void *map_find(struct qhca_map *map, uint32_t number)
{
	struct qhca_link *link = map->last;

	if (likely(link && link->number == number))
		return link->owner;
	if (!map->count)
		return NULL;
	for (link = *map_bucket(map, number); link; link = link->next) {
		if (link->number == number) {
			map->last = link;
			return link->owner;
		}
	}
	return NULL;
}

/* Other threads may complete WRs of the same SRQ, on other CQs, at the same time. */
static inline void srq_free_one(struct qhca_srq *srq)
{
	atomic_fetch_add_explicit(&srq->wq.ci, 1, memory_order_release);
}

#endif /* QHCA_CQ_H */
