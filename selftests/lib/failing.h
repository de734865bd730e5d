/* SPDX-License-Identifier: GPL-2.0 */
/* Allocations of the kernel that fail, in kernels with CONFIG_FAULT_INJECTION. */
#ifndef SELFTESTS_FAILING_H
#define SELFTESTS_FAILING_H

#include <stdbool.h>

/* Lets allocations of every kind fail. Skips the test on kernels that cannot. */
void failing_allow(void);
/* Makes the @nth allocation of this thread from now on fail; 0: none. After failing_allow(). */
void failing_arm(unsigned int nth);
/* Whether that has failed; from now on none does. */
bool failing_disarm(void);
/* Returns how many allocations this thread has made since failing_arm(@nth), if none has failed. */
unsigned int failing_count(unsigned int nth);
/* Whether a call may return this errno value for want of memory. */
bool failing_may_be(int err);
/* From now on so many in a hundred allocations of marked workers fail; 0: none. */
void failing_workers(unsigned int percent);
/* Marks all workers that work for any CPU, or none. Returns how many there are. */
unsigned int failing_mark(bool on);

#endif /* SELFTESTS_FAILING_H */
