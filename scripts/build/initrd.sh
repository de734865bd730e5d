# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by build/image.sh and build/kernel.sh: what a kernel needs to start the guest,
# from ROOT/lib/modules/RELEASE. ROOT is below the cache.

# Modules that the initrd loads to reach the root file system.
INITRD_MODULES='virtio_pci virtio_blk ext4 virtio_console'
# Modules that most runs load after that. Decompressing and checking the signature of a module is
# slow without KVM, so these (and the initrd's) lie there plain.
HOT_MODULES='virtio_net virtio_rng rdma_rxe rdma_ucm ib_uverbs ib_umad nvme_rdma nvmet_rdma'

# depends ROOT RELEASE MODULE…: the files of these and of what they need, in loading
# order, as the build root sees them.
depends()
{
	local root=$1 release=$2 module
	shift 2
	for module; do
		"$QHCA_TOP/scripts/build/buildroot.sh" -- modprobe -d "$(br_path "$root")" -S "$release" \
			--show-depends "$module"
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

# The build root's depmod, at a path that it can see.
index_modules()
{
	"$QHCA_TOP/scripts/build/buildroot.sh" --root -- depmod -b "$(br_path "$1")" "$2"
}

# plain_modules ROOT RELEASE [STRIP OPTION…]: with another program, in the build root with these
# options.
plain_modules()
{
	local root=$1 release=$2 strip=${3:-strip}
	index_modules "$root" "$release"
	# strip also drops the signature
	# shellcheck disable=SC2086,SC2016 # two lists; expands inside
	depends "$root" "$release" $INITRD_MODULES $HOT_MODULES |
		"$QHCA_TOP/scripts/build/buildroot.sh" "${@:4}" --root -- sh -ec '
			while read -r path; do
				case $path in
				*.xz) xz -d "$path" ;;
				*.zst) zstd -q -d --rm "$path" ;;
				*.gz) gzip -d "$path" ;;
				esac
				path=${path%.xz} path=${path%.zst} path=${path%.gz}
				"$1" --strip-debug "$path"
			done' sh "$strip"
	index_modules "$root" "$release"
}

# The kernel proper out of the bzImage, if zstd will do: QEMU starts it through its PVH
# entry, and the guest is spared decompressing itself (a second or more without KVM).
extract_kernel()
{
	local out=$1 offset
	offset=$(LC_ALL=C grep -abo -m1 -P '\x28\xb5\x2f\xfd' "$out/vmlinuz" | head -n 1 |
		cut -d: -f1) || return 0
	tail -c "+$((offset + 1))" "$out/vmlinuz" |
		"$QHCA_TOP/scripts/build/buildroot.sh" -- zstd -dc >"$out/vmlinux" 2>/dev/null || :
	[ "$(head -c 4 "$out/vmlinux" | tail -c 3)" = ELF ] || rm -f "$out/vmlinux"
}

# The mounts of the initrd, with one command. Which disk is the first is not known where virtio's
# devices are on channels. /root/dev comes from a second mount of the one devtmpfs there is.
fstab()
{
	cat <<-'FSTAB'
	devtmpfs  /dev                     devtmpfs  defaults           0 0
	LABEL=qhca /root                   ext4      noatime            0 0
	devtmpfs  /root/dev                devtmpfs  defaults           0 0
	proc      /root/proc               proc      defaults           0 0
	sysfs     /root/sys                sysfs     defaults           0 0
	debugfs   /root/sys/kernel/debug   debugfs   defaults           0 0
	tmpfs     /root/run                tmpfs     mode=755           0 0
	tmpfs     /root/tmp                tmpfs     mode=1777          0 0
	FSTAB
}

# make_initrd ROOT RELEASE FILE: 2 MB: busybox, the modules below the root disk, a
# 20-line script.
make_initrd()
{
	local root=$1 release=$2 out=$3 work path modules
	work=$(mktemp -d "$QHCA_CACHE/tmp/initrd.XXXXXX")
	modules=$work/lib/modules/$release
	mkdir -p "$work/bin" "$work/etc" "$work/dev" "$work/proc" "$work/root" "$modules"
	cp "$(buildroot_dir)/usr/bin/busybox" "$work/bin/busybox"
	install -m 755 "$QHCA_TOP/selftests/guest/initrd-init.sh" "$work/init"
	fstab >"$work/etc/fstab"
	# All names, in order: busybox's modprobe knows no soft dependencies
	# (ext4 needs crc32c).
	: >"$work/etc/modules"
	# shellcheck disable=SC2086 # a list
	depends "$root" "$release" $INITRD_MODULES | while read -r path; do
		cp "$QHCA_CACHE${path#"$QHCA_BR_CACHE"}" "$modules/"
		basename "$path" .ko >>"$work/etc/modules"
	done
	cp "$root/lib/modules/$release/modules.builtin" "$modules/"
	index_modules "$work" "$release"
	( cd "$work" && find . | cpio --quiet -o -H newc | gzip -1 ) >"$out"
	as_root rm -rf "$work"
}
