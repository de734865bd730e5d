#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# mutants.sh engine|drivers|provider [OPTION…]
# mutants.sh keep engine|drivers|provider [--again] [--checked]
# mutants.sh page
#
# Which proofs catch which mistakes? Mutants of the sources, drawn by a seed, are put into one
# build and chosen one by one as it runs; each meets the proofs that come across it. A run that
# ends, or is interrupted, goes on where it was: below QHCA_CACHE/mutants, until --fresh.
#
#   --count N      so many mutants (1000)
#   --seed S       which ones (1)
#   --only PATTERN only those whose path|function|operator|text matches it
#   --proofs PATTERN ask only proofs whose name matches it, as after work on these
#   --last PATTERN ask proofs whose name matches it after all others: what do they alone catch?
#   --enough N     ask no more proofs once N have caught it (3)
#   --quick S      proofs that take more seconds than S are long (2.5)
#   --minutes M    end after so many
#   --again        those that nothing caught in what is kept, and that are not said to be equivalent
#   --long         the second run: long proofs and variants, for what nothing has caught
#   --jobs N       at a time (engine)
#   --checked      with sanitizers (engine)
#   --fresh        begin anew
#
# keep: write the results so far to Documentation/mutants; those of --again, and of --again
# --checked, are added to what is there.
# page: write the tables of Documentation/mutants.rst.

. "$(dirname "$(readlink -f "$0")")/lib.sh"

[ $# -gt 0 ] || { usage >&2; exit 2; }
suite=$1
shift
kept=${1:-} options=() asking=() fresh='' minutes=600 again='' checked=''
while [ $# -gt 0 ]; do
	case $1 in
	-h|--help) usage; exit 0 ;;
	--fresh) fresh=1 ;;
	--minutes) minutes=$2 options+=("$1" "$2"); shift ;;
	--long) asking+=("$1") ;;
	--proofs|--last|--enough|--quick) asking+=("$1" "$2"); shift ;;
	--again) again=$1 ;;
	--checked) checked=$1 options+=("$1") ;;
	--count|--seed|--only|--jobs) options+=("$1" "$2"); shift ;;
	-*) die "unknown option $1, see --help" ;;
	*) [ "$suite" = keep ] || die "unknown word $1, see --help" ;;
	esac
	shift
done

[ "$suite" = keep ] || kept=$suite
[ -z "$again" ] || options+=("$again" "$kept")
TREE=$QHCA_CACHE/mutants/$kept$again$checked
in_root() { "$QHCA_TOP/scripts/build/buildroot.sh" --mutants -- "$@"; }
mutate() { in_root python3 "$QHCA_BR_TOP/scripts/mutants/$1.py" "$(br_path "$TREE")" "${@:2}"; }

engine()
{
	if [ ! -e "$TREE/qemu-device" ]; then
		mkdir -p "$TREE"
		rsync -r --exclude=build "$QHCA_TOP/qemu-device" "$QHCA_TOP/include" \
			"$QHCA_TOP/Documentation" "$TREE/"
	fi
	mutate engine "${options[@]}" "${asking[@]}"
}

# A copy of the repository builds as usual, and its machines have mutants in them.
guests()
{
	local built=$1 rc=3 repo=$TREE/repo
	if [ ! -e "$TREE/mutants.json" ]; then
		rm -rf "$repo"
		mkdir -p "$repo"
		rsync -r --links --perms --exclude=.git "$QHCA_TOP/" "$repo/"
		mutate guests "$suite" "$(br_path "$built")" "${options[@]}"
	fi
	cp -t "$TREE" "$QHCA_TOP"/scripts/{mutants/guest,mutants/matrix,vmlib/splat}.py
	# 3: the machine is used up; others, but 4: a mutant was the end of it.
	while [ $SECONDS -lt $((${minutes%.*} * 60)) ]; do
		rc=0
		"$repo/scripts/vm" run --mount "$TREE" --device-arg guest-faults=on --timeout 7200 \
			--allow-splat --kernel-arg panic=-1 --kernel-arg oops=panic -- \
			python3 guest.py . $((${minutes%.*} - SECONDS / 60)) "${asking[@]}" || rc=$?
		[[ $rc != [04] ]] || return $((rc / 4))
	done
	return 1
}

drivers()
{
	"$QHCA_TOP/scripts/build/modules.sh" --no-tests >/dev/null
	guests "$("$QHCA_TOP/scripts/build/modules.sh" --tree)/src"
}

provider()
{
	"$QHCA_TOP/scripts/build/provider.sh" >/dev/null
	guests "$("$QHCA_TOP/scripts/build/provider.sh" --tree)"
}

[ -z "$fresh" ] || rm -rf "$TREE"
case $suite in
engine|drivers|provider) with_lock "mutants-$suite" "$suite" ;;
keep) "$QHCA_TOP/scripts/mutants/page.py" keep "$kept" "$TREE" ;;
page) "$QHCA_TOP/scripts/mutants/page.py" ;;
*) die "no suite $suite, see --help" ;;
esac
