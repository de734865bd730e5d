# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh, after eth-queues.sh: senders that choose a send queue, and do not ask whether
# it is still there.

PKTGEN=/proc/net/pktgen

# pktgen LINE…: a kernel thread that sends, with these settings.
pktgen()
{
	local line
	modprobe pktgen && echo "add_device $QHCA_IF" >$PKTGEN/kpktgend_0 || return 1
	for line in 'pkt_size 1400' 'dst 192.168.211.1' 'dst_mac 52:54:00:aa:bb:cc' "$@"; do
		echo "$line" >"$PKTGEN/$QHCA_IF" || return 1
	done
	echo start >$PKTGEN/pgctrl
	cat "$PKTGEN/$QHCA_IF"
	rmmod pktgen
}

# A kernel thread that sends one frame to the last queue, again and again, until choosing_stop. (For
# another frame it would look how many queues there are.)
choosing_start()
{
	local last=$(($(max_channels) - 1))
	pktgen "queue_map_min $last" "queue_map_max $last" 'count 0' 'clone_skb 1000000' \
		'delay 20000' >"$LOGS/eth.choosing" 2>&1 &
	CHOOSING=$!
	sleep 0.5
}

choosing_stop()
{
	echo stop >"$PKTGEN/pgctrl"
	wait "$CHOOSING"
}

dropped_since() { [ "$(counter tx_dropped)" -gt "$1" ]; }

# Channels come and go, the device is reset, and other senders also bypass the queueing. Frames for
# a queue without a channel are dropped. Steering by software looks up the queue that a frame comes
# from.
choosers()
{
	local most n before rps pass log stuck rc=0
	most=$(max_channels)
	log=$(dmesg | grep -c 'received packet on queue')
	stuck=$(dmesg | grep -c 'is stuck')
	rps=/sys/class/net/$QHCA_IF/queues/rx-0/rps_cpus
	echo 1 >"$rps" || rc=1
	before=$(counter tx_dropped)
	choosing_start
	python3 /opt/qhca/guest/frames.py bypass "$QHCA_IF" 12 &
	pass=$!
	for n in 1 "$most" $((most - 1)) "$most" 1 "$most" $((most - 1)) 1; do
		[ "$(channels)" = "$n" ] || ethtool -L "$QHCA_IF" combined "$n" || rc=1
		timeout 10 python3 /opt/qhca/guest/frames.py flows "$QHCA_IF" "$GATEWAY" 20 >/dev/null
	done
	until_true dropped_since "$before" || { echo "nothing was dropped"; rc=1; }
	# As long as the watchdog takes to look at all queues.
	sleep 6
	# The kernel thread stops when the carrier goes.
	device_reset
	choosing_stop
	wait $pass || rc=1
	echo 0 >"$rps"
	ethtool -L "$QHCA_IF" combined "$most" && until_true flood 50 500 || rc=1
	same "complaints of frames from no queue" "$(dmesg | grep -c 'received packet on queue')" "$log" &&
		same "stuck queues" "$(dmesg | grep -c 'is stuck')" "$stuck" && return $rc
}

eth_choosers()
{
	if no_rss; then
		result skip "eth/senders that have chosen a queue" "one channel"
	else
		expect "eth/senders that have chosen a queue, while channels come and go" choosers
	fi
}
