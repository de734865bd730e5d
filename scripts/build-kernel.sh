#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# build-kernel.sh [--path]
#
# Build the guest's kernel with KASAN, lockdep, kmemleak and UBSan, from Debian's
# source and debug-kernel.config; print the directory with vmlinuz and with
# build/, which modules are built against. Takes half an hour on two cores, once.
# Used by `scripts/vm --debug-kernel`. --path: only print where it is or would be.

. "$(dirname "$(readlink -f "$0")")/lib.sh"

action=build
case ${1:-} in
-h|--help) usage; exit 0 ;;
--path) action=path ;;
'') ;;
*) die "unknown option $1, see --help" ;;
esac

CONFIG=$QHCA_TOP/scripts/debug-kernel.config
key=$(hash_text "$QHCA_SUITE" "$(basename "$(buildroot_dir)")" "$(hash_tree "$CONFIG")" v1)
OUT=$QHCA_CACHE/kernel-debug-$key
if [ "$action" = path ]; then
	echo "$OUT"
	exit 0
fi

fetch_source()
{
	in_buildroot true
	with_lock buildroot-apt run_step "Debian's package lists" \
		"$QHCA_TOP/scripts/buildroot.sh" --root -- apt-get -q update
	# shellcheck disable=SC2016 # expands inside
	run_step "kernel source" in_buildroot sh -ec '
		cd "$1"
		apt-get -q source --only-source linux
		mv linux-*/ build
	' sh "$(br_path "$1")"
	rm -f "$1"/*.tar.* "$1"/*.dsc
}

# The file is a wish list: what Kconfig does not grant is printed, an error.
configure()
{
	cp "$CONFIG" "$1/debug.config"
	# shellcheck disable=SC2016
	run_step "kernel configuration" in_buildroot sh -ec '
		cd "$1/build"
		make -s tinyconfig
		scripts/kconfig/merge_config.sh -m .config ../debug.config
		make -s olddefconfig
		! grep "^CONFIG" ../debug.config | grep -vxFf .config
		! grep -x CONFIG_SLUB_TINY=y .config
	' sh "$(br_path "$1")"
}

make_kernel()
{
	local tmp=$OUT.tmp
	have "$OUT" && return
	rm -rf "$tmp" "$OUT"
	mkdir -p "$tmp"
	fetch_source "$tmp"
	# Built under its final name: the tree remembers paths. Without
	# .complete it counts as absent.
	mv -T "$tmp" "$OUT"
	configure "$OUT"
	run_step "kernel with KASAN, lockdep, kmemleak" in_buildroot nice \
		make -s -j "$(nproc)" -C "$(br_path "$OUT/build")" bzImage modules
	# Not vmlinux: KASAN is not ready for what runs first behind the PVH entry.
	cp "$OUT/build/arch/x86/boot/bzImage" "$OUT/vmlinuz"
	in_buildroot make -s -C "$(br_path "$OUT/build")" modules_install \
		INSTALL_MOD_PATH="$(br_path "$OUT/root")"
	rm -f "$OUT"/root/lib/modules/*/build
	touch "$OUT/.complete"
}

have "$OUT" || with_lock "kernel-$key" make_kernel
cache_trim kernel-debug 1
echo "$OUT"
