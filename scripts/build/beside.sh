#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# beside.sh [--arch arm64|s390x] [--hostile] [--object]
#
# Build the device as one object, qhca.so, that the loader puts beside Debian's own QEMU;
# print the directory with both. DIR/qemu-system-x86_64 and DIR/qemu-img run on any Linux machine
# without privileges, like stock-qemu.sh's, and nothing of QEMU is compiled.
#
#   --arch     DIR/qemu-system-aarch64 or -s390x in its place; the object is the same
#   --hostile  with a device that can be told to deceive its driver, for tests
#   --object   only the object, in DIR/qhca.so
#
# DIR/qemu-qtest is that QEMU with the accelerator of qtests as well; DIR/python has QEMU's
# Python packages of the same version: qemu.qmp, qemu.machine.
#
# LD_PRELOAD would travel into the processes that QEMU starts; the loader's --preload does not.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

object='' hostile='' arch=()
while [ $# -gt 0 ]; do
	case $1 in
	--arch) arch=(--arch "$2"); shift ;;
	--hostile) hostile=true ;;
	--object) object=1 ;;
	-h|--help) usage; exit 0 ;;
	*) usage >&2; exit 2 ;;
	esac
	shift
done

make_object()
{
	local tree=$QHCA_CACHE/beside-tree-$base_key tmp=$so.tmp
	have "$so" && return
	device_sources "$tree"
	# shellcheck disable=SC2016
	run_step "qhca.so" in_buildroot sh -ec '
		tree=$1
		shift
		[ -e "$tree/build/build.ninja" ] ||
			meson setup "$@" "$tree/build" "$tree/src/qemu-device/beside"
		ninja -C "$tree/build"
	' sh "$(br_path "$tree")" -Dqemu="$(br_path "$source")" \
		"-Dhostile=${hostile:-false}"
	rm -rf "$tmp"
	mkdir -p "$tmp"
	cp "$tree"/build/*.so "$tmp"
	publish "$tmp" "$so"
}

make_final()
{
	local tmp=$out.tmp
	have "$out" && return
	rm -rf "$tmp"
	cp -al "$stock" "$tmp"
	rm -f "$tmp/.complete" "$tmp/$system"
	cp -r "$source/python" "$tmp"
	cp -l "$so"/*.so "$tmp"
	# shellcheck disable=SC2016 # expands when it runs
	wrap "$tmp" "$system" '-L "$d/pc-bios"' '--preload "$d/qhca.so"'
	ln "$tmp/$system.bin" "$tmp/qemu-qtest.bin"
	# shellcheck disable=SC2016
	wrap "$tmp" qemu-qtest '-L "$d/pc-bios"' '--preload "$d/qhca.so:$d/qtest.so"'
	publish "$tmp" "$out"
}

# In the background: it needs no build root.
if [ -z "$object" ]; then
	fetched=$(mktemp "$QHCA_CACHE/tmp/beside.XXXXXX")
	trap 'rm -f "$fetched"' EXIT
	"$QHCA_TOP/scripts/build/stock-qemu.sh" --stable "${arch[@]}" >"$fetched" &
	fetching=$!
fi
source=$("$QHCA_TOP/scripts/build/qemu-source.sh")
base_key=$(hash_text "$source" "$hostile")
STEP_TAG=$base_key
so=$QHCA_CACHE/qhca-so-$(hash_text "$base_key" \
	"$(hash_tree "$QHCA_TOP"/qemu-device/*.[ch] "$QHCA_TOP"/qemu-device/{beside,common,engine,meson.build,trace-events} \
		"$QHCA_TOP/include/qhca")")
have "$so" || with_lock "beside-$base_key" make_object
cache_trim qhca-so 10
[ -z "$object" ] || { echo "$so"; exit 0; }
wait "$fetching" || exit
stock=$(<"$fetched")
system=$(cd "$stock" && echo qemu-system-*.bin)
system=${system%.bin}
out=$QHCA_CACHE/beside-$(hash_text "$so" "$stock" "$(declare -f make_final wrap)")
have "$out" || with_lock beside make_final
cache_trim beside 10
echo "$out"
