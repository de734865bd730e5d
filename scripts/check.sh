#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check.sh [--junit FILE] [quick | ci | full | [--full] PART…]
# check.sh [--junit FILE] guest SECTION… [NAME…]
# check.sh [--junit FILE] consumers [--full] [--rxe] [NAME…]
# check.sh list
#
# The tests. Without arguments those of `make check`, with quick or full those of
# `make check-quick` and `make check-full`, with ci those of `make check` and lint; or
# some parts, or groups of them, which list shows, with --full in their long form.
# guest: sections of guest/check.sh in one guest, as `guest kselftest mw ud`.
# consumers: those of guest/consumers/list, in their long form, or over rdma_rxe in
# place of the device, or some of them.
#
# JOBS parts run at a time (one for each CPU, at most 4). The output of each appears
# when it ends, and QHCA_CACHE/results/last keeps it. The last lines are what failed
# and, on a line of its own, the totals: N passed, N failed, N skipped.
#
# Of several parts, those in which one or two results have failed run again when nothing
# else does, if that takes no more than SECOND (1800) seconds in all; 0: none. What passes
# then has passed, and is listed as unsteady. PART.first.log has the first output.
#
# QHCA_PATIENCE is how many times longer than usual tests may take; check/patience.py measures it.
# VMFLAGS goes to scripts/vm. soak runs COUNT schedules of the engine's simulator,
# starting with SEED; soak-guest connections that come and go, and churn and churn-kcsan what they
# do, for MINUTES (10; 0: until something fails).

. "$(dirname "$(readlink -f "$0")")/lib.sh"
. "$QHCA_TOP/scripts/check/parts.sh"

cpus=$(nproc)
JOBS=${JOBS:-$((cpus < 4 ? cpus : 4))}
JUNIT=${JUNIT:-} VMFLAGS=${VMFLAGS:-} SECOND=${SECOND:-1800}
# Options that PARTS and its functions use.
FULL='' DEVICE='' WORDS=''

# ---- the table

# rows FIELD VALUE: the names of the parts that have VALUE in that field.
rows()
{
	awk -F'|' -v field="$1" -v value="$2" 'NF == 5 { name = $1; gsub(/ /, "", name)
		if (" " $field " " ~ " " value " ") print name }' <<<"$PARTS"
}

# row NAME FIELD: one field of one part.
row()
{
	awk -F'|' -v name="$1" -v field="$2" 'NF == 5 { n = $1; gsub(/ /, "", n)
		if (n == name) { gsub(/^ +| +$/, "", $field); print $field } }' <<<"$PARTS"
}

list()
{
	awk -F'|' 'NF == 5 { gsub(/ +/, " ", $3); gsub(/ /, "", $4)
		printf "%s %s%s\n", $1, $3, $4 ? "(group " $4 ")" : "" }' <<<"$PARTS"
}

# ---- running parts

# By kind; machines that have a peer keep their priority.
declare -A NICE=([one]=10 [all]=10 [idle]=19)

# part NAME: in a process of its own.
part()
{
	local command nice
	read -ra command <<<"$(row "$1" 5)"
	nice=${NICE[$(row "$1" 2)]:-}
	# Fails if this process is nicer already.
	[ -z "$nice" ] || renice -n "$nice" $BASHPID >/dev/null 2>&1 || true
	# What this process and those it has waited for took of the CPUs.
	# shellcheck disable=SC2064 # now
	trap "times >'$RUN/$1.times'" EXIT
	"${command[@]}"
}

# clocked NAME: the part, whose lines are dated.
clocked() { part "$1" 2>&1 | "$QHCA_TOP/scripts/check/stamp.py" "$RUN/$1.clock"; }

declare -A PART_OF SINCE KIND

# spawn NAME COMMAND…: in the background and in a process group of its own, so that
# all of it can be stopped.
spawn()
{
	local name=$1
	shift
	set -m
	( "$@" ) </dev/null &
	set +m
	PART_OF[$!]=$name SINCE[$name]=$SECONDS
}

