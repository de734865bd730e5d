#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# pair-wire.sh     (in both guests of `scripts/vm pair --pcap FILE`)
#
# What two machines put on the wire, for scripts/capture.py to judge: the
# kselftest of the connection manager that needs two machines, and packets with
# remarkable address vectors. Ends with one line: N passed, N failed, N skipped.

LOGS=/run/qhca/logs
. /opt/qhca/guest/perf.sh
. /opt/qhca/guest/result.sh
. /opt/qhca/guest/peers.sh

pair_cm()
{
	local role rc round=0
	export RDMA_IP=$QHCA_IP RDMA_PEER=$QHCA_PEER RDMA_BARRIER='timeout 60 qhca-host sync'
	export RDMA_CABLE=qhca-cable RDMA_ROLE RDMA_ROUND
	for role in a b; do
		RDMA_ROLE=client RDMA_ROUND=$((round += 1)) rc=0
		[ $role != "$QHCA_ROLE" ] || RDMA_ROLE=server
		/opt/qhca/selftests/pair_cm >"$LOGS/pair_cm" 2>&1 || rc=$?
		tap "pair_cm ($RDMA_ROLE)" "$LOGS/pair_cm" $rc
		qhca-host sync "end of $role" >/dev/null
	done
}

# E-036 E-037 E-040: ECN 10 and DSCP 26, flow label 0x12345; perftest itself asks
# for hop limit 64.
vectors()
{
	perf_table wire <<-'EOF'
	ib_write_bw -s 1024 -n 10 --tclass=106 --flow_label=74565
	ib_send_bw -c UD -s 1024 -n 10 --tclass=106
	EOF
}

vectors
pair_cm
perf_pair wire/after ib_send_bw -s 65536 -n 50
summary
