# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh: socket programs over rsockets, by preload, in one machine.
# Left out are those that need what librspreload.so lacks, on any device: accept4() (nc,
# python), TCP_INFO (iperf3), F_SETOWN (qperf), fork() (netserver without -f). Sockets
# made with SOCK_CLOEXEC silently stay with TCP.

RS_DIR=/run/qhca/rsockets
RS_PRELOAD=$(echo /usr/lib/*/rsocket/librspreload.so)

# rsockets do not show in /proc/net, but the identifier that listens can be seen.
# rs_pair SERVER CLIENT: the server has ended by itself after a second, or is killed.
rs_pair()
{
	local server rc=0
	# shellcheck disable=SC2086 # a command
	LD_PRELOAD=$RS_PRELOAD timeout 90 $1 </dev/null >"$LOGS/rs.server" 2>&1 &
	server=$!
	# shellcheck disable=SC2086
	if cm_listening $server; then
		LD_PRELOAD=$RS_PRELOAD timeout 60 $2 >"$LOGS/rs.client" 2>&1 || rc=$?
	else
		rc="none, no server"
	fi
	if [ -n "$RS_ENDS" ]; then
		[ "$rc" = 0 ] || kill $server 2>/dev/null
		wait $server || rc="$rc, server $?"
	else
		kill $server
		wait $server
	fi
	cat "$LOGS/rs.server" "$LOGS/rs.client"
	[ "$rc" = 0 ]
}

rs_streams()
{
	local RS_ENDS=1 port=$1
	rs_pair "$RS_DIR/sockets-verify serve $QHCA_IP $port" "$RS_DIR/sockets-verify visit $QHCA_IP $port"
}

# It uses rsockets by itself.
rs_rcopy()
{
	local RS_PRELOAD=
	rs_pair rcopy "rcopy $RS_DIR/file $QHCA_IP:$RS_DIR/copy" && cmp $RS_DIR/file $RS_DIR/copy
}

# With -f netserver does not fork; it takes the control and the data connection.
rs_netperf()
{
	rs_pair "netserver -D -4 -f -L $QHCA_IP -p 12901" \
		"netperf -4 -p 12901 -H $QHCA_IP -l ${RS_SECONDS:-1} -t $1"
}

rsockets()
{
	local port
	mkdir -p $RS_DIR
	head -c 5000011 /dev/urandom >$RS_DIR/file
	expect consumers/rsockets/build gcc -O2 -o $RS_DIR/sockets-verify \
		"$DIR/consumers/sockets-verify.c" || return
	expect consumers/rsockets/streams rs_streams 7500
	expect consumers/rsockets/rcopy rs_rcopy
	expect consumers/rsockets/netperf-TCP_RR rs_netperf TCP_RR
	[ "$FULL" = 1 ] || return 0
	RS_SECONDS=5
	for port in 7501 7502 7503 7504 7505; do
		expect "consumers/rsockets/streams-$port" rs_streams $port
	done
	expect consumers/rsockets/netperf-TCP_STREAM rs_netperf TCP_STREAM
	expect consumers/rsockets/netperf-TCP_MAERTS rs_netperf TCP_MAERTS
	head -c 60000000 /dev/urandom >$RS_DIR/file
	expect consumers/rsockets/rcopy-60MB rs_rcopy
}
