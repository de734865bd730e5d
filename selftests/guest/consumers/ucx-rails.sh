#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# ucx-rails.sh [OPTION of ucx_perftest…]     (in the guest, for vm --scenario)
#
# UCX moves data over all adapters of this machine for as long as the scenario takes: messages of
# 4 MiB over one connection with a lane on each. It does not look at the data.

. /run/qhca/env
PORT=13800
SIZE=4194304
read -ra devs <<<"$QHCA_DEVS"
printf -v list '%s:1,' "${devs[@]}"
export UCX_NET_DEVICES=${list%,} UCX_TLS=rc_v UCX_VFS_ENABLE=n UCX_MAX_RNDV_RAILS=${#devs[@]}
# 12.5 MB per second, until the last thing has happened, and five seconds more.
count=$(((${QHCA_SCENARIO_SECONDS%.*} - 5) * 12500000 / SIZE))

perftest() { ucx_perftest -P 0 -p $PORT -t tag_bw -s $SIZE -n $count -w 2 "$@"; }

perftest "$@" &
server=$!
for _ in $(seq 100); do
	ss -Hltn "sport = :$PORT" | grep -q . && break
	sleep 0.1
done
rc=0
perftest "$@" 127.0.0.1 || rc=$?
# A server whose client is gone may wait for it for ever.
for _ in $(seq 50); do
	kill -0 $server 2>/dev/null || break
	sleep 0.1
done
kill $server 2>/dev/null && rc="$rc, the server has not ended"
wait $server || rc="$rc, server $?"
echo "status: $rc"
[ "$rc" = 0 ]
