#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# conformance.sh [--missing]
#
# Which statements of Documentation/conformance.md have a test that names them,
# and in which files. --missing: those that have none.

cd "$(dirname "$(readlink -f "$0")")/.." || exit 1

case ${1:-} in
-h|--help) sed -n '4,7s/^# \?//p' "$0"; exit 0 ;;
esac

all=$(grep -oE '^\| [A-K]-[0-9]{3}' Documentation/conformance.md | cut -c3- | sort -u)
named=$(grep -roE '\b[A-K][-_][0-9]{3}\b' selftests qemu-device/tests qemu-device/qtest \
	--include='*.c' --include='*.py' --include='*.sh' --include='*.h' |
	tr '_' '-' | awk -F: '{ f = $1; gsub("-", "_", f); print $2, f }' | sort -u)

covered=0 total=0
while read -r id; do
	files=$(awk -v id="$id" '$1 == id { printf " %s", $2 }' <<<"$named")
	total=$((total + 1))
	[ -z "$files" ] || covered=$((covered + 1))
	if [ "${1:-}" = --missing ]; then
		[ -n "$files" ] || echo "$id"
	else
		echo "$id${files:- -}"
	fi
done <<<"$all"
echo "$covered of $total statements are named by a test" >&2
