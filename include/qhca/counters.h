/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * qhca device interface: names of the counters in QEMU's properties, in ethtool, and in hw_counters
 * of the RDMA port.
 */
#ifndef QHCA_COUNTERS_H
#define QHCA_COUNTERS_H

#include "cmd.h"

#define QHCA_COUNTER(id, name)	\
	[QHCA_CNT_##id] = (name),
static const char *const qhca_counter_names[QHCA_CNT_MAX] = {
#include "counters.def"
};

#endif /* QHCA_COUNTERS_H */
