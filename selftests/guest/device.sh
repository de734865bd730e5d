# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh and consumers.sh: the device as its host and the PCI bus see it.

DEVICE_PATH=/machine/peripheral/qhca0

# qom qom-get|qom-set PROPERTY [VALUE]: of the device; the value is of JSON. Prints what is
# returned, fails if it is an error. As qhca-host, but within this shell, for some ask often.
qom()
{
	local reply
	exec 4<>/run/qhca/host || return
	echo "qmp {\"execute\": \"$1\", \"arguments\": {\"path\": \"$DEVICE_PATH\", \"property\": \"$2\"${3:+, \"value\": $3}}}" >&4
	read -r reply <&4
	exec 4>&-
	[[ $reply =~ \"return\":\ *\"?([^\"}]*) ]] && echo "${BASH_REMATCH[1]}"
}

# For device_reset, also in other shells.
device_find()
{
	QHCA_FUNCTION=$(lspci -D -n -d 1af4:10f0 | cut -d ' ' -f 1)
	export QHCA_FUNCTION
	export -f device_reset
}

device_reset() { echo 1 >"/sys/bus/pci/devices/$QHCA_FUNCTION/reset"; }

# device_recovers true|false: whether the driver restarts a device that has failed. It does so
# without delay, but most tests look at the failed device.
device_recovers()
{
	devlink health set "pci/$(lspci -D -n -d 1af4:10f0 | cut -d ' ' -f 1)" reporter hca \
		auto_recover "$1" 2>/dev/null
}

# A new netdev may have got its addresses, and thus its GIDs, in another order.
# shellcheck disable=SC2034,SC2153 # the launcher's
device_gid() { QHCA_GID=$(qhca-gid "$QHCA_DEV" "$QHCA_IP" 2>/dev/null); }
