// SPDX-License-Identifier: GPL-2.0
/* Changes of the network card's settings, by ioctl(2). */
#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <sys/socket.h>

#include "card.h"
#include "card_set.h"
#include "rdma.h"

#define MTU		4200
#define KEY		0x6d

/* Locations of rules: for a queue, for a context, and one that comes and goes. */
#define BY_RULE		7
#define BY_CONTEXT	8
#define SPARE		9

static int channels;
static uint16_t rule_port, context_port;
static uint32_t context, spare_context;
static struct ifreq address;	/* the first one */

int card_set_channels(int num)
{
	struct ethtool_channels c = {
		.cmd = ETHTOOL_SCHANNELS, .combined_count = num ?: channels,
	};

	return card_ethtool(&c);
}

int card_set_rings(int entries)
{
	struct ethtool_ringparam r = {
		.cmd = ETHTOOL_SRINGPARAM, .rx_pending = entries, .tx_pending = entries,
	};

	return card_ethtool(&r);
}

int card_set_delays(int usecs)
{
	struct ethtool_coalesce c = {
		.cmd = ETHTOOL_SCOALESCE, .rx_coalesce_usecs = usecs, .tx_coalesce_usecs = usecs,
	};

	return card_ethtool(&c);
}

int card_set_mtu(int mtu)
{
	struct ifreq req = { .ifr_mtu = mtu };

	return card_ioctl(SIOCSIFMTU, &req);
}

static int set_flag(int flag, bool on)
{
	struct ifreq req = {};
	int err = card_ioctl(SIOCGIFFLAGS, &req);

	req.ifr_flags = on ? req.ifr_flags | flag : req.ifr_flags & ~flag;
	return err ?: card_ioctl(SIOCSIFFLAGS, &req);
}

int card_set_up(int on)
{
	return set_flag(IFF_UP, on);
}

int card_set_promisc(int on)
{
	return set_flag(IFF_PROMISC, on);
}

int card_set_address(int other)
{
	struct ifreq req = address;

	req.ifr_hwaddr.sa_data[5] ^= other;
	return card_ioctl(SIOCSIFHWADDR, &req);
}

int card_set_group(int on)
{
	struct ifreq req = { .ifr_hwaddr.sa_data = { 1, 0, 0x5e, 0x7f, 2, 3 } };

	return card_ioctl(on ? SIOCADDMULTI : SIOCDELMULTI, &req);
}

int card_set_stamps(int on)
{
	struct hwtstamp_config config = {
		.tx_type = on ? HWTSTAMP_TX_ON : HWTSTAMP_TX_OFF,
		.rx_filter = on ? HWTSTAMP_FILTER_ALL : HWTSTAMP_FILTER_NONE,
	};
	struct ifreq req = { .ifr_data = (void *)&config };

	return card_ioctl(SIOCSHWTSTAMP, &req);
}

int card_set_flags(int flags)
{
	struct ethtool_value v = { .cmd = ETHTOOL_SFLAGS, .data = flags };

	return card_ethtool(&v);
}

int card_set_tso(int on)
{
	struct ethtool_value v = { .cmd = ETHTOOL_STSO, .data = on };

	return card_ethtool(&v);
}

/* @rows: of the table, all of which are @queue; or 0. @key: the first byte of a key, or 0. */
static int set_spread(uint32_t *number, uint32_t rows, uint32_t queue, int key)
{
	union {
		struct ethtool_rxfh head;
		uint8_t room[1024];
	} c = { .head = { .cmd = ETHTOOL_SRSSH, .rss_context = *number, .indir_size = rows } };
	uint32_t i, n = rows == ETH_RXFH_INDIR_NO_CHANGE ? 0 : rows;
	int err;

	for (i = 0; i < n; i++)
		c.head.rss_config[i] = queue;
	c.head.key_size = key ? 40 : 0;
	for (i = 0; i < c.head.key_size; i++)
		((uint8_t *)&c.head.rss_config[n])[i] = key + i * 37 * 11;
	err = card_ethtool(&c);
	if (!err)
		*number = c.head.rss_context;
	return err;
}

static uint32_t rows_of_table(void)
{
	static struct card_rss rss;

	if (!rss.size)
		REQUIRE_OK(card_rss(0, &rss));
	return rss.size;
}

int card_set_key(int key)
{
	return set_spread(&(uint32_t){ 0 }, ETH_RXFH_INDIR_NO_CHANGE, 0, key);
}

/* To this queue alone, or to all. */
int card_set_table(int queue)
{
	return set_spread(&(uint32_t){ 0 }, queue < 0 ? 0 : rows_of_table(), queue, 0);
}

int card_set_context(int queue)
{
	return set_spread(&context, rows_of_table(), queue, 0);
}

