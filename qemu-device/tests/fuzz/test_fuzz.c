/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Seeded sessions of a hostile guest (fuzz.h). FUZZ_ITERATIONS and FUZZ_SEED in
 * the environment; the seed of a failure is in its message.
 */
#include "harness/digest.h"
#include "fuzz.h"

static uint64_t from_env(const char *name, uint64_t otherwise)
{
    const char *s = getenv(name);

    return s ? strtoull(s, NULL, 0) : otherwise;
}

static void fuzz(void)
{
    uint64_t left = from_env("FUZZ_ITERATIONS", 40000);
    uint64_t seed = from_env("FUZZ_SEED", 1);
    struct fuzz f = { 0 };

    while (left > 0) {
        f.rng = seed * 0x9e3779b97f4a7c15u + 1;
        tap_seed(seed);
        digest_begin();
        fuzz_session(&f, (unsigned)(left < FUZZ_STEPS ? left : FUZZ_STEPS));
        digest_end("fuzz %llu", (unsigned long long)seed);
        left -= left < FUZZ_STEPS ? left : FUZZ_STEPS;
        seed++;
    }
    tap_note("%u commands done, %u refused, %u sessions ended in FATAL", f.ok,
             f.refused, f.fatals);
    CHECK(f.ok > f.refused / 20);
}

static const struct test tests[] = {
    { "hostile guest, hostile network", fuzz },
};

int main(int argc, char **argv)
{
    return tap_main(argc, argv, tests, ARRAY_SIZE(tests), harness_cleanup);
}
