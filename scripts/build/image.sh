#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# image.sh [--package=NAME…] [--path]
#
# Make the guest: a Debian root file system with the kernel whose headers are
# in the build root, rdma-core, pyverbs with its tests, perftest and friends.
# Prints the directory with vmlinux (or vmlinuz), initrd, rootfs.ext4, release.
#
# The image holds nothing of this project. Modules, provider and tests come in
# at every start on a second disk (see scripts/vm), so an edit never costs an
# image. With --package it holds more of Debian; each set of packages is an image of its
# own. --path: only print where the image is or would be.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"
. "$QHCA_TOP/scripts/build/initrd.sh"

PACKAGES=(
	# base
	kmod iproute2 procps psmisc iputils-ping ethtool pciutils tcpdump strace
	gdb-minimal less file python3 e2fsprogs
	# RDMA
	rdma-core ibverbs-utils ibverbs-providers rdmacm-utils infiniband-diags
	perftest qperf python3-pyverbs libfabric-bin ucx-utils iperf3
	# storage over RDMA
	nvme-cli fio srptools nfs-common nfs-kernel-server open-iscsi targetcli-fb
	ksmbd-tools diod
	# what libraries and applications make of it
	openmpi-bin libopenmpi-dev python3-mpi4py mpich libmpich-dev
	libucx-dev libfabric-dev netperf sockperf netcat-openbsd
	# for the clock of the network card
	linuxptp
	# kbuild and verbs programs must also build in the guest
	gcc make libc6-dev libibverbs-dev librdmacm-dev
)
more=()
while [[ ${1:-} == --package=* ]]; do
	more+=("${1#*=}")
	shift
done
case ${1:-} in
-h|--help) usage; exit 0 ;;
''|--path|--assemble) ;;
*) die "unknown option $1, see --help" ;;
esac

# In any order they are the same image.
[ ${#more[@]} = 0 ] || mapfile -t -O ${#PACKAGES[@]} PACKAGES < <(printf '%s\n' "${more[@]}" | sort -u)
guest=$QHCA_TOP/selftests/guest

# The kernel whose headers are in the build root.
headers()
{
	local br
	br=$(buildroot_dir)
	find "$br/usr/src" -maxdepth 1 -name 'linux-headers-*-amd64' -printf '%f\n' |
		sed 's/^linux-headers-//' | sort -V | tail -n 1
}

# bootstrap ROOT PACKAGE…: the list, and these. With options that keep dpkg from useless work: no
# initramfs (we bring our own), no manual pages, no fsync.
bootstrap()
{
	local root=$1 mirror divert
	shift
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
		--include="$(IFS=,; echo "${PACKAGES[*]},$*")" \
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
	plain_modules "$root" "$release"
}

# Everything below runs as root, in one go: see the call of this script there.
assemble()
{
	local tmp=$1 root=$1/root
	configure "$root"
	make_initrd "$root" "$release" "$tmp/initrd"
	cp "$root/boot/vmlinuz-$release" "$tmp/vmlinuz"
	extract_kernel "$tmp"
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

# The first image begins before there is a build root: with the kernel of the moment, which the
# build root has as well if both come from the mirror at about the same time.
make_image()
{
	local tmp kernel
	if known; then
		have "$OUT" && return
		kernel=("linux-image-$release" "linux-headers-$release")
	else
		kernel=(linux-image-amd64 linux-headers-amd64)
	fi
	tmp=$QHCA_CACHE/tmp/image-$(hash_text "${more[@]}" "${kernel[@]}")
	"$QHCA_TOP/scripts/build/host-deps.sh"
	as_root rm -rf --one-file-system "$tmp"
	mkdir -p "$tmp"
	if ! run_step "guest packages" bootstrap "$tmp/root" "${kernel[@]}"; then
		log "if the mirror has moved on from ${release:-its index}: make clean-buildroot"
		return 1
	fi
	release=$(headers)
	[ -e "$tmp/root/boot/vmlinuz-$release" ] ||
		die "the mirror has moved on from $release meanwhile: once more"
	result
	run_step "guest image" as_root env HOME="$HOME" QHCA_CACHE="$QHCA_CACHE" \
		"$0" --assemble "$tmp" "$(own_ids)" "$release"
	publish "$tmp" "$OUT"
}

# The image depends on this: the lists above, the initrd's script, and the functions that make it
# (not this file: a comment costs no image).
result()
{
	local key
	[ -n "$release" ] || die "no kernel headers in the build root"
	key=$(hash_text "$QHCA_SUITE" "${PACKAGES[@]}" "$release" "$INITRD_MODULES" "$HOT_MODULES" \
		"$(hash_tree "$guest/initrd-init.sh")" "$(declare -f bootstrap configure depends \
		plain_modules extract_kernel fstab make_initrd assemble)")
	OUT=$QHCA_CACHE/image-$key
}

# Whether there is a build root, which says what the image is.
known()
{
	"$QHCA_TOP/scripts/build/buildroot.sh" --ready >/dev/null || return
	release=$(headers)
	result
}

if [ "${1:-}" = --assemble ]; then	# ourselves again, now as root
	release=$4
	assemble "$2" "$3"
	exit 0
fi
release='' OUT=''
if [ "${1:-}" = --path ]; then
	release=$(headers)
	result
else
	{ known && have "$OUT"; } || with_lock "image-$(hash_text "${PACKAGES[@]}")" make_image
	cache_trim image 4
fi
echo "$OUT"
