#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check.sh [full | engine | soak | qtest [--debug] | guest [PART…] | mw2a | soak-guest | pair | rxe]
# check.sh consumers [--full] [--rxe] [NAME…]
#
# The tests: those of the engine, without a VM (soak: only its simulator, COUNT
# schedules from SEED on); those of the QEMU device, without a guest; then
# guest/check.sh in one guest; windows of type 2A, which the device has if asked to
# (mw2a); what needs several guests, of which one can have rdma_rxe instead of the
# device (rxe); and what others have made that uses RDMA, those of
# guest/consumers/list. Without arguments all of them, with those consumers that take
# seconds; full: with all consumers, for as long as they take. consumers --rxe runs
# them over rdma_rxe in place of the device, for comparison. What consumers report is
# kept in the cache for scripts/consumers.py. soak-guest: connections that come and go
# in one guest, for MINUTES (10; 0: until something fails).
# Ends with what failed and, on a line of its own, the sum: N passed, N failed,
# N skipped. VMFLAGS goes to scripts/vm. qtest --debug: of a QEMU with ASan and UBSan.

. "$(dirname "$(readlink -f "$0")")/lib.sh"

PASS=0 FAIL=0 SKIP=0
OUT=$(mktemp "$QHCA_CACHE/tmp/check.XXXXXX")
FAILED=$OUT.failed
trap 'rm -f "$OUT" "$FAILED"' EXIT
: >"$FAILED"

