#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# demo.sh     (in the guest; the job of `make run`)
#
# Show the device and what it does: the RDMA link, its attributes, a ping-pong,
# then perftest on it and, in the same machine and on the same terms, on
# rdma_rxe, as one table.

. /opt/qhca/guest/perf.sh
FAILED=0

step() { printf '\n$ %s\n' "$*"; }

show()
{
	step "$*"
	"$@" || { echo "FAILED: $*"; FAILED=1; }
}

# tool, size, iterations on rdma_rxe (the device under test does ten times as many, or
# it would be over too soon), unit
LINES='
ib_write_bw 65536 500 MiB/s
ib_read_bw 65536 500 MiB/s
ib_send_bw 65536 300 MiB/s
ib_write_bw 8 5000 msg/s
ib_write_lat 8 1000 µs
ib_send_lat 8 1000 µs
'

pingpong()
{
	step "ibv_rc_pingpong -d $QHCA_DEV -g $QHCA_GID"
	if both 60 /run/qhca/pp.server /run/qhca/pp.client 18515 \
		ibv_rc_pingpong -d "$QHCA_DEV" -g "$QHCA_GID"; then
		grep -v '^  *remote' /run/qhca/pp.client
	else
		tail -n 3 /run/qhca/pp.server /run/qhca/pp.client
		echo "FAILED: ibv_rc_pingpong"
		FAILED=1
	fi
}

# One figure of a perf line: the one the table shows for that unit.
figure()
{
	local unit=$1 first=$2 second=$3
	case $unit in
	MiB/s) echo "$first" ;;
	*) echo "$second" ;;
	esac
}

# measure DEVICE GID ARRAY: fill the array, one figure (or "failed") per line.
measure()
{
	local -n out=$3
	local tool size iters unit result
	while read -r tool size iters unit; do
		[ -n "$tool" ] || continue
		[ "$1" = rxe0 ] || iters=$((iters * 10))
		printf '  %-14s %6s bytes on %s … ' "$tool" "$size" "$1"
		if result=$(perf "$1" "$2" "$tool" "$size" "$iters"); then
			# shellcheck disable=SC2086 # two figures
			result=$(figure "$unit" $result)
			echo "$result $unit"
		else
			result=failed
			echo failed
			perf_why
			[ "$1" != "$QHCA_DEV" ] || FAILED=1
		fi
		out+=("$result")
	done <<<"$LINES"
}

# The factor by which the device is ahead: more is better, except for latencies.
ratio()
{
	case "$1 $2" in *failed*) echo -; return ;; esac
	awk -v a="$1" -v b="$2" -v u="$3" 'BEGIN {
		r = u == "µs" ? b / a : a / b
		printf r < 10 ? "%.2f ×" : "%.0f ×", r }'
}

table()
{
	local n=0 tool size iters unit
	printf '\n%-14s %8s  %-6s %14s %14s %10s\n' perftest bytes unit "$QHCA_DEV" \
		"${QHCA_RXE_DEV:--}" "ratio"
	while read -r tool size iters unit; do
		[ -n "$tool" ] || continue
		printf '%-14s %8s  %-6s %14s %14s %10s\n' "$tool" "$size" "$unit" \
			"${OURS[n]}" "${RXE[n]:--}" "$(ratio "${OURS[n]}" "${RXE[n]:-failed}" "$unit")"
		n=$((n + 1))
	done <<<"$LINES"
	echo "latencies are typical values; ratio: how many times better than rdma_rxe"
	echo "(server and client in one machine, -accel $QHCA_ACCEL, $(nproc) CPUs)"
}

[ -n "$QHCA_DEV" ] || { echo "no RDMA device"; exit 1; }
show rdma link
show ibv_devinfo -d "$QHCA_DEV" -v
pingpong
step "perftest"
OURS=() RXE=()
measure "$QHCA_DEV" "$QHCA_GID" OURS
if [ -n "$QHCA_RXE_DEV" ] && [ "$QHCA_RXE_DEV" != "$QHCA_DEV" ]; then
	measure "$QHCA_RXE_DEV" "$QHCA_RXE_GID" RXE
fi
table
exit $FAILED
