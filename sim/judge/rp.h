/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The engine's reaction points, by number; times in ns. */
#ifndef QHCA_SIM_JUDGE_RP_H
#define QHCA_SIM_JUDGE_RP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Begin anew, at a port of @mbit. */
void rp_start(unsigned mbit);
void rp_cnp(unsigned which, uint64_t now);
/* Return the kbit/s that are left behind @bytes; 0: all. */
uint64_t rp_sent(unsigned which, uint64_t now, uint32_t bytes);

#ifdef __cplusplus
}
#endif
#endif
