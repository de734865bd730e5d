// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca.ko: tables of block addresses, up to three levels of pages.
 *
 * The pages are coherent memory: a table lives only as long as one command, and its owner may set
 * entries in any order at any time. The largest table has 32833 pages. The cgroup of the caller
 * pays for them.
 */
#include <linux/mm.h>

#include "qhca.h"

/* No less is allocated than a page of the CPU, which can hold several. */
#define QHCA_TABLE_CHUNK	(PAGE_SIZE / QHCA_PAGE_SIZE)

/* struct qhca_table_page - a page of 512 device addresses */
struct qhca_table_page {
	__le64 *va;
	dma_addr_t dma;
};

/* struct qhca_table_pages - the pages of all levels, the leaves first */
struct qhca_table_pages {
	u32 num;
	struct qhca_table_page page[] __counted_by(num);
};

/* Number of pages above a level of @entries entries. */
static u32 qhca_table_level(u32 entries)
{
	return (entries - 1) / QHCA_TABLE_ENTRIES + 1;
}

static struct qhca_table_pages *qhca_table_alloc(struct qhca_table *t, u32 num)
{
	struct qhca_table_pages *pages;
	struct qhca_table_page *first;
	u32 i;

	pages = kvzalloc(struct_size(pages, page, num), GFP_KERNEL_ACCOUNT);
	if (!pages)
		return NULL;
	pages->num = num;
	t->pages = pages;
	for (i = 0; i < num; i++) {
		first = &pages->page[i - i % QHCA_TABLE_CHUNK];
		if (first != &pages->page[i]) {
			pages->page[i].va = first->va + i % QHCA_TABLE_CHUNK * QHCA_TABLE_ENTRIES;
			pages->page[i].dma = first->dma + i % QHCA_TABLE_CHUNK * QHCA_PAGE_SIZE;
			continue;
		}
		first->va = dma_alloc_coherent(t->dma_dev, PAGE_SIZE, &first->dma,
					       GFP_KERNEL_ACCOUNT);
		if (!first->va) {
			qhca_table_free(t);
			return NULL;
		}
		cond_resched();
	}
	return pages;
}

/* Enter the pages of each level in the pages of the next; the last page is the root. */
static void qhca_table_link(struct qhca_table_pages *pages, u32 leaves)
{
	u32 child = 0, width = leaves, parent, i;

	while (width > 1) {
		parent = child + width;
		for (i = 0; i < width; i++)
			pages->page[parent + i / QHCA_TABLE_ENTRIES]
				.va[i % QHCA_TABLE_ENTRIES] =
				cpu_to_le64(pages->page[child + i].dma);
		cond_resched();
		child = parent;
		width = qhca_table_level(width);
	}
}

/**
 * qhca_table_init - start a table
 * @dev: the function
 * @t: the table
 * @num_blocks: number of blocks to describe
 * @block_shift: log2 of their size
 *
 * Context: process.
 *
 * Return: 0; -EINVAL for an impossible table; -ENOMEM, also if the table is
 * larger than the device takes.
 */
int qhca_table_init(struct qhca_dev *dev, struct qhca_table *t, u32 num_blocks,
		    u8 block_shift)
{
	struct qhca_table_pages *pages;
	u32 leaves, width, num;
	u8 depth = 1;

	if (!num_blocks || block_shift < QHCA_BLOCK_SHIFT_MIN ||
	    block_shift > QHCA_BLOCK_SHIFT_MAX)
		return -EINVAL;
	memset(t, 0, sizeof(*t));
	t->dma_dev = &dev->pdev->dev;
	t->buf.num_blocks = cpu_to_le32(num_blocks);
	t->buf.block_shift = block_shift;
	if (num_blocks == 1)
		return 0;
	if (num_blocks > dev->limits.max_table_blocks)
		return -ENOMEM;

	leaves = qhca_table_level(num_blocks);
	num = leaves;
	for (width = leaves; width > 1; depth++) {
		width = qhca_table_level(width);
		num += width;
	}
	if (depth > QHCA_BUF_MAX_DEPTH)
		return -EINVAL;

	pages = qhca_table_alloc(t, num);
	if (!pages)
		return -ENOMEM;
	qhca_table_link(pages, leaves);
	t->buf.depth = depth;
	t->buf.addr = cpu_to_le64(pages->page[num - 1].dma);
	return 0;
}
EXPORT_SYMBOL(qhca_table_init);

/**
 * qhca_table_set - set the address of a block
 * @t: the table
 * @index: the block, less than the number given to qhca_table_init()
 * @addr: its DMA address, aligned to the block size
 */
void qhca_table_set(struct qhca_table *t, u32 index, dma_addr_t addr)
{
	struct qhca_table_pages *pages = t->pages;
	__le64 *entry = &t->buf.addr;

	if (pages)
		entry = &pages->page[index / QHCA_TABLE_ENTRIES].va[index % QHCA_TABLE_ENTRIES];
	*entry = cpu_to_le64(addr);
}
EXPORT_SYMBOL(qhca_table_set);

/**
 * qhca_table_free - free the table pages
 * @t: the table; the described memory stays
 *
 * Context: process. May be called again, and for a table that is all zero.
 */
void qhca_table_free(struct qhca_table *t)
{
	struct qhca_table_pages *pages = t->pages;
	u32 i;

	if (!pages)
		return;
	for (i = 0; i < pages->num && pages->page[i].va; i += QHCA_TABLE_CHUNK) {
		dma_free_coherent(t->dma_dev, PAGE_SIZE, pages->page[i].va,
				  pages->page[i].dma);
		cond_resched();
	}
	kvfree(pages);
	t->pages = NULL;
}
EXPORT_SYMBOL(qhca_table_free);
