/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a device whose share is spent waits for its time. It does
 * not ask to be called again and again until then.
 */
#include "harness/fixture.h"

static void test_spin(void)
{
    struct rc_opts o = RC_OPTS;
    unsigned ticks = 0;

    harness_cleanup();
    g = guest_new_limited(1, 1, 0);
    guest_enable(g, 5);
    node = node_on(g, 1);
    far = (struct node) { .g = g, .host = 9, .vlan = QHCA_NO_VLAN };
    o.timeout = 1;                      /* 8 us */
    o.retry = 7;
    qp = rc_scripted(&node, &o, &far);
    guest_advance(g, 1000000000);
    post_writes(&qp, 40, 4000);
    rc_ring(&qp);
    CHECK(!qhca_engine_has_time(g->e, *g->clock));
    *g->clock = g->deadline;
    /* As QEMU's main loop does, without time passing. */
    while (g->deadline <= *g->clock && ticks < 1000) {
        g->deadline = UINT64_MAX;
        qhca_engine_tick(g->e, *g->clock);
        CHECK(g->e->spent > 0);
        ticks++;
    }
    CHECK(ticks <= 1);
}

static const struct test tests[] = {
    { "a timer that is due while the share is spent waits, too", test_spin },
};

TEST_MAIN(tests)
