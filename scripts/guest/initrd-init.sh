#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# First process of the guest, in the initrd: reach the root disk, switch to it.
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
exec $b switch_root /root /sbin/qhca-init
