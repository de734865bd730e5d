#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# kernel.sh [NAME | --kdir DIR]
# kernel.sh [--kcsan | --rt | --arm64] [--path]
#
# Another kernel for the guest. Prints the directory with vmlinuz, initrd and
# modules.ext4, the disk that the guest mounts on /lib/modules.
#
#   NAME        Debian's kernel of this version or release: 6.1, 7, sid
#   --kdir DIR  the kernel built in DIR
#   (neither)   one with KASAN, lockdep, kmemleak and UBSan, from Debian's source and
#               debug-kernel.config; build/ is what modules are built against. Takes half
#               an hour on two cores, once. --path: only print where it is or would be.
#   --kcsan     one with KCSAN in place of KASAN and kmemleak: kcsan-kernel.config on top.
#               It looks at the accesses of our modules only, and so at more of them
#   --rt        one with PREEMPT_RT, and without kmemleak: rt-kernel.config on top
#   --arm64     one for arm64 with pages of 64 KiB, and nothing that finds mistakes:
#               arm64-kernel.config on top
#
# Used by `scripts/vm --kernel`, `--kdir`, `--debug-kernel`, `--kcsan`, `--rt-kernel` and
# `--arch arm64-64k`.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"
. "$QHCA_TOP/scripts/build/initrd.sh"

# Another architecture than the build root's.
cross()
{
	FLAGS=(ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-)
	TOOLS=(--arm64) KERNEL=Image.gz BOOT=arch/arm64/boot
}

action=debug WANTED='' kdir='' kind=debug
CONFIGS=("$QHCA_TOP/scripts/build/debug-kernel.config") FLAGS=()
TOOLS=() KERNEL=bzImage BOOT=arch/x86/boot
while [ $# -gt 0 ]; do
	case $1 in
	-h|--help) usage; exit 0 ;;
	--path) action=path ;;
	--kcsan|--rt|--arm64)
		kind=${1#--}
		CONFIGS+=("$QHCA_TOP/scripts/build/$kind-kernel.config")
		# Only in modules that are built for it later.
		[ "$kind" != kcsan ] || FLAGS=(KCSAN_SANITIZE=n)
		[ "$kind" != arm64 ] || cross ;;
	--kdir) action=own kdir=$2; shift ;;
	-*) die "unknown option $1, see --help" ;;
	*) action=debian WANTED=$1 ;;
	esac
	shift
done

# pack DIR: from its root/ and vmlinuz.
pack()
{
	local dir=$1 release
	release=$(ls "$dir/root/lib/modules")
	echo "$release" >"$dir/release"
	rm -f "$dir/initrd"
	make_initrd "$dir/root" "$release" "$dir/initrd"
	# Read-only, so there is room for nothing else.
	rm -f "$dir/modules.ext4"
	truncate -s "$(($(du -sm "$dir/root/lib/modules" | cut -f1) * 5 / 4 + 32))M" \
		"$dir/modules.ext4"
	mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -E root_owner=0:0 \
		-d "$dir/root/lib/modules" "$dir/modules.ext4"
}

# ---- Debian's

# Newer releases have the kernel, its modules and their lists in packages of their own.
# shellcheck disable=SC2016 # expands inside
DOWNLOAD='
	cd "$1"
	for package in image binary modules base; do
		apt-cache show "linux-$package-$2" >/dev/null 2>&1 || continue
		apt-get -q download "linux-$package-$2"
	done
	for deb in *.deb; do dpkg-deb -x "$deb" root; done
	rm -f ./*.deb
	# Where / and /usr are one, packages have but one of the names.
	[ -d root/lib ] || ln -s usr/lib root/lib'

make_debian()
{
	local release=$1 out=$2 tmp=$2.tmp root=(--kernel "$WANTED")
	have "$out" && return
	rm -rf "$tmp"
	mkdir -p "$tmp"
	with_lock buildroot-apt run_step "Debian's package lists" \
		"$QHCA_TOP/scripts/build/buildroot.sh" "${root[@]}" --root -- apt-get -q update
	if ! run_step "kernel $release" "$QHCA_TOP/scripts/build/buildroot.sh" "${root[@]}" -- \
			sh -ec "$DOWNLOAD" sh "$(br_path "$tmp")" "$release"; then
		log "if the mirror has moved on from $release: make clean-buildroot"
		return 1
	fi
	mv "$tmp/root/boot/vmlinuz-$release" "$tmp/vmlinuz" 2>/dev/null ||
		mv "$tmp/root/lib/modules/$release/vmlinuz" "$tmp/vmlinuz"
	plain_modules "$tmp/root" "$release"
	extract_kernel "$tmp"
	run_step "initrd, disk of modules" pack "$tmp"
	as_root rm -rf "$tmp/root"
	publish "$tmp" "$out"
}

debian_kernel()
{
	local br release out
	br=$("$QHCA_TOP/scripts/build/buildroot.sh" --kernel "$WANTED" --path)
	release=$(find "$br/usr/src" -maxdepth 1 -name 'linux-headers-*-amd64' -printf '%f\n' |
		sed 's/^linux-headers-//' | sort -V | tail -n 1)
	out=$QHCA_CACHE/guest-kernel-$(hash_text "$release" "$GUEST")
	have "$out" || with_lock "kernel-$release" make_debian "$release" "$out"
	echo "$out"
}

# ---- one's own

make_own()
{
	local out=$1 tmp=$1.tmp
	have "$out" && return
	rm -rf "$tmp"
	mkdir -p "$tmp"
	cp "$kdir/arch/x86/boot/bzImage" "$tmp/vmlinuz"
	run_step "modules of $kdir" make -s -C "$kdir" modules_install \
		INSTALL_MOD_PATH="$tmp/root" INSTALL_MOD_STRIP=1
	rm -f "$tmp"/root/lib/modules/*/{build,source}
	plain_modules "$tmp/root" "$(ls "$tmp/root/lib/modules")"
	run_step "initrd, disk of modules" pack "$tmp"
	as_root rm -rf "$tmp/root"
	publish "$tmp" "$out"
}

