# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by result.sh: which skips are expected. Each file in skips/ has a row
#
#	TEST | WHEN | REASON
#
# for a test, or some, which cannot run on a machine of some kind; a skip without a row is a
# failure, and so is a test that passes although it has a row. TEST and REASON are patterns of bash for what the result has before and after
# "# SKIP", without "ok" and a number; a test of others that is known to fail has the reason
# "fails: " and where. All words of WHEN must be true:
#
#	WORD		vm has told so in QHCA_VARIANT: properties of the device as NAME=VALUE,
#			iommu, hostile, debug-kernel (those with KCSAN and PREEMPT_RT as well), peer-rxe,
#			server, mortal-server, arm64, arm64-64k, s390x
#	rxe		the device under test is not ours
#	kernel<X.Y	the kernel is older
#	maybe		the test may pass as well
#
# With a ! in front a word must not be true. An empty WHEN is always true.

SKIPS_DIR=${SKIPS_DIR:-$(dirname "${BASH_SOURCE[0]}")/skips}
# Of the rows that apply here: patterns of names and reasons; those without `maybe`, again.
SKIP_TEST=() SKIP_REASON=() SKIP_STALE=()

# older X.Y: this kernel
older()
{
	[[ $(uname -r) =~ ^([0-9]+)\.([0-9]+) ]] || return
	[ $((BASH_REMATCH[1] * 1000 + BASH_REMATCH[2])) -lt $((${1%.*} * 1000 + ${1#*.})) ]
}

# skip_word WORD
skip_word()
{
	case $1 in
	maybe) ;;
	!*) ! skip_word "${1#!}" ;;
	kernel'<'*) older "${1#*<}" ;;
	rxe) [[ ${QHCA_DEV:-qhca0} != qhca* ]] ;;
	*) [[ " ${QHCA_VARIANT:-} " == *" $1 "* ]] ;;
	esac
}

# skip_applies WORD…
skip_applies()
{
	local word
	for word; do
		skip_word "$word" || return 1
	done
}

skips_read()
{
	local file test when reason words
	for file in "$SKIPS_DIR"/*; do
		while IFS='|' read -r test when reason; do
			[[ $test != '#'* && -n $test ]] || continue
			read -ra words <<<"$when"
			skip_applies "${words[@]}" || continue
			test=${test%"${test##*[! $'\t']}"}
			reason=${reason#"${reason%%[! $'\t']*}"}
			SKIP_TEST+=("$test") SKIP_REASON+=("$reason")
			[[ " ${words[*]} " == *' maybe '* ]] || SKIP_STALE+=("$test")
		done <"$file"
	done
}

# skip_expected TEST REASON
skip_expected()
{
	local i
	for i in "${!SKIP_TEST[@]}"; do
		# shellcheck disable=SC2053 # patterns
		[[ $1 == ${SKIP_TEST[i]} && $2 == ${SKIP_REASON[i]} ]] && return
	done
	return 1
}

# skip_stale TEST: it has passed; has it a row?
skip_stale()
{
	local pattern
	for pattern in "${SKIP_STALE[@]}"; do
		# shellcheck disable=SC2053
		[[ $1 != $pattern ]] || return 0
	done
	return 1
}

skips_read
