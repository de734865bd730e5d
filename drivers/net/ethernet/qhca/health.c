// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca.ko: life and death of the device.
 *
 * A function that fails goes from RUNNING to DEAD once, whatever notices it
 * first: the device's own event, the poll of its status, a command without an
 * answer, an answer that makes no sense, or registers that are gone. From then on
 * no command reaches it. Memory that the device may still access is freed only
 * after qhca_health_quiesce(), which every command to a dead device goes through;
 * so a caller that sees an error, or a destroy that succeeds, may free.
 *
 * A dead function stays dead until it is taken down and up: by unbinding and
 * binding the driver, or by a function reset (the file "reset" of the PCI device
 * in sysfs), which keeps the network device.
 */
#include "qhca.h"
#include "trace.h"

/* Per interval, an idle device costs one register read. */
#define QHCA_HEALTH_POLL	(2 * HZ)

/* How long the auxiliary driver may take to go, before the task it keeps is called hung. */
#define QHCA_HEALTH_LIMIT	(60 * HZ)

/**
 * qhca_is_dead - whether commands and doorbells are useless
 * @dev: the function
 *
 * Context: any.
 * Return: true if it is dead, or down.
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
 * A dead device is not quiet at once. What it has written by then can be seen after
 * this.
 *
 * Context: any.
 * Return: true if it is dead, or down, and DMA has stopped.
 */
bool qhca_is_quiet(struct qhca_dev *dev)
{
	/* Pairs with the release in qhca_health_quiesce(). */
	return smp_load_acquire(&dev->health.quiesced);
}
EXPORT_SYMBOL(qhca_is_quiet);

/**
 * qhca_health_die - the device has failed
 * @dev: the function
 * @reason: what was seen
 *
 * Wakes those who wait for commands; everybody else is told from a work item.
 * Only the first call counts.
 *
 * Context: any.
 */
void qhca_health_die(struct qhca_dev *dev, const char *reason)
{
	if (atomic_cmpxchg(&dev->state, QHCA_DEV_RUNNING, QHCA_DEV_DEAD) !=
	    QHCA_DEV_RUNNING)
		return;

	dev->health.reason = reason;
	/* Read it now: the coming reset clears it. */
	dev->health.fatal = qhca_read_reg(dev, QHCA_REG_FATAL);
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

	/* Even if the device reports that it is reset: it has failed before. */
	pci_clear_master(dev->pdev);
	if (ret && qhca_is_bus_master(dev))
		dev_crit(&dev->pdev->dev, "neither reset nor bus mastering stops DMA\n");
	else if (ret && ret != -ENODEV)
		dev_warn(&dev->pdev->dev, "reset failed, DMA stopped by bus mastering\n");
}

/**
 * qhca_health_quiesce - return when the device touches no memory any more
 * @dev: the function, dead or down
 *
 * Context: process.
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

static void qhca_health_work(struct work_struct *work)
{
	struct qhca_dev *dev = container_of(work, struct qhca_dev, health.work);

	dev_err(&dev->pdev->dev, "device failed: %s (reason %#x)\n",
		dev->health.reason, dev->health.fatal);
	qhca_health_quiesce(dev);
	qhca_event(dev, QHCA_EVENT_DEVICE_FATAL, dev->health.fatal);
}

/**
 * qhca_health_check - look whether the device has failed or been unplugged
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

static void qhca_health_poll(struct work_struct *work)
{
	struct qhca_dev *dev = container_of(to_delayed_work(work), struct qhca_dev,
					    health.poll);

	if (!qhca_health_check(dev))
		return;
	qhca_eqs_check(dev);
	schedule_delayed_work(&dev->health.poll, round_jiffies_relative(QHCA_HEALTH_POLL));
}

static void qhca_health_limit_work(struct work_struct *work)
{
	struct qhca_dev *dev = container_of(to_delayed_work(work), struct qhca_dev,
					    health.limit);

	qhca_health_die(dev, "its users cannot let go of it");
}

/**
 * qhca_health_init - once in the life of @dev
 * @dev: the function, down
 */
void qhca_health_init(struct qhca_dev *dev)
{
	atomic_set(&dev->state, QHCA_DEV_DOWN);
	mutex_init(&dev->health.lock);
	/* The device has been given nothing that it could touch. */
	dev->health.quiesced = true;
	INIT_WORK(&dev->health.work, qhca_health_work);
	INIT_DELAYED_WORK(&dev->health.poll, qhca_health_poll);
	INIT_DELAYED_WORK(&dev->health.limit, qhca_health_limit_work);
}

/**
 * qhca_health_start - start the device; commands are possible from here
 * @dev: the function, down
 *
 * Return: 0 or a negative errno, and the device knows no memory.
 */
int qhca_health_start(struct qhca_dev *dev)
{
	int ret;

	WRITE_ONCE(dev->health.quiesced, false);
	ret = qhca_hw_enable(dev);
	if (ret) {
		qhca_health_quiesce(dev);
		return ret;
	}
	atomic_set(&dev->state, QHCA_DEV_RUNNING);
	return 0;
}

/**
 * qhca_health_watch - start polling the device's status
 * @dev: the function
 */
void qhca_health_watch(struct qhca_dev *dev)
{
	schedule_delayed_work(&dev->health.poll, QHCA_HEALTH_POLL);
}

/**
 * qhca_health_unwatch - stop polling it
 * @dev: the function
 *
 * Context: process.
 */
void qhca_health_unwatch(struct qhca_dev *dev)
{
	cancel_delayed_work_sync(&dev->health.poll);
}

/**
 * qhca_health_limit - give the users of the device a time limit
 * @dev: the function
 *
 * Those who wait for a completion that the device owes them get it when it is dead.
 */
void qhca_health_limit(struct qhca_dev *dev)
{
	schedule_delayed_work(&dev->health.limit, QHCA_HEALTH_LIMIT);
}

/**
 * qhca_health_unlimit - undo qhca_health_limit()
 * @dev: the function
 *
 * Context: process.
 */
void qhca_health_unlimit(struct qhca_dev *dev)
{
	cancel_delayed_work_sync(&dev->health.limit);
}

/**
 * qhca_health_stop - take the device down, dead or alive
 * @dev: the function
 *
 * Context: process. No DMA, no interrupt and no work item follows.
 */
void qhca_health_stop(struct qhca_dev *dev)
{
	int old = atomic_xchg(&dev->state, QHCA_DEV_DOWN);

	qhca_health_unwatch(dev);
	if (old == QHCA_DEV_RUNNING)
		qhca_cmdq_kill(dev);
	qhca_health_quiesce(dev);
	/* A handler that has just seen the device die may not have queued the work yet. */
	qhca_eqs_synchronize(dev);
	cancel_work_sync(&dev->health.work);
}
