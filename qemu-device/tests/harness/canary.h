/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a user of the device who has nothing to do with what is
 * going on. Two RC QPs, connected to each other, receive WRs posted, with a
 * page, a PD, a region and CQs of their own, all in the bank: nobody may read
 * or write that, and nothing of their state may change. In the end they are to
 * work as if nothing had happened.
 */
#ifndef QHCA_TESTS_CANARY_H
#define QHCA_TESTS_CANARY_H

#include "rc.h"

#define CANARY_UAR  3

struct canary {
    struct node n;
    struct rc_qp qp[2];
    /* As they are to stay. */
    struct vhca_qp qps[2];
    struct vhca_cq cqs[4];
    struct vhca_mr mr;
    struct vhca_port port;
    uint8_t allowed[QHCA_MAX_GID / 8];  /* GIDs of its page */
};

/* On the guest of @n, whose port it uses. */
void canary_begin(struct canary *c, const struct node *n);
/* Ends the test if it is not as it was. */
void canary_check(struct canary *c);
/* Puts the port right and lets the QPs work; the last there is to do. */
void canary_end(struct canary *c);
/* Whether it is the number or key of something of the canary's. */
bool canary_owns(const struct canary *c, uint32_t number);

#endif /* QHCA_TESTS_CANARY_H */
