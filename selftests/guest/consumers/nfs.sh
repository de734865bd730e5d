# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh: NFS over RDMA, server and client in this machine, both on
# the device's own address. The server moves data with RDMA READ and WRITE, the
# client registers with fast registration and lets the server invalidate.

EXPORTS=/run/qhca/nfs
MNT=$EXPORTS/mnt

# Exports in memory: a disk's file system, and tmpfs.
nfs_server()
{
	local options=rw,no_root_squash,insecure,no_subtree_check
	modprobe -a rpcrdma nfsd && modprobe brd rd_nr=1 rd_size=196608 || return 1
	mkdir -p $EXPORTS/ext4 $EXPORTS/tmpfs $MNT $MNT.other
	mkfs.ext4 -q -F /dev/ram0 && mount /dev/ram0 $EXPORTS/ext4 &&
		mount -t tmpfs -o size=192m none $EXPORTS/tmpfs || return 1
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd || return 1
	rpcbind -w && until_true listening 111 && rpc.statd --no-notify && rpc.mountd || return 1
	exportfs -o $options "*:$EXPORTS/ext4" && exportfs -o $options,fsid=7 "*:$EXPORTS/tmpfs" &&
		nfs_serve && echo Y >/proc/fs/nfsd/v4_end_grace && grep rdma /proc/fs/nfsd/portlist
}

nfs_serve() { rpc.nfsd --rdma=20049 --grace-time 10 --lease-time 10 4; }

nfs_server_remove()
{
	exportfs -ua
	rpc.nfsd 0
	pkill -x rpc.mountd
	pkill -x rpc.statd
	pkill -x rpcbind
	umount $EXPORTS/ext4 $EXPORTS/tmpfs && umount /proc/fs/nfsd &&
		unload rpcrdma nfsd nfsv4 nfsv3 nfs brd
}

# nfs_mount EXPORT VERSION [OPTION,…]: retried while the server is in its grace period.
nfs_mount()
{
	timeout 60 mount -t nfs -o "proto=rdma,port=20049,vers=$2,$3" "$QHCA_IP:$EXPORTS/$1" "${4:-$MNT}"
}

# The mount has as many transports as asked for, all over RDMA, and all have
# registered memory for the server: chunks to read from, or to write to.
nfs_used()
{
	local mount
	mount=$(sed -n "\\|mounted on $MNT with|,/^device/p" /proc/self/mountstats)
	same transports "$(grep -c 'xprt:.rdma' <<<"$mount")" "$1" || return 1
	awk '/xprt:/ { n += $14 + $15 + $16 } END { exit n == 0 }' <<<"$mount" ||
		{ echo "no chunks"; grep xprt: <<<"$mount"; return 1; }
}

nfs_fio()
{
	timeout 300 fio --directory=$MNT --ioengine=libaio --verify=crc32c --verify_fatal=1 \
		--unlink=1 "$@"
}

# The server sees what the client wrote, and the client what the server wrote; of odd
# block sizes.
nfs_copy()
{
	local export=$EXPORTS/$1 size=$2
	head -c "$size" /dev/urandom >$EXPORTS/source &&
		dd if=$EXPORTS/source of=$MNT/there bs=12347 conv=fsync status=none &&
		cmp $EXPORTS/source "$export/there" &&
		cp $EXPORTS/source "$export/back" && dd if=$MNT/back bs=77771 status=none |
		cmp - $EXPORTS/source && rm $MNT/there $MNT/back $EXPORTS/source
}

# Many small files, and names.
nfs_files()
{
	local n
	mkdir $MNT/files || return 1
	for n in {1..100}; do
		echo "content of $n" >$MNT/files/file-with-quite-a-long-name-"$n" || return 1
	done
	for n in {1..100..3}; do
		mv $MNT/files/file-with-quite-a-long-name-"$n" $MNT/files/"$n" || return 1
	done
	diff -r $MNT/files "$EXPORTS/$1/files" && rm -r $MNT/files && [ ! -e "$EXPORTS/$1/files" ]
}

