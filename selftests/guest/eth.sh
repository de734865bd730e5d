# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh: the function as a network card, alone in its machine. The gateway behind the
# user network answers pings; there is no other machine.

GATEWAY=${QHCA_PEER%.*}.254
VLAN_IF=$QHCA_IF.7
VLAN_NET=192.168.207

counter() { cat "/sys/class/net/$QHCA_IF/statistics/$1"; }
# queue_sum NAME: of all queues, txN_packets as tx_packets.
queue_sum() { ethtool -S "$QHCA_IF" | sed 's/^ *\([rt]x\)[0-9]*_/\1_/' | awk -v n="$1:" '$1 == n { s += $2 } END { print s }'; }
ethtool_counter() { ethtool -S "$QHCA_IF" | awk -v n="$1:" '$1 == n { print $2 }'; }
carrier_is() { [ "$(cat "/sys/class/net/$QHCA_IF/carrier")" = "$1" ]; }
port_is() { rdma link show "$QHCA_DEV/1" | grep -q "state $1 "; }
qmp() { qhca-host qmp "$1"; }

# The gateway sends no frames above 1500 bytes; it has to be allowed to send fragments.
ping_gateway() { ping -q -n -M dont "$@" "$GATEWAY"; }

# flood COUNT SIZE: pings as fast as they are answered, none lost.
flood() { answered ping_gateway -f -c "$1" -s "$2"; }

sizes()
{
	local size
	for size in 0 1 17 18 19 255 1471 1472 1473 4172 9000 60000; do
		answered ping_gateway -c 2 -i 0.01 -s "$size" || return 1
	done
}

# Each of FIGURES as the device, the driver and its queues have it, once nothing moves any more:
# programs read one after the other, and a frame in between would be in only some of them.
FIGURES=(tx_packets tx_bytes rx_packets rx_bytes)
settled_figures()
{
	local end=$((SECONDS + PATIENCE)) now='' last=- name
	while [ "$now" != "$last" ] && [ $SECONDS -le $end ]; do
		last=$now now=''
		for name in "${FIGURES[@]}"; do
			now+=" $(ethtool_counter "eth_${name/packets/pkts}") $(counter "$name")"
			now+=" $(queue_sum "$name")"
		done
	done
	echo "$now"
}

# Every frame is counted once, by the device and by the driver, at its length on the wire.
figures()
{
	local before after device driver queues i
	read -ra before < <(settled_figures)
	flood 200 700
	read -ra after < <(settled_figures)
	for i in 0 1 2 3; do
		device=$((after[3 * i] - before[3 * i]))
		driver=$((after[3 * i + 1] - before[3 * i + 1]))
		queues=$((after[3 * i + 2] - before[3 * i + 2]))
		same "device and driver, ${FIGURES[i]}" $device $driver &&
			same "driver and queues, ${FIGURES[i]}" $driver $queues || return 1
	done
	[ $((after[0] - before[0])) -ge 200 ] && [ $((after[3] - before[3])) -ge $((200 * 742)) ]
}

driver_info()
{
	ethtool -i "$QHCA_IF" | grep -x 'driver: qhca' &&
		ethtool "$QHCA_IF" | grep 'Speed: 100000Mb/s' &&
		ethtool "$QHCA_IF" | grep 'Link detected: yes' &&
		same "channels" "$(channels)" "$(max_channels)" &&
		{ no_rss || same "channels for CPUs" "$(max_channels)" "$(most_channels)"; }
}

features()
{
	local f
	for f in scatter-gather tx-checksumming tcp-segmentation-offload rx-checksumming \
		generic-receive-offload tx-vlan-offload rx-vlan-offload; do
		ethtool -k "$QHCA_IF" | grep "^$f: on" || return 1
	done
	for f in tso sg tx rx gro txvlan; do
		ethtool -K "$QHCA_IF" "$f" off && flood 50 3000 || return 1
	done
	for f in sg tx tso rx gro txvlan; do
		ethtool -K "$QHCA_IF" "$f" on && flood 50 3000 || return 1
	done
}

# during_pings COMMAND…
during_pings()
{
	local pings log=$LOGS/eth.flood rc=0
	ping_gateway -i 0.002 -c 400 -s 1000 >"$log" 2>&1 &
	pings=$!
	sleep 0.2
	"$@" || rc=1
	wait "$pings" || rc=1
	cat "$log"
	return $rc
}

