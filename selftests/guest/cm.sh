# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh: the connection manager and what runs over it, server and
# client in this machine, both on the device's own address.

# The CM talks through QP1: without one in the kernel there is no CM.
have_cm() { rdma res show qp link "$QHCA_DEV/1" | grep -q 'type GSI'; }

# cm_listening PID: an identifier waits for connections, while PID lives.
cm_listening()
{
	local end=$((SECONDS + PATIENCE))
	until rdma res show cm_id 2>/dev/null | grep -q LISTEN; do
		[ $SECONDS -lt $end ] && kill -0 "$1" 2>/dev/null || return 1
		sleep 0.05
	done
	sleep 0.2	# the core lists it a moment before the CM takes requests
}

# both_cm LIMIT SERVER_LOG CLIENT_LOG PORT COMMAND…: both() of perf.sh for perftest -R,
# see perftest-cm.c.
both_cm()
{
	local limit=$1 slog=$2 clog=$3 preload=/run/qhca/perftest-cm.so server rc=0
	shift 4
	[ -e $preload ] || {
		gcc -O2 -shared -fPIC -o $preload.$BASHPID /opt/qhca/guest/perftest-cm.c &&
			mv $preload.$BASHPID $preload
	} || return 1
	local -x CM_LISTENS=$slog.listens LD_PRELOAD=$preload${LD_PRELOAD:+:$LD_PRELOAD}
	rm -f "$CM_LISTENS" && mkfifo "$CM_LISTENS" || return 1
	timeout "$limit" "$@" >"$slog" 2>&1 &
	server=$!
	timeout "$limit" "$@" "$QHCA_IP" >"$clog" 2>&1 || { rc=$?; kill $server; }
	wait $server && return $rc
}

# cm_perftest NAME OPTION…
cm_perftest()
{
	local name=$1
	shift
	if both_cm 60 "$LOGS/cm.server" "$LOGS/cm.client" 18515 \
		ib_send_bw -R -d "$QHCA_DEV" -x "$QHCA_GID" -n 300 -F "$@"; then
		result ok "$name"
	else
		tail -n 3 "$LOGS/cm.server" "$LOGS/cm.client" | sed 's/^/    /'
		result fail "$name"
	fi
}

# cm_pair NAME SERVER CLIENT: both commands must succeed.
cm_pair()
{
	local name=$1 server rc=0 src
	# shellcheck disable=SC2086 # a command
	timeout 60 $2 >"$LOGS/cm.server" 2>&1 &
	server=$!
	if cm_listening $server; then
		# shellcheck disable=SC2086 # a command
		timeout 60 $3 >"$LOGS/cm.client" 2>&1 || rc=$?
	else
		rc="none, no server" ; : >"$LOGS/cm.client"
	fi
	[ "$rc" = 0 ] || kill $server 2>/dev/null
	src=0; wait $server || src=$?
	if [ "$rc" = 0 ] && [ $src = 0 ]; then
		result ok "$name"
		return
	fi
	tail -n 3 "$LOGS/cm.server" "$LOGS/cm.client" | sed 's/^/    /'
	result fail "$name" "client $rc, server $src"
}

# cm_mckey NAME [OPTIONS [SENDER_OPTIONS]]: a member of a multicast group gets what another one
# sends.
cm_mckey()
{
	local args="-m 239.1.1.1 -b $QHCA_IP -C 20 -S 512 ${2:-}" member rc=0 end=$((SECONDS + 20))
	# shellcheck disable=SC2086 # options
	timeout 60 mckey $args >"$LOGS/cm.server" 2>&1 &
	member=$!
	# The kernel lists the group when it has joined; its QP is attached soon
	# after.
	until grep -q 010101EF /proc/net/igmp || [ $SECONDS -ge $end ]; do
		sleep 0.1
	done
	sleep 2
	# shellcheck disable=SC2086 # options
	timeout 60 mckey $args -s ${3:-} >"$LOGS/cm.client" 2>&1 || rc=$?
	[ $rc = 0 ] || kill $member 2>/dev/null
	wait $member || rc="$rc, member $?"
	if [ "$rc" != 0 ]; then
		tail -n 3 "$LOGS/cm.server" "$LOGS/cm.client" | sed 's/^/    /'
		result fail "$1" "sender $rc"
	elif grep -q 010101EF /proc/net/igmp; then
		result fail "$1" "still in the group"
	else
		result ok "$1"
	fi
}

cm()
{
	local ip=$QHCA_IP
	have_cm || { result fail cm "no GSI QP"; return; }
	# K-001 K-002 K-005 K-012 K-013: bind, listen, connect, disconnect
	# K-016: 100 loops, verified at both ends
	cm_pair cm/rping "rping -s -V -C 100 -S 4000 -a $ip" \
		"rping -c -V -C 100 -S 4000 -a $ip"
	cm_pair cm/ucmatose "ucmatose -b $ip -c 5 -C 20 -S 2000" \
		"ucmatose -s $ip -c 5 -C 20 -S 2000"
	# K-001: the wildcard address
	cm_pair cm/rdma_client "rdma_server -p 7471" "rdma_client -s $ip -p 7471"
	# K-014
	cm_pair cm/udaddy "udaddy -b $ip -c 4 -C 10 -S 512" \
		"udaddy -s $ip -c 4 -C 10 -S 512"
	# K-015
	cm_mckey cm/mckey
	# K-016: each message there and back, verified at both ends
	cm_pair cm/rstream "rstream -b $ip -S 1000 -C 200 -I 5 -T v" \
		"rstream -s $ip -S 1000 -C 200 -I 5 -T v"
	cm_pair cm/riostream "riostream -b $ip -S 1000 -C 200 -I 5 -T v" \
		"riostream -s $ip -S 1000 -C 200 -I 5 -T v"
	cm_perftest cm/ib_send_bw -s 4096
	cm_perftest cm/ib_send_bw-UD -s 1024 -c UD
	# K-019: no program listens there
	if timeout 60 rping -c -C 1 -a "$ip" -p 9999 >"$LOGS/cm.client" 2>&1 ||
		! grep -q CM_EVENT_REJECTED "$LOGS/cm.client"; then
		result fail cm/refused "$(tail -n 1 "$LOGS/cm.client")"
	else
		result ok cm/refused
	fi
	# Its datagrams ask for an address handle without GRH, which RoCE does not
	# have.
	result skip cm/udpong "librdmacm's datagram sockets are not for RoCE"
}
