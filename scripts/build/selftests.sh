#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# selftests.sh
#
# Build selftests/ in the build root (`make -C selftests`, against the stock
# libibverbs and include/uapi) and print the directory they are installed in.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

case ${1:-} in
-h|--help) usage; exit 0 ;;
'') ;;
*) die "unknown option $1, see --help" ;;
esac
[ -e "$QHCA_TOP/selftests/Makefile" ] || die "no selftests/Makefile yet"

br=$(buildroot_dir)
base_key=$(hash_text "$(basename "$br")")
TREE=$QHCA_CACHE/selftests-tree-$base_key

make_final()
{
	local stage=$1 out=$2 tmp=$2.tmp
	have "$out" && return
	# The tests find the headers at ../include, as in the repository. Object
	# files and programs of a former build do no harm: make has the times.
	mkdir -p "$TREE"
	# Sources of another tree would be built too; what was built may stay.
	rsync -rpc --delete --filter='risk *.[ch]' --filter='protect *' "$stage/" "$TREE/"
	rm -rf "$tmp"
	mkdir -p "$tmp"
	run_step "selftests" in_buildroot make -j "$(nproc)" -C "$(br_path "$TREE/selftests")" \
		CFLAGS='-O2 -g -Werror' all install INSTALL_PATH="$(br_path "$tmp")"
	# A guest unpacks them each time it starts. Those in $TREE have their debug information.
	in_buildroot find "$(br_path "$tmp")" -type f ! -name '*.sh' ! -name '*.list' \
		-exec strip --strip-debug {} +
	publish "$tmp" "$out"
}

stage=$(mktemp -d "$QHCA_CACHE/tmp/selftests.XXXXXX")
trap 'rm -rf "$stage"' EXIT
rsync -rp --exclude='.*' --exclude='*.o' --exclude=/selftests/guest "$QHCA_TOP/selftests" "$QHCA_TOP/include" "$stage/"
out=$QHCA_CACHE/selftests-$(hash_text "$base_key" stripped "$(hash_tree "$stage")")
have "$out" || with_lock "selftests-$base_key" make_final "$stage" "$out"
cache_trim selftests 6
echo "$out"
