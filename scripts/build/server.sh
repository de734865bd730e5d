#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# server.sh [--asan | --tsan]
#
# Build qhca-server, the device as a process of its own; print the directory with it.
# DIR/qhca-server runs on any Linux machine. Beside it, sandbox-test tests its sandbox, which
# a build with a sanitizer does not have.
#
#   --asan  with AddressSanitizer and UBSan
#   --tsan  with ThreadSanitizer
#
# libvfio-user has no package; see qemu-source.sh.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

OPTIONS=(--buildtype=debugoptimized) kind=''
# As Debian builds what strangers talk to; sanitizers have their own means.
HARDENED=(-Db_pie=true '-Dc_link_args=-Wl,-z,relro,-z,now'
	-Dc_args='-D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection -fcf-protection')
case ${1:-} in
'') OPTIONS+=("${HARDENED[@]}") ;;
--asan) kind=asan; OPTIONS+=('-Db_sanitize=address,undefined') ;;
# It does not know fences, by which no two threads of the server meet: they are for guests.
--tsan) kind=tsan; OPTIONS+=(-Db_sanitize=thread -Dc_args=-Wno-tsan) ;;
-h|--help) usage; exit 0 ;;
*) usage >&2; exit 2 ;;
esac

VERSION=$(sed -n "s/^## \([0-9.]*\).*/\1/p" "$QHCA_TOP/CHANGELOG.md" | head -n 1)
VFIO_USER=$("$QHCA_TOP/scripts/build/qemu-source.sh")/libvfio-user

make_final()
{
	local tree=$QHCA_CACHE/server-tree${kind:+-$kind}-$base_key tmp=$out.tmp
	local programs=(qhca-server) program
	have "$out" && return
	device_sources "$tree"
	# shellcheck disable=SC2016
	run_step "qhca-server${kind:+ ($kind)}" in_buildroot sh -ec '
		tree=$1 library=$2 version=$3
		shift 3
		[ -e "$tree/build/build.ninja" ] ||
			meson setup "$@" -Dvfio_user="$library" -Dqhca_version="$version" \
				"$tree/build" "$tree/src/qemu-device/server"
		ninja -C "$tree/build"
	' sh "$(br_path "$tree")" "$(br_path "$VFIO_USER")" "$VERSION" "${OPTIONS[@]}"
	rm -rf "$tmp"
	mkdir -p "$tmp/lib"
	[ -n "$kind" ] || programs+=(sandbox-test)
	# shellcheck disable=SC2016
	in_buildroot sh -ec '
		build=$1 out=$2
		shift 2
		for program; do cp "$build/$program" "$out/$program.bin"; done
		ldd "$build/qhca-server" | grep -o "/[^ ]*" | xargs cp -L -t "$out/lib"
	' sh "$(br_path "$tree/build")" "$(br_path "$tmp")" "${programs[@]}"
	[ -z "$kind" ] || own_loader "$tmp" "$out" qhca-server
	for program in "${programs[@]}"; do wrap "$tmp" "$program" '' ${kind:+own}; done
	publish "$tmp" "$out"
}

base_key=$(hash_text "$QHCA_SUITE" "$VFIO_USER" "$VERSION" "${OPTIONS[@]}")
STEP_TAG=$base_key
out=$QHCA_CACHE/server${kind:+-$kind}-$(hash_text "$base_key" "$(declare -f wrap own_loader)" \
	"$(hash_tree "$QHCA_TOP"/qemu-device/{common,engine,server,trace-events} "$QHCA_TOP/include/qhca")")
have "$out" || with_lock "server-$base_key" make_final
cache_trim server 6
echo "$out"
