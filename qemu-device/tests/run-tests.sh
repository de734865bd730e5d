#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# run-tests.sh COMMAND... - runs them, prints their TAP and the sum. One that
# ends without its plan line counts as a failure.

out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
passed=0 failed=0 skipped=0

for t in "$@"; do
	echo "# $t"
	sh -c "$t" >"$out" 2>&1
	cat "$out"
	passed=$((passed + $(grep '^ok ' "$out" | grep -vc '# SKIP')))
	skipped=$((skipped + $(grep '^ok ' "$out" | grep -c '# SKIP')))
	failed=$((failed + $(grep -c '^not ok ' "$out")))
	if ! grep -q '^1\.\.' "$out"; then
		echo "not ok - $t did not finish"
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
