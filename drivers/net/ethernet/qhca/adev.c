// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca.ko: the auxiliary device that qhca_ib binds to, and the facts about the function that it
 * needs.
 */
#include <linux/slab.h>

#include "qhca.h"

/* Numbers of the auxiliary devices, unique over all functions. */
static DEFINE_IDA(qhca_adev_ids);

static void qhca_adev_release(struct device *d)
{
	struct qhca_adev *qadev = container_of(d, struct qhca_adev, adev.dev);

	ida_free(&qhca_adev_ids, qadev->adev.id);
	kfree(qadev);
}

/**
 * qhca_adev_add - publish the auxiliary device
 * @dev: the function, running, with its netdev registered
 *
 * Context: process. A driver may already be bound when this returns.
 *
 * Return: 0 or a negative errno.
 */
int qhca_adev_add(struct qhca_dev *dev)
{
	struct qhca_adev *qadev;
	int ret, id;

	qadev = kzalloc_obj(*qadev);
	if (!qadev)
		return -ENOMEM;
	id = ida_alloc(&qhca_adev_ids, GFP_KERNEL);
	if (id < 0) {
		kfree(qadev);
		return id;
	}

	qadev->dev = dev;
	qadev->adev.id = id;
	qadev->adev.name = QHCA_RDMA_DEV_NAME;
	qadev->adev.dev.parent = &dev->pdev->dev;
	qadev->adev.dev.release = qhca_adev_release;
	ret = auxiliary_device_init(&qadev->adev);
	if (ret) {
		ida_free(&qhca_adev_ids, id);
		kfree(qadev);
		return ret;
	}

	ret = auxiliary_device_add(&qadev->adev);
	if (ret) {
		auxiliary_device_uninit(&qadev->adev);
		return ret;
	}
	dev->adev = qadev;
	return 0;
}

/**
 * qhca_adev_del - withdraw the auxiliary device; afterwards no driver is bound to it
 * @dev: the function
 */
void qhca_adev_del(struct qhca_dev *dev)
{
	if (!dev->adev)
		return;
	qhca_health_limit(dev);
	auxiliary_device_delete(&dev->adev->adev);
	qhca_health_unlimit(dev);
	auxiliary_device_uninit(&dev->adev->adev);
	dev->adev = NULL;
}

/**
 * qhca_pdev - the PCI device of a function
 * @dev: the function
 *
 * Return: the device, without a reference.
 */
struct pci_dev *qhca_pdev(struct qhca_dev *dev)
{
	return dev->pdev;
}
EXPORT_SYMBOL(qhca_pdev);

/**
 * qhca_netdev - the network device of a function's port
 * @dev: the function
 *
 * Return: the netdev, without a reference: it outlives the auxiliary device.
 */
struct net_device *qhca_netdev(struct qhca_dev *dev)
{
	return dev->netdev;
}
EXPORT_SYMBOL(qhca_netdev);
