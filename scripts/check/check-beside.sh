#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-beside.sh [--full]
#
# The object that has the device, beside Debian's QEMU and beside what it does not belong to.
# --full: machines also move between that and a QEMU with the device in it, which is built.
# Prints TAP and totals.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

case ${1:-} in
-h|--help) usage; exit 0 ;;
esac

# shellcheck disable=SC2034 # for result.sh
LOGS=$QHCA_CACHE/logs/check-beside
. "$QHCA_TOP/selftests/guest/result.sh"
WORK=$(mktemp -d "$QHCA_CACHE/tmp/beside.XXXXXX")
trap 'rm -rf "$WORK"' EXIT

# beside DIR PROGRAM ARGUMENT…: a program with the object, and the libraries of DIR.
beside()
{
	local dir=$1 program=$2
	shift 2
	timeout "$PATIENCE" "$dir/lib/ld-linux-x86-64.so.2" --preload "$QEMU/qhca.so" \
		--library-path "$dir/lib" "$program" "$@" </dev/null
}

# refused WORDS PROGRAM…: it ends with one line that has these words.
refused()
{
	local words=$1 out rc=0
	shift
	out=$(beside "$@" 2>&1) || rc=$?
	echo "$out"
	[ $rc = 1 ] && [ "$(wc -l <<<"$out")" = 1 ] && [[ $out == "qhca.so, made for QEMU $VERSION: "*$words* ]]
}

# machine OPTION…: QEMU with the device, and commands for its monitor on standard input.
machine()
{
	timeout "$PATIENCE" "$QEMU/qemu-system-x86_64" -machine q35 -S -nodefaults -display none \
		-monitor stdio -device qhca "$@"
}

# The processes that QEMU starts have neither the object nor a way to it.
alone()
{
	local now="cat /proc/self/maps /proc/self/environ"
	machine <<<"migrate \"exec:$now >$WORK/child; cat >/dev/null\""$'\nquit' || return
	grep -q '/cat$' "$WORK/child" && ! grep -a 'qhca\.so' "$WORK/child"
}

sandboxed()
{
	machine -sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny \
		<<<$'info pci\nquit' >"$WORK/pci" && grep -i 'PCI device 1af4:10f0' "$WORK/pci"
}

moves() { pytest-3 "$QHCA_TOP/qemu-device/qtest" --tap "$@" -k test_migrate; }

QEMU=$("$QHCA_TOP/scripts/build/beside.sh")
OTHER=$("$QHCA_TOP/scripts/build/stock-qemu.sh")
NO_QEMU='is no qemu-system that exports its functions'
VERSION=$(<"$("$QHCA_TOP/scripts/build/qemu-source.sh")/VERSION")
OTHER_VERSION=$("$OTHER/qemu-system-x86_64" --version | sed -n 's/.*version \([0-9.]*\).*/\1/p')

expect beside/version refused "this is QEMU $OTHER_VERSION" \
	"$OTHER" "$OTHER/qemu-system-x86_64.bin" -version
expect beside/program refused "$NO_QEMU" "$QEMU" "$QEMU/qemu-img.bin" --version
expect beside/foreign refused "$NO_QEMU" "$QEMU" /bin/true
expect beside/children alone
expect beside/sandbox sandboxed
status=0
summary || status=1
if [ "${1:-}" = --full ]; then
	inside=$("$QHCA_TOP/scripts/build/qemu.sh")/qemu-qtest
	moves --qemu="$inside" --to="$QEMU/qemu-qtest" || status=1
	moves --qemu="$QEMU/qemu-qtest" --to="$inside" || status=1
fi
[ $status = 0 ]
