/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the inputs of one kind, FUZZ_KIND, driven by libFuzzer.
 */
#include "harness/harness.h"
#include "inputs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

static const uint8_t *input;
static size_t input_len;

static void run(void)
{
    FUZZ_KIND.play(input, input_len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct test session = { "session", run };

    harness_verify(VERIFY_SOMETIMES);
    input = data;
    input_len = size;
    if (size > 0 && !tap_quiet(&session, harness_cleanup)) {
        abort();
    }
    return 0;
}

/* Now and then uses libFuzzer's mutator, which knows only bytes. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    uint64_t rng = seed * 0x9e3779b97f4a7c15u + 1;

    if (seed % 4 == 0 || size == 0 || !FUZZ_KIND.has_data) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    return input_mutate(&FUZZ_KIND, data, size, max_size, &rng);
}
