# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh in two machines: UCX between them. First with nothing set
# but its log level: it must find the device, its GID and a transport better than TCP.

# shellcheck source=selftests/guest/consumers/ucx.sh
. "$DIR/consumers/ucx.sh"

# Each machine has one of the two logs.
ucx_took() { cat "$LOGS/server" "$LOGS/client" 2>/dev/null | grep "inter-node.*$1/$QHCA_DEV"; }

# ucx_between NAME TRANSPORT CLIENT_OPTIONS COMMAND…: the first machine is the server.
# PORT in the command is a free port.
ucx_between()
{
	# shellcheck disable=SC2034 # for both_ways
	local name=$1 transport=$2 client=$3 ROLES=a
	shift 3
	rm -f "$LOGS/server" "$LOGS/client"
	UCX_PORT=$((UCX_PORT + 1))
	both_ways "consumers/ucx-pair/$name" $UCX_PORT "" "$client" "${@/PORT/$UCX_PORT}"
	expect "consumers/ucx-pair/$name: over $transport" ucx_took "$transport"
}

ucx-pair()
{
	# shellcheck disable=SC2034 # for serve
	local tls GRACE=20
	expect consumers/ucx-pair/build ucx_build || return
	UCX_PORT=13500
	export UCX_LOG_LEVEL=info UCX_VFS_ENABLE=n
	ucx_between defaults rc_verbs "$QHCA_PEER" $UCX_DIR/ucx-verify "$UCX_LARGEST" PORT
	ucx_between hello-defaults rc_verbs "-n $QHCA_PEER" $UCX_DIR/ucp_hello_world -p PORT
	export UCX_TLS=ud_v
	ucx_between ud_v ud_verbs "$QHCA_PEER" $UCX_DIR/ucx-verify "$UCX_LARGEST" PORT
	# The link-local GID.
	export UCX_IB_GID_INDEX=0
	ucx_between hello-link-local-ud_v ud_verbs "-n $QHCA_PEER" $UCX_DIR/ucp_hello_world -p PORT
	[ "$FULL" = 1 ] || return 0
	for tls in rc_v ud_v; do
		export UCX_TLS=$tls
		ucx_between "link-local-$tls" "${tls/_v/_verbs}" "$QHCA_PEER" $UCX_DIR/ucx-verify "$UCX_LARGEST" PORT
	done
}
