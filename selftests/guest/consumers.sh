#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# consumers.sh [--full] [--machines 2] [NAME…]     (in the guest)
#
# Consumers of RDMA: parts of the kernel, libraries, applications. Runs those in
# consumers/list that need this many machines (1): all with --full, else those marked
# check. With --machines 2 two machines run it together. Ends with one line: N passed,
# N failed, N skipped.
#
# NAME.sh defines a function NAME, which reports as consumers/NAME/…; FULL is 1 where
# it may take minutes. Afterwards the device must have no more objects than before, so
# NAME must take down all it has set up, modules included.

DIR=/opt/qhca/guest
LOGS=/run/qhca/logs
MACHINES=1
export FULL=${FULL:-}

. $DIR/result.sh
. $DIR/device.sh
. $DIR/perf.sh
. $DIR/peers.sh
. $DIR/cm.sh

# unload MODULE…: each with the modules that no other needs. Consumers clean up in work queues, so a
# module may be in use for another moment.
unload()
{
	local module
	for module; do
		[ ! -d "/sys/module/$module" ] || until_true modprobe -qr "$module" || {
			modprobe -r "$module"
			grep "^$module " /proc/modules
			return 1
		}
	done
}

# How many objects of each kind the device has, "pd 1 qp 1 cm_id 0 mr 0 …", and which
# modules use the core. The CQs of the core's own pool stay as long as the device.
objects()
{
	local cqs
	cqs=$(rdma res show cq dev "$QHCA_DEV" | grep -cv '\[ib_core\]')
	rdma res show "$QHCA_DEV" | sed "s/.*: //; s/ *$//; s/cq [0-9]*/cq $cqs/"
	( cd /sys/module && echo ib_core/holders/* )
}

same_objects() { [ "$(objects)" = "$objects" ]; }

objects_clean()
{
	until_true same_objects && return
	echo "before: $objects"
	echo "now:    $(objects)"
	rdma res show qp link "$QHCA_DEV"
	rdma res show cq dev "$QHCA_DEV"
	rdma res show cm_id link "$QHCA_DEV"
	return 1
}

# The launcher looks at the whole log; here the complaint can be attributed.
COMPLAINTS='WARNING: |BUG: |Oops|Call Trace:|blocked for more than|refcount_t: |list_.* corruption'

log_clean()
{
	local text
	text=$(dmesg | sed "1,/consumer $1 begins/d" | grep -E "$COMPLAINTS|(qhca|rxe)[^ ]*:.*(error|fail|timed out)")
	[ -z "$text" ] || { echo "$text"; return 1; }
}

# In a process of its own.
one()
{
	local name=$1 objects
	# shellcheck source=/dev/null
	. "$DIR/consumers/$name.sh" || { result fail "consumers/$name" "no such file"; return; }
	objects=$(objects)
	echo "qhca: consumer $name begins" >/dev/kmsg
	have_cm || { result fail "consumers/$name" "no GSI QP, so no RDMA CM"; return; }
	"$name"
	expect "consumers/$name/objects" objects_clean
	expect "consumers/$name/kernel-log" log_clean "$name"
}

# Not through a pipe: daemons would keep it open.
consumer()
{
	local name=$1 log=$LOGS/consumer-$1.log rc=0 pid start=$SECONDS ok bad skip
	[ "$MACHINES" = 1 ] || qhca-host sync "consumer-$name" >/dev/null
	: >"$log"
	timeout -k 10 "${LIMIT:-$((${FULL:-0} ? 1800 : 400))}" "$0" --one "$name" </dev/null >"$log" 2>&1 &
	pid=$!
	tail -n +1 -s 0.3 -f --pid=$pid "$log"
	wait $pid || rc=$?
	skip=$(grep -c '^ok .*# SKIP' "$log")
	ok=$(($(grep -c '^ok ' "$log") - skip))
	bad=$(grep -c '^not ok ' "$log")
	PASS=$((PASS + ok)) SKIP=$((SKIP + skip)) FAIL=$((FAIL + bad))
	case $rc in
	0) ;;
	124|137) result fail "consumers/$name" "did not end in time" ;;
	*) [ "$bad" != 0 ] || result fail "consumers/$name" "status $rc" ;;
	esac
	echo "# $name took $((SECONDS - start)) s"
}

# The names that match, of those given or of all.
chosen()
{
	local name machines when _
	while IFS='|' read -r name machines when _; do
		name=${name// /}
		[[ $name != '#'* && ${machines// /} == "$MACHINES" ]] || continue
		if [ $# = 0 ]; then
			[[ ${when// /} == check || ( $FULL == 1 && ${when// /} == full ) ]] || continue
		else
			[[ " $* " == *" $name "* ]] || continue
		fi
		echo "$name"
	done <$DIR/consumers/list
}

while [ $# -gt 0 ]; do
	case $1 in
	--full) FULL=1 ;;
	--machines) MACHINES=$2; shift ;;
	--one) one "$2"; [ $FAIL = 0 ]; exit ;;
	-*) echo "unknown option $1"; exit 2 ;;
	*) break ;;
	esac
	shift
done
[ -n "$QHCA_DEV" ] || result fail device "no RDMA device"
mapfile -t names < <(chosen "$@")
[ $# -gt 0 ] || set -- "${names[@]}"
plan consumers "$@"
for name in "${names[@]}"; do
	[ -z "$QHCA_DEV" ] || consumer "$name"
done
summary
