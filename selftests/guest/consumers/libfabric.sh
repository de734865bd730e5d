# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh: libfabric in one machine: fi_pingpong with its data check over
# connected and datagram endpoints of the provider verbs, and over reliable datagrams of
# ofi_rxm on top of it, whose CQ is sized for 256 peers by default.

FI_PORT=47600

# fi_stuck PID: one of the two, if it has seen all data, as the other one did, and that is all.
# ofi_rxm closes a connection that its peer has closed without a look at the CQ, and then
# fi_pingpong waits for ever for the completion of its last message.
fi_stuck()
{
	same "sizes that both have seen" "$(wc -l <"$LOGS/fi.server")" \
		"$(wc -l <"$LOGS/fi.client")" || return
	echo "# libfabric: one does not end, for ofi_rxm has lost its last completion"
	kill "$1"
}

# fi_ends PROVIDER PID PID: whether both end well, in whatever order.
fi_ends()
{
	local first other rc=0
	wait -n -p first "$2" "$3" || rc=$?
	[ "$first" = "$2" ] && other=$3 || other=$2
	[ "$rc" = 0 ] || { kill "$other"; wait "$other"; return "$rc"; }
	[[ $1 != *rxm ]] || PATIENCE=10 until_true gone "$other" || ! fi_stuck "$other" || return 0
	wait "$other"
}

# fi_pair PROVIDER ENDPOINT OPTION…
fi_pair()
{
	local server rc=0 args
	FI_PORT=$((FI_PORT + 1))
	args=(-p "$1" -e "$2" -d "$(fi_domain "$2")" -c "${@:3}")
	timeout "${FI_LIMIT:-120}" stdbuf -oL fi_pingpong -B $FI_PORT "${args[@]}" >"$LOGS/fi.server" 2>&1 &
	server=$!
	until_true listening $FI_PORT || { kill $server; echo "no server"; return 1; }
	timeout "${FI_LIMIT:-120}" stdbuf -oL fi_pingpong -P $FI_PORT "${args[@]}" "$QHCA_IP" \
		>"$LOGS/fi.client" 2>&1 &
	fi_ends "$1" $server $! || rc=$?
	[ "$rc" = 0 ] && return
	tail -qn 1 "$LOGS/fi.server" "$LOGS/fi.client"
	echo "status $rc"
	return 1
}

# Domains of datagrams have a name of their own.
fi_domain() { [ "$1" = dgram ] && echo "$QHCA_DEV-dgram" || echo "$QHCA_DEV"; }

# How ofi_rxm moves messages of 64 KiB if it is told: through buffers as large as they are, in
# pieces, or the receiver reads them, or the sender writes them.
FI_WAYS='
eager      | FI_OFI_RXM_BUFFER_SIZE=131072
pieces     | FI_OFI_RXM_SAR_LIMIT=2097152
rndv-read  | FI_OFI_RXM_SAR_LIMIT=0
rndv-write | FI_OFI_RXM_SAR_LIMIT=0 FI_OFI_RXM_USE_RNDV_WRITE=1
'

fi_ways()
{
	local way settings
	while IFS='|' read -r way settings; do
		[ -n "$way" ] || continue
		# shellcheck disable=SC2086 # words
		expect "consumers/libfabric/rdm-rxm-${way// /}" fi_by $settings
	done <<<"$FI_WAYS"
}

# fi_by SETTING…
fi_by()
{
	local -x "$@"
	fi_pair 'verbs;ofi_rxm' rdm -I 10 -S 65536
}

# fi_pingpong tests neither RMA nor atomics.
libfabric()
{
	expect consumers/libfabric/fi_info-verbs fi_info -p verbs -d "$QHCA_DEV"
	expect consumers/libfabric/msg fi_pair verbs msg -I 10
	expect consumers/libfabric/msg-tagged-rxm fi_pair 'verbs;ofi_rxm' rdm -m tagged -I 10
	expect consumers/libfabric/rdm-rxm fi_pair 'verbs;ofi_rxm' rdm -I 10
	expect consumers/libfabric/dgram fi_pair verbs dgram -I 10
	[ "$FULL" = 1 ] || return 0
	FI_LIMIT=400
	expect consumers/libfabric/msg-all-sizes fi_pair verbs msg -I 5 -S all
	fi_ways
	expect consumers/libfabric/rdm-rxm-all-sizes fi_pair 'verbs;ofi_rxm' rdm -I 5 -S all
}
