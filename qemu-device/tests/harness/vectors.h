/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the vectors of oracle/vectors.py, which describes their
 * format. A line that cannot be parsed ends the test case.
 */
#ifndef QHCA_TESTS_VECTORS_H
#define QHCA_TESTS_VECTORS_H

#include <stdio.h>

#include "debug.h"

#define VECTOR_MAX_LINE     32768
#define VECTOR_MAX_PAYLOAD  4096

/* struct vector - a line of the file */
struct vector {
    char line[VECTOR_MAX_LINE];
    const char *kind, *name;
    const char *what;                   /* "frame": which one; else "" */
    unsigned count;                     /* "end": lines before it */
    /* "opcode", with the number in @p: */
    const char *op, *place, *headers;
    bool response, payload_allowed, offered;
    /* "frame" and "flips"; @p: without pointers */
    struct roce_packet p;
    uint8_t frame[ROCE_MAX_FRAME + 16], payload[VECTOR_MAX_PAYLOAD];
    uint8_t same[256];
    size_t len;
};

void vector_read(FILE *file, struct vector *v);

/* The first field of @p that is not as in @v, or NULL. */
const char *vector_differs(const struct vector *v, const struct roce_packet *p);

/*
 * roce_parse() of a copy that has a heap block to itself, so that the sanitizer
 * sees a read past it. The payload stays where it is until the next call.
 */
enum roce_parse_result parse_copy(struct roce_packet *p, const uint8_t *frame,
                                  size_t len);

#endif /* QHCA_TESTS_VECTORS_H */
