#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# net-tests.sh [PROGRAM…]     (in the guest)
#
# The kernel's own tests of network drivers, as scripts/build/net-tests.sh has put them into
# /opt/qhca/net-tests: all that the kernel's Makefiles list, or those named (ping.py,
# hw/csum.py). The device is at one end of a cable, the virtio-net of vm --both-ends at the
# other, in a network namespace. skips/net says which tests cannot run, and which fail and why.

LOGS=/run/qhca/logs
. /opt/qhca/guest/result.sh
. /opt/qhca/guest/ktap.sh

SELFTESTS=/opt/qhca/net-tests/tools/testing/selftests
TESTS=$SELFTESTS/drivers/net
FAR=far
NET4=192.168.77 NET6=fd00:77:
# A program may take that many seconds.
NET_TEST_LIMIT=${NET_TEST_LIMIT:-300}

# far_end: the other end of the cable.
far_end()
{
	ip netns add $FAR && ip link set dev "$QHCA_VIRTIO_IF" netns $FAR name far0 || return
	ip -n $FAR link set dev lo up
	ip -n $FAR link set dev far0 mtu 1500 up
	ip -n $FAR addr add $NET4.2/24 dev far0
	ip -n $FAR addr add $NET6:2/64 dev far0 nodad
}

# near_end: the device. Its addresses stay when it is down, as the tests expect.
near_end()
{
	sysctl -qw "net.ipv6.conf.$QHCA_IF.keep_addr_on_down=1"
	ip link set dev "$QHCA_IF" mtu 1500 && ip addr add $NET6:1/64 dev "$QHCA_IF" nodad
}

answers() { ping -q -c 1 -W 1 $NET4.2 && ping -q -c 1 -W 1 $NET6:2; }

both_ends() { far_end && near_end && until_true answers; }

# programs: what the Makefiles of this kernel run
programs()
{
	local dir file
	for dir in '' hw/; do
		for file in $({
			sed -n '/^TEST_PROGS *[:+]*=/,/[^\\]$/p' "$TESTS/${dir}Makefile"
			# shellcheck disable=SC2016 # make's
			echo 'print: ; @echo $(TEST_PROGS)'
		} | make -s -f - print); do
			echo "$dir$file"
		done
	done
}

# For ntuple.py, which pipes 40 times 4 bytes into socat and counts 40 datagrams: on a busy machine
# socat may find two of them in the pipe, and send them as one.
SHIM=/run/qhca/shim
small_socat()
{
	mkdir -p $SHIM && printf '#!/bin/sh\nexec %s -b 4 "$@"\n' "$(command -v socat)" >$SHIM/socat &&
		chmod +x $SHIM/socat
}

# run_test PROGRAM
run_test()
{
	local log=$LOGS/net-${1//\//-}.log name=${1##*/} rc=0 with=bash path=$PATH verdict test reason
	name=${name%.*}
	# Not all of them are executable.
	[[ $1 != *.py ]] || with=python3
	[ "$1" != hw/ntuple.py ] || path=$SHIM:$PATH
	( cd "$(dirname "$TESTS/$1")" && PATH=$path exec timeout -k 10 "$NET_TEST_LIMIT" $with "./${1##*/}" ) \
		>"$log" 2>&1 </dev/null || rc=$?
	while read -r verdict test reason; do
		case $verdict in
		plan)
			[ "$test" != 0 ] && [ "$test" = "$reason" ] || [ $rc = 4 ] ||
				foreign "net/$name" "$reason of $test tests, status $rc: $(tail -n 1 "$log")"
			# One without KTAP, which skips all that it has.
			[ "$test" != 0 ] || [ $rc != 4 ] ||
				result skip "net/$name" "$(tail -n 1 "$log" | tr -s ' ')" ;;
		fail) foreign "net/$test" "$reason" ;;
		*) result "$verdict" "net/$test" "$reason" ;;
		esac
	done < <(ktap_verdicts <"$log")
}

[ -d "$TESTS" ] || { result fail net "no tests in the payload"; summary; exit; }
# Modules that frames or tests need, but that are not loaded on demand.
modprobe -a pppoe vxlan macsec netconsole 2>/dev/null
both_ends >"$LOGS/net-ends" 2>&1 || { result fail net "no other end"; summary; exit; }
export PYTHONDONTWRITEBYTECODE=1 PATH=/opt/qhca/net-tests/bin:$PATH
export NETIF=$QHCA_IF REMOTE_TYPE=netns REMOTE_ARGS=$FAR
export LOCAL_V4=$NET4.1 REMOTE_V4=$NET4.2 LOCAL_V6=$NET6:1 REMOTE_V6=$NET6:2
small_socat || result fail net "no socat"
# shellcheck disable=SC2046 # words
[ $# -gt 0 ] || set -- $(programs)
[ $# -gt 0 ] || result fail net "no tests are listed"
echo "# net: $*"
for program; do
	run_test "$program"
	until_true answers >"$LOGS/net-answers" 2>&1 ||
		{ result fail "net/$program" "the cable is dead afterwards"; break; }
done
summary
