# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh, after eth.sh: interrupts of the network card that wait.

# Frames are held back, but not for ever, and not lost.
moderation()
{
	ethtool -C "$QHCA_IF" rx-usecs 2000 rx-frames 16 tx-usecs 500 tx-frames 8 || return 1
	ethtool -c "$QHCA_IF" | grep -x 'rx-usecs:\s2000' || return 1
	flood 50 500 || return 1
	ethtool -C "$QHCA_IF" rx-usecs 100 rx-frames 0 && flood 50 500 || return 1
	! ethtool -C "$QHCA_IF" rx-usecs 0 rx-frames 9 2>/dev/null &&
		! ethtool -C "$QHCA_IF" rx-usecs 10000000 2>/dev/null || return 1
	ethtool -C "$QHCA_IF" rx-usecs 0 rx-frames 0 tx-usecs 0 tx-frames 0
}

# The delays of all channels at present, in one line.
delays() { ethtool --per-queue "$QHCA_IF" --show-coalesce | awk '/^[rt]x-usecs:/ { print $2 }' | xargs; }

no_delays() { [ -z "$(delays | tr -d '0 ')" ]; }

adaptive_is() { ethtool -c "$QHCA_IF" | grep -xE "Adaptive RX: $1 +TX: $2"; }

# They follow the load, each by itself, and nothing is lost. Earlier settings count again when the
# driver does not decide any more.
adaptive()
{
	local seen
	adaptive_is off off && no_delays || return 1
	ethtool -C "$QHCA_IF" adaptive-rx on adaptive-tx on && adaptive_is on on && no_delays || return 1
	for _ in $(seq 30); do
		flood 200 500 || return 1
		seen+=$(delays)$'\n'
		[ "$(sort -u <<<"$seen" | grep -c .)" -lt 3 ] || break
	done
	sort <<<"$seen" | uniq -c
	[ "$(sort -u <<<"$seen" | grep -c .)" -ge 2 ] || return 1
	ethtool -C "$QHCA_IF" adaptive-tx off rx-usecs 20 && adaptive_is on off &&
		same "tx-usecs" "$(delays | tr ' ' '\n' | awk 'NR % 2 == 0 && $1 > 0' | wc -l)" 0 || return 1
	ip link set dev "$QHCA_IF" down && adaptive_is on off && ip link set dev "$QHCA_IF" up &&
		until_true flood 50 500 || return 1
	ethtool -C "$QHCA_IF" adaptive-rx off && adaptive_is off off &&
		same "rx-usecs" "$(delays | tr ' ' '\n' | awk 'NR % 2 && $1 != 20' | wc -l)" 0 &&
		flood 50 500 && ethtool -C "$QHCA_IF" rx-usecs 0 && no_delays
}

# A burst of more frames than a poll may take: each poll gives the device new buffers, and not only
# the last one, which may find that the ring has run empty.
refills()
{
	local log=$LOGS/eth.refills rc=0
	ethtool -C "$QHCA_IF" rx-usecs 60000 rx-frames 300 tx-usecs 60000 tx-frames 300 &&
		limit_min 10000000 || return 1
	probes_start "r:probes/polled qhca_rx_poll done=\$retval:s32" \
		'p:probes/filled qhca_rxq_fill' || rc=1
	for _ in 1 2 3 4 5; do
		python3 /opt/qhca/guest/frames.py echo "$GATEWAY" 400 || rc=1
		sleep 0.3
		# A busy host is too slow for that many together.
		grep -q "done=64" "$TRACING/trace" && break
	done
	probes_stop >"$log"
	limit_min 0
	ethtool -C "$QHCA_IF" rx-usecs 0 rx-frames 0 tx-usecs 0 tx-frames 0
	awk '{ if (full[$1]) { if ($2 == "filled") filled++; else missed++ }
	       full[$1] = $3 == "done=64" }
	     END { print filled + 0, "polls used up the budget and refilled,", missed + 0, "did not"
		   exit missed || !filled }' "$log" || rc=1
	return $rc
}

eth_moderation()
{
	expect "eth/interrupt moderation" under_traffic moderation
	if adaptive_is 'n\/a' 'n\/a' >/dev/null; then
		result skip "eth/adaptive interrupt moderation" "a kernel without DIMLIB"
	else
		expect "eth/adaptive interrupt moderation" adaptive
	fi
	if probes_there; then
		expect "eth/each poll gives the device new buffers" refills
	else
		result skip "eth/each poll gives the device new buffers" "no kprobe events"
	fi
}