# under_traffic COMMAND…: during pings, none of which may get lost.
under_traffic()
{
	answered during_pings "$@" && return
	ethtool -S "$QHCA_IF" | grep -v ': 0$'
	nstat -as | grep -E '^(Icmp|Ip)(In|Out)'
	tc -s qdisc show dev "$QHCA_IF"
	return 1
}

change_mtu()
{
	local mtu
	for mtu in 1500 9000 1280 4200 9000 4200; do
		ip link set dev "$QHCA_IF" mtu "$mtu" || return 1
		sleep 0.1
	done
	! ip link set dev "$QHCA_IF" mtu 9001 2>/dev/null
}

change_rings()
{
	local n
	for n in 64 4096 100 512; do
		ethtool -G "$QHCA_IF" rx "$n" tx "$n" || return 1
		sleep 0.1
	done
	! ethtool -G "$QHCA_IF" rx 63 2>/dev/null && ! ethtool -G "$QHCA_IF" tx 4097 2>/dev/null
}

# available: free memory, in KiB
available() { awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo; }

# Large frames are spread over pages, so the buffers are the same as for small ones. Without that
# each would be of four pages: three more.
memory()
{
	local small large more
	more=$(($(channels) * 4096 * 12))
	ip link set dev "$QHCA_IF" mtu 1500 && ethtool -G "$QHCA_IF" rx 4096 || return 1
	sleep 0.5
	small=$(available)
	ip link set dev "$QHCA_IF" mtu 9000 && flood 50 500 || return 1
	sleep 0.5
	large=$(available)
	ethtool -G "$QHCA_IF" rx 1024 && ip link set dev "$QHCA_IF" mtu 4200 || return 1
	echo "$((small - large)) KiB more, $more KiB if they were contiguous"
	[ $((small - large)) -lt $((more / 3)) ]
}

change_filter()
{
	local i
	for i in 1 2 3 4 5; do
		ip maddr add "01:00:5e:01:02:0$i" dev "$QHCA_IF" || return 1
		ip link set dev "$QHCA_IF" promisc on
		ip link set dev "$QHCA_IF" allmulticast on
		ip maddr del "01:00:5e:01:02:0$i" dev "$QHCA_IF" || return 1
		ip link set dev "$QHCA_IF" promisc off
		ip link set dev "$QHCA_IF" allmulticast off
	done
}

# More groups than the device has room for: then it takes all multicast.
many_groups()
{
	local i n
	for i in $(seq 600); do
		printf 'maddr add 01:00:5e:02:%02x:%02x dev %s\n' $((i / 256)) $((i % 256)) "$QHCA_IF"
	done >/run/qhca/groups
	ip -batch /run/qhca/groups && flood 20 100 || return 1
	sed -i "s/maddr add/maddr del/" /run/qhca/groups
	ip -batch /run/qhca/groups && flood 20 100
}

change_mac()
{
	local mac
	mac=$(cat "/sys/class/net/$QHCA_IF/address")
	ip link set dev "$QHCA_IF" address 52:54:00:99:88:77 || return 1
	until_true flood 50 500 || return 1
	ip link set dev "$QHCA_IF" address "$mac" && until_true flood 50 500
}

link_state() { qmp "{\"execute\":\"set_link\",\"arguments\":{\"name\":\"qhca0\",\"up\":$1}}"; }

# Twice, so that a successful return is no accident.
change_link()
{
	local i rc=0
	for i in 1 2; do
		link_state false && until_true carrier_is 0 && until_true port_is DOWN || rc=1
		ethtool "$QHCA_IF" | grep 'Link detected: no' || rc=1
		link_state true && until_true carrier_is 1 && until_true port_is ACTIVE || rc=1
		until_true flood 50 500 || rc=1
	done
	return $rc
}

# ---- a VLAN: addresses, a GID with its number, RC traffic that is tagged

vlan_gid() { QHCA_NO_WAIT=1 qhca-gid "$QHCA_DEV" "$VLAN_NET.1"; }

vlan_rc()
{
	local gid
	ip link add link "$QHCA_IF" name "$VLAN_IF" type vlan id 7 || return 1
	ip addr add "$VLAN_NET.1/24" dev "$VLAN_IF" && ip link set dev "$VLAN_IF" up || return 1
	gid=$(qhca-gid "$QHCA_DEV" "$VLAN_NET.1") || return 1
	same "interface of the GID" "$(cat "/sys/class/infiniband/$QHCA_DEV/ports/1/gid_attrs/ndevs/$gid")" \
		"$VLAN_IF" || return 1
	both 60 "$LOGS/pp.server" "$LOGS/pp.client" 18700 \
		ibv_rc_pingpong -d "$QHCA_DEV" -g "$gid" -p 18700 -n 200 || { cat "$LOGS"/pp.*; return 1; }
}

