#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# build-docs.sh
#
# Render Documentation/ with Sphinx in the build root; print the directory with
# html/ and man/. A warning is an error.

. "$(dirname "$(readlink -f "$0")")/lib.sh"

case ${1:-} in
-h|--help) usage; exit 0 ;;
'') ;;
*) die "unknown option $1, see --help" ;;
esac

render()
{
	local builder
	for builder in html man; do
		run_step "documentation ($builder)" "$QHCA_TOP/scripts/buildroot.sh" --docs -- \
			env PYTHONDONTWRITEBYTECODE=1 sphinx-build -b "$builder" -W --keep-going -q \
			-d "$(br_path "$1")/doctrees" Documentation "$(br_path "$1")/$builder"
	done
	rm -r "$1/doctrees"
}

# All that the pages show.
sources()
{
	hash_tree "$QHCA_TOP/Documentation" "$QHCA_TOP/include" "$QHCA_TOP"/*.md \
		"$QHCA_TOP/qemu-device/engine" "$QHCA_TOP/qemu-device/docs" \
		"$QHCA_TOP/providers/qhca" "$QHCA_TOP/scripts/guest" \
		"$QHCA_TOP/scripts/README" "$QHCA_TOP/scripts/vm" "$QHCA_TOP/scripts/vmlib/cable.py"
}

make_final()
{
	local out=$1 tmp=$1.tmp
	have "$out" && return
	rm -rf "$tmp"
	mkdir -p "$tmp"
	render "$tmp"
	publish "$tmp" "$out"
}

out=$QHCA_CACHE/docs-$(sources)
have "$out" || with_lock docs make_final "$out"
cache_trim docs 4
echo "$out"
