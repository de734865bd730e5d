/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reaction points by number: of the engine, or of a model; times in ns. */
#ifndef QHCA_SIM_JUDGE_RP_H
#define QHCA_SIM_JUDGE_RP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* So many begin, at a port of @mbit. */
void rp_start(unsigned flows, unsigned mbit);
/* The time never goes back from call to call. */
void rp_cnp(unsigned which, uint64_t now);
/* Return the kbit/s that are left behind @bytes; 0: all. */
uint64_t rp_sent(unsigned which, uint64_t now, uint32_t bytes);

#ifdef __cplusplus
}
#endif
#endif
