# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh: libfabric in one machine: fi_pingpong with its data check over
# connected and datagram endpoints of the provider verbs, and over reliable datagrams of
# ofi_rxm on top of it, whose CQ is sized for 256 peers by default.

FI_PORT=47600

# fi_stuck PID: the server, if that is all that is wrong with it. ofi_rxm closes a connection
# that its peer has closed without a look at the CQ, and then fi_pingpong waits for ever for the
# completion of its last message. By then it has seen all data, and said so.
fi_stuck()
{
	same "sizes that the server has seen" "$(wc -l <"$LOGS/fi.server")" \
		"$(wc -l <"$LOGS/fi.client")" || return
	echo "# libfabric: the server does not end, for ofi_rxm has lost its last completion"
	kill "$1"
}

# fi_pair PROVIDER ENDPOINT OPTION…
fi_pair()
{
	local server rc=0 args
	FI_PORT=$((FI_PORT + 1))
	args=(-p "$1" -e "$2" -d "$(fi_domain "$2")" -c "${@:3}")
	timeout "${FI_LIMIT:-120}" stdbuf -oL fi_pingpong -B $FI_PORT "${args[@]}" >"$LOGS/fi.server" 2>&1 &
	server=$!
	until_true 20 listening $FI_PORT || rc="none, no server"
	[ "$rc" != 0 ] || timeout "${FI_LIMIT:-120}" fi_pingpong -P $FI_PORT "${args[@]}" "$QHCA_IP" \
		>"$LOGS/fi.client" 2>&1 || rc=$?
	[ "$rc" = 0 ] || kill $server 2>/dev/null
	if [[ $rc = 0 && $1 = *rxm ]] && ! until_true 10 gone $server && fi_stuck $server; then
		wait $server
	else
		wait $server || rc="$rc, server $?"
	fi
	[ "$rc" = 0 ] && return
	tail -qn 1 "$LOGS/fi.server" "$LOGS/fi.client"
	echo "client $rc"
	return 1
}

# Domains of datagrams have a name of their own.
fi_domain() { [ "$1" = dgram ] && echo "$QHCA_DEV-dgram" || echo "$QHCA_DEV"; }

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
	expect consumers/libfabric/rdm-rxm-all-sizes fi_pair 'verbs;ofi_rxm' rdm -I 5 -S all
}