# A lock taken over one version of the protocol excludes the other's.
nfs_locks()
{
	local rc=0
	nfs_mount "$1" 3 "" $MNT.other || return 1
	python3 - $MNT/lock $MNT.other/lock <<-'PY' || rc=1
	import fcntl, sys
	first, second = (open(name, 'w+b') for name in sys.argv[1:])
	def refused(file, kind, *area):
	    try:
	        fcntl.lockf(file, kind | fcntl.LOCK_NB, *area)
	    except OSError:
	        return True
	    return False
	for one, other in ((first, second), (second, first)):
	    fcntl.lockf(one, fcntl.LOCK_EX | fcntl.LOCK_NB, 100, 50)
	    assert refused(other, fcntl.LOCK_EX, 1, 149)
	    assert refused(other, fcntl.LOCK_SH, 100, 0)
	    assert not refused(other, fcntl.LOCK_EX, 50, 0)
	    fcntl.lockf(one, fcntl.LOCK_UN, 100, 50)
	    assert not refused(other, fcntl.LOCK_EX, 0)
	    fcntl.lockf(other, fcntl.LOCK_UN)
	PY
	umount $MNT.other || rc=1
	return $rc
}

# nfs_tests NAME EXPORT VERSION OPTIONS SIZE
nfs_tests()
{
	local name=consumers/nfs/$1 export=$2 version=$3 options=$4 size=$5 connections
	connections=$(sed -n 's/.*nconnect=//p' <<<"$options")
	expect "$name/mount" nfs_mount "$export" "$version" "$options" || return
	expect "$name/fio-direct" nfs_fio --name=direct --direct=1 --rw=randwrite --iodepth=16 \
		--bssplit=4k/40:64k/30:256k/20:1m/10 --size="$size"
	expect "$name/fio-odd-sizes" nfs_fio --name=odd --rw=randwrite \
		--bsrange=517-103400 --size="$size"
	expect "$name/copy" nfs_copy "$export" 5000011
	expect "$name/used" nfs_used "${connections:-1}"
	[ -z "$FULL" ] || expect "$name/files" nfs_files "$export"
	[ -z "$FULL" ] || expect "$name/fio-jobs" nfs_fio --name=jobs --direct=1 --rw=randwrite \
		--numjobs=4 --group_reporting --iodepth=8 --bs=32k --size=8m
	[ -z "$FULL" ] || expect "$name/fio-mmap" nfs_fio --name=mmap --ioengine=mmap \
		--rw=randwrite --bs=4k --size=4m
	[[ $version = 3 ]] || expect "$name/locks" nfs_locks "$export"
	expect "$name/unmount" umount $MNT
}

# The server stops, with all its connections, and comes back, under a client that writes.
nfs_restart()
{
	local writer
	nfs_fio --name=restart --direct=1 --rw=randwrite --iodepth=8 --bs=64k --size=32m \
		--rate=,4m &
	writer=$!
	sleep 2
	rpc.nfsd 0 && sleep 2 && nfs_serve && wait $writer
}

nfs()
{
	local version options size connections
	if ! expect consumers/nfs/server nfs_server; then
		:
	elif [ -z "$FULL" ]; then
		nfs_tests v3-4k ext4 3 rsize=4096,wsize=4096 2m
		nfs_tests v4.2 tmpfs 4.2 nconnect=4 8m
	else
		for version in 3 4.0 4.1 4.2; do
			for options in 4:1 64:4 1024:2; do
				size=${options%:*} connections=${options#*:}
				nfs_tests "v$version-${size}k" ext4 "$version" \
					rsize=$((size << 10)),wsize=$((size << 10)),nconnect="$connections" 8m
			done
			nfs_tests "v$version-tmpfs" tmpfs "$version" nconnect=2 24m
		done
		expect consumers/nfs/restart-mount nfs_mount ext4 4.2 nconnect=2
		expect consumers/nfs/restart nfs_restart
		expect consumers/nfs/restart-unmount umount $MNT
	fi
	expect consumers/nfs/remove nfs_server_remove
}
