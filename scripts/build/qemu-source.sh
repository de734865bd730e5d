#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# qemu-source.sh
#
# Fetch what we need of QEMU's source, of the version that Debian has; print the directory
# with it:
#
#   include, host, linux-headers, trace/*.h   what the device is compiled against
#   accel/qtest/qtest.c   the accelerator of tests, which Debian's QEMU leaves out
#   qapi, scripts         from which QEMU's build generates more headers
#   python/qemu           what Python programs drive QEMU with: qemu.qmp, qemu.machine
#   libvfio-user          which has no package and no releases, with our patches
#
# A thousandth of the tarball; Debian's patches of QEMU are not in it.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

case ${1:-} in
'') ;;
-h|--help) usage; exit 0 ;;
*) usage >&2; exit 2 ;;
esac

PARTS=(VERSION accel/qtest/qtest.c include host linux-headers trace qapi scripts python/qemu
	subprojects/libvfio-user/include subprojects/libvfio-user/lib
	subprojects/libvfio-user/LICENSE)
# Mistakes of libvfio-user that a hostile machine can use: a series, for `git am` as well.
PATCHES=("$QHCA_TOP"/qemu-device/server/patches/*.patch)

fetch()
{
	local tmp=$out.tmp patch
	have "$out" && return
	rm -rf "$tmp"
	mkdir -p "$tmp"
	in_buildroot true
	with_lock buildroot-apt run_step "Debian's package lists" \
		"$QHCA_TOP/scripts/build/buildroot.sh" --root -- apt-get -q update
	# shellcheck disable=SC2016 # expands inside
	run_step "QEMU's headers" in_buildroot sh -ec '
		cd "$1"
		shift
		apt-get -q source --only-source --download-only --tar-only qemu
		for part; do set -- "$@" "*/$part"; shift; done
		tar -xf qemu_*.orig.tar.* --strip-components=1 --no-wildcards-match-slash \
			--wildcards "$@"
		rm qemu_*
		mv subprojects/libvfio-user .
		rmdir subprojects
	' sh "$(br_path "$tmp")" "${PARTS[@]}"
	for patch in "${PATCHES[@]}"; do
		in_buildroot patch -d "$(br_path "$tmp")/libvfio-user" -p1 -s -f <"$patch" ||
			die "${patch##*/} does not apply"
	done
	publish "$tmp" "$out"
}

out=$QHCA_CACHE/qemu-source-$(hash_text "$QHCA_SUITE" "${PARTS[@]}" "$(cat "${PATCHES[@]}")")
have "$out" || with_lock qemu-source fetch
echo "$out"
