/* SPDX-License-Identifier: GPL-2.0 */
/* Allocations of the kernel that fail, in kernels with CONFIG_FAULT_INJECTION. */
#ifndef SELFTESTS_FAILING_H
#define SELFTESTS_FAILING_H

#include <stdbool.h>

/*
 * Lets allocations of every kind fail. Returns a file: a number written to it makes that allocation
 * of the next system calls of this thread fail. Skips the test on kernels that cannot.
 */
int failing_allow(void);
/* From now on so many in a hundred allocations of marked workers fail; 0: none. */
void failing_workers(unsigned int percent);
/* Marks all workers that work for any CPU, or none. Returns how many there are. */
unsigned int failing_mark(bool on);

#endif /* SELFTESTS_FAILING_H */
