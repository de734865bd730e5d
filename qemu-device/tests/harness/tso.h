/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: TCP segments for the engine to cut.
 */
#ifndef QHCA_TESTS_TSO_H
#define QHCA_TESTS_TSO_H

#include "frames.h"
#include "harness.h"

#define TSO_FLAGS   0x99        /* CWR, ACK, PSH, FIN */
#define TSO_HEADERS 90u         /* bytes, at most */

/* struct tso - a guest with such a segment in its memory */
struct tso {
    struct guest *g;
    struct eth_tx tx;
    uint64_t mem;
    size_t hdr, l3, l4;         /* length and offsets of the headers below */
    bool ipv6;
    unsigned flags;             /* TCP's */
};

/*
 * Writes the headers of a segment with 12 bytes of TCP options; @flags: TCP's.
 * Returns their length.
 */
size_t tso_headers(uint8_t *f, bool ipv6, bool tagged, unsigned flags);
/* Fills memory with such headers, then a pattern. */
struct tso tso_start(bool ipv6, bool tagged);
/* Returns the first of the two WQEs of the segment. */
struct qhca_eth_wqe *tso_post(struct tso *s, uint32_t payload, unsigned mss,
                              unsigned flags);
/* Returns the next completion, which has this status. */
struct qhca_cqe tso_expect(struct tso *s, unsigned status);
/*
 * Whether all of what tso_post() has posted has been sent; @tag: bytes that the
 * device was to insert.
 */
void tso_check(struct tso *s, uint32_t payload, unsigned mss, size_t tag);
/* Sends segments of all kinds, and checks what has become of them. */
void tso_segments(struct tso s);
/* Tries what is no segment, and at last one that is, in three pieces. */
void tso_refusals(struct tso s);

#endif /* QHCA_TESTS_TSO_H */
