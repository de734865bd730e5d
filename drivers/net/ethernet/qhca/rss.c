// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: how the device spreads received frames over the channels. */
#include "eth.h"

static int qhca_rss_set(struct qhca_nic *nic, u32 types, const struct qhca_rss *rss)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_SET_RSS),
		.set_rss.types = cpu_to_le32(types),
	};
	struct qhca_mbox mbox = { .in = rss, .in_len = sizeof(*rss) };

	if (!(nic->dev->limits.caps & QHCA_CAP_RSS))
		return 0;
	return qhca_cmd_exec(nic->dev, &cmd, &mbox, NULL);
}

/**
 * qhca_rss_apply - spread received frames
 * @nic: the port
 * @channels: so many receive queues exist
 *
 * Context: process, RTNL.
 * Return: 0 or a negative errno.
 */
int qhca_rss_apply(struct qhca_nic *nic, unsigned int channels)
{
	struct qhca_rss rss = {};
	unsigned int i;

	memcpy(rss.key, nic->rss_key, sizeof(rss.key));
	for (i = 0; i < QHCA_RSS_ENTRIES; i++)
		rss.queue[i] = ethtool_rxfh_indir_default(i, channels);
	return qhca_rss_set(nic, QHCA_RSS_ALL, &rss);
}

/**
 * qhca_rss_off - let all frames go to queue 0, so that the others can be destroyed
 * @nic: the port
 *
 * Context: process, RTNL.
 */
void qhca_rss_off(struct qhca_nic *nic)
{
	struct qhca_rss rss = {};

	/* If this fails, so will the destruction of the queues. */
	qhca_rss_set(nic, 0, &rss);
}
