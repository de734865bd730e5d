# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh: ways of life.sh in which the device fails while somebody restarts it, or does
# not start.

# life_state STATE: what devlink says of the device.
life_state() { devlink health show "pci/$QHCA_FUNCTION" reporter hca | grep -q " state $1 "; }

life_start() { devlink health recover "pci/$QHCA_FUNCTION" reporter hca; }

# Its driver has taken the device down, so that nothing runs when it is reset. That takes a
# while, in which the device can fail.
life_during()
{
	local rc=0 pause resets log=$LOGS/life.probes
	device_recovers true || rc=1
	probes_start 'r:probes/down qhca_reset_prepare' 'p:probes/up qhca_dev_up' \
		'p:probes/reset qhca_reset_done' || rc=1
	for pause in 0.01 0.02 0.04 0.08; do
		device_reset &
		resets=$!
		sleep $pause
		qom qom-set inject-fatal true
		wait $resets || rc=1
		until_true "$LIFE_PATIENCE" life_runs || rc=1
	done
	probes_stop >"$log"
	cut -d ' ' -f 2 "$log" | xargs | grep -v 'down up' || { cat "$log"; rc=1; }
	device_recovers false && return $rc
}

# Not only for a moment: a failure may be on its way.
life_runs() { life_is_up && sleep 0.5 && life_is_up; }

life_is_up()
{
	life_state healthy && devlink health diagnose "pci/$QHCA_FUNCTION" reporter hca |
		grep -q 'state: running'
}

life_stuck()
{
	local rc=0
	qom qom-set faults '"cmd opcode=create_eq fail=no_resource"' || rc=1
	device_reset
	life_state error || rc=1
	! life_start || rc=1
	! life_reload || rc=1
	life_state error || rc=1
	qom qom-set faults '""'
	life_start && life_is_up && return $rc
}
