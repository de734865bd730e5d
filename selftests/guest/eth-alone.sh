# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh, after eth.sh: without the RDMA driver, and without the core that it needs.

no_rdma() { [ ! -d /sys/module/ib_core ] && [ -z "$(ls -A /sys/class/infiniband 2>/dev/null)" ]; }

eth_alone()
{
	sysctl -qw "net.ipv6.conf.$QHCA_IF.disable_ipv6=1"
	expect "eth/nothing of RDMA is loaded" no_rdma
	eth_card
	ip link add link "$QHCA_IF" name "$VLAN_IF" type vlan id 7
	ip addr add "$VLAN_NET.1/24" dev "$VLAN_IF"
	ip link set dev "$VLAN_IF" up
	expect "eth/VLAN: tagged frames" vlan_frames
	ip link del dev "$VLAN_IF"
	expect "eth/the driver goes and comes back" eth_reload
}

eth_reload()
{
	rmmod qhca && [ ! -e "/sys/class/net/$QHCA_IF" ] || return 1
	/opt/qhca/guest/setup.sh eth && flood 50 500
}
