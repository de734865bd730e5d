// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of verbs in the kernel: when a work request has been flushed, or a QP stopped, the consumer
 * may reuse the memory, so the device must have stopped writing by then.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/pci.h>

#include <qhca/regs.h>

#include "kverbs.h"

#define KV_RECVS	4

/* struct kv_quiet - a CQ that every CPU polls all the time */
struct kv_quiet {
	struct ib_cq *cq;
	struct pci_dev *pdev;
	atomic_t flushed;
	atomic_t early;		/* flushed while the function could still do DMA */
};

static bool kv_is_bus_master(struct pci_dev *pdev)
{
	u16 command;

	pci_read_config_word(pdev, PCI_COMMAND, &command);
	return command & PCI_COMMAND_MASTER;
}

/* Takes precedence on its CPU over everything else, even over the driver's work item. */
static int kv_quiet_poll(void *arg)
{
	struct kv_quiet *q = arg;
	struct ib_wc wc;

	sched_set_fifo(current);
	while (!kthread_should_stop()) {
		if (ib_poll_cq(q->cq, 1, &wc) == 1 && wc.status == IB_WC_WR_FLUSH_ERR) {
			if (kv_is_bus_master(q->pdev))
				atomic_inc(&q->early);
			atomic_inc(&q->flushed);
		}
		usleep_range(20, 50);
	}
	return 0;
}

bool kv_break(struct kv *kv)
{
	struct pci_dev *pdev = to_pci_dev(kv->dev->dev.parent);
	void __iomem *regs = ioremap(pci_resource_start(pdev, QHCA_BAR_REGS),
				     QHCA_BAR_REGS_SIZE);

	if (!KV_CHECK(kv, regs))
		return false;
	writel(QHCA_RESET_KEY, regs + QHCA_REG_RESET);
	iounmap(regs);
	return true;
}

static void kv_quiet_run(struct kv *kv, struct kv_quiet *q)
{
	unsigned long end = jiffies + KV_WAIT;
	struct task_struct *task[8] = {};
	int i, n = min_t(int, num_online_cpus(), ARRAY_SIZE(task));

	for (i = 0; i < n; i++) {
		task[i] = kthread_create_on_cpu(kv_quiet_poll, q, i, "kv_quiet/%u");
		if (KV_CHECK(kv, !IS_ERR(task[i])))
			wake_up_process(task[i]);
		else
			task[i] = NULL;
	}
	if (kv_break(kv))
		while (atomic_read(&q->flushed) < KV_RECVS && time_before(jiffies, end))
			msleep(20);
	for (i = 0; i < n; i++)
		if (task[i])
			kthread_stop(task[i]);
	KV_CHECK_EQ(kv, atomic_read(&q->flushed), KV_RECVS);
	KV_CHECK_EQ(kv, atomic_read(&q->early), 0);
}

/* Closes without draining the QPs, which a dead device refuses. */
static void kv_quiet_close(struct kv *kv, struct kv_rig *r)
{
	KV_CHECK_EQ(kv, ib_destroy_qp(r->a.qp), 0);
	KV_CHECK_EQ(kv, ib_destroy_qp(r->b.qp), 0);
	r->a.qp = NULL;
	r->b.qp = NULL;
	kv_rig_close(kv, r);
}

static void kv_quiet_flush(struct kv *kv)
{
	struct kv_quiet q = { .pdev = to_pci_dev(kv->dev->dev.parent) };
	struct kv_done d[KV_RECVS];
	struct kv_rig r;
	int i;

	if (!kv_rig_open(kv, &r, IB_POLL_DIRECT))
		return;
	for (i = 0; i < KV_RECVS; i++)
		KV_CHECK_EQ(kv, kv_recv(&r.a, &d[i], NULL, 0), 0);
	q.cq = r.a.cq;
	if (!kv->failed)
		kv_quiet_run(kv, &q);
	kv_quiet_close(kv, &r);
}

/*
 * A fault rule makes the device refuse to stop a QP, so the driver declares it dead. The work item
 * that ends DMA waits on this CPU until this thread sleeps.
 */
static void kv_quiet_stop(struct kv *kv)
{
	struct pci_dev *pdev = to_pci_dev(kv->dev->dev.parent);
	struct ib_qp_attr err = { .qp_state = IB_QPS_ERR };
	struct kv_rig r;

	if (!kv_rig_open(kv, &r, IB_POLL_DIRECT))
		return;
	KV_CHECK(kv, kv_is_bus_master(pdev));
	sched_set_fifo(current);
	KV_CHECK_EQ(kv, ib_modify_qp(r.a.qp, &err, IB_QP_STATE), 0);
	KV_CHECK(kv, !kv_is_bus_master(pdev));
	sched_set_normal(current, 0);
	kv_quiet_close(kv, &r);
}

const struct kv_test kv_flush_tests[] = {
	{ "J-021 work requests are flushed only when DMA has stopped", kv_quiet_flush },
	{ }
};

const struct kv_test kv_stop_tests[] = {
	{ "J-021 stopping a QP ends only when DMA has stopped", kv_quiet_stop },
	{ }
};
