#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# arm64.sh image|provider|selftests
# arm64.sh modules [KERNEL]
#
# What a machine of another architecture needs: arm64, with Debian's kernel for pages of
# 16 KiB. Prints the directory with it.
#
#   image      vmlinuz, initrd, rootfs.ext4, release; and sysroot, to compile against
#   modules, provider, selftests  cross compiled, as modules.sh and the others do natively;
#              modules for the kernel built in KERNEL instead, by kernel.sh --arm64
#
# No program of that architecture runs here: packages are unpacked, not installed.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"
. "$QHCA_TOP/scripts/build/initrd.sh"

ARCH=arm64 FLAVOUR=arm64-16k TRIPLET=aarch64-linux-gnu
PACKAGES=(
	base-files base-passwd netbase busybox-static bash dash coreutils util-linux mount
	grep sed gawk findutils diffutils procps psmisc hostname tar kmod e2fsprogs
	iproute2 iputils-ping ethtool pciutils less python3
	rdma-core ibverbs-utils ibverbs-providers rdmacm-utils perftest
	# to compile against
	libc6-dev libibverbs-dev librdmacm-dev libnl-3-dev libnl-route-3-dev libudev-dev
)

case ${1:-} in
-h|--help) usage; exit 0 ;;
image|modules|provider|selftests|--assemble) ;;
*) usage >&2; exit 2 ;;
esac

# The release of the build root's kernel headers: their common part and programs are there.
br=$(buildroot_dir)
release=$(find "$br/usr/src" -maxdepth 1 -name 'linux-headers-*-amd64' -printf '%f\n' |
	sed 's/^linux-headers-//; s/-amd64$//' | sort -V | tail -n 1)
[ -n "$release" ] || die "no kernel headers in the build root"
PACKAGES+=("linux-image-$release-$FLAVOUR" "linux-headers-$release-$FLAVOUR")
common=$release
release+=-$FLAVOUR

in_cross() { "$QHCA_TOP/scripts/build/buildroot.sh" --arm64 -- "$@"; }

# ---- image

bootstrap()
{
	local root=$1 mirror
	mirror=$(debian_mirror)
	as_root unshare --mount --propagation private \
		mmdebstrap --mode=root --variant=extract --architectures=$ARCH --skip=check/qemu \
		--aptopt='Acquire::Languages "none"' \
		--aptopt='Acquire::Retries "3"' \
		--aptopt='APT::Install-Recommends "false"' \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		--include="$(IFS=,; echo "${PACKAGES[*]}")" \
		"$QHCA_SUITE" "$root" "deb $mirror $QHCA_SUITE main"
}

# What maintainer scripts would have done, as far as the guest misses it.
configure()
{
	local root=$1 name
	for name in passwd group; do
		cp "$root/usr/share/base-passwd/$name.master" "$root/etc/$name"
	done
	ln -sf gawk "$root/usr/bin/awk"
	[ -e "$root/usr/bin/sh" ] || ln -s dash "$root/usr/bin/sh"
	echo qhca >"$root/etc/hostname"
	printf '127.0.0.1 localhost qhca\n::1 localhost\n' >"$root/etc/hosts"
	mkdir -p "$root"/{dev,proc,sys,run,tmp,root} "$root/opt/qhca"
	index_modules "$root" "$release"
	# shellcheck disable=SC2016,SC2086 # expands inside; two lists
	depends "$root" "$release" $INITRD_MODULES $HOT_MODULES |
		"$QHCA_TOP/scripts/build/buildroot.sh" --arm64 --root -- sh -ec '
			while read -r path; do
				case $path in
				*.xz) xz -d "$path" ;;
				esac
				'$TRIPLET'-strip --strip-debug "${path%.xz}"
			done'
	index_modules "$root" "$release"
}

# Everything below runs as root, in one go: see the call of this script there.
assemble()
{
	local tmp=$1 root=$1/root
	configure "$root"
	# make_initrd() takes the busybox from there, and must take that of the machine.
	( buildroot_dir() { echo "$root"; }; make_initrd "$root" "$release" "$tmp/initrd" )
	cp "$root/boot/vmlinuz-$release" "$tmp/vmlinuz"
	echo "$release" >"$tmp/release"
	# To compile against. The programs that build modules are the build root's.
	mkdir -p "$tmp/sysroot/usr/lib"
	mv "$root/usr/include" "$root/usr/src" "$tmp/sysroot/usr/"
	mv "$root/usr/lib/linux" "$tmp/sysroot/usr/lib/"
	cp -a "$root/usr/lib/$TRIPLET" "$tmp/sysroot/usr/lib/"
	cp -a "$root/lib" "$tmp/sysroot/lib"
	cp -a "$root"/usr/lib/ld-linux-* "$tmp/sysroot/usr/lib/"
	install -D "$root/usr/bin/busybox" "$tmp/sysroot/usr/bin/busybox"
	ln -s "/usr/lib/linux-kbuild-$common" "$tmp/sysroot/usr/lib/"
	rm -rf "${root:?}/boot" "$root/var/cache/apt" "$root/var/lib/apt/lists" \
		"$root/usr/lib/linux-kbuild-$common"
	truncate -s 3G "$tmp/rootfs.ext4"
	mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -E lazy_itable_init=1 \
		-L qhca -d "$root" "$tmp/rootfs.ext4"
	rm -rf --one-file-system "$root"
	chown -hR "$2" "$tmp"
}

