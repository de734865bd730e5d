#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# build-packages.sh
#
# `make packages`: Debian packages of the drivers (qhca-dkms), the provider
# (ibverbs-provider-qhca), the device beside Debian's QEMU (qemu-qhca) and as a process of its own
# (qhca-server), and qhca-vm (qhca-tools); print the directory with them. They are
# for the Debian release of the build root, and have the version that version.sh prints.
# Lintian's errors are errors.
#
# DEBFULLNAME and DEBEMAIL are who has made them, as for other tools of Debian.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

case ${1:-} in
-h|--help) usage; exit 0 ;;
'') ;;
*) die "unknown option $1, see --help" ;;
esac

packaging=$QHCA_TOP/packaging/debian
MAKER="${DEBFULLNAME:-The qhca authors} <${DEBEMAIL:-qhca@localhost}>"
# They are no upload to Debian, and we have no address to put in.
NOT_FOR_US=bad-distribution-in-changes-file,initial-upload-closes-no-bugs
NOT_FOR_US+=,bogus-mail-host,bogus-mail-host-in-debian-changelog

# The parts of this tree that qhca-vm needs to build and to start all but QEMU and the server. The
# drivers are in qhca-dkms as well.
SOURCES=(
	Kbuild Makefile drivers include providers/qhca selftests
	scripts/vm scripts/vmlib scripts/lib.sh scripts/build/buildroot.sh
	scripts/build/host-deps.sh scripts/build/initrd.sh scripts/build/debug-kernel.config scripts/build/kcsan-kernel.config
	scripts/build/rt-kernel.config
	scripts/build/arm64-kernel.config scripts/build/cross.sh
	scripts/build/image.sh scripts/build/kernel.sh scripts/build/modules.sh
	scripts/build/provider.sh scripts/build/selftests.sh scripts/build/stock-qemu.sh
	scripts/build/userspace.sh
	scripts/check/results.py
	qemu-device/tests/oracle/roce.py qemu-device/tests/oracle/tables.py
	Documentation/conformance.md
)

# An entry for dpkg; what has changed is in CHANGELOG.md.
changelog()
{
	cat <<-ENTRY
	qhca ($version-1) $QHCA_SUITE; urgency=medium

	  * Built from the sources of this version; see the changelog of qhca.

	 -- $MAKER  $(LC_ALL=C date -uR -d "@$SOURCE_DATE_EPOCH")
	ENTRY
}

# The provider goes with one release of rdma-core, whose interface it was built for.
provider_depends()
{
	local release
	release=$(sed -n 's/^set(PACKAGE_VERSION "\([0-9]*\).*/\1/p' "$1/src/CMakeLists.txt")
	[ -n "$release" ] || die "no version in rdma-core"
	echo "libibverbs1 (>= $release~), libibverbs1 (<< $((release + 1))~)"
}

# The object refuses another minor version.
qemu_depends()
{
	local major minor
	IFS=. read -r major minor _ <"$1"
	echo "qemu-system-x86 (>= 1:$major.$minor) | qemu-system-arm (>= 1:$major.$minor)" \
		"| qemu-system-s390x (>= 1:$major.$minor)," \
		"qemu-system-common (>= 1:$major.$minor), qemu-system-common (<< 1:$major.$((minor + 1))~)"
}

stage()
{
	local tree=$1 qemu object server provider docs
	qemu=$("$QHCA_TOP/scripts/build/qemu-source.sh")
	object=$("$QHCA_TOP/scripts/build/beside.sh" --object)
	server=$("$QHCA_TOP/scripts/build/server.sh")
	provider=$("$QHCA_TOP/scripts/build/provider.sh")
	docs=$("$QHCA_TOP/scripts/docs/build.sh")
	mkdir -p "$tree/src" "$tree/built"
	( cd "$QHCA_TOP" && git ls-files --cached --others --exclude-standard -- "${SOURCES[@]}" |
		grep -v '/\.gitignore$' |
		rsync -a --files-from=- ./ "$tree/src/" )
	rsync -a "$packaging/" "$tree/debian/"
	sed -i "s/^Maintainer: .*/Maintainer: $MAKER/" "$tree/debian/control"
	changelog >"$tree/debian/changelog"
	cp "$QHCA_TOP/CHANGELOG.md" "$tree/"
	install -D -m 644 -t "$tree/built/beside" "$object/qhca.so"
	rsync -a "$qemu/python" "$tree/built/"
	qemu_depends "$qemu/VERSION" >"$tree/built/qemu.depends"
	install -D "$server/qhca-server.bin" "$tree/built/server/qhca-server"
	rsync -a --exclude=.complete "$provider/" "$tree/built/provider/"
	install -D -m 644 -t "$tree/built/examples" "$QHCA_TOP/Documentation/examples/libvirt.xml"
	rsync -a "$docs/man/" "$tree/built/man/"
	provider_depends "$("$QHCA_TOP/scripts/build/provider.sh" --tree)" \
		>"$tree/built/provider.depends"
}

# compile TREE OUT
compile()
{
	# shellcheck disable=SC2016 # expands inside
	"$QHCA_TOP/scripts/build/buildroot.sh" --packaging -- env SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH" \
		DEB_BUILD_OPTIONS=noautodbgsym sh -ec '
		cd "$1"
		dpkg-buildpackage --build=binary --no-sign
		mv ../*.deb ../*.changes ../*.buildinfo "$2"
		cd "$2"
		lintian --fail-on error --suppress-tags "$3" ./*.changes
	' sh "$(br_path "$1")" "$(br_path "$2")" "$NOT_FOR_US"
}

make_final()
{
	local out=$1 tmp=$1.tmp
	have "$out" && return
	rm -rf "$tmp"
	mkdir -p "$tmp"
	run_step "packages, version $version" compile "$work/qhca-$version" "$tmp"
	publish "$tmp" "$out"
}

version=$("$QHCA_TOP/scripts/release/version.sh")
SOURCE_DATE_EPOCH=$("$QHCA_TOP/scripts/release/version.sh" --date)
work=$(mktemp -d "$QHCA_CACHE/tmp/packages.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/qhca-$version"
stage "$work/qhca-$version"
out=$QHCA_CACHE/packages-$(hash_text "$version" "$(declare -f compile)" "$(hash_tree "$work")")
have "$out" || with_lock packages make_final "$out"
cache_trim packages 4
echo "$out"
