// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca.ko: interrupts and event queues.
 *
 * Every MSI-X vector has one event queue. Vector 0 also reports command completions, even before
 * its queue exists.
 *
 * All code that handles events of a queue holds the lock of the queue: the interrupt handler, the
 * poll for events whose interrupt was lost, and qhca_cq_tell(). So events are handled one at a
 * time, and qhca_eqs_synchronize() waits for all handlers.
 */
#include <linux/cpumask.h>
#include <linux/interrupt.h>

#include "qhca.h"
#include "trace.h"

/* Events handled in one interrupt; the device raises another interrupt for the rest. */
#define QHCA_EQ_BUDGET		256u

/* While an EQ is full, events wait in the device, so a small ring loses nothing. */
#define QHCA_EQ_LOG	12

static bool qhca_eq_is_async(const struct qhca_eq *eq)
{
	return eq->vector == QHCA_VECTOR_ASYNC;
}

static const struct qhca_eqe *qhca_eq_entry(const struct qhca_eq *eq, u32 index)
{
	return (const struct qhca_eqe *)eq->mem.va + (index & (BIT(eq->log_size) - 1));
}

static bool qhca_eq_has(const struct qhca_eq *eq, u32 index)
{
	return (READ_ONCE(qhca_eq_entry(eq, index)->owner) & QHCA_OWNER_PHASE) ==
	       qhca_phase(index, eq->log_size);
}

/* Copy the next event, because the device could change it in the ring. */
static bool qhca_eq_next(struct qhca_eq *eq, struct qhca_eqe *eqe)
{
	if (!qhca_eq_has(eq, eq->ci))
		return false;
	dma_rmb();	/* read the phase before the rest of the entry */
	*eqe = *qhca_eq_entry(eq, eq->ci);
	eq->ci++;
	return true;
}

/* The CQ may be destroyed already; if it is found, the lock keeps it (see qhca_cq_forget()). */
static void qhca_eq_comp(struct qhca_dev *dev, u32 cqn, u32 arm_sn)
{
	struct qhca_cq_core *cq = xa_load(&dev->cqs, cqn);

	if (cq)
		cq->comp(cq, arm_sn);
}

static void qhca_eq_cq_error(struct qhca_dev *dev, u32 cqn)
{
	struct qhca_cq_core *cq = xa_load(&dev->cqs, cqn);

	if (cq && cq->error)
		cq->error(cq);
}

static void qhca_eq_handle(struct qhca_eq *eq, const struct qhca_eqe *eqe)
{
	u32 obj = le32_to_cpu(eqe->obj);

	trace_qhca_eqe(eq->dev, eq->eqn, eqe->type, obj, le32_to_cpu(eqe->arm_sn));
	if (eqe->type == QHCA_EVENT_COMP)
		qhca_eq_comp(eq->dev, obj, le32_to_cpu(eqe->arm_sn));
	else if (!qhca_eq_is_async(eq))
		dev_warn_ratelimited(&eq->dev->pdev->dev,
				     "event %u in a completion queue\n", eqe->type);
	else if (eqe->type == QHCA_EVENT_CQ_ERR)
		qhca_eq_cq_error(eq->dev, obj);
	else if (eqe->type == QHCA_EVENT_DEVICE_FATAL)
		/* The health work passes this event on once the device is known to be quiet. */
		qhca_health_die(eq->dev, "it reported a fatal error");
	else
		qhca_event(eq->dev, eqe->type, obj);
}

/* Writing the consumer index arms the queue again. */
static void qhca_eq_arm(struct qhca_eq *eq)
{
	qhca_ring_slot(eq->dev, eq->slot, QHCA_DB_EQ, qhca_db(eq->eqn, eq->ci));
}

