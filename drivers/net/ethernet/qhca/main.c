// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca.ko: the PCI function, from probe() to remove().
 *
 * Three layers, each undone in the opposite order:
 *   PCI resources	as long as the driver is bound
 *   the device up	command queue, interrupts, event queues
 *   its users		the netdev, which sleeps while the device is down, and the
 *			auxiliary device, which is removed
 *
 * Reset, PCI errors, loss of power and devlink take the upper two down and up again (restart.c).
 */
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <linux/suspend.h>

#include "qhca.h"

static bool qhca_bar_ok(struct pci_dev *pdev, int bar, resource_size_t min_len)
{
	return pci_resource_flags(pdev, bar) & IORESOURCE_MEM &&
	       pci_resource_len(pdev, bar) >= min_len;
}

static int qhca_map_bars(struct qhca_dev *dev)
{
	struct pci_dev *pdev = dev->pdev;

	if (!qhca_bar_ok(pdev, QHCA_BAR_REGS, QHCA_BAR_REGS_SIZE) ||
	    !qhca_bar_ok(pdev, QHCA_BAR_DB, QHCA_DB_PAGE_SIZE))
		return dev_err_probe(&pdev->dev, -ENODEV, "BARs too small, or not of memory\n");

	dev->regs = ioremap(pci_resource_start(pdev, QHCA_BAR_REGS), QHCA_BAR_REGS_SIZE);
	if (!dev->regs)
		return -ENOMEM;
	/* Map only page 0, the kernel's own; the other pages are mapped into processes. */
	dev->db = ioremap(qhca_uar_phys(dev, 0), QHCA_DB_PAGE_SIZE);
	if (!dev->db) {
		iounmap(dev->regs);
		return -ENOMEM;
	}
	return 0;
}

static void qhca_unmap_bars(struct qhca_dev *dev)
{
	iounmap(dev->db);
	iounmap(dev->regs);
}

static int qhca_pci_init(struct qhca_dev *dev)
{
	struct pci_dev *pdev = dev->pdev;
	int ret;

	ret = pci_enable_device_mem(pdev);
	if (ret)
		return ret;
	ret = pci_request_mem_regions(pdev, QHCA_DRV_NAME);
	if (ret)
		goto err_disable;
	/* 63 bits, because QHCA_ADDR_DM, bit 63, marks an address in device memory. */
	ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(63));
	if (ret)
		goto err_regions;
	dma_set_max_seg_size(&pdev->dev, U32_MAX);
	ret = qhca_map_bars(dev);
	if (ret)
		goto err_regions;
	pci_save_state(pdev);	/* for qhca_slot_reset() */
	return 0;

err_regions:
	pci_release_mem_regions(pdev);
err_disable:
	pci_disable_device(pdev);
	return ret;
}

static void qhca_pci_cleanup(struct qhca_dev *dev)
{
	qhca_unmap_bars(dev);
	pci_release_mem_regions(dev->pdev);
	pci_disable_device(dev->pdev);
}

static struct qhca_dev *qhca_dev_alloc(struct pci_dev *pdev)
{
	struct qhca_dev *dev = qhca_devlink_alloc(pdev);

	if (!dev)
		return NULL;
	dev->pdev = pdev;
	ida_init(&dev->uars);
	ida_init(&dev->slots);
	xa_init(&dev->cqs);
	ATOMIC_INIT_NOTIFIER_HEAD(&dev->events);
	spin_lock_init(&dev->clock_lock);
	qhca_health_init(dev);
	qhca_cc_init(dev);
	pci_set_drvdata(pdev, dev);
	return dev;
}

static void qhca_dev_free(struct qhca_dev *dev)
{
	ida_destroy(&dev->slots);
	ida_destroy(&dev->uars);
	xa_destroy(&dev->cqs);
	qhca_devlink_free(dev);
}

static int qhca_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct qhca_dev *dev;
	int ret;

	dev = qhca_dev_alloc(pdev);
	if (!dev)
		return -ENOMEM;
	ret = qhca_pci_init(dev);
	if (ret)
		goto err_free;
	ret = qhca_hw_identify(dev);
	if (!ret)
		ret = qhca_uars_init(dev);
	if (ret)
		goto err_pci;
	ret = qhca_dev_up(dev);
	if (ret)
		goto err_pci;
	ret = qhca_clock_init(dev);
	if (ret)
		goto err_dev;
	ret = qhca_netdev_register(dev);
	if (ret)
		goto err_clock;
	ret = qhca_adev_add(dev);
	if (ret)
		goto err_netdev;
	ret = qhca_devlink_register(dev);
	if (ret)
		goto err_adev;
	return 0;

err_adev:
	qhca_adev_del(dev);
err_netdev:
	qhca_netdev_unregister(dev);
err_clock:
	qhca_clock_cleanup(dev);
err_dev:
	qhca_dev_down(dev);
err_pci:
	qhca_pci_cleanup(dev);
err_free:
	qhca_dev_free(dev);
	return ret;
}

static void qhca_remove(struct pci_dev *pdev)
{
	struct qhca_dev *dev = pci_get_drvdata(pdev);

	qhca_devlink_unregister(dev);
	/* Notice an unplugged device now, not when the first command times out. */
	qhca_health_check(dev);
	qhca_adev_del(dev);
	qhca_netdev_unregister(dev);
	qhca_clock_cleanup(dev);
	qhca_dev_down(dev);
	qhca_pci_cleanup(dev);
	qhca_dev_free(dev);
}

/* Stop DMA into the next kernel. Users stay bound, and find the device dead. */
static void qhca_shutdown(struct pci_dev *pdev)
{
	struct qhca_dev *dev = pci_get_drvdata(pdev);

	qhca_lock(dev);
	dev->shut = true;
	if (dev->up) {
		rtnl_lock();
		netif_device_detach(dev->netdev);
		rtnl_unlock();
		qhca_health_stop(dev);
		pci_clear_master(pdev);
	}
	qhca_unlock(dev);
}