# Anew when the kernel or one of its modules has been built anew.
own_kernel()
{
	local out
	kdir=$(readlink -e "$kdir") || die "no directory $1"
	[ -e "$kdir/arch/x86/boot/bzImage" ] || die "no arch/x86/boot/bzImage in $kdir: build it first"
	[ -e "$kdir/modules.order" ] || die "no modules.order in $kdir: make modules first"
	out=$QHCA_CACHE/guest-kernel-$(hash_text "$kdir" "$GUEST" "$(find "$kdir" \( -name '*.ko' -o \
		-name bzImage \) -printf '%P %s %T@\n' | LC_ALL=C sort)")
	have "$out" || with_lock "kernel-$(hash_text "$kdir")" make_own "$out"
	echo "$out"
}

# Further dependencies of the initrd.
GUEST=$(hash_text "$INITRD_MODULES" "$HOT_MODULES" "$(declare -f pack plain_modules \
	make_initrd fstab)" "$(hash_tree "$QHCA_TOP/selftests/guest/initrd-init.sh")")
case $action in
debian) debian_kernel ;;
own) own_kernel "$kdir" ;;
esac
case $action in
debian|own)
	cache_trim guest-kernel 6
	exit 0 ;;
esac

# ---- those that see what others do not

key=$(hash_text "$QHCA_SUITE" "$(basename "$(buildroot_dir)")" "$(hash_tree "${CONFIGS[@]}")" v1 \
	"${FLAGS[@]}")
OUT=$QHCA_CACHE/kernel-$kind-$key
if [ "$action" = path ]; then
	echo "$OUT"
	exit 0
fi

in_root() { "$QHCA_TOP/scripts/build/buildroot.sh" "${TOOLS[@]}" -- "$@"; }

# The binary package: mirrors may lack source packages.
fetch_source()
{
	in_buildroot true
	with_lock buildroot-apt run_step "Debian's package lists" \
		"$QHCA_TOP/scripts/build/buildroot.sh" --root -- apt-get -q update
	# shellcheck disable=SC2016 # expands inside
	run_step "kernel source" in_buildroot sh -ec '
		cd "$1"
		name=$(apt-cache depends linux-source | sed -n "s/.*Depends: //p")
		apt-get -q download "$name"
		dpkg-deb --fsys-tarfile "$name"_*.deb | tar -xO "./usr/src/$name.tar.xz" | tar -xJ
		mv "$name" build
	' sh "$(br_path "$1")"
	rm -f "$1"/*.deb
}

# The last word on each option.
wishes()
{
	awk 'match($0, /CONFIG_[A-Z0-9_]+/) { last[substr($0, RSTART, RLENGTH)] = $0 }
		END { for (option in last) print last[option] }' "${CONFIGS[@]}"
}

# Print options that Kconfig does not grant, which is an error.
configure()
{
	wishes >"$1/debug.config"
	# shellcheck disable=SC2016
	run_step "kernel configuration" in_root sh -ec '
		cd "$1/build"
		shift
		make -s "$@" tinyconfig
		scripts/kconfig/merge_config.sh -m .config ../debug.config
		make -s "$@" olddefconfig
		! grep "^CONFIG" ../debug.config | grep -vxFf .config
		! grep -x CONFIG_SLUB_TINY=y .config
	' sh "$(br_path "$1")" "${FLAGS[@]}"
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
	run_step "kernel that finds mistakes ($kind)" in_root nice \
		make -s -j "$(nproc)" -C "$(br_path "$OUT/build")" "${FLAGS[@]}" $KERNEL modules
	# Not vmlinux: KASAN is not ready for what runs first behind the PVH entry.
	cp "$OUT/build/$BOOT/$KERNEL" "$OUT/vmlinuz"
	in_root make -s -C "$(br_path "$OUT/build")" "${FLAGS[@]}" modules_install \
		INSTALL_MOD_PATH="$(br_path "$OUT/root")"
	rm -f "$OUT"/root/lib/modules/*/build
	touch "$OUT/.complete"
}

# With what the guest has now, and to the end.
is_packed() { [ "$(cat "$OUT/packed" 2>/dev/null)" = "$GUEST" ]; }

make_packed()
{
	is_packed && return
	rm -f "$OUT/packed"
	run_step "initrd, disk of modules" pack "$OUT"
	echo "$GUEST" >"$OUT/packed"
}

if [ "$kind" = arm64 ]; then
	# make_initrd() takes the busybox from there, and must take the machine's.
	sysroot=$("$QHCA_TOP/scripts/build/cross.sh" arm64 image)/sysroot
	buildroot_dir() { echo "$sysroot"; }
fi
have "$OUT" || with_lock "kernel-$key" make_kernel
is_packed || with_lock "kernel-$key" make_packed
cache_trim "kernel-$kind" 1
echo "$OUT"
