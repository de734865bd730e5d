# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the consumers that are SCSI initiators: the target's disks, by hand in
# configfs (targetcli takes seconds to start), and what is done with them.

TARGET=/sys/kernel/config/target
DISK_MB=64

# lio_start MODULE…: a disk in memory, and one in a file in memory.
lio_start()
{
	local core=$TARGET/core
	modprobe -a sd_mod sg target_core_mod target_core_file "$@" || return 1
	mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
	mkdir -p $core/rd_mcp_0/disk $core/fileio_0/file &&
		echo rd_pages=$((DISK_MB * 256)) >$core/rd_mcp_0/disk/control &&
		echo "fd_dev_name=/run/qhca/disk,fd_dev_size=$((DISK_MB << 20))" \
			>$core/fileio_0/file/control &&
		echo 1 >$core/rd_mcp_0/disk/enable && echo 1 >$core/fileio_0/file/enable
}

# lio_luns TPG: both disks, for any initiator
lio_luns()
{
	local tpg=$1
	mkdir -p "$tpg/lun/lun_0" "$tpg/lun/lun_1" &&
		ln -s $TARGET/core/rd_mcp_0/disk "$tpg/lun/lun_0/disk" &&
		ln -s $TARGET/core/fileio_0/file "$tpg/lun/lun_1/disk"
}

lio_luns_remove()
{
	rm "$1"/lun/lun_[01]/disk && rmdir "$1"/lun/lun_[01]
}

# lio_stop MODULE…
lio_stop()
{
	rmdir $TARGET/core/rd_mcp_0/disk $TARGET/core/rd_mcp_0 \
		$TARGET/core/fileio_0/file $TARGET/core/fileio_0 && rm /run/qhca/disk &&
		unload "$@" target_core_user target_core_pscsi target_core_iblock target_core_file \
			target_core_mod sg sd_mod
}

# scsi_disks TRANSPORT: a line for each of its disks, in the order of their LUNs: the
# block device and the generic one
scsi_disks()
{
	local host dev
	for host in /sys/class/"$1"_host/host*; do
		for dev in "$host"/device/session*/target*/*:*:*:[01] "$host"/device/target*/*:*:*:[01]; do
			[ ! -d "$dev/block" ] || [ ! -d "$dev/scsi_generic" ] ||
				echo "/dev/$(ls "$dev/block") /dev/$(ls "$dev/scsi_generic")"
		done
	done
}

have_disks() { [ "$(scsi_disks "$1" | wc -l)" = "${2:-2}" ]; }

# wait_disks TRANSPORT: after a login. Runtime suspend of targets and hosts is off: the
# initiators remove them on work queues with WQ_MEM_RECLAIM, and the kernel warns if
# that waits for a suspend that runs on pm_wq, which is not one.
wait_disks()
{
	local host control
	until_true have_disks "$1" || return 1
	for host in /sys/class/"$1"_host/host*/device; do
		for control in "$host"{,/session*/target*,/target*}/power/control; do
			[ ! -e "$control" ] || echo on >"$control" || return 1
		done
	done
}

scsi_fio()
{
	timeout 300 fio --ioengine=libaio --direct=1 --rw=randwrite --verify=crc32c \
		--verify_fatal=1 "$@"
}

# All sizes a disk can have, one by one and many together.
scsi_fio_sizes()
{
	scsi_fio --name=sizes --filename="$1" --iodepth="$2" --size="$3" \
		--bssplit=512/10:4k/40:3584/10:64k/20:512k/10:1m/10
}

# SCSI commands past the block layer.
scsi_generic()
{
	scsi_fio --name=generic --ioengine=sg --direct=0 --filename="$1" --bs=64k --size="$2"
}

# A file system, a file in it, and both again after the cache was dropped.
scsi_mkfs()
{
	local disk=$1 dir=/run/qhca/scsi rc=0
	mkdir -p $dir
	mkfs.ext4 -q -F "$disk" && mount "$disk" $dir || return 1
	head -c 5000011 /dev/urandom >/run/qhca/source
	cp /run/qhca/source $dir/copy && umount $dir && blockdev --flushbufs "$disk" &&
		mount "$disk" $dir && cmp /run/qhca/source $dir/copy || rc=1
	umount $dir && fsck.ext4 -nf "$disk" || rc=1
	rm /run/qhca/source
	return $rc
}

# scsi_reset DISK GENERIC KIND…: resets of the device, and those for which the
# initiator takes down its connection, under a writer.
scsi_reset()
{
	local disk=$1 generic=$2 kind writer rc=0
	shift 2
	for kind; do
		scsi_fio_sizes "$disk" 8 4m &
		writer=$!
		sleep 1
		scsi_reset_ioctl "$generic" "$kind" || rc=1
		wait $writer || rc=1
	done
	return $rc
}

# SG_SCSI_RESET, an ioctl, needs no program of sg3-utils.
scsi_reset_ioctl()
{
	python3 - "$1" "$2" <<-'PY'
	import fcntl, os, struct, sys
	SG_SCSI_RESET = 0x2284
	kind = {'device': 1, 'bus': 2, 'host': 3, 'target': 4}[sys.argv[2]]
	fd = os.open(sys.argv[1], os.O_RDWR | os.O_NONBLOCK)
	try:
	    fcntl.ioctl(fd, SG_SCSI_RESET, struct.pack('i', kind | 0x100))
	except OSError as err:
	    sys.exit(f'reset of the {sys.argv[2]}: {err}')
	PY
}

# scsi_tests NAME TRANSPORT RESETS: what is done with the two disks of an initiator
scsi_tests()
{
	local name=$1 resets=$3 size=8m disks disk generic file
	[ -z "$FULL" ] || size=48m
	mapfile -t disks < <(scsi_disks "$2")
	read -r disk generic <<<"${disks[0]}"
	read -r file _ <<<"${disks[1]}"
	expect "$name/fio-depth-1" scsi_fio_sizes "$disk" 1 4m
	expect "$name/fio-depth-64" scsi_fio_sizes "$disk" 64 $size
	expect "$name/fio-file" scsi_fio_sizes "$file" 16 $size
	expect "$name/generic" scsi_generic "$generic" 2m
	expect "$name/mkfs" scsi_mkfs "$disk"
	# shellcheck disable=SC2086 # a list
	expect "$name/reset" scsi_reset "$disk" "$generic" $resets
}