static unsigned int qhca_eq_poll(struct qhca_eq *eq)
{
	unsigned int n, max = min(QHCA_EQ_BUDGET, 1u << eq->log_size);
	struct qhca_eqe eqe;

	lockdep_assert_held(&eq->lock);
	for (n = 0; n < max && qhca_eq_next(eq, &eqe); n++)
		qhca_eq_handle(eq, &eqe);
	if (n)
		qhca_eq_arm(eq);
	return n;
}

static irqreturn_t qhca_irq_async(int irq, void *data)
{
	struct qhca_eq *eq = data;
	unsigned long flags;
	unsigned int n;

	spin_lock_irqsave(&eq->lock, flags);
	n = qhca_cmdq_poll(eq->dev);
	if (eq->live)
		n += qhca_eq_poll(eq);
	/* A device that fails raises its last interrupt even without an event. */
	if (!n)
		qhca_health_check(eq->dev);
	spin_unlock_irqrestore(&eq->lock, flags);
	return IRQ_HANDLED;
}

static irqreturn_t qhca_irq_comp(int irq, void *data)
{
	struct qhca_eq *eq = data;
	unsigned long flags;

	spin_lock_irqsave(&eq->lock, flags);
	if (eq->live)
		qhca_eq_poll(eq);
	spin_unlock_irqrestore(&eq->lock, flags);
	return IRQ_HANDLED;
}

static int qhca_eq_request_irq(struct qhca_eq *eq, irq_handler_t handler, const char *what)
{
	struct pci_dev *pdev = eq->dev->pdev;
	int ret;

	snprintf(eq->name, sizeof(eq->name), "qhca-%s%u@%s", what, eq->vector,
		 pci_name(pdev));
	ret = request_irq(eq->irq, handler, 0, eq->name, eq);
	if (!ret)
		eq->irq_requested = true;
	return ret;
}

static void qhca_eq_free_irq(struct qhca_eq *eq)
{
	if (!eq->irq_requested)
		return;
	irq_update_affinity_hint(eq->irq, NULL);
	free_irq(eq->irq, eq);
	eq->irq_requested = false;
}

/* Whether the vector belongs to an Ethernet channel, and not to RDMA. */
static bool qhca_eq_is_eth(const struct qhca_eq *eq)
{
	return eq->vector >= QHCA_VECTOR_COMP + eq->dev->num_comp;
}

/* Spread the vectors of RDMA over the CPUs, near ones first, and then Ethernet's as well. */
static void qhca_eq_spread(struct qhca_eq *eq)
{
	unsigned int i = eq->vector - QHCA_VECTOR_COMP, cpu;

	if (qhca_eq_is_eth(eq))
		i -= eq->dev->num_comp;
	cpu = cpumask_local_spread(i, dev_to_node(&eq->dev->pdev->dev));

	irq_set_affinity_and_hint(eq->irq, cpumask_of(cpu));
}

/**
 * qhca_irqs_init - allocate MSI-X vectors and install the handler of vector 0
 * @dev: the function, down, with its command queue in memory
 *
 * More completion vectors than CPUs would be of no use, neither to RDMA nor to Ethernet; one for
 * both is enough. How many the Ethernet queues need is not known yet: see qhca_eqs_create().
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int qhca_irqs_init(struct qhca_dev *dev)
{
	u32 max = min_t(u32, qhca_read_reg(dev, QHCA_REG_VECTORS),
			QHCA_VECTOR_COMP + 2 * num_present_cpus());
	unsigned int i;
	int n, ret;

	max = min_t(u32, max, FIELD_GET(QHCA_EQ_CAPS_MAX,
					qhca_read_reg(dev, QHCA_REG_EQ_CAPS)));
	if (max < QHCA_VECTORS_MIN)
		return dev_err_probe(&dev->pdev->dev, -ENODEV, "%u vectors are too few\n", max);

	n = pci_alloc_irq_vectors(dev->pdev, QHCA_VECTORS_MIN, max, PCI_IRQ_MSIX);
	if (n < 0)
		return dev_err_probe(&dev->pdev->dev, n, "no MSI-X vectors\n");

	dev->eqs = kcalloc(n, sizeof(*dev->eqs), GFP_KERNEL);
	if (!dev->eqs) {
		ret = -ENOMEM;
		goto err_vectors;
	}
	dev->num_eqs = n;
	dev->num_comp = min_t(unsigned int, n - QHCA_VECTOR_COMP, num_present_cpus());
	for (i = 0; i < n; i++) {
		spin_lock_init(&dev->eqs[i].lock);
		dev->eqs[i].dev = dev;
		dev->eqs[i].vector = i;
		dev->eqs[i].irq = pci_irq_vector(dev->pdev, i);
	}
	ret = qhca_eq_request_irq(&dev->eqs[QHCA_VECTOR_ASYNC], qhca_irq_async, "async");
	if (ret)
		goto err_eqs;
	return 0;

err_eqs:
	dev->num_eqs = 0;
	kfree(dev->eqs);
err_vectors:
	pci_free_irq_vectors(dev->pdev);
	return ret;
}

/**
 * qhca_irqs_cleanup - undo qhca_irqs_init()
 * @dev: the function, reset and down
 */
