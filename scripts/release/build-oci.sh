#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# build-oci.sh
#
# `make oci`: a container image with qhca-vm, Debian's QEMU with the device beside it,
# qhca-server with the QEMU that it needs, the guest, and drivers, provider and tests for it,
# so that a machine of any distribution, or a CI job, needs no more than a container runtime;
# print the directory with it. layout/ there is an OCI image layout, qhca.oci.tar the same in
# one file.
#
# No daemon takes part: mmdebstrap makes the root file system from the packages of
# build-packages.sh, umoci the image.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

case ${1:-} in
-h|--help) usage; exit 0 ;;
'') ;;
*) die "unknown option $1, see --help" ;;
esac

# The first layer.
bootstrap()
{
	local tar=$1
	# shellcheck disable=SC2016 # mmdebstrap expands $1
	as_root unshare --mount --propagation private \
		mmdebstrap --mode=root --variant=minbase --format=tar \
		--aptopt='Acquire::Languages "none"' --aptopt='Acquire::Retries "3"' \
		--dpkgopt=force-unsafe-io \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		--customize-hook='mkdir "$1/debs"' --customize-hook="cp $debs/*.deb \"\$1/debs\"" \
		--customize-hook='chroot "$1" sh -c "DEBIAN_FRONTEND=noninteractive \
			apt-get -q install -y --no-install-recommends /debs/qhca-server_*.deb /debs/qhca-tools_*.deb"' \
		--customize-hook='rm -r "$1/debs"' \
		--customize-hook='mkdir -m 1777 "$1/src" "$1/var/cache/qhca"' \
		"$QHCA_SUITE" "$tar" "deb $(debian_mirror) $QHCA_SUITE main"
}

# The second: what qhca-vm would build, where vmlib/build.py looks for it. The guest's disk
# has as much room as most jobs need, as a layer is unpacked without its holes.
ready()
{
	local work=$1 dir=$1/usr/share/qhca/ready size
	mkdir -p "$dir"
	rsync -a --sparse --exclude=.complete --exclude=vmlinuz --exclude=packages \
		"$image/" "$dir/image/"
	rsync -a --exclude=.complete "$modules/" "$dir/modules/"
	rsync -a --exclude=.complete "$provider/" "$dir/provider/"
	rsync -a --exclude=.complete "$selftests/" "$dir/selftests/"
	rsync -a --exclude=.complete --exclude=/python --exclude='qemu-qtest*' "$beside/" "$dir/beside/"
	rsync -a --exclude=.complete --exclude=/python "$qemu/" "$dir/stock-qemu/"
	e2fsck -fy "$dir/image/rootfs.ext4" || [ $? = 1 ]
	resize2fs -M "$dir/image/rootfs.ext4"
	size=$(stat -c %s "$dir/image/rootfs.ext4")
	resize2fs "$dir/image/rootfs.ext4" "$((size / 1048576 + 512))M"
	tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$date" \
		-C "$work" -cf "$work/ready.tar" usr
	rm -r "${work:?}/usr"
}

# compose DIR: the layers, and what a runtime starts.
compose()
{
	# shellcheck disable=SC2016 # expands inside
	"$QHCA_TOP/scripts/build/buildroot.sh" --oci -- sh -ec '
		cd "$1"
		image=layout:latest
		umoci init --layout layout
		umoci new --image $image
		for layer in root ready; do
			umoci raw add-layer --image $image $layer.tar
			rm -f $layer.tar
		done
		umoci config --image $image --architecture amd64 --os linux --author "$2" \
			--created "$3" \
			--config.entrypoint qhca-vm --config.cmd=--help --config.workingdir /src \
			--config.env PATH=/usr/sbin:/usr/bin:/sbin:/bin \
			--config.env QHCA_CACHE=/var/cache/qhca --config.env HOME=/root \
			--config.label org.opencontainers.image.title=qhca \
			--config.label org.opencontainers.image.version="$4"
		umoci gc --layout layout
		tar -C layout -cf qhca.oci.tar .
	' sh "$(br_path "$1")" 'the qhca authors' "$(date -u -d "@$date" +%Y-%m-%dT%H:%M:%SZ)" \
		"$("$QHCA_TOP/scripts/release/version.sh")"
}

make_final()
{
	local out=$1 tmp=$1.tmp
	have "$out" && return
	rm -rf "$tmp"
	mkdir -p "$tmp"
	run_step "container image: Debian with the packages" bootstrap "$tmp/root.tar"
	run_step "container image: the guest" ready "$tmp"
	run_step "container image: layers" compose "$tmp"
	publish "$tmp" "$out"
}

debs=$("$QHCA_TOP/scripts/release/build-packages.sh")
beside=$("$QHCA_TOP/scripts/build/beside.sh")
qemu=$("$QHCA_TOP/scripts/build/stock-qemu.sh")
image=$("$QHCA_TOP/scripts/build/image.sh")
modules=$("$QHCA_TOP/scripts/build/modules.sh")
provider=$("$QHCA_TOP/scripts/build/provider.sh")
selftests=$("$QHCA_TOP/scripts/build/selftests.sh")
date=$("$QHCA_TOP/scripts/release/version.sh" --date)
out=$QHCA_CACHE/oci-$(hash_text "$debs" "$beside" "$qemu" "$image" "$modules" "$provider" "$selftests" \
	"$(declare -f bootstrap ready compose)")
have "$out" || with_lock oci make_final "$out"
cache_trim oci 2
echo "$out"
