#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# cross.sh ARCH image|provider|selftests
# cross.sh ARCH modules [KERNEL]
#
# The parts of a machine of another architecture. ARCH is arm64, with Debian's kernel for pages
# of 16 KiB, or s390x, which is big-endian, with what the coming release of Debian has: of the
# stable one some mirrors lack parts for s390x. Prints the directory with it.
#
#   image      vmlinuz, initrd, rootfs.ext4, release; and sysroot, to compile against
#   modules, provider, selftests  cross compiled, as modules.sh and the others do natively;
#              modules for the kernel built in KERNEL instead, by kernel.sh --arm64
#
# No program of that architecture runs here: packages are unpacked, not installed.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"
. "$QHCA_TOP/scripts/build/initrd.sh"

PACKAGES=(
	base-files base-passwd netbase libc-bin busybox-static bash dash coreutils util-linux mount
	grep sed gawk findutils diffutils procps psmisc hostname tar kmod e2fsprogs
	iproute2 iputils-ping ethtool pciutils less python3
	rdma-core ibverbs-utils ibverbs-providers rdmacm-utils perftest
	# to compile against
	libc6-dev libibverbs-dev librdmacm-dev libnl-3-dev libnl-route-3-dev libudev-dev
)

# Debian's name of the kernel and the compiler's of the architecture; Linux' own of it; the
# release, and which build root has its kernel headers.
case ${1:-} in
arm64)
	FLAVOUR=arm64-16k TRIPLET=aarch64-linux-gnu KARCH=arm64
	SUITE=$QHCA_SUITE ROOT=() ;;
s390x)
	FLAVOUR=s390x TRIPLET=s390x-linux-gnu KARCH=s390
	SUITE=forky ROOT=(--kernel forky) ;;
-h|--help) usage; exit 0 ;;
*) usage >&2; exit 2 ;;
esac
ARCH=$1
shift
case ${1:-} in
image|modules|provider|selftests|--assemble) ;;
*) usage >&2; exit 2 ;;
esac

# The release of the build root's kernel headers: their common part and programs are there.
br=$("$QHCA_TOP/scripts/build/buildroot.sh" "${ROOT[@]}" --path)
release=$(find "$br/usr/src" -maxdepth 1 -name 'linux-headers-*-amd64' -printf '%f\n' |
	sed 's/^linux-headers-//; s/-amd64$//' | sort -V | tail -n 1)
[ -n "$release" ] || die "no kernel headers in the build root"
PACKAGES+=("linux-image-$release-$FLAVOUR" "linux-headers-$release-$FLAVOUR")
common=$release
release+=-$FLAVOUR

in_cross() { "$QHCA_TOP/scripts/build/buildroot.sh" "${ROOT[@]}" "--$ARCH" -- "$@"; }

# ---- image

bootstrap()
{
	local root=$1 mirror options=()
	mirror=$(debian_mirror)
	# The mirror of an unreleased suite may stand still.
	[ "$SUITE" = "$QHCA_SUITE" ] || options=(--aptopt='Acquire::Check-Valid-Until "false"')
	as_root unshare --mount --propagation private \
		mmdebstrap --mode=root --variant=extract --architectures="$ARCH" --skip=check/qemu \
		--aptopt='Acquire::Languages "none"' \
		--aptopt='Acquire::Retries "3"' \
		--aptopt='APT::Install-Recommends "false"' \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' "${options[@]}" \
		--include="$(IFS=,; echo "${PACKAGES[*]}")" \
		"$SUITE" "$root" "deb $mirror $SUITE main"
}

# Do the work of maintainer scripts that the guest needs.
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
	plain_modules "$root" "$release" $TRIPLET-strip "${ROOT[@]}" "--$ARCH"
}

