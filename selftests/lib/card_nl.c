// SPDX-License-Identifier: GPL-2.0
/* Changes of the network card's settings, by netlink and sysfs. */
#include <linux/devlink.h>
#include <linux/ethtool.h>
#include <linux/ethtool_netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>

#include "card.h"
#include "card_set.h"
#include "nl.h"
#include "rdma.h"

static int route_fd, generic_fd;
static uint16_t ethtool_id, devlink_id;

void card_nl_open(void)
{
	route_fd = nl_open(NETLINK_ROUTE);
	generic_fd = nl_open(NETLINK_GENERIC);
	ethtool_id = nl_family(generic_fd, "ethtool");
	devlink_id = nl_family(generic_fd, "devlink");
	REQUIRE(ethtool_id && devlink_id);
}

int card_set_xps(int mask)
{
	char text[16];

	snprintf(text, sizeof(text), "%x", mask);
	return card_write("queues/tx-0/xps_cpus", text);
}

/* An attribute of the command, or two. */
static int by_netlink(uint8_t cmd, uint16_t header, uint16_t attr, uint32_t value, uint16_t other)
{
	struct nl_msg m;
	size_t nest;

	nl_start_generic(&m, ethtool_id, cmd);
	nest = nl_nest(&m, header);
	nl_put_u32(&m, ETHTOOL_A_HEADER_DEV_INDEX, card_index());
	nl_nest_end(&m, nest);
	nl_put_u32(&m, attr, value);
	if (other)
		nl_put_u32(&m, other, value);
	return nl_talk(generic_fd, &m);
}

int card_nl_channels(int num)
{
	return by_netlink(ETHTOOL_MSG_CHANNELS_SET, ETHTOOL_A_CHANNELS_HEADER,
			  ETHTOOL_A_CHANNELS_COMBINED_COUNT, num ?: card_channels(), 0);
}

int card_nl_rings(int entries)
{
	return by_netlink(ETHTOOL_MSG_RINGS_SET, ETHTOOL_A_RINGS_HEADER, ETHTOOL_A_RINGS_RX,
			  entries, ETHTOOL_A_RINGS_TX);
}

int card_nl_delays(int usecs)
{
	return by_netlink(ETHTOOL_MSG_COALESCE_SET, ETHTOOL_A_COALESCE_HEADER,
			  ETHTOOL_A_COALESCE_RX_USECS, usecs, ETHTOOL_A_COALESCE_TX_USECS);
}

int card_nl_tso(int on)
{
	struct nl_msg m;
	size_t header, set, bits, bit;

	nl_start_generic(&m, ethtool_id, ETHTOOL_MSG_FEATURES_SET);
	header = nl_nest(&m, ETHTOOL_A_FEATURES_HEADER);
	nl_put_u32(&m, ETHTOOL_A_HEADER_DEV_INDEX, card_index());
	/* Else a change that is made also fails if there is no memory for the answer. */
	nl_put_u32(&m, ETHTOOL_A_HEADER_FLAGS, ETHTOOL_FLAG_OMIT_REPLY);
	nl_nest_end(&m, header);
	set = nl_nest(&m, ETHTOOL_A_FEATURES_WANTED);
	bits = nl_nest(&m, ETHTOOL_A_BITSET_BITS);
	bit = nl_nest(&m, ETHTOOL_A_BITSET_BITS_BIT);
	nl_put_text(&m, ETHTOOL_A_BITSET_BIT_NAME, "tx-tcp-segmentation");
	if (on)
		nl_put(&m, ETHTOOL_A_BITSET_BIT_VALUE, NULL, 0);
	nl_nest_end(&m, bit);
	nl_nest_end(&m, bits);
	nl_nest_end(&m, set);
	return nl_talk(generic_fd, &m);
}

static int by_route(unsigned int flags, unsigned int change, int mtu)
{
	struct ifinfomsg info = {
		.ifi_index = card_index(), .ifi_flags = flags, .ifi_change = change,
	};
	struct nl_msg m;

	nl_start(&m, RTM_NEWLINK, &info, sizeof(info));
	if (mtu)
		nl_put_u32(&m, IFLA_MTU, mtu);
	return nl_talk(route_fd, &m);
}

int card_nl_mtu(int mtu)
{
	return by_route(0, 0, mtu);
}

int card_nl_up(int on)
{
	return by_route(on ? IFF_UP : 0, IFF_UP, 0);
}

static int by_devlink(uint8_t cmd)
{
	struct nl_msg m;

	nl_start_generic(&m, devlink_id, cmd);
	nl_put_text(&m, DEVLINK_ATTR_BUS_NAME, "pci");
	nl_put_text(&m, DEVLINK_ATTR_DEV_NAME, card_function());
	if (cmd != DEVLINK_CMD_RELOAD && cmd != DEVLINK_CMD_INFO_GET)
		nl_put_text(&m, DEVLINK_ATTR_HEALTH_REPORTER_NAME, "hca");
	return nl_talk(generic_fd, &m);
}

int card_reload(int unused)
{
	return by_devlink(DEVLINK_CMD_RELOAD);
}

int card_reset(int unused)
{
	return card_write("device/reset", "1");
}

/* Questions, all of which are asked whatever the answer to the others. */
int card_query(int unused)
{
	static const uint8_t cmds[] = {
		DEVLINK_CMD_INFO_GET, DEVLINK_CMD_HEALTH_REPORTER_DIAGNOSE,
		DEVLINK_CMD_HEALTH_REPORTER_RECOVER,
	};
	struct ethtool_ts_info stamps = { .cmd = ETHTOOL_GET_TS_INFO };
	struct card_rss rss;
	int err = card_ethtool(&stamps);
	size_t i;

	err = card_rss(0, &rss) ?: err;
	for (i = 0; i < ARRAY_SIZE(cmds); i++)
		err = by_devlink(cmds[i]) ?: err;
	return err;
}