void qhca_irqs_cleanup(struct qhca_dev *dev)
{
	qhca_eq_free_irq(&dev->eqs[QHCA_VECTOR_ASYNC]);
	dev->num_eqs = 0;
	kfree(dev->eqs);
	pci_free_irq_vectors(dev->pdev);
}

/* Whether the event that waited at the previous check still waits. */
static bool qhca_eq_is_stuck(struct qhca_eq *eq)
{
	bool before = eq->overdue && eq->overdue_ci == eq->ci;

	eq->overdue = qhca_eq_has(eq, eq->ci);
	eq->overdue_ci = eq->ci;
	return before && eq->overdue;
}

static void qhca_eq_check(struct qhca_eq *eq)
{
	unsigned int n = 0;

	/* Run softirqs that the handlers raise when BHs are enabled again. */
	local_bh_disable();
	spin_lock_irq(&eq->lock);
	if (qhca_eq_is_stuck(eq))
		n = qhca_eq_poll(eq);
	spin_unlock_irq(&eq->lock);
	local_bh_enable();
	if (n)
		dev_warn_ratelimited(&eq->dev->pdev->dev,
				     "vector %u: %u events without interrupt\n", eq->vector, n);
}

/**
 * qhca_eqs_check - look for events whose interrupt was lost
 * @dev: the function, its event queues live
 *
 * Called every few seconds, because nothing else looks for events when an interrupt is lost.
 *
 * Context: process.
 */
void qhca_eqs_check(struct qhca_dev *dev)
{
	unsigned int i;

	for (i = 0; i < dev->num_eqs; i++)
		qhca_eq_check(&dev->eqs[i]);
}

/**
 * qhca_eqs_synchronize - wait for all handlers that are running
 * @dev: the function
 *
 * Context: process.
 */
void qhca_eqs_synchronize(struct qhca_dev *dev)
{
	unsigned int i;

	for (i = 0; i < dev->num_eqs; i++) {
		spin_lock_irq(&dev->eqs[i].lock);
		spin_unlock_irq(&dev->eqs[i].lock);
	}
}
EXPORT_SYMBOL(qhca_eqs_synchronize);

/**
 * qhca_cq_tell - call the handler of a CQ as an event of the device would
 * @dev: the function
 * @cq: the CQ, which must not be freed during the call
 * @arm_sn: sequence number of the arm that the event answers
 *
 * Context: process, softirqs off.
 */
void qhca_cq_tell(struct qhca_dev *dev, struct qhca_cq_core *cq, u32 arm_sn)
{
	struct qhca_eq *eq = &dev->eqs[QHCA_VECTOR_COMP + cq->vector];
	unsigned long flags;

	spin_lock_irqsave(&eq->lock, flags);
	cq->comp(cq, arm_sn);
	spin_unlock_irqrestore(&eq->lock, flags);
}
EXPORT_SYMBOL(qhca_cq_tell);

