#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# ucx-gtest.sh
#
# Build UCX's own tests, gtest, which no package has, with the UCX that they test; print the
# directory with bin/gtest and lib/. They are from Debian 12, whose source has all that they need,
# for the guest's C library and rdma-core.
#
# UCX finds its modules beside its libraries, so the directory works wherever it is.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

RELEASE=bookworm
# Some tests look at counters; its modules for other hardware are of no use here.
OPTIONS=(--enable-gtest --enable-stats --enable-debug-data --disable-doxygen-doc
	--without-java --without-go --without-fuse3 --without-cuda --without-rocm
	--without-mlx5-dv --without-knem --without-xpmem --disable-numa
	# Its compiler was an older one, which had fewer warnings.
	CFLAGS='-O2 -g0 -Wno-error' CXXFLAGS='-O2 -g0 -Wno-error')

case ${1:-} in
-h|--help) usage; exit 0 ;;
'') ;;
*) die "unknown option $1, see --help" ;;
esac

in_root() { "$QHCA_TOP/scripts/build/buildroot.sh" --autotools -- "$@"; }

# apt checks the tarball against the signed index of that release.
fetch_source()
{
	# shellcheck disable=SC2016 # expands inside
	run_step "UCX source" in_root sh -ec '
		cd "$1"
		mkdir -p apt/lists/partial apt/cache src
		echo "deb-src $2 $3 main" >apt/sources.list
		set -- -q -o Dir::Etc::SourceList="$PWD/apt/sources.list" \
			-o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$PWD/apt/lists" \
			-o Dir::Cache="$PWD/apt/cache" -o Debug::NoLocking=1
		apt-get "$@" update
		apt-get "$@" source --download-only --tar-only ucx
		tar -xf ucx_*.orig.tar.* -C src --strip-components=1
	' sh "$(br_path "$1")" "$(debian_mirror)" $RELEASE
}

compile()
{
	# shellcheck disable=SC2016 # expands inside
	in_root sh -ec '
		cd "$1/src"
		out=$1/out
		shift
		# Debian has renamed it, and its files are made of templates.
		mv debian.upstream debian
		./autogen.sh
		./configure --prefix="$out" "$@"
		libraries="src/ucm src/ucs src/uct src/ucp"
		for dir in $libraries src/tools/perf/lib test/gtest; do
			make -j "$(nproc)" -C "$dir"
		done
		for dir in $libraries; do make -s -C "$dir" install-strip; done
		find "$out" -name "*.a" -delete -o -name "*.la" -delete
		rm -rf "$out/include" "$out/lib/pkgconfig"
		mkdir -p "$out/bin"
		strip -o "$out/bin/gtest" test/gtest/gtest
	' sh "$(br_path "$1")" "${OPTIONS[@]}"
}

make_final()
{
	local tmp=$QHCA_CACHE/tmp/ucx-gtest-$key
	have "$OUT" && return
	rm -rf "$tmp"
	mkdir -p "$tmp"
	fetch_source "$tmp"
	run_step "UCX and its tests" compile "$tmp"
	publish "$tmp/out" "$OUT"
	rm -rf "$tmp"
}

key=$(hash_text "$QHCA_SUITE" $RELEASE "${OPTIONS[@]}" "$(declare -f fetch_source compile)")
OUT=$QHCA_CACHE/ucx-gtest-$key
have "$OUT" || with_lock ucx-gtest make_final
cache_trim ucx-gtest 2
echo "$OUT"
