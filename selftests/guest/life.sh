# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh: every way in which the device, its drivers and its netdev can go
# and come back, again and again under load: connections that come, carry data and go,
# through the CM and without, and with LIFE_NVME=1 a disk over NVMe. These programs may fail, but
# must end; afterwards all is as it was, and the device works.

LIFE_CYCLES=${LIFE_CYCLES:-2}		# of each
LIFE_WAYS=${LIFE_WAYS:-}		# some of the names below; all but off and server
LIFE_TOGETHER=${LIFE_TOGETHER:-1}	# so many of them before a look at all that must be as before
LIFE_NVME=${LIFE_NVME:-}
LIFE_KEEPS=${LIFE_KEEPS:-24576}		# KiB that memory may have shrunk by
LIFE_ON=/run/qhca/life.on		# while this exists there is traffic

# Each function returns when the device is back, and brings it back itself if needed.
LIFE_TABLE='
nothing  nothing happens
reset    a reset of the function
mads     a reset of the function while MADs are taken in
fatal    a fatal error, and a reset
hang     a command is never answered, and a reset
recover  a fatal error, after which devlink restarts the function
again    a device that fails again and again, until devlink leaves it alone
during   a fatal error during a reset, which devlink does not restart the function in
starting a fatal error while the device starts, after which devlink starts it once more
stuck    a device that does not start, neither after a reset nor for devlink, and then does
reload   devlink reloads the function
unbind   the PCI driver is unbound
flap     the PCI driver is unbound while the cable is pulled and put back
rdma     the RDMA driver is unbound
modules  both modules are removed
late     a page that does not come is asked for while the module is removed
plug     the card is pulled and plugged in
zeroed   the card forgets where its BARs are, and is found again
server   the process that has the device is killed, and another one started
off      the slot goes off while CPUs access the card, which is plugged in again
carrier  the cable is pulled
down     the interface goes down
rename   netdev and RDMA device get other names
netns    the netdev goes to another network namespace
rdmans   the RDMA device goes to another network namespace
suspend  suspend to idle
storm    many of these, and questions, all at a time
'

# The load alone; the other ways start with the memory that QEMU has then.
life_nothing() { sleep 1; }

life_reset() { device_reset; }

# Here the kernel is as slow as it may be, which the test module sees to.
life_mads()
{
	local rc=0
	insmod /opt/qhca/modules/qhca_kverbs_test.ko mad_ms=200 || return 1
	sleep 0.2
	device_reset || rc=1
	rmmod qhca_kverbs_test && return $rc
}

life_fatal() { qom qom-set inject-fatal true && sleep 0.3 && device_reset; }

# The device recovers on its own, and devlink knows why.
life_recover()
{
	local rc=0
	life_grace 0 && device_recovers true &&
		devlink health dump clear "pci/$QHCA_FUNCTION" reporter hca
	LIFE_RECOVERIES=$(life_recoveries)
	qom qom-set inject-fatal true && until_true life_recovered || rc=1
	devlink health show "pci/$QHCA_FUNCTION" reporter hca
	devlink health dump show "pci/$QHCA_FUNCTION" reporter hca >"$LOGS/life.dump"
	grep 'reason: it reported a fatal error' "$LOGS/life.dump" || rc=1
	devlink health diagnose "pci/$QHCA_FUNCTION" reporter hca | grep 'state: running' || rc=1
	device_recovers false && life_grace "$LIFE_GRACE" && return $rc
}

life_recoveries()
{
	devlink health show "pci/$QHCA_FUNCTION" reporter hca |
		sed -n 's/.*state healthy .* recover \([0-9]*\) .*/\1/p'
}

life_recovered() { [ "$(life_recoveries)" = $((LIFE_RECOVERIES + 1)) ]; }

life_reload() { devlink dev reload "pci/$QHCA_FUNCTION"; }

# The driver waits its time for the answer, then it gives the device up, and says so.
life_hang()
{
	local mark="life: command $EPOCHREALTIME" rc=0
	echo "$mark" >/dev/kmsg
	qom qom-set faults '"cmd once hang"' &&
		until_true life_lost "$mark" && device_reset || rc=1
	qom qom-set faults '""' && return $rc
}

life_lost() { dmesg | sed "1,/$1/d" | grep -q 'a command was lost'; }

