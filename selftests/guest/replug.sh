#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# replug.sh     (in the guest)
#
# While a schedule of vm --faults takes adapters out and puts them back: those that are back get
# their addresses, as udev and the network's configuration would see to in other machines.

. /opt/qhca/job/env

without_address()
{
	local dev mac addresses
	for dev in /sys/class/net/*; do
		read -r mac 2>/dev/null <"$dev/address" || continue
		[[ " $QHCA_MACS " == *" $mac "* ]] || continue
		# It may have gone since.
		addresses=$(ip -4 -o addr show dev "${dev##*/}" 2>/dev/null) || continue
		[ -n "$addresses" ] || return 0
	done
	return 1
}

while sleep 0.2; do
	without_address && /opt/qhca/guest/setup.sh qhca >/run/qhca/replug.log 2>&1
done
