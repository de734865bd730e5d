#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# modules.sh [--kernel NAME | --kdir DIR] [--no-tests | --tree] [VARIABLE=VALUE…]
#
# Build qhca.ko, qhca_ib.ko and the test module qhca_kverbs_test.ko for the guest's
# kernel in the build root; print the directory with them. Variables go to make: W=1, C=2, V=1, EXTRA_CFLAGS=…
# With C or W the warnings are shown and nothing is taken from the cache; with C=2 it is an
# error if a source has not been checked.
#
#   --kernel NAME  Debian's kernel of this version or release (6.1, 7, sid), with the
#                  compiler of that release, see buildroot.sh
#   --kdir DIR     other kernel headers: a path inside the build root, a kernel built
#                  below the cache, or one of this machine's, for which its own
#                  compiler is used
#   --no-tests     without the test module, a fifth of the work
#   --tree         print where they are built instead: the sources and objects in src/
#
# This is `make modules KDIR=…` of the repository, run on a copy, so that no
# object files end up in the source tree.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

kdir='' vars=() show='' root=() tests=1 tree=''
while [ $# -gt 0 ]; do
	case $1 in
	--kernel) root+=(--kernel "$2"); shift ;;
	--kdir) kdir=$2; shift ;;
	--no-tests) tests='' ;;
	--tree) tree=1 ;;
	-h|--help) usage; exit 0 ;;
	# Headers without scripts/checker-valid.sh, as Debian's of 7.x, switch C off again.
	C=*) vars+=("$1" "KBUILD_CHECKSRC=${1#C=}"); show=1 root+=(--extra) ;;
	W=*) vars+=("$1"); show=1 ;;
	*=*) vars+=("$1") ;;
	*) die "unknown option $1, see --help" ;;
	esac
	shift
done
[ -e "$QHCA_TOP/Kbuild" ] || die "no Kbuild at the top yet"

br=$("$QHCA_TOP/scripts/build/buildroot.sh" "${root[@]}" --path)
if [ -z "$kdir" ]; then
	kdir=$(find "$br/usr/src" -maxdepth 1 -name 'linux-headers-*-amd64' | sort -V | tail -n 1)
	kdir=${kdir#"$br"}
fi
place=("$QHCA_TOP/scripts/build/buildroot.sh" "${root[@]}" --)
source_dir=br_path
if [ ! -e "$br$kdir/Makefile" ]; then
	[ -e "$kdir/Makefile" ] || die "no kernel headers in $kdir"
	kdir=$(readlink -e "$kdir")
	case $kdir in
	"$QHCA_CACHE"/*) kdir=$(br_path "$kdir") ;;
	*) place=() source_dir=echo ;;
	esac
fi

base_key=$(hash_text "$(basename "$br")" "$kdir" "${vars[@]}")
TREE=$QHCA_CACHE/modules-tree-$base_key
[ -z "$tree" ] || { echo "$TREE"; exit; }
STEP_TAG=$base_key

stage_sources()
{
	rsync -r --exclude='.*' --exclude='*.o' --exclude='*.ko' --exclude='*.mod*' \
		"$QHCA_TOP/Kbuild" "$QHCA_TOP/Makefile" "$QHCA_TOP/drivers" \
		"$QHCA_TOP/include" "$1/"
	rsync -rR --exclude='.*' --exclude='*.o' --exclude='*.ko' --exclude='*.mod*' \
		"$QHCA_TOP/./selftests/kmod" "$1/"
}

compile()
{
	"${place[@]}" \
		make -j "$(nproc)" -C "$($source_dir "$TREE/src")" modules KDIR="$kdir" \
		QHCA_TESTS=$tests "${vars[@]}"
}

# Where make does without the checker it says so in passing, or not at all.
all_checked()
{
	local left tree
	tree=$(basename "$TREE")
	# Older kernels show the whole path.
	left=$(cd "$TREE/src" && find . -name '*.c' ! -name '*.mod.c' -printf '%P\n' | sort |
		comm -23 - <(sed -nE "s|^  CHECK +(.*/$tree/src/)?||p" "$STEP_LOG" | sort -u))
	[ -z "$left" ] || die "not checked: $left"
}

make_final()
{
	local stage=$1 out=$2 tmp=$2.tmp
	[ -n "$show" ] || ! have "$out" || return 0
	[ -z "$show" ] || rm -rf "$TREE"	# warnings only come from compiling
	mkdir -p "$TREE/src"
	# By content and without times, see build/qemu.sh. Files of the compiler stay there, unless
	# their source is gone.
	rsync -rc --delete --exclude='*.o' --exclude='*.ko' --exclude='*.mod*' \
		--exclude='.*' --exclude='modules.order' --exclude='Module.symvers' \
		"$stage/" "$TREE/src/"
	run_step "modules for $(basename "$kdir")" compile
	if [ -n "$show" ]; then
		grep -E -A6 'warning:|error:' "$STEP_LOG" >&2 || :
	fi
	[[ " ${vars[*]} " != *' C=2 '* ]] || all_checked
	rm -rf "$tmp" "$out"
	mkdir -p "$tmp"
	# An earlier run may have left the test module there.
	find "$TREE/src/drivers" ${tests:+"$TREE/src/selftests"} -name '*.ko' -exec cp -t "$tmp" {} +
	strip_modules "$tmp"
	publish "$tmp" "$out"
}

# A guest unpacks them each time it starts: 0.8 MB rather than 48. Those in $TREE are whole.
strip_modules()
{
	local module
	for module in "$1"/*.ko; do
		"${place[@]}" strip --strip-debug "$($source_dir "$module")"
	done
}

stage=$(mktemp -d "$QHCA_CACHE/tmp/modules.XXXXXX")
trap 'rm -rf "$stage"' EXIT
stage_sources "$stage"
out=$QHCA_CACHE/modules-$(hash_text "$base_key" "stripped$tests" "$(hash_tree "$stage")")
if [ -n "$show" ] || ! have "$out"; then
	with_lock "modules-$base_key" make_final "$stage" "$out"
fi
cache_trim modules 10
echo "$out"
