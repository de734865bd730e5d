#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# scenarios.sh [--full | --only NAME]
#
# The scenarios of selftests/scenarios for a program that survives them, and for each of them
# the same program with a mistake, which its verdict has to find; some also for UCX, which does not
# survive all. --full: all of them. Prints TAP.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

LOGS=$(mktemp -d "$QHCA_CACHE/tmp/scenarios.XXXXXX")
trap 'rm -rf "$LOGS"' EXIT
. "$QHCA_TOP/selftests/guest/result.sh"

# scenario | run it is in; pair: full, in two machines | the program: railcp with a mistake or none,
# or UCX | what vm says of it, a pattern of grep: UCX does not get over a QP that fails, and hangs or
# aborts
CASES='
flap     | check | railcp                    | PASS
flap     | check | railcp --never-rebuild    | FAIL: it is used again when it is well: a/1 carried 0
flap     | full  | railcp --keep-qps         | not ok: with both it is not slower than with one: all
flap     | full  | ucx                       | PASS
outage   | full  | ucx                       | FAIL: the program \(had not ended\|has ended with status\)
lane     | full  | ucx                       | FAIL: the program \(had not ended\|has ended with status\)
outage   | full  | railcp                    | PASS
outage   | full  | railcp --never-rebuild    | FAIL: it is used again when it is well: a/1 carried 0
failover | full  | railcp                    | PASS
failover | full  | railcp --lose-flight      | FAIL: the program has ended with status 1
failover | full  | railcp --retry-forever    | FAIL: the program had not ended
dark     | full  | railcp                    | PASS
dark     | full  | railcp --retry-forever    | FAIL: the program had not ended
relay    | full  | railcp                    | PASS
relay    | full  | railcp --never-rebuild    | FAIL: the program has ended with status 1
lane     | full  | railcp                    | PASS
lane     | full  | railcp --never-rebuild    | FAIL: a new QP takes the place of one that has failed: a/1 carried 0
fatal    | full  | railcp                    | PASS
fatal    | full  | railcp --completions-only | FAIL: the program had not ended
unplug   | full  | railcp                    | PASS
unplug   | full  | railcp --never-rebuild    | FAIL: it is used again when it is back: a/1 carried 0
grey     | full  | railcp                    | PASS
grey     | check | railcp --split-evenly     | FAIL: the fast one is as fast as before: all
flap     | pair  | railcp                    | PASS
flap     | pair  | railcp --never-rebuild    | FAIL: it is used again when it is well: a/1 carried 0
'
PATIENCE=60		# seconds for a program that takes half of that, in any scenario

declare -A WHERE=([railcp]=/opt/qhca/selftests/railcp [ucx]=/opt/qhca/guest/consumers/ucx-rails.sh)

# judged run|pair SCENARIO WHAT_VM_SAYS PROGRAM [OPTION]
judged()
{
	local log=$LOGS/run rc=0 want=1 other=()
	[ "$3" != PASS ] || want=0
	[ "$1" = run ] || other=(-- "${WHERE[$4]}")
	# shellcheck disable=SC2086 # a list of options
	"$QHCA_TOP/scripts/vm" "$1" --strict --scenario "$2" $VMFLAGS -- \
		timeout -k 5 $PATIENCE "${WHERE[$4]}" "${@:5}" "${other[@]}" >"$log" 2>&1 || rc=$?
	cat "$log"
	same status $rc $want && grep -q "vm: $2: $3" "$log"
}

# Faults in two machines at times that a seed draws, and how a program survives them.
seeded()
{
	cat >"$LOGS/schedule" <<-EOF
		seed $1
		start carrying
		ready	a/0: port bandwidth=50
		ready	a/1: port bandwidth=50
		1s	a/0: port bandwidth=50; tx opcode=rc.write_middle prob=1% drop
		1s~3s	b/1: link down
		5s~1s	b/1: link up
		3s~3s	a/0: port bandwidth=25
	EOF
	# shellcheck disable=SC2086 # a list of options
	"$QHCA_TOP/scripts/vm" pair --strict --hcas 2 --faults "$LOGS/schedule" --report "$2" $VMFLAGS -- \
		timeout -k 5 $PATIENCE "${WHERE[railcp]}" --seconds 10 -- "${WHERE[railcp]}" &&
		tr -d '\r' <"$2" | awk -F , '$7 && $7 != "end" { if (!start && $7 ~ /drop/) start = $1
			if (start) printf "%.2f %s/%s %s\n", $1 - start, $2, $3, $7 }' >"$2.what"
	cat "$2.what"
}

# happened_as RUN RUN: the same, in the same order, and no more than 0.2 s from each other.
happened_as()
{
	paste -d , "$LOGS/$1.what" "$LOGS/$2.what" | awk -F , '{
		split($1, one, " "); split($2, other, " "); sub(/^[^ ]+/, "", $1); sub(/^[^ ]+/, "", $2)
		if ($1 != $2 || (one[1] - other[1]) ^ 2 > 0.04) exit 1 } END { if (NR != 4) exit 1 }'
}

# The same seed is the same run, another seed is another.
repeats()
{
	seeded 7 "$LOGS/one" && seeded 7 "$LOGS/two" && seeded 8 "$LOGS/three" &&
		happened_as one two && ! happened_as one three
}

only=
case ${1:-} in
-h|--help) usage; exit 0 ;;
--full) FULL=1 ;;
--only) FULL=1 only=$2 ;;
'') ;;
*) die "unknown option $1, see --help" ;;
esac

VMFLAGS=${VMFLAGS:-}
while IFS='|' read -r name when program says; do
	name=${name// /} when=${when// /}
	[ -n "$name" ] || continue
	[ "$when" = check ] || [ -n "${FULL:-}" ] || continue
	[ -z "$only" ] || [ "$only" = "$name" ] || continue
	read -ra words <<<"$program"
	machines=run
	[ "$when" != pair ] || machines=pair
	EXPECT_LINES=30 expect "scenarios/$name: $machines ${words[*]}" \
		judged $machines "$name" "${says# }" "${words[@]}" </dev/null || :
done <<<"$CASES"
if [ -n "${FULL:-}" ] && [ "${only:-seed}" = seed ]; then
	EXPECT_LINES=30 expect "scenarios/seed: two machines, three runs" repeats || :
fi
summary
