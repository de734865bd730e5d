// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca.ko: whether the device is alive.
 *
 * A function that fails goes from RUNNING to DEAD once, whatever notices it first: the device's own
 * event, the poll of its status, a command without an answer, an answer that makes no sense, or
 * registers that are gone. From then on no command reaches it. Memory that the device may still
 * access is freed only after qhca_health_quiesce(), which every command to a dead device calls; so
 * a caller that sees an error, or a destroy that succeeds, may free memory.
 *
 * All code that talks to the device is above this file and may report a failure; only the registers
 * and the slots of the command queue are below. health.c, at the top, acts on the failure.
 */
#include "qhca.h"
#include "trace.h"

/**
 * qhca_is_dead - whether commands and doorbells are useless
 * @dev: the function
 *
 * Context: any.
 * Return: true if the device is dead or down.
 */
bool qhca_is_dead(struct qhca_dev *dev)
{
	return atomic_read(&dev->state) != QHCA_DEV_RUNNING;
}
EXPORT_SYMBOL(qhca_is_dead);

/**
 * qhca_is_quiet - whether the device touches no memory any more
 * @dev: the function
 *
 * A dead device is not quiet immediately. When this returns true, everything that the device has
 * written is visible.
 *
 * Context: any.
 * Return: true if the device is dead or down, and DMA has stopped.
 */
bool qhca_is_quiet(struct qhca_dev *dev)
{
	/* Pairs with the release in qhca_health_quiesce(). */
	return smp_load_acquire(&dev->health.quiesced);
}
EXPORT_SYMBOL(qhca_is_quiet);

/**
 * qhca_health_die - declare the device dead
 * @dev: the function
 * @reason: failure that was seen, for the log
 *
 * Wakes callers that wait for commands; a work item informs all others. Only the first call has an
 * effect.
 *
 * Context: any.
 */
void qhca_health_die(struct qhca_dev *dev, const char *reason)
{
	if (atomic_cmpxchg(&dev->state, QHCA_DEV_RUNNING, QHCA_DEV_DEAD) !=
	    QHCA_DEV_RUNNING)
		return;

	dev->health.reason = reason;
	/* Read it now, because the coming reset clears it. */
	dev->health.fatal = qhca_read_reg(dev, QHCA_REG_FATAL);
	dev->health.status = qhca_read_reg(dev, QHCA_REG_STATUS);
	dev->health.cmd_progress = qhca_read_reg(dev, QHCA_REG_CMD_PROGRESS);
	trace_qhca_dead(dev, dev->health.fatal);
	schedule_work(&dev->health.work);
	qhca_cmdq_kill(dev);
}
EXPORT_SYMBOL(qhca_health_die);

/* Whether the function can still reach memory, as far as PCI can tell. */
static bool qhca_is_bus_master(struct qhca_dev *dev)
{
	u16 command;

	pci_read_config_word(dev->pdev, PCI_COMMAND, &command);
	return command != U16_MAX && (command & PCI_COMMAND_MASTER);
}

static void qhca_stop_dma(struct qhca_dev *dev)
{
	int ret = qhca_hw_reset(dev);

	/* Do not rely on a reset that the device reports: it has failed before. */
	pci_clear_master(dev->pdev);
	if (ret && qhca_is_bus_master(dev))
		dev_crit(&dev->pdev->dev, "neither reset nor bus mastering stops DMA\n");
	else if (ret && ret != -ENODEV)
		dev_warn(&dev->pdev->dev, "reset failed, DMA stopped by bus mastering\n");
}

/**
 * qhca_health_quiesce - stop DMA of a dead device
 * @dev: the function, dead or down
 *
 * Context: process. When this returns, the device touches no memory any more.
 */
void qhca_health_quiesce(struct qhca_dev *dev)
{
	mutex_lock(&dev->health.lock);
	if (!dev->health.quiesced) {
		qhca_stop_dma(dev);
		/* Pairs with the acquire in qhca_is_quiet(). */
		smp_store_release(&dev->health.quiesced, true);
	}
	mutex_unlock(&dev->health.lock);
}
EXPORT_SYMBOL(qhca_health_quiesce);

/**
 * qhca_health_check - check whether the device has failed or been unplugged
 * @dev: the function
 *
 * Context: any.
 * Return: whether it is running.
 */
bool qhca_health_check(struct qhca_dev *dev)
{
	u32 status = qhca_read_reg(dev, QHCA_REG_STATUS);

	if (FIELD_GET(QHCA_STATUS_STATE, status) == QHCA_STATE_RUNNING)
		return true;
	qhca_health_die(dev, qhca_hw_present(dev) ? "it has stopped" : "it is gone");
	return false;
}
