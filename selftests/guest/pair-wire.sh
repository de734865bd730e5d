#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# pair-wire.sh [corpus]     (in both guests of `scripts/vm pair --pcap FILE`)
#
# Traffic between two machines, for scripts/check/capture.py to check: the kselftest of the
# connection manager that needs two machines, packets with unusual address vectors,
# and one of every opcode that verbs can cause. corpus: only these, over IPv4, IPv6
# and in a VLAN (qemu-device/tests/corpus/wire). Ends with one line: N passed, N
# failed, N skipped.

LOGS=/run/qhca/logs
. /opt/qhca/guest/perf.sh
. /opt/qhca/guest/result.sh
. /opt/qhca/guest/peers.sh

pair_cm()
{
	local role rc round=0
	export RDMA_IP=$QHCA_IP RDMA_PEER=$QHCA_PEER RDMA_BARRIER='timeout 60 qhca-host sync'
	export RDMA_CABLE=qhca-cable RDMA_ROLE RDMA_ROUND
	for role in a b; do
		RDMA_ROLE=client RDMA_ROUND=$((round += 1)) rc=0
		[ $role != "$QHCA_ROLE" ] || RDMA_ROLE=server
		/opt/qhca/selftests/pair_cm >"$LOGS/pair_cm" 2>&1 || rc=$?
		tap "pair_cm ($RDMA_ROLE)" "$LOGS/pair_cm" $rc
		qhca-host sync "end of $role" >/dev/null
	done
}

# E-036 E-037 E-040: ECN 10 and DSCP 26, flow label 0x12345; perftest itself asks
# for hop limit 64.
vectors()
{
	perf_table wire <<-'EOF'
	ib_write_bw -s 1024 -n 10 --tclass=106 --flow_label=74565
	ib_send_bw -c UD -s 1024 -n 10 --tclass=106
	EOF
}

# opcodes NAME PORT PEER: the address of the other machine.
opcodes()
{
	# shellcheck disable=SC2034 # for both_ways
	local tool ROLES=b
	tool=$(dirname "$(readlink -f "$0")")/opcodes.py
	both_ways "$1" "$2" "" "$3" python3 "$tool" "$2"
}

corpus()
{
	local IF=$QHCA_IF IP6=fd00:77::${QHCA_IP##*.} IP4=192.168.209.${QHCA_IP##*.}
	opcodes corpus/ipv4 18692 "$QHCA_PEER"
	ip addr replace "$IP6/64" dev "$IF" nodad
	QHCA_GID=$(qhca-gid "$QHCA_DEV" "$IP6") opcodes corpus/ipv6 18693 "$QHCA_PEER"
	ip link add link "$IF" name "$IF.9" type vlan id 9 &&
		ip addr add "$IP4/24" dev "$IF.9" && ip link set dev "$IF.9" up
	QHCA_GID=$(qhca-gid "$QHCA_DEV" "$IP4") opcodes corpus/vlan 18694 "$QHCA_PEER"
}

if [ "${1:-}" = corpus ]; then
	corpus
else
	vectors
	opcodes opcodes 18691 "$QHCA_PEER"
	pair_cm
	perf_pair wire/after ib_send_bw -s 65536 -n 50
fi
summary
