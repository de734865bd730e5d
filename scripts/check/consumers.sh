# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by parts.sh: how the consumers of guest/consumers/list are run, by what check.sh was
# asked for: FULL, DEVICE, WORDS.

CONSUMERS=$QHCA_TOP/selftests/guest/consumers/list

# listed MACHINES [NAME…]: the consumers named, or all of this run, that need as many
# machines and are no parts of their own.
listed()
{
	local count=$1 name machines when _
	shift
	while IFS='|' read -r name machines when _; do
		name=${name// /}
		[[ $name != '#'* && ${machines// /} == "$count" ]] || continue
		if [ $# != 0 ]; then
			[[ " $* " == *" $name "* ]] || continue
		else
			[[ ${when// /} == @(check${FULL:+|full}) ]] || continue
		fi
		echo "$name"
	done <"$CONSUMERS"
}

# Keeps what each of them has reported, for consumers.py.
keep()
{
	local out=$1 dir=$QHCA_CACHE/consumers/${DEVICE:+rxe-}${FULL:-check} name
	shift
	mkdir -p "$dir"
	for name; do
		grep -aE "^([a-z][|] )?(not )?ok consumers/$name(/| |\$)" "$out" >"$dir/$name" ||
			echo "not ok consumers/$name # has not run" >"$dir/$name"
	done
}

# What a consumer brings along that is in no package; without it its test fails.
declare -A BRINGS=([ucx-gtest]=build/ucx-gtest.sh [rnbd]=build/ulps.sh [smb]=build/ulps.sh)
# Options of vm that a consumer needs: a test of UCX's has four receivers of half a GB.
declare -A NEEDS=([ucx-gtest]='--mem 4G')

# consumers_run MACHINES NAME…
consumers_run()
{
	local count=$1 rc=0 out limit=${FULL:+7200} mode=(run) name built
	shift
	[ "$count" = 1 ] || mode=(net -n "$count")
	for name; do
		# shellcheck disable=SC2206 # options
		mode+=(${NEEDS[$name]:-})
		[ -n "${BRINGS[$name]:-}" ] || continue
		built=$("$QHCA_TOP/scripts/${BRINGS[$name]}") && mode+=(--put "$built:$name")
	done
	out=$(mktemp "$QHCA_CACHE/tmp/consumers.XXXXXX")
	# shellcheck disable=SC2086 # lists of options
	"$QHCA_TOP/scripts/vm" "${mode[@]}" --strict --timeout "${limit:-2400}" $DEVICE $VMFLAGS -- \
		/opt/qhca/guest/consumers.sh ${FULL:+--full} --machines "$count" "$@" |
		tee "$out" || rc=$?
	keep "$out" "$@"
	rm -f "$out"
	return $rc
}

# consumers_in MACHINES [NAME…]: with rdma_rxe each gets its own machine, which it may crash.
consumers_in()
{
	local count=$1 names name rc=0
	shift
	# shellcheck disable=SC2086 # a list of names
	[ $# != 0 ] || set -- $WORDS
	mapfile -t names < <(listed "$count" "$@")
	if [ -z "$DEVICE" ]; then
		consumers_run "$count" "${names[@]}"
		return
	fi
	for name in "${names[@]}"; do
		consumers_run "$count" "$name" || rc=$?
	done
	return $rc
}

consumers_alone() { consumers_in 1; }
# UCX's own tests, some 20 minutes of them.
ucx_gtest() { FULL=full consumers_in 1 ucx-gtest; }
consumers_together() { consumers_in 2; }
