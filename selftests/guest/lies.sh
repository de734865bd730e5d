# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh: each of the lies that the device of vm --hostile knows by name,
# and how the drivers find it out. Then the device is honest again, and works.

# Function that provokes the lie | its output | messages of the kernel; regular expressions. A
# device that has failed must have said so in the log, all others have to live on. Only the long
# form has those in LIES_FULL, which take seconds to be found out or end in the same place as
# another.
LIES_FULL=' cmd-busy reg-no-start reg-gone irq-comp cmd-opcode cmd-slot-idle cqe-early cqe-slot-idle
	cqe-half-grh event-srq event-cq-err eth-rx-short eth-rx-again '
LIES='
reg-magic              | bind  | bind 1         | not a qhca: magic 0
reg-version            | bind  | bind 1         | interface version 0x20000 is not supported
reg-no-reset           | bind  | bind 1         | no reset
reg-no-start           | bind  | bind 1         | not started: state 0, reason 0
reg-one-vector         | bind  | bind 1         | 1 vectors are too few
reg-no-eq              | bind  | bind 1         | 0 vectors are too few
reg-no-page            | bind  | bind 1         | max_uar is 0, at least 1 is needed
reg-stride             | bind  | bind 1         | doorbell pages 2.255 bytes apart
limit-max_uar          | bind  | bind 1         | max_uar is 0, at least 1 is needed
limit-max_gid          | bind  | bind 1         | max_gid is 0, at least 1 is needed
limit-max_table_blocks | bind  | bind 1         | max_table_blocks is 0, at least 1 is needed
limit-max_cqe_log      | bind  | bind 1         | max_cqe_log is 5, at least 6 is needed
limit-max_ethq_log     | bind  | bind 1         | max_ethq_log is 5, at least 6 is needed
limit-max_ethq         | fewer | fewer 0        | fewer channels, so the RSS table has changed
limit-max_send_sge     | bind  | bind 1         | max_send_sge is 0, at least 1 is needed
limit-max_recv_sge     | bind  | bind 1         | max_recv_sge is 0, at least 1 is needed
limit-max_srq_sge      | bind  | bind 1         | max_srq_sge is 0, at least 1 is needed
limit-max_fast_reg_blocks | bind | bind 1       | max_fast_reg_blocks is 0, at least 2 is needed
limit-max_tso          | bind  | bind 1         | max_tso is 1, at least 16384 is needed
limit-max_mcast_grp    | bind  | ok 1 .*        |
port-mtu               | bind  | maxmtu 1500    | qhca.rdma.*failed with error -22
reg-mac                | bind  | address .[26ae]:.* |
reg-small              | bind  | all 0          |
reg-huge               | bind  | all 0          |
limits-huge            | bind  | all 0          |
cc-refused             | bind  | bind 1         | parameters of congestion control: -22
reg-stopped            | none  |                | device failed: it has stopped
reg-gone               | none  |                | device failed: it is gone
cmd-opcode             | verbs | pd -5          | device failed: a command completion makes no sense
cmd-slot               | verbs | pd -5          | device failed: a command completion makes no sense
cmd-slot-idle          | verbs | pd -5          | device failed: a command completion makes no sense
cmd-token              | verbs | pd -5          | device failed: a command completion makes no sense
cmd-status             | verbs | pd -5          |
cmd-destroy            | verbs | all 0          | device failed: an object could not be destroyed
cmd-left               | group | ok 1 .*        | device failed: a group could not be left
cmd-modify             | verbs | stop 0         | device failed: a QP could not be stopped
cmd-no-number          | verbs | pd -5          | device failed: the number of an object makes no sense
cmd-big-number         | verbs | cq -5          | device failed: the number of an object makes no sense
cmd-no-key             | verbs | mr -5          | device failed: the number of an object makes no sense
cmd-same-cq            | verbs | cq -5          | device failed: two CQs have the same number
cmd-same-qp            | verbs | qp -5          | device failed: two QPs have the same number
cmd-lost               | reset |                | device failed: a command was lost
cmd-busy               | reset |                | device failed: a command was lost
qp-state               | verbs | query -5       | device failed: the state of a QP makes no sense
cqe-qp                 | verbs | send 5         | device failed: a completion makes no sense
cqe-queue              | verbs | recv 5         | device failed: a completion makes no sense
cqe-xrc                | verbs | recv 5         | device failed: a completion makes no sense
cqe-late               | verbs | send 5         | device failed: a completion makes no sense
cqe-early              | verbs | send 5         | device failed: a completion makes no sense
cqe-unsignaled         | verbs | unsignaled 21  | device failed: a completion makes no sense
cqe-slot               | verbs | shared -110    | device failed: a completion makes no sense
cqe-slot-idle          | verbs | shared -110    | device failed: a completion makes no sense
cqe-length             | verbs | recv 21        | device failed: a completion makes no sense
cqe-no-grh             | verbs | datagram 21    | device failed: a completion makes no sense
cqe-half-grh           | verbs | datagram 21    | device failed: a completion makes no sense
cqe-imm                | verbs | datagram 21    | device failed: a completion makes no sense
cqe-status             | verbs | send 21        |
flow-number            | rules | not ok 1 .*    | device failed: the number of an object makes no sense
flow-kept              | rules | not ok 1 .*    | device failed: an object could not be destroyed
spread-number          | wqs   | not ok 1 .*    | device failed: the number of an object makes no sense
spread-kept            | wqs   | ok 1 .*        | device failed: an object could not be destroyed
wq-number              | wqs   | ok 1 .*        | device failed: an object could not be destroyed
wq-state               | steps | not ok 1 .*    |
page-kept              | odp   | not ok 1 .*    | device failed: pages could not be taken back
page-lost              | odp   | not ok 1 .*    |
page-answer            | odp   | ok 1 .*        |
page-first             | odp   | not ok 1 .*    |
page-behind            | odp   | not ok 1 .*    |
page-number            | odp   | ok 1 .*        |
page-none              | odp   | ok 1 .*        |
page-open              | odp   | ok 1 .*        |
page-stranger          | odp   | not ok 1 .*    |
event-unknown          | link  | carrier 1      |
event-qp               | link  | carrier 1      |
event-srq              | link  | carrier 1      |
event-cq-err           | link  | carrier 1      |
event-page             | link  | carrier 1      |
event-fatal            | link  | carrier 0      | device failed: it reported a fatal error
irq-async              | link  | carrier 1      | vector 0: [0-9]* events without interrupt
irq-comp               | ping  | ping .*        | vector 1: [0-9]* events without interrupt
event-comp             | ping  | ping 1         | event 3 in a completion queue
event-cq               | ping  | ping 1         |
eth-rx-long            | ping  | rx_length_errors |
eth-rx-short           | ping  | rx_length_errors |
eth-rx-status          | ping  | rx_errors      |
eth-tx-status          | ping  | tx_errors      |
eth-rx-more            | ping  | rx_length_errors |
eth-rx-index           | ping  | ping 1         | device failed: an Ethernet completion makes no sense
eth-rx-again           | ping  | ping 1         | device failed: an Ethernet completion makes no sense
eth-tx-index           | ping  | ping 1         | device failed: an Ethernet completion makes no sense
'

