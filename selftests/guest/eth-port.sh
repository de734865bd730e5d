# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh, after eth.sh: the kernel says the same of the port wherever it is asked: its
# state, and how many frames were lost for which reason.

# ---- the state of the port

# port_says up|down|off: off: the administrator has switched it off, so the state of the carrier is
# unknown.
port_says()
{
	local net=/sys/class/net/$QHCA_IF oper=$1 carrier=1 link=yes speed=100000Mb/s rdma=ACTIVE
	[ "$1" = up ] || carrier=0 oper=down link=no speed='Unknown!' rdma=DOWN
	[ "$1" != off ] || carrier='' speed="$(ethtool "$QHCA_IF" | sed -n 's/.*Speed: //p')"
	same operstate "$(cat "$net/operstate")" "$oper" &&
		same carrier "$(cat "$net/carrier" 2>/dev/null)" "$carrier" &&
		same "ip link" "$(ip -o link show dev "$QHCA_IF" | sed 's/.* state \([A-Z]*\) .*/\1/')" "${oper^^}" &&
		ethtool "$QHCA_IF" | grep "Link detected: $link" &&
		ethtool "$QHCA_IF" | grep "Speed: $speed" || return 1
	[ ! -e "/sys/class/infiniband/$QHCA_DEV" ] || port_is "$rdma"
}

# port_then up|down|off COMMAND…: after the command the port comes to say so.
port_then()
{
	"${@:2}" && until_true port_says "$1" && return
	echo "after ${*:2}:"
	port_says "$1"
	return 1
}

# The devices sleep and wake up; the machine does not.
port_sleeps()
{
	local rc=0
	echo 0 >/sys/module/suspend/parameters/pm_test_delay
	echo devices >/sys/power/pm_test && echo freeze >/sys/power/state || rc=1
	echo none >/sys/power/pm_test
	return $rc
}

port_fails() { device_recovers false && qom qom-set inject-fatal true; }
port_restarts() { device_reset && device_recovers true; }
port_reloads() { devlink dev reload "pci/$QHCA_FUNCTION"; }

port_states()
{
	local rc=0
	port_then off ip link set dev "$QHCA_IF" down || rc=1
	port_then up ip link set dev "$QHCA_IF" up || rc=1
	port_then up device_reset || rc=1
	port_then up port_reloads || rc=1
	# virtio_console of 7.3 would lose its ports, and this script with them.
	if [ -e /sys/power/pm_test ] && [[ $(uname -r) != 7.* ]]; then
		port_then up port_sleeps || rc=1
	fi
	if qom qom-get faults >/dev/null; then
		port_then down link_state false || rc=1
		port_then off ip link set dev "$QHCA_IF" down || rc=1
		port_then down ip link set dev "$QHCA_IF" up || rc=1
		port_then down device_reset || rc=1
		port_then up link_state true || rc=1
		port_then down port_fails || rc=1
		port_then up port_restarts || rc=1
	fi
	until_true flood 50 500 && return $rc
}

# ---- frames that are lost

# netlink_drops: drops of all receive queues, and how many of these for want of buffers.
netlink_drops() { python3 /opt/qhca/guest/queues.py "$QHCA_IF" drops; }

# The number of the column in /proc/net/dev: 4 is "drop", which has two counters in one.
proc_counter() { sed -n "s/^ *$QHCA_IF: *//p" /proc/net/dev | awk -v n="$1" '{ print $n }'; }

