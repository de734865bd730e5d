#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# engine.sh [GROUP…] MAKE-ARGUMENT…
#
# `make` in a copy of qemu-device/tests, so that no objects end up in the source tree.
# GROUP is what buildroot.sh needs besides: --extra, --valgrind. With UPDATE, what a message
# costs (`instructions`) is copied back, and counts from now on.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

TREE=$QHCA_CACHE/engine-tree
LIMITS=qemu-device/tests/bench/instructions.txt
groups=()
while [[ ${1:-} == --* ]]; do
	groups+=("$1")
	shift
done

# shellcheck disable=SC2317 # by with_lock
build()
{
	rsync -rpc --delete --exclude='*.o' --exclude='*.d' --exclude=/qemu-device/tests/build \
		"$QHCA_TOP/qemu-device" "$QHCA_TOP/include" "$QHCA_TOP/Documentation" "$TREE/"
	"$QHCA_TOP/scripts/build/buildroot.sh" "${groups[@]}" -- \
		make -s -j "$(nproc)" -C "$(br_path "$TREE/qemu-device/tests")" "$@"
}

rc=0
mkdir -p "$TREE"
with_lock engine-tree build "$@" || rc=$?
[ -z "${UPDATE:-}" ] || cp "$TREE/$LIMITS" "$QHCA_TOP/$LIMITS"
exit $rc
