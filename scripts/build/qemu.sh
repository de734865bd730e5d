#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# qemu.sh [--debug | --tsan] [--hostile]
# qemu.sh --unpack DIR | --into DIR
#
# Build QEMU from Debian's source with the qhca device in it, where beside.sh will not do;
# print the directory with the result. DIR/qemu-system-x86_64, DIR/qemu-qtest, which is the
# same, and DIR/qemu-img there run on any Linux machine without privileges: they bring their
# own loader, libraries and firmware.
# DIR/python has QEMU's Python packages of the same version: qemu.qmp, qemu.machine.
#
#   --debug      with AddressSanitizer and UBSan (a tree of its own)
#   --tsan       with ThreadSanitizer (a tree of its own)
#   --hostile    with a device that can be told to deceive its driver, for tests
#   --unpack DIR  only its source, as Debian has it, into the new directory DIR/qemu
#   --into DIR    only the device into the QEMU source in DIR
#
# Two caches: the configured and built tree, which depends only on the QEMU
# version, the options and the hooks below, and the finished binary, which
# depends on that and on qemu-device/ and include/qhca/. After an edit of the
# device only its own objects are compiled again.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

VERSION=10.0
OPTIONS=(
	--target-list=x86_64-softmmu --without-default-features
	--enable-system --enable-tcg --enable-kvm --enable-slirp
	--enable-virtfs --enable-attr --enable-tools --enable-seccomp
	--enable-fdt=system --enable-trace-backends=log --enable-malloc-trim
	--enable-werror --disable-install-blobs
)
TARGETS=(qemu-system-x86_64 qemu-img)
FIRMWARE='/usr/share/seabios/bios-256k.bin /usr/share/qemu/kvmvapic.bin
	/usr/share/qemu/linuxboot_dma.bin /usr/share/qemu/pvh.bin
	/usr/share/qemu/qboot.rom'
# Mistakes of this QEMU that our tests run into; each file says which.
PATCHES=("$QHCA_TOP"/qemu-device/patches/*.patch)

debug='' hostile='' action=build
while [ $# -gt 0 ]; do
	case $1 in
	--debug) debug=debug ;;
	--tsan) debug=tsan ;;
	--hostile) hostile=1 ;;
	--unpack|--into) action=${1#--} dir=$2; shift ;;
	-h|--help) usage; exit 0 ;;
	*) die "unknown option $1, see --help" ;;
	esac
	shift
done
case $debug in
debug) OPTIONS+=(--enable-debug-info --enable-asan --enable-ubsan) ;;
# It sees neither fences, which QEMU's own code has, nor the longjmp of _FORTIFY_SOURCE.
tsan) OPTIONS+=(--enable-debug-info --enable-tsan --disable-werror
	--extra-cflags='-Wno-tsan -D_FORTIFY_SOURCE=0') ;;
# -g1: line numbers for backtraces at a third of the size of -g.
*) OPTIONS+=(--disable-debug-info --extra-cflags=-g1) ;;
esac
in_buildroot() { "$QHCA_TOP/scripts/build/buildroot.sh" --qemu -- "$@"; }

# Prepare a QEMU tree to take the device in. This, the patches and the two overlaid directories are
# all that differs from Debian's QEMU.
hook_tree()
{
	local tree=$1 patch
	for patch in "${PATCHES[@]}"; do
		in_buildroot patch -d "$(br_path "$tree")" -p1 -s -f <"$patch" ||
			die "${patch##*/} does not apply"
	done
	grep -q "subdir('qhca')" "$tree/hw/net/meson.build" ||
		echo "subdir('qhca')" >>"$tree/hw/net/meson.build"
	grep -q 'source qhca/Kconfig' "$tree/hw/net/Kconfig" ||
		echo 'source qhca/Kconfig' >>"$tree/hw/net/Kconfig"
	grep -q "'hw/net/qhca'" "$tree/meson.build" ||
		sed -i "s|^\( *\)'hw/net/can',|&\n\1'hw/net/qhca',|" "$tree/meson.build"
	grep -q "'hw/net/qhca'" "$tree/meson.build" || die "no place for the trace-events hook"
}

# An empty device for the first build. It has the real one's configuration
# symbols: when those change, all of QEMU is compiled again.
placeholder()
{
	mkdir -p "$1/device" "$1/include"
	: >"$1/device/meson.build"
	cp "$QHCA_TOP/qemu-device/Kconfig" "$1/device/"
	echo '# no events' >"$1/device/trace-events"
}

stage_device()
{
	mkdir -p "$1/device" "$1/include"
	rsync -r --exclude=/tests/ --exclude=/beside/ --exclude=/qtest/ --exclude=/docs/ --exclude=/patches/ \
		--exclude='*.o' --exclude='*.d' --exclude='.*' "$QHCA_TOP/qemu-device/" "$1/device/"
	rsync -r --exclude='.*' "$QHCA_TOP/include/qhca/" "$1/include/"
	# In the header that all of the device includes: QEMU has no options for one
	# device that its sources can see.
	[ -z "$hostile" ] || sed -i '1i #define QHCA_HOSTILE 1' "$1/device/engine/engine.h"
}

