# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh, after eth.sh: the channels of the network card, and how received frames are
# spread over them. The gateway refuses connections, which are as many flows as there are ports.

# From ethtool -l: the first number is the maximum.
max_channels() { ethtool -l "$QHCA_IF" | awk '$1 == "Combined:" { print $2; exit }'; }
channels() { ethtool -l "$QHCA_IF" | awk '$1 == "Combined:" { n = $2 } END { print n }'; }

# As many as CPUs, but no more than vectors for RDMA, and than 8. Vector 0 has other work.
most_channels()
{
	local vectors
	vectors=$(find "/sys/class/net/$QHCA_IF/device/msi_irqs" -type f | wc -l)
	printf '%s\n' "$(nproc)" $((vectors - 1)) 8 | sort -n | head -n 1
}

# The link stays, and so do the connections of RDMA.
change_channels()
{
	local n most before
	most=$(max_channels)
	before=$(cat "/sys/class/net/$QHCA_IF/carrier_changes")
	for n in 1 "$most" 1 "$most"; do
		ethtool -L "$QHCA_IF" combined "$n" && [ "$(channels)" = "$n" ] || return 1
		same "send queues" "$(find "/sys/class/net/$QHCA_IF/queues" -name 'tx-*' | wc -l)" "$n" || return 1
		sleep 0.1
	done
	! ethtool -L "$QHCA_IF" combined $((most + 1)) 2>/dev/null || return 1
	! ethtool -L "$QHCA_IF" combined 0 2>/dev/null || return 1
	same "carrier changes" "$(cat "/sys/class/net/$QHCA_IF/carrier_changes")" "$before"
}

# The number is also kept while the interface is down.
channels_down()
{
	local rc=0
	ip link set dev "$QHCA_IF" down && ethtool -L "$QHCA_IF" combined 1 || return 1
	[ "$(channels)" = 1 ] || rc=1
	ip link set dev "$QHCA_IF" up && until_true flood 20 500 || return 1
	[ "$(channels)" = 1 ] || rc=1
	ethtool -L "$QHCA_IF" combined "$(max_channels)" && flood 20 500 && return $rc
}

# The last CPU can be switched off where there are others.
LAST_CPU=/sys/devices/system/cpu/cpu$(($(getconf _NPROCESSORS_CONF) - 1))/online

# A CPU that is off when the device starts has its channel all the same once it is back.
late_cpu()
{
	local rc=0 most
	most=$(max_channels)
	[ ! -e "$LAST_CPU" ] || echo 0 >"$LAST_CPU" || return
	echo 1 >"/sys/class/net/$QHCA_IF/device/reset" && until_true flood 20 500 || rc=1
	[ ! -e "$LAST_CPU" ] || echo 1 >"$LAST_CPU" || return
	same "channels" "$(max_channels)" "$most" && flood 20 500 && return $rc
}

# How many frames each queue has received.
rx_by_queue()
{
	local i
	for ((i = 0; i < $(max_channels); i++)); do ethtool_counter "rx${i}_packets"; done
}

