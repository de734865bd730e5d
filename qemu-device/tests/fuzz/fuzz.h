/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a hostile guest and a hostile network. A stream of numbers
 * decides everything they do: from a seed, or from a fuzzer's input.
 */
#ifndef QHCA_TESTS_FUZZ_H
#define QHCA_TESTS_FUZZ_H

#include "harness/canary.h"
#include "harness/srq.h"

#define FUZZ_STEPS  400         /* per session, at most */
#define FUZZ_POOL   24          /* object numbers remembered per kind */

enum fuzz_kind { PD, MR, CQ, EQ, QP, SRQ, XRCD, ETHQ, CNTSET, FLOW,
                 SPREAD, FUZZ_KINDS };

struct fuzz {
    uint64_t rng;
    const uint8_t *input;       /* instead of @rng */
    size_t input_len;
    struct node n, n2;          /* two users of one guest, with PD and page */
    struct rc_qp a, b;          /* of @n and @n2 */
    struct gsrq srq;            /* @b may receive from it */
    struct canary canary;       /* a third user, who must not be affected */
    uint32_t pool[FUZZ_KINDS][FUZZ_POOL];
    unsigned num[FUZZ_KINDS];
    struct gbuf mem[4];         /* for rings and regions, one per depth */
    unsigned fatals, ok, refused;
};

/* A number below @n. */
uint64_t rnd(struct fuzz *f, uint64_t n);
bool one_in(struct fuzz *f, unsigned n);
/* Numbers that break things: small, around powers of two, at the ends. */
uint64_t nasty(struct fuzz *f);
/* An object number of kind @k, mostly one that exists or has existed. */
uint32_t some(struct fuzz *f, enum fuzz_kind k);
void remember(struct fuzz *f, enum fuzz_kind k, uint32_t obj);
uint64_t some_addr(struct fuzz *f);

void random_command(struct fuzz *f);
/* Executes @c, unless it names an object of the canary. */
void fuzz_command(struct fuzz *f, struct qhca_cmd *c);
/* The parts of fuzz_session(): the start, after each step, the end. */
void fuzz_begin(struct fuzz *f);
void fuzz_check(struct fuzz *f);
void fuzz_end(struct fuzz *f);
/* Ends the test if the engine's counts of users do not add up. */
void fuzz_check_books(const struct guest *g);

/* ---- fuzz_raw.c: sessions whose two QPs are of type RAW ---- */

/* Creates the QPs, and rules for them. */
void fuzz_raw_begin(struct fuzz *f, struct rc_opts *o);
/* Receives a frame. */
void fuzz_raw_rx(struct fuzz *f);
/* Puts a frame to send into @q's memory and into @wr. */
void fuzz_raw_wr(struct fuzz *f, const struct rc_qp *q, struct rc_wr *wr);

/*
 * Plays until FATAL, @steps, or the end of the input. Checks that the engine's
 * counts of users add up, and that it is empty after the reset at the end.
 */
void fuzz_session(struct fuzz *f, unsigned steps);

/* ---- fuzz_rates.c ---- */

/* Fills the mailbox of SET_CONGESTION with valid parameters. */
void fuzz_fill_congestion(struct fuzz *f, struct qhca_congestion *c);
/* Gives the QP another limit of its rate. */
void fuzz_rate(struct fuzz *f, const struct rc_qp *q);
/* Change the speed of the port, or what a rule makes of it. */
void fuzz_speed(struct fuzz *f);
/* Perhaps marks the packet @p, or makes a notification of it. */
void fuzz_congest(struct fuzz *f, struct roce_packet *p);

#endif /* QHCA_TESTS_FUZZ_H */
