// SPDX-License-Identifier: GPL-2.0
/*
 * Every allocation of a restart of the device fails once, or every 41st. The device starts with all
 * that it had before, or not at all, and then another restart helps. As nomem, this is not in
 * tests.list.
 * With NOMEM_LAST only so many allocations fail, the last ones.
 */
#include <linux/ethtool.h>
#include <stdlib.h>

#include "lib/card.h"
#include "lib/card_set.h"
#include "lib/failing.h"
#include "lib/life.h"

#define MANY	100000	/* more allocations than a restart has */
#define MISSES	3	/* so many restarts without a failure are the end */

/* struct restart - a way to restart the device, with or without the RDMA driver */
static const struct restart {
	const char *name;
	int (*set)(int unused);
	bool rdma;
	unsigned int step;	/* so far from one allocation that fails to the next */
} restarts[] = {
	{ "devlink", card_reload, false, 1 },
	{ "function reset", card_reset, false, 1 },
	/* The core makes most of the 2500 allocations. */
	{ "devlink, with RDMA", card_reload, true, 41 },
};

static unsigned int away;	/* how often the device did not start */

#define PROBES	"/sys/bus/auxiliary/drivers_autoprobe"

/* It survives the process of the test. */
__attribute__((destructor)) static void restore(void)
{
	write_file(PROBES, "1");
}

/* The device does not start without memory, and a restart by hand helps. */
static void mend(const char *before)
{
	struct ethtool_channels c = { .cmd = ETHTOOL_GCHANNELS };
	char now[CARD_TEXT];

	if (card_ethtool(&c)) {
		away++;
		REQUIRE_OK(card_reload(0));
	}
	card_settings(now, sizeof(now));
	REQUIRE(card_same(now, before));
	card_check();
}

TEST_ROWS(restart, "each allocation of a restart of the device fails once", restarts)
{
	unsigned int n, num, failed = 0, refused = 0, missed = 0;
	unsigned int last = from_env("NOMEM_LAST", MANY);
	const char *gid = getenv("RDMA_GID");
	char before[CARD_TEXT];
	int err;

	test_timeout(1800);
	failing_allow();
	card_open();
	card_nl_open();
	card_prepare();
	REQUIRE_OK(write_file(PROBES, row->rdma ? "1" : "0"));
	REQUIRE_OK(card_reload(0));
	card_settings(before, sizeof(before));
	failing_arm(MANY);
	REQUIRE_OK(row->set(0));
	num = failing_count(MANY);
	test_note("%u allocations", num);
	/* The number is not always the same. */
	for (n = num > last ? num - last : 1; missed < MISSES; n += row->step) {
		failing_arm(n);
		err = row->set(0);
		if (!failing_disarm()) {
			REQUIRE_OK(err);
			missed++;
			continue;
		}
		failed++;
		refused += !!err;
		if (err && !failing_may_be(err))
			FAIL("allocation %u: %s", n, strerror(err));
		mend(before);
	}
	mend(before);
	test_note("%u allocations, %u refusals, %u times the device did not start", failed, refused,
		  away);
	card_finish();
	REQUIRE_OK(write_file(PROBES, "1"));
	REQUIRE_OK(card_reload(0));
	if (gid)
		device_wait_back(atoi(gid));
}
