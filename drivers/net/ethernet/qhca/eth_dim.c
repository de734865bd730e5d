// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca.ko: adaptive moderation: the kernel's library looks at how many frames each event is for,
 * and how many there are in all, and says how long the next events should wait.
 */
#include "eth.h"

/* The shortest delay of the library stands for none: the device needs a timer even for that. */
#define QHCA_DIM_MIN_USECS	2

static void qhca_eth_dim_work(struct work_struct *work)
{
	struct qhca_eth_cq *cq = container_of(work, struct qhca_eth_cq, dim.work);
	struct dim *dim = &cq->dim;
	struct dim_cq_moder moder;
	u32 usecs;

	if (cq == &cq->chan->tx.cq)
		moder = net_dim_get_tx_moderation(dim->mode, dim->profile_ix);
	else
		moder = net_dim_get_rx_moderation(dim->mode, dim->profile_ix);
	usecs = moder.usec < QHCA_DIM_MIN_USECS ? 0 : moder.usec;
	/* On an error the delay stays as it is, and the library goes on from there. */
	qhca_eth_cq_moderate(cq, usecs, moder.pkts);
	dim->state = DIM_START_MEASURE;
}

/**
 * qhca_eth_dim_init - begin without delay
 * @cq: a new CQ
 */
void qhca_eth_dim_init(struct qhca_eth_cq *cq)
{
	cq->dim = (struct dim) { .mode = DIM_CQ_PERIOD_MODE_START_FROM_EQE };
	cq->events = 0;
	INIT_WORK(&cq->dim.work, qhca_eth_dim_work);
}

/**
 * qhca_eth_dim_stop - leave the delay as it is
 * @cq: the CQ, which is not polled any more
 *
 * Context: process.
 */
void qhca_eth_dim_stop(struct qhca_eth_cq *cq)
{
	cancel_work_sync(&cq->dim.work);
}

/**
 * qhca_eth_dim - let the delay of events follow the load
 * @cq: the CQ, all of whose CQEs have been taken
 * @packets: number of frames that its queue has moved
 * @bytes: their bytes
 *
 * Context: NAPI, one CPU at a time.
 */
void qhca_eth_dim(struct qhca_eth_cq *cq, u64 packets, u64 bytes)
{
	struct dim_sample sample = {};

	if (!QHCA_CAN_DIM || !cq->adaptive)
		return;
	dim_update_sample(READ_ONCE(cq->events), packets, bytes, &sample);
	net_dim(&cq->dim, &sample);
}
