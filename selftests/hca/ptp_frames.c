// SPDX-License-Identifier: GPL-2.0
/*
 * Hardware timestamps of frames, by the PTP clock. The gateway of the machine's network answers
 * pings. Needs root.
 */
#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/phc.h"

static struct phc phc;

static void start(void)
{
	phc = phc_open(dev_open_qhca());
}

/* Turns timestamps on or off; returns what the driver has made of the filter. */
static int stamps(int tx_type, int rx_filter)
{
	struct hwtstamp_config config = { .tx_type = tx_type, .rx_filter = rx_filter }, got = {};

	REQUIRE_OK(phc_if_ioctl(SIOCSHWTSTAMP, &config));
	REQUIRE_OK(phc_if_ioctl(SIOCGHWTSTAMP, &got));
	CHECK_EQ(got.tx_type, tx_type);
	CHECK_EQ(got.rx_filter, config.rx_filter);
	return config.rx_filter;
}

TEST(filters, "ptp: timestamps of all received frames, or of none")
{
	struct hwtstamp_config config = { .tx_type = HWTSTAMP_TX_ONESTEP_SYNC };

	start();
	CHECK_EQ(stamps(HWTSTAMP_TX_ON, HWTSTAMP_FILTER_PTP_V2_EVENT), HWTSTAMP_FILTER_ALL);
	CHECK_EQ(stamps(HWTSTAMP_TX_OFF, HWTSTAMP_FILTER_ALL), HWTSTAMP_FILTER_ALL);
	CHECK_ERR(phc_if_ioctl(SIOCSHWTSTAMP, &config), ERANGE);
	CHECK_EQ(stamps(HWTSTAMP_TX_OFF, HWTSTAMP_FILTER_NONE), HWTSTAMP_FILTER_NONE);
}

/* Receives a message, or with MSG_ERRQUEUE the timestamp of one; returns its hardware time. */
static int64_t recv_stamp(int fd, int flags)
{
	char data[256], control[512];
	struct iovec iov = { data, sizeof(data) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct pollfd pfd = { .fd = fd, .events = flags & MSG_ERRQUEUE ? 0 : POLLIN };
	struct scm_timestamping *ts;
	struct cmsghdr *c;

	if (poll(&pfd, 1, WAIT_MS) != 1 || recvmsg(fd, &msg, flags) < 0) {
		FAIL("nothing received");
		return -1;
	}
	for (c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPING)
			continue;
		ts = (void *)CMSG_DATA(c);
		return ts->ts[2].tv_sec * PHC_SECOND + ts->ts[2].tv_nsec;
	}
	return 0;
}

/* Opens a socket for pings to the gateway of the machine's network. */
static int ping_open(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	int on = SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE |
		 SOF_TIMESTAMPING_RAW_HARDWARE | SOF_TIMESTAMPING_OPT_TSONLY;
	const char *peer = getenv("QHCA_PEER");
	int fd = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);

	if (!peer)
		test_skip("QHCA_PEER does not say where the gateway is");
	REQUIRE(fd >= 0);
	REQUIRE(inet_pton(AF_INET, peer, &to.sin_addr) == 1);
	to.sin_addr.s_addr = (to.sin_addr.s_addr & htonl(0xffffff00)) | htonl(254);
	REQUIRE(!connect(fd, (struct sockaddr *)&to, sizeof(to)));
	REQUIRE(!setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &on, sizeof(on)));
	return fd;
}

static void send_ping(int fd, uint16_t seq)
{
	struct icmphdr echo = { .type = ICMP_ECHO };

	echo.un.echo.sequence = htons(seq);
	echo.checksum = ~htons((ICMP_ECHO << 8) + seq);
	REQUIRE(send(fd, &echo, sizeof(echo), 0) == sizeof(echo));
}

TEST_ROWS(frames, "ptp: sent and received frames have the time of the clock", phc_eras)
{
	int64_t a, sent, received, b;
	int i, fd;

	start();
	fd = ping_open();
	stamps(HWTSTAMP_TX_ON, HWTSTAMP_FILTER_ALL);
	REQUIRE_OK(phc_rate(&phc, row->ppm * PPM));
	phc_set(&phc, row->ns);
	for (i = 0; i < 10; i++) {
		a = phc_ns(&phc);
		send_ping(fd, i);
		sent = recv_stamp(fd, MSG_ERRQUEUE);
		received = recv_stamp(fd, 0);
		b = phc_ns(&phc);
		CHECK(a <= sent && sent <= b);
		CHECK(a <= received && received <= b);
	}
	stamps(HWTSTAMP_TX_OFF, HWTSTAMP_FILTER_NONE);
	send_ping(fd, i);
	CHECK_EQ(recv_stamp(fd, 0), 0);
	CHECK(recv(fd, &a, sizeof(a), MSG_ERRQUEUE | MSG_DONTWAIT) < 0 && errno == EAGAIN);
	phc_open(dev_open_qhca());
}
