/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An idle device and a connected QP must cost their host little: memory that is
 * only reserved, and never touched, costs nothing. Many devices in one process
 * depend on that.
 */
#include <malloc.h>
#include <stdio.h>

#include "harness/fixture.h"

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

#define PAIRS           500u
#define LIMIT_PER_QP    8192u

/* As small as they come: two WRs each way. */
static struct rc_opts small(void)
{
    struct rc_opts o = RC_OPTS;

    o.sq_log = o.rq_log = 1;
    o.cq_log = 1;
    o.sges = 1;
    o.max_inline = 0;
    return o;
}

/* Bytes of the heap, of which the guest's memory is no part. */
static size_t allocated(void)
{
    struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

/* Each pair has moved a message in both directions. */
static void test_connected(void)
{
    static struct rc_qp a[PAIRS], b[PAIRS];
    const struct rc_opts o = small();
    size_t before, each;

    start_node();
    rc_pair(&node, &o, &qp, &peer);
    before = allocated();
    for (unsigned i = 0; i < PAIRS; i++) {
        rc_pair(&node, &o, &a[i], &b[i]);
        for (unsigned end = 0; end < 2; end++) {
            struct rc_qp *q = end ? &b[i] : &a[i];
            struct rc_wr wr = rc_wr(q, QHCA_WR_RDMA_WRITE, 0, 4096);
            struct qhca_cqe cqe;

            rc_aim(&wr, &node, 0);
            rc_post(q, &wr);
            guest_settle(g);
            CHECK(cq_poll(&q->scq, &cqe) && cqe.status == QHCA_WC_SUCCESS);
        }
    }
    each = (allocated() - before) / (2 * PAIRS);
    tap_note("%zu bytes for a connected QP with its CQs", each);
    CHECK(each > 0 && each <= LIMIT_PER_QP);
}

static const struct test tests[] = {
    { "an idle device", test_idle },
    { "a connected QP", test_connected },
};

TEST_MAIN(tests)
