# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh: a program takes a TCP port from the kernel and gives it back, by raw QPs
# and flow rules, while the other machine connects to it; then the other way round.

raw-tcp()
{
	local role taker=$LOGS/tcp-taker port=7600
	gcc -O2 -Wall -o "$taker" "$DIR/consumers/tcp-taker.c" -libverbs ||
		{ result fail consumers/raw-tcp/build; return; }
	for role in a b; do
		port=$((port + 10))
		qhca-host sync "raw-tcp-$role" >/dev/null
		if [ "$role" = "$QHCA_ROLE" ]; then
			expect "consumers/raw-tcp/taken-by-$role" "$taker" serve "$QHCA_DEV" $port
		else
			expect "consumers/raw-tcp/taken-by-$role" "$taker" visit "$QHCA_PEER" $port
		fi
	done
}
