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

# scenario | run it is in | the program: railcp with a mistake or none, or UCX | what vm says of it, a
# pattern of grep: UCX does not get over a QP that fails, and hangs or aborts
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
'
PATIENCE=60		# seconds for a program that takes half of that, in any scenario

declare -A WHERE=([railcp]=/opt/qhca/selftests/railcp [ucx]=/opt/qhca/guest/consumers/ucx-rails.sh)

# judged SCENARIO WHAT_VM_SAYS PROGRAM [OPTION]
judged()
{
	local log=$LOGS/run rc=0 want=1
	[ "$2" != PASS ] || want=0
	# shellcheck disable=SC2086 # a list of options
	"$QHCA_TOP/scripts/vm" run --strict --scenario "$1" $VMFLAGS -- \
		timeout -k 5 $PATIENCE "${WHERE[$3]}" "${@:4}" >"$log" 2>&1 || rc=$?
	cat "$log"
	same status $rc $want && grep -q "vm: $1: $2" "$log"
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
	EXPECT_LINES=30 expect "scenarios/$name: ${words[*]}" \
		judged "$name" "${says# }" "${words[@]}" </dev/null || :
done <<<"$CASES"
summary
