/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a switch in the middle of the simulated network. Every
 * machine has a link to it, and each link to a machine has a queue, which marks
 * packets by its length as RED does (RFC 3168, and the DCQCN paper).
 */
#ifndef QHCA_TESTS_SWITCH_H
#define QHCA_TESTS_SWITCH_H

#include "net.h"

/*
 * struct net_switch - a switch
 * @mbit: speed of every link
 * @kmin, @kmax: bytes in a queue from which on some packets are marked, and all
 * @ppm: chance of a mark just below @kmax, in a million
 * @limit: bytes that a queue holds; a frame for which there is no room is lost
 * @in, @out: when the links from and to the machines are free again
 * @deepest, @marked, @lost: what has happened
 * @area: bytes in the queues times ns, for the mean
 */
struct net_switch {
    unsigned mbit, kmin, kmax, ppm, limit;
    uint64_t in[NET_MAX_PORTS], out[NET_MAX_PORTS];
    unsigned deepest;
    uint64_t marked, lost, area;
};

/* Returns when the last bit of a frame has left the machine at @from. */
uint64_t switch_in(struct net *n, unsigned from, size_t len);
/*
 * Queues a frame that has come in for the machine at @to, and marks it
 * perhaps. Returns when its last bit has left; 0: it is lost.
 */
uint64_t switch_out(struct net *n, unsigned to, uint8_t *frame, size_t len);

#endif /* QHCA_TESTS_SWITCH_H */
