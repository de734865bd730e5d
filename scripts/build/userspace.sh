#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# userspace.sh RELEASE
#
# The rdma-core of another Debian release for the guest: a root with it and with pyverbs and
# its tests, which the guest mounts, and our provider for it. Prints the directory with
# root.ext4.
#
# Used by `scripts/vm --rdma-core RELEASE`. The kernel and all other programs stay the image's;
# programs in this root have its C library and Python.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

PACKAGES=(rdma-core ibverbs-providers ibverbs-utils rdmacm-utils iproute2 python3-pyverbs)

case ${1:-} in
-h|--help) usage; exit 0 ;;
-*|'') die "which release of Debian? See --help" ;;
esac
RELEASE=$1

bootstrap()
{
	local root=$1 mirror
	mirror=$(debian_mirror)
	# The mirror of an unreleased suite may stand still.
	as_root unshare --mount --propagation private \
		mmdebstrap --mode=root --variant=minbase \
		--aptopt='Acquire::Languages "none"' \
		--aptopt='Acquire::Retries "3"' \
		--aptopt='Acquire::Check-Valid-Until "false"' \
		--dpkgopt=force-unsafe-io \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		--include="$(IFS=,; echo "${PACKAGES[*]}")" \
		"$RELEASE" "$root" "deb $mirror $RELEASE main"
}

# As root, see the call of this script.
assemble()
{
	local tmp=$1 root=$1/root
	mkdir -p "$root/opt/pyverbs" "$root/etc/libibverbs.d"
	cp -r "$root/usr/share/doc/rdma-core/tests" "$root/opt/pyverbs/"
	find "$root/opt/pyverbs" -name '*.gz' -exec gunzip {} +
	cp "$root/var/lib/dpkg/status" "$tmp/packages"
	rm -rf "$root/var/cache/apt" "$root/var/lib/apt/lists"
	truncate -s "$(($(du -sm "$root" | cut -f1) * 5 / 4 + 64))M" "$tmp/root.ext4"
	mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -d "$root" "$tmp/root.ext4"
	rm -rf --one-file-system "$root"
	chown -R "$2" "$tmp"
}

make_final()
{
	local tmp=$QHCA_CACHE/tmp/userspace-$key
	have "$OUT" && return
	"$QHCA_TOP/scripts/build/host-deps.sh"
	as_root rm -rf --one-file-system "$tmp"
	mkdir -p "$tmp"
	run_step "packages of $RELEASE" bootstrap "$tmp/root"
	run_step "root of $RELEASE" as_root env HOME="$HOME" QHCA_CACHE="$QHCA_CACHE" \
		"$0" "$RELEASE" --assemble "$tmp" "$(own_ids)"
	publish "$tmp" "$OUT"
}

if [ "${2:-}" = --assemble ]; then	# ourselves again, now as root
	assemble "$3" "$4"
	exit 0
fi
key=$(hash_text "$RELEASE" "${PACKAGES[@]}" "$(declare -f bootstrap assemble)")
OUT=$QHCA_CACHE/userspace-$key
have "$OUT" || with_lock "userspace-$key" make_final
cache_trim userspace 3
echo "$OUT"
