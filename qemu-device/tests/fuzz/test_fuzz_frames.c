/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hostile network of fuzz_frames.h: good sessions, what fuzzing has found
 * worth keeping (corpus/frames), and seeded changes to both. FUZZ_SEED and
 * FUZZ_ITERATIONS in the environment; FUZZ_SEEDS=DIR writes the good sessions
 * there, as a fuzzer's first corpus.
 */
#include <dirent.h>
#include <stdio.h>

#include "harness/digest.h"
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

static void corpus(void)
{
    static uint8_t data[FRAMES_MAX_INPUT];
    struct dirent *d;
    DIR *dir = opendir(CORPUS);
    char path[sizeof(CORPUS) + 1 + sizeof(d->d_name)];
    unsigned n = 0;
    size_t len;
    FILE *f;

    REQUIRE(dir);
    while ((d = readdir(dir))) {
        if (d->d_name[0] == '.') {
            continue;
        }
        snprintf(path, sizeof(path), CORPUS "/%s", d->d_name);
        f = fopen(path, "rb");
        REQUIRE(f);
        len = fread(data, 1, sizeof(data), f);
        fclose(f);
        tap_seed(strtoull(d->d_name, NULL, 16));     /* a hash */
        frames_session(data, len);
        keep(data, len);
        n++;
    }
    closedir(dir);
    CHECK(n > 0);
}

static uint64_t from_env(const char *name, uint64_t otherwise)
{
    const char *s = getenv(name);

    return s ? strtoull(s, NULL, 0) : otherwise;
}

static void changes(void)
{
    static uint8_t data[FRAMES_MAX_INPUT];
    uint64_t i, seed = from_env("FUZZ_SEED", 1), rng;
    uint64_t n = from_env("FUZZ_ITERATIONS", 300);
    unsigned which, times;
    size_t len;

    REQUIRE(num_inputs);
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
