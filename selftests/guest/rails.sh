# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh: a machine with several HCAs, vm --hcas; all arrays are ordered by rail.

# On each device; with FULL=1 all of `core`.
RAILS_KSELFTESTS='xrc rc_queue srq ten_steps'
RAILS_PORT=19000

rails_read()
{
	local n
	. /run/qhca/env
	read -ra DEVS <<<"$QHCA_DEVS"
	read -ra IFS_OF <<<"$QHCA_IFS"
	read -ra GIDS <<<"$QHCA_GIDS"
	# shellcheck disable=SC2153 # the launcher's
	read -ra IPS <<<"$QHCA_IPS"
	FUNCTIONS=()
	for n in "${IFS_OF[@]}"; do
		FUNCTIONS+=("$(basename "$(readlink -f "/sys/class/net/$n/device")")")
	done
	export QHCA_DEVS
}

# Names are in the order of the PCI addresses.
rails_names()
{
	local n
	same "PCI functions" "${FUNCTIONS[*]}" "$(lspci -D -n -d 1af4:10f0 | cut -d ' ' -f 1 | xargs)" ||
		return
	same "of lspci" "$(lspci -n -d 1af4:10f0 | wc -l)" "$(wc -w <<<"$QHCA_MACS")" || return
	for n in "${!FUNCTIONS[@]}"; do
		same device "${DEVS[n]}" "qhca$n" && same netdev "${IFS_OF[n]}" "eth$n" || return
		rdma link show "qhca$n/1" | grep -q "state ACTIVE .* netdev eth$n " || return
		ibv_devices | grep -qE "^[[:space:]]+qhca${n}[[:space:]]" || return
	done
}

# rails_vectors N: name and count of each interrupt of that function.
rails_vectors()
{
	awk -v f="@${FUNCTIONS[$1]}" 'index($NF, f) { n = 0
		for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++) n += $i; print $NF, n }' /proc/interrupts
}

rails_completions() { rails_vectors "$1" | awk '/comp/ { n += $2 } END { print n + 0 }'; }

# Each has vectors of its own, and what completes on one interrupts by those only.
rails_interrupts()
{
	local n before=() want after
	for n in "${!DEVS[@]}"; do before+=("$(rails_completions "$n")"); done
	rails_perf ib_send_bw 0 -e || return
	for n in "${!DEVS[@]}"; do
		same "vectors of $n" "$(rails_vectors "$n" | wc -l)" "$(rails_vectors 0 | wc -l)" || return
		after=$(rails_completions "$n") want=${before[n]}
		if [ "$n" = 0 ]; then
			[ "$after" -gt "$want" ] || { echo "none of device 0"; return 1; }
		else
			same "interrupts of device $n" "$after" "$want" || return
		fi
	done
}

rails_bw() { rails_perf ib_write_bw "$1"; }

# rails_perf TOOL N [OPTION…]: both ends at one device.
rails_perf()
{
	local tool=$1 n=$2 port=$((RAILS_PORT + $2))
	shift 2
	both 120 "$LOGS/rail$n.server" "$LOGS/rail$n.client" "$port" "$tool" -d "${DEVS[n]}" \
		-x "${GIDS[n]}" -p "$port" -s 65536 -n 500 -F "$@" || { tail -n 3 "$LOGS/rail$n".*; false; }
}

rails_devices() { find /sys/class/infiniband -mindepth 1 | wc -l; }

rails_moved() { cat "/sys/class/infiniband/${DEVS[$1]}/ports/1/hw_counters/tx_bytes"; }

# rails_share LEAST COMMAND…: LEAST of the rails, at least, carry 100,000 bytes of it each.
rails_share()
{
	local n before=() least=$1 used=0 moved
	shift
	for n in "${!DEVS[@]}"; do before+=("$(rails_moved "$n")"); done
	"$@" || return
	sleep 0.1	# counters may be so old
	for n in "${!DEVS[@]}"; do
		moved=$(($(rails_moved "$n") - before[n]))
		echo "rail $n: $moved bytes"
		[ $moved -lt 100000 ] || used=$((used + 1))
	done
	[ $used -ge "$least" ]
}

# rails_each COMMAND…: with the number of each rail, all at the same time.
rails_each()
{
	local n pids=() rc=0
	for n in "${!DEVS[@]}"; do
		"$@" "$n" &
		pids+=($!)
	done
	for n in "${pids[@]}"; do wait "$n" || rc=1; done
	return $rc
}

