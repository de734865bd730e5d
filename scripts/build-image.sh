#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# build-image.sh [--path]
#
# Make the guest: a Debian root file system with the kernel whose headers are
# in the build root, rdma-core, pyverbs with its tests, perftest and friends.
# Prints the directory with vmlinux (or vmlinuz), initrd, rootfs.ext4, release.
#
# The image holds nothing of this project. Modules, provider and tests come in
# at every start on a second disk (see scripts/vm), so an edit never costs an
# image. --path: only print where the image is or would be.

. "$(dirname "$(readlink -f "$0")")/lib.sh"

PACKAGES=(
	# base
	kmod iproute2 procps psmisc iputils-ping ethtool pciutils tcpdump strace
	gdb-minimal less file python3 e2fsprogs
	# RDMA
	rdma-core ibverbs-utils ibverbs-providers rdmacm-utils infiniband-diags
	perftest qperf python3-pyverbs libfabric-bin ucx-utils iperf3
	# storage over RDMA
	nvme-cli fio srptools nfs-common nfs-kernel-server open-iscsi targetcli-fb
	# what libraries and applications make of it
	openmpi-bin libopenmpi-dev python3-mpi4py mpich libmpich-dev
	libucx-dev libfabric-dev netperf sockperf netcat-openbsd
	# kbuild and verbs programs must build in the guest, too
	gcc make libc6-dev libibverbs-dev librdmacm-dev
)
# What the initrd loads to reach the root file system.
INITRD_MODULES='virtio_pci virtio_blk ext4 virtio_console'
# What most runs load after that. Decompressing and checking the signature of a
# module is slow without KVM, so these (and the initrd's) lie there plain.
HOT_MODULES='virtio_net virtio_rng rdma_rxe rdma_ucm ib_uverbs ib_umad nvme_rdma nvmet_rdma'

case ${1:-} in
-h|--help) usage; exit 0 ;;
''|--path|--assemble) ;;
*) die "unknown option $1, see --help" ;;
esac

br=$(buildroot_dir)
release=$(find "$br/usr/src" -maxdepth 1 -name 'linux-headers-*-amd64' -printf '%f\n' |
	sed 's/^linux-headers-//' | sort -V | tail -n 1)
[ -n "$release" ] || die "no kernel headers in the build root"
PACKAGES+=("linux-image-$release" "linux-headers-$release")
guest=$QHCA_TOP/scripts/guest

# Options that keep dpkg from work that nobody uses: no initramfs (we bring our
# own), no manual pages, no fsync.
bootstrap()
{
	local root=$1 mirror divert
	divert="dpkg-divert --quiet --local --rename --divert /usr/sbin/update-initramfs.real"
	mirror=$(debian_mirror)
	# shellcheck disable=SC2016 # mmdebstrap expands $1
	as_root unshare --mount --propagation private \
		mmdebstrap --mode=root --variant=minbase \
		--aptopt='Acquire::Languages "none"' \
		--aptopt='Acquire::Retries "3"' \
		--dpkgopt=force-unsafe-io \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		--essential-hook="chroot \"\$1\" $divert --add /usr/sbin/update-initramfs" \
		--essential-hook='ln -s /bin/true "$1/usr/sbin/update-initramfs"' \
		--include="$(IFS=,; echo "${PACKAGES[*]}")" \
		"$QHCA_SUITE" "$root" "deb $mirror $QHCA_SUITE main"
}

# One throw-away machine with a root password of none.
configure()
{
	local root=$1
	echo qhca >"$root/etc/hostname"
	printf '127.0.0.1 localhost qhca\n::1 localhost\n' >"$root/etc/hosts"
	rm -f "$root/etc/resolv.conf"
	mkdir -p "$root/opt/qhca"
	# pyverbs' tests come compressed in part; make a copy that runs.
	mkdir -p "$root/opt/pyverbs"
	cp -r "$root/usr/share/doc/rdma-core/tests" "$root/opt/pyverbs/"
	find "$root/opt/pyverbs" -name '*.gz' -exec gunzip {} +
	plain_modules "$root"
}

