#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# ci/example.sh
#
# The example project in the hands of CI systems: the commands of action.yml run its tests and keep
# the builds, the commands of gitlab.yml run them once more with only these builds, after one of
# them has been broken. Prints TAP.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

EXAMPLE=Documentation/examples/verbs-test

work=$(mktemp -d "$QHCA_CACHE/tmp/example.XXXXXX")
trap 'as_root rm -rf "$work"' EXIT

# check NAME COMMAND…
check()
{
	local name=$1
	shift
	if "$@"; then echo "ok example/$name"; else echo "not ok example/$name"; FAILED=1; fi
}

# commands SYSTEM: into a file.
commands()
{
	"$QHCA_TOP/scripts/build/buildroot.sh" --docs -- scripts/ci/commands.py "$1" $EXAMPLE >"$work/$1.sh"
}

# as SYSTEM DIRECTORY: with its shell, where it has checked the project out.
as()
{
	(cd "$2" && bash -eo pipefail "$work/$1.sh") >"$work/$1.log" 2>&1
}

# failures FILE: the numbers of tests and of failures in JUnit's XML.
failures()
{
	python3 -c 'import sys, xml.etree.ElementTree as et
suites = et.parse(sys.argv[1]).getroot().findall("testsuite")
print(*(sum(int(suite.get(key)) for suite in suites) for key in ("tests", "failures")))' "$1"
}

# Five tests and the exit status.
passes() { as github "$work/one" && [ "$(failures "$work/one/results.xml")" = "6 0" ]; }

# Its own cache has only what GitHub's has kept.
fails()
{
	local rc=0
	( export QHCA_CACHE=$work/cache; mkdir -p "$work/cache/tmp" && as gitlab "$work/two" ) || rc=$?
	[ $rc = 1 ] && [ "$(failures "$work/two/qhca-results.xml")" = "6 2" ]
}

builds_nothing()
{
	[ -e "$work/home/.cache/qhca-ci/qhca.tar" ] && [ -s "$work/gitlab.log" ] &&
		! grep -E ': (build root|guest|QEMU|provider|selftests|modules|rdma-core)' "$work/gitlab.log"
}

cp -r "$QHCA_TOP/$EXAMPLE" "$work/one"
cp -r "$QHCA_TOP/$EXAMPLE" "$work/two"
sed -i 's/ == IBV_WC_REM_ACCESS_ERR/ == IBV_WC_SUCCESS/' "$work/two/write_test.c"
mkdir "$work/home"
ln -s "$work/home/.cache/qhca-ci" "$work/two/.qhca-cache"
export HOME=$work/home GITHUB_ACTION_PATH=$QHCA_TOP GITHUB_OUTPUT=$work/output
export CI_PROJECT_DIR=$work/two
check "action.yml, the workflow" commands github
check "gitlab.yml, the job" commands gitlab
check "a run of the action passes" passes
check "its cache has a key" grep -q '^key=[0-9a-f]' "$work/output"
check "a test that fails fails the job" fails
check "what was kept is all it takes" builds_nothing
[ -z "${FAILED:-}" ] || { tail -n 40 "$work"/*.log; exit 1; } >&2
