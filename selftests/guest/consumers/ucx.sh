# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh: UCX over this device, in one machine with itself; and the
# parts that ucx-pair.sh shares. Nothing is set but the device (there may be others)
# and the transport: in one machine UCX would take shared memory. rc_v and ud_v
# are RC and UD; RC is wired up over UD.

UCX_DIR=/run/qhca/ucx
UCX_LARGEST=$([ "$FULL" = 1 ] && echo 5242880 || echo 131072)
UCX_EXAMPLES=/usr/share/doc/libucx-dev/examples

# Programs are compiled here: one of ours and two examples that come with UCX.
ucx_build()
{
	mkdir -p $UCX_DIR
	gcc -O2 -o $UCX_DIR/ucx-verify "$DIR/consumers/ucx-verify.c" -lucp -lucs &&
		gcc -O1 -o $UCX_DIR/ucp_hello_world $UCX_EXAMPLES/ucp_hello_world.c -lucp -lucs &&
		gcc -O1 -o $UCX_DIR/ucp_client_server $UCX_EXAMPLES/ucp_client_server.c -lucp -lucs
}

ucx_env()
{
	export UCX_NET_DEVICES=${UCX_NETS:-$QHCA_DEV:1} UCX_TLS=$1 UCX_LOG_LEVEL=info UCX_VFS_ENABLE=n
	[ -z "$2" ] || export UCX_IB_GID_INDEX=$2
}

# ucx_two TRANSPORT GID PORT SERVER CLIENT: both must succeed, over that transport.
ucx_two()
{
	local tls=$1 gid=$2 port=$3 log=$LOGS/ucx server rc=0
	(
		ucx_env "$tls" "$gid"
		# shellcheck disable=SC2086 # a command
		exec timeout "${UCX_LIMIT:-100}" $4
	) >"$log.server" 2>&1 &
	server=$!
	until_true listening "$port" || rc="none, no server"
	if [ "$rc" = 0 ]; then
		(
			ucx_env "$tls" "$gid"
			# shellcheck disable=SC2086
			exec timeout "${UCX_LIMIT:-100}" $5
		) >"$log.client" 2>&1 || rc=$?
	fi
	[ "$rc" = 0 ] || kill $server 2>/dev/null
	wait $server || rc="$rc, server $?"
	[ "$rc" != 0 ] || [[ $5 == *\ -x\ * ]] || grep -q "${tls/_v/_verbs}/$QHCA_DEV" "$log.client" ||
		rc="not over $tls"
	grep -hv ' UCX  \(INFO\|DIAG\) ' "$log.client" "$log.server"
	[ "$rc" = 0 ] || echo "client $rc"
	[ "$rc" = 0 ]
}

ucx_verify()
{
	UCX_PORT=$((UCX_PORT + 1))
	ucx_two "$1" "$2" $UCX_PORT "$UCX_DIR/ucx-verify $UCX_LARGEST $UCX_PORT" \
		"$UCX_DIR/ucx-verify $UCX_LARGEST $UCX_PORT $QHCA_IP"
}

# How UCX moves messages if it is told: its settings, what it then says of large ones, and says
# somewhere. Left alone it takes one of these for each size, by what it believes of the adapter.
UCX_WAYS='
eager-copy  | UCX_RNDV_THRESH=inf UCX_ZCOPY_THRESH=inf   | multi-frag eager copy-in copy-out |
rndv-put    | UCX_RNDV_THRESH=1 UCX_RNDV_SCHEME=put_zcopy | rendezvous | zero-copy .*write to remote
'

# ucx_way NAME: its settings, in UCX_SETTINGS, and what UCX says, in UCX_SAYS and UCX_SAYS_TOO.
ucx_way()
{
	local name settings says too
	while IFS='|' read -r name settings says too; do
		[ "${name// /}" = "$1" ] || continue
		read -ra UCX_SETTINGS <<<"$settings"
		UCX_SETTINGS+=(UCX_PROTO_INFO=y)
		read -r UCX_SAYS <<<"$says"
		read -r UCX_SAYS_TOO <<<"$too"
		return
	done <<<"$UCX_WAYS"
	return 1
}

# ucx_moves LOG: what it says (UCX_PROTO_INFO) of the largest tagged messages to a peer.
ucx_moves()
{
	awk '/tagged message by ucp_tag_send/ { ours = 1 }
		ours && /\.\.inf/ { print; ours = 0 }' "$1"
}

ucx_moves_by() { ucx_moves "$1" | tee /dev/stderr | grep -q "| *\((?) \)\?$2"; }

# ucx_by WAY LOG COMMAND…: what UCX says of it will be in that log.
ucx_by()
{
	local log=$2
	ucx_way "$1" || return
	local -x "${UCX_SETTINGS[@]}"
	shift 2
	"$@" && ucx_moves_by "$log" "$UCX_SAYS" && grep -q -- "$UCX_SAYS_TOO" "$log"
}