/* Take the device down; it stays down until qhca_restart(). */
static void qhca_stop(struct qhca_dev *dev)
{
	qhca_lock(dev);
	dev->held = true;
	qhca_detach(dev);
	qhca_unlock(dev);
}

static int qhca_restart_locked(struct qhca_dev *dev)
{
	int ret;

	dev->held = false;
	qhca_detach(dev);
	ret = qhca_attach(dev);
	qhca_devlink_started(dev, ret);
	return ret;
}

static int qhca_restart(struct qhca_dev *dev)
{
	int ret;

	qhca_lock(dev);
	ret = qhca_restart_locked(dev);
	qhca_unlock(dev);
	return ret;
}

/* From here on the auxiliary device must not be added, which a restart does. */
static int qhca_prepare(struct device *d)
{
	struct qhca_dev *dev = dev_get_drvdata(d);

	qhca_lock(dev);
	dev->held = true;
	qhca_unlock(dev);
	return 0;
}

/*
 * Only a suspend via the firmware removes the device's power. In suspend to idle the device stays
 * in D0 and goes on: no doorbell rings, but peers may write, and outstanding work completes.
 * Contexts and connections survive.
 */
static int qhca_suspend(struct device *d)
{
	struct qhca_dev *dev = dev_get_drvdata(d);

	if (pm_suspend_via_firmware()) {
		qhca_stop(dev);
		return 0;
	}
	qhca_health_unwatch(dev);
	/* If the driver saves the state itself, the PCI core leaves the function alone. */
	pci_save_state(dev->pdev);
	return 0;
}

static int qhca_resume(struct device *d)
{
	struct qhca_dev *dev = dev_get_drvdata(d);
	int ret = 0;

	qhca_lock(dev);
	/* Restart a function that was taken down or has failed; otherwise go on. */
	if (dev->up && qhca_health_check(dev)) {
		dev->held = false;
		qhca_health_watch(dev);
	} else {
		ret = qhca_restart_locked(dev);
	}
	qhca_unlock(dev);
	return ret;
}

/* Nothing was suspended if another device was not ready for it. */
static void qhca_complete(struct device *d)
{
	struct qhca_dev *dev = dev_get_drvdata(d);

	if (dev->held)
		qhca_resume(d);
}

static int qhca_freeze(struct device *d)
{
	/*
	 * No DMA may change memory while the image is made; before it is restored another kernel
	 * runs.
	 */
	qhca_stop(dev_get_drvdata(d));
	return 0;
}

static const struct dev_pm_ops qhca_pm_ops = {
	.prepare = pm_sleep_ptr(qhca_prepare),
	.complete = pm_sleep_ptr(qhca_complete),
	.suspend = pm_sleep_ptr(qhca_suspend),
	.resume = pm_sleep_ptr(qhca_resume),
	.freeze = pm_sleep_ptr(qhca_freeze),
	.thaw = pm_sleep_ptr(qhca_resume),
	.poweroff = pm_sleep_ptr(qhca_freeze),
	.restore = pm_sleep_ptr(qhca_resume),
};

static void qhca_reset_prepare(struct pci_dev *pdev)
{
	struct qhca_dev *dev = pci_get_drvdata(pdev);

	qhca_health_check(dev);
	qhca_stop(dev);
}

static void qhca_reset_done(struct pci_dev *pdev)
{
	int ret = qhca_restart(pci_get_drvdata(pdev));

	if (ret)
		pci_err(pdev, "cannot restart after reset: %d\n", ret);
}

static pci_ers_result_t qhca_error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	struct qhca_dev *dev = pci_get_drvdata(pdev);

	qhca_health_die(dev, "PCI error");
	qhca_stop(dev);
	return state == pci_channel_io_perm_failure ? PCI_ERS_RESULT_DISCONNECT :
						      PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t qhca_slot_reset(struct pci_dev *pdev)
{
	pci_restore_state(pdev);
	pci_save_state(pdev);	/* restoring has used it up */
	return PCI_ERS_RESULT_RECOVERED;
}

static const struct pci_error_handlers qhca_err_handlers = {
	.error_detected = qhca_error_detected,
	.slot_reset = qhca_slot_reset,
	.resume = qhca_reset_done,
	.reset_prepare = qhca_reset_prepare,
	.reset_done = qhca_reset_done,
};

static const struct pci_device_id qhca_pci_ids[] = {
	{ PCI_DEVICE(QHCA_PCI_VENDOR_ID, QHCA_PCI_DEVICE_ID) },
	{ }
};
MODULE_DEVICE_TABLE(pci, qhca_pci_ids);

static struct pci_driver qhca_pci_driver = {
	.name = QHCA_DRV_NAME,
	.id_table = qhca_pci_ids,
	.probe = qhca_probe,
	.remove = qhca_remove,
	.shutdown = qhca_shutdown,
	.err_handler = &qhca_err_handlers,
	.driver.pm = pm_sleep_ptr(&qhca_pm_ops),
};

static int __init qhca_init(void)
{
	int ret;

	qhca_faults_init();
	ret = pci_register_driver(&qhca_pci_driver);
	if (ret)
		qhca_faults_exit();
	return ret;
}
module_init(qhca_init);

static void __exit qhca_exit(void)
{
	pci_unregister_driver(&qhca_pci_driver);
	qhca_faults_exit();
}
module_exit(qhca_exit);

MODULE_DESCRIPTION("QHCA virtual RDMA host channel adapter: PCI function and Ethernet");
MODULE_LICENSE("Dual BSD/GPL");
