#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# provider.sh [--release NAME] [--source DIR] [--tree]
# provider.sh [--release NAME] --unpack DIR | --into DIR
#
# Build the rdma-core provider inside the source of the rdma-core release that
# the guest runs (its private provider headers come with nothing else); print
# the directory with libqhca-rdmav*.so and qhca.driver.
#
#   --release NAME  for the rdma-core of this Debian release (bookworm, sid), with its
#                   compiler and C library
#   --source DIR    for the rdma-core whose source is in DIR; any from 44 to 65
#   --unpack DIR    only the source of rdma-core, as it was released, into DIR/src
#   --into DIR      only the provider into the source of rdma-core in DIR
#
# providers/qhca and include/ are laid over the unpacked source, one line in
# its CMakeLists.txt takes them in. The tree stays in the cache, so an edit
# compiles only what it touches. --tree prints where that is instead: rdma-core in src/,
# built in build/.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

root=() source='' tree='' action=build
while [ $# -gt 0 ]; do
	case $1 in
	-h|--help) usage; exit 0 ;;
	--release) root=(--kernel "$2"); shift ;;
	--source) source=$(readlink -e "$2") || die "no directory $2"; shift ;;
	--tree) tree=1 ;;
	--unpack|--into) action=${1#--} dir=$2; shift ;;
	*) die "unknown option $1, see --help" ;;
	esac
	shift
done
[ -e "$QHCA_TOP/providers/qhca/CMakeLists.txt" ] || die "no providers/qhca/CMakeLists.txt"

# Without the build tree in the library's search path.
OPTIONS=(-DNO_MAN_PAGES=1 -DNO_PYVERBS=1 -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_SKIP_RPATH=1)
HOOK='add_subdirectory(providers/qhca)'
base_key=$(hash_text "$QHCA_SUITE" "${OPTIONS[@]}" "$HOOK" "${root[@]}" \
	${source:+"$source" "$(hash_tree "$source/CMakeLists.txt" "$source/libibverbs")"})
STEP_TAG=$base_key
TREE=$QHCA_CACHE/rdma-core-$base_key
[ -z "$tree" ] || { echo "$TREE"; exit; }

in_root() { "$QHCA_TOP/scripts/build/buildroot.sh" "${root[@]}" "$@"; }

# Only the original tarball: apt checks it against the signed index, and some mirrors
# lack the rest of the source package.
fetch_source()
{
	if [ -n "$source" ]; then
		rsync -r --exclude='.git' --exclude=/build "$source/" "$1/src"
		return
	fi
	with_lock buildroot-apt run_step "Debian's package lists" in_root --root -- \
		apt-get -q update
	# shellcheck disable=SC2016 # expands inside
	run_step "rdma-core source" in_root -- sh -ec '
		cd "$1"
		apt-get -q source --download-only --tar-only rdma-core
		mkdir src
		tar -xf rdma-core_*.orig.tar.* -C src --strip-components=1
	' sh "$(br_path "$1")"
}

hook_tree()
{
	sed -i "0,/^add_subdirectory(providers\/erdma)/s||&\n$HOOK|" "$1/CMakeLists.txt"
	grep -qF "$HOOK" "$1/CMakeLists.txt" || die "no place for the hook"
}

make_tree()
{
	local tmp=$TREE.tmp
	have "$TREE" && return
	rm -rf "$tmp"
	mkdir -p "$tmp"
	fetch_source "$tmp"
	rm -f "$tmp"/*.tar.*
	hook_tree "$tmp/src"
	publish "$tmp" "$TREE"
}

stage_provider()
{
	mkdir -p "$1/include"
	rsync -r --exclude='.*' "$QHCA_TOP/providers/qhca/" "$1/"
	rsync -r --exclude='.*' "$QHCA_TOP/include/qhca" "$QHCA_TOP/include/uapi" "$1/include/"
}

compile()
{
	# shellcheck disable=SC2016 # expands inside
	in_root -- sh -ec '
		mkdir -p "$1/build"
		cd "$1/build"
		shift
		[ -e build.ninja ] || cmake -GNinja "$@" ../src
		# Its name carries the version of the private ABI.
		exec ninja $(ninja -t targets all | grep -o "^lib/libqhca-rdmav[0-9]*.so")
	' sh "$(br_path "$TREE")" "${OPTIONS[@]}"
}

make_final()
{
	local stage=$1 out=$2 tmp=$2.tmp
	have "$out" && return
	make_tree
	mkdir -p "$TREE/src/providers/qhca"
	# By content and without times, see build/qemu.sh.
	rsync -rc --delete "$stage/" "$TREE/src/providers/qhca/"
	run_step "provider" compile
	rm -rf "$tmp"
	mkdir -p "$tmp"
	cp -L "$TREE"/build/lib/libqhca-rdmav*.so "$tmp/"
	# The build tree's own .driver file names the build tree.
	echo "driver qhca" >"$tmp/qhca.driver"
	publish "$tmp" "$out"
}

case $action in
unpack)
	mkdir -p "$dir"
	fetch_source "$dir"
	exit 0 ;;
into)
	hook_tree "$dir"
	mkdir -p "$dir/providers/qhca"
	stage_provider "$dir/providers/qhca"
	exit 0 ;;
esac
stage=$(mktemp -d "$QHCA_CACHE/tmp/provider.XXXXXX")
trap 'rm -rf "$stage"' EXIT
stage_provider "$stage"
out=$QHCA_CACHE/provider-$(hash_text "$base_key" "$(hash_tree "$stage")")
have "$out" || with_lock "rdma-core-$base_key" make_final "$stage" "$out"
cache_trim provider 10
echo "$out"
