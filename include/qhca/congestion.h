/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * qhca device interface: rates of QPs, and congestion control by DCQCN (Zhu et al., "Congestion
 * Control for Large-Scale RDMA Deployments", SIGCOMM 2015).
 *
 * A QP sends no faster than the lowest of: the static rate of the address vector, its rate limit,
 * and, if RP_ENABLE is set, what the congestion notification packets (CNPs) for it have left. The
 * rates are of bytes in frames; responses without data are not delayed.
 */
#ifndef QHCA_CONGESTION_H
#define QHCA_CONGESTION_H

#include "base.h"

#define QHCA_CC(id, name, min, max, value)	QHCA_CC_##id,
enum qhca_cc {
#include "congestion.def"
	QHCA_CC_MAX
};

/* struct qhca_congestion - mailbox of QHCA_CMD_SET_CONGESTION: all parameters of the port */
struct qhca_congestion {
	__le32	value[QHCA_CC_MAX];
};
QHCA_ASSERT_SIZE(struct qhca_congestion, 64);

#endif /* QHCA_CONGESTION_H */
