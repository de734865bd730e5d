#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# lint.sh [--all] [PART…]
#
# All checks of the source text, several at a time. Parts marked with * leave out files that they
# have passed before as they are, with what these include, unless --all:
#   text        what .pre-commit-config.yaml lists: language, size, spelling, licences, shell
#               and Python, in all files that git knows
#   python      the tests of scripts/ pass
#   conformance every statement has a test or a reason
#   consumers   each consumer of the list has its script, each result its consumer
#   docs        Documentation/ and kernel-doc render, without a warning
#   layout      offsets in Documentation/ agree with the structures, and the size of each is
#               asserted
#   prose       numbers in sentences agree with the code, and no directory has more of the
#               phrases that CONTRIBUTING.md advises against than scripts/docs/ratios.txt allows
#   rooms       the engine's folders include and call only what is above them, and the files
#               of each driver call only those before them in its Makefile
#   checkpatch* the kernel's, --strict, on drivers/ include/ selftests/
#   qemu*       QEMU's checkpatch on qemu-device/
#   w1*         the modules with W=1
#   kernels*    the modules with W=1 for the oldest and the newest kernel
#   sparse*     the modules with C=2, for the guest's kernel and sid's
#   cocci*      the kernel's coccinelle scripts, patch-free report mode
#   tidy*       gcc -Wconversion and clang-tidy on the engine, also with a compiler for Windows
#   cluster     clang-tidy on the cluster simulator, with what sim/ns3/.clang-tidy lists
# Ends with: N passed, N failed, N skipped (parts). Findings are printed as
# file:line: message, before the verdict of their part.

. "$(dirname "$(readlink -f "$0")")/lib.sh"

cd "$QHCA_TOP"
PARTS=(tidy cluster cocci checkpatch w1 kernels sparse text qemu rooms python docs conformance
	consumers layout prose)
SKIPPED=77

MEMORY=$QHCA_CACHE/lint ALL=''

# unseen OPTION… FILE…: into the array `list`, those that this part has not passed as they are.
# OPTIONs are the checker's, and -I DIR for what the files include.
unseen()
{
	local found what
	what="$(declare -f "lint_$PART") $(basename "$(buildroot_dir)")"
	while [[ $1 == --* ]]; do
		what+=" $1"
		shift
	done
	found=$(scripts/check/unseen.py list "$MEMORY/${ALL:+none-}$PART" "$what" "$@")
	grep '^:' <<<"$found" >>"$OUT/$PART.keys" || :
	mapfile -t list < <(grep -v '^:' <<<"$found" || :)
	[ -n "${list[*]}" ] || list=()
}

br_extra() { "$QHCA_TOP/scripts/build/buildroot.sh" --extra -- "$@"; }

# The files below PATHs that git knows or would add.
files()
{
	git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do
		[ -f "$f" ] && echo "$f"
	done
}

# ---- scripts/checkpatch.pl and scripts/coccinelle of the guest's kernel

kernel_tools()
{
	local dir
	dir=$QHCA_CACHE/kernel-tools-$(basename "$(buildroot_dir)")
	have "$dir" || with_lock kernel-tools get_tools "$dir" >&2
	echo "$dir"
}

