// SPDX-License-Identifier: GPL-2.0
/*
 * Every allocation of every change of the network card's settings fails once. A change that returns
 * an error has changed nothing, one that does not has changed all, and frames get through each
 * queue either way. As nomem, this is not in tests.list. With NOMEM_LAST only so many allocations
 * fail, the last ones.
 */
#include <linux/ethtool.h>
#include <stdio.h>

#include "lib/card.h"
#include "lib/card_set.h"
#include "lib/failing.h"
#include "lib/rdma.h"

#define ALL_FLAGS (ETH_FLAG_TXVLAN | ETH_FLAG_RXVLAN | ETH_FLAG_NTUPLE | ETH_FLAG_RXHASH)

#define MANY	100000	/* more allocations than any change has */
/* The kernel's own bookkeeping also takes memory, so the number is not always the same. */
#define ROUNDS	3	/* after so many changes it hardly varies */
#define MISSES	3	/* so many changes in a row without a failure are the end */

/* struct change - a change of a setting from one value to another, and back */
static const struct change {
	const char *name;
	int (*set)(int to);
	int from, to;
	bool absent;		/* nothing is to be removed at first */
} changes[] = {
	{ "channels", card_nl_channels, 0, 1 },
	{ "rings", card_nl_rings, CARD_RINGS, 128 },
	{ "delays", card_nl_delays, 0, 20 },
	{ "MTU", card_nl_mtu, 4200, 1500 },
	{ "larger MTU, ioctl", card_set_mtu, 4200, 9000 },
	{ "up and down", card_nl_up, 1, 0 },
	{ "promiscuous", card_set_promisc, 0, 1 },
	{ "multicast group", card_set_group, 0, 1, true },
	{ "address", card_set_address, 0, 1 },
	{ "flags", card_set_flags, ALL_FLAGS, ALL_FLAGS & ~ETH_FLAG_RXHASH },
	{ "TSO", card_nl_tso, 1, 0 },
	{ "TSO, ioctl", card_set_tso, 1, 0 },
	{ "timestamps", card_set_stamps, 0, 1 },
	{ "XPS", card_set_xps, 1, 3 },
	{ "RSS key", card_set_key, 0x6d, 0x21 },
	{ "RSS table", card_set_table, -1, 1 },
	{ "RSS fields", card_set_fields, 1, 0 },
	{ "RSS context", card_set_spare_context, 0, 1, true },
	{ "table of an RSS context", card_set_context, 0, 1 },
	{ "key of an RSS context", card_set_context_key, 0x6e, 0x22 },
	{ "fields of an RSS context", card_set_context_fields, 1, 0 },
	{ "rule", card_set_spare_rule, 0, 1, true },
	{ "rule for an RSS context", card_set_spare_context_rule, 0, 1, true },
	{ "another rule in its place", card_set_rule, 0, 1 },
};

/* struct state - settings with one value, and the changes that lead to them */
struct state {
	int value;
	unsigned int num;	/* allocations of such a change, about */
	unsigned int failed, refused, missed;
	bool over;		/* each allocation of such a change has failed */
	char text[CARD_TEXT];
};

/* Writes the settings as they are if no CPU has a queue of its own to send. */
static void without_xps(const char *text, char *bare)
{
	char *at;

	snprintf(bare, CARD_TEXT, "%s", text);
	for (at = bare; (at = strstr(at, ": CPUs ")); )
		for (at += strlen(": CPUs "); *at != '\n'; at++)
			*at = *at == ',' ? ',' : '0';
}

/*
 * Checks the settings after a change that has returned @err. Netlink may have had no memory for the
 * answer to a change that it has made, and the driver none for XPS, which waits for the next change
 * then. Returns whether the change is made.
 */
static bool is_made(int err, bool failed, const struct state *from, const struct state *to)
{
	static char now[CARD_TEXT], bare[CARD_TEXT];

	card_settings(now, sizeof(now));
	without_xps(to->text, bare);
	if (err == ENOBUFS && !strcmp(now, to->text))
		return true;
	if (!err && failed && !strcmp(now, bare))
		return true;
	REQUIRE(card_same(now, err ? from->text : to->text));
	return !err;
}

/* Lets the next allocation of a change fail. Returns whether the change is made. */
static bool step(int (*set)(int to), const struct state *from, struct state *to)
{
	bool made, failed;
	int err;

	failing_arm(to->failed + 1);
	err = set(to->value);
	failed = failing_disarm();
	if (failed) {
		to->failed++;
		to->refused += !!err;
		to->missed = 0;
	} else {
		REQUIRE_OK(err);
		to->over = ++to->missed == MISSES;
	}
	if (err && !failing_may_be(err))
		FAIL("allocation %u of a change to %d: %s", to->failed, to->value, strerror(err));
	made = is_made(err, failed, from, to);
	card_check();
	return made;
}

/* Makes a change, and notes what it leads to. Returns 0 or an errno value. */
static int look(int (*set)(int to), struct state *to)
{
	unsigned int last = from_env("NOMEM_LAST", MANY);
	int err;

	failing_arm(MANY);
	err = set(to->value);
	to->num = failing_count(MANY);
	card_settings(to->text, sizeof(to->text));
	test_note("to %d: %u allocations", to->value, to->num);
	to->failed = to->num > last ? to->num - last : 0;
	return err;
}

static void begin(const struct change *row, struct state *state)
{
	unsigned int i;
	int err;

	failing_allow();
	card_open();
	card_nl_open();
	card_prepare();
	state[0].value = row->from;
	state[1].value = row->to;
	if (!row->absent)
		REQUIRE_OK(row->set(row->from));
	err = look(row->set, &state[1]);
	if (err == EOPNOTSUPP)
		test_skip("not supported");
	REQUIRE_OK(err);
	REQUIRE_OK(look(row->set, &state[0]));
	for (i = 1; i < ROUNDS; i++) {
		REQUIRE_OK(look(row->set, &state[1]));
		REQUIRE_OK(look(row->set, &state[0]));
	}
}

TEST_ROWS(change, "each allocation of a change of the network card fails once", changes)
{
	static struct state state[2];
	unsigned int i, at = 0;

	test_timeout(1800);
	begin(row, state);
	while (!state[0].over || !state[1].over) {
		i = !at;
		if (state[i].over) {
			REQUIRE_OK(row->set(state[i].value));
			is_made(0, false, &state[at], &state[i]);
			at = i;
		} else if (step(row->set, &state[at], &state[i])) {
			at = i;
		}
	}
	for (i = 0; i < 2; i++)
		test_note("to %d: %u allocations, %u refusals", state[i].value, state[i].failed,
			  state[i].refused);
	CHECK(state[0].failed + state[1].failed > 0 || !(state[0].num + state[1].num));
	if (at)
		REQUIRE_OK(row->set(row->from));
	card_finish();
}