# lie_logged NAME REGEXP: what the kernel has logged since the lie began.
lie_logged()
{
	local log
	log=$(dmesg)
	[[ "${log##*qhca: lie "$1" begins}" =~ $2 ]]
}

hostile_is_bound() { [ -e "/sys/bus/pci/drivers/qhca/$QHCA_FUNCTION" ]; }

# ---- what provokes them, after preparations without lies

# Counters that rise when a ping meets a lie: an unexpected frame may meet it first.
declare -gA LIE_COUNTED

lie_prepare()
{
	local name
	if [ "$1" = bind ]; then
		! hostile_is_bound || hostile_bind unbind
	elif ! hostile_is_bound; then
		hostile_bind bind
		hostile_address
	fi
	[ "$1" = ping ] || return 0
	for name in rx_errors rx_length_errors tx_errors; do
		LIE_COUNTED[$name]=$(counter "$name")
	done
}

lie_none() { :; }
lie_reset() { device_reset; }

# A port that has one channel after a reset, and the others again after the next one: tables are
# folded, and rules for the others wait.
lie_fewer()
{
	local last=$(($(max_channels) - 1)) n rc=0
	n=$(new_context start "$last" equal 1 2>/dev/null)
	ethtool -X "$QHCA_IF" start "$last" equal 1 && rule action "$last" loc 7 && ruled "$last" || rc=1
	device_reset && until_true flood 20 500 && same channels "$(channels)" 1 || rc=1
	[ -z "$n" ] || ! table "$n" | grep -E ":.* $last( |\$)" || rc=1
	hostile_set lie '""'
	device_reset && until_true flood 20 500 && same channels "$(channels)" 1 || rc=1
	ethtool -L "$QHCA_IF" combined $((last + 1)) && ruled "$last" || rc=1
	ethtool -N "$QHCA_IF" delete 7 && ethtool -X "$QHCA_IF" default || rc=1
	[ -z "$n" ] || ethtool -X "$QHCA_IF" context "$n" delete || rc=1
	echo "fewer $rc"
}

lie_verbs() { timeout -k 2 60 cat /sys/kernel/debug/qhca_kverbs_test/lies; }

# State of device and driver if they agree in spite of the lie.
lie_bind()
{
	local rc=0
	timeout 60 bash -c 'hostile_bind bind' 2>/dev/null || rc=1
	echo "bind $rc"
	[ $rc = 0 ] || return
	hostile_address
	ip -d link show dev "$QHCA_IF" | sed -n 's/.* \(maxmtu\) \([0-9]*\).*/\1 \2/p'
	echo "address $(cat "/sys/class/net/$QHCA_IF/address")"
	[ -e "/sys/class/infiniband/$QHCA_DEV" ] && until_true device_gid || return
	lie_verbs
	timeout -k 2 60 /opt/qhca/selftests/mcast -t 'a device without groups'
}

