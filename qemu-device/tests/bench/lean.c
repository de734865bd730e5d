/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an idle device costs its host: memory that is only reserved, and never
 * touched, costs nothing. Many devices in one process depend on that.
 */
#include <stdio.h>

#include "harness/harness.h"

#define DEVICES     200u
#define LIMIT_KIB   256u

/* KiB of this process that are in memory. */
static size_t resident(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    size_t kib = 0;
    char line[100];

    REQUIRE(f);
    while (!kib && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "VmRSS: %zu", &kib) != 1) {
            kib = 0;
        }
    }
    fclose(f);
    REQUIRE(kib);
    return kib;
}

static struct guest nobody[DEVICES];
static struct qhca_engine *engine[DEVICES];

static void test_idle(void)
{
    const struct qhca_engine_config cfg = {
        .mac = { 0x52, 0x54, 0, 1, 2, 3 }, .num_vectors = 8, .num_uars = 64,
        .log_db_stride = QHCA_PAGE_SHIFT, .max_qp = 4096, .eth_queues = 1,
        .cmd_timeout_ms = 1000,
    };
    size_t before, kib;

    memset(nobody, 1, sizeof(nobody));
    memset(nobody, 0, sizeof(nobody));
    before = resident();
    for (unsigned i = 0; i < DEVICES; i++) {
        engine[i] = qhca_engine_new(&cfg, &guest_ops, &nobody[i]);
        REQUIRE(engine[i]);
    }
    kib = (resident() - before) / DEVICES;
    tap_note("%zu KiB each", kib);
    CHECK(kib > 0 && kib <= LIMIT_KIB);
    for (unsigned i = 0; i < DEVICES; i++) {
        qhca_engine_free(engine[i]);
    }
}

static const struct test tests[] = {
    { "an idle device", test_idle },
};

TEST_MAIN(tests)
