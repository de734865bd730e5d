/* SPDX-License-Identifier: GPL-2.0 */
/* Fatal errors of the device under test, and recovery. */
#ifndef SELFTESTS_LIFE_H
#define SELFTESTS_LIFE_H

#include "rdma.h"

/* Asks QEMU through the launcher's channel; skips the test if the launcher does not listen. */
void device_break(void);
/*
 * Kills the process that has the device; starts another one, and puts its card in the place of
 * the first. Skips the test unless vm --mortal-server has started it. Needs root.
 */
void server_kill(void);
void server_replace(void);
/* Resets the function through sysfs: needs root. */
void device_reset(void);
/* Waits until the device is back with its GIDs, so that the next test finds it unchanged. */
void device_wait_back(int gid_index);

#endif /* SELFTESTS_LIFE_H */
