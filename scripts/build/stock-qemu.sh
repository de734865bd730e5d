#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# stock-qemu.sh [--stable] [--arch arm64|s390x]
#
# Fetch Debian's own QEMU, without the device; print the directory with it.
# DIR/qemu-system-x86_64 and DIR/qemu-img run on any Linux machine. They bring their own
# loader, libraries and firmware.
#
# It is from the backports, for machines that qhca-server serves: vfio-user-pci came with QEMU 10.1.
# DIR/python has qemu.qmp, which the launcher needs: Debian's python3-qemu.qmp.
#
#   --stable  from the release itself, for beside.sh; it has no such package
#   --arch    qemu-system-aarch64 or -s390x instead

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

PACKAGES=(qemu-system-x86 qemu-utils seabios) SYSTEM=qemu-system-x86_64
FIRMWARE=(seabios/bios-256k.bin qemu/kvmvapic.bin qemu/linuxboot_dma.bin qemu/pvh.bin
	qemu/qboot.rom)
suite=$QHCA_SUITE-backports qmp=python3-qemu.qmp
while [ $# -gt 0 ]; do
	case $1 in
	--stable) suite=$QHCA_SUITE qmp='' ;;
	--arch)
		case $2 in
		# Such a machine starts a kernel without firmware.
		arm64) PACKAGES=(qemu-system-arm qemu-utils) SYSTEM=qemu-system-aarch64 FIRMWARE=() ;;
		s390x) PACKAGES=(qemu-system-s390x qemu-utils qemu-system-data) SYSTEM=qemu-system-s390x
			FIRMWARE=(qemu/s390-ccw.img) ;;
		*) die "no QEMU for $2" ;;
		esac
		shift ;;
	-h|--help) usage; exit 0 ;;
	*) usage >&2; exit 2 ;;
	esac
	shift
done
PACKAGES+=(${qmp:+"$qmp"})

unpack()
{
	local mirror lines
	mirror=$(debian_mirror)
	lines=("deb $mirror $QHCA_SUITE main")
	[ "$suite" = "$QHCA_SUITE" ] || lines+=("deb $mirror $suite main")
	as_root mmdebstrap --mode=root --variant=extract \
		--aptopt='Acquire::Languages "none"' --aptopt='Acquire::Retries "3"' \
		--aptopt="APT::Default-Release \"$suite\"" \
		--aptopt='APT::Install-Recommends "false"' \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--include="$(IFS=,; echo "${PACKAGES[*]}")" "$QHCA_SUITE" "$1" "${lines[@]}"
}

collect()
{
	local root=$1 out=$2 libs=$1/usr/lib/x86_64-linux-gnu program
	mkdir -p "$out/lib" "$out/pc-bios"
	for program in $SYSTEM qemu-img; do
		cp "$root/usr/bin/$program" "$out/$program.bin"
		"$libs/ld-linux-x86-64.so.2" --library-path "$libs" --list "$root/usr/bin/$program"
	done | grep -o "/[^ ]*" | grep "^$libs/" | sort -u | xargs cp -L -t "$out/lib"
	cp -L "$libs/ld-linux-x86-64.so.2" "$out/lib"
	[ ${#FIRMWARE[@]} = 0 ] || cp -L "${FIRMWARE[@]/#/$root/usr/share/}" "$out/pc-bios"
	if [ -n "$qmp" ]; then
		mkdir -p "$out/python/qemu"
		cp -r "$root"/usr/lib/python3/dist-packages/qemu/qmp "$out/python/qemu"
	fi
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
	run_step "QEMU of $suite" unpack "$tmp"
	collect "$tmp" "$tmp.out"
	as_root rm -rf --one-file-system "$tmp"
	publish "$tmp.out" "$out"
}

key=$(hash_text "$suite" "${PACKAGES[@]}" "${FIRMWARE[@]}" "$(declare -f unpack collect wrap)")
out=$QHCA_CACHE/stock-qemu-$key
have "$out" || with_lock stock-qemu make_final
echo "$out"
