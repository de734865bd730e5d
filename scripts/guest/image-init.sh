#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# /sbin/qhca-init, the init of the guest: mount the usual, unpack the payload
# disk, hand over to the payload. Part of the image, so: only what never changes.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root TERM=linux LC_ALL=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs -o mode=755 run /run
mount -t tmpfs -o mode=1777 tmp /tmp
mkdir -p /dev/pts /dev/shm /run/lock
mount -t devpts -o gid=5,mode=620 devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t debugfs debugfs /sys/kernel/debug
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
hostname qhca
tar -xf /dev/vdb -C /opt/qhca && exec /opt/qhca/guest/boot.sh
echo "qhca: no usable payload on /dev/vdb"
echo b >/proc/sysrq-trigger
