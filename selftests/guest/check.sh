#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check.sh [claims] [eth | eth_PIECE… | card] [kverbs] [tools] [speeds] [matrix] [cm] [soak]
#     [life] [lies] [hostile] [snapshot] [rails] [churn] [exits]
#     [kselftest [NAME…] | pyverbs [FILE…]]     (in the guest)
#
# The guest's sections of `make check`, on the device QHCA_DEV; without arguments
# all of them but card, which is eth in brief, claims, whose table is for the image's kernel, life,
# snapshot and churn, which take minutes, lies and hostile, which need vm --hostile, rails, which
# needs vm --hcas and --faults rails.faults, and exits, which needs KVM. Words behind kselftest or
# pyverbs are names of its programs. Ends with one line: N passed, N failed, N skipped. Exit status 0
# if something passed and nothing failed.

LOGS=/run/qhca/logs
. /opt/qhca/guest/perf.sh
. /opt/qhca/guest/result.sh
. /opt/qhca/guest/pings.sh
. /opt/qhca/guest/device.sh
. /opt/qhca/guest/probes.sh
. /opt/qhca/guest/speeds.sh
. /opt/qhca/guest/eth.sh
. /opt/qhca/guest/eth-alone.sh
. /opt/qhca/guest/eth-queues.sh
. /opt/qhca/guest/eth-senders.sh
. /opt/qhca/guest/eth-refused.sh
. /opt/qhca/guest/eth-moderation.sh
. /opt/qhca/guest/eth-storm.sh
. /opt/qhca/guest/eth-port.sh
. /opt/qhca/guest/claims.sh
. /opt/qhca/guest/cm.sh
. /opt/qhca/guest/matrix.sh
. /opt/qhca/guest/soak.sh
. /opt/qhca/guest/hostile.sh
. /opt/qhca/guest/lies.sh
. /opt/qhca/guest/life.sh
. /opt/qhca/guest/restarts.sh
. /opt/qhca/guest/churn.sh
. /opt/qhca/guest/snapshot.sh
. /opt/qhca/guest/rails.sh
. /opt/qhca/guest/exits.sh

# ---- kselftests: the programs named, here or in KSELFTESTS, or those in tests.list

DMA_ERRORS=/sys/kernel/debug/dma-api/num_errors

