# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh, after eth-senders.sh: a change of the settings that fails half-way, since the
# device refuses a command.

# Settings that such a change must leave as they were.
card_settings()
{
	ethtool -l "$QHCA_IF"
	ethtool -g "$QHCA_IF"
	ethtool -c "$QHCA_IF"
	ethtool -n "$QHCA_IF"
	ethtool -x "$QHCA_IF"
	cat "/sys/class/net/$QHCA_IF/mtu"
	find "/sys/class/net/$QHCA_IF/queues/" -name '[rt]x-*' | sort
	cat "/sys/class/net/$QHCA_IF"/queues/tx-*/xps_cpus
}

# refuses OPCODE N COMMAND…: the Nth command of that kind is refused, and so the whole change.
refuses()
{
	local rule="cmd opcode=$1 nth=$2 once fail=no_resource" before rc=0
	shift 2
	before=$(card_settings)
	qom qom-set faults "\"$rule\"" || return 1
	! "$@" 2>/dev/null || { echo "$*: in spite of $rule"; rc=1; }
	qom qom-set faults '""'
	same "settings after $*, $rule" "$(card_settings)" "$before" && return $rc
}

# each_change COMMAND…: with something behind it that needs other queues
each_change()
{
	"$@" ethtool -G "$QHCA_IF" rx 256 tx 256 && "$@" ethtool -C "$QHCA_IF" rx-usecs 20 &&
		"$@" ip link set dev "$QHCA_IF" mtu 1500 && "$@" ip link set dev "$QHCA_IF" mtu 9000 || return 1
	no_rss || "$@" ethtool -L "$QHCA_IF" combined 1
}

# Without CQs for the new queues the old ones go on, and so does the port.
refused_first() { each_change under_traffic refuses create_cq 2; }

# The device has replaced a queue by then, and gets the old ones back, and the rule.
refused_later()
{
	local what rc=0 last=$(($(max_channels) - 1)) all=('create_ethq 1' 'create_ethq 2')
	if ! no_rss; then
		all+=('create_ethq 3' 'set_rss 1')
		rule action "$last" loc 7 || return 1
	fi
	for what in "${all[@]}"; do
		# shellcheck disable=SC2086 # words
		refuses $what ethtool -G "$QHCA_IF" rx 256 tx 256 || rc=1
		until_true flood 20 500 || { echo "dead after $what"; rc=1; }
	done
	no_rss && return $rc
	ruled "$last" && ethtool -N "$QHCA_IF" delete 7 && check_flows 20 || rc=1
	refuses create_ethq 1 ethtool -L "$QHCA_IF" combined 1 && until_true check_flows 20 && return $rc
}

eth_refused()
{
	if ! device_find || ! qom qom-get faults >/dev/null; then
		result skip "eth/changes that the device refuses" "the host takes no orders"
		return
	fi
	expect "eth/no CQs for other queues: nothing changes, nothing gets lost" refused_first
	expect "eth/a queue or a table is refused: all is as before" refused_later
}
