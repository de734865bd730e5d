// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: on-demand paging: page faults of QPs. The device sends an event when a QP needs a
 * page. Then it is asked which pages the QP needs, a pager provides them, and the QP goes on.
 */
#include "odp.h"

/**
 * struct qhca_ib_fault - a page fault that has no answer yet
 * @pages: the pages
 * @of: faults of its QP; held
 * @kind: enum qhca_page_fault_kind
 * @sn: its number in the device
 */
struct qhca_ib_fault {
	struct qhca_ib_pages pages;
	struct qhca_ib_faults *of;
	unsigned int kind;
	__le32 sn;
};

/**
 * struct qhca_ib_faults - page faults of a QP or receive work queue
 * @ref: the QP has one, and each fault
 * @dev: the HCA
 * @qpn: number in the device
 * @look: asks the device for faults
 * @lock: for what follows, and keeps answers in order
 * @gone: the QP is being destroyed, or has been; then @dev may not exist
 * @fault: those without an answer, or NULL
 */
struct qhca_ib_faults {
	struct kref ref;
	struct qhca_ib_dev *dev;
	u32 qpn;
	struct work_struct look;
	struct mutex lock;	/* the members that follow */
	bool gone;
	struct qhca_ib_fault *fault[QHCA_PAGE_KINDS];
};

static void qhca_ib_faults_release(struct kref *ref)
{
	kfree(container_of(ref, struct qhca_ib_faults, ref));
}

static void qhca_ib_fault_free(struct qhca_ib_fault *fault)
{
	kref_put(&fault->of->ref, qhca_ib_faults_release);
	qhca_ib_pages_exit(&fault->pages);
	kfree(fault);
}

/*
 * The QP tries again, or, if @deny, fails. If another fault has taken the place of this one, the
 * device may have sent no event for it.
 */
static void qhca_ib_fault_answer(struct qhca_ib_faults *f, unsigned int kind, __le32 sn, bool deny)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_RESUME_QP),
		.resume_qp.qpn = cpu_to_le32(f->qpn),
		.resume_qp.sn = sn,
		.resume_qp.kind = kind,
		.resume_qp.deny = deny,
	};

	if (qhca_cmd_exec(f->dev->core, &cmd, NULL, NULL) == -EINVAL)
		queue_work(f->dev->odp_wq, &f->look);
}

static void qhca_ib_fault_done(struct qhca_ib_pages *pages, int err)
{
	struct qhca_ib_fault *fault = container_of(pages, struct qhca_ib_fault, pages);
	struct qhca_ib_faults *f = fault->of;

	mutex_lock(&f->lock);
	/* Else the answer is not wanted any more. */
	if (f->fault[fault->kind] == fault) {
		WRITE_ONCE(f->fault[fault->kind], NULL);
		/* Without a region the QP finds out when it tries again. */
		if (!f->gone)
			qhca_ib_fault_answer(f, fault->kind, fault->sn, err && err != -ENODEV);
	}
	mutex_unlock(&f->lock);
	qhca_ib_fault_free(fault);
}

/* The answer is not wanted any more. */
static void qhca_ib_fault_forget(struct qhca_ib_faults *f, unsigned int kind)
{
	struct qhca_ib_fault *fault = f->fault[kind];

	WRITE_ONCE(f->fault[kind], NULL);
	if (fault && qhca_ib_pages_drop(&fault->pages))
		qhca_ib_fault_free(fault);
}

/* The pages that a fault is about. Nothing that the device says is trusted. */
static int qhca_ib_fault_range(const struct qhca_ib_odp *odp, const struct qhca_page_fault *desc,
			       u64 *va, u64 *end)
{
	u64 num = clamp_t(u64, le64_to_cpu(desc->num), 1, QHCA_TABLE_ENTRIES);
	u64 first = le64_to_cpu(desc->first);

	*va = odp->base + (first << PAGE_SHIFT);
	if (first > U64_MAX >> (PAGE_SHIFT + 1) ||
	    !qhca_ib_odp_in_range(odp, *va, *va + PAGE_SIZE))
		return -EFAULT;
	*end = min(*va + (num << PAGE_SHIFT), odp->end);
	return 0;
}