link_counter() { ip -s -s -j link show dev "$QHCA_IF" | python3 -c "
import json, sys
print(json.load(sys.stdin)[0]['stats64']['rx'].get('$1', 'none'))"; }

# drops_are MISSED: the device has had no buffer for so many frames, in all places.
drops_are()
{
	local dropped
	dropped=$(counter rx_dropped)
	same rx_missed_errors "$(counter rx_missed_errors)" "$1" &&
		same "ip link" "$(link_counter missed_errors)" "$1" &&
		same "/proc/net/dev" "$(proc_counter 4)" $(($1 + dropped)) || return 1
	older 6.12 || same "netlink" "$(netlink_drops)" "$(($1 + $(counter rx_errors))) $1"
}

# A burst of more answers than a small ring has room for, while no interrupt asks for new buffers.
overrun()
{
	local before missed tries rc=1
	before=$(($(ethtool_counter eth_rx_no_buf) - $(counter rx_missed_errors)))
	missed=$(ethtool_counter eth_rx_no_buf)
	ethtool -G "$QHCA_IF" rx 64 && ethtool -C "$QHCA_IF" rx-usecs 60000 rx-frames 60000 || return 1
	for tries in 1 2 3 4 5 6 7 8; do
		python3 /opt/qhca/guest/frames.py echo "$GATEWAY" 600
		sleep 0.3
		[ "$(ethtool_counter eth_rx_no_buf)" = "$missed" ] || { rc=0; break; }
	done
	ethtool -C "$QHCA_IF" rx-usecs 0 rx-frames 0 && ethtool -G "$QHCA_IF" rx 1024 || return 1
	missed=$(($(ethtool_counter eth_rx_no_buf) - missed))
	echo "$missed frames were lost, in $tries tries"
	[ $rc = 0 ] && flood 20 100 && until_true drops_are $(($(ethtool_counter eth_rx_no_buf) - before))
}

# Without ethtool -S, which asks the device, the statistics are right as well, a moment later.
overrun_unasked()
{
	local before
	before=$(counter rx_missed_errors)
	ethtool -G "$QHCA_IF" rx 64 && ethtool -C "$QHCA_IF" rx-usecs 60000 rx-frames 60000 || return 1
	for _ in 1 2 3 4 5 6 7 8; do
		python3 /opt/qhca/guest/frames.py echo "$GATEWAY" 600
		sleep 3
		[ "$(counter rx_missed_errors)" = "$before" ] || break
	done
	[ "$(counter rx_missed_errors)" -gt "$before" ] || return 1
	ethtool -C "$QHCA_IF" rx-usecs 0 rx-frames 0 && ethtool -G "$QHCA_IF" rx 1024
}

# errors_are COUNT: so many frames had a wrong length, in all places, and nothing else was wrong.
errors_are()
{
	same rx_length_errors "$(counter rx_length_errors)" "$1" &&
		same rx_errors "$(counter rx_errors)" "$1" &&
		same "ip link" "$(link_counter length_errors)" "$1" &&
		same "errs of /proc/net/dev" "$(proc_counter 3)" "$1" &&
		same "frame of /proc/net/dev" "$(proc_counter 6)" "$1" || return 1
	older 6.12 || same "netlink" "$(netlink_drops)" \
		"$(($(counter rx_missed_errors) + $1)) $(counter rx_missed_errors)"
}

# The gateway puts fragments together, and answers with a frame that is longer than the MTU.
too_long()
{
	local before more rc=0
	before=$(counter rx_length_errors) more=$(ethtool_counter rx_length)
	ip link set dev "$QHCA_IF" mtu 600 || return 1
	ping_gateway -c 3 -i 0.1 -W 1 -s 1000
	until_true errors_are $((before + 3)) || { errors_are $((before + 3)); rc=1; }
	same "by the device" "$(ethtool_counter rx_length)" $((more + 3)) || rc=1
	ip link set dev "$QHCA_IF" mtu 4200 && until_true flood 20 100 && return $rc
}

eth_port()
{
	device_find
	expect "eth/J-029 each state of the port is the same wherever it is asked" port_states
	expect "eth/J-030 frames without a buffer are missed, wherever it is asked" overrun
	expect "eth/J-030 frames above the MTU are errors, wherever it is asked" too_long
	expect "eth/J-030 frames without a buffer are missed without ethtool -S" overrun_unasked
}