vlan_gone()
{
	local gid
	gid=$(vlan_gid) || return 1
	ip link del dev "$VLAN_IF" || return 1
	until_true eval "! grep -qs . /sys/class/infiniband/$QHCA_DEV/ports/1/gid_attrs/ndevs/$gid"
}

# There is no answer from behind the user network: what matters is that frames leave with the tag,
# four bytes longer than without.
vlan_frames()
{
	local before after
	before=$(ethtool_counter eth_tx_bytes)
	ping -q -n -c 3 -i 0.2 -W 1 -s 1000 -I "$VLAN_IF" 224.0.0.1
	after=$(ethtool_counter eth_tx_bytes)
	[ $((after - before)) -ge $((3 * 1046)) ]
}

# An identifier of 0 is no VLAN: its GID exists and sends without a tag.
vlan_none()
{
	local gid rc=0
	ip link add link "$QHCA_IF" name "$QHCA_IF.0" type vlan id 0 || return 1
	ip addr add 192.168.200.1/24 dev "$QHCA_IF.0" && ip link set dev "$QHCA_IF.0" up || return 1
	gid=$(qhca-gid "$QHCA_DEV" 192.168.200.1) || rc=1
	[ $rc != 0 ] || both 60 "$LOGS/pp.server" "$LOGS/pp.client" 18701 \
		ibv_rc_pingpong -d "$QHCA_DEV" -g "$gid" -p 18701 -n 200 || rc=1
	ip link del dev "$QHCA_IF.0"
	return $rc
}

# limit_min BYTES: so many may wait in each queue of the device.
limit_min()
{
	local file
	for file in "/sys/class/net/$QHCA_IF"/queues/tx-*/byte_queue_limits/limit_min; do
		echo "$1" >"$file" || return 1
	done
}

# Frames from both CPUs as fast as the smallest rings allow.
small_rings()
{
	local before after
	before=$(ethtool_counter cq_overrun)
	ethtool -G "$QHCA_IF" rx 64 tx 64 && limit_min 10000000 || return 1
	python3 /opt/qhca/guest/frames.py blast "$QHCA_IF" 2
	after=$(ethtool_counter cq_overrun)
	limit_min 0
	ethtool -G "$QHCA_IF" rx 1024 tx 512 || return 1
	same "overruns" "$before" "$after" && flood 50 500
}

# Frames that wait in the stack while the device is reset leave afterwards, although no other
# follows: both senders wait for room in their sockets.
waiting()
{
	local pid rc=0
	ethtool -G "$QHCA_IF" rx 1024 tx 64 || return 1
	timeout 20 python3 /opt/qhca/guest/frames.py blast "$QHCA_IF" 4 &
	pid=$!
	for _ in {1..10}; do
		sleep 0.2
		device_reset || rc=1
	done
	wait $pid || { tc -s qdisc show dev "$QHCA_IF" | grep backlog; rc=1; }
	ethtool -G "$QHCA_IF" rx 1024 tx 512 || rc=1
	return $rc
}

CROWD=20000	# frames of pktgen

# Frames lost on the way, by the name of their counter.
losses()
{
	local name
	for name in tx_dropped tx_errors rx_dropped rx_errors rx_length_errors; do
		echo "$name $(queue_sum $name)"
	done
	for name in eth_tx_err cq_overrun; do
		echo "$name $(ethtool_counter $name)"
	done
}

# Through two tags, to a neighbour that does not exist. Frames of full size, and how many.
through_tags()
{
	local outer=$QHCA_IF.5 inner=$QHCA_IF.5.6
	ip link add link "$QHCA_IF" name "$outer" type vlan proto 802.1ad id 5 &&
		ip link add link "$outer" name "$inner" type vlan id 6 &&
		ip addr add 192.168.210.1/24 dev "$inner" &&
		ip link set dev "$outer" up && ip link set dev "$inner" up &&
		ip neigh add 192.168.210.2 lladdr 52:54:00:aa:bb:dd dev "$inner" || return 1
	ping -q -n -f -w 4 -s 4172 192.168.210.2 | sed -n 's/^\([0-9]*\) packets.*/\1/p'
	ip link del dev "$outer"
}