static unsigned int qhca_eq_log_size(struct qhca_eq *eq)
{
	unsigned int max = FIELD_GET(QHCA_EQ_CAPS_LOG_MAX,
				     qhca_read_reg(eq->dev, QHCA_REG_EQ_CAPS));

	return min(QHCA_EQ_LOG, max);
}

static int qhca_eq_cmd_create(struct qhca_eq *eq, const struct qhca_buf *buf)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_CREATE_EQ),
		.create_eq = {
			.buf = *buf,
			.vector = cpu_to_le16(eq->vector),
			.log_size = eq->log_size,
			.flags = qhca_eq_is_async(eq) ? QHCA_EQ_ASYNC : 0,
		},
	};

	return qhca_cmd_exec(eq->dev, &cmd, NULL, &eq->eqn);
}

static int qhca_eq_create(struct qhca_eq *eq)
{
	struct qhca_buf buf;
	int ret;

	eq->ci = 0;
	eq->overdue = false;
	eq->log_size = qhca_eq_log_size(eq);
	ret = qhca_ring_mem_alloc(eq->dev, &eq->mem,
				  sizeof(struct qhca_eqe) << eq->log_size, &buf);
	if (ret)
		return ret;
	ret = qhca_eq_cmd_create(eq, &buf);
	if (ret)
		goto err_mem;
	if (!qhca_eq_is_async(eq)) {
		ret = qhca_eq_request_irq(eq, qhca_irq_comp,
					  qhca_eq_is_eth(eq) ? "eth" : "comp");
		if (ret)
			goto err_destroy;
		qhca_eq_spread(eq);
	}
	eq->slot = qhca_db_slot_get(eq->dev);
	spin_lock_irq(&eq->lock);
	eq->live = true;
	qhca_eq_arm(eq);
	spin_unlock_irq(&eq->lock);
	return 0;

err_destroy:
	qhca_cmd_destroy(eq->dev, QHCA_CMD_DESTROY_EQ, eq->eqn);
err_mem:
	qhca_ring_mem_free(eq->dev, &eq->mem);
	return ret;
}

static void qhca_eq_destroy(struct qhca_eq *eq)
{
	/* Its events are not needed any more, and it must not be armed again. */
	spin_lock_irq(&eq->lock);
	eq->live = false;
	spin_unlock_irq(&eq->lock);
	qhca_cmd_destroy(eq->dev, QHCA_CMD_DESTROY_EQ, eq->eqn);
	qhca_db_slot_put(eq->dev, eq->slot);
	/* Vector 0 still signals command completions. */
	if (!qhca_eq_is_async(eq))
		qhca_eq_free_irq(eq);
	qhca_ring_mem_free(eq->dev, &eq->mem);
}

/**
 * qhca_eqs_create - create the event queues of all vectors that are used
 * @dev: the function, running, with its limits known
 *
 * The Ethernet channels have vectors of their own if those suffice for all, else they share RDMA's.
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int qhca_eqs_create(struct qhca_dev *dev)
{
	unsigned int shared = QHCA_VECTOR_COMP + dev->num_comp, i;
	unsigned int own = shared + qhca_max_channels(dev);
	int ret;

	dev->num_eqs = dev->num_eqs >= own ? own : shared;

	for (i = 0; i < dev->num_eqs; i++) {
		ret = qhca_eq_create(&dev->eqs[i]);
		if (ret)
			goto err;
	}
	return 0;

err:
	while (i--)
		qhca_eq_destroy(&dev->eqs[i]);
	return ret;
}

/**
 * qhca_eqs_destroy - undo qhca_eqs_create()
 * @dev: the function
 */
void qhca_eqs_destroy(struct qhca_dev *dev)
{
	unsigned int i = dev->num_eqs;

	while (i--)
		qhca_eq_destroy(&dev->eqs[i]);
}
