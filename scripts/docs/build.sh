#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# build.sh
#
# Render Documentation/ with Sphinx in the build root; print the directory with
# html/ and man/. A warning is an error. The pages that programs write are made here,
# in a copy of Documentation/ in the cache.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

case ${1:-} in
-h|--help) usage; exit 0 ;;
'') ;;
*) die "unknown option $1, see --help" ;;
esac

# copy TREE: Documentation/, beside links to the directories that its pages quote.
copy()
{
	local name
	mkdir -p "$1"
	for name in "$QHCA_TOP"/*; do
		ln -s "$QHCA_BR_TOP/${name##*/}" "$1/"
	done
	rm "$1/Documentation"
	cp -r "$QHCA_TOP/Documentation" "$1/"
}

# generate DIR: the pages that programs write.
generate()
{
	"$QHCA_TOP/scripts/docs/conformance.py" >"$1/conformance.rst"
	"$QHCA_TOP/scripts/docs/layout.py" >"$1/layout.rst"
	"$QHCA_TOP/scripts/docs/consumers.py" >"$1/consumers.inc"
	mkdir "$1/plots"
	run_step "plots" "$QHCA_TOP/scripts/bench/bench.py" --draw "$1/plots"
	run_step "plots of clusters" "$QHCA_TOP/scripts/cluster/study.py" --draw "$1/plots"
	run_step "tour" "$QHCA_TOP/scripts/docs/tour.py" --pages "$1"
}

render()
{
	local builder
	copy "$1/tree"
	generate "$1/tree/Documentation"
	for builder in html man; do
		run_step "documentation ($builder)" "$QHCA_TOP/scripts/build/buildroot.sh" --docs -- \
			env PYTHONDONTWRITEBYTECODE=1 sphinx-build -b "$builder" -W --keep-going -q \
			-d "$(br_path "$1")/doctrees" "$(br_path "$1/tree/Documentation")" \
			"$(br_path "$1")/$builder"
	done
	rm -r "$1/doctrees" "$1/tree"
}

# All that the pages show. Of the tests they show only which statements these name.
sources()
{
	hash_text "$("$QHCA_TOP/scripts/docs/conformance.py")" "$(hash_tree \
		"$QHCA_TOP/Documentation" "$QHCA_TOP/include" "$QHCA_TOP"/*.md \
		"$QHCA_TOP/qemu-device/engine" "$QHCA_TOP/qemu-device/docs" \
		"$QHCA_TOP/providers/qhca" "$QHCA_TOP/selftests/guest" "$QHCA_TOP/scripts/README" \
		"$QHCA_TOP/scripts"/*.py "$QHCA_TOP/scripts/bench/benchlib"/*.py \
		"$QHCA_TOP/scripts/docs/tourlib"/*.py "$0" \
		"$QHCA_TOP/scripts/vm" "$QHCA_TOP/scripts/vmlib/cable.py")"
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
