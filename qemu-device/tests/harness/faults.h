/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the fixture's @qp and @peer on a device with fault rules.
 */
#ifndef QHCA_TESTS_FAULTS_H
#define QHCA_TESTS_FAULTS_H

#include "scripted.h"

#define FAULT_DST   0x8000u     /* where messages to @peer go */
#define ACK_TIME    (4096ull << 10)     /* of RC_OPTS */

/* Sets rules of @g, which must be right. */
void faults_set(const char *text);
/* What rule @i, counted from 0, has hit. */
uint64_t faults_hits(unsigned i);
/* start_pair() with RC_OPTS or @o, rules, and four receive WRs in @peer. */
void faults_pair(const char *text);
void faults_pair_of(const struct rc_opts *o, const char *text);
/* A SEND of 1000 bytes 0x11 from @qp, in one packet. */
void faults_send(void);
/* The first one ends with that, at the latest when its timer expires. */
void faults_sent(unsigned status);

#endif /* QHCA_TESTS_FAULTS_H */
