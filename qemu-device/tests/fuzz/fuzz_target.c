/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the hostile guest of fuzz.h, driven by libFuzzer.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *input;
static size_t input_len;

static void run(void)
{
    struct fuzz f = { .input = input, .input_len = input_len };

    fuzz_session(&f, FUZZ_STEPS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct test session = { "session", run };

    input = data;
    input_len = size;
    if (size > 0 && !tap_quiet(&session, harness_cleanup)) {
        abort();
    }
    return 0;
}
