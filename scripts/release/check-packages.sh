#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-packages.sh
#
# Use the packages of `make packages` as a new user would: in a fresh Debian, beside Debian's QEMU,
# qhca-vm does the job of `make run`, starting with nothing, and starts a machine with qhca-server;
# then drivers and provider are installed in a fresh guest, see guest/packages.sh. Prints TAP and
# totals.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

case ${1:-} in
-h|--help) usage; exit 0 ;;
esac

LOGS=$QHCA_CACHE/logs/check-packages
. "$QHCA_TOP/selftests/guest/result.sh"
ROOT=$QHCA_CACHE/tmp/packages-root.$$
trap 'as_root rm -rf --one-file-system "$ROOT"' EXIT

# bootstrap DEBS
bootstrap()
{
	# shellcheck disable=SC2016 # mmdebstrap expands $1
	as_root unshare --mount --propagation private \
		mmdebstrap --mode=root --variant=minbase \
		--aptopt='Acquire::Languages "none"' --aptopt='Acquire::Retries "3"' \
		--dpkgopt=force-unsafe-io \
		--include=qemu-system-x86,systemd,apparmor,libvirt-clients,libvirt-common,libxml2-utils \
		--customize-hook='mkdir "$1/debs"' \
		--customize-hook="cp $1/*.deb \"\$1/debs\"" \
		--customize-hook='chroot "$1" sh -c "DEBIAN_FRONTEND=noninteractive \
			apt-get -q install -y --no-install-recommends /debs/qemu-qhca_*.deb /debs/qhca-server_*.deb \
			/debs/qhca-tools_*.deb"' \
		--skip=cleanup/apt \
		"$QHCA_SUITE" "$ROOT" "deb $(debian_mirror) $QHCA_SUITE main"
}

# enter COMMAND…: as buildroot.sh does it, but nothing of this tree is there.
enter()
{
	# shellcheck disable=SC2016 # expands in the inner shell
	as_root unshare --mount --propagation private /bin/sh -ec '
		root=$1
		shift
		# A root that a script inside, which does the same, can make private again.
		mount --bind "$root" "$root"
		mount --rbind /dev "$root/dev"
		mount --rbind /proc "$root/proc"
		mount --rbind /sys "$root/sys"
		mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
		[ ! -e /etc/resolv.conf ] || { : >>"$root/etc/resolv.conf"
			mount --bind "$(readlink -f /etc/resolv.conf)" "$root/etc/resolv.conf"; }
		exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
			HOME=/root LC_ALL=C.UTF-8 TERM=dumb ${QHCA_ACCEL:+QHCA_ACCEL="$QHCA_ACCEL"} \
			${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
			"$@"
	' sh "$ROOT" "$@"
}

# Features that libvirt and virtme-ng use, all in one machine that does not run; its screen answers.
features()
{
	# shellcheck disable=SC2016 # expands inside
	enter bash -ec '
		cd /tmp
		qemu-system-x86_64-qhca -machine q35 -accel tcg -m 256 -S -pidfile pid \
			-sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny \
			-object memory-backend-memfd,id=m,size=256M,share=on -numa node,memdev=m \
			-object rng-random,id=r,filename=/dev/urandom -device virtio-rng-pci,rng=r \
			-vga std -device virtio-gpu-pci -vnc unix:vnc -device qemu-xhci -device usb-tablet \
			-netdev user,id=n0 -device virtio-net-pci,netdev=n0 -device e1000e \
			-virtfs local,path=/debs,mount_tag=debs,security_model=none \
			-device pcie-root-port,id=rp0 -netdev user,id=n1 -device qhca,bus=rp0,netdev=n1 &
		for i in $(seq 100); do [ ! -e pid ] || break; sleep 0.2; done
		python3 -c "import socket; s = socket.socket(socket.AF_UNIX); s.connect(\"vnc\")
assert s.recv(12) == b\"RFB 003.008\n\""
		kill "$(cat pid)"
		qemu-system-x86_64-qhca -device help | grep vhost-user-fs-pci'
}

# systemd takes the unit as it is, a key that it does not know is only a warning; and what the
# service could do is little: by systemd's sum at most 1.0 of 10.
unit()
{
	same "systemd says" \
		"$(enter systemd-analyze verify --man=no qhca-server@check.service 2>&1)" '' &&
		enter systemd-analyze security --no-pager --offline=yes --threshold=10 \
			qhca-server@check.service
}

# As libvirt includes it in the profile of each machine.
confined()
{
	# shellcheck disable=SC2016 # expands inside
	enter sh -ec '
		file=/etc/apparmor.d/abstractions/libvirt-qemu.d/qhca-server
		echo "profile machine { include \"$file\" }" |
			apparmor_parser --skip-kernel-load --skip-cache --debug |
			grep "/run/qhca-server/"'
}

# libvirt's own judgement of the example.
domain() { enter virt-xml-validate /usr/share/doc/qhca-server/examples/libvirt.xml domain; }

# The server of the package, and Debian's QEMU.
served()
{
	# shellcheck disable=SC2016 # expands in the guest
	enter qhca-vm run --server --timeout 600 -- 'ibv_devinfo -d $QHCA_DEV' &&
		[ -z "$(enter find /root/.cache/qhca -maxdepth 1 -name 'server-*')" ]
}

# DKMS with the headers of the guest's kernel.
dkms_build()
{
	# shellcheck disable=SC2016 # expands inside
	enter sh -ec '
		release=$(cat /root/.cache/qhca/image-*/release)
		DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends \
			"linux-headers-$release" /debs/qhca-dkms_*.deb
		dkms autoinstall -k "$release"
		dkms status qhca | grep "$release.*: installed"
		cd /var/lib/dkms
		tar -cf /dkms.tar qhca/*/"$release"'
}

# The packages for the guest, and what they depend on that it does not have.
download()
{
	# shellcheck disable=SC2016 # expands inside
	enter sh -ec '
		cp -r /debs /offline
		cd /offline
		rm -f qemu-qhca_* qhca-server_* qhca-tools_* *.changes
		apt-get -q -o Dir::State::status="$(echo /root/.cache/qhca/image-*/packages)" \
			-o Dir::Cache::archives=/offline -o APT::Sandbox::User=root \
			install -y --no-install-recommends --download-only ./*.deb
		rm -rf partial lock
		ls -l'
}

debs=$("$QHCA_TOP/scripts/release/build-packages.sh")
plan chroot install collision features unit confined domain run served dkms guest
export EXPECT_LINES=30
if expect chroot/install bootstrap "$debs"; then
	expect chroot/collision enter qemu-system-x86_64 --version
	expect chroot/features features
	expect chroot/unit unit
	expect chroot/confined confined
	expect chroot/domain domain
	echo "# qhca-vm run --rxe -- /opt/qhca/guest/demo.sh"
	if enter qhca-vm run --rxe --timeout 900 -- /opt/qhca/guest/demo.sh; then
		result ok chroot/run
	else
		result fail chroot/run "status $?"
	fi
	expect chroot/served served
	expect chroot/dkms dkms_build
	if expect chroot/guest download; then
		enter qhca-vm run --no-insmod --rxe --timeout 1800 --put /offline:debs \
			--put /dkms.tar:dkms.tar -- /opt/qhca/guest/packages.sh || true
	fi
fi
summary
