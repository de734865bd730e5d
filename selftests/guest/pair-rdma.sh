#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# pair-rdma.sh [PART…]     (in both guests of `scripts/vm pair`)
#
# Two machines on one cable: perftest and the connection manager, each machine
# being server and client in turn. The second one may have another RDMA device,
# such as rdma_rxe. Parts: perf mtu ipv6 vlan place cm cnp (these without
# arguments), odp, loss, killed (vm --mortal-server).
# Each ends with one line: N passed, N failed, N skipped.

# shellcheck disable=SC2034 # for what is sourced
LOGS=/run/qhca/logs
. /opt/qhca/guest/perf.sh
. /opt/qhca/guest/result.sh
. /opt/qhca/guest/peers.sh
. /opt/qhca/guest/device.sh
. /opt/qhca/guest/life.sh

rxe_there() { [ "$QHCA_NIC_B" = virtio ]; }

# Prefix of the names of results.
NAME=pair
! rxe_there || NAME=pair/E-048

# Every operation of every service. For READs and atomics both ends must want the
# same depth, or perftest gives up.
perf()
{
	perf_table $NAME <<-'EOF'
	ib_send_bw -s 65536 -n 200
	ib_write_bw -s 65536 -n 200
	ib_read_bw -s 65536 -n 200 -o 8
	ib_atomic_bw -n 200 -o 8
	ib_atomic_bw -A CMP_AND_SWAP -n 200 -o 8
	ib_write_lat -s 8 -n 200
	ib_send_bw -s 4096 -n 200 --use-srq
	ib_send_bw -s 1024 -n 50 --use-srq -q 4
	ib_send_bw -c UC -s 20000 -n 50
	ib_write_bw -c UC -s 20000 -n 50
	ib_send_lat -c UD -s 1024 -n 200
	ib_send_bw -c UD -s 1024 -n 100 --use-srq
	EOF
}

# 1024 is used everywhere else.
mtu()
{
	perf_table $NAME/mtu <<-'EOF'
	ib_send_bw -m 256 -s 20000 -n 30
	ib_write_bw -m 256 -s 20000 -n 30
	ib_read_bw -m 256 -s 20000 -n 30 -o 8
	ib_write_bw -m 512 -s 20000 -n 30
	ib_read_bw -m 512 -s 20000 -n 30 -o 8
	ib_write_bw -m 2048 -s 20000 -n 30
	ib_read_bw -m 2048 -s 20000 -n 30 -o 8
	ib_send_bw -m 4096 -s 20000 -n 30
	ib_write_bw -m 4096 -s 20000 -n 30
	ib_read_bw -m 4096 -s 20000 -n 30 -o 8
	EOF
}

