# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh: the machine is saved while RDMA programs move data that they verify,
# goes on for a while, and is loaded again: what happened in between has never happened.
# The programs must not notice.

SNAPSHOT_TIMES=${SNAPSHOT_TIMES:-2}	# for each of them
SNAPSHOT_ON=/run/qhca/snapshot.on	# while this exists there is traffic

snapshot_soak()
{
	local seed=1
	while [ -e $SNAPSHOT_ON ]; do
		SOAK_MS=5000 SOAK_SEED=$seed RDMA_DEVICE=$QHCA_DEV \
			/opt/qhca/selftests/soak || return
		seed=$((seed + 1))
	done
}

snapshot_rping()
{
	while [ -e $SNAPSHOT_ON ]; do
		rping -s -V -S 30000 -a "$QHCA_IP" -p 7000 &
		sleep 1
		rping -c -V -C 200 -S 30000 -a "$QHCA_IP" -p 7000 || return
		wait $!
	done
}

# Frames, which flow rules and a hash distribute.
snapshot_frames()
{
	while [ -e $SNAPSHOT_ON ]; do
		RDMA_DEVICE=$QHCA_DEV /opt/qhca/selftests/rwq -t 'rules come and go' || return
	done
}

# snapshot_under NAME: while snapshot_NAME runs
snapshot_under()
{
	local i pid reply rc log=$LOGS/snapshot-$1.log
	touch $SNAPSHOT_ON
	"snapshot_$1" >"$log" 2>&1 &
	pid=$!
	sleep 2
	for ((i = 1; i <= SNAPSHOT_TIMES; i++)); do
		rc=0
		reply=$(qhca-host snapshot 2) || rc=$?
		[ $rc = 0 ] || echo "# $reply"
		expect "snapshot/$1: saved and loaded, $i" [ $rc = 0 ]
		sleep 2
	done
	rm -f $SNAPSHOT_ON
	rc=0
	wait $pid || rc=$?
	! grep -q '^not ok' "$log" || rc=1
	[ $rc = 0 ] || sed 's/^/    /' "$log" | tail -30
	expect "snapshot/$1: the data are right" [ $rc = 0 ]
}

snapshot()
{
	[ -x /opt/qhca/selftests/soak ] || { result skip snapshot "none in the payload"; return; }
	snapshot_under rping
	snapshot_under soak
	snapshot_under frames
}
