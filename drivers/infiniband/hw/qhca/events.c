// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: asynchronous events, from the device to consumers.
 *
 * Events of QPs and SRQs are stored in the object (qp_events.c, srq.c). Events of the port and the
 * device follow from the state that the work item finds, so PORT_ACTIVE and PORT_ERR alternate in
 * whichever order netdev and device report.
 */
#include <linux/ethtool.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>

#include "qhca_ib.h"

static int qhca_ib_event(struct notifier_block *nb, unsigned long type, void *data)
{
	struct qhca_ib_dev *dev = container_of(nb, struct qhca_ib_dev, events_nb);
	const u32 *obj = data;

	switch (type) {
	case QHCA_EVENT_QP_FATAL:
	case QHCA_EVENT_PAGE_FAULT:
		qhca_ib_rwq_event(dev, type, *obj);
		fallthrough;
	case QHCA_EVENT_QP_FATAL + 1 ... QHCA_EVENT_LAST_WQE_REACHED:
		qhca_ib_qp_event(dev, type, *obj);
		return NOTIFY_OK;
	case QHCA_EVENT_SRQ_LIMIT_REACHED:
	case QHCA_EVENT_SRQ_ERR:
		qhca_ib_srq_event(dev, type, *obj);
		return NOTIFY_OK;
	case QHCA_EVENT_DEVICE_FATAL:
		queue_work(dev->wq, &dev->flush_work);
		fallthrough;
	case QHCA_EVENT_LINK_UP:
	case QHCA_EVENT_LINK_DOWN:
		schedule_work(&dev->port_work);
		return NOTIFY_OK;
	default:
		return NOTIFY_DONE;
	}
}

static void qhca_ib_dispatch(struct qhca_ib_dev *dev, enum ib_event_type type)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.element.port_num = QHCA_IB_PORT,
		.event = type,
	};

	ib_dispatch_event(&event);
}

/*
 * Older kernels have no such event; programs find the new speed when they query the port. A port
 * without carrier has no speed. As in query_port, the speed of the interface counts.
 */
static void qhca_ib_check_speed(struct qhca_ib_dev *dev)
{
#ifdef QHCA_HAVE_SPEED_EVENT
	struct ethtool_link_ksettings settings = {};
	u32 speed;
	int ret;

	rtnl_lock();
	ret = __ethtool_get_link_ksettings(dev->ndev, &settings);
	rtnl_unlock();
	speed = settings.base.speed;
	if (ret || speed == (u32)SPEED_UNKNOWN || speed == dev->port_speed)
		return;
	if (dev->port_speed)
		qhca_ib_dispatch(dev, IB_EVENT_DEVICE_SPEED_CHANGE);
	dev->port_speed = speed;
#endif
}

static void qhca_ib_port_work(struct work_struct *work)
{
	struct qhca_ib_dev *dev = container_of(work, struct qhca_ib_dev, port_work);
	bool active = qhca_ib_port_is_active(dev);

	/* No event before registration and none after it ended. */
	if (!READ_ONCE(dev->announce))
		return;
	if (active != dev->port_active) {
		dev->port_active = active;
		qhca_ib_dispatch(dev, active ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR);
	}
	if (active)
		qhca_ib_check_speed(dev);
	/* If a dead device is not quiet yet, DEVICE_FATAL follows when it is. */
	if (qhca_is_quiet(dev->core) && !dev->fatal_told) {
		dev->fatal_told = true;
		/*
		 * DEVICE_FATAL must stay the last event. The core dispatches each event from a work
		 * item of its own and keeps no pointer to it, so wait for the items of all devices,
		 * as ib_core does when it unregisters one. This happens once for each device, and
		 * none of those items waits for this one.
		 */
		flush_workqueue(ib_wq);
		qhca_ib_dispatch(dev, IB_EVENT_DEVICE_FATAL);
	}
}

