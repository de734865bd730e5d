/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "faults.h"

void faults_set(const char *text)
{
    guest_set_faults(g, text);
}

uint64_t faults_hits(unsigned i)
{
    return g->e->faults->rule[i].hits;
}

void faults_pair_of(const struct rc_opts *o, const char *text)
{
    start_pair(o);
    faults_set(text);
    memset(guest_ptr(g, node.mr.addr, FAULT_DST), 0x11, FAULT_DST);
    memset(guest_ptr(g, node.mr.addr + FAULT_DST, FAULT_DST), 0, FAULT_DST);
    for (unsigned i = 0; i < 4; i++) {
        rc_recv(&peer, i, FAULT_DST, 4096);
    }
}

void faults_pair(const char *text)
{
    struct rc_opts o = RC_OPTS;

    faults_pair_of(&o, text);
}

void faults_send(void)
{
    struct rc_wr wr = rc_wr(&qp, QHCA_WR_SEND, 0, 1000);

    rc_post(&qp, &wr);
    guest_settle(g);
}

void faults_sent(unsigned status)
{
    guest_advance(g, 20 * ACK_TIME);
    done(0, status);
}
