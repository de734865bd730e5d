# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh: how fast the adapter is, by all that say so. Libraries take the smallest
# number that they find, and by that choose how they move data. All in Mbit/s.

PORT_SPEED=100000

speed_of_rdma() { awk '{ print $1 * 1000 }' "/sys/class/infiniband/$QHCA_DEV/ports/1/rate"; }
speed_of_verbs()
{
	ibv_devinfo -d "$QHCA_DEV" -v | awk '/active_width:/ { width = $2 + 0 }
		/active_speed:/ { speed = $2 } END { print width * speed * 1000 }'
}
speed_of_netdev() { cat "/sys/class/net/$QHCA_IF/speed"; }
speed_of_ethtool() { ethtool "$QHCA_IF" | sed -n 's/.*Speed: \([0-9]*\)Mb.*/\1/p'; }

speed_agrees() { same "$1" "$("speed_of_$1")" $PORT_SPEED; }

# speed_of_link DIRECTORY current|max: what the PCI Express link carries.
speed_of_link()
{
	awk '{ if (FNR == NR) speed = $1; else width = $1 }
		END { printf "%d\n", speed * width * 1000 * (speed < 8 ? 8 / 10 : 128 / 130) }' \
		"$1/$2_link_speed" "$1/$2_link_width"
}

carries() { echo "$1: $2"; [ "${2%.*}" -ge $((PORT_SPEED * ${3:-100} / 100)) ]; }

speed_links()
{
	local dir which
	dir=$(readlink -f "/sys/class/infiniband/$QHCA_DEV/device")
	for which in current max; do
		carries "the device's link, $which" "$(speed_of_link "$dir" $which)" || return
		carries "its port's link, $which" "$(speed_of_link "${dir%/*}" $which)" || return
	done
}

# lspci says so of a link below what both ends could have, and of small requests of the device.
speed_lspci()
{
	lspci -vv -s "$(basename "$(readlink -f "/sys/class/infiniband/$QHCA_DEV/device")")" |
		grep -E 'MaxReadReq|LnkCap|LnkSta' | tee "$LOGS/lspci"
	[ "$(grep -c LnkSta: "$LOGS/lspci")" = 1 ] && ! grep -q 'downgraded' "$LOGS/lspci" &&
		grep -q 'MaxReadReq 512 bytes' "$LOGS/lspci"
}

# UCX takes the smaller of link and port, less the headers of packets.
speed_ucx()
{
	ucx_info -d >"$LOGS/ucx-info" 2>&1 || return
	carries UCX "$(awk -v dev="$QHCA_DEV:1" '/Transport:/ { rc = $3 == "rc_verbs" }
		/Device:/ { ours = $3 == dev }
		/bandwidth:/ && rc && ours { print $3 * 1048576 * 8 / 1e6 }' "$LOGS/ucx-info")" 90
}

speeds()
{
	local who
	# Soft-RoCE has no link.
	[[ $QHCA_DEV == qhca* ]] || return 0
	for who in rdma verbs netdev ethtool; do
		expect "speeds/J-028: $who" speed_agrees $who
	done
	expect "speeds/J-028: the links carry the port" speed_links
	expect "speeds/J-028: lspci" speed_lspci
	expect "speeds/J-028: UCX" speed_ucx
}
