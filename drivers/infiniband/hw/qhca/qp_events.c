// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: asynchronous events of QPs. They are stored in the QP and delivered from a work item,
 * which is the context that consumers expect.
 */
#include "qhca_ib.h"

#define QHCA_EVENT(...)
#define QHCA_QP_EVENT(id, ib, ...)	\
	[QHCA_EVENT_##id] = IB_EVENT_##ib,
static const enum ib_event_type qhca_ib_qp_events[] = {
#include <qhca/events.def>
};

/**
 * qhca_ib_qp_event_work - deliver the events of a QP
 * @work: event_work of the QP
 */
void qhca_ib_qp_event_work(struct work_struct *work)
{
	struct qhca_ib_qp *qp = container_of(work, struct qhca_ib_qp, event_work);
	struct ib_event event = {
		.device = qp->ibqp.device,
		.element.qp = &qp->ibqp,
	};
	u8 type;

	while (kfifo_get(&qp->events, &type)) {
		event.event = qhca_ib_qp_events[type];
		if (qp->ibqp.event_handler)
			qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
	}
}

/* Called under the lock of dev->qps. */
static void qhca_ib_put_qp_event(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp, u8 type)
{
	if (type == QHCA_EVENT_PAGE_FAULT) {
		qhca_ib_faults_event(qp->faults);
		return;
	}
	if (type == QHCA_EVENT_LAST_WQE_REACHED)
		qp->last_wqe = true;
	if (!kfifo_put(&qp->events, type))
		ibdev_err_ratelimited(&dev->ibdev, "QP %#x: too many events\n", qp->qpn);
	queue_work(dev->wq, &qp->event_work);
}

/**
 * qhca_ib_qp_event - store an event of a QP and schedule its delivery
 * @dev: the HCA
 * @type: enum qhca_event, one that QPs have
 * @qpn: the QPN that the device reported
 *
 * Context: any.
 */
void qhca_ib_qp_event(struct qhca_ib_dev *dev, u8 type, u32 qpn)
{
	struct qhca_ib_qp *qp;
	unsigned long flags;

	/* The lock keeps the QP alive: qhca_ib_qp_unlink() erases it, then cancels the work. */
	xa_lock_irqsave(&dev->qps, flags);
	qp = xa_load(&dev->qps, qpn);
	if (qp)
		qhca_ib_put_qp_event(dev, qp, type);
	xa_unlock_irqrestore(&dev->qps, flags);
}

/*
 * Whether a kernel consumer may wait for LAST_WQE_REACHED of the QP, which a quiet device does not
 * send any more. Called under the lock of dev->qps.
 */
static bool qhca_ib_owes_last_wqe(const struct qhca_ib_qp *qp)
{
	return qhca_ib_is_kernel_qp(qp) && (qp->ibqp.srq || qp->xrcd) && !qp->last_wqe &&
	       READ_ONCE(qp->state) == IB_QPS_ERR;
}

/**
 * qhca_ib_flush_last_wqe - report LAST_WQE_REACHED in place of a dead and quiet device
 * @dev: the HCA
 *
 * Consumers that drain a QP with an SRQ wait for the event. Each stopped QP gets it once.
 *
 * Context: process.
 */
void qhca_ib_flush_last_wqe(struct qhca_ib_dev *dev)
{
	struct qhca_ib_qp *qp;
	unsigned long qpn;

	xa_lock_irq(&dev->qps);
	xa_for_each(&dev->qps, qpn, qp)
		if (qhca_ib_owes_last_wqe(qp))
			qhca_ib_put_qp_event(dev, qp, QHCA_EVENT_LAST_WQE_REACHED);
	xa_unlock_irq(&dev->qps);
}
