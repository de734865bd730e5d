#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# test_contract.sh - the contract headers, each compiled as C on its own: they
# need nothing but each other, with the types of Linux or of <stdint.h>.

cc=${CC:-gcc}
top=$(dirname "$0")/../../..
n=0

try()
{
	what=$1
	shift
	n=$((n + 1))
	if printf '#include "qhca/%s"\n' "$header" |
		$cc -xc -std=c11 -Wall -Wextra -Wconversion -Wno-sign-conversion -Werror \
			-fsyntax-only -I"$top/include" "$@" -; then
		echo "ok $n - $header $what"
	else
		echo "not ok $n - $header $what"
	fi
}

for header in base.h regs.h mr.h queues.h qp.h congestion.h cmd.h counters.h; do
	try "on its own"
	try "without Linux types" -U__linux__
	try "for a 32-bit machine" -U__linux__ -m32 -ffreestanding
done
echo "1..$n"
