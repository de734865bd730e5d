#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# run-tests.sh COMMAND... - runs them, prints their TAP and the sum. Besides a
# test that fails, what counts as a failure is a command that ends without its
# plan line, whose plan is empty, or whose exit status is not 0 though no test
# failed: a sanitizer's report at the end, of leaks for instance.

out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
passed=0 failed=0 skipped=0

wrong()
{
	echo "not ok - $1"
	failed=$((failed + 1))
}

for t in "$@"; do
	status=0
	echo "# $t"
	sh -c "$t" >"$out" 2>&1 || status=$?
	cat "$out"
	bad=$(grep -c '^not ok ' "$out")
	passed=$((passed + $(grep '^ok ' "$out" | grep -vc '# SKIP')))
	skipped=$((skipped + $(grep '^ok ' "$out" | grep -c '# SKIP')))
	failed=$((failed + bad))
	if ! grep -q '^1\.\.[1-9]' "$out"; then
		wrong "$t did not finish, or had no tests"
	elif [ "$status" != 0 ] && [ "$bad" = 0 ]; then
		wrong "$t ended with status $status"
	fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
