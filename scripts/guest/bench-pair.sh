#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# bench-pair.sh     (in both guests of `scripts/vm pair --rxe`; `make bench-pair`)
#
# The device against rdma_rxe on virtio-net, between the same two machines and on
# cables of the same kind: each measurement on the one and at once on the other,
# ROUNDS times; the medians count. Machine b is the client and prints the table.

LOGS=/run/qhca/logs
. /opt/qhca/guest/perf.sh
. /opt/qhca/guest/result.sh

ROUNDS=${ROUNDS:-3} PORT=18900 FAILED=0

# what size, iterations on the device and on rdma_rxe, unit, which is better
LINES='
ib_write_bw 65536 3000 300 MiB/s more
ib_write_lat 8 3000 500 µs less
iperf3 - - - Mbit/s more
'

# tool NAME SIZE ITERATIONS DEVICE GID: its command, but for the address.
tool()
{
	case $1 in
	iperf3) [ "$QHCA_ROLE" = b ] && echo "iperf3 -t 5 -f m -p $PORT -c" || echo "iperf3 -1 -p $PORT -s" ;;
	*) echo "$1 -s $2 -n $3 -d $4 -x $5 -p $PORT -F" ;;
	esac
}

# The figure in what the client printed.
figure()
{
	case $1 in
	iperf3) awk '/receiver/ { print $(NF - 2); ok = 1 } END { exit !ok }' ;;
	*_bw) awk -v s="$2" '$1 == s && NF >= 5 { print $4; ok = 1 } END { exit !ok }' ;;
	*_lat) awk -v s="$2" '$1 == s && NF >= 5 { print $5; ok = 1 } END { exit !ok }' ;;
	esac <"$LOGS/client"
}

# measure ADDRESS NAME SIZE ITERATIONS DEVICE GID: b prints the figure.
measure()
{
	local address=$1 command server
	shift
	PORT=$((PORT + 1))
	read -ra command <<<"$(tool "$@")"
	if [ "$QHCA_ROLE" = a ]; then
		timeout 120 "${command[@]}" >"$LOGS/server" 2>&1 &
		server=$!
		wait_listening $PORT $server
	fi
	qhca-host sync "up$PORT" >/dev/null
	[ "$QHCA_ROLE" = a ] || timeout 120 "${command[@]}" "$address" >"$LOGS/client" 2>&1
	qhca-host sync "down$PORT" >/dev/null
	if [ "$QHCA_ROLE" = a ]; then
		kill $server 2>/dev/null
		wait $server
	else
		figure "$1" "$2" || tail -n 3 "$LOGS/client" >&2
	fi
}

median() { tr ' ' '\n' <<<"$1" | grep . | sort -g | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "-" }'; }

row()
{
	local name=$1 size=$2 n=$3 rxe_n=$4 unit=$5 better=$6 ours='' theirs='' i
	for ((i = 0; i < ROUNDS; i++)); do
		measure "$QHCA_PEER" "$name" "$size" "$n" "$QHCA_DEV" "$QHCA_GID" >"$LOGS/figure"
		ours+=" $(cat "$LOGS/figure")"
		measure "$QHCA_VIRTIO_PEER" "$name" "$size" "$rxe_n" rxe0 "$QHCA_RXE_GID" >"$LOGS/figure"
		theirs+=" $(cat "$LOGS/figure")"
	done
	[ "$QHCA_ROLE" = b ] || return 0
	ours=$(median "$ours") theirs=$(median "$theirs")
	[[ $ours != - && $theirs != - ]] || FAILED=1
	printf '%-14s %8s  %-7s %12s %12s   %s\n' "$name" "$size" "$unit" "$ours" "$theirs" \
		"$(awk -v a="$ours" -v b="$theirs" -v less="$better" 'BEGIN {
			if (a > 0 && b > 0) printf "%.2f × as good", less == "less" ? b / a : a / b }')"
}

[ "$QHCA_ROLE" = a ] || printf '%-14s %8s  %-7s %12s %12s\n' "" bytes unit qhca "rxe, virtio"
while read -r line; do
	# shellcheck disable=SC2086 # columns
	[ -z "$line" ] || row $line </dev/null
done <<<"$LINES"
[ "$QHCA_ROLE" = a ] ||
	echo "(medians of $ROUNDS; typical latencies; -accel $QHCA_ACCEL, $(nproc) CPUs each)"
exit $FAILED
