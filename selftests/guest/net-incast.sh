#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# net-incast.sh paused|losing     (in the guests of `scripts/vm net -n 3 --rate … --queue …`)
#
# b and c send to a at the same time, more than the hub has room for. With pauses nothing is
# sent twice, without them much is. Each ends with one line: N passed, N failed, N skipped.

LOGS=/run/qhca/logs
. /opt/qhca/guest/perf.sh
. /opt/qhca/guest/result.sh

PORTS=([2]=18701 [3]=18702)
tool=(timeout 120 ib_write_bw -d "$QHCA_DEV" -x "$QHCA_GID" -F -q 8 -s 65536 -n 20 -u 17)
again() { cat "/sys/class/infiniband/$QHCA_DEV/ports/1/hw_counters/retransmit"; }

server=()
if [ "$QHCA_ROLE" = a ]; then
	for port in "${PORTS[@]}"; do
		"${tool[@]}" -p "$port" >"$LOGS/$port" 2>&1 &
		server+=($!)
		wait_listening "$port" $!
	done
fi
before=$(again)
qhca-host sync up >/dev/null
if [ "$QHCA_ROLE" = a ]; then
	for pid in "${server[@]}"; do
		expect 'incast: receiver' wait "$pid"
	done
else
	expect 'incast: sender' "${tool[@]}" -p "${PORTS[${QHCA_IP##*.}]}" "${QHCA_IP%.*}.1"
	more=$(($(again) - before))
	echo "# $more packets were sent again"
	case $1 in
	paused) expect 'incast: nothing is lost' [ $more = 0 ] ;;
	losing) expect 'incast: what is lost is sent again' [ $more -gt 100 ] ;;
	esac
fi
qhca-host sync down >/dev/null
summary