# life_driver DIRECTORY DEVICE
life_driver() { echo "$2" >"$1/unbind" && sleep 0.1 && echo "$2" >"$1/bind"; }

life_pci() { life_driver /sys/bus/pci/drivers/qhca "$QHCA_FUNCTION" && device_recovers false; }

# Events change the carrier of the netdev, so they come to it only while it is registered: the RDMA
# driver's end before, and begin after it.
LIFE_ORDER='ended ended gone there began began'

life_unbind()
{
	local rc=0
	probes_there || { life_pci; return; }
	probes_start 'p:probes/ended qhca_unregister_events' 'p:probes/gone unregister_netdev' \
		'p:probes/began qhca_register_events' 'p:probes/there register_netdev' || rc=1
	life_pci || rc=1
	same "netdev and events" "$(probes_stop | cut -d ' ' -f 2 | xargs)" "$LIFE_ORDER" || rc=1
	return $rc
}

# Events of the link arrive while their receiver goes.
life_flap()
{
	local flapping rc=0
	for _ in 1 2 3 4 5 6; do
		qhca-cable down
		qhca-cable up
	done >/dev/null &
	flapping=$!
	life_pci || rc=1
	wait $flapping
	return $rc
}

life_rdma()
{
	local dir=/sys/bus/auxiliary/drivers/qhca_ib.rdma dev
	dev=$(basename "$(readlink -f "$dir"/qhca.rdma.*)")
	life_driver "$dir" "$dev"
}

# While pages are on their way for a program, the module is in use.
life_modules()
{
	until_true rmmod qhca_ib && rmmod qhca && /opt/qhca/guest/setup.sh qhca && device_recovers false
}

life_late()
{
	local rc=0
	RDMA_DEVICE=$QHCA_DEV RDMA_GID=$QHCA_GID /opt/qhca/selftests/unload || rc=1
	rmmod qhca && /opt/qhca/guest/setup.sh qhca && device_recovers false && return $rc
}

life_unplugged() { [ ! -e "/sys/bus/pci/devices/$QHCA_FUNCTION" ]; }

# The guest is asked to let go of it. QEMU has removed it a little later.
life_plug()
{
	qhca-host qmp '{"execute": "device_del", "arguments": {"id": "qhca0"}}' &&
		until_true life_unplugged && until_true qhca-host plug &&
		until_true device_recovers false
}

# The driver finds out by itself. There can be another process before the card of the first is
# removed, and after.
life_server()
{
	local mark="life: server $EPOCHREALTIME" rc=0
	echo "$mark" >/dev/kmsg
	qhca-host server kill && until_true life_gone "$mark" || rc=1
	[ $((RANDOM % 2)) = 0 ] || qhca-host server start || rc=1
	life_replace && return $rc
}

life_gone() { dmesg | sed "1,/$1/d" | grep -q 'device failed: '; }

# The card of another process, in another slot.
life_replace()
{
	echo 1 >"/sys/bus/pci/devices/$QHCA_FUNCTION/remove" && qhca-host server start &&
		qhca-host plug && until_true life_found
}

life_found() { device_find && [ -n "$QHCA_FUNCTION" ] && device_recovers false; }

# The card goes without a warning: accesses are under way, and go on. Root ports have their slot's
# control at 0x18 of the capability: power and its indicator. They have one where ACPI is not in
# charge of hot-plug. Linux leaves a slot alone that is off.
life_off()
{
	local port rc=0
	port=$(basename "$(readlink -f "/sys/bus/pci/devices/$QHCA_FUNCTION/..")")
	/opt/qhca/guest/hammer.py "$QHCA_FUNCTION" setpci -s "$port" CAP_EXP+18.w=0700:0700 || rc=1
	echo 1 >"/sys/bus/pci/devices/$QHCA_FUNCTION/remove" || rc=1
	until_true qhca-host plug && return $rc
}

life_carrier() { qhca-cable down && sleep 0.2 && qhca-cable up; }

life_down() { ip link set "$QHCA_IF" down && sleep 0.1 && ip link set "$QHCA_IF" up; }

life_rename()
{
	ip link set "$QHCA_IF" name life0 && rdma dev set "$QHCA_DEV" name life1 &&
		sleep 0.2 &&
		rdma dev set life1 name "$QHCA_DEV" && ip link set life0 name "$QHCA_IF"
}

