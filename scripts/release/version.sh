#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# version.sh [--date]
#
# Print the version of this tree, in a form that Debian sorts: 0.1, the newest in
# CHANGELOG.md, if HEAD has the tag v0.1; 0.1~git20261122.123abcd before that tag;
# 0.1+3.123abcd three commits behind it. Uncommitted changes add .dirty. --date: seconds since 1970,
# of the commit.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

git_here() { git -C "$QHCA_TOP" "$@" 2>/dev/null; }

version()
{
	local next tag rest
	next=$(sed -n 's/^## \[\?\([0-9][0-9.]*\).*/\1/p' "$QHCA_TOP/CHANGELOG.md" | head -n 1)
	[ -n "$next" ] || die "no version in CHANGELOG.md"
	if ! git_here rev-parse --verify -q HEAD >/dev/null; then
		echo "$next"
		return
	fi
	tag=$(git_here describe --tags --long --abbrev=7 --match "v$next") || tag=''
	rest=${tag#"v$next-"}
	case $rest in
	'') next+=~git$(git_here log -1 --format=%cd.%h --date=format:%Y%m%d --abbrev=7) ;;
	0-*) ;;
	*) next+=+${rest/-g/.} ;;
	esac
	[ -z "$(git_here status --porcelain)" ] || next+=.dirty
	echo "$next"
}

case ${1:-} in
-h|--help) usage ;;
--date) git_here log -1 --format=%ct || stat -c %Y "$QHCA_TOP/CHANGELOG.md" ;;
'') version ;;
*) die "unknown option $1, see --help" ;;
esac
