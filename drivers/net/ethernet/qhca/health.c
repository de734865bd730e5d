// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca.ko: start, watch and stop the device, and clean up after it has died (see state.c).
 *
 * A dead function stays dead until it is taken down and brought up again: by devlink, which does so
 * on its own unless it was told not to, by a function reset (the file "reset" of the PCI device in
 * sysfs), or by unbinding and binding the driver, which makes another network device.
 */
#include "qhca.h"

/* In each interval an idle device costs one register read. */
#define QHCA_HEALTH_POLL	(2 * HZ)

/* How long unbinding the auxiliary driver may take; less than the hung task timeout. */
#define QHCA_HEALTH_LIMIT	(60 * HZ)

static void qhca_health_work(struct work_struct *work)
{
	struct qhca_dev *dev = container_of(work, struct qhca_dev, health.work);

	dev_err(&dev->pdev->dev, "device failed: %s (reason %#x)\n",
		dev->health.reason, dev->health.fatal);
	qhca_health_quiesce(dev);
	qhca_event(dev, QHCA_EVENT_DEVICE_FATAL, dev->health.fatal);
	schedule_work(&dev->health.report);
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

	qhca_health_die(dev, "its users did not release it in time");
}

/**
 * qhca_health_init - initialise the state that outlives resets
 * @dev: the function, down
 */
void qhca_health_init(struct qhca_dev *dev)
{
	atomic_set(&dev->state, QHCA_DEV_DOWN);
	mutex_init(&dev->health.lock);
	/* The device does not know any memory yet. */
	dev->health.quiesced = true;
	INIT_WORK(&dev->health.work, qhca_health_work);
	INIT_DELAYED_WORK(&dev->health.poll, qhca_health_poll);
	INIT_DELAYED_WORK(&dev->health.limit, qhca_health_limit_work);
}

/**
 * qhca_health_start - start the device, so that commands can be issued
 * @dev: the function, down
 *
 * Return: 0, or a negative errno, and then the device knows no memory.
 */
int qhca_health_start(struct qhca_dev *dev)
{
	int ret;

	WRITE_ONCE(dev->health.quiesced, false);
	ret = qhca_hw_enable(dev);
	if (ret) {
		dev->health.failed = ret == -EIO;
		dev->health.reason = "it does not start";
		dev->health.fatal = qhca_read_reg(dev, QHCA_REG_FATAL);
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
 * qhca_health_unwatch - stop polling the device's status
 * @dev: the function
 *
 * Context: process.
 */
void qhca_health_unwatch(struct qhca_dev *dev)
{
	cancel_delayed_work_sync(&dev->health.poll);
}

/**
 * qhca_health_limit - declare the device dead unless its users release it in time
 * @dev: the function
 *
 * Users may wait for completions that the device owes them. They get them when it is dead.
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
 * qhca_health_stop - take down the device, dead or alive
 * @dev: the function
 *
 * Context: process. Afterwards there is no DMA, no interrupt and no work item.
 */
void qhca_health_stop(struct qhca_dev *dev)
{
	int old = atomic_xchg(&dev->state, QHCA_DEV_DOWN);

	dev->health.failed = old == QHCA_DEV_DEAD;
	qhca_health_unwatch(dev);
	if (old == QHCA_DEV_RUNNING)
		qhca_cmdq_kill(dev);
	qhca_health_quiesce(dev);
	/* A handler that has just seen the device die may not have queued the work yet. */
	qhca_eqs_synchronize(dev);
	cancel_work_sync(&dev->health.work);
}
