# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh: SMB Direct, ksmbd and the kernel's client in this machine. Debian's
# kernel has both without it; the modules are built of its source (build/ulps.sh). Small requests
# go by SEND; for large ones the client registers memory, and the server reads or writes it.

SMB_MODULES=/opt/qhca/smb
SMB_DIR=/run/qhca/smb
SMB_MNT=$SMB_DIR/mnt

# smb_insmod MODULE…: with what they need of Debian's.
smb_insmod()
{
	local module need
	for module; do
		for need in $(modinfo -F depends "$SMB_MODULES/$module.ko" | tr , ' '); do
			[ -e "$SMB_MODULES/$need.ko" ] || modprobe "$need" || return 1
		done
		insmod "$SMB_MODULES/$module.ko" || return 1
	done
}

smb_modules() { smb_insmod cifs_arc4 cifs_md4 ksmbd cifs; }

smb_config()
{
	cat <<-EOF
	[global]
		netbios name = QHCA
		server min protocol = SMB3_00
		$1
	[check]
		path = $SMB_DIR/export
		read only = no
	EOF
}

smb_serve()
{
	smb_config "$1" >$SMB_DIR/conf
	ksmbd.adduser -C $SMB_DIR/conf -P $SMB_DIR/users -p secret -a root || return 1
	ksmbd.mountd -C $SMB_DIR/conf -P $SMB_DIR/users && until_true listening 445
}

smb_mount()
{
	timeout 60 mount -i -t cifs -o \
		"ip=$QHCA_IP,unc=\\\\$QHCA_IP\\check,username=root,password=secret,rdma,$1" \
		"//$QHCA_IP/check" $SMB_MNT
}

smb_used()
{
	rdma res show pd dev "$QHCA_DEV" | grep '\[ksmbd\]' &&
		rdma res show mr dev "$QHCA_DEV" | grep -m1 '\[cifs\]'
}

smb_fio()
{
	timeout 300 fio --directory=$SMB_MNT --ioengine=libaio --verify=crc32c --verify_fatal=1 \
		--unlink=1 "$@"
}

# Each side reads what the other has written.
smb_copy()
{
	head -c 5000011 /dev/urandom >$SMB_DIR/export/there
	cp $SMB_MNT/there $SMB_MNT/back && sync $SMB_MNT/back &&
		cmp $SMB_DIR/export/there $SMB_DIR/export/back &&
		mv $SMB_MNT/back $SMB_MNT/moved && cmp $SMB_MNT/moved $SMB_DIR/export/there &&
		rm $SMB_MNT/there $SMB_MNT/moved && [ -z "$(ls $SMB_DIR/export)" ]
}

# smb_tests NAME OPTIONS SIZE
smb_tests()
{
	local name=consumers/smb/$1
	expect "$name/mount" smb_mount "$2" || return
	expect "$name/used" smb_used
	expect "$name/fio" smb_fio --name=check --direct=1 --rw=randwrite --iodepth=8 \
		--bssplit=4k/30:16k/30:512k/20:1m/20 --size="$3"
	expect "$name/fio-odd-sizes" smb_fio --name=odd --rw=randwrite --bsrange=517-103400 \
		--size="$3"
	expect "$name/copy" smb_copy
	[ -z "$FULL" ] || expect "$name/fio-jobs" smb_fio --name=jobs --direct=1 --rw=randwrite \
		--numjobs=4 --group_reporting --iodepth=8 --bs=32k --size=8m
	expect "$name/unmount" umount $SMB_MNT
}

smb_stop()
{
	local module
	ksmbd.control -s
	until_true eval '! pgrep -x ksmbd.mountd'
	for module in cifs ksmbd cifs_md4 cifs_arc4; do
		until_true rmmod $module || return 1
	done
	rm -r $SMB_DIR
}

smb()
{
	local version
	mkdir -p $SMB_DIR/export $SMB_MNT
	expect consumers/smb/modules smb_modules
	if expect consumers/smb/serve smb_serve; then
		smb_tests plain vers=3.1.1 8m
		for version in ${FULL:+3.0 3.02 3.1.1}; do
			smb_tests "v$version" "vers=$version,cache=none" 24m
		done
	fi
	expect consumers/smb/remove smb_stop
}
