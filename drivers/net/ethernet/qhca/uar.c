// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: doorbells and doorbell pages. */
#include <net/qhca/uar.h>

#include "qhca.h"

void qhca_ring(struct qhca_dev *dev, unsigned int offset, u64 value)
{
	writeq(value, dev->db + offset);
}
EXPORT_SYMBOL(qhca_ring);

/**
 * qhca_uars_init - find the doorbell pages in BAR 2
 * @dev: the function, with its registers mapped
 *
 * Return: 0; -ENODEV if they overlap or are too far from each other.
 */
int qhca_uars_init(struct qhca_dev *dev)
{
	u32 log = FIELD_GET(QHCA_DB_CAPS_LOG_STRIDE, qhca_read_reg(dev, QHCA_REG_DB_CAPS));

	/* Version 1.0 of the interface has only this distance. */
	if (!log)
		log = QHCA_PAGE_SHIFT;
	if (log < QHCA_PAGE_SHIFT || log > QHCA_DB_LOG_STRIDE_MAX)
		return dev_err_probe(&dev->pdev->dev, -ENODEV,
				     "doorbell pages 2^%u bytes apart\n", log);
	dev->db_stride = BIT(log);
	return 0;
}

/**
 * qhca_num_uars - how many doorbell pages the device has
 * @dev: the function
 *
 * Return: number of pages, page 0 included; no more than BAR 2 holds.
 */
u32 qhca_num_uars(struct qhca_dev *dev)
{
	u32 pages = FIELD_GET(QHCA_DB_CAPS_PAGES, qhca_read_reg(dev, QHCA_REG_DB_CAPS));

	return min_t(u64, pages, pci_resource_len(dev->pdev, QHCA_BAR_DB) / dev->db_stride);
}

static struct qhca_uar_layout qhca_uars(struct qhca_dev *dev)
{
	return qhca_uar_layout(PAGE_SIZE, dev->db_stride, dev->limits.max_uar,
			       pci_resource_start(dev->pdev, QHCA_BAR_DB));
}

/**
 * qhca_uar_alloc - allocate a doorbell page that a process can map
 * @dev: the function
 * @uar: filled in with its number, not 0
 *
 * Context: process.
 *
 * Return: 0, or -ENOMEM if all pages are in use.
 */
int qhca_uar_alloc(struct qhca_dev *dev, u32 *uar)
{
	struct qhca_uar_layout l = qhca_uars(dev);
	int ret;

	if (l.num < 2)
		return -ENOMEM;
	ret = ida_alloc_range(&dev->uars, 1, l.num - 1, GFP_KERNEL);
	if (ret < 0)
		return -ENOMEM;
	*uar = ret * l.step;
	return 0;
}
EXPORT_SYMBOL(qhca_uar_alloc);

/**
 * qhca_uar_free - free a doorbell page that is not mapped any more
 * @dev: the function
 * @uar: its number
 */
void qhca_uar_free(struct qhca_dev *dev, u32 uar)
{
	ida_free(&dev->uars, uar / qhca_uars(dev).step);
}
EXPORT_SYMBOL(qhca_uar_free);

/**
 * qhca_uar_phys - physical address of a doorbell page
 * @dev: the function
 * @uar: its number
 *
 * Return: the address. From the page that qhca_uar_alloc() returned on, PAGE_SIZE bytes belong to
 * the caller.
 */
phys_addr_t qhca_uar_phys(struct qhca_dev *dev, u32 uar)
{
	return pci_resource_start(dev->pdev, QHCA_BAR_DB) +
	       (phys_addr_t)uar * dev->db_stride;
}
EXPORT_SYMBOL(qhca_uar_phys);