lie_group() { timeout -k 2 60 /opt/qhca/selftests/cgroup -t 'its multicast groups'; }

lie_rules() { timeout -k 2 60 /opt/qhca/selftests/raw -t 'as many rules'; }

lie_wqs() { timeout -k 2 60 /opt/qhca/selftests/rwq -t 'hold on to'; }

lie_steps() { timeout -k 2 60 /opt/qhca/selftests/rwq -t 'every step'; }

lie_odp() { timeout -k 2 60 /opt/qhca/selftests/odp -t 'absent on either side: explicit'; }

counter_moved() { [ "$(counter "$1")" != "$2" ]; }

lie_ping()
{
	local name rc
	# On a busy machine nothing may come or go in the first second.
	for _ in 1 2 3 4 5; do
		ping -q -n -c 2 -i 0.1 -w 1 "$GATEWAY" >/dev/null 2>&1
		rc=$?
		[ "$(hostile_lies)" = "$lies" ] || break
	done
	echo "ping $rc"
	# Nor may the driver have looked yet at what it was told.
	[[ $want != *_errors ]] || until_true counter_moved "$want" "${LIE_COUNTED[$want]}"
	for name in "${!LIE_COUNTED[@]}"; do
		! counter_moved "$name" "${LIE_COUNTED[$name]}" || echo "$name"
	done
}

lie_link()
{
	link_state false >/dev/null
	sleep 0.2
	echo "carrier $(cat "/sys/class/net/$QHCA_IF/carrier")"
	link_state true >/dev/null
}

# ---- afterwards

lie_works()
{
	local out
	until_true device_gid || return
	if [ "$1" = verbs ]; then
		out=$(lie_verbs)
		grep -x 'all 0' <<<"$out" && ! grep -v ' 0$' <<<"$out"
	else
		until_true ping -q -n -c 1 -W 1 "$GATEWAY" >/dev/null
	fi
}

# Whether it was told, and found out as the table has it.
lie_is_found()
{
	local name=$1 trigger=$2 want=$3 log=$4 lies out rc=0
	lies=$(hostile_lies)
	echo "qhca: lie $name begins" >/dev/kmsg
	hostile_set lie "\"$name\""
	# Not in a subshell: a netdev may get another name.
	"lie_$trigger" >"$LOGS/lie" 2>&1
	out=$(<"$LOGS/lie")
	echo "$out"
	[ -z "$want" ] || grep -qxE "$want" <<<"$out" || { echo "no: $want"; rc=1; }
	[ -z "$log" ] || until_true lie_logged "$name" "$log" || { echo "no: $log"; rc=1; }
	[ "$(hostile_lies)" != "$lies" ] || { echo "it was not told"; rc=1; }
	hostile_set lie '""'
	[[ $log == 'device failed'* ]] || ! lie_logged "$name" 'device failed' || {
		echo "the device has failed"
		rc=1
	}
	return $rc
}

# A reset where the lie has done harm. The next lie finds out whether its setup
# works; the long form does not wait for that.
lie_is_over()
{
	local name=$1 trigger=$2
	[ "$trigger" != bind ] || return 0
	if lie_logged "$name" 'device failed' || [[ $name == event-c* || $name == eth-rx-more ]]; then
		device_reset && until_true device_gid || return
	fi
	[ -n "$FULL" ] || return 0
	case $trigger in
	ping|link) lie_works ping ;;
	*) lie_works verbs ;;
	esac
}

lie()
{
	local name=$1 trigger=$2
	[[ " ${LIES_ONLY:-$name} " == *" $name "* ]] || return
	[ -n "$FULL$LIES_ONLY" ] || [[ ${LIES_FULL//[$'\n\t']/ } != *" $name "* ]] || return
	lie_prepare "$trigger"
	expect "lies/$name" lie_is_found "$@"
	lie_is_over "$name" "$trigger" || result fail "lies/$name" "no way back"
}

lies()
{
	local name trigger want log known=
	hostile_setup || { result fail lies "the device cannot lie"; return; }
	while IFS='|' read -r name trigger want log; do
		[ -n "$name" ] || continue
		known+=$name$'\n'
		lie "$name" "$trigger" "$want" "$log"
	done < <(sed 's/ *| */|/g; s/ *$//' <<<"$LIES")
	lie_prepare bind
	lie_prepare none
	expect "lies/all are in the table" [ "$(qom qom-get hostile-names | tr ' ' '\n' | sort)" = \
		"$(sort <<<"${known%?}")" ]
	expect "lies/verbs, honest again" lie_works verbs
	expect "lies/honest again" hostile_is_well
}
