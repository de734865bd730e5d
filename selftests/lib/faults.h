/* SPDX-License-Identifier: GPL-2.0 */
/* Rules by which the device misbehaves (Documentation/faults.rst), set by the guest. */
#ifndef SELFTESTS_FAULTS_H
#define SELFTESTS_FAULTS_H

#include "rdma.h"

/* dev_open_qhca(); skips the test if the operator allows no rules. */
struct dev *faults_open(void);
/* 0 or an errno value. */
int faults_set(const char *rules);
/* What the file says: the rules, with their hits. */
const char *faults_text(void);
/* How often the first rule has applied; -1: there is none. */
int faults_hits(void);
/*
 * Rules survive the process that sets them: for a destructor, so that the last one
 * clears them. Without faults_open() and where none are allowed, too.
 */
void faults_clear(void);

#endif /* SELFTESTS_FAULTS_H */
