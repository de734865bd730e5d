#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# cluster.sh [--asan | --library | --tidy FILE… | --run RANKS OPTION…]
#
# Build the cluster simulator, see sim/ns3/README; print the directory with it.
#
#   --asan     with AddressSanitizer and UBSan
#   --library  only ns-3; print where it is installed
#   --tidy     let clang-tidy look at these files of it, which is what lint.sh does
#   --run      and run it, as so many processes, in the build root
#
# ns-3 comes as Debian's source package: its binaries have no MPI. Of its modules only those
# that make up the simulator itself are built, in the build root of the release whose source
# it is.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

NS3_KERNEL=6.1
root() { "$QHCA_TOP/scripts/build/buildroot.sh" --kernel "$NS3_KERNEL" --cluster "$@"; }
in_root() { root -- "$@"; }

OPTIONS=(--buildtype=release) kind='' library='' ranks='' tidy=()
case ${1:-} in
'') ;;
--asan) kind=asan; OPTIONS=(--buildtype=debugoptimized '-Db_sanitize=address,undefined') ;;
--library) library=1 ;;
--tidy) shift; library=1 tidy=("$@") ;;
--run) ranks=${2:?how many ranks?}; shift 2 ;;
-h|--help) usage; exit 0 ;;
*) usage >&2; exit 2 ;;
esac

NS3_OPTIONS=(-DCMAKE_BUILD_TYPE=release -DNS3_MPI=ON -DNS3_NATIVE_OPTIMIZATIONS=OFF
	-DNS3_EXAMPLES=OFF -DNS3_TESTS=OFF -DNS3_WARNINGS=OFF -DNS3_PYTHON_BINDINGS=OFF
	"-DNS3_ENABLED_MODULES=core;network;mpi" -DNS3_GSL=OFF -DNS3_SQLITE=OFF
	-DNS3_GTK3=OFF -DNS3_VISUALIZER=OFF)
NS3=$QHCA_CACHE/ns3-$(hash_text "$NS3_KERNEL" "${NS3_OPTIONS[@]}" v2)

make_library()
{
	local tmp=$NS3.tmp
	have "$NS3" && return
	rm -rf "$tmp"
	mkdir -p "$tmp"
	with_lock buildroot-apt run_step "Debian's package lists" \
		"$QHCA_TOP/scripts/build/buildroot.sh" --kernel "$NS3_KERNEL" --root -- \
		apt-get -q update
	# shellcheck disable=SC2016 # expands inside
	run_step "ns-3" in_root sh -ec '
		at=$1 to=$2
		shift 2
		cd "$at"
		apt-get -q source --only-source ns3
		mv ns3-*/ src
		# It compiles with Open MPI only, and knows no jumbo frames.
		sed -i "s/m_request = nullptr/m_request = MPI_REQUEST_NULL/
			s/\\(MAX_MPI_MSG_SIZE =\\) 2000/\\1 16384/" \
			src/ns-3.*/src/mpi/model/*
		cmake -G Ninja -S src/ns-3.* -B build "$@" -DCMAKE_INSTALL_PREFIX="$to"
		nice ninja -C build
		DESTDIR="$at/install" ninja -C build install
		cd "$at"
		mv "install$to"/* .
		rm -rf src build install ns3_*
	' sh "$(br_path "$tmp")" "$(br_path "$NS3")" "${NS3_OPTIONS[@]}"
	publish "$tmp" "$NS3"
}


make_final()
{
	local tree=$QHCA_CACHE/cluster-tree${kind:+-$kind}-$base_key tmp=$out.tmp
	have "$out" && return
	[ -e "$tree/build/build.ninja" ] || rm -rf "$tree"
	mkdir -p "$tree/src"
	rsync -rc --delete --exclude=/qemu-device/tests/build/ \
		"$QHCA_TOP"/{sim,qemu-device,include,Documentation} \
		"$tree/src/"
	# shellcheck disable=SC2016
	run_step "cluster simulator${kind:+ ($kind)}" in_root sh -ec '
		tree=$1 ns3=$2
		shift 2
		[ -e "$tree/build/build.ninja" ] ||
			meson setup "$@" -Dns3="$ns3" "$tree/build" "$tree/src/sim/ns3"
		ninja -C "$tree/build"
	' sh "$(br_path "$tree")" "$(br_path "$NS3")" "${OPTIONS[@]}"
	rm -rf "$tmp"
	mkdir -p "$tmp"
	cp "$tree/build/cluster" "$tmp/"
	publish "$tmp" "$out"
}

# With the headers that these files are compiled with.
tidy()
{
	# shellcheck disable=SC2016 # expands inside
	root --extra -- sh -c '
		library=$1
		shift
		mpi=$(pkg-config --cflags mpich | sed "s/-I/-isystem /g")
		printf "%s\n" "$@" | xargs -P "$(nproc)" -I{} clang-tidy --quiet {} -- \
			-std=gnu++17 -DNS3_MPI -Iinclude -Iqemu-device/engine -Iqemu-device/tests \
			-isystem "$library/include" $mpi 2>/dev/null
	' sh "$(br_path "$NS3")" "${tidy[@]}"
}

have "$NS3" || with_lock ns3 make_library
if [ ${#tidy[@]} != 0 ]; then
	tidy
	exit
fi
[ -z "$library" ] || { echo "$NS3"; exit; }
base_key=$(hash_text "$NS3" "${OPTIONS[@]}")
STEP_TAG=$base_key
out=$QHCA_CACHE/cluster${kind:+-$kind}-$(hash_text "$base_key" \
	"$(hash_tree "$QHCA_TOP"/sim/ns3 "$QHCA_TOP"/qemu-device/{common,engine,tests} "$QHCA_TOP/include/qhca" \
		"$QHCA_TOP/Documentation/conformance.md")")
have "$out" || with_lock "cluster-$base_key" make_final
cache_trim cluster 6
if [ -z "$ranks" ]; then
	echo "$out"
elif [ "$ranks" = 1 ]; then
	in_root "$(br_path "$out")/cluster" "$@"
else
	in_root mpirun -n "$ranks" "$(br_path "$out")/cluster" --mpi=1 "$@"
fi
