/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hostile network of fuzz_frames.h: good sessions, the corpus that fuzzing
 * has found (corpus/frames), and seeded changes to both. FUZZ_SEED and
 * FUZZ_ITERATIONS in the environment; FUZZ_SEEDS=DIR writes the good sessions
 * there, as a fuzzer's first corpus.
 */
#include <dirent.h>
#include <stdio.h>

#include "harness/digest.h"
#include "harness/seed.h"
#include "fuzz_frames.h"

#define CORPUS      "corpus/frames"
#define MAX_INPUTS  2000

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

static void write_seed(const char *dir, unsigned n, const uint8_t *data,
                       size_t len)
{
    char path[300];
    FILE *f;

    snprintf(path, sizeof(path), "%s/seed-%04u", dir, n);
    f = fopen(path, "wb");
    REQUIRE(f && fwrite(data, 1, len, f) == len);
    fclose(f);
}

static void seeds(void)
{
    static uint8_t data[FRAMES_MAX_INPUT];
    const char *dir = getenv("FUZZ_SEEDS");
    unsigned n;
    size_t len;

    for (n = 0; (len = frames_seed(n, data)) > 0; n++) {
        tap_seed(n);
        digest_begin();
        CHECK(frames_session(data, len) > 0);
        digest_end("frames %u", n);
        keep(data, len);
        if (dir) {
            write_seed(dir, n, data, len);
        }
    }
    CHECK(n > 200);
}

static int is_input(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

/* In the order of names: a seed chooses by number. */
static void corpus(void)
{
    static uint8_t data[FRAMES_MAX_INPUT];
    struct dirent **list;
    char path[sizeof(CORPUS) + 1 + sizeof(list[0]->d_name)];
    int n = scandir(CORPUS, &list, is_input, alphasort);
    size_t len;
    FILE *f;

    REQUIRE(n > 0);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof(path), CORPUS "/%s", list[i]->d_name);
        f = fopen(path, "rb");
        REQUIRE(f);
        len = fread(data, 1, sizeof(data), f);
        fclose(f);
        tap_seed(strtoull(list[i]->d_name, NULL, 16));      /* a hash */
        frames_session(data, len);
        keep(data, len);
        free(list[i]);
    }
    free(list);
}

static void changes(void)
{
    static uint8_t data[FRAMES_MAX_INPUT];
    uint64_t i, seed = seed_from_env("FUZZ_SEED", 1), rng;
    uint64_t n = seed_from_env("FUZZ_ITERATIONS", 300);
    unsigned which, times;
    size_t len;

    REQUIRE(num_inputs);
    tap_note("replay: FUZZ_SEED=%llu FUZZ_ITERATIONS=%llu test_fuzz_frames",
             (unsigned long long)seed, (unsigned long long)n);
    for (i = 0; i < n; i++, seed++) {
        tap_seed(seed);
        rng = seed * 0x9e3779b97f4a7c15u + 1;
        which = (unsigned)(test_random(&rng) % num_inputs);
        len = inputs[which].len;
        memcpy(data, inputs[which].data, len);
        for (times = 1 + (unsigned)(test_random(&rng) % 16); times; times--) {
            len = frames_mutate(data, len, sizeof(data), &rng);
        }
        frames_session(data, len);
    }
}

static const struct test tests[] = {
    { "E-046 good sessions", seeds },
    { "E-046 the corpus", corpus },
    { "E-046 changes to them", changes },
};

int main(int argc, char **argv)
{
    return tap_main(argc, argv, tests, ARRAY_SIZE(tests), harness_cleanup);
}