make_image()
{
	local tmp=$QHCA_CACHE/tmp/arm64-image-$key
	have "$IMAGE" && return
	"$QHCA_TOP/scripts/build/host-deps.sh"
	in_cross true
	as_root rm -rf --one-file-system "$tmp"
	mkdir -p "$tmp"
	if ! run_step "packages for $FLAVOUR" bootstrap "$tmp/root"; then
		log "if the mirror has moved on from $release: make clean-buildroot"
		return 1
	fi
	run_step "image for $FLAVOUR" as_root env HOME="$HOME" QHCA_CACHE="$QHCA_CACHE" \
		"$0" --assemble "$tmp" "$(own_ids)"
	publish "$tmp" "$IMAGE"
}

key=$(hash_text "$QHCA_SUITE" "${PACKAGES[@]}" "$INITRD_MODULES" "$HOT_MODULES" \
	"$(hash_tree "$QHCA_TOP/selftests/guest/initrd-init.sh")" "$(declare -f bootstrap \
	configure depends fstab make_initrd assemble)")
IMAGE=$QHCA_CACHE/arm64-image-$key
SYSROOT=$IMAGE/sysroot

# ---- what is compiled; the trees stay, so an edit compiles only what it touches

compile_modules()
{
	local kdir=$SYSROOT/usr/src/linux-headers-$release
	[ -z "$own" ] || kdir=$own/build
	in_cross make -j "$(nproc)" -C "$(br_path "$TREE")" modules QHCA_TESTS=1 \
		KDIR="$(br_path "$kdir")" ARCH=$ARCH CROSS_COMPILE=$TRIPLET-
}

# compile_provider OUT
compile_provider()
{
	[ -e "$TREE/src" ] || "$QHCA_TOP/scripts/build/provider.sh" --unpack "$TREE"
	[ -e "$TREE/src/providers/qhca" ] || "$QHCA_TOP/scripts/build/provider.sh" --into "$TREE/src"
	rsync -rc --delete "$stage/provider/" "$TREE/src/providers/qhca/"
	# shellcheck disable=SC2016 # expands inside
	in_cross sh -ec '
		mkdir -p "$1/build"
		cd "$1/build"
		export PKG_CONFIG_SYSROOT_DIR=$2 PKG_CONFIG_LIBDIR=$2/usr/lib/$3/pkgconfig
		[ -e build.ninja ] || cmake -GNinja -DNO_MAN_PAGES=1 -DNO_PYVERBS=1 \
			-DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_SKIP_RPATH=1 \
			-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
			-DCMAKE_C_COMPILER=$3-gcc -DCMAKE_SYSROOT="$2" \
			-DCMAKE_LIBRARY_ARCHITECTURE=$3 ../src
		ninja $(ninja -t targets all | grep -o "^lib/libqhca-rdmav[0-9]*.so")
	' sh "$(br_path "$TREE")" "$(br_path "$SYSROOT")" "$TRIPLET"
}

compile_selftests()
{
	in_cross make -j "$(nproc)" -C "$(br_path "$TREE/selftests")" \
		CC="$TRIPLET-gcc --sysroot=$(br_path "$SYSROOT")" CFLAGS='-O2 -g -Werror' \
		all install INSTALL_PATH="$(br_path "$1")"
}

# What each is made of, without what a build has left beside it.
stage_modules()
{
	rsync -rR --exclude='.*' --exclude='*.o' --exclude='*.ko' --exclude='*.mod*' \
		"$QHCA_TOP"/./{Kbuild,Makefile,drivers,include,selftests/kmod} "$stage/"
}

stage_provider()
{
	mkdir -p "$stage/provider/include"
	rsync -r --exclude='.*' "$QHCA_TOP/providers/qhca/" "$stage/provider/"
	rsync -r --exclude='.*' "$QHCA_TOP/include/qhca" "$QHCA_TOP/include/uapi" \
		"$stage/provider/include/"
}

stage_selftests()
{
	rsync -rp --exclude='.*' --exclude='*.o' --exclude=/selftests/guest \
		"$QHCA_TOP/selftests" "$QHCA_TOP/include" "$stage/"
}

make_compiled()
{
	local tmp=$out.tmp
	have "$out" && return
	mkdir -p "$TREE"
	[ "$what" = provider ] || rsync -rpc --delete --filter='risk *.[ch]' \
		--filter='protect *' "$stage/" "$TREE/"
	rm -rf "$tmp"
	mkdir -p "$tmp"
	run_step "$what for $FLAVOUR" "compile_$what" "$tmp"
	case $what in
	modules) find "$TREE" -name '*.ko' -exec cp -t "$tmp" {} + ;;
	provider)
		cp -L "$TREE"/build/lib/libqhca-rdmav*.so "$tmp/"
		echo "driver qhca" >"$tmp/qhca.driver" ;;
	esac
	publish "$tmp" "$out"
}

compiled()
{
	what=$1
	have "$IMAGE" || with_lock "arm64-image-$key" make_image
	stage=$(mktemp -d "$QHCA_CACHE/tmp/arm64.XXXXXX")
	trap 'rm -rf "$stage"' EXIT
	"stage_$what"
	TREE=$QHCA_CACHE/arm64-$what-tree-$key${own:+-own}
	out=$QHCA_CACHE/arm64-$what-$(hash_text "$key" "$(hash_tree "$stage")" "$own" \
		"$(declare -f "compile_$what" make_compiled)")
	have "$out" || with_lock "arm64-$what-$key" make_compiled
	cache_trim "arm64-$what" 4
	echo "$out"
}

case $1 in
--assemble) assemble "$2" "$3" ;;	# ourselves again, now as root
image)
	have "$IMAGE" || with_lock "arm64-image-$key" make_image
	cache_trim arm64-image 2
	echo "$IMAGE" ;;
*)
	own=${2:-}
	compiled "$1" ;;
esac
