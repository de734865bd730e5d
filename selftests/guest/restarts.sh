# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh: ways of life.sh in which the device fails during a restart, does not start,
# or fails again; and many ways at a time.

LIFE_GRACE=1000		# ms, as the driver has it
LIFE_STORM_SECONDS=${LIFE_STORM_SECONDS:-10}

# life_grace MS: the time that the device must have worked for to be restarted once more.
life_grace() { devlink health set "pci/$QHCA_FUNCTION" reporter hca grace_period "$1"; }

# life_state STATE: what devlink says of the device.
life_state() { devlink health show "pci/$QHCA_FUNCTION" reporter hca | grep -q " state $1 "; }

life_start() { devlink health recover "pci/$QHCA_FUNCTION" reporter hca; }

# It stays dead, which is an error; an administrator who knows that it works now can start it.
life_again()
{
	local rc=0
	sleep $((LIFE_GRACE / 1000 + 1))	# since the last time
	device_recovers true && qom qom-set faults '"timer every=1s fatal"' || rc=1
	until_true life_state error && sleep 2 && life_state error || rc=1
	qom qom-set faults '""'
	life_start && life_state healthy || rc=1
	device_recovers false && return $rc
}

# Its driver has taken the device down, so that nothing runs when it is reset. That takes a
# while, in which the device can fail.
life_during()
{
	local rc=0 pause resets log=$LOGS/life.probes
	device_recovers true && life_grace 0 || rc=1
	probes_start 'r:probes/down qhca_reset_prepare' 'p:probes/up qhca_dev_up' \
		'p:probes/reset qhca_reset_done' || rc=1
	for pause in 0.01 0.02 0.04 0.08; do
		device_reset &
		resets=$!
		sleep $pause
		qom qom-set inject-fatal true
		wait $resets || rc=1
		until_true life_runs || rc=1
	done
	probes_stop >"$log"
	cut -d ' ' -f 2 "$log" | xargs | grep -v 'down up' || { cat "$log"; rc=1; }
	device_recovers false && life_grace $LIFE_GRACE && return $rc
}

# Not only for a moment: a failure may be on its way.
life_runs() { life_is_up && sleep 0.5 && life_is_up; }

life_is_up()
{
	life_state healthy && devlink health diagnose "pci/$QHCA_FUNCTION" reporter hca |
		grep -q 'state: running'
}

# Each command with which it starts is its last, once; the restart by devlink comes to the next.
life_starting()
{
	local opcode rc=0
	device_recovers true && life_grace 0 || rc=1
	for opcode in query_device create_eq create_cq create_qp; do
		qom qom-set faults "\"cmd opcode=$opcode once fatal\"" || rc=1
		device_reset
		until_true life_runs || rc=1
	done
	qom qom-set faults '""'
	device_recovers false && life_grace $LIFE_GRACE && return $rc
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

# The state after a reset through sysfs that met Linux adding the function: pci_bus_add_device()
# saves the registers without the lock of the device, and so the values that the reset has cleared,
# which the reset restores. Linux believes that the BARs are where it has put them.
life_zeroed()
{
	local bar rc=0 driver=/sys/bus/pci/drivers/qhca
	echo "$QHCA_FUNCTION" >$driver/unbind && setpci -s "$QHCA_FUNCTION" COMMAND=0 || rc=1
	for bar in 0 1 2 3 4 5; do
		setpci -s "$QHCA_FUNCTION" "BASE_ADDRESS_$bar=0" || rc=1
	done
	! echo "$QHCA_FUNCTION" >$driver/bind || rc=1
	until_true life_mended && return $rc
}

# Orders and questions that may come at any time, from anybody. All may fail but must end. An
# answer of the host gets lost while the machine sleeps, so these two are not at a time.
# shellcheck disable=SC2016 # life_storm expands them
LIFE_STORM='
life_reload
device_reset
life_start
qom qom-set inject-fatal true; life_suspend
life_driver /sys/bus/pci/drivers/qhca $QHCA_FUNCTION
life_rdma
eval echo 1 >/sys/bus/pci/devices/$QHCA_FUNCTION/remove; sleep 0.1; echo 1 >/sys/bus/pci/rescan
ip link set $QHCA_IF down
ip link set $QHCA_IF up
ethtool -S $QHCA_IF
ethtool -G $QHCA_IF rx $((64 << RANDOM % 4))
ethtool -L $QHCA_IF combined $((RANDOM % 2 + 1))
ethtool -X $QHCA_IF equal $((RANDOM % 2 + 1))
devlink dev param set pci/$QHCA_FUNCTION name rp_enable value $((RANDOM % 2)) cmode runtime
devlink health dump show pci/$QHCA_FUNCTION reporter hca
devlink dev info
rdma -dd resource show
ibv_devinfo -v
'

life_storm()
{
	local order end=$((SECONDS + LIFE_STORM_SECONDS)) pids=()
	while read -r order; do
		[ -n "$order" ] || continue
		while [ $SECONDS -lt $end ]; do
			eval "$order"
			sleep "0.$((RANDOM % 6))"
		done >/dev/null 2>&1 </dev/null &
		pids+=($!)
	done <<<"$LIFE_STORM"
	wait "${pids[@]}"
	until_true life_mended && life_back && storm_end
}

life_mended()
{
	local dir=/sys/bus/pci/devices/$QHCA_FUNCTION
	[ -e "$dir" ] || echo 1 >/sys/bus/pci/rescan
	# See life_zeroed(): only being found again gives it addresses.
	[ -e "$dir/driver" ] || echo "$QHCA_FUNCTION" >/sys/bus/pci/drivers/qhca/bind ||
		{ echo 1 >"$dir/remove" && echo 1 >/sys/bus/pci/rescan; }
	compgen -G "/sys/bus/auxiliary/drivers/qhca_ib.rdma/qhca.rdma.*" || device_reset
	life_runs || life_start
	life_runs && device_recovers false && life_grace "$LIFE_GRACE" &&
		ip link set "$(ls "$dir/net")" up
}
