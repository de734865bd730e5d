#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# setup.sh [qhca|eth] [rxe] [net] [nested]     (in the guest)
#
# Bring the machine into a state where RDMA works; without arguments: what the launcher
# asked for. qhca: load our modules, install the provider, give the netdev its address.
# eth: all but the RDMA driver. rxe: rdma_rxe on the virtio netdev. net: addresses only. nested:
# KVM, for machines in this one.
# The devices found go to /run/qhca/env (QHCA_DEV, QHCA_IF, QHCA_GID, of the first HCA; QHCA_DEVS,
# QHCA_IFS, QHCA_GIDS, a word for each; QHCA_RXE_DEV, QHCA_RXE_GID). Safe to run twice, so an HCA
# that was plugged in again gets its address back.

. /opt/qhca/job/env
DIR=/opt/qhca
MTU=${QHCA_MTU:-4200}	# room for a path MTU of 4096 with all headers
USERSPACE=/opt/userspace	# of another release, vm --rdma-core

fail() { echo "setup: $*" >&2; exit 1; }

remember()
{
	mkdir -p /run/qhca
	sed -i "/^export $1=/d" /run/qhca/env 2>/dev/null
	echo "export $1=\"$2\"" >>/run/qhca/env
}

netdev_of_mac()
{
	local dev mac end=$((SECONDS + 30))
	while [ $SECONDS -lt $end ]; do
		for dev in /sys/class/net/*; do
			read -r mac 2>/dev/null <"$dev/address" || continue
			[ "$mac" = "$1" ] && { echo "${dev##*/}"; return; }
		done
		sleep 0.02
	done
	return 1
}

# address MAC IP: netdev up, MTU, IPv4 address; prints its name.
address()
{
	local dev
	dev=$(netdev_of_mac "$1") || return 1
	ip link set dev "$dev" mtu "$MTU" || ip link set dev "$dev" mtu 1500
	ip link set dev "$dev" up
	ip addr replace "$2/24" dev "$dev" || return 1
	echo "$dev"
}

# Our modules are not in the module tree: depmod would take seconds here.
insert()
{
	local ko=$1 name dep
	name=$(basename "$ko" .ko)
	[ -d "/sys/module/${name//-/_}" ] && return
	for dep in $(modinfo -F depends "$ko" | tr , ' '); do
		if [ -e "$DIR/modules/$dep.ko" ]; then
			insert "$DIR/modules/$dep.ko"
		else
			modprobe "$dep" || fail "modprobe $dep"
		fi
	done
	insmod "$ko" || fail "insmod $ko"
}