# By content, with the time of the copy: ninja must see a file that went back
# to an older version as changed, and one merely touched as unchanged.
overlay()
{
	mkdir -p "$2/hw/net/qhca" "$2/include/qhca"
	rsync -rc --delete "$1/device/" "$2/hw/net/qhca/"
	rsync -rc --delete "$1/include/" "$2/include/qhca/"
}

base_key=$(hash_text "$QHCA_SUITE" "$VERSION" "${OPTIONS[@]}" "$(declare -f hook_tree)" \
	"$(cat "${PATCHES[@]}")")
TREE=$QHCA_CACHE/qemu-tree${debug:+-$debug}-$base_key
STEP_TAG=$base_key

fetch_source()
{
	in_buildroot true
	with_lock buildroot-apt run_step "Debian's package lists" \
		"$QHCA_TOP/scripts/build/buildroot.sh" --root -- apt-get -q update
	# shellcheck disable=SC2016 # expands inside
	run_step "QEMU source" in_buildroot sh -ec '
		cd "$1"
		apt-get -q source --only-source qemu
		mv qemu-"$2"*/ qemu
	' sh "$(br_path "$1")" "$VERSION"
}

make_base()
{
	local tmp=$TREE.tmp none
	have "$TREE" && return
	rm -rf "$tmp"
	mkdir -p "$tmp"
	fetch_source "$tmp"
	rm -f "$tmp"/*.tar.* "$tmp"/*.dsc
	hook_tree "$tmp/qemu"
	none=$(mktemp -d "$QHCA_CACHE/tmp/device.XXXXXX")
	placeholder "$none"
	overlay "$none" "$tmp/qemu"
	rm -rf "$none"
	# meson bakes the path in, so the tree is configured under its final
	# name; a tree without .complete counts as absent.
	rm -rf "$TREE"
	mv -T "$tmp" "$TREE"
	# shellcheck disable=SC2016
	run_step "QEMU configure" in_buildroot sh -ec '
		mkdir -p "$1/build"; cd "$1/build"; shift; ../configure "$@"
	' sh "$(br_path "$TREE/qemu")" "${OPTIONS[@]}"
	run_step "QEMU build, once${debug:+ (sanitizers)}" in_buildroot \
		ninja -C "$(br_path "$TREE/qemu/build")" "${TARGETS[@]}"
	touch "$TREE/.complete"
}

# collect DIR FINAL: the binary with its loader, libraries and firmware, and what
# Python programs drive it with.
collect()
{
	# shellcheck disable=SC2016,SC2086 # expands inside; FIRMWARE is a list
	in_buildroot sh -ec '
		build=$1 out=$2
		shift 2
		mkdir -p "$out/lib" "$out/pc-bios" "$out/python/qemu"
		cp -r "$build/../python/qemu/machine" "$build/../python/qemu/qmp" "$out/python/qemu"
		for program in qemu-system-x86_64 qemu-img; do
			cp "$build/$program" "$out/$program.bin"
			ldd "$out/$program.bin"
		done | grep -o "/[^ ]*" | sort -u | xargs cp -L -t "$out/lib"
		cp -L "$@" "$out/pc-bios"
	' sh "$(br_path "$TREE/qemu/build")" "$(br_path "$1")" $FIRMWARE
	wrapper "$1" "$2" qemu-system-x86_64 "-L \"\$d/pc-bios\""
	wrapper "$1" "$2" qemu-img ''
	ln -s qemu-system-x86_64 "$1/qemu-qtest"
}

# wrapper DIR FINAL PROGRAM OPTIONS
wrapper()
{
	[ -z "$debug" ] || own_loader "$1" "$2" "$3"
	wrap "$1" "$3" "$4" ${debug:+own}
}

make_final()
{
	local stage=$1 out=$2 tmp=$2.tmp
	have "$out" && return
	make_base
	overlay "$stage" "$TREE/qemu"
	QHCA_LOG_LINES=60 run_step "QEMU build with the device" in_buildroot \
		ninja -C "$(br_path "$TREE/qemu/build")" "${TARGETS[@]}"
	rm -rf "$tmp"
	mkdir -p "$tmp"
	collect "$tmp" "$out"
	publish "$tmp" "$out"
}

case $action in
unpack)
	mkdir -p "$dir"
	fetch_source "$dir"
	exit 0 ;;
into)
	dir=$(readlink -e "$dir") stage=$(mktemp -d "$QHCA_CACHE/tmp/device.XXXXXX")
	PATCHES=()
	hook_tree "$dir"
	stage_device "$stage"
	overlay "$stage" "$dir"
	rm -rf "$stage"
	exit 0 ;;
esac
stage=$(mktemp -d "$QHCA_CACHE/tmp/device.XXXXXX")
trap 'rm -rf "$stage"' EXIT
stage_device "$stage"
out=$QHCA_CACHE/qemu-bin${debug:+-$debug}-$(hash_text "$base_key" "$(declare -f collect wrapper wrap own_loader)" "$(hash_tree "$stage")")
have "$out" || with_lock "qemu-$base_key" make_final "$stage" "$out"
cache_trim qemu-bin 10
echo "$out"
