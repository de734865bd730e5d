/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Ring doorbells, in the page of the context or in memory. */
#ifndef QHCA_DOORBELL_H
#define QHCA_DOORBELL_H

#include <util/mmio.h>

#include "qhca.h"

/* Whether QEMU's TCG emulates this CPU. */
extern bool qhca_cpu_is_tcg __attribute__((visibility("hidden")));

/*
 * TCG allows an access to a device only in the last instruction of a translation block.
 * At any other instruction it leaves the block and translates that instruction alone. A
 * string instruction ends its block, so one with a single iteration avoids the detour.
 * CPUs and other hypervisors execute a plain store faster.
 */
static inline void qhca_mmio_write64(void *reg, __le64 value)
{
#ifdef __x86_64__
	if (qhca_cpu_is_tcg) {
		uint64_t count = 1;

		__asm__ volatile("rep stosq"
				 : "+D" (reg), "+c" (count)
				 : "a" (value)
				 : "memory");
		return;
	}
#endif
	mmio_write64_le(reg, value);
}

/*
 * Let the device see what was written before anything is read. Compilers take a locked
 * instruction for it, which TCG emulates without a barrier if the machine has one CPU.
 * Where the device looks for doorbells, it waits for that; elsewhere it does not.
 */
static inline void qhca_full_barrier(void)
{
#ifdef __SSE2__
	__asm__ volatile("mfence" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* Ring a doorbell, after all earlier writes to memory are visible. */
static inline void qhca_ring(void *page, uint32_t reg, uint64_t obj,
			     uint32_t index)
{
	udma_to_device_barrier();
	qhca_mmio_write64((uint8_t *)page + reg,
			  htole64(QHCA_PREP(QHCA_DB_INDEX, (uint64_t)index) | obj));
}

/* The same in memory; include/qhca/regs.h has the order of the accesses. */
static inline void qhca_ring_slot(const struct qhca_slot *slot, void *page,
				  uint32_t reg, uint64_t obj, uint32_t index)
{
	struct qhca_shadow *shadow = slot->shadow;
	uint64_t val = QHCA_PREP(QHCA_DB_INDEX, (uint64_t)index) | obj |
		       QHCA_PREP(QHCA_DB_KIND, (uint64_t)reg / 8);
	uint32_t i = slot->index;

	udma_to_device_barrier();
	__atomic_store_n(&shadow->slot[i], htole64(val), __ATOMIC_RELAXED);
	__atomic_fetch_or(&shadow->rung[i / 64], htole64(1ull << i % 64),
			  __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&shadow->look, htole64(1ull << i / 64),
			  __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (unlikely(__atomic_load_n(&shadow->ask, __ATOMIC_RELAXED)))
		qhca_mmio_write64((uint8_t *)page + QHCA_DB_SHADOW, 0);
}

static inline void qhca_ring_sq(const struct qhca_qp *qp)
{
	if (likely(!qp->sq_slot.shadow))
		qhca_ring(qp->db, QHCA_DB_SQ, qp->qpn, qp->sq.pi);
	else
		qhca_ring_slot(&qp->sq_slot, qp->db, QHCA_DB_SQ, qp->qpn, qp->sq.pi);
}

#endif /* QHCA_DOORBELL_H */
