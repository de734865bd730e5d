#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# test_listed.sh NAME... - the test programs of this folder are among these. Meson
# wants a list, and a program that is not on it would never run.

verdict=ok
for file in "$(dirname "$0")"/test_*.c; do
	name=$(basename "$file" .c)
	case " $* " in
	*" $name "*) ;;
	*)
		echo "# $name is not in meson.build"
		verdict="not ok"
		;;
	esac
done
echo "$verdict 1 - every test program is built"
echo "1..1"
