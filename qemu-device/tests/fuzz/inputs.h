/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: inputs of fuzzers. An input is a byte of configuration,
 * then records, each with the fields to fix up before it is played, so that a
 * change anywhere passes the checks in front of the code it is aimed at.
 */
#ifndef QHCA_TESTS_INPUTS_H
#define QHCA_TESTS_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INPUT_MAX   16384

/* struct record - followed by @len bytes of data, if its kind has any */
struct record {
    uint8_t kind;
    uint8_t fix;                /* fields to fix up */
    uint8_t aim;                /* what the record is aimed at */
    uint8_t len[2];             /* little-endian; or another number */
};

static inline size_t record_number(const struct record *r)
{
    return r->len[0] | (size_t)r->len[1] << 8;
}

/**
 * struct input_kind - inputs for one part of the engine
 * @name: name of the kind, and of its folder in corpus/
 * @cfgs: number of useful values of the first byte
 * @has_data: whether data follow a record of kind @kind
 * @play: plays the input to a new device and checks all invariants. Returns how
 *        much of it passed the checks.
 * @seed: good input number @n, all of which passes; 0: no more. @data has room
 *        for INPUT_MAX.
 * @change: changes a field in the data of a record; NULL: change any bytes
 */
struct input_kind {
    const char *name;
    unsigned cfgs;
    bool (*has_data)(uint8_t kind);
    uint64_t (*play)(const uint8_t *data, size_t size);
    size_t (*seed)(unsigned n, uint8_t *data);
    void (*change)(uint8_t kind, uint8_t *data, size_t len, uint64_t *rng);
};

extern const struct input_kind input_frames, input_commands, input_wqes,
                               input_doorbells, input_tables, input_sessions,
                               input_state, input_fields;
/* All of them, up to NULL. */
extern const struct input_kind *const input_kinds[];

/* Changes records and their data. Returns the new size, at most @max. */
size_t input_mutate(const struct input_kind *in, uint8_t *data, size_t size,
                    size_t max, uint64_t *rng);
/* A number from 0 to @n - 1, and one that breaks things. */
uint64_t input_pick(uint64_t *rng, uint64_t n);
uint64_t input_odd(uint64_t *rng);
/* Appends a record to a seed at @out; returns the bytes. */
size_t input_put(uint8_t *out, uint8_t kind, uint8_t fix, uint8_t aim,
                 const void *data, size_t len, bool has_data);

#endif /* QHCA_TESTS_INPUTS_H */