rails_ucx()
{
	local list
	printf -v list '%s:1,' "${DEVS[@]}"
	# The names are all that ucx_two sets; its log names the first.
	UCX_MAX_RNDV_RAILS=${#DEVS[@]} UCX_NETS=${list%,} ucx_two rc_v "" "$UCX_PORT" \
		"$UCX_DIR/ucx-verify 1000000 $UCX_PORT" \
		"$UCX_DIR/ucx-verify 1000000 $UCX_PORT $QHCA_IP"
}

rails_libfabric()
{
	local n=$1 QHCA_DEV=${DEVS[$1]} QHCA_IP=${IPS[$1]} LOGS=$LOGS/fi$1 FI_PORT=$((47700 + $1))
	mkdir -p "$LOGS"
	fi_pair 'verbs;ofi_rxm' rdm -I 10
}

# ---- one of them is slow, and says nothing; vm --faults guest/rails.faults

RAILS_LATENCY=5000	# µs, of rails.faults

# rails_latency N: minimum and typical µs of 300 messages of 64 KiB there.
rails_latency() { perf "${DEVS[$1]}" "${GIDS[$1]}" ib_write_lat 65536 300 || { perf_why >&2; false; }; }

# rails_quick N: one of them, at least, takes less than any does on a slow rail. A busy host
# makes others late.
rails_quick()
{
	local least typical
	read -r least typical < <(rails_latency "$1") || return
	echo "rail $1: at least $least µs, typically $typical µs"
	[ "${least%.*}" -lt $RAILS_LATENCY ]
}

# rails_slow EVENT LEAST: from then on messages take LEAST µs, or more, on rail 1 only.
rails_slow()
{
	local least typical speed
	speed=$(cat "/sys/class/net/${IFS_OF[1]}/speed")
	qhca-host event "$1" && sleep 0.5 && read -r least typical < <(rails_latency 1) || return
	echo "rail 1: at least $least µs, typically $typical µs"
	[ "${typical%.*}" -ge "$2" ] && rails_quick 0 &&
		same speed "$(cat "/sys/class/net/${IFS_OF[1]}/speed")" "$speed"
}

rails_normal() { qhca-host event normal && sleep 0.5 && rails_quick 1 && rails_quick 0; }

rails_grey()
{
	# 64 KiB at 50 Mbit/s
	expect "rails/grey: one has no bandwidth" rails_slow grey 10485
	expect "rails/grey: one has a long way" rails_slow late $RAILS_LATENCY
	expect "rails/grey: both are as before" rails_normal
}

# ---- what is drawn is drawn by a seed

# rails_drawn N SEED: how many of 7,000 packets a rule hits that one in fifty should meet.
rails_drawn()
{
	# shellcheck disable=SC2034 # for qom
	local DEVICE_PATH=/machine/peripheral/qhca$1 rules
	qom qom-set faults "\"seed=$2; rx opcode=rc.write_middle prob=2% mark=ce\"" >/dev/null &&
		rails_perf ib_write_bw "$1" >&2 && rules=$(qom qom-get faults) &&
		[[ $rules =~ '# hits '([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
	qom qom-set faults '""' >/dev/null
}

# The same packets meet the same on each rail, and with another seed something else.
rails_seed()
{
	local n first other
	first=$(rails_drawn 0 7) && other=$(rails_drawn 0 8) && echo "$first hits, $other" || return
	[ "$first" -gt 70 ] && [ "$first" -lt 210 ] && [ "$other" != "$first" ] || return
	for n in "${!DEVS[@]}"; do same "hits on $n" "$(rails_drawn "$n" 7)" "$first" || return; done
}

# ---- one of them goes and comes back

# How rail $1 is taken away, and brought back. QEMU 11.1 cannot unplug the device of a server.
rails_unplug_command()
{
	if skip_word server; then
		echo "echo 1 >/sys/bus/pci/devices/${FUNCTIONS[$1]}/remove"
	else
		echo "qhca-host qmp '{\"execute\": \"device_del\", \"arguments\": {\"id\": \"qhca$1\"}}' >/dev/null"
	fi
}

rails_replug()
{
	until_true test ! -e "/sys/bus/pci/devices/${FUNCTIONS[$1]}" || return
	same "devices without it" "$(rails_devices)" $((${#DEVS[@]} - 1)) || return
	if skip_word server; then
		echo 1 >/sys/bus/pci/rescan
	else
		until_true qhca-host plug "$1"
	fi && until_true test -e "/sys/class/infiniband/${DEVS[$1]}" && /opt/qhca/guest/setup.sh qhca
}

rails_unplug()
{
	local n=$1 rc=0 names="${FUNCTIONS[*]} ${DEVS[*]} ${IFS_OF[*]} ${GIDS[*]}"
	UNPLUG=$(rails_unplug_command "$n") RDMA_DEVICE=${DEVS[n]} \
		timeout 200 /opt/qhca/selftests/unplug >"$LOGS/unplug.log" 2>&1 || rc=$?
	tap "rails/unplug-$n" "$LOGS/unplug.log" $rc
	expect "rails/unplug-$n: it is plugged in again" rails_replug "$n"
	rails_read
	expect "rails/unplug-$n: names and GIDs are as before" same "they" \
		"${FUNCTIONS[*]} ${DEVS[*]} ${IFS_OF[*]} ${GIDS[*]}" "$names"
	expect "rails/unplug-$n: all at once" rails_each rails_bw
}

# ---- bonds

# rails_gids: devices whose GID of IPv4 has the first rail's address.
rails_gids()
{
	local dev
	for dev in "${DEVS[@]}"; do
		grep -qi 'ffff:c0a8:4d01' "/sys/class/infiniband/$dev/ports/1/gids/"* && echo "$dev"
	done
	return 0
}

rails_gid_at() { [ "$(rails_gids)" = "$1" ]; }
rails_active() { [ "$(cat /sys/class/net/bond0/bonding/active_slave)" = "$1" ]; }

rails_bond()
{
	local n
	modprobe bonding max_bonds=0 && ip link add bond0 type bond mode active-backup miimon 50 || return
	for n in 0 1; do
		ip addr flush dev "${IFS_OF[n]}" && ip link set "${IFS_OF[n]}" down &&
			ip link set "${IFS_OF[n]}" master bond0 || return
	done
	ip addr add "$QHCA_IP/24" dev bond0 && ip link set bond0 mtu 4200 up
}

rails_ten_steps() { RDMA_DEVICE=${DEVS[$1]} RDMA_GID='' timeout 60 /opt/qhca/selftests/ten_steps; }

# A bond fails over as networks.rst says.
rails_bonds()
{
	expect rails/bond/made rails_bond || return
	expect rails/bond/active until_true rails_active "${IFS_OF[0]}"
	expect "rails/bond: the GID is that of the active one" until_true rails_gid_at "${DEVS[0]}"
	expect "rails/bond: no RDMA device more" same devices "$(rails_devices)" \
		${#DEVS[@]}
	expect "rails/bond: RC" rails_ten_steps 0
	expect rails/bond/pulled qhca-cable down
	expect rails/bond/failover until_true rails_active "${IFS_OF[1]}"
	expect "rails/bond: the GID moves" until_true rails_gid_at "${DEVS[1]}"
	expect "rails/bond: RC over the other" rails_ten_steps 1
	expect rails/bond/back qhca-cable up
	ip link del bond0
	expect rails/bond/undone /opt/qhca/guest/setup.sh qhca
	expect "rails/bond: all at once, afterwards" rails_each rails_bw
}

rails()
{
	local n DIR=/opt/qhca/guest DEVS IFS_OF GIDS IPS FUNCTIONS
	rails_read
	expect "rails/there are several" [ ${#DEVS[@]} -gt 1 ] || return
	# shellcheck source=selftests/guest/consumers/ucx.sh
	. $DIR/consumers/ucx.sh
	# shellcheck source=selftests/guest/consumers/libfabric.sh
	. $DIR/consumers/libfabric.sh
	UCX_PORT=13700
	expect rails/names rails_names
	expect rails/interrupts rails_interrupts
	for n in "${!DEVS[@]}"; do
		# shellcheck disable=SC2046,SC2086 # words
		KSELFTEST_GROUP=rails/${DEVS[n]} QHCA_DEV=${DEVS[n]} QHCA_GID=${GIDS[n]} kselftest \
			$([ "${FULL:-}" = 1 ] && echo $CORE_KSELFTESTS || echo $RAILS_KSELFTESTS)
	done
	expect "rails/perftest on all at once" rails_share ${#DEVS[@]} rails_each rails_bw
	expect rails/ucx/build ucx_build
	EXPECT_LINES=12 expect "rails/ucx over several" rails_share 2 rails_ucx
	expect "rails/libfabric on all at once" rails_each rails_libfabric
	rails_grey
	expect "rails/seed: the same on each" rails_seed
	rails_unplug $((${#DEVS[@]} - 1))
	rails_unplug 0
	rails_bonds
}
