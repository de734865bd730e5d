# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh: linuxptp, which synchronises PTP clocks. Machine a is the time server,
# over the cable; b starts with a clock that is wrong, and follows.

# Nanoseconds that both must keep, on emulated CPUs that share the host's with others.
LINUXPTP_LIMIT=2000000

# phc COMMAND…: run commands of phc_ctl, which prints nothing unless one fails
phc() { phc_ctl -Q -q "$QHCA_IF" "$@"; }

# phc_ctl says "clock time is 1795729543.123456789 or …".
phc_seconds() { phc_ctl "$QHCA_IF" get | sed -n 's/.*clock time is \([0-9]*\)\..*/\1/p'; }

linuxptp_ctl()
{
	local now
	phc set 1000000000 adj 500 freq 1000 || return
	now=$(phc_seconds)
	echo "clock: $now"
	[ "$now" -ge 1000000500 ] && [ "$now" -lt 1000000560 ] && phc freq 0 set
}

# By the system's clock.
linuxptp_phc2sys()
{
	phc adj 3 && timeout 12 phc2sys -s CLOCK_REALTIME -c "$QHCA_IF" -O 0 -R 4 -S 0.1 -m \
		>"$LOGS/phc2sys"
	tail -n 5 "$LOGS/phc2sys"
	linuxptp_close 's/.* offset *\(-\?[0-9]*\) s2 .*/\1/p' "$LOGS/phc2sys"
}

# linuxptp_close SED FILE: the median of the last nine offsets that SED takes from FILE is small.
linuxptp_close()
{
	local offset
	offset=$(sed -n "$1" "$2" | tail -n 9 | tr -d - | sort -n | sed -n 5p)
	echo "median of the offsets: ${offset:-?} ns"
	[ -n "$offset" ] && [ "$offset" -lt $LINUXPTP_LIMIT ]
}

linuxptp_info()
{
	ethtool -T "$QHCA_IF" | tee "$LOGS/ethtool-T"
	grep -q hardware-transmit "$LOGS/ethtool-T" && grep -q hardware-receive "$LOGS/ethtool-T" &&
		grep -qE '(provider index|Clock): [0-9]' "$LOGS/ethtool-T"
}

# Follows the server for a while.
linuxptp_follow()
{
	phc adj 10 || return
	timeout "$1" ptp4l -i "$QHCA_IF" -2 -s -m --step_threshold 0.1 >"$LOGS/ptp4l"
	tail -n 8 "$LOGS/ptp4l"
	grep -q 'to SLAVE on MASTER_CLOCK_SELECTED' "$LOGS/ptp4l" &&
		linuxptp_close 's/.*master offset *\(-\?[0-9]*\) s2 .*/\1/p' "$LOGS/ptp4l"
}

linuxptp()
{
	local server time=30
	[ -d "/sys/class/net/$QHCA_IF/device/ptp" ] || {
		result skip consumers/linuxptp "no PTP clock"
		return
	}
	[ "$FULL" != 1 ] || time=120
	expect consumers/linuxptp/info linuxptp_info
	expect consumers/linuxptp/phc_ctl linuxptp_ctl
	expect consumers/linuxptp/phc2sys linuxptp_phc2sys
	qhca-host sync linuxptp-begin >/dev/null
	if [ "$QHCA_ROLE" = a ]; then
		ptp4l -i "$QHCA_IF" -2 -m --serverOnly 1 >"$LOGS/ptp4l" &
		server=$!
		qhca-host sync linuxptp-end >/dev/null
		kill $server
		wait $server
		expect consumers/linuxptp/server grep 'to MASTER on' "$LOGS/ptp4l"
	else
		expect consumers/linuxptp/ptp4l linuxptp_follow $time
		qhca-host sync linuxptp-end >/dev/null
	fi
	phc freq 0 set
}
