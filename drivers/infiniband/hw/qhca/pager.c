// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: on-demand paging: who provides pages, and in which order. Each user context that
 * registers memory on demand has a pager: a work queue that works on a few requests at a time, in
 * their order. A request that waits for memory for ever so delays no other context, and a request
 * that was begun has a life of its own: regions, QPs, contexts and the device go without waiting
 * for it.
 *
 * A pager whose context has gone exists as long as its requests, and takes workers. So the number
 * of pagers is bounded, and shared out like other scarce things (charge.c).
 */
#include <linux/module.h>

#include "odp.h"

/* How many pagers there may be, on all devices. */
#define QHCA_IB_PAGERS_MAX	1024
/* Requests that a pager works on concurrently; only one if it was made while there were so many. */
#define QHCA_IB_PAGER_WORKERS	8
#define QHCA_IB_PAGERS_CROWD	128

/**
 * struct qhca_ib_pager - provides the pages of regions of a user context
 * @ref: the context has one, and each region
 * @wq: works on its requests
 * @end: frees it, as a worker of @wq cannot
 * @node: in the list of all pagers
 * @dev: the device whose objects it is charged as; NULL if it is not charged
 * @charge: the charge for it
 */
struct qhca_ib_pager {
	struct kref ref;
	struct workqueue_struct *wq;
	struct work_struct end;
	struct list_head node;
	struct qhca_ib_dev *dev;
	struct qhca_ib_charge charge;
};

/* Protects what follows, the charges of all pagers, and the making of one. */
static DEFINE_MUTEX(qhca_ib_pagers_lock);
static LIST_HEAD(qhca_ib_pagers);
static unsigned int qhca_ib_num_pagers;

/* Ends pagers. For all devices, as pagers may outlive a device. */
static struct workqueue_struct *qhca_ib_pagers_wq;

/* Takes its own work queue down, so it runs in another one. */
static void qhca_ib_pager_end(struct work_struct *work)
{
	struct qhca_ib_pager *pager = container_of(work, struct qhca_ib_pager, end);

	/* Its last worker may not have returned to the kernel yet. */
	destroy_workqueue(pager->wq);
	mutex_lock(&qhca_ib_pagers_lock);
	list_del(&pager->node);
	qhca_ib_num_pagers--;
	if (pager->dev)
		qhca_ib_uncharge_all(pager->dev, &pager->charge);
	mutex_unlock(&qhca_ib_pagers_lock);
	kfree(pager);
}

/* Make a pager. Called with the lock. */
static struct qhca_ib_pager *qhca_ib_pager_new(struct qhca_ib_dev *dev, bool user)
{
	unsigned int workers = qhca_ib_num_pagers < QHCA_IB_PAGERS_CROWD ?
			       QHCA_IB_PAGER_WORKERS : 1;
	struct qhca_ib_pager *pager;
	int ret = -ENOMEM;

	if (READ_ONCE(dev->leaving))
		return ERR_PTR(-EIO);
	if (qhca_ib_num_pagers == QHCA_IB_PAGERS_MAX)
		return ERR_PTR(qhca_ib_refuse(dev, -ENOMEM, "ODP: too many wait for pages"));
	pager = kzalloc_obj(*pager, GFP_KERNEL_ACCOUNT);
	if (!pager)
		return ERR_PTR(-ENOMEM);
	if (user) {
		ret = qhca_ib_charge(dev, &pager->charge, 1, QHCA_IB_PAGERS_MAX);
		if (ret)
			goto err;
		pager->dev = dev;
	}
	pager->wq = alloc_workqueue("qhca_ib_pager", WQ_UNBOUND, workers);
	if (!pager->wq) {
		ret = -ENOMEM;
		goto err_charge;
	}
	kref_init(&pager->ref);
	INIT_WORK(&pager->end, qhca_ib_pager_end);
	list_add_tail(&pager->node, &qhca_ib_pagers);
	qhca_ib_num_pagers++;
	return pager;

err_charge:
	qhca_ib_uncharge_all(dev, &pager->charge);
err:
	kfree(pager);
	return ERR_PTR(ret);
}

/**
 * qhca_ib_pager_get - hold the pager of a user context, and make it if there is none yet
 * @dev: the HCA
 * @ctx: the context, or NULL for kernel consumers
 *
 * Context: process, the user's own.
 * Return: the pager, or an error: -EAGAIN if it exceeds the limit of the cgroup, -ENOMEM if there
 * are too many, -EIO if the device is about to be removed.
 */
struct qhca_ib_pager *qhca_ib_pager_get(struct qhca_ib_dev *dev, struct qhca_ib_ucontext *ctx)
{
	struct qhca_ib_pager **place = ctx ? &ctx->pager : &dev->pager;
	struct qhca_ib_pager *pager;

	mutex_lock(&qhca_ib_pagers_lock);
	pager = *place;
	if (!pager) {
		pager = qhca_ib_pager_new(dev, ctx);
		if (!IS_ERR(pager))
			*place = pager;
	}
	if (!IS_ERR(pager))
		kref_get(&pager->ref);
	mutex_unlock(&qhca_ib_pagers_lock);
	return pager;
}

static void qhca_ib_pager_release(struct kref *ref)
{
	struct qhca_ib_pager *pager = container_of(ref, struct qhca_ib_pager, ref);

	queue_work(qhca_ib_pagers_wq, &pager->end);
}

/**
 * qhca_ib_pager_queue - have a pager work on something
 * @pager: the pager
 * @work: what to work on, after @delay jiffies
 * @delay: how long it waits, without a worker
 *
 * Context: process.
 */
void qhca_ib_pager_queue(struct qhca_ib_pager *pager, struct delayed_work *work,
			 unsigned long delay)
{
	queue_delayed_work(pager->wq, work, delay);
}

/**
 * qhca_ib_pager_put - let go of a pager
 * @pager: the pager, or NULL
 */
void qhca_ib_pager_put(struct qhca_ib_pager *pager)
{
	if (pager)
		kref_put(&pager->ref, qhca_ib_pager_release);
}

/**
 * qhca_ib_pagers_leave - give back the charges of all pagers of a device
 * @dev: the HCA, still registered, but leaving
 *
 * The core forgets all charges for the device when it is unregistered, but pagers may stay.
 */
void qhca_ib_pagers_leave(struct qhca_ib_dev *dev)
{
	struct qhca_ib_pager *pager;

	mutex_lock(&qhca_ib_pagers_lock);
	list_for_each_entry(pager, &qhca_ib_pagers, node)
		if (pager->dev == dev) {
			qhca_ib_uncharge_all(dev, &pager->charge);
			pager->dev = NULL;
		}
	mutex_unlock(&qhca_ib_pagers_lock);
}

/**
 * qhca_ib_pagers_init - prepare for pagers, when the module is loaded
 *
 * Return: 0 or -ENOMEM.
 */
int qhca_ib_pagers_init(void)
{
	qhca_ib_pagers_wq = alloc_workqueue("qhca_ib_pagers", WQ_UNBOUND, 0);
	return qhca_ib_pagers_wq ? 0 : -ENOMEM;
}

/**
 * qhca_ib_pagers_exit - undo qhca_ib_pagers_init()
 *
 * There is no request any more, and all pagers have ended, or do so now.
 */
void qhca_ib_pagers_exit(void)
{
	destroy_workqueue(qhca_ib_pagers_wq);
}
