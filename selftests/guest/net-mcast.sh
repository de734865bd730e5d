#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# net-mcast.sh     (in the guests of `scripts/vm net -n 3`)
#
# A multicast group across machines: c sends; a and b are members, then only a. Each
# ends with one line: N passed, N failed, N skipped.

LOGS=/run/qhca/logs
. /opt/qhca/guest/perf.sh
. /opt/qhca/guest/result.sh
. /opt/qhca/guest/peers.sh

COUNT=20
received() { cat "/sys/class/infiniband/$QHCA_DEV/ports/1/hw_counters/rx_pkts"; }
quiet() { same "packets from a group of others" "$(($(received) - $1))" 0; }

# group ADDRESS HEX MEMBERS: HEX is the address as /proc/net/igmp has it.
group()
{
	local tool=(timeout 60 mckey -m "$1" -b "$QHCA_IP" -C "$COUNT" -S 512) member='' before
	if [[ $3 == *"$QHCA_ROLE"* ]]; then
		"${tool[@]}" >"$LOGS/member" 2>&1 &
		member=$!
		until ready "group-$2" || ! kill -0 $member; do sleep 0.1; done
	fi
	before=$(received)
	qhca-host sync "up $1" >/dev/null
	[ "$QHCA_ROLE" != c ] || expect "mcast/$1: sender" "${tool[@]}" -s
	qhca-host sync "down $1" >/dev/null
	if [ -n "$member" ]; then
		expect "mcast/$1: member" wait $member
	elif [ "$QHCA_ROLE" != c ]; then
		expect "mcast/$1: no member" quiet "$before"
	fi
}

# K-015 D-084 E-039
group 239.1.1.1 010101EF 'a b'
group 239.1.1.2 020101EF a
summary
