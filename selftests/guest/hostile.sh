# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh: a device that deceives its drivers (vm --hostile). Programs that run during
# that may fail, but must end; the kernel has nothing to complain of, which the launcher sees to;
# and a reset of the function brings back a device that tells the truth again.

HOSTILE_SEEDS=${HOSTILE_SEEDS:-1-7}
HOSTILE_NVME_SEEDS=${HOSTILE_NVME_SEEDS:-}	# seeds with a disk
HOSTILE_SECONDS=${HOSTILE_SECONDS:-8}	# of traffic for each seed

# Name, bits of the lies, one lie in so many answers: seed N, from 1 on, has row N modulo the number
# of rows.
HOSTILE_KINDS='
all                 0x3f    60
commands            0x01    30
mailboxes           0x02     2
EQEs                0x04    10
CQEs                0x08    40
registers           0x10    40
interrupts          0x20     4
CQEs-rare           0x08   400
'

hostile_set() { qom qom-set "hostile-$1" "$2" >/dev/null; }
hostile_lies() { qom qom-get hostile-lies; }

# quietly SECONDS COMMAND…: it need not succeed.
quietly() { timeout -k 2 "$@" >>"$LOGS/hostile.log" 2>&1 </dev/null; }

hostile_bind()
{
	echo "$QHCA_FUNCTION" >"/sys/bus/pci/drivers/qhca/$1" || return
	device_recovers false
	return 0
}

# Brings the function and its netdev back. A process that was killed while it waited for the
# function goes on waiting, and may unbind it only now.
hostile_address()
{
	[ -e "/sys/bus/pci/drivers/qhca/$QHCA_FUNCTION" ] || hostile_bind bind
	QHCA_IF=$(ls "/sys/bus/pci/devices/$QHCA_FUNCTION/net") &&
		ip link set dev "$QHCA_IF" up &&
		ip link set dev "$QHCA_IF" mtu 4200 || return
	# shellcheck disable=SC2153 # the launcher's
	ip addr replace "$QHCA_IP/24" dev "$QHCA_IF"
}

# In the background, for what waits for the device for ever ends with a reset only.
hostile_traffic()
{
	local name end=$((SECONDS + HOSTILE_SECONDS))
	(
		while [ $SECONDS -lt $end ]; do
			quietly 2 ping -q -f -n -s 1000 -w 1 "$GATEWAY"
			quietly 2 ip link set dev "$QHCA_IF" mtu $((1500 + RANDOM % 2000))
			quietly 2 ethtool -S "$QHCA_IF"
		done
	) 2>/dev/null &
	(
		while [ $SECONDS -lt $end ]; do
			for name in translate cq srq ud odp events mw xrc mcast qp_state; do
				[ $SECONDS -lt $end ] || break
				RDMA_DEVICE=$QHCA_DEV RDMA_GID=$QHCA_GID \
					quietly 4 "/opt/qhca/selftests/$name"
			done
			quietly 2 rdma -dd resource show
			quietly 2 ibv_devinfo -v
		done
	) 2>/dev/null &
	while [ $SECONDS -lt $end ]; do
		quietly "$HOSTILE_SECONDS" cat /sys/kernel/debug/qhca_kverbs_test/run
		sleep 0.1
	done 2>/dev/null &
	hostile_resets "$end" 2
}

# hostile_resets END INTERVAL: many a lie is the end of the device.
hostile_resets()
{
	while [ $SECONDS -lt "$1" ]; do
		sleep "$2"
		quietly 60 bash -c device_reset
	done
}

# The target stops listening for good when its device is removed, as by a reset.
hostile_nvme_listen()
{
	rm -f "$NVMET/ports/1/subsystems/$NQN"
	ln -s "$NVMET/subsystems/$NQN" "$NVMET/ports/1/subsystems/$NQN"
}

# Without multipath the namespace is not where nvme_disk looks.
hostile_nvme_disk()
{
	local disk
	for disk in /dev/nvme*n1; do
		[ -b "$disk" ] && echo "$disk" && return
	done
}

# hostile_nvme_io COMMAND…: a disk over NVMe, target and host, that comes and goes, while the
# command says yes; to connect takes seconds where the kernel is slow.
hostile_nvme_io()
{
	local disk
	while "$@"; do
		quietly 20 bash -c hostile_nvme_listen
		quietly 20 nvme connect -t rdma -a "$QHCA_IP" -s 4420 -n "$NQN" -i 2 \
			-c 1 -l 5 -k 2
		disk=$(PATIENCE=3 until_true hostile_nvme_disk) &&
			quietly 10 fio --name=lies --filename="$disk" --ioengine=libaio \
				--direct=1 --rw=randrw --bssplit=512/30:4k/40:128k/30 \
				--size=16m --iodepth=32 --time_based --runtime=4
		quietly 40 nvme disconnect -n "$NQN"
	done
}

hostile_before() { [ $SECONDS -lt "$1" ]; }

