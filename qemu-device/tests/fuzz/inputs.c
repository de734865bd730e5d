/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: changes to the records of inputs.
 */
#include <string.h>

#include "harness/net.h"
#include "inputs.h"

#define MAX_RECS    256

const struct input_kind *const input_kinds[] = {
    &input_frames, &input_commands, &input_wqes, &input_doorbells,
    &input_tables, &input_sessions, &input_state, &input_fields,
    NULL
};

uint64_t input_pick(uint64_t *rng, uint64_t n)
{
    return (test_random(rng) >> 11) % n;
}

uint64_t input_odd(uint64_t *rng)
{
    uint64_t v = 1ull << input_pick(rng, 64);

    switch (input_pick(rng, 4)) {
    case 0:
        return input_pick(rng, 20);
    case 1:
        return v - input_pick(rng, 3);
    case 2:
        return ~input_pick(rng, 20);
    default:
        return test_random(rng);
    }
}

static void set_number(uint8_t *rec, size_t n)
{
    rec[offsetof(struct record, len)] = (uint8_t)n;
    rec[offsetof(struct record, len) + 1] = (uint8_t)(n >> 8);
}

size_t input_put(uint8_t *out, uint8_t kind, uint8_t fix, uint8_t aim,
                 const void *data, size_t len, bool has_data)
{
    struct record r = { .kind = kind, .fix = fix, .aim = aim };

    memcpy(out, &r, sizeof(r));
    set_number(out, len);
    if (!has_data) {
        return sizeof(r);
    }
    memcpy(out + sizeof(r), data, len);
    return sizeof(r) + len;
}

static size_t rec_len(const struct input_kind *in, const uint8_t *rec,
                      size_t left)
{
    const struct record *r = (const void *)rec;
    size_t len = sizeof(*r);

    if (left < len) {
        return left;
    }
    if (in->has_data(r->kind)) {
        len += record_number(r);
    }
    return len < left ? len : left;
}

static void change_rec(const struct input_kind *in, uint8_t *rec, size_t len,
                       uint64_t *rng)
{
    uint8_t *data = rec + sizeof(struct record);
    size_t n = len - sizeof(struct record);

    switch (input_pick(rng, n ? 8 : 3)) {
    case 0:
        rec[1] ^= (uint8_t)(1u << input_pick(rng, 8));
        break;
    case 1:
        rec[2] = (uint8_t)input_pick(rng, 256);
        break;
    case 2:
        if (n == 0) {
            set_number(rec, input_pick(rng, 65536));
        } else {
            set_number(rec, n - input_pick(rng, n < 40 ? n : 40));
        }
        break;
    case 3:
        data[input_pick(rng, n)] ^= (uint8_t)(1u << input_pick(rng, 8));
        break;
    default:
        in->change(rec[0], data, n, rng);
        break;
    }
}

/* Makes room for @len bytes at @at, or removes them. */
static size_t shift(uint8_t *data, size_t size, size_t at, size_t len,
                    bool in)
{
    if (in) {
        memmove(data + at + len, data + at, size - at);
        return size + len;
    }
    memmove(data + at, data + at + len, size - at - len);
    return size - len;
}

/* Inserts a record of a good input at @at. */
static size_t graft(const struct input_kind *in, uint8_t *data, size_t size,
                    size_t max, size_t at, uint64_t *rng)
{
    static uint8_t seed[INPUT_MAX];
    size_t len = in->seed((unsigned)input_pick(rng, 500), seed), off = 1, n;

    if (len == 0) {
        len = in->seed((unsigned)input_pick(rng, 20), seed);
    }
    if (len == 0 || at == 0) {
        return size;
    }
    n = rec_len(in, seed + off, len - off);
    while (off + n < len && input_pick(rng, 3)) {
        off += n;
        n = rec_len(in, seed + off, len - off);
    }
    if (size + n <= max) {
        size = shift(data, size, at, n, true);
        memcpy(data + at, seed + off, n);
    }
    return size;
}

static size_t repeat(uint8_t *data, size_t size, size_t max, size_t at,
                     size_t len)
{
    if (size + len <= max) {
        size = shift(data, size, at, len, true);
        memcpy(data + at, data + at + len, len);
    }
    return size;
}

/* Changes some bytes of an input without records. */
static size_t change_bytes(uint8_t *data, size_t size, uint64_t *rng)
{
    for (unsigned n = 1 + (unsigned)input_pick(rng, 4); n && size; n--) {
        data[input_pick(rng, size)] = (uint8_t)input_odd(rng);
    }
    return size;
}

size_t input_mutate(const struct input_kind *in, uint8_t *data, size_t size,
                    size_t max, uint64_t *rng)
{
    size_t at[MAX_RECS], len[MAX_RECS], n = 0, off, i;

    if (!in->has_data) {
        return change_bytes(data, size, rng);
    }
    for (off = 1; off < size && n < MAX_RECS; off += len[n++]) {
        at[n] = off;
        len[n] = rec_len(in, data + off, size - off);
    }
    if (n == 0) {
        return graft(in, data, size, max, size, rng);
    }
    i = input_pick(rng, n);
    switch (input_pick(rng, 12)) {
    case 0:
        return n > 1 ? shift(data, size, at[i], len[i], false) : size;
    case 1:
        return repeat(data, size, max, at[i], len[i]);
    case 2:
        return graft(in, data, size, max, at[i], rng);
    case 3:
        data[0] = (uint8_t)input_pick(rng, in->cfgs);
        return size;
    default:
        if (len[i] >= sizeof(struct record)) {
            change_rec(in, data + at[i], len[i], rng);
        }
        return size;
    }
}
