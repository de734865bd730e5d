#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# net-tests.sh [--kernel NAME]
#
# The kernel's own tests of network drivers, tools/testing/selftests/drivers/net, of the source
# that the guest's kernel is made of, with what they need: its library for netlink, the programs
# and BPF objects that they start, and an ethtool that is new enough. Prints the directory with
# tools/ and bin/, which works wherever it is.
#
#   --kernel NAME  the kernel of vm's --kernel: 7, or the name of a release

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

SUITE=$QHCA_SUITE ROOT=()
while [ $# -gt 0 ]; do
	case $1 in
	-h|--help) usage; exit 0 ;;
	--kernel) SUITE=$(kernel_suite "$2") ROOT=(--kernel "$2"); shift ;;
	*) die "unknown option $1, see --help" ;;
	esac
	shift
done

# Of the kernel's tree.
SOURCES=(tools/testing/selftests/drivers/net tools/testing/selftests/net/lib
	tools/testing/selftests/net/lib.sh tools/testing/selftests/net/forwarding/lib.sh
	tools/testing/selftests/kselftest tools/testing/selftests/kselftest.h
	tools/net/ynl Documentation/netlink include/uapi/linux)
# Tests for other drivers, or of the kernel alone.
OTHERS=(bonding dsa microchip mlxsw netconsole netdevsim ocelot team virtio_net)

# The package has the first two numbers of the kernel's release in its name.
kernel_version()
{
	local br release
	br=$("$QHCA_TOP/scripts/build/buildroot.sh" "${ROOT[@]}" --path)
	release=$(find "$br/usr/src" -maxdepth 1 -name 'linux-headers-*-amd64' -printf '%f\n' |
		sed 's/^linux-headers-//' | sort -V | tail -n 1)
	[ -n "$release" ] || die "no kernel headers in the build root"
	cut -d . -f 1,2 <<<"$release"
}

# Lists of its own, because the guest also runs the ethtool of Debian's sid, and its own one is
# older than the tests. apt knows the hashes.
fetch_source()
{
	# shellcheck disable=SC2016 # expands inside
	run_step "tests of network drivers" in_buildroot sh -ec '
		cd "$1"
		package=linux-source-$4
		mkdir -p apt/lists/partial apt/cache src ethtool bpf
		for suite in $(printf "%s\n" "$3" "${3%-backports}" sid | sort -u); do
			echo "deb $2 $suite main"
		done >apt/sources.list
		shift 4
		get() {
			apt-get -q -o Dir::Etc::SourceList="$PWD/apt/sources.list" \
				-o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$PWD/apt/lists" \
				-o Dir::Cache="$PWD/apt/cache" -o Debug::NoLocking=1 \
				-o Acquire::Check-Valid-Until=false "$@"
		}
		get update
		get download "$package" ethtool/sid libbpf-dev/sid
		dpkg-deb --fsys-tarfile "$package"_*.deb | tar -xO --wildcards "*/linux-source-*.tar.xz" |
			tar -xJ -C src --strip-components=1 --wildcards "$@"
		dpkg-deb -x ethtool_*.deb ethtool
		dpkg-deb -x libbpf-dev_*.deb bpf
	' sh "$(br_path "$1")" "$(debian_mirror)" "$SUITE" "$VERSION" \
		"${SOURCES[@]/#/linux-source-*/}"
}

# One by one: the kernel's Makefiles want the headers of a whole tree. Older kernels lack some, and
# the code that theirs generates for netlink.
compile()
{
	# shellcheck disable=SC2016 # expands inside
	"$QHCA_TOP/scripts/build/buildroot.sh" --extra -- sh -ec '
		cd "$1/src/tools/testing/selftests"
		ynl=../../net/ynl uapi=../../../include/uapi
		# It looks for the root of a tree, and need not check the specifications.
		touch "$1/src/MAINTAINERS"
		mkdir "$1/python"
		echo "def validate(*args): pass" >"$1/python/jsonschema.py"
		make -s -C $ynl/lib ynl.a && PYTHONPATH="$1/python" \
			make -s -C $ynl/generated ethtool-user.h ethtool-user.o || echo "no netlink"
		guard() { echo "-D$1 -include $uapi/linux/$2"; }
		for source in net/lib/*.c drivers/net/*.c drivers/net/hw/*.bpf.c \
			drivers/net/hw/toeplitz.c; do
			case $source in
			*"*"*) ;;
			*/toeplitz.c) gcc -O2 -w -I. -Inet/lib -I$ynl/lib -I$ynl/generated \
				-idirafter $uapi $(guard _LINUX_ETHTOOL_H ethtool.h) \
				$(guard _LINUX_ETHTOOL_NETLINK_H_ ethtool_netlink.h) \
				"$source" $ynl/generated/ethtool-user.o $ynl/lib/ynl.a -o "${source%.c}" ||
				echo "no ${source%.c}" ;;
			*.bpf.c) clang -O2 -g -target bpf -I"$1/bpf/usr/include" \
				-I/usr/include/x86_64-linux-gnu -c "$source" -o "${source%.c}.o" ||
				echo "no ${source%.c}.o" ;;
			*) gcc -O2 -w -I. -Inet/lib "$source" -o "${source%.c}" ||
				echo "no ${source%.c}" ;;
			esac
		done
	' sh "$(br_path "$1")"
}

make_final()
{
	local tmp=$QHCA_CACHE/tmp/net-tests-$key
	have "$OUT" && return
	rm -rf "$tmp"
	mkdir -p "$tmp"
	fetch_source "$tmp"
	rm -rf "${OTHERS[@]/#/$tmp/src/tools/testing/selftests/drivers/net/}"
	run_step "programs of the tests" compile "$tmp"
	mkdir "$tmp/src/bin"
	cp "$tmp/ethtool/usr/sbin/ethtool" "$tmp/src/bin/"
	publish "$tmp/src" "$OUT"
	rm -rf "$tmp"
}

VERSION=$(kernel_version)
key=$(hash_text "$SUITE" "$VERSION" "${SOURCES[@]}" "${OTHERS[@]}" \
	"$(declare -f fetch_source compile make_final)")
OUT=$QHCA_CACHE/net-tests-$key
have "$OUT" || with_lock net-tests make_final
cache_trim net-tests 3
echo "$OUT"
