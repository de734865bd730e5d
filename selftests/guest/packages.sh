#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# packages.sh     (in the guest, which has been started with --no-insmod)
#
# The packages of drivers and provider, in /opt/qhca/debs with what they depend on: they
# install, which builds the drivers (without KVM this would take a quarter of an hour, so
# that what DKMS has built elsewhere for this kernel is in /opt/qhca/dkms.tar), the device finds its drivers by its PCI ID, the job of `make run` runs over
# them, and nothing is left when they are removed.

. /opt/qhca/job/env
LOGS=/run/qhca/logs
. /opt/qhca/guest/result.sh
export DEBIAN_FRONTEND=noninteractive
release=$(uname -r)
pci=$(grep -l 0x10f0 /sys/bus/pci/devices/*/device | head -n 1)
pci=${pci%/device}

install_all()
{
	local apt=(apt-get -q install -y --no-install-recommends /opt/qhca/debs/*.deb)
	if [ "$QHCA_ACCEL" != tcg ]; then
		"${apt[@]}"
		return
	fi
	mkdir -p /etc/dkms && touch /etc/dkms/no-autoinstall && "${apt[@]}" || return
	rm /etc/dkms/no-autoinstall
	dkms add "$(echo /usr/src/qhca-*)" && tar -xf /opt/qhca/dkms.tar -C /var/lib/dkms &&
		dkms autoinstall -k "$release"
}

built()
{
	dkms status qhca
	dkms status qhca | grep -q "$release.*: installed"
}

# From the modules' own table, as depmod has indexed it.
alias_of_device() { same "driver of $(cat "$pci/modalias")" "$(modprobe -R "$(cat "$pci/modalias")")" qhca; }

loaded() { [ -d /sys/module/qhca_ib ]; }

# As at the start of a machine, the device's alias loads qhca, the auxiliary device's qhca_ib.
by_udev()
{
	! loaded || return
	/usr/lib/systemd/systemd-udevd --daemon || return
	udevadm trigger --action=add --subsystem-match=pci
	until_true loaded || return
	udevadm settle
	modinfo -F filename qhca qhca_ib
	same "modules that dkms has made" \
		"$(modinfo -F filename qhca qhca_ib | grep -c '/updates/dkms/')" 2
}

ours() { find /sys/class/infiniband -mindepth 1 -not -name 'rxe*' -printf '%f\n' | head -n 1; }

# For rdma-core's rules, which know other adapters by the names of their drivers.
described()
{
	udevadm info -q property "/sys/class/infiniband/$(ours)" | grep -x ID_RDMA_ROCE=1
}

set_up()
{
	local netdev
	netdev=$(find "$pci/net" -mindepth 1 -printf '%f\n' | head -n 1)
	# shellcheck disable=SC2153 # from job/env
	ip link set dev "$netdev" up mtu 4200 && ip addr add "$QHCA_IP/24" dev "$netdev" || return
	PATH=/opt/qhca/guest/bin:$PATH
	QHCA_DEV=$(ours)
	QHCA_GID=$(qhca-gid "$QHCA_DEV" "$QHCA_IP")
	export QHCA_DEV QHCA_GID PATH
}

# libibverbs has loaded the package's library.
provider()
{
	local library
	strace -f -qq -e trace=openat -o "$LOGS/strace" ibv_devinfo -d "$QHCA_DEV" || return
	library=$(grep -o '/[^"]*/libqhca-rdmav[0-9]*\.so' "$LOGS/strace" | tail -n 1)
	dpkg -S "$(readlink -f "$library")" | grep '^ibverbs-provider-qhca'
}

removed()
{
	modprobe -r qhca_ib qhca && apt-get -q purge -y qhca-dkms ibverbs-provider-qhca || return
	! loaded && ! modprobe -R "$(cat "$pci/modalias")" || return
	same "left behind" "$(find /etc /usr /var/lib/dkms "/lib/modules/$release" -xdev \
		-name '*qhca*' | tr '\n' ' ')" ''
}

plan packages install built alias udev description provider demo remove
export EXPECT_LINES=30
if expect packages/install install_all; then
	expect packages/built built
	expect packages/alias alias_of_device
	expect packages/udev by_udev
	expect packages/description described
	set_up
	expect packages/provider provider
	if /opt/qhca/guest/demo.sh | tee "$LOGS/demo"; then
		result ok packages/demo
	else
		result fail packages/demo
	fi
	expect packages/remove removed
fi
summary
