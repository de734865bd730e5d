// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: on-demand paging: requests for pages, on which a pager works. */
#include <linux/module.h>

#include "odp.h"

/* While memory is short, pages are tried for so long, and so often, before they are denied. */
#define QHCA_IB_PAGER_PATIENCE	(2 * HZ)
#define QHCA_IB_PAGER_RETRIES	9

/**
 * qhca_ib_pages_ask - have a pager provide the pages
 * @pages: the request; @pages->done is called later, in a worker
 *
 * Context: process.
 */
void qhca_ib_pages_ask(struct qhca_ib_pages *pages)
{
	qhca_ib_pager_queue(pages->odp->pager, &pages->work, 0);
}

/**
 * qhca_ib_pages_drop - take a request back
 * @pages: the request, whose @done cannot have ended
 *
 * Context: process.
 * Return: whether it was taken back, and @done will not be called.
 */
bool qhca_ib_pages_drop(struct qhca_ib_pages *pages)
{
	return cancel_delayed_work(&pages->work);
}

/* Refusing a page breaks the connection, so if memory is short, wait a while. */
static bool qhca_ib_pages_try_again(const struct qhca_ib_pages *pages, int err)
{
	return (err == -EAGAIN || err == -ENOMEM) && pages->tries < QHCA_IB_PAGER_RETRIES &&
	       time_before(jiffies, pages->give_up);
}

static void qhca_ib_pages_work(struct work_struct *work)
{
	struct qhca_ib_pages *pages = container_of(to_delayed_work(work), struct qhca_ib_pages,
						   work);
	int err = qhca_ib_odp_provide(pages);

	/* Between two tries it takes no worker. As soon as it is queued it may be taken back. */
	if (qhca_ib_pages_try_again(pages, err))
		qhca_ib_pager_queue(pages->odp->pager, &pages->work,
				    msecs_to_jiffies(1 << pages->tries++));
	else
		pages->done(pages, err);
}

/**
 * qhca_ib_pages_init - prepare a request for pages
 * @pages: the request; what is not private is set by the caller
 * @odp: the region
 *
 * Context: process.
 * Return: whether it may be made: not while the module is being unloaded, which would wait for it.
 */
bool qhca_ib_pages_init(struct qhca_ib_pages *pages, struct qhca_ib_odp *odp)
{
	/* A worker may come back when there is no device any more. */
	if (!try_module_get(THIS_MODULE))
		return false;
	kref_get(&odp->ref);
	pages->odp = odp;
	INIT_DELAYED_WORK(&pages->work, qhca_ib_pages_work);
	pages->give_up = jiffies + QHCA_IB_PAGER_PATIENCE;
	return true;
}

/**
 * qhca_ib_pages_exit - undo qhca_ib_pages_init()
 * @pages: the request, which is done, or taken back
 */
void qhca_ib_pages_exit(struct qhca_ib_pages *pages)
{
	qhca_ib_odp_put(pages->odp);
	/* The end of the module waits for this worker. */
	module_put(THIS_MODULE);
}
