#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# pair.sh     (in both guests of a pair)
#
# The network card and RC between two machines. Machine b is the client of every
# test; a serves, and counts what reaches it. Each ends with one line:
# N passed, N failed, N skipped.

LOGS=/run/qhca/logs
. /opt/qhca/guest/perf.sh
. /opt/qhca/guest/result.sh
. /opt/qhca/guest/pings.sh

VLAN_IF=$QHCA_IF.7
VLAN_IP=${QHCA_IP/192.168.77/192.168.207}
VLAN_PEER=${QHCA_PEER/192.168.77/192.168.207}
MAC_OF_A=52:54:00:00:4d:01

a() { [ "$QHCA_ROLE" = a ]; }

# Both machines are at this point.
STEP=0
step() { STEP=$((STEP + 1)); qhca-host sync "step$STEP" || exit 1; }

# serve COMMAND… / client NAME COMMAND…: a starts its side in the background, b runs the test.
serve() { a || return 0; "$@" >"$LOGS/server.log" 2>&1 & SERVER=$!; }
client() { step; a || expect "pair/$1" "${@:2}"; step; a && [ -n "$SERVER" ] && stop_server; }

stop_server()
{
	kill "$SERVER" 2>/dev/null
	wait "$SERVER" 2>/dev/null
	SERVER=
}

# ---- the network card

flood() { ping -q -f -n -c "$1" -s "$2" -W 5 "${3:-$QHCA_PEER}"; }
big() { ping -q -n -c 3 -i 0.1 -s 60000 -W 5 "$QHCA_PEER"; }

iperf() { iperf_to "$QHCA_PEER" "$@"; }

iperf_once() { out=$(iperf3 -c "$1" -t 2 -f m "${@:2}"); }

# The server may not listen yet.
iperf_to()
{
	local out figure
	until_true iperf_once "$@" || return
	figure=$(awk '/receiver/ { print $(NF - 2), $(NF - 1) }' <<<"$out")
	echo "# iperf3 $*: $figure" >&3
	[ "${figure%%[. ]*}" -gt 0 ]
}

# bursts COUNT SIZE: of as many long pings as a kernel answers in one go. Of 9000 bytes its socket
# for that has room for 8, and an answer that it does not send is no loss of the network; in a flood
# there are more when a machine waits for a CPU.
bursts()
{
	local i
	for ((i = 0; i < $1; i++)); do
		answered ping -q -n -l 7 -c 7 -s "$2" -M "do" -W 5 "$QHCA_PEER" || return 1
	done
}

# Frames that came in several buffers.
scattered() { ethtool -S "$QHCA_IF" | awk '/_scattered:/ { n += $2 } END { print n }'; }

# Frames of full size, and of those whose end is near the end of a page.
jumbo()
{
	local size before out
	before=$(scattered)
	bursts 72 8972 || return 1
	echo "$(($(scattered) - before)) of them in several buffers"
	[ $(($(scattered) - before)) -ge $((72 * 7)) ] || return 1
	for size in 4053 4054 4055 4056 8149 8150 8151 8152; do
		out=$(answered ping -q -n -c 3 -i 0.01 -s $size -M "do" -p a5 -W 5 "$QHCA_PEER") || return 1
		! grep 'wrong data' <<<"$out" || return 1
	done
}

# While b sends pings, a changes the parameters of its queues.
change()
{
	local n
	for n in 1500 9000 1600 4200; do
		ip link set dev "$QHCA_IF" mtu "$n"
		sleep 0.1
	done
	for n in 1 "$(ethtool -l "$QHCA_IF" | awk '$1 == "Combined:" { print $2; exit }')"; do
		ethtool -L "$QHCA_IF" combined "$n"
		sleep 0.1
	done
	for n in 256 4096 512; do
		ethtool -G "$QHCA_IF" rx "$n" tx "$n"
		sleep 0.1
	done
}

# Slowly: while the host does not schedule a machine, the cable holds no more than ten
# frames.
no_loss() { answered ping -q -n -i 0.02 -c 100 -s 1000 "$QHCA_PEER"; }

# ---- the address filter

start_counter()
{
	a || return 0
	coproc COUNTER { python3 /opt/qhca/guest/frames.py count "$QHCA_IF" "$@"; }
	read -r _ <&"${COUNTER[0]}"
}

stop_counter()
{
	local stdin
	a || return 0
	stdin=${COUNTER[1]}
	exec {stdin}>&-
}

