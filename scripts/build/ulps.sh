#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# ulps.sh
#
# Build the users of RDMA in the kernel's tree that Debian's kernel leaves out, as modules for the
# guest's kernel: RTRS with RNBD, and CIFS and ksmbd with SMB Direct. Their source is the one that
# this kernel is made of. Prints the directory with them.
#
# Consumers that need them insert them with insmod, for modprobe finds Debian's cifs and ksmbd.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

case ${1:-} in
-h|--help) usage; exit 0 ;;
'') ;;
*) die "unknown option $1, see --help" ;;
esac

br=$(buildroot_dir)
release=$(find "$br/usr/src" -maxdepth 1 -name 'linux-headers-*-amd64' -printf '%f\n' |
	sed 's/^linux-headers-//' | sort -V | tail -n 1)
[ -n "$release" ] || die "no kernel headers in the build root"

# Of the kernel's tree; nls has a header that CIFS and ksmbd share.
SOURCES=(drivers/infiniband/ulp/rtrs drivers/block/rnbd fs/smb fs/nls
	scripts/asn1_compiler.c include/linux/asn1.h include/linux/asn1_ber_bytecode.h)
CONFIG=(INFINIBAND_RTRS=m INFINIBAND_RTRS_CLIENT=m INFINIBAND_RTRS_SERVER=m
	BLK_DEV_RNBD_CLIENT=m BLK_DEV_RNBD_SERVER=m CIFS_SMB_DIRECT=y SMB_SERVER_SMBDIRECT=y)

# Built in the order of their symbols; make sees the options from its command line, and C the
# yes among them from here.
# shellcheck disable=SC2016 # make's
KBUILD='subdir-ccflags-y += -DCONFIG_CIFS_SMB_DIRECT=1 -DCONFIG_SMB_SERVER_SMBDIRECT=1
subdir-ccflags-y += -I$(src)/drivers/infiniband/ulp/rtrs
obj-m += drivers/infiniband/ulp/rtrs/ drivers/block/rnbd/ fs/smb/'

# The release of the headers is the one of the source, of which apt knows the hash.
fetch_source()
{
	with_lock buildroot-apt run_step "Debian's package lists" \
		"$QHCA_TOP/scripts/build/buildroot.sh" --root -- apt-get -q update
	# shellcheck disable=SC2016 # expands inside
	run_step "kernel source" in_buildroot sh -ec '
		cd "$1"
		version=$(dpkg-query -W -f "\${source:Version}" "linux-headers-$2")
		package=linux-source-$(echo "$2" | cut -d . -f 1,2)
		apt-get -q download "$package=$version"
		dpkg-deb -x ./*.deb deb
		shift 2
		mkdir src
		tar -xf deb/usr/src/linux-source-*.tar.xz -C src --strip-components=1 \
			--wildcards "$@"
		rm -rf deb ./*.deb
	' sh "$(br_path "$1")" "$release" "${SOURCES[@]/#/linux-source-*/}"
}

# The headers come without the compiler of ASN.1, so its output is made first.
compile()
{
	# shellcheck disable=SC2016 # expands inside
	in_buildroot sh -ec '
		cd "$1/src"
		gcc -O -w -Iinclude -o asn1_compiler scripts/asn1_compiler.c
		for file in $(find fs/smb -name "*.asn1"); do
			./asn1_compiler "$file" "$file.c" "$file.h"
		done
		rm -r scripts include
		shift
		make -j "$(nproc)" -C "$1" M="$PWD" "$@" modules
		find . -name "*.ko" -exec strip --strip-debug {} +
	' sh "$(br_path "$1")" "/usr/src/linux-headers-$release" "${CONFIG[@]/#/CONFIG_}"
}

make_final()
{
	local tmp=$QHCA_CACHE/tmp/ulps-$key
	have "$OUT" && return
	rm -rf "$tmp"
	mkdir -p "$tmp/out"
	fetch_source "$tmp"
	echo "$KBUILD" >"$tmp/src/Kbuild"
	run_step "modules for $release" compile "$tmp"
	find "$tmp/src" -name '*.ko' -exec cp -t "$tmp/out" {} +
	publish "$tmp/out" "$OUT"
	rm -rf "$tmp"
}

key=$(hash_text "$(basename "$br")" "$release" "${SOURCES[@]}" "${CONFIG[@]}" "$KBUILD" \
	"$(declare -f fetch_source compile)")
OUT=$QHCA_CACHE/ulps-$key
have "$OUT" || with_lock "ulps-$key" make_final
cache_trim ulps 2
echo "$OUT"
