#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# net-incast.sh paused|asked|losing     (in the guests of `scripts/vm net -n 3 --rate … --queue …`)
#
# b and c send to a at the same time, more than the hub has room for. With pauses nothing is
# sent twice, whether the hub takes no frames or asks for pauses; without them much is. Each ends with one line: N passed, N failed, N skipped.

LOGS=/run/qhca/logs
. /opt/qhca/guest/perf.sh
. /opt/qhca/guest/result.sh

PORTS=([2]=18701 [3]=18702)
tool=(timeout 120 ib_write_bw -d "$QHCA_DEV" -x "$QHCA_GID" -F -q 8 -s 65536 -n 20 -u 17)
count() { cat "/sys/class/infiniband/$QHCA_DEV/ports/1/hw_counters/$1"; }
asked() { if [ "$1" = asked ]; then [ "$2" -gt 0 ]; else [ "$2" = 0 ]; fi; }

server=()
if [ "$QHCA_ROLE" = a ]; then
	for port in "${PORTS[@]}"; do
		"${tool[@]}" -p "$port" >"$LOGS/$port" 2>&1 &
		server+=($!)
		wait_listening "$port" $!
	done
fi
before=$(count retransmit)
qhca-host sync up >/dev/null
if [ "$QHCA_ROLE" = a ]; then
	for pid in "${server[@]}"; do
		expect 'incast: receiver' wait "$pid"
	done
else
	expect 'incast: sender' "${tool[@]}" -p "${PORTS[${QHCA_IP##*.}]}" "${QHCA_IP%.*}.1"
	more=$(($(count retransmit) - before))
	echo "# $more packets were sent again"
	case $1 in
	paused|asked) expect 'incast: nothing is lost' [ $more = 0 ] ;;
	losing) expect 'incast: what is lost is sent again' [ $more -gt 100 ] ;;
	esac
	pauses=$(count rx_pause)
	echo "# $pauses frames asked for a pause"
	expect 'incast: frames that ask for a pause' asked "$1" "$pauses"
fi
qhca-host sync down >/dev/null
summary
