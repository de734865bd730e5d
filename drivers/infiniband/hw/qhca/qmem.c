// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: pin or allocate memory and describe it to the device. */
#include <rdma/ib_umem.h>
#include <rdma/iter.h>

#include "qhca_ib.h"

/**
 * qhca_ib_pinned_table - describe a user's memory to the device
 * @dev: the HCA
 * @mem: the memory; its charge is set here
 * @pgsz: block size
 * @table: initialised here; the caller frees it after the command
 *
 * Return: 0 or a negative errno; the caller has to put @mem in both cases.
 */
int qhca_ib_pinned_table(struct qhca_ib_dev *dev, struct qhca_ib_pinned *mem, unsigned long pgsz,
			 struct qhca_table *table)
{
	size_t num_blocks = ib_umem_num_dma_blocks(mem->umem, pgsz);
	struct ib_block_iter biter;
	u32 i = 0;
	int ret;

	if (!num_blocks || num_blocks > U32_MAX)
		return qhca_ib_refuse(dev, -EINVAL, "memory: %zu blocks", num_blocks);
	ret = qhca_ib_charge(dev, &mem->charge, num_blocks, dev->limits->max_table_blocks);
	if (ret)
		return ret;
	ret = qhca_table_init(dev->core, table, num_blocks, ilog2(pgsz));
	if (ret)
		return ret;
	rdma_umem_for_each_dma_block(mem->umem, &biter, pgsz) {
		qhca_table_set(table, i++, rdma_block_iter_dma_address(&biter));
		if (!(i % QHCA_TABLE_ENTRIES))
			cond_resched();
	}
	return 0;
}

/**
 * qhca_ib_pinned_put - release a user's memory that the device no longer uses
 * @dev: the HCA
 * @mem: the memory, or all zero
 */
void qhca_ib_pinned_put(struct qhca_ib_dev *dev, struct qhca_ib_pinned *mem)
{
	ib_umem_release(mem->umem);
	mem->umem = NULL;
	qhca_ib_uncharge_all(dev, &mem->charge);
}

/**
 * qhca_ib_qmem_get_user - use a user's memory for a ring
 * @dev: the HCA
 * @mem: initialised here
 * @addr: the user's address, page aligned
 * @len: the user's length
 * @min_len: bytes that the ring needs
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_qmem_get_user(struct qhca_ib_dev *dev, struct qhca_ib_qmem *mem, u64 addr, u32 len,
			  u64 min_len)
{
	struct ib_umem *umem;
	unsigned long pgsz;
	int ret;

	if (len < min_len || !IS_ALIGNED(addr, QHCA_PAGE_SIZE))
		return qhca_ib_refuse(dev, -EINVAL, "ring: %llu bytes in %u at %#llx", min_len,
				      len, addr);

	umem = ib_umem_get_va(&dev->ibdev, addr, len, IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	mem->user.umem = umem;
	/* The ring must start at the start of a block. */
	pgsz = ib_umem_find_best_pgoff(umem, QHCA_IB_PAGE_SIZES, 0);
	if (!pgsz) {
		ret = qhca_ib_refuse(dev, -EINVAL, "ring: no page size fits its memory");
		goto err;
	}
	ret = qhca_ib_pinned_table(dev, &mem->user, pgsz, &mem->table);
	if (ret)
		goto err;
	mem->buf = mem->table.buf;
	return 0;

err:
	qhca_ib_pinned_put(dev, &mem->user);
	return ret;
}

/**
 * qhca_ib_refuse_attrs - refuse memory that a user names by attributes of the core
 * @dev: the HCA
 * @attrs: the request, or NULL
 * @ids: attributes for the memory of rings
 * @num: how many
 *
 * The rings of this driver are in its own request, whose form says what is behind them as well.
 *
 * Return: 0 or -EOPNOTSUPP.
 */
int qhca_ib_refuse_attrs(struct qhca_ib_dev *dev, const struct uverbs_attr_bundle *attrs,
			 const u16 *ids, unsigned int num)
{
	unsigned int i;

	for (i = 0; attrs && i < num; i++)
		if (uverbs_attr_is_valid(attrs, ids[i]))
			return qhca_ib_refuse(dev, -EOPNOTSUPP, "ring: attribute %u", ids[i]);
	return 0;
}

