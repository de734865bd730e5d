# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh: UCX's own tests of the transports that this device has, and of what
# is below and above them, as scripts/build/ucx-gtest.sh has built them. skips/ucx says which
# of them cannot run, and which fail and why. UCX_GTEST_ONLY is a pattern of gtest's for some.

UCX_GTEST=/opt/qhca/ucx-gtest
# The first part of their names: RC, UD, the device and its memory, the connection manager.
UCX_GTEST_KINDS=${UCX_GTEST_KINDS:-rc_verbs ud_verbs ib rdmacm}
# All of them together may take that many seconds.
UCX_GTEST_LIMIT=${UCX_GTEST_LIMIT:-1680}

# Measurements, whose results are not looked at on such a machine, and which take minutes.
UCX_GTEST_WITHOUT='*/test_uct_perf.*:*/test_uct_loopback.*'

# ucx_gtest_run FILTER [OPTION…]: with as few files as it needs, for one test has a receiver of
# 34 MB for each 16 of them.
ucx_gtest_run()
{
	local filter=$1
	shift
	(
		ulimit -n 256
		export LD_LIBRARY_PATH=$UCX_GTEST/lib:$UCX_GTEST/lib/ucx
		export UCX_HANDLE_ERRORS=bt UCX_LOG_LEVEL=warn UCX_VFS_ENABLE=n
		exec timeout $((UCX_GTEST_LIMIT > SECONDS ? UCX_GTEST_LIMIT - SECONDS : 1)) \
			$UCX_GTEST/bin/gtest --gtest_filter="$filter" "$@"
	)
}

# The names of a list, which has "SUITE." and below it "  TEST" for each of its tests, both
# followed by a comment.
ucx_gtest_names()
{
	awk '/^[a-z].*\.( |$)/ { suite = $1 }
		/^  / { print suite $1 }'
}

# Each test of a log that has begun: "ok NAME", "skip NAME REASON", "fail NAME REASON". A skip
# says why and is OK; what has no end has failed. The reason of a failure is where it is, or
# the last words.
ucx_gtest_verdicts()
{
	awk '
		function report(verdict) {
			print verdict, name, verdict == "skip" ? skipped : failed == "" ? last : failed
			name = ""
		}
		/^\[ RUN      \] / { if (name != "") report("fail"); name = $4; skipped = failed = last = "" }
		name == "" { next }
		/^\[     SKIP \]/ { skipped = $0; sub(/^[^]]*\] */, "", skipped)
			gsub(/^\(|\)$/, "", skipped)
			skipped = skipped == "" ? "no reason given" : skipped }
		/: Failure$/ && failed == "" { failed = $1; sub(/^.*\/gtest\//, "", failed); sub(/:$/, "", failed) }
		/Caught signal|Assertion|Fatal/ && failed == "" { failed = $0; sub(/^\[[^]]*\] */, "", failed) }
		/^\[       OK \] / { report(skipped == "" ? "ok" : "skip") }
		/^\[  FAILED  \] / { report("fail") }
		name != "" && $0 != "" { last = $0 }
		END { if (name != "") report("fail") }'
}

# ucx_gtest_kind KIND: all of its tests in one process, for it takes some seconds to start;
# after a crash those that are left in another one.
ucx_gtest_kind()
{
	local kind=$1 rc=0 log=$LOGS/ucx-gtest.log
	local todo=$log.todo verdicts=$log.verdicts filter=${UCX_GTEST_ONLY:-$1/*}
	ucx_gtest_run "$filter-$UCX_GTEST_WITHOUT" --gtest_list_tests | ucx_gtest_names |
		grep "^$kind/" >"$todo" || { result fail "consumers/ucx-gtest/$kind" "no tests"; return; }
	while [ -s "$todo" ] && [ $SECONDS -lt "$UCX_GTEST_LIMIT" ]; do
		rc=0
		ucx_gtest_run "$(paste -sd: "$todo")" >"$log" 2>&1 || rc=$?
		ucx_gtest_verdicts <"$log" >"$verdicts"
		[ -s "$verdicts" ] || break
		ucx_gtest_report "$log" <"$verdicts"
		awk 'NR == FNR { done[$2]; next } !($1 in done)' "$verdicts" "$todo" >"$todo.left"
		mv "$todo.left" "$todo"
	done
	if [ -s "$todo" ]; then
		result fail "consumers/ucx-gtest/$kind" "$(wc -l <"$todo") tests have not run, status $rc"
	elif [ $rc != 0 ] && ! grep -q '^fail ' "$verdicts"; then
		result fail "consumers/ucx-gtest/$kind" "status $rc"
	fi
}

# ucx_gtest_report LOG: the verdicts on standard input, and what the log has of failures.
ucx_gtest_report()
{
	local verdict name reason
	while read -r verdict name reason; do
		if [ "$verdict" = fail ]; then
			foreign "consumers/ucx-gtest/$name" "$reason" || ucx_gtest_says "$name" "$1"
		else
			result "$verdict" "consumers/ucx-gtest/$name" "$reason"
		fi
	done
}

# ucx_gtest_says NAME LOG: what the log has of a test.
ucx_gtest_says()
{
	awk -v name="$1" '/^\[ RUN      \] / { on = $4 == name } on' "$2" |
		head -n "${EXPECT_LINES:-30}" | sed 's/^/    /'
}

ucx-gtest()
{
	local kind kinds=$UCX_GTEST_KINDS
	[ -x $UCX_GTEST/bin/gtest ] || { result fail consumers/ucx-gtest/build "not in the payload"; return; }
	[ -z "${UCX_GTEST_ONLY:-}" ] || kinds=${UCX_GTEST_ONLY%%/*}
	SECONDS=0
	# A test connects to addresses that do not exist, and waits for the network to say so.
	ip route add default dev "$QHCA_IF" 2>/dev/null
	for kind in $kinds; do
		ucx_gtest_kind "$kind"
	done
}
