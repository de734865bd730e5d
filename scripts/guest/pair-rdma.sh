#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# pair-rdma.sh     (in both guests of `scripts/vm pair`)
#
# Two machines on one cable: perftest and the connection manager, each machine
# being server and client in turn. The second one may have another RDMA device,
# such as rdma_rxe. Each ends with one line: N passed, N failed, N skipped.

LOGS=/run/qhca/logs
. /opt/qhca/guest/perf.sh
. /opt/qhca/guest/result.sh
STEP=0

# Whether a server is there: it listens on a TCP port, or on an RDMA CM
# identifier, or has joined a multicast group (in hex, as the kernel has it).
ready()
{
	case $1 in
	cm) rdma res show cm_id 2>/dev/null | grep -q LISTEN ;;
	group-*) grep -q "${1#group-}" /proc/net/igmp && sleep 3 ;;
	*) listening "$1" ;;
	esac
}

# The complaints come first, before what the buffer of stdout held back.
why()
{
	{ head -n 4 "$1"; echo ...; tail -n 3 "$1"; } | sed 's/^/    /'
}

serve()
{
	local name=$1 where=$2 server rc=0 end=$((SECONDS + 15))
	shift 2
	timeout 90 "$@" >$LOGS/server 2>&1 &
	server=$!
	until ready "$where" || [ $SECONDS -ge $end ]; do sleep 0.1; done
	qhca-host sync "up$STEP" >/dev/null
	qhca-host sync "down$STEP" >/dev/null
	end=$((SECONDS + 10))
	while kill -0 $server 2>/dev/null && [ $SECONDS -lt $end ]; do sleep 0.1; done
	kill $server 2>/dev/null
	wait $server || rc=$?
	[ $rc = 0 ] && result ok "$name" && return
	why $LOGS/server
	result fail "$name" "server $rc"
}

visit()
{
	local name=$1 rc=0
	shift
	qhca-host sync "up$STEP" >/dev/null
	timeout 60 "$@" >$LOGS/client 2>&1 || rc=$?
	qhca-host sync "down$STEP" >/dev/null
	[ $rc = 0 ] && result ok "$name" && return
	why $LOGS/client
	result fail "$name" "client $rc"
}

# The machines in ROLES are servers; both if it is not set.
# both_ways NAME PORT|cm|group-HEX SERVER_OPTIONS CLIENT_OPTIONS TOOL OPTION…
both_ways()
{
	local name=$1 where=$2 server=$3 client=$4 role
	shift 4
	for role in ${ROLES:-a b}; do
		STEP=$((STEP + 1))
		# shellcheck disable=SC2086 # lists
		if [ "$role" = "$QHCA_ROLE" ]; then
			serve "$name (server)" "$where" "$@" $server
		else
			visit "$name (client)" "$@" $client
		fi
	done
}

PORT=18700
perf_pair()
{
	local name=$1
	shift
	PORT=$((PORT + 1))
	both_ways "pair/$name" $PORT "" "$QHCA_PEER" "$@" -d "$QHCA_DEV" -x "$QHCA_GID" \
		-p $PORT -F
}

# A group has no server: each is a member while the other one sends.
mckey_pair()
{
	local ROLES='a b'
	if [ "$QHCA_NIC_B" = virtio ]; then
		ROLES=b
		result skip "pair/mckey, rdma_rxe sends" "mckey is gone before it has"
	fi
	both_ways pair/mckey group-010101EF "" -s mckey -m 239.1.1.1 -b "$QHCA_IP" -C 20 -S 512
}

# rdma_rxe asks the kernel's routes for the way to a group.
ip route replace 224.0.0.0/4 dev "$QHCA_IF"
[ -n "$QHCA_DEV" ] || result fail device "no RDMA device"
# E-048
perf_pair ib_send_bw ib_send_bw -s 65536 -n 200
perf_pair ib_write_bw ib_write_bw -s 65536 -n 200
# Both ends must want the same depth, or perftest gives up.
perf_pair ib_read_bw ib_read_bw -s 65536 -n 200 -o 8
perf_pair ib_atomic_bw ib_atomic_bw -n 200 -o 8
perf_pair ib_write_lat ib_write_lat -s 8 -n 200
perf_pair ib_send_bw-UC ib_send_bw -c UC -s 1024 -n 100
perf_pair ib_send_lat-UD ib_send_lat -c UD -s 1024 -n 200
# K-001..K-005 K-012
both_ways pair/rping cm "-s -a $QHCA_IP" "-c -a $QHCA_PEER" rping -V -C 20 -S 4000
both_ways pair/ucmatose cm "-b $QHCA_IP" "-s $QHCA_PEER" ucmatose -c 5 -C 20 -S 2000
# K-014
both_ways pair/udaddy cm "-b $QHCA_IP" "-s $QHCA_PEER" udaddy -c 4 -C 10 -S 512
# K-017
both_ways pair/cmtime cm "-b $QHCA_IP" "-s $QHCA_PEER" cmtime -c 50
# K-015
mckey_pair
summary
