// SPDX-License-Identifier: GPL-2.0
/* The network card's settings. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "card.h"
#include "card_set.h"
#include "rdma.h"

#define RULES		64

static const char *name;
static int sock = -1;

void card_open(void)
{
	name = getenv("QHCA_IF");
	if (!name || !if_nametoindex(name))
		test_skip("QHCA_IF does not name the network interface");
	if (geteuid())
		test_skip("needs root");
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	REQUIRE(sock >= 0);
}

int card_ioctl(unsigned long request, struct ifreq *req)
{
	snprintf(req->ifr_name, sizeof(req->ifr_name), "%s", name);
	return ioctl(sock, request, req) ? errno : 0;
}

int card_ethtool(void *cmd)
{
	struct ifreq req = { .ifr_data = cmd };

	return card_ioctl(SIOCETHTOOL, &req);
}

int card_index(void)
{
	return if_nametoindex(name);
}

const char *card_function(void)
{
	static char text[300];
	char path[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/sys/class/net/%s/device", name);
	len = readlink(path, text, sizeof(text) - 1);
	REQUIRE(len > 0);
	text[len] = '\0';
	return strrchr(text, '/') + 1;
}

static void path_of(const char *file, char *path, size_t len)
{
	snprintf(path, len, "/sys/class/net/%s/%s", name, file);
}

int card_read(const char *file, char *text, size_t len)
{
	char path[256];
	int fd, err;
	ssize_t n;

	path_of(file, path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	n = read(fd, text, len - 1);
	err = n < 0 ? errno : 0;
	close(fd);
	text[n < 0 ? 0 : n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return err;
}

int card_write(const char *file, const char *text)
{
	char path[256];

	path_of(file, path, sizeof(path));
	return write_file(path, text);
}

int card_rss(uint32_t context, struct card_rss *rss)
{
	union {
		struct ethtool_rxfh head;
		uint8_t room[sizeof(struct ethtool_rxfh) + sizeof(*rss)];
	} sizes = { .head = { .cmd = ETHTOOL_GRSSH, .rss_context = context } }, all;
	int err = card_ethtool(&sizes);

	if (err)
		return err;
	all = sizes;
	rss->size = all.head.indir_size;
	rss->key_size = all.head.key_size;
	REQUIRE(rss->size <= ARRAY_SIZE(rss->queue) && rss->key_size <= sizeof(rss->key));
	all.head.cmd = ETHTOOL_GRSSH;
	err = card_ethtool(&all);
	if (err)
		return err;
	memcpy(rss->queue, all.head.rss_config, rss->size * sizeof(rss->queue[0]));
	memcpy(rss->key, all.head.rss_config + rss->size, rss->key_size);
	return 0;
}

/* ---- settings as text ---- */

static char *out;
static size_t room;

__attribute__((format(printf, 1, 2))) static void say(const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(out, room, fmt, ap);
	va_end(ap);
	REQUIRE(n >= 0 && (size_t)n < room);
	out += n;
	room -= n;
}

static void say_queues(void)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };
	struct ethtool_ringparam rings = { .cmd = ETHTOOL_GRINGPARAM };
	struct ethtool_coalesce wait = { .cmd = ETHTOOL_GCOALESCE };

	REQUIRE_OK(card_ethtool(&channels));
	REQUIRE_OK(card_ethtool(&rings));
	REQUIRE_OK(card_ethtool(&wait));
	say("channels: %u of %u\n", channels.combined_count, channels.max_combined);
	say("rings: rx %u of %u, tx %u of %u\n", rings.rx_pending, rings.rx_max_pending,
	    rings.tx_pending, rings.tx_max_pending);
	say("delays: rx %u us, %u frames, adaptive %u; tx %u us, %u frames, adaptive %u\n",
	    wait.rx_coalesce_usecs, wait.rx_max_coalesced_frames, wait.use_adaptive_rx_coalesce,
	    wait.tx_coalesce_usecs, wait.tx_max_coalesced_frames, wait.use_adaptive_tx_coalesce);
}

