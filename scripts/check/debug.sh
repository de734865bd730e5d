# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by parts.sh: the parts on a kernel, or with a QEMU, that finds mistakes.

# debugged OPTION… -- SECTION…: on a kernel that sees what others do not, and is slow. DEBUG_LIMIT is
# how long it may take.
debugged()
{
	one_guest "${DEBUG_LIMIT:-14400}" --mem 3G --env KSELFTEST_TIMEOUT=2400 \
		--env KSELFTEST_PATIENCE=3 --env KVERBS_TIMEOUT=1200 "$@"
}

# A device that deceives its drivers. The long form: seeds of the day, too, on the debug kernel.
hostile()
{
	if [ -z "$FULL" ]; then
		one_guest 600 --hostile --env HOSTILE_SEEDS=3-4 --env HOSTILE_SECONDS=4 -- lies hostile
		return
	fi
	debugged --hostile --debug-kernel --env FULL=1 \
		--env HOSTILE_SEEDS="1-16,$(seeds_of_today 8)" \
		--env HOSTILE_NVME_SEEDS="4,7,8,$(seeds_of_today 3)" -- lies hostile
}

# QEMU's threads: CPUs of the guest ring while the main loop works, or takes the device away.
tsan_qemu()
{
	local rc=0 VMFLAGS="$VMFLAGS --tsan-qemu"
	one_guest 3600 --env KSELFTEST_TIMEOUT=1500 -- kselftest stress rc_data || rc=$?
	VMFLAGS="$VMFLAGS --env PATIENCE=600 --env LIFE_CYCLES=1" unplug && return $rc
}

# What happens on two CPUs at once. Races are looked for at more accesses than usual, and
# longer, for both CPUs are threads of this machine's.
kcsan()
{
	debugged --kcsan --device-arg guest-faults=on --kernel-arg kcsan.skip_watch=500 \
		--kernel-arg kcsan.udelay_task=200 -- kverbs soak kselftest rc_data stress events \
		cq notify srq mw mcast kill recovery removal undone cm import xrc faults nomem nopages \
		counters
}

# With another seed every day, which is in the output.
uverbs_fuzz()
{
	debugged --debug-kernel --env FUZZ_SEED="$(date +%Y%m%d)" --env FUZZ_MS=300000 \
		-- kselftest uverbs_fuzz
}

# churn OPTION: what changes the device, its network card and its users, all at a time, for MINUTES;
# 0: until something fails.
churn()
{
	local seconds=$((${MINUTES:-10} * 60)) DEBUG_LIMIT
	DEBUG_LIMIT=$((seconds ? seconds + 14400 : 1 << 30))
	debugged "$1" --env PATIENCE=300 --env CHURN_SECONDS=$seconds -- churn
}
