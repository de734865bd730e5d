#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# bench.sh     (in the guest, or in both of two; the job of scripts/bench/bench.py)
#
# Runs the lines of /opt/qhca/bench.steps one after the other,
#
#	qhca|rxe|tcp|loop|ram PROGRAM [ARGUMENT…]
#
# and prints for each "@begin", the client's output and "@end STATUS STEAL", where STEAL is the time
# that /proc/stat counts as stolen during the run, in ticks. With BENCH_PAIR two machines run this:
# a has the servers, b the clients and the output. The launcher chooses the runs and their order,
# and knows the meaning of the output.

LOGS=/run/qhca/logs
. /opt/qhca/guest/perf.sh
. /opt/qhca/guest/result.sh
. /opt/qhca/guest/consumers/nvme.sh

LIMIT=120 PORT=18900

# use DEVICE: its name, GID, own address and the servers'.
use()
{
	case $1 in
	qhca) dev=$QHCA_DEV gid=$QHCA_GID ip=$QHCA_IP server_ip=$QHCA_PEER ;;
	*) dev=rxe0 gid=$QHCA_RXE_GID ip=$QHCA_VIRTIO_IP server_ip=$QHCA_VIRTIO_PEER ;;
	esac
	[ -n "$BENCH_PAIR" ] || server_ip=$ip
}

# ---- programs with a server, which listens on PORT: the commands of both sides

# serve COMMAND…: in the background, once the one before has gone.
serve()
{
	timeout "$LIMIT" "$@" >"$LOGS/server" 2>&1 &
	server=$!
	wait_listening "$PORT" "$server"
}

visit() { timeout "$LIMIT" "$@" 2>"$LOGS/client" || { tail -n 3 "$LOGS/client"; false; }; }

# The server ends with its client; if that has failed, perhaps not.
end_server()
{
	[ "$1" = 0 ] || kill "$server" 2>/dev/null
	wait "$server"
}

# two_sides: SERVER here or in machine a, CLIENT here or in machine b.
two_sides()
{
	local rc=0
	PORT=$((PORT + 1))
	if [ -z "$BENCH_PAIR" ]; then
		serve "${SERVER[@]}" && visit "${CLIENT[@]}" || rc=$?
		end_server $rc || rc=1
	elif [ "$QHCA_ROLE" = a ]; then
		serve "${SERVER[@]}"
		qhca-host sync "up$PORT" >/dev/null
		qhca-host sync "down$PORT" >/dev/null
		end_server 1
		return 0
	else
		qhca-host sync "up$PORT" >/dev/null
		visit "${CLIENT[@]}" || rc=$?
		qhca-host sync "down$PORT" >/dev/null
	fi
	return $rc
}

run_perftest()
{
	SERVER=("$@" -d "$dev" -x "$gid" -p $((PORT + 1)) -F) CLIENT=("${SERVER[@]}" "$server_ip")
	two_sides
}

run_iperf3()
{
	SERVER=(iperf3 -1 -s -p $((PORT + 1)))
	CLIENT=(iperf3 -J -p $((PORT + 1)) "$@" -c "$server_ip")
	two_sides
}

# Its second part, connections without QPs, ends with a rejection on all devices.
run_cmtime()
{
	SERVER=(cmtime -b "$ip" -p $((PORT + 1)) "$@")
	CLIENT=("${SERVER[@]}" -s "$server_ip")
	two_sides || :
}

# ---- programs of one side

# bench [NAME=VALUE…] ARGUMENT…: the kselftest that measures.
run_bench()
{
	local -x RDMA_DEVICE=$dev RDMA_GID=$gid
	while [[ ${1:-} == *=* ]]; do
		local -x "$1"
		shift
	done
	visit /opt/qhca/selftests/bench "$@"
}

# One disk in memory, exported over each transport; loop is the two drivers alone.
run_nvme()
{
	local transport=rdma nqn=qhca-bench-$device
	[[ $device != tcp && $device != loop ]] || transport=$device
	[ "$transport" != loop ] || modprobe nvme-loop
	nvme_start && nvme_export "$nqn" "$PORT" "$transport" "$ip" &&
		nvme_connect "$nqn" "$transport" "$ip" && nvme_disk "$nqn"
	PORT=$((PORT + 1))
}

run_fio()
{
	local disk=/dev/ram0
	[ "$device" = ram ] || disk=$(nvme_disk "qhca-bench-$device") || return
	visit fio --name=bench --filename="$disk" --ioengine=libaio --direct=1 --thread \
		--output-format=json "$@"
}

run()
{
	local device=$1 dev gid ip server_ip server
	use "$device"
	shift
	case $1 in
	ib_*) run_perftest "$@" ;;
	iperf3) run_iperf3 "${@:2}" ;;
	cmtime) run_cmtime "${@:2}" ;;
	bench) run_bench "${@:2}" ;;
	nvme) run_nvme ;;
	fio) run_fio "${@:2}" ;;
	*) echo "$1: unknown program"; return 2 ;;
	esac
}

stolen()
{
	local ticks
	read -ra ticks </proc/stat
	echo "${ticks[8]}"
}

step()
{
	local before rc=0
	before=$(stolen)
	echo "@begin"
	run "$@" </dev/null || rc=$?
	echo "@end $rc $(($(stolen) - before))"
}

[ "$QHCA_ROLE" = a ] && [ -n "$BENCH_PAIR" ] && exec >/dev/null
while read -ra words; do
	step "${words[@]}"
done </opt/qhca/bench.steps
exit 0