# Everything below runs as root, in one go: see the call of this script there.
assemble()
{
	local tmp=$1 root=$1/root
	configure "$root"
	# make_initrd() takes the busybox from there, and must take the machine's.
	( buildroot_dir() { echo "$root"; }; make_initrd "$root" "$release" "$tmp/initrd" )
	mv "$root/boot/vmlinuz-$release" "$tmp/vmlinuz" 2>/dev/null ||
		mv "$root/lib/modules/$release/vmlinuz" "$tmp/vmlinuz"
	echo "$release" >"$tmp/release"
	# To compile against. The programs that build modules are the build root's.
	mkdir -p "$tmp/sysroot/usr/lib"
	mv "$root/usr/include" "$root/usr/src" "$tmp/sysroot/usr/"
	mv "$root/usr/lib/linux" "$tmp/sysroot/usr/lib/"
	cp -a "$root/usr/lib/$TRIPLET" "$tmp/sysroot/usr/lib/"
	cp -a "$root/lib" "$tmp/sysroot/lib"
	cp -a "$root"/usr/lib/ld*.so.1 "$tmp/sysroot/usr/lib/"
	install -D "$root/usr/bin/busybox" "$tmp/sysroot/usr/bin/busybox"
	ln -s "/usr/lib/linux-kbuild-$common" "$tmp/sysroot/usr/lib/"
	# Newer headers know where they are; these are elsewhere.
	# shellcheck disable=SC2016 # make expands it
	sed -i 's|^KBUILD_OUTPUT=.*|KBUILD_OUTPUT := $(CURDIR)|' \
		"$tmp/sysroot/usr/src/linux-headers-$release/Makefile"
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
	local tmp=$QHCA_CACHE/tmp/$ARCH-image-$key
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
		"$0" "$ARCH" --assemble "$tmp" "$(own_ids)"
	publish "$tmp" "$IMAGE"
}

key=$(hash_text "$SUITE" "${PACKAGES[@]}" "$INITRD_MODULES" "$HOT_MODULES" \
	"$(hash_tree "$QHCA_TOP/selftests/guest/initrd-init.sh")" "$(declare -f bootstrap \
	configure depends plain_modules fstab make_initrd assemble)")
IMAGE=$QHCA_CACHE/$ARCH-image-$key
SYSROOT=$IMAGE/sysroot

# ---- what is compiled; the trees stay, so an edit compiles only what it touches

compile_modules()
{
	local kdir=$SYSROOT/usr/src/linux-headers-$release
	[ -z "$own" ] || kdir=$own/build
	in_cross make -j "$(nproc)" -C "$(br_path "$TREE")" modules QHCA_TESTS=1 \
		KDIR="$(br_path "$kdir")" ARCH=$KARCH CROSS_COMPILE=$TRIPLET-
}

# compile_provider OUT
compile_provider()
{
	if [ ! -e "$TREE/unpacked" ]; then
		rm -rf "$TREE/src"
		"$QHCA_TOP/scripts/build/provider.sh" --release "$SUITE" --unpack "$TREE"
		"$QHCA_TOP/scripts/build/provider.sh" --into "$TREE/src"
		touch "$TREE/unpacked"
	fi
	rsync -rc --delete "$stage/provider/" "$TREE/src/providers/qhca/"
	# shellcheck disable=SC2016 # expands inside
	in_cross sh -ec '
		mkdir -p "$1/build"
		cd "$1/build"
		export PKG_CONFIG_SYSROOT_DIR=$2 PKG_CONFIG_LIBDIR=$2/usr/lib/$3/pkgconfig
		[ -e build.ninja ] || cmake -GNinja -DNO_MAN_PAGES=1 -DNO_PYVERBS=1 \
			-DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_SKIP_RPATH=1 \
			-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=${3%%-*} \
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

# Copy the sources of each, without the files that a build has left beside them.
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
	have "$IMAGE" || with_lock "$ARCH-image-$key" make_image
	stage=$(mktemp -d "$QHCA_CACHE/tmp/$ARCH.XXXXXX")
	trap 'rm -rf "$stage"' EXIT
	"stage_$what"
	TREE=$QHCA_CACHE/$ARCH-$what-tree-$key${own:+-own}
	out=$QHCA_CACHE/$ARCH-$what-$(hash_text "$key" "$(hash_tree "$stage")" "$own" \
		"$(declare -f "compile_$what" make_compiled)")
	have "$out" || with_lock "$ARCH-$what-$key" make_compiled
	cache_trim "$ARCH-$what" 4
	echo "$out"
}

case $1 in
--assemble) assemble "$2" "$3" ;;	# ourselves again, now as root
image)
	have "$IMAGE" || with_lock "$ARCH-image-$key" make_image
	cache_trim "$ARCH-image" 2
	echo "$IMAGE" ;;
*)
	own=${2:-}
	compiled "$1" ;;
esac