static void say_interface(void)
{
	struct {
		struct ethtool_gfeatures head;
		struct ethtool_get_features_block block[2];
	} features = { .head = { .cmd = ETHTOOL_GFEATURES, .size = 2 } };
	struct hwtstamp_config stamps = {};
	struct ifreq req = {};
	const uint8_t *mac;

	REQUIRE_OK(card_ioctl(SIOCGIFMTU, &req));
	say("mtu: %d\n", req.ifr_mtu);
	REQUIRE_OK(card_ioctl(SIOCGIFFLAGS, &req));
	say("flags: %#x\n", req.ifr_flags & (IFF_UP | IFF_PROMISC | IFF_ALLMULTI));
	REQUIRE_OK(card_ioctl(SIOCGIFHWADDR, &req));
	mac = (void *)req.ifr_hwaddr.sa_data;
	say("address: %02x:%02x:%02x:%02x:%02x:%02x\n", mac[0], mac[1], mac[2], mac[3], mac[4],
	    mac[5]);
	REQUIRE_OK(card_ethtool(&features));
	say("features: %#x %#x\n", features.block[0].active, features.block[1].active);
	req.ifr_data = (void *)&stamps;
	if (!card_ioctl(SIOCGHWTSTAMP, &req))
		say("timestamps: tx %d, rx %d\n", stamps.tx_type, stamps.rx_filter);
}

static void say_spread(void)
{
	struct card_rss rss;
	uint32_t context, i;
	int err;

	for (context = 0; context <= CARD_CONTEXTS; context++) {
		struct ethtool_rxnfc fields = {
			.cmd = ETHTOOL_GRXFH, .rss_context = context,
			.flow_type = UDP_V4_FLOW | (context ? FLOW_RSS : 0),
		};

		err = card_rss(context, &rss);
		if (err == ENOENT || err == EOPNOTSUPP)
			continue;
		REQUIRE_OK(err);
		say("context %u:", context);
		for (i = 0; i < rss.size; i++)
			say(" %u", rss.queue[i]);
		say("; key");
		for (i = 0; i < rss.key_size; i++)
			say(" %02x", rss.key[i]);
		REQUIRE_OK(card_ethtool(&fields));
		say("; fields %#llx\n", (unsigned long long)fields.data);
	}
}

static void say_rules(void)
{
	struct {
		struct ethtool_rxnfc head;
		uint32_t room[RULES];
	} all = { .head = { .cmd = ETHTOOL_GRXCLSRLALL, .rule_cnt = RULES } };
	uint32_t i;

	if (card_ethtool(&all))
		return;
	for (i = 0; i < all.head.rule_cnt; i++) {
		struct ethtool_rxnfc rule = {
			.cmd = ETHTOOL_GRXCLSRULE, .fs.location = all.head.rule_locs[i],
		};

		REQUIRE_OK(card_ethtool(&rule));
		say("rule %u: kind %#x, port %u, to %#llx, context %u\n", rule.fs.location,
		    rule.fs.flow_type, ntohs(rule.fs.h_u.tcp_ip4_spec.pdst),
		    (unsigned long long)rule.fs.ring_cookie,
		    rule.fs.flow_type & FLOW_RSS ? rule.rss_context : 0);
	}
}

/* Prints the kernel's queues, and which CPUs send through which. */
static void say_sysfs(void)
{
	char path[256], mask[64];
	glob_t g;
	size_t i;

	path_of("queues/*", path, sizeof(path));
	REQUIRE(!glob(path, 0, NULL, &g));
	for (i = 0; i < g.gl_pathc; i++) {
		const char *queue = strrchr(g.gl_pathv[i], '/') + 1;

		say("%s", queue);
		snprintf(path, sizeof(path), "queues/%s/xps_cpus", queue);
		if (!strncmp(queue, "tx-", 3) && !card_read(path, mask, sizeof(mask)))
			say(": CPUs %s", mask);
		say("\n");
	}
	globfree(&g);
}

static void say_groups(void)
{
	char line[128], dev[32], mac[32];
	FILE *f = fopen("/proc/net/dev_mcast", "r");

	REQUIRE(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%*d %31s %*d %*d %31s", dev, mac) == 2 && !strcmp(dev, name) &&
		    !strncmp(mac, "01005e7f", 8))
			say("group: %s\n", mac);
	fclose(f);
}

void card_settings(char *text, size_t len)
{
	out = text;
	room = len;
	say_queues();
	say_interface();
	say_spread();
	say_rules();
	say_sysfs();
	say_groups();
}

bool card_same(const char *text, const char *before)
{
	while (*text || *before) {
		int a = strcspn(text, "\n"), b = strcspn(before, "\n");

		if (a != b || strncmp(text, before, a)) {
			FAIL("\"%.*s\", before \"%.*s\"", a, text, b, before);
			return false;
		}
		text += a + !!text[a];
		before += b + !!before[b];
	}
	return true;
}
