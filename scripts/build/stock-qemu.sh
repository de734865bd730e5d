#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# stock-qemu.sh [--arm64]
#
# Fetch Debian's own QEMU, without the device, for machines that qhca-server serves; print
# the directory with it. DIR/qemu-system-x86_64 and DIR/qemu-img run on any Linux machine,
# as those of qemu.sh do.
#
# It is that of the backports: vfio-user-pci came with QEMU 10.1. qemu.qmp, which the
# launcher needs, is Debian's python3-qemu.qmp. --arm64: qemu-system-aarch64 instead.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

PACKAGES=(qemu-system-x86 qemu-utils seabios python3-qemu.qmp) SYSTEM=qemu-system-x86_64
FIRMWARE=(seabios/bios-256k.bin qemu/kvmvapic.bin qemu/linuxboot_dma.bin qemu/pvh.bin
	qemu/qboot.rom)
case ${1:-} in
'') ;;
# Such a machine starts a kernel without firmware.
--arm64) PACKAGES=(qemu-system-arm qemu-utils python3-qemu.qmp) SYSTEM=qemu-system-aarch64 FIRMWARE=() ;;
-h|--help) usage; exit 0 ;;
*) usage >&2; exit 2 ;;
esac

unpack()
{
	local mirror
	mirror=$(debian_mirror)
	as_root mmdebstrap --mode=root --variant=extract \
		--aptopt='Acquire::Languages "none"' --aptopt='Acquire::Retries "3"' \
		--aptopt="APT::Default-Release \"$QHCA_SUITE-backports\"" \
		--aptopt='APT::Install-Recommends "false"' \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--include="$(IFS=,; echo "${PACKAGES[*]}")" "$QHCA_SUITE" "$1" \
		"deb $mirror $QHCA_SUITE main" "deb $mirror $QHCA_SUITE-backports main"
}

collect()
{
	local root=$1 out=$2 libs=$1/usr/lib/x86_64-linux-gnu program
	mkdir -p "$out/lib" "$out/pc-bios" "$out/python/qemu"
	for program in $SYSTEM qemu-img; do
		cp "$root/usr/bin/$program" "$out/$program.bin"
		"$libs/ld-linux-x86-64.so.2" --library-path "$libs" --list "$root/usr/bin/$program"
	done | grep -o "/[^ ]*" | grep "^$libs/" | sort -u | xargs cp -L -t "$out/lib"
	cp -L "$libs/ld-linux-x86-64.so.2" "$out/lib"
	[ ${#FIRMWARE[@]} = 0 ] || cp -L "${FIRMWARE[@]/#/$root/usr/share/}" "$out/pc-bios"
	cp -r "$root"/usr/lib/python3/dist-packages/qemu/qmp "$out/python/qemu"
	# shellcheck disable=SC2016 # expands when it runs
	wrap "$out" "$SYSTEM" '-L "$d/pc-bios"'
	wrap "$out" qemu-img ''
}

make_final()
{
	local tmp=$QHCA_CACHE/tmp/stock-qemu-$key
	have "$out" && return
	"$QHCA_TOP/scripts/build/host-deps.sh"
	as_root rm -rf --one-file-system "$tmp" "$tmp.out"
	run_step "QEMU of $QHCA_SUITE-backports" unpack "$tmp"
	collect "$tmp" "$tmp.out"
	as_root rm -rf --one-file-system "$tmp"
	publish "$tmp.out" "$out"
}

key=$(hash_text "$QHCA_SUITE" "${PACKAGES[@]}" "${FIRMWARE[@]}" "$(declare -f unpack collect wrap)")
out=$QHCA_CACHE/stock-qemu-$key
have "$out" || with_lock stock-qemu make_final
echo "$out"
