# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by demo.sh and check.sh: one perftest measurement, server and client
# in this machine, on one device.

PERF_PORT=18600

# For LD_PRELOAD: perftest without its measurements, where only the data counts.
QUICK=/run/qhca/quick.so
quick_perftest() { [ -e $QUICK ] || gcc -O2 -shared -fPIC -o $QUICK /opt/qhca/guest/perftest-quick.c; }

# Does a program listen on this TCP port? Reads /proc, because starting a program would take longer
# than the server does.
listening()
{
	local hex line
	printf -v hex ':%04X ' "$1"
	while read -r line; do
		[[ $line == *"$hex"*' 0A '* ]] && return 0
	done < <(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null)
	return 1
}

wait_listening()
{
	local end=$((SECONDS + 60))	# a program may take seconds to start on a busy host
	until listening "$1"; do
		[ $SECONDS -lt $end ] && kill -0 "$2" 2>/dev/null || return 1
		sleep 0.05
	done
}

# both LIMIT SERVER_LOG CLIENT_LOG PORT COMMAND…: run COMMAND as server, then
# with 127.0.0.1, or BOTH_HOST, appended as client. Both must succeed.
both()
{
	local limit=$1 slog=$2 clog=$3 port=$4 server rc=0
	shift 4
	timeout "$limit" "$@" >"$slog" 2>&1 &
	server=$!
	if wait_listening "$port" $server; then
		timeout "$limit" "$@" "${BOTH_HOST:-127.0.0.1}" >"$clog" 2>&1 || rc=$?
	else
		: >"$clog"
		rc=1
	fi
	if [ $rc != 0 ]; then
		kill $server 2>/dev/null
		wait $server 2>/dev/null
		return $rc
	fi
	wait $server
}

# perf DEVICE GID TOOL SIZE ITERATIONS [OPTION…]: prints one line of figures:
# MiB/s and messages/s for *_bw, minimum and typical µs for *_lat. The reason
# of a failure stays in /run/qhca/perf.{server,client}.
perf()
{
	local dev=$1 gid=$2 tool=$3 size=$4 iters=$5
	shift 5
	PERF_PORT=$((PERF_PORT + 1))
	both 120 /run/qhca/perf.server /run/qhca/perf.client $PERF_PORT \
		"$tool" -d "$dev" -x "$gid" -p $PERF_PORT -s "$size" -n "$iters" -F "$@" ||
		return 1
	case $tool in
	*_bw) awk -v s="$size" '$1 == s && NF >= 5 { printf "%s %.0f\n", $4, $5 * 1e6; ok = 1 }
		END { exit !ok }' /run/qhca/perf.client ;;
	*_lat) awk -v s="$size" '$1 == s && NF >= 5 { print $3, $5; ok = 1 }
		END { exit !ok }' /run/qhca/perf.client ;;
	esac
}

# The end of both logs, for a report of a failure.
perf_why()
{
	tail -n 3 /run/qhca/perf.server /run/qhca/perf.client 2>/dev/null | sed 's/^/    /'
}
