/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: doorbells in memory that come late: many of them, many
 * pages, no time.
 */
#include "harness/fixture.h"
#include "harness/shadow.h"
#include "harness/snapshot.h"

static bool look(void)
{
    bool found = qhca_engine_look(g->e, *g->clock);

    guest_settle(g);
    return found;
}

/* A device that is asked and does not look can be saved, whoever asked. */
static void many_ask(void)
{
    struct shadow s[9];

    start_node();
    for (unsigned i = 0; i < ARRAY_SIZE(s); i++) {
        shadow_start(&s[i], g, i);
        shadow_ask(&s[i]);
    }
    snapshot_cycle(g);
    CHECK(look());
    CHECK(shadow_header(&s[0])->ask);
    CHECK(!shadow_header(&s[8])->ask);
}

static const struct test tests[] = {
    { "more pages that ask than are looked at", many_ask },
};

TEST_MAIN(tests)
