# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh: the kernel's 9P client over RDMA. The kernel has no server, and no
# package has one that speaks RDMA: p9-server.c does, and hands the messages to Debian's diod.

P9_DIR=/run/qhca/9p
P9_MNT=$P9_DIR/mnt

p9_build() { gcc -O2 -o $P9_DIR/p9-server "$DIR/consumers/p9-server.c" -lrdmacm -libverbs; }

p9_serve()
{
	$P9_DIR/p9-server "$QHCA_IP" 5640 $P9_DIR/export >"$LOGS/p9-server.log" 2>&1 &
	echo $! >$P9_DIR/pid
	cm_listening $!
}

p9_mount()
{
	timeout 60 mount -t 9p -o "trans=rdma,version=9p2000.L,uname=root,access=any,aname=$P9_DIR/export,$1" \
		"$QHCA_IP" $P9_MNT
}

p9_used() { rdma res show pd dev "$QHCA_DEV" | grep '\[9pnet_rdma\]'; }

p9_fio()
{
	timeout 300 fio --directory=$P9_MNT --ioengine=psync --verify=crc32c --verify_fatal=1 \
		--unlink=1 "$@"
}

# Each side reads what the other has written; a name, a link, a list.
p9_copy()
{
	head -c 3000017 /dev/urandom >$P9_DIR/export/there
	cp $P9_MNT/there $P9_MNT/back && cmp $P9_DIR/export/there $P9_DIR/export/back &&
		mv $P9_MNT/back $P9_MNT/moved && ln -s moved $P9_MNT/link &&
		cmp $P9_MNT/link $P9_DIR/export/there &&
		[ "$(ls $P9_MNT)" = "$(ls $P9_DIR/export)" ] &&
		rm $P9_MNT/there $P9_MNT/moved $P9_MNT/link && [ -z "$(ls $P9_DIR/export)" ]
}

# Several programs write many files.
p9_files()
{
	local i pids=()
	for i in 1 2 3 4; do
		cp -r /opt/pyverbs/tests "$P9_MNT/$i" &
		pids+=($!)
	done
	wait "${pids[@]}" || return 1
	for i in 1 2 3 4; do
		diff -r "$P9_DIR/export/$i" /opt/pyverbs/tests || return 1
	done
	rm -r $P9_MNT/[1-4]
}

# p9_tests NAME OPTIONS SIZE
p9_tests()
{
	local name=consumers/p9/$1
	expect "$name/mount" p9_mount "$2" || return
	expect "$name/used" p9_used
	expect "$name/fio" p9_fio --name=check --rw=randwrite --bsrange=1k-64k --size="$3"
	expect "$name/fio-jobs" p9_fio --name=jobs --rw=randwrite --numjobs=4 --group_reporting \
		--bs=16k --size=1m
	expect "$name/copy" p9_copy
	[ -z "$FULL" ] || expect "$name/files" p9_files
	expect "$name/unmount" umount $P9_MNT
}

p9_stop()
{
	local pid
	pid=$(cat $P9_DIR/pid)
	kill "$pid" && until_true gone "$pid" && unload 9p 9pnet_rdma && rm -r $P9_DIR
}

p9()
{
	mkdir -p $P9_MNT $P9_DIR/export
	expect consumers/p9/build p9_build || return
	expect consumers/p9/modules modprobe -a 9p 9pnet_rdma
	if expect consumers/p9/serve p9_serve; then
		p9_tests plain msize=65536 4m
	fi
	expect consumers/p9/remove p9_stop
}
