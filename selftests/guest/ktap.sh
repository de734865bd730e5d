# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by net-tests.sh: what the kernel's own tests, which are in Python, have reported.

# ktap_verdicts: of a log in KTAP, "ok NAME", "skip NAME REASON", "fail NAME REASON", and at last
# "plan N COUNT". Tests for netdevsim alone are skips as well. The reason of a failure is the
# program's standard error, or the last line of the exception.
ktap_verdicts()
{
	awk '
		function say(what, why) { print what, name, why; count++; error = last = "" }
		/^1\.\.[0-9]+$/ { plan = substr($0, 4) }
		/^# Exception\| +STDERR: / { error = $0; sub(/^# Exception\| +STDERR: /, "", error) }
		/^# Exception\| [^ ]/ { last = $0; sub(/^# Exception\| /, "", last) }
		/^# Check failed / { if (last == "") { last = $0; sub(/^# /, "", last) } }
		/^(not )?ok [0-9]+ / {
			bad = /^not/
			line = $0
			sub(/^(not )?ok [0-9]+ /, "", line)
			name = line
			why = ""
			if (match(line, / # /)) {
				name = substr(line, 1, RSTART - 1)
				why = substr(line, RSTART + 3)
			}
			if (bad) say("fail", error != "" ? error : last != "" ? last : why)
			else if (why ~ /^(SKIP|XFAIL)/) { sub(/^(SKIP|XFAIL) */, "", why); say("skip", why) }
			else say("ok", why)
		}
		END { print "plan", plan + 0, count + 0 }'
}