ask() { echo >&"${COUNTER[1]}"; read -r COUNT <&"${COUNTER[0]}"; }
count_is() { ask; same "frames" "$COUNT" "$1"; }

# filter NAME EXPECTED ADDRESS COMMAND_OF_A…
filter()
{
	a && "${@:4}" && ask
	step
	a || python3 /opt/qhca/guest/frames.py send "$QHCA_IF" "$3" 20
	step
	! a || expect "pair/filter: $1" count_is "$2"
}

set_link() { ip link set dev "$QHCA_IF" "$@"; }

# Frames addressed to groups, by the port's statistics.
grouped() { cat "/sys/class/net/$QHCA_IF/statistics/multicast"; }

filters()
{
	local group=01:00:5e:07:08:09 before
	start_counter
	filter "own address" 20 "$MAC_OF_A" true
	filter "broadcast" 20 ff:ff:ff:ff:ff:ff true
	filter "another address" 0 52:54:00:11:22:33 true
	filter "another address, promiscuous" 20 52:54:00:11:22:33 set_link promisc on
	filter "another address, promiscuous no more" 0 52:54:00:11:22:33 set_link promisc off
	filter "a group" 0 "$group" true
	before=$(grouped)
	filter "a group that was joined" 20 "$group" ip maddr add "$group" dev "$QHCA_IF"
	! a || expect "pair/statistics: frames to a group" [ $(($(grouped) - before)) -ge 20 ]
	filter "a group that was left" 0 "$group" ip maddr del "$group" dev "$QHCA_IF"
	filter "any group" 20 "$group" set_link allmulticast on
	filter "any group no more" 0 "$group" set_link allmulticast off
	filter "a new address" 20 52:54:00:55:66:77 set_link address 52:54:00:55:66:77
	filter "the address before" 0 "$MAC_OF_A" true
	filter "the address before, again" 20 "$MAC_OF_A" set_link address "$MAC_OF_A"
	stop_counter
}

# ---- RC over the cable, and what the stack sees of it (E-047)

PORT=18800
# rc NAME TOOL SIZE ITERATIONS [GID ADDRESS]
rc()
{
	local gid=${5:-$QHCA_GID} run
	PORT=$((PORT + 1))
	run=(timeout 60 "$2" -d "$QHCA_DEV" -x "$gid" -p "$PORT" -s "$3" -n "$4" -F -u 18)
	serve "${run[@]}"
	! a || wait_listening $PORT "$SERVER"
	client "$1" "${run[@]}" "${6:-$QHCA_PEER}"
}

# Frames of QPs, between addresses that no network interface has.
RAW=(raw_ethernet_lat -d "$QHCA_DEV" -n 1000 -s 1024)
RAW_A=02:00:00:00:77:0a
RAW_B=02:00:00:00:77:0b

# Frames that are sent before there is a rule for them are lost, and waited for.
raw_client()
{
	local n
	for n in 1 2 3 4; do
		timeout 15 "${RAW[@]}" --client -E $RAW_B -B $RAW_A && return
		echo "attempt $n: no answer"
	done
	return 1
}

raw()
{
	serve timeout 80 "${RAW[@]}" --server -E $RAW_A -B $RAW_B
	client "raw_ethernet_lat" raw_client
}

vlan()
{
	local gid
	ip link add link "$QHCA_IF" name "$VLAN_IF" type vlan id 7
	ip addr add "$VLAN_IP/24" dev "$VLAN_IF"
	ip link set dev "$VLAN_IF" up
	gid=$(qhca-gid "$QHCA_DEV" "$VLAN_IP")
	client "VLAN: flood ping" flood 200 1400 "$VLAN_PEER"
	rc "J-013 E-001 VLAN: ib_write_bw" ib_write_bw 4096 100 "$gid" "$VLAN_PEER"
	# The untagged peer has another address.
	ip link del dev "$VLAN_IF"
}