life_netns()
{
	ip netns add life && ip link set "$QHCA_IF" netns life && sleep 0.1 &&
		ip -n life link set "$QHCA_IF" up && sleep 0.1 &&
		ip -n life link set "$QHCA_IF" netns 1 && ip netns del life
}

# Devices belong to one namespace each in this mode, which cannot be had while there are
# several.
life_rdmans()
{
	local rc=0
	rdma system set netns exclusive && ip netns attach init 1 && ip netns add life || rc=1
	rdma dev set "$QHCA_DEV" netns life && sleep 0.1 &&
		ip netns exec life rdma dev set "$QHCA_DEV" netns init || rc=1
	ip netns del life
	ip netns del init
	until_true rdma system set netns shared && return $rc
}

life_suspend() { echo freeze >/sys/power/state; }

# ---- load

# life_over PID LOG: the program has ended, or hangs.
life_over() { gone "$1" || life_hangs "$2"; }

life_hangs() { [ $((EPOCHSECONDS - $(stat -c %Y "$1"))) -gt "$PATIENCE" ]; }

# life_program COMMAND…: again and again; it may fail, but neither it nor its tests may hang.
life_program()
{
	local pid id family log=$LOGS/life.${1##*/}
	while [ -e $LIFE_ON ]; do
		SOAK_MS=3000 RDMA_DEVICE=$QHCA_DEV RDMA_GID=$QHCA_GID "$@" >"$log" 2>&1 </dev/null &
		pid=$!
		until life_over $pid "$log"; do sleep 0.2; done
		if ! gone $pid; then
			family="$pid $(ps -o pid= --ppid $pid)"
			{ echo "$1 for $PATIENCE s:"; tail -n 3 "$log"
			  for id in $family; do
				head -n 4 /proc/"$id"/task/*/stack
			  done; } >>"$LOGS/life.hung" 2>&1
			# shellcheck disable=SC2086 # a list
			kill -KILL $family
		fi
		wait $pid
		grep "no end after" "$log" >>"$LOGS/life.hung"	# one of its tests
		sleep 0.2
	done
}

life_idle() { [ ! -s "$LOGS/life.hung" ] || { cat "$LOGS/life.hung"; rm "$LOGS/life.hung"; false; }; }

life_load()
{
	touch $LIFE_ON
	life_program /opt/qhca/selftests/soak 2>/dev/null &
	life_program /opt/qhca/selftests/translate 2>/dev/null &
	# Those that do not fork: lockdep would see what it sees in removal, and be silent.
	life_program /opt/qhca/selftests/odp -t absent -t 'taken away' -t 'does not exist' \
		2>/dev/null &
	life_program /opt/qhca/selftests/raw 2>/dev/null &
	life_program /opt/qhca/selftests/rwq 2>/dev/null &
	life_program rdma -dd resource show 2>/dev/null &
	[ -z "$LIFE_NVME" ] || hostile_nvme_io test -e $LIFE_ON 2>/dev/null &
}

life_no_disk() { ! compgen -G '/sys/class/nvme/nvme*' >/dev/null; }

# A disk whose network is gone waits 60 s for the answer to its last command, longer than
# who disconnects it.
life_rest()
{
	rm -f $LIFE_ON
	wait
	[ -z "$LIFE_NVME" ] || until_true life_no_disk
}

# ---- what must be as before

# The netdev may be a new one.
life_back()
{
	until_true test -d "/sys/bus/pci/devices/$QHCA_FUNCTION/net" &&
		QHCA_IF=$(ls "/sys/bus/pci/devices/$QHCA_FUNCTION/net") || return 1
	until_true test -d "/sys/class/infiniband/$QHCA_DEV" || return 1
	# shellcheck disable=SC2153 # the launcher's
	ip link set "$QHCA_IF" mtu 4200 up && ip addr replace "$QHCA_IP/24" dev "$QHCA_IF" &&
		until_true device_gid
}

# Without the device's number, which is a new one each time. With a disk, the core keeps a
# pool of CQs for it, and its target listens when it likes.
life_resources()
{
	rdma resource show | sed "s/^[0-9]*: //; ${LIFE_NVME:+s/cq [0-9]* //; s/cm_id [0-9]* //}"
}

life_cqs() { rdma resource show | sed -n 's/.* cq \([0-9]*\).*/\1/p'; }

# How many the device holds, without that pool.
life_objects()
{
	local n pool=0
	n=$(qom qom-get objects) || return
	[ -z "$LIFE_NVME" ] || pool=$(life_cqs)
	echo $((n - pool))
}

# Bytes of the host's memory that they take; the pool's are not known. A device keeps the place for
# packets that its first rule needs.
life_bytes()
{
	[ -z "$LIFE_NVME" ] || return 0
	qom qom-set faults '"timer every=3600s fatal"' >/dev/null &&
		qom qom-set faults '""' >/dev/null && qom qom-get memory
}

# life_kept FREE: no more memory is gone than may be. Waits for memory that is freed late.
life_kept()
{
	read -r free slab < <(soak_memory)
	[ $(($1 - free)) -lt "$LIFE_KEEPS" ]
}

life_works()
{
	RDMA_DEVICE=$QHCA_DEV RDMA_GID=$QHCA_GID timeout $((2 * PATIENCE)) \
		/opt/qhca/selftests/translate &&
		until_true flood 50 500
}

# life_way NAME WHAT…: under a load that has begun.
life_way()
{
	local name=$1 n=0 rc=0
	shift
	while [ $n -lt "$LIFE_CYCLES" ] && [ $rc = 0 ]; do
		sleep "0.$((RANDOM % 10))"
		"life_$name" >"$LOGS/life.way" 2>&1 || rc=1
		life_back >>"$LOGS/life.way" 2>&1 || rc=1
		n=$((n + 1))
	done
	[ $rc = 0 ] || cat "$LOGS/life.way"
	expect "life/$name: $*, $LIFE_CYCLES times" [ $rc = 0 ]
}

# life_ways WAY…: one after the other under the same load, and then a look at everything. A WAY is
# a name and what happens.
life_ways()
{
	local way all='' resources objects bytes start=$SECONDS free slab free0 slab0
	resources=$(life_resources) objects=$(life_objects) bytes=$(life_bytes)
	read -r free0 slab0 < <(soak_memory)
	life_load
	for way; do
		# shellcheck disable=SC2086 # words
		life_way $way
		all+=${all:+ }${way%% *}
	done
	life_rest
	echo "# life/$all: $((SECONDS - start)) s"
	EXPECT_LINES=100 expect "life/$all, and nothing hangs" life_idle
	expect "life/$all, and the device works" life_works
	expect "life/$all, and rdma res is as before" same "rdma res" "$(life_resources)" "$resources"
	expect "life/$all, and the device's objects" same objects "$(life_objects)" "$objects"
	expect "life/$all, and what they take" same bytes "$(life_bytes)" "$bytes"
	# As before the load, behind the same work: a debug kernel frees some only then.
	expect "life/$all, and memory" until_true life_kept "$free0"
	echo "# life/$all: $((SECONDS - start)) s; KiB available $free0 $free, in slabs $slab0 $slab"
}

# A suspended machine wakes up immediately.
life_prepare()
{
	device_find
	life_objects >/dev/null || { result skip life "the host takes no orders"; return 1; }
	echo 0 >/sys/module/suspend/parameters/pm_test_delay
	echo devices >/sys/power/pm_test
}

life()
{
	local name what ways=()
	life_prepare || return 0
	if [ -n "$LIFE_NVME" ]; then
		expect life/nvme/target hostile_nvme_target || return
	fi
	# Fills caches, which count as memory that is gone.
	expect "life/before" life_works || return
	life_load
	sleep 5
	life_rest
	while read -r name what; do
		[[ -n $name && (-z $LIFE_WAYS && $name != @(off|server) ||
			" $LIFE_WAYS " == *" $name "*) ]] || continue
		if [[ $name = @(mads|unbind|during) ]] && ! probes_there; then
			result skip "life/$name, as kernel probes show it" "no kprobe events"
			[ "$name" = unbind ] || continue
		fi
		ways+=("$name $what")
		if [ ${#ways[@]} -ge "$LIFE_TOGETHER" ]; then
			life_ways "${ways[@]}"
			ways=()
		fi
	done <<<"$LIFE_TABLE"
	[ ${#ways[@]} = 0 ] || life_ways "${ways[@]}"
	[ -z "$LIFE_NVME" ] || expect life/nvme/remove nvme_unexport
}