# install_provider BUILD [ROOT]
install_provider()
{
	local root=${2:-}
	[ -d "$DIR/$1" ] || { echo "setup: no $1 in the payload" >&2; return; }
	# A new file: programs that run have the one before mapped.
	cp --remove-destination "$DIR/$1"/libqhca-rdmav*.so "$root"/usr/lib/*-linux-gnu/libibverbs/
	mkdir -p "$root/etc/libibverbs.d"
	cp "$DIR/$1/qhca.driver" "$root/etc/libibverbs.d/"
}

rdma_core()
{
	modprobe -a ib_uverbs rdma_ucm || fail "no RDMA core"
	ip link set dev lo up
}

# The network card, with or without the RDMA driver on top.
setup_eth()
{
	local dev devs='' macs ips n
	[ "$QHCA_INSMOD" = 1 ] || return 0
	if [ ! -e "$DIR/modules/qhca.ko" ]; then
		echo "setup: no qhca.ko in the payload" >&2
		return 0
	fi
	insert "$DIR/modules/qhca.ko"
	[ "${1:-}" != rdma ] || insert "$DIR/modules/qhca_ib.ko"
	ip link set dev lo up
	read -ra macs <<<"$QHCA_MACS"
	read -ra ips <<<"$QHCA_IPS"
	for n in "${!macs[@]}"; do
		dev=$(address "${macs[n]}" "${ips[n]}") ||
			fail "no netdev with address ${macs[n]}: $(lspci -nn -d 1af4:10f0)"
		devs+=" $dev"
	done
	devs=${devs# }
	remember QHCA_IFS "$devs"
	remember QHCA_IF "${devs%% *}"
}

# rdma_of NETDEV: the RDMA device of the same function, which is there a moment later.
rdma_of()
{
	local end=$((SECONDS + 30))
	until ls "/sys/class/net/$1/device/infiniband" 2>/dev/null; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.02
	done
}

# The RDMA devices, as the netdevs are ordered, and the GIDs of their addresses.
setup_rdma()
{
	local netdev dev gid devs='' gids='' ips n=0
	. /run/qhca/env
	read -ra ips <<<"$QHCA_IPS"
	for netdev in $QHCA_IFS; do
		dev=$(rdma_of "$netdev")
		[ -n "$dev" ] || fail "no qhca RDMA device beside $netdev"
		gid=$(qhca-gid "$dev" "${ips[n]}")
		devs+=" $dev" gids+=" $gid" n=$((n + 1))
	done
	devs=${devs# } gids=${gids# }
	remember QHCA_DEVS "$devs"
	remember QHCA_GIDS "$gids"
	remember QHCA_DEV "${devs%% *}"
	remember QHCA_GID "${gids%% *}"
}

setup_qhca()
{
	local rdma=rdma
	[ "$QHCA_INSMOD" = 1 ] || return 0
	[ -e "$DIR/modules/qhca_ib.ko" ] || rdma=''
	rdma_core
	install_provider provider
	[ ! -d $USERSPACE ] || install_provider userspace-provider $USERSPACE
	setup_eth "$rdma"
	[ -n "$rdma" ] || return 0
	setup_rdma
}

setup_rxe()
{
	local dev
	[ -n "$QHCA_VIRTIO_MAC" ] || fail "rxe needs a virtio-net: vm --rxe"
	rdma_core
	modprobe rdma_rxe || fail "no rdma_rxe in this kernel"
	dev=$(address "$QHCA_VIRTIO_MAC" "$QHCA_VIRTIO_IP") || fail "no virtio netdev"
	[ -e /sys/class/infiniband/rxe0 ] || rdma link add rxe0 type rxe netdev "$dev" ||
		fail "rdma link add"
	remember QHCA_RXE_IF "$dev"
	remember QHCA_RXE_DEV rxe0
	remember QHCA_RXE_GID "$(qhca-gid rxe0 "$QHCA_VIRTIO_IP")"
}

setup_net()
{
	ip link set dev lo up
	[ -n "$QHCA_VIRTIO_MAC" ] || return 0
	modprobe virtio_net	# no driver is loaded automatically here
	remember QHCA_VIRTIO_IF "$(address "$QHCA_VIRTIO_MAC" "$QHCA_VIRTIO_IP")"
}

# QEMU's user network: it has these addresses. eth0 stays the name of the port.
setup_internet()
{
	local dev
	modprobe virtio_net || fail "no virtio_net in this kernel"
	dev=$(netdev_of_mac "$QHCA_INTERNET_MAC") || fail "no netdev for the internet"
	if [ "$dev" != inet ]; then
		ip link set dev "$dev" down name inet
	fi
	ip addr replace 10.0.2.15/24 dev inet
	ip link set dev inet up
	ip route replace default via 10.0.2.2
	echo nameserver 10.0.2.3 >/etc/resolv.conf
}

# Directories of the host's.
setup_mounts()
{
	local path number=0
	modprobe -a 9pnet_virtio 9p || fail "no 9p over virtio in this kernel"
	while read -r path; do
		mkdir -p "$path"
		mountpoint -q "$path" ||
			mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=mmap \
				"mount$number" "$path" || fail "mount $path"
		number=$((number + 1))
	done <<<"$QHCA_MOUNTS"
}

setup_nested()
{
	local module
	case " $(grep -m 1 ^flags /proc/cpuinfo) " in
	*' svm '*) module=kvm_amd ;;
	*' vmx '*) module=kvm_intel ;;
	*) fail "the CPU of this machine has no virtualization, so there is no KVM for others in it" ;;
	esac
	modprobe "$module" || fail "no KVM: modprobe $module"
	[ -c /dev/kvm ] || fail "no /dev/kvm, though $module is loaded: $(dmesg | grep -i kvm)"
}

# Give programs in there the parts of this machine that they need.
setup_userspace()
{
	local dir
	for dir in dev sys proc; do
		mountpoint -q "$USERSPACE/$dir" || mount --rbind "/$dir" "$USERSPACE/$dir" ||
			fail "mount $USERSPACE/$dir"
	done
}

if [ $# = 0 ]; then
	set -- net qhca
	[ "$QHCA_RXE" = 1 ] && set -- "$@" rxe
fi
export PATH=$DIR/guest/bin:$PATH
[ -z "$QHCA_INTERNET_MAC" ] || setup_internet
[ -z "$QHCA_MOUNTS" ] || setup_mounts
[ ! -d $USERSPACE ] || setup_userspace
for what; do
	case $what in
	nested) setup_nested ;;
	net) setup_net ;;
	eth) setup_eth ;;
	qhca) setup_qhca ;;
	rxe) setup_rxe ;;
	*) fail "unknown argument $what" ;;
	esac
done
# A machine whose only RDMA device is rxe: jobs that name no device get that one.
if [ -e /sys/class/infiniband/rxe0 ] && ! grep -qs QHCA_DEV= /run/qhca/env; then
	remember QHCA_DEV rxe0
	remember QHCA_IF "$(cat /sys/class/infiniband/rxe0/parent)"
	remember QHCA_GID "$(qhca-gid rxe0 "$QHCA_VIRTIO_IP")"
	remember QHCA_IP "$QHCA_VIRTIO_IP"
	remember QHCA_PEER "$QHCA_VIRTIO_PEER"
fi
exit 0
