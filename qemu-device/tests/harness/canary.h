/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a user of the device whom a test must not disturb: two RC
 * QPs, connected to each other, with receive WRs posted, and a page, a PD, a
 * region and CQs of their own. All their memory is in the bank. During the test
 * the device must not access the bank, and their state must not change. At the
 * end they must still transfer data.
 */
#ifndef QHCA_TESTS_CANARY_H
#define QHCA_TESTS_CANARY_H

#include "rc.h"

#define CANARY_UAR  3

struct canary {
    struct node n;
    struct rc_qp qp[2];
    /* Copies of the state that must not change, and of the port. */
    struct vhca_qp qps[2];
    struct vhca_cq cqs[4];
    struct vhca_mr mr;
    struct vhca_port port;
    uint8_t allowed[VHCA_MAX_GID / 8];  /* GIDs that its page may use */
};

/* Creates the canary on @n's guest; it uses @n's port. */
void canary_begin(struct canary *c, const struct node *n);
/* Ends the test if the canary's state has changed. */
void canary_check(struct canary *c);
/* Restores the port and lets the QPs transfer data. Call this last. */
void canary_end(struct canary *c);
/* Whether @number is the number or key of an object of the canary. */
bool canary_owns(const struct canary *c, uint32_t number);

#endif /* QHCA_TESTS_CANARY_H */