get_tools()
{
	local dir=$1 tmp=$1.tmp
	! have "$dir" || return 0
	rm -rf "$tmp"
	mkdir -p "$tmp"
	with_lock buildroot-apt run_step "Debian's package lists" \
		"$QHCA_TOP/scripts/build/buildroot.sh" --root -- apt-get -q update
	# shellcheck disable=SC2016 # expands inside
	run_step "kernel's own checkers" in_buildroot sh -ec '
		cd "$1"
		apt-get -q download linux-source-6.12
		mkdir deb
		dpkg-deb --fsys-tarfile linux-source-*.deb |
			tar -xO --wildcards "./usr/src/linux-source-*.tar.xz" |
			tar -xJ --strip-components=1 --wildcards \
				"*/scripts/checkpatch.pl" "*/scripts/spelling.txt" \
				"*/scripts/const_structs.checkpatch" \
				"*/scripts/coccinelle" "*/scripts/coccicheck"
		rm -rf ./*.deb deb
	' sh "$(br_path "$tmp")"
	publish "$tmp" "$dir"
}

lint_checkpatch()
{
	local files rc=0
	mapfile -t files < <(files 'drivers/*.[ch]' 'include/net/*.h' 'include/uapi/*.h' 'include/trace/*.h')
	checkpatch FILE_PATH_CHANGES "${files[@]}" || rc=1
	# A replacement of a newer kernel's macro may leave an argument aside.
	mapfile -t files < <(files 'include/compat/*.h')
	checkpatch FILE_PATH_CHANGES,MACRO_ARG_UNUSED "${files[@]}" || rc=1
	# Code that user space and QEMU also compile cannot use kernel types and helpers; a size
	# assertion belongs right under its structure; a macro that makes a row of a list is no
	# expression, and does not use all columns.
	mapfile -t files < <(files 'include/qhca/*.h' 'selftests/*.[ch]' ':!selftests/guest')
	checkpatch FILE_PATH_CHANGES,PREFER_KERNEL_TYPES,BIT_MACRO,CAMELCASE,LINE_SPACING,MACRO_ARG_REUSE,MACRO_ARG_UNUSED,COMPLEX_MACRO,PREFER_DEFINED_ATTRIBUTE_MACRO \
		"${files[@]}" || rc=1
	return $rc
}

# checkpatch IGNORE FILE…
checkpatch()
{
	local tools list ignore=$1
	shift
	unseen "--ignore=$ignore" "$@"
	[ ${#list[@]} != 0 ] || return 0
	tools=$(kernel_tools)
	# In /tmp: it leaves a cache file behind where it runs.
	# shellcheck disable=SC2016 # expands inside
	br_extra sh -c 'cd /tmp; exec "$@"' sh \
		perl "$(br_path "$tools")/scripts/checkpatch.pl" --strict --no-tree --terse \
		--no-summary --show-types --ignore "$ignore" --max-line-length=100 -f \
		"${list[@]/#/$QHCA_BR_TOP/}" | sed "s|^$QHCA_BR_TOP/||"
}

# False positives of QEMU's script: rows of a table in a macro, an enumerator that
# starts with E, libFuzzer's entry point; and helpers of QEMU that code without QEMU
# cannot use.
QEMU_MISTAKEN='Macros with multiple statements|return of an errno|externs should be avoided|qemu_strto'
# The engine has no configure step, so it must ask the compiler about the CPU; and lists of
# values that macros make are no expressions.
QEMU_MISTAKEN+='|(icrc.c|bytes.h):.* architecture specific defines|(icrc|save|walk|trace|fuzz_[a-z_]*)\.[ch]:.* complex values'

lint_qemu()
{
	local tree files list out rc=0
	mapfile -t files < <(files 'qemu-device/*.[ch]')
	unseen "--mistaken=$QEMU_MISTAKEN" "${files[@]}"
	[ ${#list[@]} != 0 ] || return 0
	tree=$("$QHCA_TOP/scripts/build/qemu-source.sh")
	out=$(br_extra perl "$(br_path "$tree")/scripts/checkpatch.pl" --strict --no-tree \
		--terse --no-summary -f "${list[@]}" 2>&1) || rc=$?
	[ $rc -le 1 ] || { echo "$out"; return 1; }	# 1: with findings
	! grep -vE "$QEMU_MISTAKEN|^$" <<<"$out"
}

lint_text() { br_extra env PRE_COMMIT_HOME=/tmp/pre-commit pre-commit run --all-files; }

lint_python()
{
	local room out rc=0
	for room in bench check docs; do
		out=$(PYTEST_ADDOPTS='' PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 \
			PYTHONDONTWRITEBYTECODE=1 pytest-3 -q -W error scripts/$room 2>&1) ||
			{ echo "$out"; rc=1; }
	done
	return $rc
}

lint_conformance() { scripts/docs/conformance.py --check; }

lint_docs()
{
	local list out rc=0
	scripts/docs/build.sh >/dev/null || rc=1
	mapfile -t list < <(git grep --untracked -lE '^/\*\*$' -- '*.[ch]')
	# shellcheck disable=SC2016 # expands inside
	out=$(in_buildroot sh -c 'perl /usr/lib/linux-kbuild-*/scripts/kernel-doc -none -Werror "$@" 2>&1' \
		sh "${list[@]}") || { grep -E ': (warning|error): ' <<<"$out" || echo "$out"; rc=1; }
	return $rc
}

lint_layout() { scripts/docs/layout.py --check; }

lint_prose() { scripts/docs/prose.py && scripts/docs/ratios.py; }

lint_consumers() { scripts/docs/consumers.py --check; }

lint_rooms()
{
	local out
	out=$(in_buildroot env PYTHONDONTWRITEBYTECODE=1 python3 scripts/check/test_callgraph.py 2>&1) ||
		{ echo "$out"; return 1; }
	in_buildroot python3 scripts/check/rooms.py
}

# clean COMMAND…: it succeeds, and warns of nothing.
clean()
{
	local out
	out=$("$@" 2>&1) || { echo "$out"; return 1; }
	grep -E 'warning:|error:' <<<"$out" && return 1
	return 0
}

