/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plays the inputs of inputs.h: good ones, those that fuzzing has found
 * (corpus/), and seeded changes to both. FUZZ_SEED and FUZZ_ITERATIONS in the
 * environment; FUZZ_SEEDS=DIR writes the good ones to DIR/KIND, as a fuzzer's
 * first corpus.
 */
#include <dirent.h>
#include <stdio.h>

#include "harness/digest.h"
#include "harness/harness.h"
#include "harness/net.h"
#include "harness/seed.h"
#include "inputs.h"

#define MAX_INPUTS  2000

/* Inputs of one kind, to be changed. */
static struct {
    size_t len;
    uint8_t *data;
} inputs[MAX_INPUTS];
static unsigned num_inputs;

static void keep(const uint8_t *data, size_t len)
{
    if (num_inputs < MAX_INPUTS) {
        inputs[num_inputs].data = malloc(len);
        memcpy(inputs[num_inputs].data, data, len);
        inputs[num_inputs++].len = len;
    }
}

static void keep_none(void)
{
    while (num_inputs > 0) {
        free(inputs[--num_inputs].data);
    }
}

static void write_seed(const char *dir, const char *kind, unsigned n,
                       const uint8_t *data, size_t len)
{
    char path[300];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s/seed-%04u", dir, kind, n);
    f = fopen(path, "wb");
    REQUIRE(f && fwrite(data, 1, len, f) == len);
    fclose(f);
}

static void seeds(const struct input_kind *in)
{
    static uint8_t data[INPUT_MAX];
    const char *dir = getenv("FUZZ_SEEDS");
    unsigned n;
    size_t len;

    for (n = 0; (len = in->seed(n, data)) > 0; n++) {
        tap_seed(n);
        digest_begin();
        CHECK(in->play(data, len) > 0);
        digest_end("%s %u", in->name, n);
        keep(data, len);
        if (dir) {
            write_seed(dir, in->name, n, data, len);
        }
    }
    CHECK(n > 5);
}

static int is_input(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

/* Plays the corpus in the order of names, because seeds choose by number. */
static void corpus(const struct input_kind *in)
{
    static uint8_t data[INPUT_MAX];
    struct dirent **list;
    char dir[40], path[sizeof(dir) + 1 + sizeof(list[0]->d_name)];
    int n;

    snprintf(dir, sizeof(dir), "corpus/%s", in->name);
    n = scandir(dir, &list, is_input, alphasort);
    for (int i = 0; i < n; i++) {
        FILE *f;
        size_t len;

        snprintf(path, sizeof(path), "%s/%s", dir, list[i]->d_name);
        f = fopen(path, "rb");
        REQUIRE(f);
        len = fread(data, 1, sizeof(data), f);
        fclose(f);
        tap_seed(strtoull(list[i]->d_name, NULL, 16));      /* a hash */
        in->play(data, len);
        keep(data, len);
        free(list[i]);
    }
    CHECK(n > 0);
    if (n >= 0) {
        free(list);
    }
}

static void changes(const struct input_kind *in)
{
    static uint8_t data[INPUT_MAX];
    uint64_t i, seed = seed_from_env("FUZZ_SEED", 1), rng;
    uint64_t n = seed_from_env("FUZZ_ITERATIONS", 100);
    unsigned which, times;
    size_t len;

    REQUIRE(num_inputs);
    tap_note("replay: FUZZ_SEED=%llu FUZZ_ITERATIONS=%llu test_fuzz_inputs %s",
             (unsigned long long)seed, (unsigned long long)n, in->name);
    for (i = 0; i < n; i++, seed++) {
        tap_seed(seed);
        rng = seed * 0x9e3779b97f4a7c15u + 1;
        which = (unsigned)(test_random(&rng) % num_inputs);
        len = inputs[which].len;
        memcpy(data, inputs[which].data, len);
        for (times = 1 + (unsigned)(test_random(&rng) % 16); times; times--) {
            len = input_mutate(in, data, len, sizeof(data), &rng);
        }
        in->play(data, len);
    }
}

static void all_of(const struct input_kind *in)
{
    seeds(in);
    corpus(in);
    changes(in);
    keep_none();
}

#define KIND(kind) \
    static void kind(void) \
    { \
        all_of(&input_##kind); \
    }
KIND(frames)
KIND(commands)
KIND(wqes)
KIND(doorbells)
KIND(tables)
KIND(sessions)
KIND(state)
KIND(fields)

static const struct test tests[] = {
    { "E-046 frames", frames },
    { "commands", commands },
    { "wqes", wqes },
    { "doorbells", doorbells },
    { "tables", tables },
    { "sessions", sessions },
    { "state", state },
    { "fields of a state", fields },
};

int main(int argc, char **argv)
{
    harness_verify(VERIFY_SOMETIMES);
    return tap_main(argc, argv, tests, ARRAY_SIZE(tests), harness_cleanup);
}