kselftest()
{
	local name rc group=${KSELFTEST_GROUP:-kselftest}
	# shellcheck disable=SC2046,SC2086 # words
	[ $# -gt 0 ] || set -- ${KSELFTESTS:-$(cat /opt/qhca/selftests/tests.list)}
	[ $# -gt 0 ] || result fail kselftest "none in the payload"
	plan "$group" "$@"
	for name; do
		if [ "$name" = suspend ] && [[ $(uname -r) == 7.* ]]; then
			# Writers sleep in wait_port_writable() ever after, this script too.
			result skip kselftest/suspend "virtio_console of 7.3 loses its ports"
			continue
		fi
		rc=0
		# A kernel that debugs DMA has one complaint for each program.
		[ ! -e $DMA_ERRORS ] || echo 1 >$DMA_ERRORS
		( cd /opt/qhca/selftests && RDMA_DEVICE=$QHCA_DEV RDMA_GID=$QHCA_GID \
			timeout "${KSELFTEST_TIMEOUT:-400}" "./$name" </dev/null ) \
			>"$LOGS/ks-$name.log" 2>&1 || rc=$?
		tap "$group/$name" "$LOGS/ks-$name.log" $rc
	done
}

# ---- verbs as kernel consumers use them: a test module

kverbs()
{
	local log=$LOGS/kverbs.log run=/sys/kernel/debug/qhca_kverbs_test/run rc=0
	[ -e /opt/qhca/modules/qhca_kverbs_test.ko ] ||
		{ result skip kverbs "no test module in the payload"; return; }
	insmod /opt/qhca/modules/qhca_kverbs_test.ko device="$QHCA_DEV" gid_index="$QHCA_GID" ||
		{ result fail kverbs "insmod"; return; }
	timeout "${KVERBS_TIMEOUT:-300}" cat $run >"$log" 2>&1 || rc=$?
	tap kverbs "$log" $rc
	kverbs_breaks flush
	# The first six commands connect the QPs of its test.
	kverbs_ruled stop "cmd opcode=modify_qp after=6 once fail=no_resource"
	kverbs_ruled last "event type=last_wqe_reached drop"
	kverbs_load
	kverbs_received
	kverbs_death
	rmmod qhca_kverbs_test || result fail kverbs "rmmod"
}

# How many CQEs an event waits for, for each of the module's CQs, according to the
# device.
moderated()
{
	rdma -dd resource show cq | awk '/^dev/ { ours = /qhca_kverbs_test/ }
		ours { for (i = 1; i < NF; i++) if ($i == "drv_mod_count") print $(i + 1) }'
}

# Moderation by load: the core decides, the device does it.
kverbs_load()
{
	local log=$LOGS/kverbs-load.log seen=$LOGS/moderation rc=0 reader
	rdma dev set "$QHCA_DEV" adaptive-moderation on ||
		{ result fail kverbs/load "adaptive moderation cannot be had"; return; }
	timeout "$PATIENCE" cat /sys/kernel/debug/qhca_kverbs_test/load >"$log" 2>&1 &
	reader=$!
	: >"$seen"
	until gone $reader; do moderated >>"$seen"; done
	wait $reader || rc=$?
	tap kverbs "$log" $rc
	rdma dev set "$QHCA_DEV" adaptive-moderation off
	# C-034: a single message gets its event without delay, many share one.
	expect "kverbs/load: events wait for $(sort -nu "$seen" | xargs) CQEs" \
		[ "$(sort -nu "$seen" | wc -l)" -gt 2 ]
}

# Frames that the device receives, from a gateway that answers pings.
kverbs_received()
{
	local log=$LOGS/kverbs-received.log rc=0 reader
	timeout 60 cat /sys/kernel/debug/qhca_kverbs_test/received >"$log" 2>&1 &
	reader=$!
	until gone $reader; do
		ping_gateway -c 20 -i 0.01 -s 40 >/dev/null
		ping_gateway -c 20 -i 0.01 -s 1400 >/dev/null
	done
	wait $reader || rc=$?
	tap kverbs "$log" $rc
}

host_listens() { qhca-host qmp '{"execute": "query-status"}' >/dev/null 2>&1; }

# Tests in which the device dies; a reset of the function brings it back.
kverbs_death()
{
	local log=$LOGS/kverbs-death.log rc=0 irq reader
	host_listens || { result skip kverbs/death "the host takes no orders"; return; }
	# The first CPU is busy with the completions of this test.
	taskset -cp 1 $$ >/dev/null
	irq=$(sed -n 's/^ *\([0-9]*\):.*qhca-async.*/\1/p' /proc/interrupts)
	echo 2 >"/proc/irq/$irq/smp_affinity"
	timeout 60 cat /sys/kernel/debug/qhca_kverbs_test/death >"$log" 2>&1 &
	reader=$!
	sleep 2
	qom qom-set inject-fatal true >/dev/null
	wait $reader || rc=$?
	tap kverbs "$log" $rc
	taskset -cp "0-$(($(nproc --all) - 1))" $$ >/dev/null
	kverbs_back
}

# kverbs_breaks FILE: its test leaves a broken device.
kverbs_breaks()
{
	local log=$LOGS/kverbs-$1.log rc=0
	timeout 60 cat "/sys/kernel/debug/qhca_kverbs_test/$1" >"$log" 2>&1 || rc=$?
	tap kverbs "$log" $rc
	kverbs_back
}

# kverbs_ruled FILE RULE: the test of FILE also passes on a device that misbehaves.
kverbs_ruled()
{
	host_listens || { result skip "kverbs/$1" "the host takes no orders"; return; }
	qom qom-set faults "\"$2\"" >/dev/null || result fail "kverbs/$1" "rule refused"
	kverbs_breaks "$1"
	qom qom-set faults '""' >/dev/null
}

kverbs_back()
{
	local reset
	for reset in /sys/bus/pci/drivers/qhca/*:*:*/reset; do
		echo 1 >"$reset"
	done
	until_true gid_is_back || result fail kverbs/back "the device does not come back"
}

gid_is_back() { [ "$(qhca-gid "$QHCA_DEV" "$QHCA_IP" 2>/dev/null)" = "$QHCA_GID" ]; }

# ---- rdma-core's own tools

# A device other than ours may lack a service without failing. Ours offers all of
# them.
NOT_OFFERED="Couldn't create (QP|SRQ)|not support|No such device|EOPNOTSUPP"

tool()
{
	local name=$1 log=$LOGS/tool.log
	shift
	if "$@" >$log 2>&1; then
		result ok "$name"
	elif [[ $QHCA_DEV != qhca* ]] && grep -qE "$NOT_OFFERED" $log; then
		result skip "$name" "$(grep -m1 -E "$NOT_OFFERED" $log)"
	else
		tail -n 4 $log | sed 's/^/    /'
		result fail "$name"
	fi
}

# libibverbs' examples, each plain and with each of its options; but -t and -e
# together treat an event after which the CQ is empty as an error. Those that check
# what they receive (-c) only print the verdict.
PINGPONGS='
ibv_rc_pingpong
ibv_rc_pingpong -e
ibv_rc_pingpong -c
ibv_rc_pingpong -t
ibv_rc_pingpong -N
ibv_rc_pingpong -N -t -c
ibv_rc_pingpong -N -e -c
ibv_rc_pingpong -s 1000000 -n 20 -m 4096 -c
ibv_rc_pingpong -s 1 -m 256 -r 2 -l 3 -i 1
ibv_rc_pingpong -o -c
ibv_rc_pingpong -o -P -e -c
ibv_rc_pingpong -O -c
ibv_rc_pingpong -O -P -N -c
ibv_rc_pingpong -j -c
ibv_rc_pingpong -j -N -t -c
ibv_uc_pingpong
ibv_uc_pingpong -e
ibv_uc_pingpong -c
ibv_uc_pingpong -s 100000 -n 50 -m 4096
ibv_uc_pingpong -s 1 -m 256 -r 2 -l 3
ibv_ud_pingpong
ibv_ud_pingpong -e
ibv_ud_pingpong -c
ibv_ud_pingpong -s 1 -r 2 -l 3
ibv_srq_pingpong
ibv_srq_pingpong -e
ibv_srq_pingpong -c
ibv_srq_pingpong -o -c
ibv_srq_pingpong -q 1
ibv_srq_pingpong -q 64 -r 500 -n 200
ibv_srq_pingpong -s 100000 -n 10 -m 4096 -l 3
ibv_xsrq_pingpong
ibv_xsrq_pingpong -e
ibv_xsrq_pingpong -o
ibv_xsrq_pingpong -s 100000 -n 20 -m 4096 -l 3
'

pingpongs()
{
	local port=18515 options name
	while read -r name options; do
		[ -n "$name" ] || continue
		port=$((port + 1))
		# shellcheck disable=SC2086 # a list
		tool "tools/$name${options// /}" pingpong $port $name $options
	done <<<"$PINGPONGS"
}

pingpong()
{
	local port=$1 rc=0
	shift
	both 60 "$LOGS/pp.server" "$LOGS/pp.client" "$port" \
		"$@" -d "$QHCA_DEV" -g "$QHCA_GID" -p "$port" || rc=$?
	cat "$LOGS/pp.server" "$LOGS/pp.client"
	[ $rc = 0 ] && ! grep -q 'invalid data' "$LOGS/pp.server"
}

# The program of Documentation/tutorial.rst, built as it says there.
first_write()
{
	gcc -Wall -o "$LOGS/first_write" /opt/qhca/guest/first_write.c -libverbs || return
	"$LOGS/first_write" "$QHCA_DEV" "$QHCA_GID" | tee "$LOGS/first_write.out"
	grep -q '^there: Hello, remote memory$' "$LOGS/first_write.out"
}

# The device is in the list, with its GUID.
device_listed()
{
	local guid
	guid=$(tr -d : <"/sys/class/infiniband/$QHCA_DEV/node_guid")
	ibv_devices | tee "$LOGS/ibv_devices"
	grep -qE "^[[:space:]]+${QHCA_DEV}[[:space:]]+$guid\$" "$LOGS/ibv_devices"
}

# At least what ib_core has made on it for its MADs.
resources_listed()
{
	rdma res show "$QHCA_DEV" | tee "$LOGS/rdma-res"
	grep -qE "^[0-9]+: $QHCA_DEV: .*pd [1-9][0-9]* cq [1-9][0-9]* qp [1-9][0-9]* " \
		"$LOGS/rdma-res"
}

devlink_listed() { devlink dev info | tee /dev/stderr | grep -q 'fw [0-9]*[.][0-9]*[.][0-9]*'; }

tools()
{
	tool tools/ibv_devices device_listed
	tool tools/ibv_devinfo ibv_devinfo -d "$QHCA_DEV" -v
	tool "tools/rdma res" resources_listed
	tool "tools/devlink info" devlink_listed
	tool tools/first_write first_write
	pingpongs
}

# ---- pyverbs: the vendor-neutral files, one process each, so that a crash
# costs one file only

PYVERBS='addr atomic cq cq_events cqex device fork mr odp parent_domain pd qp qpex
	rdmacm relaxed_ordering rss_traffic shared_pd srq tag_matching flow'
# And of rdma-core from 57 to 65.
PYVERBS_NEW='buf dmah phc_timestamp'

# The root of another release, if vm has been asked for its rdma-core.
USERSPACE=''
[ ! -d /opt/userspace ] || USERSPACE=/opt/userspace

# The tests' processes expect to inherit what their parent has, as up to Python 3.13.
PYVERBS_RUN='import multiprocessing, runpy, sys
multiprocessing.set_start_method("fork")
sys.path[0] = "tests"
runpy.run_path("tests/run_tests.py", run_name="__main__")'

# Every test of a unittest -v log: "test_x (tests.y.Z.test_x) ... ok"; what the
# test prints may come in between, so take the verdict wherever it stands.
pyverbs_file()
{
	local file=$1 log=$LOGS/pyverbs-$1.log rc=0 ran verdicts
	timeout "${PYVERBS_TIMEOUT:-400}" chroot "${USERSPACE:-/}" env -C /opt/pyverbs \
		python3 -c "$PYVERBS_RUN" -v \
		--dev "$QHCA_DEV" --port 1 --gid "$QHCA_GID" -k "tests.test_$file." \
		>"$log" 2>&1 || rc=$?
	verdicts=$(awk -v f="$file" '
		match($0, /^test_[A-Za-z0-9_]+ /) { name = substr($0, 1, RLENGTH - 1) }
		name == "" { next }
		/\.\.\. ok$|^ok$/ { print "ok", f "/" name; name = "" }
		/\.\.\. skipped |^skipped / { r = $0; sub(/.*skipped /, "", r)
			print "skip", f "/" name, r; name = "" }
		/\.\.\. (FAIL|ERROR)$|^(FAIL|ERROR)$/ { print "fail", f "/" name; name = "" }
	' "$log")
	while read -r verdict name reason; do
		case $verdict in
		'') ;;
		fail) foreign "pyverbs/$name" "$reason" ;;
		*) result "$verdict" "pyverbs/$name" "$reason" ;;
		esac
	done <<<"$verdicts"
	ran=$(sed -n 's/^Ran \([0-9]*\) test.*/\1/p' "$log")
	if [ -z "$ran" ]; then
		tail -n 4 "$log" | sed 's/^/    /'
		result fail "pyverbs/$file" "did not finish, status $rc"
	elif [ "$ran" != "$(grep -c . <<<"$verdicts")" ]; then
		result fail "pyverbs/$file" "$ran tests, $(grep -c . <<<"$verdicts") results"
	elif [ $rc -ge 128 ] && grep -q '^ok' <<<"$verdicts"; then
		# (pyverbs itself crashes on exit when the device offers nothing that
		# a file needs; there all tests are skipped.)
		result fail "pyverbs/$file" "crashed at exit, status $rc"
	elif grep -qE '^(FAIL|ERROR): ' "$log"; then
		sed -n '/^=====/,$p' "$log" | head -n "${PYVERBS_LINES:-60}" | sed 's/^/    /'
	fi
}

