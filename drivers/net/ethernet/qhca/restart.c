// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: the device and its users up and down. */
#include "qhca.h"

/**
 * qhca_dev_up - reset the device and bring it up, for its users
 * @dev: the function, down
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int qhca_dev_up(struct qhca_dev *dev)
{
	int ret;

	dev->health.failed = false;
	/* An earlier driver or kernel may have left the device running. */
	ret = qhca_hw_reset(dev);
	if (ret)
		return dev_err_probe(&dev->pdev->dev, ret, "no reset\n");
	ret = qhca_cmdq_init(dev);
	if (ret)
		return ret;
	ret = qhca_irqs_init(dev);
	if (ret)
		goto err_cmdq;
	pci_set_master(dev->pdev);
	ret = qhca_health_start(dev);
	if (ret)
		goto err_irqs;
	ret = qhca_limits_query(dev);
	if (ret)
		goto err_health;
	ret = qhca_cc_restore(dev);
	if (ret)
		goto err_health;
	qhca_shadow_init(dev);
	ret = qhca_eqs_create(dev);
	if (ret)
		goto err_shadow;
	qhca_health_watch(dev);
	qhca_faults_add(dev);
	dev->up = true;
	return 0;

err_shadow:
	qhca_shadow_cleanup(dev);
err_health:
	qhca_health_stop(dev);
err_irqs:
	pci_clear_master(dev->pdev);
	qhca_irqs_cleanup(dev);
err_cmdq:
	qhca_cmdq_cleanup(dev);
	return ret;
}

/**
 * qhca_dev_down - undo qhca_dev_up(), if that is not done yet
 * @dev: the function, without users
 *
 * Context: process.
 */
void qhca_dev_down(struct qhca_dev *dev)
{
	if (!dev->up)
		return;
	dev->up = false;
	qhca_faults_del(dev);
	qhca_health_unwatch(dev);
	qhca_eqs_destroy(dev);
	qhca_shadow_cleanup(dev);
	qhca_health_stop(dev);
	pci_clear_master(dev->pdev);
	qhca_irqs_cleanup(dev);
	qhca_cmdq_cleanup(dev);
	WARN_ON(!xa_empty(&dev->cqs));
}

/**
 * qhca_detach - take down everything that a reset of the function destroys
 * @dev: the function
 *
 * Context: process, under qhca_lock().
 */
void qhca_detach(struct qhca_dev *dev)
{
	if (dev->up)
		qhca_clock_mark(dev);
	qhca_adev_del(dev);
	qhca_netdev_suspend(dev);
	qhca_dev_down(dev);
}

/**
 * qhca_may_start - whether the function may be brought up
 * @dev: the function
 *
 * Between qhca_reset_prepare() and the reset, and while memory is saved, the device must not be
 * started, whatever happens to it.
 *
 * Context: process, under qhca_lock().
 * Return: 0, -EBUSY until the PCI core lets it go on, or -ESHUTDOWN.
 */
int qhca_may_start(const struct qhca_dev *dev)
{
	if (dev->shut)
		return -ESHUTDOWN;
	return dev->held ? -EBUSY : 0;
}

/**
 * qhca_attach - bring the device up again with all its users, or not at all
 * @dev: the function, after qhca_detach()
 *
 * Context: process, under qhca_lock().
 * Return: 0 or a negative errno.
 */
int qhca_attach(struct qhca_dev *dev)
{
	int ret = qhca_may_start(dev);

	if (ret)
		return ret;
	ret = qhca_dev_up(dev);
	if (ret)
		return ret;
	qhca_clock_resume(dev);
	ret = qhca_netdev_resume(dev);
	if (ret)
		goto err_dev;
	ret = qhca_adev_add(dev);
	if (ret)
		goto err_netdev;
	return 0;

err_netdev:
	qhca_netdev_suspend(dev);
err_dev:
	qhca_dev_down(dev);
	return ret;
}
