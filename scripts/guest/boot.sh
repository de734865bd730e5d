#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Second half of the guest's init (the first is in the image): report to the
# launcher, set the device up, run the job, send results back, power off.

cd / || exit
. /opt/qhca/job/env
export PATH=/opt/qhca/guest/bin:$PATH
ulimit -l unlimited
ulimit -c 0
mkdir -p /run/qhca
modprobe virtio_console

# The virtio-serial port with the given name; it appears a moment after modprobe.
port()
{
	local n name
	for n in $(seq 500); do
		for name in /sys/class/virtio-ports/*/name; do
			if [ "$(cat "$name" 2>/dev/null)" = "qhca.$1" ]; then
				name=${name%/name}
				echo "/dev/${name##*/}"
				return
			fi
		done
		sleep 0.01
	done
	echo "qhca: no port $1 (try $n)" >/dev/console
}

power_off()
{
	sync
	echo o >/proc/sysrq-trigger
	sleep 60
}

CTL=$(port ctl) OUT=$(port out) FILES=$(port files)
ln -s "$(port host)" /run/qhca/host
exec 3>"$CTL"
echo up >&3

console=/dev/console
[ "$QHCA_INTERACTIVE" = 1 ] || console=$OUT

job()
{
	local rc=0
	# shellcheck disable=SC2086 # a list of words
	/opt/qhca/guest/setup.sh $QHCA_SETUP || rc=$?
	[ $rc = 0 ] || echo "qhca: setup failed with status $rc"
	[ ! -e /run/qhca/env ] || . /run/qhca/env
	if [ "$QHCA_INTERACTIVE" = 1 ]; then
		echo "qhca: root prompt. Our files are in /opt/qhca; leave with 'exit' or Ctrl-A X."
		( cd /root && setsid -c -w bash --login )
		return 0
	fi
	[ $rc = 0 ] || return $rc
	( cd /root && exec bash /opt/qhca/job/cmd )
}

job 3>&- <"$([ "$QHCA_INTERACTIVE" = 1 ] && echo /dev/ttyS0 || echo /dev/null)" \
	>"${console/console/ttyS0}" 2>&1
rc=$?
[ "$QHCA_INTERACTIVE" = 1 ] && power_off

# Give the kernel a moment to say what it has to say, then collect.
dmesg >/run/qhca/dmesg
mapfile -t get </opt/qhca/job/get
tar -C / -cf "$FILES" --ignore-failed-read run/qhca/dmesg "${get[@]#/}" 2>/run/qhca/tar.err
echo "exit $rc" >&3
sleep 5
power_off
