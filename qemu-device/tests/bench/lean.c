/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an idle device costs its host: memory that is only reserved, and never
 * touched, costs nothing. Many devices in one process depend on that.
 */
#include <stdio.h>
#include <unistd.h>

#include "harness/harness.h"

#define DEVICES     200u
#define LIMIT_KIB   256u

/* Bytes of this process that are in memory. */
static size_t resident(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long pages;

    REQUIRE(f);
    REQUIRE(fscanf(f, "%*u %lu", &pages) == 1);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
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
    kib = (resident() - before) / DEVICES / 1024;
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
