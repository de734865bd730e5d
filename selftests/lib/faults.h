/* SPDX-License-Identifier: GPL-2.0 */
/* Fault rules that make the device misbehave (Documentation/faults.rst), set by the guest. */
#ifndef SELFTESTS_FAULTS_H
#define SELFTESTS_FAULTS_H

#include "rdma.h"

/* Calls dev_open_qhca(); skips the test if the operator allows no rules. */
struct dev *faults_open(void);
/* Returns 0 or an errno value. */
int faults_set(const char *rules);
/* Returns the content of the file: the rules with their hits. */
const char *faults_text(void);
/* Returns how often the first rule has applied; -1: there is no rule. */
int faults_hits(void);
/*
 * Clears the rules, which survive the process that sets them, so call this from a destructor. Works
 * also without faults_open(), and where no rules are allowed.
 */
void faults_clear(void);

#endif /* SELFTESTS_FAULTS_H */
