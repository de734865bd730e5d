# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh, after eth.sh: the channels of the network card, and how received frames are
# spread over them. The gateway refuses connections, which are as many flows as there are ports.

# From ethtool -l: the first number is the maximum.
max_channels() { ethtool -l "$QHCA_IF" | awk '$1 == "Combined:" { print $2; exit }'; }
channels() { ethtool -l "$QHCA_IF" | awk '$1 == "Combined:" { n = $2 } END { print n }'; }

# As many as CPUs, but no more than vectors for RDMA, and than 8. Vector 0 has other work.
most_channels()
{
	local vectors
	vectors=$(find "/sys/class/net/$QHCA_IF/device/msi_irqs" -type f | wc -l)
	printf '%s\n' "$(nproc)" $((vectors - 1)) 8 | sort -n | head -n 1
}

# One channel, or a device that cannot spread frames.
no_rss() { [ "$(max_channels)" = 1 ]; }
