#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# First process of the guest, in the initrd: reach the root disk, mount the
# usual (busybox does that faster than the real tools), switch over.
b=/bin/busybox
$b mount -t devtmpfs dev /dev
while read -r m; do
	$b insmod "/mod/$m" || echo "qhca: insmod $m failed"
done </mod/order
n=0
until [ -b /dev/vda ]; do
	$b usleep 10000
	n=$((n + 1))
	if [ $n -gt 1000 ]; then
		echo "qhca: no root disk"
		$b reboot -f
	fi
done
$b mount -t ext4 -o noatime /dev/vda /root
$b mount --move /dev /root/dev
$b mount -t proc proc /root/proc
$b mount -t sysfs sys /root/sys
$b mount -t debugfs debugfs /root/sys/kernel/debug
$b mount -t tmpfs -o mode=755 run /root/run
$b mount -t tmpfs -o mode=1777 tmp /root/tmp
$b mkdir -p /root/dev/pts /root/dev/shm /root/run/lock
$b mount -t devpts -o gid=5,mode=620 devpts /root/dev/pts
$b mount -t tmpfs -o mode=1777 shm /root/dev/shm
$b ln -s /proc/self/fd /root/dev/fd
$b hostname qhca
exec $b switch_root /root /sbin/qhca-init