# stacked OUTER INNER: 802.1ad or 802.1Q, and a second tag or none. Frames as long as
# those without tags, and TCP that the device cannot segment.
stacked()
{
	local outer=$1 inner=${2:-} dev=$QHCA_IF.8 errors ip=${QHCA_IP/192.168.77/192.168.208}
	local peer=${QHCA_PEER/192.168.77/192.168.208}
	ip link add link "$QHCA_IF" name "$dev" type vlan id 8 protocol "$outer"
	ip link set dev "$dev" up
	if [ -n "$inner" ]; then
		ip link add link "$dev" name "$dev.9" type vlan id 9 protocol "$inner"
		dev=$dev.9
	fi
	ip addr add "$ip/24" dev "$dev"
	ip link set dev "$dev" up
	errors=$(cat "/sys/class/net/$QHCA_IF/statistics/tx_errors")
	client "$outer $inner: full frames" ping -q -n -c 20 -i 0.01 -M "do" -s 4172 -W 5 "$peer"
	serve iperf3 -s -1
	client "$outer $inner: iperf3" iperf_to "$peer"
	expect "pair/$outer $inner: everything was sent" same "tx_errors" \
		"$(cat "/sys/class/net/$QHCA_IF/statistics/tx_errors")" "$errors"
	ip link del dev "$QHCA_IF.8"
}

# The stack sees no RoCE; without the RDMA driver it is ordinary UDP.
udp() { python3 /opt/qhca/guest/frames.py udp "$QHCA_PEER" 4791 20; }

# With its RDMA driver the card would refuse to send this.
udp_without_driver()
{
	echo "$2" >"$1/unbind"
	udp
	echo "$2" >"$1/bind"
	qhca-gid "$QHCA_DEV" "$QHCA_IP" >/dev/null
}

isolation()
{
	local adev driver
	driver=$(dirname "$(find /sys/bus/auxiliary/drivers/*/ -maxdepth 1 -name 'qhca.*' | head -n 1)")
	adev=$(basename "$(find "$driver" -maxdepth 1 -name 'qhca.*' | head -n 1)")
	start_counter roce
	rc "ib_write_bw under watch" ib_write_bw 4096 50
	! a || expect "pair/E-047 RoCE does not reach the stack" count_is 0
	step
	a || udp_without_driver "$driver" "$adev"
	step
	! a || expect "pair/E-047 nor does what only looks like RoCE" count_is 0
	! a || echo "$adev" >"$driver/unbind"
	step
	a || udp
	step
	! a || expect "pair/D-088 nor does it leave the stack of one with GIDs" count_is 0
	step
	a || udp_without_driver "$driver" "$adev"
	step
	! a || expect "pair/E-047 without the RDMA driver it is UDP" count_is 20
	! a || echo "$adev" >"$driver/bind"
	! a || qhca-gid "$QHCA_DEV" "$QHCA_IP" >/dev/null
	step
	stop_counter
	rc "and back again" ib_write_bw 4096 50
}

# ---- bad frames, from b's stack to a

EACH=20
counters()
{
	local name
	for name in $(python3 /opt/qhca/guest/frames.py hostile | sort -u); do
		echo "$name $(cat "/sys/class/infiniband/$QHCA_DEV/ports/1/hw_counters/$name")"
	done
}

# E-031 E-034 E-040 E-041 E-045 E-046: how often each counter is in the list
hostile()
{
	local name was now before list
	before=$(counters)
	step
	a || python3 /opt/qhca/guest/frames.py hostile "$QHCA_IF" "$QHCA_PEER" $MAC_OF_A $EACH
	step
	a || return 0
	sleep 0.5
	list=$(python3 /opt/qhca/guest/frames.py hostile)
	while read -r name was _ now; do
		expect "pair/hostile: $name" same "$name / $EACH" $(((now - was) / EACH)) \
			"$(grep -cw "$name" <<<"$list")"
	done < <(paste -d ' ' <(echo "$before") <(counters))
}

exec 3>&1
sysctl -qw "net.ipv6.conf.$QHCA_IF.disable_ipv6=1"
client "many pings, MTU 4200" bursts 72 4000
client "ping of 60000 bytes" big
serve iperf3 -s -1
client "iperf3, b sends" iperf
serve iperf3 -s -1
client "iperf3, a sends" iperf -R
ip link set dev "$QHCA_IF" mtu 9000
client "MTU 9000: many pings, frames in several buffers" jumbo
serve iperf3 -s -1
client "MTU 9000: iperf3, b sends" iperf
serve iperf3 -s -1
client "MTU 9000: iperf3, a sends" iperf -R
ip link set dev "$QHCA_IF" mtu 4200
serve change
client "no loss while the peer changes MTU and rings" no_loss
rc "ib_write_bw" ib_write_bw 65536 200
rc "ib_read_bw" ib_read_bw 65536 100
rc "ib_send_lat" ib_send_lat 64 200
filters
hostile
rc "ib_send_bw after that" ib_send_bw 65536 50
raw
vlan
stacked 802.1ad
stacked 802.1ad 802.1Q
stacked 802.1Q 802.1Q
isolation
summary
