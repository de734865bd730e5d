/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Included before everything else in a build with mutants: MUTANT(7) is 1 in a run of
 * mutant 7, and 0 otherwise. Note that it was asked.
 */
#ifndef QHCA_MUTANT_H
#define QHCA_MUTANT_H

#define MUTANTS 65536

#define MUTANT(n) (mutant_seen[n] = 1, mutant_now == (n))

extern unsigned int mutant_now;
extern unsigned char *mutant_seen;

#endif
