# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh: qperf in one machine, over the connection manager. Without
# that it uses LIDs and no GRH, which RoCE needs, whatever the device; and it uses the
# connection manager for RC only. Two of its tests check data.

QPERF_TESTS='rc_bi_bw rc_bw rc_lat
rc_rdma_read_bw rc_rdma_read_lat rc_rdma_write_bw rc_rdma_write_lat rc_rdma_write_poll_lat
rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add'

# No event tells why a connection was rejected; the kernel's trace does, where there is one.
. "$DIR/probes.sh"
QPERF_TRACE=$TRACING/instances/qperf

qperf_traced()
{
	tracing_there && mkdir "$QPERF_TRACE" && echo 1 >"$QPERF_TRACE/events/ib_cma/enable"
}

# It prints its figure, or why there is none.
qperf_test()
{
	[ ! -e "$QPERF_TRACE" ] || : >"$QPERF_TRACE/trace"
	timeout 60 qperf "$QHCA_IP" -cm 1 -t "$QPERF_SECONDS" "$1" && return
	cat "$LOGS/qperf.server"
	[ ! -e "$QPERF_TRACE" ] || grep -v '^#' "$QPERF_TRACE/trace"
	return 1
}

qperf()
{
	local server test QPERF_SECONDS=1
	[ "$FULL" != 1 ] || QPERF_SECONDS=5
	qperf_traced 2>/dev/null
	command qperf >"$LOGS/qperf.server" 2>&1 &
	server=$!
	until_true listening 19765 || result fail consumers/qperf/server
	for test in $QPERF_TESTS; do
		EXPECT_LINES=40 expect "consumers/qperf/$test" qperf_test "$test"
	done
	kill $server
	[ ! -e "$QPERF_TRACE" ] || rmdir "$QPERF_TRACE"
}
