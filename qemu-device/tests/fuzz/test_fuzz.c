/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Seeded sessions of a hostile guest (fuzz.h). FUZZ_ITERATIONS and FUZZ_SEED
 * (or "date") in the environment; the seed of a failure is in its message.
 */
#include "harness/digest.h"
#include "harness/seed.h"
#include "fuzz.h"

static void fuzz(void)
{
    uint64_t left = seed_from_env("FUZZ_ITERATIONS", 40000);
    uint64_t seed = seed_from_env("FUZZ_SEED", 1);
    struct fuzz f = { 0 };

    tap_note("replay: FUZZ_SEED=%llu FUZZ_ITERATIONS=%llu test_fuzz",
             (unsigned long long)seed, (unsigned long long)left);
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
    harness_verify(VERIFY_SOMETIMES);
    return tap_main(argc, argv, tests, ARRAY_SIZE(tests), harness_cleanup);
}