# came_back N: so many replies in all
came_back()
{
	local back
	read -r _ back < <(echoes)
	[ "$back" -ge "$1" ]
}

# All senders together, through the smallest rings: each frame leaves, and those that are answered
# come back.
crowd()
{
	local before sent back rc=0 log=$LOGS/eth.crowd gen pings
	ethtool -G "$QHCA_IF" rx 64 tx 64 || return 1
	before=$(losses)
	sent=$(ethtool_counter eth_tx_pkts)
	# Several frames for each doorbell.
	pktgen "count $CROWD" 'burst 8' 'delay 0' >"$log.pktgen" 2>&1 &
	gen=$!
	read -r _ back < <(echoes)
	ping_gateway -f -c 200 -s 1400 >"$log.ping" 2>&1 &
	pings=$!
	through_tags >"$log.tags" || rc=1
	wait $gen && wait $pings || rc=1
	sent=$(($(ethtool_counter eth_tx_pkts) - sent))
	same "losses" "$(losses | xargs)" "$(xargs <<<"$before")" || rc=1
	until_true came_back $((back + 200)) || rc=1
	# After a full ring its bursts of 8 do not end at the number it has to send.
	grep "pkts-sofar: 2000[0-7]  errors: 0" "$log.pktgen" || rc=1
	echo "$sent frames, $(cat "$log.tags") with tags"
	[ "$sent" -ge $((CROWD + 200 + $(cat "$log.tags"))) ] || rc=1
	ethtool -G "$QHCA_IF" rx 1024 tx 512 || rc=1
	[ $rc = 0 ] || cat "$log".*
	return $rc
}

eth()
{
	local start=$SECONDS
	sysctl -qw "net.ipv6.conf.$QHCA_IF.disable_ipv6=1"
	eth_card
	device_find
	EXPECT_LINES=40 expect "eth/all settings change at once, under traffic" storm
	eth_unplugged
	expect "eth/J-009 H-012 set_link: carrier and port" change_link
	expect "eth/J-013 E-001 VLAN: GID and RC traffic" vlan_rc
	expect "eth/VLAN: tagged frames" vlan_frames
	expect "eth/J-013 VLAN 0: GID and RC traffic" vlan_none
	expect "eth/J-013 VLAN: the GID goes with it" vlan_gone
	ip link del dev "$VLAN_IF" 2>/dev/null
	sysctl -qw "net.ipv6.conf.$QHCA_IF.disable_ipv6=0"
	echo "# eth: $((SECONDS - start)) s"
}

# Some of eth_card, each by itself.
eth_pieces()
{
	local piece
	sysctl -qw "net.ipv6.conf.$QHCA_IF.disable_ipv6=1"
	device_find
	for piece; do "$piece"; done
	sysctl -qw "net.ipv6.conf.$QHCA_IF.disable_ipv6=0"
}

# In brief, for where time is short: what all the rest is built on.
card() { eth_pieces eth_basics eth_buffers eth_filters; }

eth_basics()
{
	# Before anything has switched it off.
	expect "eth/J-029 the driver has loaded, so the port is up wherever it is asked" until_true port_says up
	expect "eth/driver and link settings" driver_info
	expect "eth/ping, sizes up to 60000" sizes
	expect "eth/flood ping" flood 1000 1000
	expect "eth/statistics: device, driver, ethtool agree" figures
	expect "eth/offloads on and off" features
	local -x EXPECT_LINES=80	# counters, if a ping gets lost
	expect "eth/MTU changes under traffic" under_traffic change_mtu
	expect "eth/ring sizes change under traffic" under_traffic change_rings
	expect "eth/the number of channels changes under traffic" under_traffic change_channels
	expect "eth/the number of channels changes while down" channels_down
	expect "eth/a CPU that comes late has a channel" late_cpu
}

eth_buffers()
{
	expect "eth/as many frames as go through the smallest rings" small_rings
	expect "eth/frames that wait leave after a reset" waiting
	expect "eth/pktgen, two tags and pings through the smallest rings" crowd
	expect "eth/buffers of MTU 9000 are pages" memory
}

eth_filters()
{
	expect "eth/filters change under traffic" under_traffic change_filter
	expect "eth/more multicast groups than fit" many_groups
	expect "eth/MAC address changes" change_mac
}

eth_card()
{
	eth_basics
	eth_rss
	eth_rules
	eth_stats
	eth_choosers
	eth_refused
	eth_port
	eth_buffers
	eth_moderation
	eth_filters
}