static void qhca_ib_fault_begin(struct qhca_ib_faults *f, unsigned int kind,
				const struct qhca_page_fault *desc, struct qhca_ib_odp *odp)
{
	struct qhca_ib_fault *fault;
	u64 va, end;

	if (qhca_ib_fault_range(odp, desc, &va, &end)) {
		qhca_ib_fault_answer(f, kind, desc->sn, true);
		return;
	}
	/* If there is no memory, the QP tries again until there is. */
	fault = kzalloc_obj(*fault, GFP_KERNEL);
	if (!fault || !qhca_ib_pages_init(&fault->pages, odp)) {
		qhca_ib_fault_answer(f, kind, desc->sn, fault);
		kfree(fault);
		return;
	}
	fault->pages.va = va;
	fault->pages.end = end;
	fault->pages.write = desc->write;
	fault->pages.fault = true;
	fault->pages.done = qhca_ib_fault_done;
	kref_get(&f->ref);
	fault->of = f;
	fault->kind = kind;
	fault->sn = desc->sn;
	WRITE_ONCE(f->fault[kind], fault);
	qhca_ib_pages_ask(&fault->pages);
}

static void qhca_ib_fault_see(struct qhca_ib_faults *f, unsigned int kind,
			      const struct qhca_page_fault *desc)
{
	struct qhca_ib_fault *fault = f->fault[kind];
	struct qhca_ib_odp *odp;

	odp = desc->open ? qhca_ib_odp_get(f->dev, le32_to_cpu(desc->key)) : NULL;
	if (!fault || !odp || fault->sn != desc->sn || fault->pages.odp != odp) {
		qhca_ib_fault_forget(f, kind);
		if (odp)
			qhca_ib_fault_begin(f, kind, desc, odp);
		else if (desc->open)
			qhca_ib_fault_answer(f, kind, desc->sn, false);
	}
	if (odp)
		qhca_ib_odp_put(odp);
}

static void qhca_ib_faults_look(struct work_struct *work)
{
	struct qhca_ib_faults *f = container_of(work, struct qhca_ib_faults, look);
	struct qhca_page_faults faults;
	unsigned int kind;

	mutex_lock(&f->lock);
	if (!f->gone && !qhca_ib_query(f->dev, QHCA_CMD_QUERY_PAGE_FAULTS, f->qpn, &faults,
				       sizeof(faults)))
		for (kind = 0; kind < QHCA_PAGE_KINDS; kind++)
			qhca_ib_fault_see(f, kind, &faults.fault[kind]);
	mutex_unlock(&f->lock);
}

/**
 * qhca_ib_faults_new - prepare for page faults of a QP
 * @dev: the HCA
 *
 * Return: the faults, or NULL.
 */
struct qhca_ib_faults *qhca_ib_faults_new(struct qhca_ib_dev *dev)
{
	struct qhca_ib_faults *f = kzalloc_obj(*f, GFP_KERNEL_ACCOUNT);

	if (!f)
		return NULL;
	kref_init(&f->ref);
	mutex_init(&f->lock);
	INIT_WORK(&f->look, qhca_ib_faults_look);
	f->dev = dev;
	return f;
}

/**
 * qhca_ib_faults_start - say which QP it is, before the first event can come
 * @f: the faults, or NULL
 * @qpn: number of the QP in the device
 */
void qhca_ib_faults_start(struct qhca_ib_faults *f, u32 qpn)
{
	if (f)
		f->qpn = qpn;
}

/**
 * qhca_ib_faults_event - look for page faults
 * @f: the faults, or NULL
 *
 * Context: any.
 */
void qhca_ib_faults_event(struct qhca_ib_faults *f)
{
	if (f)
		queue_work(f->dev->odp_wq, &f->look);
}

/**
 * qhca_ib_faults_check - look for page faults, if any waits for an answer
 * @f: the faults, or NULL
 *
 * Context: any.
 */
void qhca_ib_faults_check(struct qhca_ib_faults *f)
{
	unsigned int kind;

	for (kind = 0; f && kind < QHCA_PAGE_KINDS; kind++)
		if (READ_ONCE(f->fault[kind]))
			queue_work(f->dev->odp_wq, &f->look);
}

/**
 * qhca_ib_faults_hold - answer no more page faults: the QP is going to be destroyed
 * @f: the faults, or NULL
 *
 * The device may give the number to another QP as soon as it is free.
 *
 * Context: process.
 */
void qhca_ib_faults_hold(struct qhca_ib_faults *f)
{
	if (!f)
		return;
	mutex_lock(&f->lock);
	f->gone = true;
	mutex_unlock(&f->lock);
}

/**
 * qhca_ib_faults_end - undo qhca_ib_faults_new()
 * @f: the faults of a QP that the device does not know any more, and of which no event comes; or
 *     NULL
 *
 * Context: process; waits for no memory.
 */
void qhca_ib_faults_end(struct qhca_ib_faults *f)
{
	unsigned int kind;

	if (!f)
		return;
	mutex_lock(&f->lock);
	f->gone = true;
	for (kind = 0; kind < QHCA_PAGE_KINDS; kind++)
		qhca_ib_fault_forget(f, kind);
	mutex_unlock(&f->lock);
	cancel_work_sync(&f->look);
	kref_put(&f->ref, qhca_ib_faults_release);
}