hostile_nvme_traffic()
{
	local end=$((SECONDS + 3 * HOSTILE_SECONDS))
	hostile_nvme_io hostile_before $end 2>/dev/null &
	hostile_resets "$end" 8
}

# A connection that the target accepts while its device is already going, and that sends no
# command, has no owner: the target has closed all it knew of, and the connection manager waits for
# it to close this one. It does when it stops listening.
hostile_nvme_drop()
{
	local waits before=
	while [ -e "$LOGS/hostile.nvme" ]; do
		waits=$(grep -ls cma_process_remove /proc/[0-9]*/stack)
		if [ -n "$waits" ] && [ "$waits" = "$before" ]; then
			echo "# the target drops a connection that is nobody's"
			hostile_nvme_listen
		fi
		before=$waits
		sleep 10
	done
}

hostile_nvme_is_well()
{
	local disk
	quietly 60 nvme disconnect -n "$NQN"
	until_true hostile_nvme_listen && until_true nvme_connect "$NQN" rdma "$QHCA_IP" &&
		disk=$(until_true hostile_nvme_disk) &&
		timeout 60 fio --name=check --filename="$disk" --ioengine=libaio --direct=1 \
			--rw=randwrite --bs=16k --size=4m --iodepth=16 --verify=crc32c \
			--verify_fatal=1 &&
		timeout 60 nvme disconnect -n "$NQN"
}

# A target with a disk of its own.
hostile_nvme_target()
{
	# shellcheck source=SCRIPTDIR/consumers/nvme.sh
	. /opt/qhca/guest/consumers/nvme.sh
	export NVMET NQN
	export -f hostile_nvme_listen
	truncate -s 64M /var/tmp/nvme.img
	nvme_modules n && nvme_export $NQN 1 rdma "$QHCA_IP" /var/tmp/nvme.img
}

# The same with consumers that keep the state of their connections in the kernel.
hostile_nvme()
{
	local seed
	expect hostile/nvme/target hostile_nvme_target || return
	touch "$LOGS/hostile.nvme"
	(hostile_nvme_drop &)	# no child, for those are waited for
	for seed in $(hostile_range "$HOSTILE_NVME_SEEDS"); do
		hostile_seed "$seed" hostile_nvme_traffic
		expect "hostile/nvme/seed $seed, the disk" hostile_nvme_is_well
	done
	rm "$LOGS/hostile.nvme"
	expect hostile/nvme/remove nvme_unexport
}

# hostile_seed N TRAFFIC: what it reports is whether the device comes back.
hostile_seed()
{
	local name kinds rate rc=0 row lies test=${2%_traffic}
	test=${test/_//}
	mapfile -t row < <(grep . <<<"$HOSTILE_KINDS")
	read -r name kinds rate <<<"${row[$1 % ${#row[@]}]}"
	lies=$(hostile_lies)
	hostile_set kinds $((kinds))
	hostile_set rate "$rate"
	hostile_set seed "$1"
	"$2"
	quietly 60 bash -c 'hostile_bind unbind; hostile_bind bind; sleep 0.5'
	hostile_set seed 0
	lies=$(($(hostile_lies) - lies))
	device_reset || rc=1
	wait
	until_true hostile_address
	echo "# seed $1: $lies lies"
	expect "$test/seed $1, $name" hostile_is_well || return
	[ $rc = 0 ] || result fail "$test/seed $1" reset
}

hostile_is_well()
{
	until_true device_gid || { ip -br addr; rdma link; return 1; }
	until_true flood 50 500 || return 1
	both 60 "$LOGS/pp.server" "$LOGS/pp.client" 18800 \
		ibv_rc_pingpong -d "$QHCA_DEV" -g "$QHCA_GID" -p 18800 -n 200 ||
		{ tail -n 2 "$LOGS"/pp.*; return 1; }
}

# Prepare a device so that it can lie.
hostile_setup()
{
	device_find
	export -f hostile_bind device_recovers
	hostile_set seed 0 || return
	[ -d /sys/module/qhca_kverbs_test ] ||
		insmod /opt/qhca/modules/qhca_kverbs_test.ko device="$QHCA_DEV" \
			gid_index="$QHCA_GID"
}

hostile_unload()
{
	rmmod qhca_kverbs_test && rmmod qhca_ib && rmmod qhca && /opt/qhca/guest/setup.sh qhca
}

# hostile_range 1-3,7: each number
hostile_range()
{
	local range
	for range in ${1//,/ }; do
		seq "${range%-*}" "${range#*-}"
	done
}

hostile()
{
	local seed
	hostile_setup || { result fail hostile "the device cannot lie"; return; }
	for seed in $(hostile_range "$HOSTILE_SEEDS"); do
		hostile_seed "$seed" hostile_traffic
	done
	[ -z "$HOSTILE_NVME_SEEDS" ] || hostile_nvme
	expect "hostile/the modules go and come back" hostile_unload
}