# All of the modules, if any of their files is new: one is compiled with all others.
new_modules()
{
	local files list
	mapfile -t files < <(files Kbuild Makefile drivers include selftests/kmod)
	unseen "${files[@]}"
	[ ${#list[@]} != 0 ]
}

warnings()
{
	clean "$QHCA_TOP/scripts/build/modules.sh" "$@"
}

lint_w1() { ! new_modules || warnings W=1; }
lint_kernels()
{
	! new_modules || { warnings --kernel 6.1 W=1 && warnings --kernel 7 W=1; }
}

# Debian's stable sparse cannot read headers of 7.x, sid's can, and sid has some.
lint_sparse()
{
	local kernel rc=0
	new_modules || return 0
	for kernel in '' sid; do
		sparse_works ${kernel:+--kernel $kernel} &&
			warnings ${kernel:+--kernel $kernel} C=2 CHECK=sparse || rc=1
	done
	return $rc
}

# sparse_works [--kernel NAME]: it sees what it is here for.
sparse_works()
{
	local out
	# shellcheck disable=SC2016 # expands inside
	out=$("$QHCA_TOP/scripts/build/buildroot.sh" "$@" --extra -- sh -c '
		echo "typedef unsigned __attribute__((bitwise)) le; le f(unsigned x);
			le f(unsigned x) { return x; }" >/tmp/sparse.c
		sparse -Wbitwise /tmp/sparse.c' 2>&1)
	[[ $out == *'different base types'* ]] || { echo "sparse does not work: $out"; return 1; }
}

lint_cocci()
{
	local tools files list out script
	mapfile -t files < <(files 'drivers/*.c')
	unseen -I include "${files[@]}"
	[ ${#list[@]} != 0 ] || return 0
	tools=$(kernel_tools)
	# Scripts that need the whole kernel, or have no report mode, print nothing.
	# shellcheck disable=SC2016 # expands inside
	out=$(br_extra sh -c 'cd "$1/scripts/coccinelle"; top=$2; shift 2
		printf "%s\n\n" "$@" >/tmp/cocci.files
		echo "int f(int a) { if (a) return 1;; return 0; }" >/tmp/cocci.c
		spatch --very-quiet -D report --cocci-file misc/semicolon.cocci /tmp/cocci.c |
			grep -q "Unneeded semicolon" || echo "cocci: it finds nothing anywhere"
		find . -name "*.cocci" | sort | while read -r script; do
			grep -q "virtual report" "$script" || continue
			timeout 900 spatch --very-quiet -D report --no-show-diff \
				--include-headers -I "$top/include" --cocci-file "$script" \
				--file-groups /tmp/cocci.files 2>/dev/null
			[ $? != 124 ] || echo "$script:1: does not end"
		done' sh "$(br_path "$tools")" "$QHCA_BR_TOP" "${list[@]/#/$QHCA_BR_TOP/}")
	script=$(grep -vE '^ *$|^warning: |Coccinelle:' <<<"$out" || :)
	[ -z "$script" ] || { echo "$script"; return 1; }
}

lint_cluster()
{
	local list
	list=$(files 'sim/ns3/*.cc')
	[ -n "$list" ] || return $SKIPPED
	# shellcheck disable=SC2086 # a list
	scripts/build/cluster.sh --tidy $list
}

lint_tidy()
{
	local files list compiler rc=0
	mapfile -t files < <(files 'qemu-device/engine/*.c')
	unseen -I include -I qemu-device/engine "${files[@]}"
	[ ${#list[@]} != 0 ] || return 0
	# The engine is plain C: checking it needs no build system.
	for compiler in gcc x86_64-w64-mingw32-gcc-win32; do
		clean br_extra $compiler -std=gnu11 -O1 -fsyntax-only -Wall -Wextra -Wconversion \
			-Wshadow -Wno-sign-conversion -Wno-unused-parameter -Iinclude \
			-Iqemu-device/engine "${list[@]}" || rc=1
	done
	clean br_extra clang-tidy --quiet --checks='-*,bugprone-*,clang-analyzer-*,-bugprone-easily-swappable-parameters,-bugprone-reserved-identifier,-bugprone-assignment-in-if-condition,-bugprone-narrowing-conversions,-bugprone-casting-through-void,-bugprone-multi-level-implicit-pointer-conversion,-bugprone-implicit-widening-of-multiplication-result,-clang-analyzer-optin.performance.Padding,-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling' \
		"${list[@]}" -- -std=gnu11 -Iinclude -Iqemu-device/engine || rc=1
	return $rc
}

# judge PART: what it finds, and its status, go to files.
judge()
{
	local rc=0 PART=$1
	: >"$OUT/$1.keys"
	( "lint_$1" ) >"$OUT/$1" 2>&1 </dev/null || rc=$?
	[ $rc != 0 ] || scripts/check/unseen.py keep "$MEMORY/$1" <"$OUT/$1.keys"
	echo $rc >"$OUT/$1.status"
	log "$1: done"
}

case ${1:-} in
-h|--help) usage; exit 0 ;;
--all) ALL=1; shift ;;
esac
[ $# -gt 0 ] || set -- "${PARTS[@]}"
for part; do
	declare -F "lint_$part" >/dev/null || die "unknown part $part, see --help"
done
OUT=$(mktemp -d "$QHCA_CACHE/tmp/lint.XXXXXX")
trap 'rm -rf "$OUT"' EXIT
for part; do
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || :; done
	judge "$part" &
done
wait
pass=0 fail=0 skip=0
for part; do
	cat "$OUT/$part"
	case $(cat "$OUT/$part.status") in
	0) pass=$((pass + 1)); echo "ok $part" ;;
	"$SKIPPED") skip=$((skip + 1)); echo "ok $part # SKIP nothing to check yet" ;;
	*) fail=$((fail + 1)); echo "not ok $part" ;;
	esac
done
echo "$pass passed, $fail failed, $skip skipped"
[ "$fail" = 0 ]
