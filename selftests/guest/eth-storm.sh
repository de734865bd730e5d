# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh, after eth-queues.sh: all that changes the queues of the network card, at the
# same time and in any order, under traffic: channels, spreading, rules, contexts, rings, MTU,
# moderation, offloads, the interface down and up, resets of the device, CPUs that go and come, while
# QPs have rules of their own. A change may be refused; afterwards the card is as before. STORM is
# how many seconds it takes, STORM_SEED where the random numbers begin, STORM_PROGRAMS which
# selftests run beside.

STORM=${STORM:-8}
STORM_PROGRAMS=${STORM_PROGRAMS:-raw rwq}
STORM_ON=/run/qhca/storm.on
STORM_WAYS='channels table key fields rings mtu delays offloads rules contexts down reset cpus queries'

# storm_pick WORD…: one of them
storm_pick() { local n=$((RANDOM % $# + 1)); echo "${!n}"; }

storm_channels() { ethtool -L "$QHCA_IF" combined $((RANDOM % STORM_MOST + 1)); }
storm_table()
{
	# shellcheck disable=SC2046 # words
	ethtool -X "$QHCA_IF" $(storm_pick default "equal 1" "equal 2" "equal $STORM_MOST" "weight 0 1")
}
storm_key() { ethtool -X "$QHCA_IF" hkey "${RSS_KEY//6/$((RANDOM % 10))}"; }
storm_fields() { ethtool -N "$QHCA_IF" rx-flow-hash "$(storm_pick tcp4 udp4 tcp6)" "$(storm_pick sd sdfn)"; }
storm_rules() { python3 /opt/qhca/guest/rules.py storm "$QHCA_IF" 0.5 $RANDOM; }

# Contexts that rules of the storm name.
storm_contexts()
{
	local n=$((RANDOM % 3 + 1))
	# shellcheck disable=SC2046 # words
	ethtool -X "$QHCA_IF" context $(storm_pick new "$n" "$n") $(storm_pick "equal 1" "equal 2" \
		"weight 0 1" "hkey ${RSS_KEY//6/$((RANDOM % 10))}")
	ethtool -N "$QHCA_IF" rx-flow-hash tcp4 "$(storm_pick sd sdfn)" context "$n"
	ethtool -X "$QHCA_IF" context "$(storm_pick "$n" $((n + 1)) $((RANDOM % 33)))" delete
}

storm_rings() { ethtool -G "$QHCA_IF" rx "$(storm_pick 64 256 4096)" tx "$(storm_pick 64 512)"; }
storm_mtu() { ip link set dev "$QHCA_IF" mtu "$(storm_pick 1500 4200 9000)"; }
storm_delays()
{
	ethtool -C "$QHCA_IF" adaptive-rx "$(storm_pick on off)" adaptive-tx "$(storm_pick on off)" \
		rx-usecs $((RANDOM % 100))
}
storm_offloads() { ethtool -K "$QHCA_IF" "$(storm_pick rxhash tso gro rx tx sg)" "$(storm_pick on off)"; }
storm_down() { ip link set dev "$QHCA_IF" down; sleep 0.0$((RANDOM % 10)); ip link set dev "$QHCA_IF" up; }
storm_reset() { sleep 1.$RANDOM; device_reset; }

storm_cpus()
{
	[ -e "$LAST_CPU" ] || return
	echo 0 >"$LAST_CPU"
	sleep 0.2
	echo 1 >"$LAST_CPU"
}

storm_queries()
{
	ethtool -S "$QHCA_IF"
	ethtool -x "$QHCA_IF"
	ethtool -l "$QHCA_IF"
	ethtool --per-queue "$QHCA_IF" --show-coalesce
	netlink_queues
}

# storm_program NAME: one that has rules, spreads and WQs of its own; it fails when the device goes.
storm_program()
{
	RDMA_DEVICE=$QHCA_DEV RDMA_GID=$QHCA_GID timeout -k 5 20 "/opt/qhca/selftests/$1"
}

# storm_loop SEED COMMAND…: again and again
storm_loop()
{
	RANDOM=$1
	shift
	while [ -e $STORM_ON ]; do
		"$@" >/dev/null 2>&1 || sleep 0.01
	done
}

# Processes of the storm that are left, and where they are in the kernel.
storm_hangs()
{
	local proc
	for proc in /proc/[0-9]*; do
		[[ " ethtool ip ping python3 $STORM_PROGRAMS " == *" $(cat "$proc/comm") "* ]] || continue
		tr '\0' ' ' <"$proc/cmdline"
		echo
		head -n 8 "$proc/stack"
	done 2>/dev/null
}

# storm_over PID…: loops end; one that does not is not waited for.
storm_over()
{
	local pid rc=0
	for pid; do
		if until_true gone "$pid"; then
			wait "$pid"
		else
			echo "a loop hangs"
			storm_hangs
			rc=1
		fi
	done
	return $rc
}

# Channels, ring sizes and delays are what storm_end() sets, whatever has been refused.
storm_restored()
{
	local now
	now="$(channels) $(ethtool -g "$QHCA_IF" | awk '/^[RT]X:/ { n[$1] = $2 }
		END { print n["RX:"], n["TX:"] }') $(ethtool -c "$QHCA_IF" |
		awk '/^Adaptive/ && /: on/ { print } /^rx-usecs:/ { print $2 }')"
	same settings "$now" "$(max_channels) 1024 512 0"
}

# Restore the settings from before.
storm_end()
{
	local file n
	for file in /sys/devices/system/cpu/cpu*/online; do
		[ ! -e "$file" ] || [ "$(cat "$file")" = 1 ] || echo 1 >"$file" || return 1
	done
	ip link set dev "$QHCA_IF" up && ip link set dev "$QHCA_IF" mtu 4200 || return 1
	for n in $(ethtool -n "$QHCA_IF" | sed -n 's/^Filter: //p'); do
		ethtool -N "$QHCA_IF" delete "$n" || return 1
	done
	for ((n = 1; n <= 32; n++)); do
		ethtool -X "$QHCA_IF" context $n delete 2>/dev/null
	done
	ethtool -K "$QHCA_IF" sg on tx on tso on rx on gro on 2>&1 || return 1
	no_rss || ethtool -K "$QHCA_IF" rxhash on || return 1
	no_rss || older 6.8 || ethtool -X "$QHCA_IF" default || return 1
	# shellcheck disable=SC2015 # refused if it is that already
	ethtool -L "$QHCA_IF" combined "$(max_channels)" 2>/dev/null || true
	ethtool -G "$QHCA_IF" rx 1024 tx 512 2>/dev/null || true
	ethtool -C "$QHCA_IF" adaptive-rx off adaptive-tx off rx-usecs 0 2>/dev/null || true
	storm_restored || return 1
	no_rss && return
	ethtool -N "$QHCA_IF" rx-flow-hash tcp4 sdfn && ethtool -N "$QHCA_IF" rx-flow-hash udp4 sdfn &&
		ethtool -N "$QHCA_IF" rx-flow-hash tcp6 sdfn
}

# storm_complaints MARK: behind it in the log; of a log that has forgotten it, all. A kernel with
# lockdep is so slow that a queue may be stopped for the five seconds of the watchdog.
storm_complaints()
{
	local stuck='|is stuck'
	[ ! -e /proc/lockdep ] || stuck=
	dmesg | awk -v mark="$1" -v what="qhca.*(no queues|restart failed$stuck|device failed)" \
		'index($0, mark) { n = 0 } $0 ~ what { n++ } END { print n + 0 }'
}

storm()
{
	local way pids=() rc=0 mark="storm $EPOCHREALTIME" n=${STORM_SEED:-$RANDOM}
	echo "$mark" >/dev/kmsg
	STORM_MOST=$(max_channels)
	echo "STORM_SEED=$n"
	: >$STORM_ON
	for way in $STORM_WAYS; do
		storm_loop $((++n)) "storm_$way" &
		pids+=($!)
	done
	storm_loop 1 ping_gateway -f -c 100 -s 1400 -W 1 &
	pids+=($!)
	storm_loop 2 python3 /opt/qhca/guest/frames.py blast "$QHCA_IF" 0.5 &
	pids+=($!)
	storm_loop 3 timeout 1 python3 /opt/qhca/guest/frames.py flows "$QHCA_IF" "$GATEWAY" 20 &
	pids+=($!)
	for way in $STORM_PROGRAMS; do
		storm_loop 4 storm_program "$way" &
		pids+=($!)
	done
	sleep "$STORM"
	rm -f $STORM_ON
	storm_over "${pids[@]}" || rc=1
	storm_end || { echo "it does not take its settings back"; rc=1; }
	same complaints "$(storm_complaints "$mark")" 0 || rc=1
	until_true flood 100 500 && flood 200 1400 || rc=1
	no_rss || check_flows 50 || rc=1
	until_true device_gid || { echo "no GID"; rc=1; }
	return $rc
}

# ---- the card goes with its rules

# Rules and contexts of the administrator's, QPs with rules, and a program that changes and lists
# them while the card is pulled. The card that comes back has none of them, and takes new ones.
unplugged()
{
	local way pids=() rc=0 n last=$(($(max_channels) - 1)) cycle
	STORM_MOST=$((last + 1))
	for cycle in 1 2 3; do
		n=$(new_context start "$last" equal 1 2>/dev/null)
		rule action "$last" loc 7 && ruled "$last" || return 1
		if [ -n "$n" ]; then
			ethtool -N "$QHCA_IF" flow-type tcp4 src-port 10 context "$n" loc 8 || return 1
		fi
		: >$STORM_ON
		for way in rules contexts queries table; do
			storm_loop $cycle "storm_$way" &
			pids+=($!)
		done
		for way in raw rwq; do
			storm_loop $cycle storm_program $way &
			pids+=($!)
		done
		sleep "0.$((RANDOM % 10))"
		life_plug || { echo "it is not plugged in again"; rc=1; }
		rm -f $STORM_ON
		storm_over "${pids[@]}" || rc=1
		pids=()
		if ! { life_back && storm_end && until_true flood 100 500; }; then
			echo "no way back"
			return 1
		fi
		same "rules, $cycle" "$(ethtool -n "$QHCA_IF" | grep -c '^Filter:')" 0 || rc=1
		# An interface that has just come up gets unexpected frames.
		until_true check_flows 50 || rc=1
	done
	return $rc
}

eth_unplugged()
{
	no_rss && return
	if [[ " ${QHCA_VARIANT:-} " == *" server "* ]]; then
		result skip "eth/rules and contexts, and the card is pulled" "QEMU cannot unplug it"
		return
	fi
	if ! qom qom-get objects >/dev/null; then
		result skip "eth/rules and contexts, and the card is pulled" "the host takes no orders"
		return
	fi
	EXPECT_LINES=40 expect "eth/rules and contexts, and the card is pulled" unplugged
}
