#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Second half of the guest's init (the first is in the initrd): report to the
# launcher, set the device up, run the job, send results back, power off.

cd / || exit
. /opt/qhca/job/env
export PATH=/opt/qhca/guest/bin:$PATH
ulimit -l unlimited
ulimit -c 0
mkdir -p /run/qhca

# PORT: the virtio-serial port with the given name; it appears a moment after
# its driver.
port()
{
	local dir name end=$((SECONDS + 30))
	while [ $SECONDS -lt $end ]; do
		for dir in /sys/class/virtio-ports/*; do
			read -r name 2>/dev/null <"$dir/name" || continue
			if [ "$name" = "qhca.$1" ]; then
				PORT=/dev/${dir##*/}
				return
			fi
		done
		sleep 0.01
	done
	echo "qhca: no port $1" >/dev/console
}

# Writes to a disk that is kept have reached it.
settle()
{
	[ "$QHCA_KEEP" = 1 ] || return
	sync
	echo u >/proc/sysrq-trigger
}

power_off()
{
	sync
	settle
	echo o >/proc/sysrq-trigger
	sleep 60
}

# mount_disk SERIAL DIRECTORY [OPTION…]: the disk with that serial, if there is one.
mount_disk()
{
	local name=$1 dir=$2 disk serial
	shift 2
	for disk in /sys/block/vd*; do
		serial=''
		read -r serial <"$disk/serial"
		[ "$serial" = "$name" ] || continue
		mkdir -p "$dir"
		mount "$@" "/dev/${disk##*/}" "$dir"
	done
}

# A kernel other than the image's brings its modules, and --rdma-core a root.
mount_disk modules /lib/modules -o ro
mount_disk userspace /opt/userspace

port ctl
exec 3>"$PORT"
echo up >&3
mount -t devpts -o gid=5,mode=620 devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
# From the next start on what is kept survives a machine that is killed.
[ "$QHCA_KEEP" != 1 ] || dumpe2fs -h /dev/vda 2>/dev/null | grep -q has_journal ||
	tune2fs -j /dev/vda >/dev/null
port out; OUT=$PORT
port files; FILES=$PORT
port host; ln -s "$PORT" /run/qhca/host

console=/dev/console
[ "$QHCA_INTERACTIVE" = 1 ] || console=$OUT

# Machines of one network know each other by name.
if [ -n "$QHCA_HOSTS" ]; then
	printf '127.0.0.1 localhost qhca\n::1 localhost\n%s\n' "$QHCA_HOSTS" >/etc/hosts
fi
[ -z "$QHCA_HOSTNAME" ] || hostname "$QHCA_HOSTNAME"

# Where the job starts: in the first directory of the host's, unless the launcher knows better.
WHERE=${QHCA_WHERE:-${QHCA_MOUNTS%%$'\n'*}}
WHERE=${WHERE:-/root}

job()
{
	local rc=0
	# shellcheck disable=SC2086 # a list of words
	/opt/qhca/guest/setup.sh $QHCA_SETUP 3>&- || rc=$?
	[ $rc = 0 ] || echo "qhca: setup failed with status $rc"
	[ ! -e /run/qhca/env ] || . /run/qhca/env
	if [ "$QHCA_INTERACTIVE" = 1 ]; then
		echo "qhca: root prompt. Our files are in /opt/qhca; $QHCA_LEAVE."
		# shellcheck disable=SC2086 # words for stty
		stty $QHCA_TTY
		echo ready >&3
		( cd "$WHERE" && setsid -c -w bash --login ) 3>&-
		return 0
	fi
	[ $rc = 0 ] || return $rc
	[ "$QHCA_REPLUG" != 1 ] || /opt/qhca/guest/replug.sh 3>&- &
	echo ready >&3
	( cd "$WHERE" && exec bash /opt/qhca/job/cmd ) 3>&-
}

job <"$([ "$QHCA_INTERACTIVE" = 1 ] && echo "/dev/$QHCA_TTY_NAME" || echo /dev/null)" \
	>"${console/console/$QHCA_TTY_NAME}" 2>&1
rc=$?
[ "$QHCA_INTERACTIVE" = 1 ] && power_off

# kmemleak reports what it finds in two scans, and only old allocations.
leaks=/sys/kernel/debug/kmemleak
if [ -e $leaks ]; then
	sleep 6
	echo scan >$leaks
	echo scan >$leaks
	# A record of the log has room for some lines only.
	while IFS= read -r line; do echo "$line" >/dev/kmsg; done <$leaks
fi

# Give the kernel a moment to finish logging, then collect.
dmesg >/run/qhca/dmesg
mapfile -t get </opt/qhca/job/get
tar -C / -cf "$FILES" --ignore-failed-read run/qhca/dmesg "${get[@]#/}" 2>/run/qhca/tar.err
settle
echo "exit $rc" >&3
sleep 5
power_off
