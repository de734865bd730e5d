#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# run_tests.sh [DIR [NAME…]]	run the test programs in DIR (default: where this
#				script is), all or the named ones
#
# Prints one TAP stream with the programs' own lines as comments, like kselftest's runner.
# Exit status: 0 if at least one passed and none failed, 1 if one failed, 4 if all were skipped.

dir=${1:-$(dirname "$(readlink -f "$0")")}
[ $# -gt 0 ] && shift
if [ $# -gt 0 ]; then
	names=$*
else
	names=$(cat "$dir/tests.list") || exit 1
fi

n=0 pass=0 fail=0 skip=0
# shellcheck disable=SC2086 # a list of words
set -- $names
echo "TAP version 13"
echo "1..$#"
for name; do
	n=$((n + 1))
	echo "# selftests: qhca: $name"
	{ "$dir/$name"; echo "status=$?"; } 2>&1 | {
		while IFS= read -r line; do
			case $line in
			status=*) exit "${line#status=}" ;;
			*) printf '# %s\n' "$line" ;;
			esac
		done
	}
	case $? in
	0) pass=$((pass + 1)); echo "ok $n selftests: qhca: $name" ;;
	4) skip=$((skip + 1)); echo "ok $n selftests: qhca: $name # SKIP" ;;
	*) fail=$((fail + 1)); echo "not ok $n selftests: qhca: $name" ;;
	esac
done
echo "# Totals: pass:$pass fail:$fail xfail:0 xpass:0 skip:$skip error:0"
[ $fail = 0 ] || exit 1
[ $pass != 0 ] || exit 4
