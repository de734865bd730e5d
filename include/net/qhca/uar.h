/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Doorbell pages of processes. A process gets whole pages of the CPU. Where these are larger than
 * the distance of doorbell pages, each holds several: the first of them is used, and the others
 * remain without objects, so that writes there ring nothing.
 *
 * Plain arithmetic without a device, which the selftests also compile.
 */
#ifndef NET_QHCA_UAR_H
#define NET_QHCA_UAR_H

#include <linux/types.h>

/**
 * struct qhca_uar_layout - what is mapped into processes
 * @step: from the number of one doorbell page that is used to the next, at least 1
 * @num: how many are used, page 0, the kernel's, included; below 2 if there is none for processes
 */
struct qhca_uar_layout {
	u32 step;
	u32 num;
};

/**
 * qhca_uar_layout - choose doorbell pages that can be mapped
 * @page_size: bytes of a page of the CPU
 * @stride: bytes from one doorbell page to the next; like @page_size a power of two
 * @pages: doorbell pages of the device, all within BAR 2
 * @start: physical address of BAR 2
 *
 * Return: the layout. A BAR that begins within a page of the CPU shares that with something else,
 * so there is nothing in it for processes.
 */
static inline struct qhca_uar_layout qhca_uar_layout(unsigned long page_size, u32 stride, u32 pages,
						     u64 start)
{
	struct qhca_uar_layout l = { .step = stride < page_size ? page_size / stride : 1 };

	if (!(start & (page_size - 1)))
		l.num = pages / l.step;
	return l;
}

#endif /* NET_QHCA_UAR_H */