# check_flows COUNT: answers arrive in the queues that hash, key and table say. Queue 0 also
# receives what has no hash.
check_flows()
{
	local before after want=() i got
	mapfile -t before < <(rx_by_queue)
	read -ra want < <(python3 /opt/qhca/guest/frames.py flows "$QHCA_IF" "$GATEWAY" "$1") || return 1
	[ ${#want[@]} -gt 0 ] || return 1
	mapfile -t after < <(rx_by_queue)
	for i in "${!after[@]}"; do
		got=$((after[i] - before[i]))
		echo "queue $i: $got, by their hashes ${want[i]:-0}"
		if [ "$i" = 0 ]; then
			[ "$got" -ge "${want[0]}" ] || return 1
		else
			[ "$got" = "${want[i]:-0}" ] || return 1
		fi
	done
	FLOWS="${want[*]}"
}

# One channel, or a device that cannot spread frames.
no_rss() { [ "$(max_channels)" = 1 ]; }

rss_default()
{
	ethtool -k "$QHCA_IF" | grep '^receive-hashing: on' || return 1
	check_flows 100 || return 1
	[ "$(wc -w <<<"$FLOWS")" = "$(max_channels)" ] || return 1
	# Software has a hash of its own then.
	ethtool -K "$QHCA_IF" rxhash off || return 1
	! python3 /opt/qhca/guest/frames.py flows "$QHCA_IF" "$GATEWAY" 5 || return 1
	ethtool -K "$QHCA_IF" rxhash on && check_flows 20
}

rss_table()
{
	local last=$(($(max_channels) - 1))
	ethtool -X "$QHCA_IF" equal 1 && check_flows 20 && same "equal 1" "$FLOWS" 20 || return 1
	# shellcheck disable=SC2046 # a word for each channel
	ethtool -X "$QHCA_IF" weight $(printf '0 %.0s' $(seq "$last")) 1 && check_flows 20 &&
		same "weight, the last" "${FLOWS##* }" 20 || return 1
	# The table needs that channel.
	! ethtool -L "$QHCA_IF" combined 1 2>/dev/null || return 1
	ethtool -X "$QHCA_IF" start "$last" equal 1 && check_flows 20 &&
		same "start" "${FLOWS##* }" 20 || return 1
	ethtool -X "$QHCA_IF" default && check_flows 50
}

# The key of the published test vectors, and another.
RSS_KEY=6d:5a:56:da:25:5b:0e:c2:41:67:25:3d:43:a3:8f:b0:d0:ca:2b:cb:ae:7b:30:b4:77:cb:2d:a3:80:30:f2:0c:6a:42:b7:3b:be:ac:01:fa

# The rows of the table. (The key is bytes in hexadecimal, with a colon between them.)
rss_rows() { ethtool -x "$QHCA_IF" | grep -E '^ *[0-9]+: '; }

rss_key()
{
	local table
	table=$(rss_rows)
	ethtool -X "$QHCA_IF" hkey "$RSS_KEY" && ethtool -x "$QHCA_IF" | grep -x "$RSS_KEY" &&
		check_flows 50 || return 1
	same "table" "$(rss_rows)" "$table" || return 1
	! ethtool -X "$QHCA_IF" hfunc xor 2>/dev/null || return 1
	ethtool -X "$QHCA_IF" hkey "${RSS_KEY//6/1}" && check_flows 20
}

rss_fields()
{
	local all='IP SA|IP DA|L4 bytes 0 & 1 .*|L4 bytes 2 & 3 .*'
	same "tcp4" "$(ethtool -n "$QHCA_IF" rx-flow-hash tcp4 | grep -cE "$all")" 4 &&
		ethtool -N "$QHCA_IF" rx-flow-hash tcp4 sd || return 1
	same "tcp4" "$(ethtool -n "$QHCA_IF" rx-flow-hash tcp4 | grep -cE "$all")" 2 &&
		same "udp4" "$(ethtool -n "$QHCA_IF" rx-flow-hash udp4 | grep -cE "$all")" 4 || return 1
	! python3 /opt/qhca/guest/frames.py flows "$QHCA_IF" "$GATEWAY" 5 || return 1
	! ethtool -N "$QHCA_IF" rx-flow-hash ip4 sdfn 2>/dev/null || return 1
	ethtool -N "$QHCA_IF" rx-flow-hash tcp4 sdfn && check_flows 20
}

# Settings outlive the queues, and the device.
rss_stays()
{
	local before
	ethtool -X "$QHCA_IF" hkey "$RSS_KEY" equal 1 || return 1
	before=$(ethtool -x "$QHCA_IF")
	ethtool -G "$QHCA_IF" rx 256 && ethtool -G "$QHCA_IF" rx 1024 || return 1
	ip link set dev "$QHCA_IF" down && ip link set dev "$QHCA_IF" up || return 1
	until_true flood 20 500 && same "table and key" "$(ethtool -x "$QHCA_IF")" "$before" &&
		check_flows 20 && same "queues" "$FLOWS" 20 || return 1
	echo 1 >"/sys/class/net/$QHCA_IF/device/reset" || return 1
	until_true flood 20 500 && same "table and key" "$(ethtool -x "$QHCA_IF")" "$before" &&
		check_flows 20 && same "queues" "$FLOWS" 20 || return 1
	ethtool -X "$QHCA_IF" default && check_flows 50 && [ "${FLOWS##* }" != 50 ]
}

# A device with one queue has no table, and the core no room for one.
rss_refused()
{
	! ethtool -x "$QHCA_IF" && ! ethtool -X "$QHCA_IF" equal 1 &&
		! ethtool -X "$QHCA_IF" context new &&
		! ethtool -n "$QHCA_IF" rx-flow-hash tcp4 &&
		! ethtool -N "$QHCA_IF" rx-flow-hash tcp4 sdfn
}

eth_rss()
{
	if no_rss; then
		expect "eth/a device with one queue has nothing to spread" rss_refused
		result skip "eth/received frames are spread" "one channel"
		return
	fi
	expect "eth/received frames are spread by their hash" rss_default
	expect "eth/what is hashed" rss_fields
	if older 6.8; then
		result skip "eth/table and key" "ethtool -X needs Linux 6.8"
		return
	fi
	expect "eth/the table: equal, weight, start" rss_table
	expect "eth/the key" rss_key
	expect "eth/table and key outlive queues and device" rss_stays
}

# ---- rules of the administrator's

# rule ARG…: a rule for what the gateway's port 9 answers, or what ARG says of it.
rule() { ethtool -N "$QHCA_IF" flow-type tcp4 src-ip "$GATEWAY" src-port 9 "$@"; }

# ruled QUEUE: answers arrive there, with the hash that they have without a rule.
ruled()
{
	local before after
	mapfile -t before < <(rx_by_queue)
	python3 /opt/qhca/guest/frames.py flows "$QHCA_IF" "$GATEWAY" 20 || return 1
	mapfile -t after < <(rx_by_queue)
	echo "queue $1: $((after[$1] - before[$1])) of 20"
	[ $((after[$1] - before[$1])) -ge 20 ]
}

rules_queue()
{
	local last=$(($(max_channels) - 1))
	rule action "$last" loc 7 && ruled "$last" || return 1
	rule action 0 loc 3 && ruled 0 && ethtool -N "$QHCA_IF" delete 3 && ruled "$last" || return 1
	# Of another port: not for them. In the place of the other: for them again.
	ethtool -N "$QHCA_IF" flow-type tcp4 src-port 10 action 0 loc 1 && ruled "$last" &&
		rule action 0 loc 1 && ruled 0 || return 1
	same "rules" "$(ethtool -n "$QHCA_IF" | grep -c '^Filter:')" 2 || return 1
	# The rule needs that channel.
	! ethtool -L "$QHCA_IF" combined 1 2>/dev/null || return 1
	ethtool -N "$QHCA_IF" delete 1 && ethtool -N "$QHCA_IF" delete 7 && check_flows 50 || return 1
	! ethtool -N "$QHCA_IF" delete 7 2>/dev/null
}

rules_drop()
{
	rule action -1 loc 0 || return 1
	! timeout 5 python3 /opt/qhca/guest/frames.py flows "$QHCA_IF" "$GATEWAY" 1 || return 1
	flood 20 500 && ethtool -N "$QHCA_IF" delete 0 && check_flows 20
}

rules_refused()
{
	! rule action "$(max_channels)" loc 0 2>/dev/null || return 1
	! rule action 0 loc 256 2>/dev/null || return 1
	! ethtool -N "$QHCA_IF" flow-type sctp4 src-port 9 action 0 loc 0 2>/dev/null || return 1
	! ethtool -N "$QHCA_IF" flow-type tcp4 src-port 9 user-def 1 action 0 loc 0 2>/dev/null || return 1
	same "rules" "$(ethtool -n "$QHCA_IF" | grep -c '^Filter:')" 0
}

rules_ioctl() { python3 /opt/qhca/guest/rules.py check "$QHCA_IF"; }

rules_stay()
{
	local before last=$(($(max_channels) - 1))
	rule action "$last" loc 7 || return 1
	before=$(ethtool -n "$QHCA_IF")
	ethtool -G "$QHCA_IF" rx 256 && ethtool -G "$QHCA_IF" rx 1024 && ruled "$last" || return 1
	ip link set dev "$QHCA_IF" down && ip link set dev "$QHCA_IF" up || return 1
	until_true flood 20 500 && ruled "$last" || return 1
	echo 1 >"/sys/class/net/$QHCA_IF/device/reset" || return 1
	until_true flood 20 500 && ruled "$last" || return 1
	same "rules" "$(ethtool -n "$QHCA_IF")" "$before" && ethtool -N "$QHCA_IF" delete 7
}

# Context N of ethtool -X, which says its number.
new_context() { ethtool -X "$QHCA_IF" context new "$@" | sed -n 's/^New RSS context is //p'; }

# table N: the rows of the table of context N, without the head, which counts the channels
table() { ethtool -x "$QHCA_IF" context "$1" | grep -E '^ +[0-9]+:'; }

# A table stays as it is shown, whether or not the administrator has set it.
context_channels()
{
	local n before
	ethtool -L "$QHCA_IF" combined 1 && n=$(new_context) && [ -n "$n" ] || return 1
	before=$(table "$n") && rule context "$n" loc 7 || return 1
	ethtool -L "$QHCA_IF" combined "$(max_channels)" || return 1
	same "table" "$(table "$n")" "$before" && ruled 0 || return 1
	ethtool -N "$QHCA_IF" delete 7 && ethtool -X "$QHCA_IF" context "$n" delete && check_flows 20
}

# Each context has its own fields for the hash; one that does not exist has none.
context_fields()
{
	local n other
	n=$(new_context) && other=$(new_context) || return 1
	ethtool -N "$QHCA_IF" rx-flow-hash tcp4 sd context "$n" || return 1
	ethtool -n "$QHCA_IF" rx-flow-hash tcp4 context "$n" | grep "L4 bytes" && return 1
	ethtool -n "$QHCA_IF" rx-flow-hash tcp4 context "$other" | grep -q "L4 bytes" || return 1
	ethtool -n "$QHCA_IF" rx-flow-hash tcp4 | grep -q "L4 bytes" || return 1
	ethtool -X "$QHCA_IF" context "$n" delete && ethtool -X "$QHCA_IF" context "$other" delete ||
		return 1
	for n in "$n" 33 4294967294; do
		! ethtool -n "$QHCA_IF" rx-flow-hash tcp4 context "$n" 2>/dev/null &&
			! ethtool -N "$QHCA_IF" rx-flow-hash tcp4 sd context "$n" 2>/dev/null || return 1
	done
}

contexts()
{
	local last=$(($(max_channels) - 1)) n other
	n=$(new_context start "$last" equal 1) && [ -n "$n" ] && rule context "$n" loc 7 &&
		ruled "$last" || return 1
	! ethtool -X "$QHCA_IF" context "$n" delete 2>/dev/null || return 1
	ethtool -X "$QHCA_IF" context "$n" equal 1 && ruled 0 || return 1
	other=$(new_context) && [ "$other" != "$n" ] && ethtool -X "$QHCA_IF" context "$other" delete ||
		return 1
	# Both outlive the queues, and the device.
	ethtool -X "$QHCA_IF" context "$n" start "$last" equal 1 || return 1
	ip link set dev "$QHCA_IF" down && ip link set dev "$QHCA_IF" up || return 1
	until_true flood 20 500 && ruled "$last" || return 1
	echo 1 >"/sys/class/net/$QHCA_IF/device/reset" || return 1
	until_true flood 20 500 && ruled "$last" || return 1
	ethtool -N "$QHCA_IF" delete 7 && ethtool -X "$QHCA_IF" context "$n" delete && check_flows 20
}

# context_lost N COMMAND: the Nth time from now on the device refuses a table; the port stays.
context_lost()
{
	local n other rc=0
	n=$(new_context) && other=$(new_context start 1 equal 1) && [ -n "$other" ] || return 1
	rule context "$n" loc 7 && rule context "$other" loc 8 || return 1
	qom qom-set faults "\"cmd opcode=set_rss nth=$1 once fail=limit\"" || return 1
	shift
	"$@" || rc=1
	qom qom-set faults '""'
	until_true flood 20 500 || rc=1
	! ethtool -x "$QHCA_IF" context "$n" || rc=1
	same "rules" "$(ethtool -n "$QHCA_IF" | grep -c '^Filter:')" 1 && ruled 1 || rc=1
	ethtool -N "$QHCA_IF" delete 8 && ethtool -X "$QHCA_IF" context "$other" delete || rc=1
	ethtool -X "$QHCA_IF" context "$n" delete 2>/dev/null
	check_flows 20 && return $rc
}

change_ring() { ethtool -G "$QHCA_IF" rx 256 && ethtool -G "$QHCA_IF" rx 1024; }

# A reset switches off the two contexts and the one of all frames first, and gives back the latter.
contexts_lost() { context_lost 2 change_ring && context_lost 5 device_reset; }

eth_contexts()
{
	local n
	n=$(new_context 2>/dev/null)
	if [ -z "$n" ] && older 6.12; then
		result skip "eth/RSS contexts" "a kernel before 6.12"
		return
	fi
	ethtool -X "$QHCA_IF" context "$n" delete
	expect "eth/RSS contexts" contexts
	expect "eth/RSS contexts: hashed fields" context_fields
	expect "eth/RSS contexts: more channels" context_channels
	if device_find && qom qom-get faults >/dev/null; then
		expect "eth/RSS contexts: one that the device refuses" contexts_lost
	else
		result skip "eth/RSS contexts: one that the device refuses" "the host takes no orders"
	fi
}

eth_rules()
{
	if no_rss; then
		result skip "eth/rules" "one channel"
		return
	fi
	expect "eth/rules: queues" rules_queue
	expect "eth/rules: frames are dropped" rules_drop
	expect "eth/rules: what cannot be" rules_refused
	EXPECT_LINES=40 expect "eth/rules: by ioctl, all that there can be" rules_ioctl
	expect "eth/rules outlive queues and device" rules_stay
	eth_contexts
}

# ---- what the kernel knows of the queues

netlink_queues() { python3 /opt/qhca/guest/queues.py "$QHCA_IF"; }

# The interrupt of each channel, and no other's.
own_interrupts()
{
	local kind queue packets bytes irq n=0
	while read -r kind queue packets bytes irq; do
		[ "$queue" = all ] && continue
		grep -qE "^ *$irq:.* qhca-(eth|comp)" /proc/interrupts || return 1
		echo "$kind $queue: interrupt $irq, $packets frames, $bytes bytes"
		n=$((n + 1))
	done < <(netlink_queues)
	same "queues" "$n" $((2 * $(channels)))
}

# netlink_is KIND: each queue has what ethtool -S says, and all together what ip -s link says.
netlink_is()
{
	local kind queue packets bytes sum=0 all=0
	while read -r kind queue packets bytes _; do
		[ "$kind" = "$1" ] || continue
		if [ "$queue" = all ]; then
			same "$kind" "$packets $bytes" "$(counter "${kind}_packets") $(counter "${kind}_bytes")" ||
				return 1
			all=$packets
			continue
		fi
		same "$kind $queue" "$packets $bytes" "$(ethtool_counter "$kind${queue}_packets") $(
			ethtool_counter "$kind${queue}_bytes")" || return 1
		sum=$((sum + packets))
	done < <(netlink_queues)
	[ "$all" -gt 0 ] && echo "$kind: $sum of $all frames in queues that exist" && [ "$sum" -le "$all" ]
}

queue_stats()
{
	flood 100 500 && until_true netlink_is rx && until_true netlink_is tx &&
		until_true own_interrupts || return 1
	no_rss && return
	# Counts of a queue that is not used any more are not lost.
	ethtool -L "$QHCA_IF" combined 1 || return 1
	until_true netlink_is rx && until_true netlink_is tx && until_true own_interrupts || return 1
	ethtool -L "$QHCA_IF" combined "$(max_channels)"
}

# While channels are replaced, the kernel has each NAPI instance once; it would complain otherwise.
queues_once()
{
	local watch before
	before=$(dmesg | grep -c WARNING)
	python3 /opt/qhca/guest/queues.py "$QHCA_IF" 4 >"$LOGS/eth.once" &
	watch=$!
	while ! gone $watch; do change_ring || return 1; done
	wait $watch && same "twice" "$(cat "$LOGS/eth.once")" 0 &&
		same "warnings" "$(dmesg | grep -c WARNING)" "$before"
}

eth_stats()
{
	if older 6.12; then
		result skip "eth/statistics of each queue" "a kernel before 6.12"
	else
		expect "eth/statistics of each queue" queue_stats
		expect "eth/each queue is there once while channels are replaced" queues_once
	fi
}