# Left alone, over RC of an adapter as fast as this one: what is large is not copied.
ucx_chooses()
{
	local -x UCX_PROTO_INFO=y
	ucx_verify rc_v && ucx_moves_by "$LOGS/ucx.client" 'rendezvous zero-copy .* remote'
}

ucx_hello()
{
	UCX_PORT=$((UCX_PORT + 1))
	ucx_two "$1" "$2" $UCX_PORT "$UCX_DIR/ucp_hello_world -p $UCX_PORT" \
		"$UCX_DIR/ucp_hello_world -p $UCX_PORT -n $QHCA_IP" &&
		grep -q 'UCP TEST SUCCESS' "$LOGS/ucx.client"
}

# Over the RDMA connection manager; its server never ends.
ucx_client_server()
{
	local server rc=0
	UCX_PORT=$((UCX_PORT + 1))
	( ucx_env "$1"; exec timeout 60 stdbuf -oL $UCX_DIR/ucp_client_server -c "$2" -p $UCX_PORT ) \
		>"$LOGS/ucx.server" 2>&1 &
	server=$!
	until_true grep -q 'Waiting for connection' "$LOGS/ucx.server"
	( ucx_env "$1"; exec timeout 60 $UCX_DIR/ucp_client_server -c "$2" -p $UCX_PORT -a "$QHCA_IP" ) \
		>"$LOGS/ucx.client" 2>&1 || rc=$?
	until_true grep -q 'UCP TEST SUCCESS' "$LOGS/ucx.server" || rc="$rc, no success"
	kill $server
	wait $server
	cat "$LOGS/ucx.server" "$LOGS/ucx.client"
	[ "$rc" = 0 ]
}

# It has no option to check its data. -P 0: without MPI.
ucx_perftest()
{
	UCX_PORT=$((UCX_PORT + 1))
	ucx_two "$1" "" $UCX_PORT "ucx_perftest -P 0 -p $UCX_PORT $2" \
		"ucx_perftest -P 0 -p $UCX_PORT -w 10 $2 $QHCA_IP"
}

# UCP's tests, and with -x the transport's below, where a device must be named.
UCX_PERFTESTS='
rc_v -t tag_lat -s 8 -n 1000
rc_v -t tag_bw -s 65536 -n 300
rc_v -t tag_sync_lat -s 100 -n 300
rc_v -t ucp_am_lat -s 5000 -n 1000
rc_v -t ucp_am_bw -s 200000 -n 100
rc_v -t ucp_get -s 65536 -n 300
rc_v -t stream_bw -s 4096 -n 1000
rc_v -t stream_lat -s 64 -n 1000
ud_v -t tag_bw -s 65536 -n 100
ud_v -t ucp_am_lat -s 5000 -n 500
ud_v -t stream_bw -s 4096 -n 300
rc_v -x rc_verbs -t am_lat -s 64 -n 1000
rc_v -x rc_verbs -t put_bw -s 64 -n 1000
rc_v -x rc_verbs -t put_lat -s 64 -n 1000
rc_v -x rc_verbs -t get -D zcopy -s 4096 -n 1000
rc_v -x rc_verbs -t fadd -s 8 -n 1000
rc_v -x rc_verbs -t cswap -s 8 -n 1000
ud_v -x ud_verbs -t am_bw -D zcopy -s 1000 -n 1000
'

ucx_perftests()
{
	local tls args name
	while read -r tls args; do
		[ -n "$tls" ] || continue
		name=${args#*-t }
		name=consumers/ucx/ucx_perftest-$tls-${name%% *}
		[[ $args != -x* ]] || args="-d $QHCA_DEV:1 $args" name+=-uct
		expect "$name" ucx_perftest "$tls" "$args" </dev/null
	done <<<"$UCX_PERFTESTS"
}

ucx()
{
	local tls what way
	UCX_PORT=13400
	expect consumers/ucx/build ucx_build || return
	expect consumers/ucx/verify-rc_v ucx_chooses
	expect consumers/ucx/verify-ud_v ucx_verify ud_v
	for way in eager-copy rndv-put; do
		expect "consumers/ucx/verify-rc_v-$way" ucx_by $way "$LOGS/ucx.client" ucx_verify rc_v
	done
	# The link-local GID; UCX prefers one of IPv4.
	expect consumers/ucx/hello-ud_v-link-local ucx_hello ud_v 0
	expect consumers/ucx/client-server-rc_v-tag ucx_client_server rc_v tag
	[ "$FULL" = 1 ] || return 0
	for tls in rc_v ud_v; do
		expect "consumers/ucx/verify-$tls-link-local" ucx_verify $tls 0
		expect "consumers/ucx/hello-$tls" ucx_hello $tls
		for what in stream am; do
			expect "consumers/ucx/client-server-$tls-$what" ucx_client_server $tls $what
		done
	done
	ucx_perftests
}
