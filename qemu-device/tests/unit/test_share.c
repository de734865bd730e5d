/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who gets how much of the device: doorbell pages.
 */
#include "harness/budget.h"

static uint32_t done_on(struct rc_qp *q)
{
    return le32toh(rc_query(q).sq_ci);
}

/*
 * Doorbell pages share the device, whatever the number of their QPs: one that
 * has a single QP gets as much done as one with hundreds.
 */
static void test_pages(void)
{
    static struct rc_qp rival[800];
    const unsigned rivals = 400, n = 512;
    struct rc_opts o = RC_OPTS, theirs = RC_OPTS;
    uint32_t done = 0;
    struct rc_wr wr;

    o.sq_log = 10;
    o.cq_log = 12;
    start_pair(&o);
    theirs.uar = 2;
    for (unsigned i = 0; i < 2 * rivals; i += 2) {
        rival[i] = rc_create(&node, &theirs);
        rival[i + 1] = rc_create(&node, &theirs);
        rc_connect(&rival[i], &rival[i + 1]);
    }
    for (unsigned j = 0; j < 50; j++) {
        for (unsigned i = 0; i < 2 * rivals; i += 2) {
            wr = rc_wr(&rival[i], QHCA_WR_RDMA_WRITE, 0, 8);
            rc_aim(&wr, &node, 4096);
            rc_put(&rival[i], &wr);
        }
    }
    for (unsigned i = 0; i < 2 * rivals; i += 2) {
        rc_ring(&rival[i]);
    }
    for (unsigned j = 0; j < n; j++) {
        wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 8);
        rc_aim(&wr, &node, 4096);
        rc_put(&qp, &wr);
    }
    rc_ring(&qp);
    while (qhca_qp_get(g->e, qp.qpn)->sq.ci != n) {
        REQUIRE(g->scheduled);
        g->scheduled = false;
        qhca_engine_run(g->e, *g->clock);
    }
    for (unsigned i = 0; i < 2 * rivals; i += 2) {
        done += qhca_qp_get(g->e, rival[i].qpn)->sq.ci;
    }
    tap_note("%u of one, %u of %u rivals", n, done, rivals);
    CHECK(done < 3 * n && done > n / 10);
    settle();
    for (unsigned i = 0; i < 2 * rivals; i += 2) {
        CHECK_EQ(done_on(&rival[i]), 50);
    }
}

static const struct test tests[] = {
    { "doorbell pages take turns", test_pages },
};

int main(int argc, char **argv)
{
    return tap_main(argc, argv, tests, ARRAY_SIZE(tests), harness_cleanup);
}