# Waits for one part to end, and shows its result and output.
reap()
{
	local pid='' rc=0 name
	wait -n -p pid "${!PART_OF[@]}" || rc=$?
	[ -n "$pid" ] || return 0
	name=${PART_OF[$pid]}
	unset "PART_OF[$pid]"
	ended "$name" $rc
	second "$name"
}

# second NAME: a part that has failed may get a second run, before those that run alone anyway,
# which read the results of all others.
second()
{
	local i=0 took=$((SECONDS - SINCE[$1]))
	[[ ${KIND[$1]:-all} != all && $took -le $SECOND ]] || return 0
	"$QHCA_TOP/scripts/check/results.py" "$RUN" again "$1" || return 0
	log "$1: again, later and alone"
	SECOND=$((SECOND - took)) KIND[$1]=all
	while [ $i -lt ${#waiting[@]} ] && [ "${KIND[${waiting[$i]}]}" != all ]; do i=$((i + 1)); done
	waiting=("${waiting[@]:0:$i}" "$1" "${waiting[@]:$i}")
}

# cpu_seconds NAME: 0 if it was killed.
cpu_seconds()
{
	touch "$RUN/$1.times"
	awk '{ for (i = 1; i <= NF; i++) { split($i, t, /[ms]/); s += 60 * t[1] + t[2] } }
		END { printf "%d", s }' "$RUN/$1.times"
}

# ended NAME STATUS
ended()
{
	local name=$1
	echo "$name $2 $((SECONDS - SINCE[$name])) $(cpu_seconds "$name")" >>"$RUN/parts"
	[ -n "$ALONE" ] || cat "$RUN/$name.log"
	log "$("$QHCA_TOP/scripts/check/results.py" "$RUN" part "$name")" \
		"${PART_OF[*]:+(running: ${PART_OF[*]})}"
}

# fits KIND: may one more run now?
fits()
{
	local name used=0 pairs=0
	[ "$1" != all ] || return $((${#PART_OF[@]} != 0))
	for name in "${PART_OF[@]}"; do
		[ "${KIND[$name]}" != all ] || return 1
		[ "${KIND[$name]}" = idle ] || used=$((used + 1))
		[ "${KIND[$name]}" != pair ] || pairs=1
	done
	case $1 in
	idle) true ;;
	pair) [ $used -lt "$JOBS" ] && [ $pairs = 0 ] ;;
	*) [ $used -lt "$JOBS" ] ;;
	esac
}

# run NAME…: several at a time, in that order as far as they fit.
run()
{
	local name waiting=("$@") later
	printf '%s\n' "$@" >"$RUN/plan"
	ALONE=''
	if [ $# = 1 ]; then
		alone "$1"
		return
	fi
	for name; do KIND[$name]=$(row "$name" 2); done
	while [ ${#waiting[@]} != 0 ] || [ ${#PART_OF[@]} != 0 ]; do
		later=()
		for name in "${waiting[@]}"; do
			# A part that runs alone waits for all parts before it.
			if [[ ${later[*]:+${KIND[$name]}} == all ]] || ! fits "${KIND[$name]}"; then
				later+=("$name")
				continue
			fi
			log "$name"
			spawn "$name" clocked "$name" >"$RUN/$name.log" 2>&1
		done
		waiting=("${later[@]}")
		reap
	done
}

# A single part is shown as it runs.
alone()
{
	local rc=0
	ALONE=1 SINCE[$1]=$SECONDS
	clocked "$1" | tee "$RUN/$1.log" || rc=$?
	ended "$1" $rc
}

# shellcheck disable=SC2317 # a trap
stop()
{
	local pid
	trap - EXIT
	for pid in "${!PART_OF[@]}"; do
		kill -TERM -- "-$pid" 2>/dev/null
	done
	wait
	exit 130
}

# ---- what to run

# QEMU compiles while the image downloads, and tools are installed now for parts that
# must not wait for them later. Whatever fails here fails again, and counts, in the
# part that needs it.
build()
{
	spawn build build_all "$@" >&2
	wait "${!PART_OF[@]}" || warn "not everything builds"
	PART_OF=()
}

# shellcheck disable=SC2317 # by name
build_all()
{
	local tools=()
	[[ " $* " != *" lint "* ]] || tools+=(--extra)
	[[ ! " $* " =~ "wire "|" tour "|" cluster-captures " ]] || tools+=(--tshark)
	[[ " $* " != *" instructions "* ]] || tools+=(--valgrind)
	"$QHCA_TOP/scripts/build/buildroot.sh" "${tools[@]}" --path >/dev/null
	# shellcheck disable=SC2086 # a list of options
	"$QHCA_TOP/scripts/vm" build --strict $VMFLAGS
}

# consumers [--full] [--rxe] [NAME…]: those of the parts that it takes.
consumers()
{
	local name
	while [[ ${1:-} == --* ]]; do
		case $1 in
		--full) FULL=full ;;
		--rxe) DEVICE='--no-device --rxe' ;;
		*) die "unknown option $1, see --help" ;;
		esac
		shift
	done
	WORDS=$*
	for name; do
		[ -n "$(listed 1 "$name")$(listed 2 "$name")" ] || die "no consumer $name"
	done
	# shellcheck disable=SC2086 # names
	[ -z "$(listed 1 $WORDS)" ] || names+=(consumers)
	# shellcheck disable=SC2086
	[ -z "$(listed 2 $WORDS)" ] || names+=(consumers-pair)
}

# The parts with these names, or of these groups.
named()
{
	local name found
	for name; do
		mapfile -t found < <(rows 4 "$name")
		[ ${#found[@]} != 0 ] || mapfile -t found < <(rows 1 "$name")
		[ ${#found[@]} != 0 ] || die "no part $name, see check.sh list"
		names+=("${found[@]}")
	done
	# Each once, even if both it and its group were named.
	mapfile -t names < <(printf '%s\n' "${names[@]}" | awk '!seen[$0]++')
}

long_form() { FULL=full VMFLAGS+=' --env FULL=1'; }

# What was asked for: names, and options of their functions.
choose()
{
	case ${1:-check} in
	check) mapfile -t names < <(rows 3 check) ;;
	ci) mapfile -t names < <(echo lint; rows 3 check) ;;
	quick|full)
		[ "$1" = quick ] || long_form
		mapfile -t names < <(rows 3 "$1")
		;;
	guest)
		WORDS=${*:2} names=(guest)
		[ -n "$WORDS" ] || { names=(); named guest; }
		;;
	consumers) shift; consumers "$@" ;;
	*) named "$@" ;;
	esac
}

