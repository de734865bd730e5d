#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# /sbin/qhca-init, the init of the guest once the initrd has mounted everything:
# unpack the payload disk and hand over to it. Part of the image, so: only what
# never changes.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root TERM=linux LC_ALL=C.UTF-8
tar -xf /dev/vdb -C /opt/qhca && exec /opt/qhca/guest/boot.sh
echo "qhca: no usable payload on /dev/vdb"
echo b >/proc/sysrq-trigger