/**
 * qhca_ib_qmem_get_kernel - allocate a ring
 * @dev: the HCA
 * @mem: initialised here
 * @len: bytes
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_qmem_get_kernel(struct qhca_ib_dev *dev, struct qhca_ib_qmem *mem, size_t len)
{
	return qhca_ring_mem_alloc(dev->core, &mem->ring, len, &mem->buf);
}

/**
 * qhca_ib_qmem_free_table - free the table of addresses
 * @mem: the memory
 *
 * The device reads the table only while it executes the command with @mem->buf, so free it as soon
 * as the command has completed, even with an error.
 */
void qhca_ib_qmem_free_table(struct qhca_ib_qmem *mem)
{
	if (mem->user.umem)
		qhca_table_free(&mem->table);
}

/**
 * qhca_ib_qmem_put - release the memory of a ring that the device no longer uses
 * @dev: the HCA
 * @mem: the memory, or all zero
 */
void qhca_ib_qmem_put(struct qhca_ib_dev *dev, struct qhca_ib_qmem *mem)
{
	qhca_ib_pinned_put(dev, &mem->user);
	if (mem->ring.va)
		qhca_ring_mem_free(dev->core, &mem->ring);
	mem->ring.va = NULL;
}

/**
 * qhca_ib_wq_get_user - take a user's memory for a queue
 * @dev: the HCA
 * @wq: the queue, without WQEs; its size and memory are filled in
 * @max_wr: WRs that it has to hold; 0: it stays without WQEs
 * @stride: bytes that a WQE needs
 * @max_stride: largest bytes of a WQE
 * @tail: bytes needed behind the ring
 * @user: the ring
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_wq_get_user(struct qhca_ib_dev *dev, struct qhca_ib_wq *wq, u32 max_wr, u32 stride,
			u32 max_stride, size_t tail, const struct qhca_ib_user_wq *user)
{
	if (!max_wr && !user->len)
		return 0;
	if (!max_wr)
		return qhca_ib_refuse(dev, -EINVAL, "QP: ring for a queue without WRs");
	if (user->log_size > ilog2(dev->ibdev.attrs.max_qp_wr) || BIT(user->log_size) < max_wr)
		return qhca_ib_refuse(dev, -EINVAL, "QP: ring of 2^%u for %u WRs", user->log_size,
				      max_wr);
	if (user->log_stride > ilog2(max_stride) || BIT(user->log_stride) < stride)
		return qhca_ib_refuse(dev, -EINVAL, "QP: WQEs of 2^%u for %u bytes",
				      user->log_stride, stride);

	wq->size = BIT(user->log_size);
	wq->log_stride = user->log_stride;
	return qhca_ib_qmem_get_user(dev, &wq->mem, user->addr, user->len,
				     ((u64)wq->size << wq->log_stride) + tail);
}

/**
 * qhca_ib_wq_get_kernel - allocate memory for a queue of a kernel consumer
 * @dev: the HCA
 * @wq: the queue, without WQEs; its size and memory are filled in
 * @max_wr: WRs that it has to hold; 0: it stays without WQEs
 * @stride: bytes of a WQE, a power of two
 * @tail: bytes needed behind the ring
 *
 * Return: 0 or -ENOMEM; then qhca_ib_wq_put() has to be called as well.
 */
int qhca_ib_wq_get_kernel(struct qhca_ib_dev *dev, struct qhca_ib_wq *wq, u32 max_wr, u32 stride,
			  size_t tail)
{
	if (!max_wr)
		return 0;
	wq->size = roundup_pow_of_two(max_wr);
	wq->log_stride = ilog2(stride);
	wq->wr = kvcalloc(wq->size, sizeof(*wq->wr), GFP_KERNEL);
	if (!wq->wr)
		return -ENOMEM;
	return qhca_ib_qmem_get_kernel(dev, &wq->mem,
				       ((size_t)wq->size << wq->log_stride) + tail);
}

/**
 * qhca_ib_wq_put - free the memory of a queue that the device does not use
 * @dev: the HCA
 * @wq: the queue
 */
void qhca_ib_wq_put(struct qhca_ib_dev *dev, struct qhca_ib_wq *wq)
{
	qhca_ib_qmem_put(dev, &wq->mem);
	kvfree(wq->wr);
}