# Addresses fd00:77::1 and ::2 on the netdevs.
ipv6()
{
	# shellcheck disable=SC2034 # for perf_pair
	local GID IP6=fd00:77::${QHCA_IP##*.} PEER6=fd00:77::${QHCA_PEER##*.}
	ip addr replace "$IP6/64" dev "$QHCA_IF" nodad
	# shellcheck disable=SC2034
	GID=$(qhca-gid "$QHCA_DEV" "$IP6")
	perf_table $NAME/ipv6 <<-'EOF'
	ib_send_bw -s 65536 -n 100
	ib_write_bw -m 4096 -s 65536 -n 100
	ib_read_bw -s 65536 -n 50 -o 8
	ib_atomic_bw -n 100 -o 8
	ib_write_bw -c UC -s 20000 -n 50
	ib_send_lat -c UD -s 1024 -n 100
	EOF
	both_ways $NAME/ipv6/rping cm "-s -a $IP6" "-c -a $PEER6" rping -V -C 20 -S 4000
	# The GID that every port has, from its link-local address.
	GID=0
	perf_table $NAME/link-local <<-'EOF'
	ib_write_bw -s 65536 -n 100
	ib_send_bw -c UC -s 20000 -n 50
	ib_send_lat -c UD -s 1024 -n 100
	EOF
}

# A VLAN, with addresses in a network of its own. The cable has room for the tag.
vlan()
{
	# shellcheck disable=SC2034 # for perf_pair
	local GID VLAN_IF=$QHCA_IF.9 IP=192.168.209.${QHCA_IP##*.} PEER=192.168.209.${QHCA_PEER##*.}
	ip link add link "$QHCA_IF" name "$VLAN_IF" type vlan id 9 &&
		ip addr add "$IP/24" dev "$VLAN_IF" && ip link set dev "$VLAN_IF" up
	# shellcheck disable=SC2034
	GID=$(qhca-gid "$QHCA_DEV" "$IP")
	perf_table $NAME/vlan <<-'EOF'
	ib_send_bw -s 65536 -n 100
	ib_read_bw -s 65536 -n 50 -o 8
	ib_atomic_bw -n 100 -o 8
	ib_send_lat -c UD -s 1024 -n 100
	EOF
	both_ways $NAME/vlan/rping cm "-s -a $IP" "-c -a $PEER" rping -V -C 20 -S 4000
	ip link del dev "$VLAN_IF"
}

# A group has no server: each is a member while the other one sends. As a sender on
# rdma_rxe, mckey ends before its messages are sent; and rdma_rxe receives from IPv4
# groups only when IGMP has joined them, which mckey's connection manager does (see
# networks.rst).
group()
{
	local send=(ib_send_bw -c UD -s 512 -n 50 --mcg)
	# shellcheck disable=SC2034 # for both_ways
	local ROLES='a b'
	! rxe_there || ROLES=b
	both_ways "$NAME/K-015 mckey" group-010101EF "" -s mckey -m 239.1.1.1 -b "$QHCA_IP" -C 20 -S 512
	! rxe_there || ROLES=a
	perf_pair "$NAME/K-015 mcg" "${send[@]}" --MGID=0:0:0:0:0:0:0:0:0:0:255:255:239:1:1:5
}

cm()
{
	local CONNECTIONS=$((${FULL:-0} ? 1000 : 200))
	! rxe_there || CONNECTIONS=100
	# rdma_rxe needs a route to the group.
	ip route replace 224.0.0.0/4 dev "$QHCA_IF"
	both_ways "$NAME/K-001 K-002 K-005 K-012 rping" cm "-s -a $QHCA_IP" "-c -a $QHCA_PEER" rping -V -C 20 -S 4000
	both_ways $NAME/ucmatose cm "-b $QHCA_IP" "-s $QHCA_PEER" ucmatose -c 5 -C 20 -S 2000
	both_ways "$NAME/K-014 udaddy" cm "-b $QHCA_IP" "-s $QHCA_PEER" udaddy -c 4 -C 10 -S 512
	both_ways "$NAME/K-017 cmtime" cm "-b $QHCA_IP" "-s $QHCA_PEER" cmtime -c $CONNECTIONS -n 4
	group
}

# Memory that is not pinned, at both ends; rdma_rxe has it on Linux 7, but not for all memory.
odp()
{
	local how ways='o O'
	! rxe_there || ways=o
	perf_table $NAME/odp <<-'EOF'
	ib_send_bw --odp -s 65536 -n 200
	ib_write_bw --odp -s 65536 -n 200
	ib_read_bw --odp -s 65536 -n 200 -o 8
	ib_atomic_bw --odp -n 200 -o 8
	ib_send_bw --odp -s 4096 -n 200 --use-srq
	EOF
	# These look at what they receive.
	for how in $ways; do
		PORT=$((PORT + 1))
		both_ways "$NAME/odp pingpong -$how" $PORT "" "$QHCA_PEER" ibv_rc_pingpong -c "-$how" \
			-d "$QHCA_DEV" -g "$QHCA_GID" -p "$PORT" -s 100000 -n 100
	done
}

# B-012 B-013 B-073 B-074
place()
{
	local tool
	tool=$(dirname "$(readlink -f "$0")")/place.py
	# rdma_rxe counts the headers of a FLUSH twice in its ICRC (see networks.rst).
	set --
	! rxe_there || set -- --no-flush
	both_ways $NAME/place 18690 "" "$QHCA_PEER" python3 "$tool" "$@" 18690
}

# Both sides must have seen loss: qhca counts retransmissions, rdma_rxe gaps.
gaps()
{
	local dir=/sys/class/infiniband/$QHCA_DEV/ports/1/hw_counters
	cat "$dir/retransmit" 2>/dev/null || cat "$dir/out_of_seq_request"
}

cc_param()
{
	devlink dev param set "pci/$(lspci -D -n -d 1af4:10f0 | cut -d ' ' -f 1)" \
		name "$1" value "$2" cmode runtime
}

# All packets have the mark of a network that is full, so there are notifications for both
# directions; rdma_rxe does not know them, and works on.
cnp()
{
	local dir=/sys/class/infiniband/$QHCA_DEV/ports/1/hw_counters here='' sent handled
	[ ! -e "$dir/np_cnp_sent" ] || here=1
	if [ -n "$here" ]; then
		sent=$(cat "$dir/np_cnp_sent") handled=$(cat "$dir/rp_cnp_handled")
		expect "$NAME/cnp/E-040 on" cc_param np_enable 1
		cc_param rp_enable 1
	fi
	qhca-host sync cnp >/dev/null
	perf_table $NAME/cnp <<-'EOF'
	ib_send_bw -s 65536 -n 100 --tclass=3
	ib_write_bw -s 65536 -n 100 --tclass=3
	ib_read_bw -s 65536 -n 50 -o 8 --tclass=3
	EOF
	[ -n "$here" ] || return
	sent=$(($(cat "$dir/np_cnp_sent") - sent))
	handled=$(($(cat "$dir/rp_cnp_handled") - handled))
	echo "# $sent notifications sent, $handled obeyed"
	expect "$NAME/cnp/E-040 notifications" [ $sent -gt 0 ]
	if rxe_there; then
		expect "$NAME/cnp/rdma_rxe sends none" [ $handled = 0 ]
	else
		expect "$NAME/cnp/they are obeyed" [ $handled -gt 0 ]
	fi
	cc_param np_enable 0
	cc_param rp_enable 0
}

# For a cable that loses frames (vm --loss), which may only cost time. Without
# ib_write_lat, whose server ends without closing the connection (write_lat.c ends in
# destroy_ctx(), the others in ctx_close_connection()): if the acknowledge of the client's last
# WRITE is lost, it is not repeated.
loss()
{
	# The connection manager retransmits after 4.3 s, and again; perftest's QPs after
	# this ACK timeout.
	# shellcheck disable=SC2034 # for serve and perf_pair
	local before GRACE=45 ACK_TIMEOUT=16
	before=$(gaps)
	perf_table $NAME/loss <<-'EOF'
	ib_send_bw -s 65536 -n 50
	ib_write_bw -s 65536 -n 50
	ib_read_bw -s 65536 -n 30 -o 8
	ib_atomic_bw -n 100 -o 8
	ib_send_lat -s 8 -n 100
	ib_send_bw -s 4096 -n 100 --use-srq
	EOF
	# Once, in some 50 runs, rping of rdma_rxe (in machine b) had disconnected as a client
	# and did not end.
	local roles='a b'
	if rxe_there && [ -z "$RISKY" ]; then
		result skip $NAME/loss/rping "rdma_rxe's client may not end; RISKY=1 runs it"
		roles=b
	fi
	ROLES=$roles both_ways $NAME/loss/rping cm "-s -a $QHCA_IP" "-c -a $QHCA_PEER" \
		rping -V -C 50 -S 20000
	both_ways $NAME/loss/ucmatose cm "-b $QHCA_IP" "-s $QHCA_PEER" ucmatose -c 5 -C 20 -S 2000
	expect "$NAME/loss/frames were lost" [ "$(gaps)" -gt "$before" ]
}

# The process that has the adapters of both machines is killed while they talk, and another
# one started. The first machine can be back before the second one is.
killed()
{
	local mark="killed $EPOCHREALTIME" traffic
	device_find
	echo "$mark" >/dev/kmsg
	PORT=$((PORT + 1))
	local command=(ib_write_bw -d "$QHCA_DEV" -x "$QHCA_GID" -p "$PORT" -F -b -s 65536 -D 300)
	if [ "$QHCA_ROLE" = a ]; then
		timeout 120 "${command[@]}" >"$LOGS"/traffic 2>&1 &
		traffic=$!
		until_true listening "$PORT"
		qhca-host sync killed-up >/dev/null
	else
		qhca-host sync killed-up >/dev/null
		timeout 120 "${command[@]}" "$QHCA_PEER" >"$LOGS"/traffic 2>&1 &
		traffic=$!
	fi
	sleep 8
	expect $NAME/killed/traffic kill -0 $traffic
	qhca-host sync killed-traffic >/dev/null
	[ "$QHCA_ROLE" = b ] || qhca-host server kill >/dev/null
	expect "$NAME/killed/J-019 the driver notices" until_true life_gone "$mark"
	# It may wait for its peer, over the network that is gone.
	PATIENCE=10 until_true gone $traffic || kill $traffic
	expect $NAME/killed/ends until_true gone $traffic
	qhca-host sync killed-over >/dev/null
	expect $NAME/killed/replaced life_replace
	expect $NAME/killed/back life_back
	qhca-host sync killed-back >/dev/null
	perf_table $NAME/killed <<-'EOF'
	ib_send_bw -s 65536 -n 100
	ib_write_bw -s 65536 -n 100
	EOF
	both_ways $NAME/killed/rping cm "-s -a $QHCA_IP" "-c -a $QHCA_PEER" rping -V -C 20 -S 4000
}

[ -n "$QHCA_DEV" ] || result fail device "no RDMA device"
[ $# -gt 0 ] || set -- perf mtu ipv6 vlan place cm cnp
for part; do
	case $part in
	perf|mtu|ipv6|vlan|place|cm|cnp|odp|loss|killed) $part ;;
	*) echo "unknown part $part"; exit 2 ;;
	esac
done
summary
