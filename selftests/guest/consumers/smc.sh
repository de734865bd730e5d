# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh: SMC-R, sockets whose connection is made over TCP and whose
# data goes by RDMA WRITE, between two machines (one does not speak it with itself).
# Machine a is the server.

SMC_PORT=5000
SMC_TOOL=$DIR/consumers/smc.py

# Version 1 wants GIDs of RoCE v1. Version 2 alone does not tell the server the client's
# MAC address, unless the way there is a gateway's, whose address the kernel looks up:
# so the peer serves as its own gateway.
smc_setup()
{
	ip route replace "$QHCA_PEER/32" via "$QHCA_PEER" dev "$QHCA_IF" onlink &&
		modprobe -a smc smc_diag && python3 "$SMC_TOOL" eid
}

smc_remove() { ip route del "$QHCA_PEER/32" && unload smc_diag smc; }

# smc_client TEST COUNT: also checks how its connections move data.
smc_client()
{
	timeout 200 python3 "$SMC_TOOL" client "$QHCA_PEER" $SMC_PORT "$@" >"$LOGS/smc" 2>&1 || {
		cat "$LOGS/smc"
		return 1
	}
	cat "$LOGS/smc"
	! grep -q TCP "$LOGS/smc" && grep -q "SMC-R $QHCA_DEV" "$LOGS/smc"
}

# Asked while the client is there: QPs of SMC, and no socket that fell back to TCP.
smc_used()
{
	python3 "$SMC_TOOL" modes >"$LOGS/smc"
	cat "$LOGS/smc"
	rdma res show qp link "$QHCA_DEV/1" | grep 'RC state RTS.*\[smc\]' && ! grep -q TCP "$LOGS/smc"
}

# A race of Linux's SMC: the client asks the server for the first message over a new link
# (smc_clc_send_confirm()) before it records that it waits for it
# (smc_llc_flow_initiate()). If its CPU is taken away in between the message is dropped,
# both wait two seconds and fall back to TCP for good, where one of them gives the reason
# SMC_CLC_DECL_TIMEOUT_CL. It happens on a busy host once in some twenty runs, with the first
# link of a group only, and is a skip; nothing else may fall back or fail.
SMC_NO_LINK='^1 TCP because of (0x[0-9a-f]+, peer )?0x2010000\b'

smc_first()
{
	local log=$LOGS/smc-first
	[ "$QHCA_ROLE" = b ] || return
	if smc_client messages 1 >"$log" 2>&1; then
		result ok consumers/smc/first
	elif [ "$(wc -l <"$log")" = 1 ] && grep -qE "$SMC_NO_LINK" "$log"; then
		result skip consumers/smc/first "no link in time: $(cat "$log")"
	else
		sed 's/^/    /' "$log"
		result fail consumers/smc/first
	fi
}

# smc_test NAME TEST COUNT
smc_test()
{
	[ "$QHCA_ROLE" = a ] || expect "consumers/smc/$1" smc_client "$2" "$3"
}

smc()
{
	local server client
	expect consumers/smc/setup smc_setup
	if [ "$QHCA_ROLE" = a ]; then
		python3 "$SMC_TOOL" server "$QHCA_IP" $SMC_PORT >"$LOGS/smc-server" 2>&1 &
		server=$!
		expect consumers/smc/server until_true grep -q listening "$LOGS/smc-server"
	fi
	qhca-host sync smc-up >/dev/null
	smc_first
	smc_test messages messages 400
	smc_test bulk bulk $((FULL ? 64 : 8))
	smc_test parallel parallel $((FULL ? 60 : 10))
	if [ -n "$FULL" ]; then
		# More than one link group takes (255), so there is a second one.
		smc_test many parallel 300
		smc_test again bulk 16
	fi
	if [ "$QHCA_ROLE" = a ]; then
		qhca-host sync smc-idle >/dev/null
		expect consumers/smc/server-link smc_used
	else
		python3 "$SMC_TOOL" client "$QHCA_PEER" $SMC_PORT idle 0 >"$LOGS/smc-idle" 2>&1 &
		client=$!
		sleep 2
		qhca-host sync smc-idle >/dev/null
		expect consumers/smc/client-link smc_used
	fi
	qhca-host sync smc-seen >/dev/null
	if [ "$QHCA_ROLE" = b ]; then
		kill $client
		expect consumers/smc/stop smc_client stop 0
	else
		expect consumers/smc/server-end wait $server
	fi
	qhca-host sync smc-down >/dev/null
	expect consumers/smc/remove smc_remove
}