int card_set_context_key(int key)
{
	return set_spread(&context, ETH_RXFH_INDIR_NO_CHANGE, 0, key);
}

int card_set_spare_context(int on)
{
	if (!on)
		return set_spread(&spare_context, 0, 0, 0);
	spare_context = ETH_RXFH_CONTEXT_ALLOC;
	return set_spread(&spare_context, rows_of_table(), 0, 7);
}

static int set_fields_of(uint32_t number, bool ports)
{
	struct ethtool_rxnfc c = {
		.cmd = ETHTOOL_SRXFH, .flow_type = UDP_V4_FLOW | (number ? FLOW_RSS : 0),
		.data = RXH_IP_SRC | RXH_IP_DST | (ports ? RXH_L4_B_0_1 | RXH_L4_B_2_3 : 0),
		.rss_context = number,
	};

	return card_ethtool(&c);
}

int card_set_fields(int ports)
{
	return set_fields_of(0, ports);
}

int card_set_context_fields(int ports)
{
	return set_fields_of(context, ports);
}

/* Frames to @port go to @queue, or, if @number is not 0, to where that context wants them. */
static int insert(uint32_t location, uint16_t port, int queue, uint32_t number)
{
	struct ethtool_rxnfc c = {
		.cmd = ETHTOOL_SRXCLSRLINS, .rss_context = number,
		.fs = {
			.flow_type = TCP_V4_FLOW | (number ? FLOW_RSS : 0),
			.location = location, .ring_cookie = queue,
			.h_u.tcp_ip4_spec.pdst = htons(port),
			.m_u.tcp_ip4_spec.pdst = 0xffff,
		},
	};

	return card_ethtool(&c);
}

int card_set_rule(int queue)
{
	return insert(BY_RULE, rule_port, queue, 0);
}

static int delete(uint32_t location)
{
	struct ethtool_rxnfc c = { .cmd = ETHTOOL_SRXCLSRLDEL, .fs.location = location };

	return card_ethtool(&c);
}

int card_set_spare_rule(int on)
{
	return on ? insert(SPARE, 9, 0, 0) : delete(SPARE);
}

int card_set_spare_context_rule(int on)
{
	return on ? insert(SPARE, 9, 0, context) : delete(SPARE);
}

/* ---- the settings that tests begin with ---- */

int card_channels(void)
{
	return channels;
}

/* Undo settings that a failed test may have left behind. */
static void forget(void)
{
	uint32_t i;

	for (i = BY_RULE; i <= SPARE; i++)
		delete(i);
	for (i = 1; i <= CARD_CONTEXTS; i++)
		set_spread(&(uint32_t){ i }, 0, 0, 0);
}

/* Sets what differs: some changes to what is there already are refused. */
void card_prepare(void)
{
	struct ethtool_channels c = { .cmd = ETHTOOL_GCHANNELS };

	REQUIRE_OK(card_ioctl(SIOCGIFHWADDR, &address));
	REQUIRE_OK(card_set_up(1));
	REQUIRE_OK(card_ethtool(&c));
	channels = c.max_combined;
	if (channels < 2)
		test_skip("one channel");
	forget();
	REQUIRE_OK(card_set_table(-1));
	REQUIRE_OK(card_set_key(KEY));
	if ((int)c.combined_count != channels)
		REQUIRE_OK(card_set_channels(0));
	REQUIRE_OK(card_set_rings(CARD_RINGS));
	REQUIRE_OK(card_set_delays(0));
	REQUIRE_OK(card_set_mtu(MTU));
	/* Answers to both ports would arrive in another queue than rule and context want. */
	rule_port = card_port(1, 0);
	context_port = card_port(1, 1);
	REQUIRE_OK(card_set_rule(0));
	context = ETH_RXFH_CONTEXT_ALLOC;
	REQUIRE_OK(set_spread(&context, rows_of_table(), 0, KEY + 1));
	REQUIRE_OK(insert(BY_CONTEXT, context_port, 0, context));
	REQUIRE_OK(card_set_fields(1));
}

void card_check(void)
{
	struct ethtool_rxnfc rule = { .cmd = ETHTOOL_GRXCLSRULE, .fs.location = BY_RULE };
	struct ifreq req = {};
	struct card_rss rss;

	REQUIRE_OK(card_ioctl(SIOCGIFFLAGS, &req));
	if (!(req.ifr_flags & IFF_UP))
		return;
	card_works();
	REQUIRE_OK(card_ethtool(&rule));
	card_lands(rule_port, rule.fs.ring_cookie);
	REQUIRE_OK(card_rss(context, &rss));
	card_lands(context_port, rss.queue[0]);
}

void card_finish(void)
{
	forget();
	card_set_table(-1);
	card_set_address(0);
}
