/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Changes of the network card's settings, each with one argument, so that a table can name them.
 * They return 0 or an errno value.
 */
#ifndef SELFTESTS_CARD_SET_H
#define SELFTESTS_CARD_SET_H

#define CARD_CONTEXTS	32
#define CARD_RINGS	64	/* the smallest: each buffer is an allocation */

/*
 * Gives the card settings that tests begin with, among them a rule for a queue, an RSS context, and
 * a rule for that. After card_open(). Skips the test if there is one channel.
 */
void card_prepare(void);
/* How many channels there can be. */
int card_channels(void);
/* If the interface is up: card_works(), and frames that the rules are for arrive where they say. */
void card_check(void);
/* Removes rules and contexts, and restores the address. */
void card_finish(void);

/* ---- by ioctl(2) ---- */

int card_set_channels(int num);		/* 0: all */
int card_set_rings(int entries);
int card_set_delays(int usecs);
int card_set_mtu(int mtu);
int card_set_up(int on);
int card_set_promisc(int on);
int card_set_address(int other);	/* 0: the first one */
int card_set_group(int on);
int card_set_stamps(int on);
int card_set_flags(int flags);		/* ETH_FLAG_... */
int card_set_tso(int on);
int card_set_key(int key);		/* its first byte */
int card_set_table(int queue);		/* in all rows; -1: the default */
int card_set_fields(int ports);		/* whether ports of UDP are hashed */
int card_set_rule(int queue);
int card_set_spare_rule(int on);
int card_set_context(int queue);
int card_set_context_key(int key);
int card_set_context_fields(int ports);
int card_set_spare_context(int on);
int card_set_spare_context_rule(int on);

/* ---- by sysfs and netlink ---- */

/* Has to be called before those that follow. */
void card_nl_open(void);

int card_set_xps(int mask);		/* of queue 0 */
int card_nl_channels(int num);
int card_nl_rings(int entries);
int card_nl_delays(int usecs);
int card_nl_tso(int on);
int card_nl_mtu(int mtu);
int card_nl_up(int on);
/* Restarts by devlink, and by a reset of the function. */
int card_reload(int unused);
int card_reset(int unused);
/* Questions to ethtool and devlink. */
int card_query(int unused);

#endif /* SELFTESTS_CARD_SET_H */