# Add up the last summary line of a part. A part that fails without having
# counted a failure, or that reports nothing, counts as one failure itself.
account()
{
	local name=$1 rc=$2 line p f s
	line=$(grep -aE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped' "$OUT" | tail -n 1)
	read -r p f s <<<"$(tr -cs '0-9\n' ' ' <<<"$line")"
	PASS=$((PASS + ${p:-0})) FAIL=$((FAIL + ${f:-0})) SKIP=$((SKIP + ${s:-0}))
	if [ -z "$line" ] || { [ "$rc" != 0 ] && [ "${f:-0}" = 0 ]; }; then
		echo "not ok $name # status $rc" | tee -a "$OUT"
		FAIL=$((FAIL + 1))
	fi
	grep -aE -B 2 --no-group-separator '(^|[|:] )not ok ' "$OUT" | sed "s|^|$name: |" >>"$FAILED" || :
	log "$name: ${line:-no summary}, status $rc, after $SECONDS s"
}

# On a copy, so that no objects end up in the source tree.
engine()
{
	local tree=$QHCA_CACHE/engine-tree rc=0
	if [ ! -e "$QHCA_TOP/qemu-device/tests/Makefile" ]; then
		warn "no qemu-device/tests yet"
		return
	fi
	mkdir -p "$tree"
	log "engine tests"
	with_lock engine-tree engine_run "$tree" check | tee "$OUT" || rc=$?
	account engine $rc
}

soak()
{
	local tree=$QHCA_CACHE/engine-tree rc=0
	mkdir -p "$tree"
	with_lock engine-tree engine_run "$tree" soak COUNT="${COUNT:-}" SEED="${SEED:-}" |
		tee "$OUT" || rc=$?
	PASS=$(grep -c '^ok' "$OUT") || :
	FAIL=$(grep -c '^not ok' "$OUT") || :
	[ "$rc" = 0 ] || [ "$FAIL" != 0 ] || FAIL=1
}

engine_run()
{
	local tree=$1
	shift
	rsync -rpc --delete --exclude='*.o' --exclude='*.d' --exclude=/qemu-device/tests/build \
		"$QHCA_TOP/qemu-device" "$QHCA_TOP/include" "$tree/"
	in_buildroot make -s -j "$(nproc)" -C "$(br_path "$tree/qemu-device/tests")" "$@" 2>&1
}

# qtest [--debug]: of the QEMU that build-qemu.sh makes with these options.
qtest()
{
	local rc=0 qemu
	qemu=$("$QHCA_TOP/scripts/build-qemu.sh" "$@") || die "QEMU does not build"
	log "device tests${*:+ with $*}"
	python3 "$QHCA_TOP/qemu-device/qtest/run.py" --qemu "$qemu/qemu-system-x86_64" |
		tee "$OUT" || rc=$?
	account "qtest${*:+ $*}" $rc
}

# QEMU compiles while the image downloads. Whatever fails here fails again, and
# counts, in the part that needs it.
build()
{
	# shellcheck disable=SC2086 # a list of options
	"$QHCA_TOP/scripts/vm" build --strict ${VMFLAGS:-} || warn "not everything builds"
}

guest()
{
	one_guest guest --timeout 1800 -- "$@"
}

# The other kind of memory windows of type 2.
mw2a()
{
	one_guest mw2a --timeout 300 --device-arg mw2a=on --env MW_TYPE_2A=1 \
		--env 'KSELFTESTS=mw inval stress' -- kselftest
}

soak_guest()
{
	local seconds=$((${MINUTES:-10} * 60))
	one_guest soak-guest --timeout $((seconds ? seconds + 600 : 1 << 30)) \
		--env SOAK_SECONDS=$seconds -- soak
}

# one_guest NAME [OPTION…] -- PART…: guest/check.sh in one machine.
one_guest()
{
	local name=$1 rc=0 options=()
	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	log "tests in the guest: $name"
	# shellcheck disable=SC2086 # a list of options
	"$QHCA_TOP/scripts/vm" run --strict "${options[@]}" ${VMFLAGS:-} -- \
		/opt/qhca/guest/check.sh "$@" | tee "$OUT" || rc=$?
	account "$name" $rc
}

# machines COUNT NAME COMMAND [OPTION…]: all run COMMAND, and all count; the sum
# goes where account() looks for it.
machines()
{
	local count=$1 name=$2 command=/opt/qhca/guest/$3 rc=0 sum where=()
	shift 3
	[[ $* != *--link\ bridge:* ]] || where=("${BRIDGED[@]}")
	log "tests in $count guests: $name"
	# shellcheck disable=SC2086 # a list of options
	"${where[@]}" "$QHCA_TOP/scripts/vm" net -n "$count" --strict --timeout 600 "$@" ${VMFLAGS:-} -- \
		"$command" | tee "$OUT" || rc=$?
	sum=$(awk '/^[a-z]\| [0-9]+ passed, / { p += $2; f += $4; s += $6 }
		END { printf "%d passed, %d failed, %d skipped", p, f, s }' "$OUT")
	echo "$sum" >>"$OUT"
	account "$name" $rc
}

# In a network namespace of its own, where there is a bridge.
BRIDGED=(unshare --map-root-user --net sh -ec '
	ip link add br0 type bridge
	ip link set br0 up
	exec "$@"' sh)

# Three machines at a bridge of the host's, or at the launcher's hub.
mcast()
{
	local link=hub
	"${BRIDGED[@]}" ip tuntap add dev probe mode tap 2>/dev/null && link=bridge:br0
	machines 3 "mcast ($link)" net-mcast.sh --link $link
}

# wire NAME [OPTION…]: two machines, and a judge of what went between them.
wire()
{
	local name=$1 file=$QHCA_CACHE/tmp/capture.$$ rc=0
	shift
	machines 2 "$name" pair-wire.sh --pcap "$file" "$@"
	log "$name: the capture"
	python3 "$QHCA_TOP/scripts/capture.py" --wire "$file" | tee "$OUT" || rc=$?
	account "$name, captured" $rc
	rm -f "$file"
}

# rdma_rxe at the other end.
rxe()
{
	wire rxe-wire --nic-b virtio --link udp
	machines 2 rxe pair-rdma.sh --nic-b virtio
	machines 2 rxe-loss 'pair-rdma.sh loss' --nic-b virtio --loss 1
}

pair()
{
	machines 2 pair pair.sh
	machines 2 pair-rdma 'pair-rdma.sh perf ipv6 place cm'
	machines 2 pair-loss 'pair-rdma.sh loss' --loss 1
	wire wire --link dgram
	mcast
}

# ---- consumers of guest/consumers/list

RESULTS=$QHCA_CACHE/consumers
LIST=$QHCA_TOP/scripts/guest/consumers/list

# listed MACHINES [NAME…]: of those named, or of all that this run is for.
listed()
{
	local count=$1 name machines when _
	shift
	while IFS='|' read -r name machines when _; do
		name=${name// /}
		[[ $name != '#'* && ${machines// /} == "$count" ]] || continue
		if [ $# != 0 ]; then
			[[ " $* " == *" $name "* ]] || continue
		else
			[ -n "$FULL" ] || [ "${when// /}" = check ] || continue
		fi
		echo "$name"
	done <"$LIST"
}

# keep DIRECTORY NAME…: what each of them has reported
keep()
{
	local dir=$RESULTS/$1 name
	shift
	mkdir -p "$dir"
	for name; do
		grep -aE "^([a-z][|] )?(not )?ok consumers/$name(/| |\$)" "$OUT" >"$dir/$name" ||
			echo "not ok consumers/$name # has not run" >"$dir/$name"
	done
}

# consumer_run MACHINES NAME…
consumer_run()
{
	local count=$1 rc=0 limit=${FULL:+7200} what options=("${DEVICE[@]}")
	shift
	what="consumers${FULL:+ --full}${DEVICE:+ over rdma_rxe}"
	if [ "$count" = 1 ]; then
		log "$what: $*"
		# shellcheck disable=SC2086 # a list of options
		"$QHCA_TOP/scripts/vm" run --strict --timeout "${limit:-1200}" "${options[@]}" ${VMFLAGS:-} -- \
			/opt/qhca/guest/consumers.sh ${FULL:+--full} "$@" | tee "$OUT" || rc=$?
		account "$what" $rc
	else
		machines "$count" "$what: $*" "consumers.sh ${FULL:+--full} --machines $count $*" \
			--timeout "${limit:-1200}" "${options[@]}"
	fi
	keep "${DEVICE:+rxe-}${FULL:-check}" "$@"
}

# rdma_rxe may take its machine down, so each has one of its own there.
consumers()
{
	local FULL='' DEVICE=() count name names
	while [[ ${1:-} == --* ]]; do
		case $1 in
		--full) FULL=full ;;
		--rxe) DEVICE=(--no-device --rxe) ;;
		*) die "unknown option $1, see --help" ;;
		esac
		shift
	done
	for name; do
		[ -n "$(listed 1 "$name")$(listed 2 "$name")" ] || die "no consumer $name"
	done
	for count in 1 2; do
		mapfile -t names < <(listed $count "$@")
		[ ${#names[@]} != 0 ] || continue
		if [ ${#DEVICE[@]} = 0 ]; then
			consumer_run $count "${names[@]}"
		else
			for name in "${names[@]}"; do
				consumer_run $count "$name"
			done
		fi
	done
}

everything() { build; engine; qtest; guest; mw2a; pair; rxe; }

case ${1:-} in
-h|--help) usage; exit 0 ;;
'') everything; consumers ;;
full) everything; qtest --debug; consumers --full ;;
consumers) shift; consumers "$@" ;;
engine) engine ;;
soak) soak ;;
qtest) shift; qtest "$@" ;;
guest) shift; guest "$@" ;;
mw2a) mw2a ;;
soak-guest) soak_guest ;;
pair) pair ;;
rxe) rxe ;;
*) die "unknown part $1, see --help" ;;
esac
# Once more, where whoever sees only the end of the output finds it.
cat "$FAILED"
echo "$PASS passed, $FAIL failed, $SKIP skipped"
[ "$FAIL" = 0 ]
