/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the fixture's @qp and @peer on a device with fault rules.
 */
#ifndef QHCA_TESTS_FAULTS_H
#define QHCA_TESTS_FAULTS_H

#include "scripted.h"

#define FAULT_DST   0x8000u     /* where @peer receives */
#define ACK_TIME    (4096ull << 10)     /* timeout of RC_OPTS, in ns */

/* Sets the fault rules of @g; fails the test if @text is not valid. */
void faults_set(const char *text);
/* How often rule @i, counted from 0, has hit. */
uint64_t faults_hits(unsigned i);
/* start_pair() with RC_OPTS or @o, rules, and four receive WRs on @peer. */
void faults_pair(const char *text);
void faults_pair_of(const struct rc_opts *o, const char *text);
/* Posts a SEND of 1000 bytes 0x11, which is one packet, to @qp. */
void faults_send(void);
/* Lets @qp's timer expire and expects its first WR to end with @status. */
void faults_sent(unsigned status);

#endif /* QHCA_TESTS_FAULTS_H */
