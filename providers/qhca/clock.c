// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Device time, and the time of the PTP clock, which the driver describes in a page. */
#include <stdatomic.h>
#include <sys/mman.h>

#include "qhca.h"
#include "qhca-abi.h"

/* Without the page, the kernel has to be asked for the time. */
void qhca_clock_map(struct qhca_context *ctx, int cmd_fd,
		    const struct qhca_alloc_ucontext_resp *resp)
{
	void *clock;

	if (resp->clock_page_size < sizeof(*ctx->clock))
		return;
	clock = mmap(NULL, resp->clock_page_size, PROT_READ, MAP_SHARED, cmd_fd,
		     resp->clock_mmap_key);
	if (clock == MAP_FAILED)
		return;
	ctx->clock = clock;
	ctx->clock_size = resp->clock_page_size;
}

void qhca_clock_unmap(struct qhca_context *ctx)
{
	if (ctx->clock)
		munmap((void *)ctx->clock, ctx->clock_size);
}

/* Device time, and the wall-clock time of the same moment. */
int qhca_query_clock(struct ibv_context *ibctx, uint64_t *device_ns,
		     uint64_t *real_ns)
{
	struct uqhca_query_device_ex_resp resp = {};
	struct ibv_device_attr_ex attr;
	size_t size = sizeof(resp);
	int err;

	err = ibv_cmd_query_device_any(ibctx, NULL, &attr, sizeof(attr),
				       &resp.ibv_resp, &size);
	if (err)
		return err;
	*device_ns = resp.clock_ns;
	*real_ns = resp.real_ns;
	return resp.clock_ns ? 0 : EOPNOTSUPP;
}

/*
 * Time of the PTP clock at device time @cycles, rounded down. The page has no other writer than the
 * driver; what is read while that changes it is dropped.
 */
uint64_t qhca_clock_ns(const struct qhca_clock_info *clock, uint64_t cycles)
{
	const volatile struct qhca_clock_info *page = clock;
	const uint64_t one = 1ull << QHCA_CLOCK_SHIFT;
	uint64_t mult, frac, nsec, delta, low, high;
	uint32_t seq;
	bool past;

	do {
		seq = page->seq;
		atomic_thread_fence(memory_order_acquire);
		mult = page->mult;
		frac = page->frac;
		nsec = page->nsec;
		delta = cycles - page->cycles;
		atomic_thread_fence(memory_order_acquire);
	} while (unlikely(seq & 1 || seq != page->seq));

	past = delta >> 63;
	if (past)
		delta = -delta;
	low = (uint32_t)delta * mult + (past ? one - 1 - frac : frac);
	high = ((delta >> 32) * mult << (32 - QHCA_CLOCK_SHIFT)) +
	       (low >> QHCA_CLOCK_SHIFT);
	return past ? nsec - high : nsec + high;
}

int qhca_query_rt_values(struct ibv_context *ibctx,
			 struct ibv_values_ex *values)
{
	uint64_t device_ns, real_ns;
	int err;

	if (!check_comp_mask(values->comp_mask, IBV_VALUES_MASK_RAW_CLOCK))
		return qhca_ret(EINVAL);
	if (!values->comp_mask)
		return 0;
	err = qhca_query_clock(ibctx, &device_ns, &real_ns);
	if (err) {
		values->comp_mask = 0;
		return qhca_ret(err);
	}
	/* All in tv_nsec, to compare with timestamps of completions. */
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = device_ns;
	return 0;
}
