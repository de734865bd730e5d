# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the scripts that test: how a result is reported and counted. The output
# of tests goes to files in LOGS, which must be set before.

PASS=0 FAIL=0 SKIP=0
mkdir -p "$LOGS"

. "$(dirname "${BASH_SOURCE[0]}")/skips.sh"

STALE='passes, which skips/ does not expect'

# result ok|fail|skip NAME [REASON]: a skip that skips/ does not expect is a failure, and one
# that it expects and that does not happen.
result()
{
	if [ "$1" = skip ] && ! skip_expected "$2" "${3:-}"; then
		set -- fail "$2" "unexpected skip: ${3:-}"
	elif [ "$1" = ok ] && skip_stale "$2"; then
		set -- fail "$2" "$STALE"
	fi
	case $1 in
	ok) PASS=$((PASS + 1)); echo "ok $2" ;;
	skip) SKIP=$((SKIP + 1)); echo "ok $2 # SKIP ${3:-}" ;;
	*) FAIL=$((FAIL + 1)); echo "not ok $2${3:+ # $3}" ;;
	esac
}

# foreign NAME REASON: a test that others have written has failed; counts as a skip if skips/
# expects `fails: REASON`.
foreign()
{
	if skip_expected "$1" "fails: $2"; then
		result skip "$1" "fails: $2"
	else
		result fail "$1" "$2"
		return 1
	fi
}

# plan GROUP NAME…: each of these will have a result GROUP/NAME, or the part fails.
plan() { echo "# plan $1: ${*:2}"; }

# expect NAME COMMAND…: a test that is one command, whose success is the status.
expect()
{
	local name=$1 log=$LOGS/expect.log
	shift
	if "$@" >"$log" 2>&1; then
		result ok "$name"
	else
		tail -n "${EXPECT_LINES:-4}" "$log" | sed 's/^/    /'
		result fail "$name"
		return 1
	fi
}

# same WHAT A B
same()
{
	[ "$2" = "$3" ] && return
	echo "$1: $2, not $3"
	return 1
}

PATIENCE=${PATIENCE:-120}	# seconds for what must come, on a busy host

# until_true COMMAND…: in PATIENCE seconds. The command may have patience of its own, as flood(), but
# less of it: otherwise the first ping that gets lost would take all of it, and there is no second try.
until_true()
{
	local end=$((SECONDS + PATIENCE))
	until PATIENCE=$((PATIENCE / 4)) "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}

# gone PID: of a child, or anybody
gone() { ! kill -0 "$1" 2>/dev/null; }

# A test point of TAP: "ok NUMBER [- ]TITLE"; a skip: its title and the reason.
TAP_POINT='^ok ([0-9]*) ?(- )?(.*)$'
TAP_SKIP='^(.*[^ ]) *# [Ss][Kk][Ii][Pp]:? *(.*)$'

# tap_points NAME: shows the points and comments on standard input, and counts them in ok,
# bad and skip of the caller.
tap_points()
{
	local line number title
	while IFS= read -r line; do
		case $line in
		'not ok '*) bad=$((bad + 1)) ;;
		'ok '*)
			[[ $line =~ $TAP_POINT ]]
			number=${BASH_REMATCH[1]} title=${BASH_REMATCH[3]}
			if [[ ! $title =~ $TAP_SKIP ]]; then
				if skip_stale "$1: $title"; then
					bad=$((bad + 1))
					line="not ok $number $title # $STALE"
				else
					ok=$((ok + 1))
				fi
			elif skip_expected "$1: ${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"; then
				skip=$((skip + 1))
			else
				bad=$((bad + 1))
				line="not ok $number ${BASH_REMATCH[1]} # unexpected skip: ${BASH_REMATCH[2]}"
			fi
			;;
		'# '*) ;;
		*) continue ;;
		esac
		echo "$1: $line"
	done
}

# tap NAME LOG STATUS: count the test points of a TAP log; a plan that was not
# kept, or is empty, is a failure.
tap()
{
	local name=$1 log=$2 rc=$3 ok=0 bad=0 skip=0 plan
	plan=$(sed -n 's/^1\.\.\([0-9]*\).*/\1/p' "$log" | head -n 1)
	tap_points "$name" <"$log"
	PASS=$((PASS + ok)) SKIP=$((SKIP + skip)) FAIL=$((FAIL + bad))
	if [ "$rc" = 4 ] && [ $((ok + bad + skip)) = 0 ]; then
		result skip "$name" "$(tail -n 1 "$log")"
	elif [ "${plan:-0}" = 0 ] || [ "$plan" != $((ok + bad + skip)) ]; then
		tail -n 5 "$log" | sed 's/^/    /'
		result fail "$name" "stopped after $((ok + bad + skip)) of ${plan:-?} tests, status $rc"
	elif [ "$rc" != 0 ] && [ "$rc" != 4 ] && [ "$bad" = 0 ]; then
		result fail "$name" "status $rc"
	fi
}

# The last line of all; its status is the script's.
summary()
{
	echo "$PASS passed, $FAIL failed, $SKIP skipped"
	[ $FAIL = 0 ] && [ $PASS -gt 0 ]
}