static int qhca_ib_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct qhca_ib_dev *dev = container_of(nb, struct qhca_ib_dev, netdev_nb);
	struct net_device *ndev = netdev_notifier_info_to_dev(ptr);

	switch (event) {
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		if (ndev != dev->ndev)
			return NOTIFY_DONE;
		schedule_work(&dev->port_work);
		return NOTIFY_OK;
	case NETDEV_CHANGEADDR:
		/* GIDs of a VLAN or a bond above the netdev use its address. */
		if (ndev != dev->ndev && !netdev_has_upper_dev(dev->ndev, ndev))
			return NOTIFY_DONE;
		schedule_work(&dev->gid_work);
		return NOTIFY_OK;
	default:
		return NOTIFY_DONE;
	}
}

/**
 * qhca_ib_report_port_event - report_port_event verb: the state of the netdev has changed
 * @ibdev: the HCA
 * @ndev: the netdev of the port, or one on top of it
 * @event: NETDEV_UP, NETDEV_DOWN or NETDEV_CHANGE
 *
 * Without this function the core would dispatch port events itself, but it looks only at the
 * netdev, and the port is also down when the device is dead.
 */
void qhca_ib_report_port_event(struct ib_device *ibdev, struct net_device *ndev,
			       unsigned long event)
{
	schedule_work(&to_qdev(ibdev)->port_work);
}

/**
 * qhca_ib_events_init - prepare for events of QPs and SRQs
 * @dev: the HCA, not registered yet
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_events_init(struct qhca_ib_dev *dev)
{
	int ret;

	xa_init_flags(&dev->qps, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->srqs, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->rwqs, XA_FLAGS_LOCK_IRQ);
	/* Not taken in hard IRQ, but in the same lock class as the two above. */
	xa_init_flags(&dev->targets, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->odps, XA_FLAGS_LOCK_IRQ);
	INIT_WORK(&dev->port_work, qhca_ib_port_work);
	INIT_WORK(&dev->gid_work, qhca_ib_gid_work);
	INIT_WORK(&dev->flush_work, qhca_ib_flush_work);
	/* To free memory, consumers destroy QPs, and wait for the events of the QP. */
	dev->wq = alloc_ordered_workqueue("qhca_ib", WQ_MEM_RECLAIM);
	dev->odp_wq = alloc_workqueue("qhca_ib_odp", WQ_UNBOUND | WQ_HIGHPRI, 0);
	if (!dev->wq || !dev->odp_wq) {
		ret = -ENOMEM;
		goto err;
	}
	dev->events_nb.notifier_call = qhca_ib_event;
	ret = qhca_register_events(dev->core, &dev->events_nb);
	if (!ret)
		return 0;
err:
	if (dev->odp_wq)
		destroy_workqueue(dev->odp_wq);
	if (dev->wq)
		destroy_workqueue(dev->wq);
	return ret;
}

/**
 * qhca_ib_events_cleanup - undo qhca_ib_events_init()
 * @dev: the HCA, not registered any more
 */
void qhca_ib_events_cleanup(struct qhca_ib_dev *dev)
{
	qhca_unregister_events(dev->core, &dev->events_nb);
	cancel_work_sync(&dev->port_work);
	destroy_workqueue(dev->odp_wq);
	destroy_workqueue(dev->wq);
	qhca_ib_pager_put(dev->pager);
	xa_destroy(&dev->odps);
	xa_destroy(&dev->qps);
	xa_destroy(&dev->rwqs);
	xa_destroy(&dev->srqs);
	xa_destroy(&dev->targets);
}

/**
 * qhca_ib_announce - start to dispatch events of the port and the device
 * @dev: the HCA, registered
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_announce(struct qhca_ib_dev *dev)
{
	int ret;

	dev->netdev_nb.notifier_call = qhca_ib_netdev_event;
	ret = register_netdevice_notifier(&dev->netdev_nb);
	if (ret)
		return ret;
	WRITE_ONCE(dev->announce, true);
	/* The port may be up already, or the device dead. */
	schedule_work(&dev->port_work);
	return 0;
}

/**
 * qhca_ib_silence - undo qhca_ib_announce()
 * @dev: the HCA, still registered
 */
void qhca_ib_silence(struct qhca_ib_dev *dev)
{
	unregister_netdevice_notifier(&dev->netdev_nb);
	WRITE_ONCE(dev->announce, false);
	cancel_work_sync(&dev->port_work);
	cancel_work_sync(&dev->gid_work);
}