# depends MODULE…: their files and those of what they need, in loading order.
depends()
{
	local root=$1 module
	shift
	for module; do
		chroot "$root" modprobe -S "$release" --show-depends "$module"
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

plain_modules()
{
	local root=$1
	# strip drops the signature, too
	# shellcheck disable=SC2086,SC2016 # two lists; expands inside
	depends "$root" $INITRD_MODULES $HOT_MODULES | sed "s|^|$(br_path "$root")|" |
		"$QHCA_TOP/scripts/buildroot.sh" --root -- sh -ec '
			while read -r path; do
				[ "${path%.xz}" = "$path" ] || xz -d "$path"
				strip --strip-debug "${path%.xz}"
			done'
	chroot "$root" depmod "$release"
}

# The kernel proper out of the bzImage: QEMU starts it through its PVH entry,
# and the guest is spared decompressing itself (a second or more without KVM).
extract_kernel()
{
	local root=$1 out=$2 offset
	cp "$root/boot/vmlinuz-$release" "$out/vmlinuz"
	offset=$(LC_ALL=C grep -abo -m1 -P '\x28\xb5\x2f\xfd' "$out/vmlinuz" | head -n 1 | cut -d: -f1)
	if [ -n "$offset" ]; then
		tail -c "+$((offset + 1))" "$out/vmlinuz" |
			chroot "$br" zstd -dc >"$out/vmlinux" 2>/dev/null || :
	fi
	[ "$(head -c 4 "$out/vmlinux" | tail -c 3)" = ELF ] || rm -f "$out/vmlinux"
}

# What the initrd mounts, with one command. /root/dev comes from a second mount
# of the one devtmpfs there is.
fstab()
{
	cat <<-'FSTAB'
	devtmpfs  /dev                     devtmpfs  defaults           0 0
	/dev/vda  /root                    ext4      noatime            0 0
	devtmpfs  /root/dev                devtmpfs  defaults           0 0
	proc      /root/proc               proc      defaults           0 0
	sysfs     /root/sys                sysfs     defaults           0 0
	debugfs   /root/sys/kernel/debug   debugfs   defaults           0 0
	tmpfs     /root/run                tmpfs     mode=755           0 0
	tmpfs     /root/tmp                tmpfs     mode=1777          0 0
	FSTAB
}

# A 2 MB initrd: busybox, the modules below the root disk, a 20-line script.
make_initrd()
{
	local root=$1 out=$2 work path modules
	work=$(mktemp -d "$QHCA_CACHE/tmp/initrd.XXXXXX")
	modules=$work/lib/modules/$release
	mkdir -p "$work/bin" "$work/etc" "$work/dev" "$work/proc" "$work/root" "$modules"
	cp "$br/usr/bin/busybox" "$work/bin/busybox"
	install -m 755 "$guest/initrd-init.sh" "$work/init"
	fstab >"$work/etc/fstab"
	# All names, in order: busybox's modprobe knows no soft dependencies
	# (ext4 needs crc32c).
	# shellcheck disable=SC2086 # a list
	depends "$root" $INITRD_MODULES | while read -r path; do
		cp "$root$path" "$modules/"
		basename "$path" .ko >>"$work/etc/modules"
	done
	cp "$root/lib/modules/$release/modules.builtin" "$modules/"
	# depmod of the build root, at a path it can see.
	"$QHCA_TOP/scripts/buildroot.sh" --root -- depmod -b "$(br_path "$work")" "$release"
	( cd "$work" && find . | cpio --quiet -o -H newc | gzip -1 ) >"$out"
	rm -rf "$work"
}

# Everything below runs as root, in one go: see the call of this script there.
assemble()
{
	local tmp=$1 root=$1/root
	configure "$root"
	make_initrd "$root" "$tmp/initrd"
	extract_kernel "$root" "$tmp"
	echo "$release" >"$tmp/release"
	cp "$root/var/lib/dpkg/status" "$tmp/packages"
	rm -rf "${root:?}/boot" "$root/var/cache/apt" "$root/var/lib/apt/lists"
	truncate -s 4G "$tmp/rootfs.ext4"
	# No journal: the disk is a snapshot that is thrown away with the VM.
	mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -E lazy_itable_init=1 \
		-L qhca -d "$root" "$tmp/rootfs.ext4"
	rm -rf --one-file-system "$root"
	chown -R "$2" "$tmp"
}

make_image()
{
	local tmp=$QHCA_CACHE/tmp/image-$key
	have "$OUT" && return
	"$QHCA_TOP/scripts/host-deps.sh"
	as_root rm -rf --one-file-system "$tmp"
	mkdir -p "$tmp"
	if ! run_step "guest packages" bootstrap "$tmp/root"; then
		log "if the mirror has moved on from $release: make clean-buildroot"
		return 1
	fi
	run_step "guest image" as_root env HOME="$HOME" QHCA_CACHE="$QHCA_CACHE" \
		"$0" --assemble "$tmp" "$(id -u):$(id -g)"
	publish "$tmp" "$OUT"
}

# What the image depends on: the lists above, the initrd's script, and the
# functions that make it (not this file: a comment costs no image).
key=$(hash_text "$QHCA_SUITE" "${PACKAGES[@]}" "$INITRD_MODULES" "$HOT_MODULES" \
	"$(hash_tree "$guest/initrd-init.sh")" "$(declare -f bootstrap configure depends \
	plain_modules extract_kernel fstab make_initrd assemble)")
OUT=$QHCA_CACHE/image-$key
if [ "${1:-}" = --path ]; then
	echo "$OUT"
	exit 0
fi
if [ "${1:-}" = --assemble ]; then	# ourselves again, now as root
	assemble "$2" "$3"
	exit 0
fi
have "$OUT" || with_lock "image-$key" make_image
cache_trim image 3
echo "$OUT"
