/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "faults.h"

void faults_set(const char *text)
{
    guest_set_faults(g, text);
}

uint64_t guest_fault_hits(const struct guest *guest)
{
    const struct vhca_rules *f = guest->e->rules;
    uint64_t sum = 0;

    for (unsigned i = 0; i < f->num_rules; i++) {
        sum += f->rule[i].hits;
    }
    return sum;
}

uint64_t faults_hits(unsigned i)
{
    return g->e->rules->rule[i].hits;
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
    faults_pair_of(&RC_OPTS, text);
}

void faults_send(void)
{
    rc_send(&qp, 1000);
}

void faults_sent(unsigned status)
{
    guest_advance(g, 20 * ACK_TIME);
    done(0, status);
}
