# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh and bench.sh: NVMe over RDMA, target and host in this machine,
# both on the device's own address. It uses verbs as storage in the kernel does: CM, fast
# registration, invalidation by the peer, CQ pools, draining.

NVMET=/sys/kernel/config/nvmet
NQN=qhca-check

# nvme_start [y]: what all targets share; with shared receive queues.
nvme_start()
{
	modprobe brd rd_nr=1 rd_size=131072 && nvme_modules "${1:-n}"
}

nvme_modules()
{
	modprobe nvmet-rdma use_srq="$1" && modprobe nvme-rdma || return 1
	mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
}

# nvme_export NQN PORT TRANSPORT ADDRESS [FILE]: the disk in memory, or a file.
nvme_export()
{
	local subsystem=$NVMET/subsystems/$1 port=$NVMET/ports/$2
	mkdir "$subsystem" "$subsystem/namespaces/1" "$port" || return 1
	echo 1 >"$subsystem/attr_allow_any_host"
	echo "${5:-/dev/ram0}" >"$subsystem/namespaces/1/device_path"
	echo 1 >"$subsystem/namespaces/1/enable"
	echo "$3" >"$port/addr_trtype"
	echo ipv4 >"$port/addr_adrfam"
	echo "$4" >"$port/addr_traddr"
	echo 4420 >"$port/addr_trsvcid"
	ln -s "$subsystem" "$port/subsystems/$1"
}

nvme_target() { nvme_start "${1:-n}" && nvme_export $NQN 1 rdma "$QHCA_IP"; }

nvme_unexport()
{
	rm $NVMET/ports/1/subsystems/$NQN
	rmdir $NVMET/ports/1 $NVMET/subsystems/$NQN/namespaces/1 $NVMET/subsystems/$NQN
}

nvme_target_remove()
{
	nvme_unexport && modprobe -r nvmet-rdma nvme-rdma && modprobe -r brd
}

# nvme_disk NQN: the block device of the host, once it is there.
nvme_disk()
{
	local end=$((SECONDS + 30)) subsystem dev
	while [ $SECONDS -lt $end ]; do
		for subsystem in /sys/class/nvme-subsystem/*; do
			[ "$(cat "$subsystem/subsysnqn" 2>/dev/null)" = "$1" ] || continue
			for dev in "$subsystem"/nvme*n1; do
				[ -b "/dev/${dev##*/}" ] && echo "/dev/${dev##*/}" && return
			done
		done
		sleep 0.1
	done
	return 1
}

# nvme_fio DEPTH SIZE: what is written is read again and must be the same.
nvme_fio()
{
	expect "consumers/nvme/${srq}fio-depth-$1" timeout 240 fio --name=check --filename="$disk" \
		--ioengine=libaio --direct=1 --rw=randwrite --bssplit=512/20:4k/40:128k/40 \
		--size="$2" --iodepth="$1" --verify=crc32c --verify_fatal=1 \
		--randseed="$1"
}

# nvme_connect NQN TRANSPORT ADDRESS: loop, which is no network, knows no services.
nvme_connect()
{
	local service=(-s 4420)
	[ "$2" != loop ] || service=()
	timeout 60 nvme connect -n "$1" -t "$2" -a "$3" "${service[@]}" -i 2 \
		-q $NQN-host -I 8d6a3b5e-0f64-4d28-9f5f-0d9f2a6c1b7e
}

# The controller is reset under a writer; its outstanding commands are sent again.
nvme_busy_reset()
{
	local writer rc=0 round
	fio --name=busy --filename="$disk" --ioengine=libaio --direct=1 --rw=randwrite \
		--bs=16k --size=64m --rate=,8m --iodepth=32 --verify=crc32c --verify_fatal=1 &
	writer=$!
	for round in 1 2 3; do
		sleep 2
		timeout 60 nvme reset "${disk%n1}" || rc=$round
	done
	wait $writer && return $rc
}

# nvme_faults RULES: the device's, set from the host.
nvme_faults() { qom qom-set faults "\"$1\"" >/dev/null; }

nvme_reconnects() { dmesg | grep -c 'nvme.*[Ss]uccessfully reconnected'; }

# A send of the host's or the target's fails under a writer: the host reconnects, and
# what has been written is what is read.
nvme_fault()
{
	local before rc=0
	before=$(nvme_reconnects)
	nvme_faults 'cqe opcode=send after=300 once fail=general_err' || return
	timeout 240 fio --name=fault --filename="$disk" --ioengine=libaio --direct=1 \
		--rw=randwrite --bs=16k --size=32m --iodepth=16 --verify=crc32c \
		--verify_fatal=1 || rc=$?
	nvme_faults ''
	dmesg | grep nvme | tail -12
	[ "$(nvme_reconnects)" -gt "$before" ] && return $rc
}

nvme_plain()
{
	local disk srq=
	expect consumers/nvme/target nvme_target
	expect consumers/nvme/connect nvme_connect $NQN rdma "$QHCA_IP"
	if disk=$(nvme_disk $NQN); then
		nvme_fio 1 8m
		nvme_fio 128 64m
		expect consumers/nvme/flush blockdev --flushbufs "$disk"
		expect consumers/nvme/reset timeout 60 nvme reset "${disk%n1}"
		nvme_fio 16 8m
		[ -z "$FULL" ] || nvme_fio 32 128m
		[ -z "$FULL" ] || expect consumers/nvme/busy-reset nvme_busy_reset
		[ -z "$FULL" ] || expect consumers/nvme/fault nvme_fault
	else
		result fail consumers/nvme/disk "none has come"
	fi
	expect consumers/nvme/disconnect timeout 60 nvme disconnect -n $NQN
	expect consumers/nvme/remove nvme_target_remove
}

# The target's connections receive from shared receive queues, and drain them.
nvme_srq()
{
	local disk srq=srq-
	expect consumers/nvme/srq-target nvme_target y
	expect consumers/nvme/srq-connect nvme_connect $NQN rdma "$QHCA_IP"
	expect consumers/nvme/srq-used eval "rdma res show srq | grep -q nvmet_rdma"
	if disk=$(nvme_disk $NQN); then
		nvme_fio 64 16m
		expect consumers/nvme/srq-reset timeout 60 nvme reset "${disk%n1}"
		nvme_fio 8 4m
	else
		result fail consumers/nvme/srq-disk "none has come"
	fi
	expect consumers/nvme/srq-disconnect timeout 60 nvme disconnect -n $NQN
	expect consumers/nvme/srq-remove nvme_target_remove
}

nvme()
{
	nvme_plain
	nvme_srq
}
