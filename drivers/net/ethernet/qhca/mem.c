// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca.ko: memory of kernel rings.
 *
 * A ring is one coherent allocation if possible. The page allocator ends at a few megabytes, the
 * device's limits do not. A larger ring consists of single pages and a table, provided that their
 * streaming mappings need no synchronisation, and so are as good as coherent.
 */
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "qhca.h"

/*
 * The largest rings have 65536 pages, which take a while with a debugging DMA layer. Unmap by
 * mem->pages: the device could change the addresses in the table.
 */
static void qhca_ring_mem_unmap(struct qhca_ring_mem *mem, u32 num)
{
	while (num--) {
		dma_unmap_page(mem->table.dma_dev, mem->pages[num], PAGE_SIZE,
			       DMA_BIDIRECTIONAL);
		cond_resched();
	}
}

static int qhca_ring_mem_map(struct qhca_ring_mem *mem, u32 num)
{
	struct device *dma_dev = mem->table.dma_dev;
	bool bounced = false;
	dma_addr_t addr;
	u32 i;

	for (i = 0; i < num; i++) {
		addr = dma_map_page(dma_dev, vmalloc_to_page(mem->va + i * PAGE_SIZE), 0,
				    PAGE_SIZE, DMA_BIDIRECTIONAL);
		if (dma_mapping_error(dma_dev, addr))
			break;
		mem->pages[i] = addr;
		qhca_table_set(&mem->table, i, addr);
		bounced |= dma_need_sync(dma_dev, addr);
		cond_resched();
	}
	if (i == num && !bounced)
		return 0;
	qhca_ring_mem_unmap(mem, i);
	return -ENOMEM;
}

static void qhca_ring_mem_free_paged(struct qhca_ring_mem *mem)
{
	vfree(mem->va);
	kvfree(mem->pages);
	qhca_table_free(&mem->table);
}

static int qhca_ring_mem_alloc_paged(struct qhca_dev *dev, struct qhca_ring_mem *mem)
{
	u32 num = mem->size >> PAGE_SHIFT;
	int ret;

	ret = qhca_table_init(dev, &mem->table, num, PAGE_SHIFT);
	if (ret)
		return ret;
	mem->pages = kvmalloc_array(num, sizeof(*mem->pages), GFP_KERNEL);
	mem->va = vzalloc(mem->size);
	ret = mem->pages && mem->va ? qhca_ring_mem_map(mem, num) : -ENOMEM;
	if (ret)
		qhca_ring_mem_free_paged(mem);
	return ret;
}

/**
 * qhca_ring_mem_alloc - allocate the memory of a ring
 * @dev: the function
 * @mem: filled in; all zero on failure
 * @size: bytes; rounded up to whole pages
 * @buf: filled in with the ring's description for a command; NULL if the ring has to be contiguous
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int qhca_ring_mem_alloc(struct qhca_dev *dev, struct qhca_ring_mem *mem,
			size_t size, struct qhca_buf *buf)
{
	int ret;

	memset(mem, 0, sizeof(*mem));
	mem->size = PAGE_ALIGN(size);
	mem->va = dma_alloc_coherent(&dev->pdev->dev, mem->size, &mem->dma,
				     GFP_KERNEL | __GFP_NOWARN);
	if (mem->va) {
		mem->table.buf.addr = cpu_to_le64(mem->dma);
		mem->table.buf.num_blocks = cpu_to_le32(mem->size >> QHCA_PAGE_SHIFT);
		mem->table.buf.block_shift = QHCA_PAGE_SHIFT;
	} else {
		ret = buf ? qhca_ring_mem_alloc_paged(dev, mem) : -ENOMEM;
		if (ret) {
			/* Nothing is left to free. */
			memset(mem, 0, sizeof(*mem));
			return ret;
		}
	}
	if (buf)
		*buf = mem->table.buf;
	return 0;
}
EXPORT_SYMBOL(qhca_ring_mem_alloc);

/**
 * qhca_ring_mem_free - free the memory of a ring
 * @dev: the function
 * @mem: the ring, which the device does not use any more
 *
 * Context: process.
 */
void qhca_ring_mem_free(struct qhca_dev *dev, struct qhca_ring_mem *mem)
{
	if (mem->pages) {
		qhca_ring_mem_unmap(mem, mem->size >> PAGE_SHIFT);
		qhca_ring_mem_free_paged(mem);
	} else {
		dma_free_coherent(&dev->pdev->dev, mem->size, mem->va, mem->dma);
	}
	mem->va = NULL;
}
EXPORT_SYMBOL(qhca_ring_mem_free);
