/* SPDX-License-Identifier: GPL-2.0 */
/* Fatal errors of the device under test, and recovery. */
#ifndef SELFTESTS_LIFE_H
#define SELFTESTS_LIFE_H

#include "rdma.h"

/* Asks QEMU, through the launcher's channel; skips the test if nobody listens there. */
void device_break(void);
/* Resets the function, by sysfs: needs root. */
void device_reset(void);
/* Waits until it is back with its GIDs: the next test finds what this one found. */
void device_wait_back(int gid_index);

#endif /* SELFTESTS_LIFE_H */
