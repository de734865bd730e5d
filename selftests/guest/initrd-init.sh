#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# First process of the guest, in the initrd: load the drivers of the disks,
# mount everything, unpack the payload disk, hand over to it. Without KVM every
# program that starts costs 30 ms; so few start, and all of them are busybox.
b=/bin/busybox
$b mount -t proc proc /proc
# shellcheck disable=SC2046 # a list of words
$b modprobe -a $($b cat /etc/modules)
n=0
# /etc/fstab: the root disk at /root first, everything else below it.
until $b mount -a; do
	$b usleep 20000
	n=$((n + 1))
	[ $n -lt 200 ] || break
done
$b mkdir -p /root/dev/pts /root/dev/shm /root/run/lock
$b ln -s /proc/self/fd /root/dev/fd
payload=vdb
while read -r disk directory _; do
	[ "$directory $disk" != "/root /dev/vdb" ] || payload=vda
done </proc/mounts
if $b tar -xf /root/dev/$payload -C /root/opt/qhca; then
	export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
	export HOME=/root TERM=linux LC_ALL=C.UTF-8
	exec $b switch_root /root /opt/qhca/guest/boot.sh
fi
echo "qhca: no root disk, or no usable payload disk"
$b reboot -f
