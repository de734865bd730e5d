#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# run-tests.sh BUILD TEST... - runs the programs, prints their TAP and the sum.
# A program that ends without its plan line counts as a failure.

build=$1
shift
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
passed=0 failed=0 skipped=0

tally()
{
	passed=$((passed + $(grep '^ok ' "$out" | grep -vc '# SKIP')))
	skipped=$((skipped + $(grep '^ok ' "$out" | grep -c '# SKIP')))
	failed=$((failed + $(grep -c '^not ok ' "$out")))
	if ! grep -q '^1\.\.' "$out"; then
		echo "not ok - $1 did not finish"
		failed=$((failed + 1))
	fi
}

./test_contract.sh >"$out" 2>&1
echo "# test_contract.sh"
cat "$out"
tally test_contract.sh
for t in "$@"; do
	echo "# $t"
	"$build/$t" >"$out" 2>&1
	cat "$out"
	tally "$t"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