pyverbs()
{
	local file
	# Three tests map huge pages.
	echo 1 >/proc/sys/vm/compact_memory
	echo 16 >/proc/sys/vm/nr_hugepages
	# shellcheck disable=SC2086 # a list
	[ $# -gt 0 ] || set -- $PYVERBS ${USERSPACE:+$PYVERBS_NEW}
	plan pyverbs "$@"
	for file; do
		[ -e "$USERSPACE/opt/pyverbs/tests/test_$file.py" ] ||
			{ result fail "pyverbs/$file" "no such file"; continue; }
		if [ "$file" = rdmacm ] && ! have_cm; then
			result skip pyverbs/rdmacm "no GSI QP, so no RDMA CM (whole file)"
			continue
		fi
		pyverbs_file "$file"
	done
}

# A few programs that show in seconds that most of it works.
CORE_KSELFTESTS='device cq mr rc_queue srq translate mw xrc cm qp_state ten_steps'
CORE_PYVERBS='pd mr cq'

# shellcheck disable=SC2086 # lists
core() { kselftest $CORE_KSELFTESTS; pyverbs $CORE_PYVERBS; }

if [ "$1" = eth-alone ]; then
	eth_alone
	summary
	exit
fi
[ -n "$QHCA_DEV" ] || result fail device "no RDMA device"
device_recovers false
if [ $# = 0 ] && [ -n "$QHCA_DEV" ]; then
	kselftest
	set -- eth kverbs tools speeds matrix cm soak pyverbs
fi
while [ $# -gt 0 ] && [ -n "$QHCA_DEV" ]; do
	case $1 in
	claims|eth|card|kverbs|tools|speeds|cm|matrix|soak|core|life|lies|hostile|snapshot|rails|churn|exits)
		"$1" ;;
	eth_*) eth_pieces "$1" ;;
	kselftest|pyverbs) "$@"; break ;;
	*) result fail "$1" "no such section"; break ;;
	esac
	shift
done
summary
