// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: doorbells of page 0 in memory, struct qhca_shadow. */
#include <linux/bitops.h>

#include "qhca.h"

/* Three pages. */
#define QHCA_SHADOW_SLOTS	1408

/**
 * qhca_shadow_init - let the device look for doorbells in memory, if it does
 * @dev: the function, its command queue running
 *
 * Without the memory for it, all doorbells are those in BAR 2.
 *
 * Context: process.
 */
void qhca_shadow_init(struct qhca_dev *dev)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_CREATE_SHADOW),
		.create_shadow.slots = cpu_to_le32(QHCA_SHADOW_SLOTS),
	};
	struct qhca_ring_mem *mem = &dev->shadow_mem;
	int ret;

	if (!(dev->limits.caps & QHCA_CAP_SHADOW))
		return;
	ret = qhca_ring_mem_alloc(dev, mem,
				  offsetof(struct qhca_shadow, slot[QHCA_SHADOW_SLOTS]),
				  &cmd.create_shadow.buf);
	if (ret)
		return;
	ret = qhca_cmd_exec(dev, &cmd, NULL, NULL);
	if (ret) {
		qhca_ring_mem_free(dev, mem);
		return;
	}
	dev->shadow = mem->va;
}

/**
 * qhca_shadow_cleanup - undo qhca_shadow_init()
 * @dev: the function, whose doorbells are not rung any more
 *
 * Context: process.
 */
void qhca_shadow_cleanup(struct qhca_dev *dev)
{
	if (!dev->shadow)
		return;
	qhca_cmd_destroy(dev, QHCA_CMD_DESTROY_SHADOW, 0);
	dev->shadow = NULL;
	qhca_ring_mem_free(dev, &dev->shadow_mem);
}

/**
 * qhca_db_slot_get - allocate a slot for the doorbells of a queue
 * @dev: the function
 *
 * Context: process.
 *
 * Return: its number, or QHCA_NO_SLOT if there are no slots, or no more.
 */
int qhca_db_slot_get(struct qhca_dev *dev)
{
	int slot;

	if (!dev->shadow)
		return QHCA_NO_SLOT;
	slot = ida_alloc_max(&dev->slots, QHCA_SHADOW_SLOTS - 1, GFP_KERNEL);
	return slot < 0 ? QHCA_NO_SLOT : slot;
}
EXPORT_SYMBOL(qhca_db_slot_get);

/**
 * qhca_db_slot_put - free a slot
 * @dev: the function
 * @slot: the slot, or QHCA_NO_SLOT
 */
void qhca_db_slot_put(struct qhca_dev *dev, int slot)
{
	if (slot != QHCA_NO_SLOT)
		ida_free(&dev->slots, slot);
}
EXPORT_SYMBOL(qhca_db_slot_put);

/**
 * qhca_ring_slot - ring a doorbell of page 0 in memory
 * @dev: the function
 * @slot: the queue's; QHCA_NO_SLOT: write to BAR 2
 * @offset: of the doorbell in BAR 2
 * @value: as for qhca_ring()
 *
 * Everything written to memory before is visible to the device.
 *
 * Context: any; calls for one slot must be serialised.
 */
void qhca_ring_slot(struct qhca_dev *dev, int slot, unsigned int offset, u64 value)
{
	struct qhca_shadow *shadow = dev->shadow;

	if (slot == QHCA_NO_SLOT || !shadow) {
		qhca_ring(dev, offset, value);
		return;
	}
	dma_wmb();
	WRITE_ONCE(shadow->slot[slot],
		   cpu_to_le64(value | FIELD_PREP(QHCA_DB_KIND, offset / sizeof(u64))));
	/*
	 * The device clears bits, and then reads what they stand for. It is another CPU even where
	 * this machine has a single one, hence virt_*().
	 */
	virt_wmb();
	set_bit_le(slot, shadow->rung);
	/* And the bit in @look before it reads @rung. */
	virt_wmb();
	set_bit_le(slot / 64, &shadow->look);
	/* The device sets @ask, and then looks once more. */
	virt_mb();
	if (READ_ONCE(shadow->ask))
		qhca_ring(dev, QHCA_DB_SHADOW, 0);
}
EXPORT_SYMBOL(qhca_ring_slot);
