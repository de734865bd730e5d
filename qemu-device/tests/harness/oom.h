/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a host that runs out of memory when a test wants it to.
 */
#ifndef QHCA_TESTS_OOM_H
#define QHCA_TESTS_OOM_H

/* The @nth allocation from now on fails, and all that follow; 0: none does. */
void oom_after(unsigned nth);
/* Whether one has failed since. */
int oom_happened(void);

#endif /* QHCA_TESTS_OOM_H */
