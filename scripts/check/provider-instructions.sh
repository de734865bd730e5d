#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# provider-instructions.sh: checks that posting and polling cost the provider no more
# instructions than before; with UPDATE they are what counts from now on.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

"$QHCA_TOP/scripts/build/provider.sh" >/dev/null
tree=$("$QHCA_TOP/scripts/build/provider.sh" --tree)
build=$(mktemp -d "$QHCA_CACHE/tmp/provider-bench.XXXXXX")
trap 'rm -rf "$build"' EXIT
"$QHCA_TOP/scripts/build/buildroot.sh" --valgrind -- \
	make -s -C "$QHCA_BR_TOP/providers/bench" instructions UPDATE="${UPDATE:-}" \
	RDMA_CORE="$(br_path "$tree")" BUILD="$(br_path "$build")"
