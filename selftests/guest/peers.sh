# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the scripts that several machines run: one is the server of a test, the
# others are its clients. Needs result.sh and perf.sh; all machines must run the same
# tests in the same order.

STEP=0
PORT=18700

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

resources() { rdma -d resource show qp; rdma resource show cm_id; }

# Errors first, before the buffered stdout.
why()
{
	{ head -n 4 "$1"; echo ...; tail -n 3 "$1"; } | sed 's/^/    /'
}

ready_or_gone() { ready "$1" || gone "$2"; }

# The server ends by itself, GRACE seconds (10) after its client at the latest. The client's
# machine waits for that: where frames are lost, what says goodbye is repeated and must be
# answered.
serve()
{
	local name=$1 where=$2 server rc=0
	shift 2
	timeout 90 stdbuf -oL "$@" >"$LOGS"/server 2>&1 &
	server=$!
	until_true ready_or_gone "$where" $server
	qhca-host sync "up$STEP" >/dev/null
	qhca-host sync "down$STEP" >/dev/null
	# If it stays, the kernel has joined the group.
	PATIENCE=${GRACE:-10} until_true gone $server || resources >"$LOGS"/resources
	kill $server 2>/dev/null
	wait $server || rc=$?
	qhca-host sync "over$STEP" >/dev/null
	[ $rc = 0 ] && result ok "$name" && return
	why "$LOGS"/server
	[ $rc != 143 ] || sed 's/^/    /' "$LOGS"/resources
	result fail "$name" "server $rc"
}

visit()
{
	local name=$1 rc=0
	shift
	qhca-host sync "up$STEP" >/dev/null
	timeout 60 "$@" >"$LOGS"/client 2>&1 || rc=$?
	qhca-host sync "down$STEP" >/dev/null
	qhca-host sync "over$STEP" >/dev/null
	[ $rc = 0 ] && result ok "$name" && return
	why "$LOGS"/client
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

# perf_pair NAME TOOL OPTION…: perftest, with GID (default: of the IPv4 address); both talk to each
# other over TCP and IPv4. perftest's own ACK timeout is 67 ms (14), and it gives up after half a
# second; on a busy host a machine can stand still for longer. ACK_TIMEOUT (18: 1.1 s) replaces it.
perf_pair()
{
	local name=$1 preload=''
	shift
	PORT=$((PORT + 1))
	# Machines of another architecture have no compiler.
	! command -v gcc >/dev/null || { quick_perftest && preload=$QUICK; }
	LD_PRELOAD=$preload both_ways "$name" $PORT "" "$QHCA_PEER" "$@" -d "$QHCA_DEV" -x "${GID:-$QHCA_GID}" \
		-p $PORT -F -u "${ACK_TIMEOUT:-18}"
}

# perf_table NAME: perf_pair for each line of standard input.
perf_table()
{
	local line
	while read -r line; do
		# shellcheck disable=SC2086 # a list
		[ -z "$line" ] || perf_pair "$1/${line// /}" $line </dev/null
	done
}