# A function, so that bash reads all of it before anything runs: the file may be
# edited meanwhile.
main()
{
	local names=() rc=0
	while [ $# != 0 ]; do
		case $1 in
		-h|--help) usage; exit 0 ;;
		--junit) JUNIT=$2; shift 2 ;;
		--full) long_form; shift ;;
		*) break ;;
		esac
	done
	[ "${1:-}" != list ] || { list; exit 0; }
	choose "$@"
	mkdir -p "$QHCA_CACHE/results"
	"$QHCA_TOP/scripts/build/host-deps.sh" --ask
	export QHCA_BACKGROUND=1
	[ -n "${QHCA_PATIENCE:-}" ] || QHCA_PATIENCE=$("$QHCA_TOP/scripts/check/patience.py")
	export QHCA_PATIENCE
	[ "$QHCA_PATIENCE" = 1 ] || log "this machine is slow or busy: time limits times $QHCA_PATIENCE"
	RUN=$(mktemp -d "$QHCA_CACHE/results/$(date +%m%d-%H%M%S).XXX")
	[ ${#names[@]} = 1 ] || build "${names[@]}"
	run "${names[@]}"
	ln -sfn "$(basename "$RUN")" "$QHCA_CACHE/results/last"
	find "$QHCA_CACHE/results" -mindepth 1 -maxdepth 1 -type d -printf '%T@ %p\n' |
		sort -rn | tail -n +21 | cut -d ' ' -f 2- | xargs -r rm -rf
	# Once more, for those who see only the end of the output.
	"$QHCA_TOP/scripts/check/results.py" "$RUN" end ${JUNIT:+--junit "$JUNIT"} || rc=1
	return $rc
}

trap stop INT TERM HUP
main "$@"
exit
