# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh: connections that come, carry data and go, in many threads, for
# a long time, and that nothing is left behind.

SOAK_SECONDS=${SOAK_SECONDS:-15}	# 0: until something fails, or the user stops it
SOAK_SEED=${SOAK_SEED:-1}
# Seconds of one process
SOAK_GENERATION=${SOAK_GENERATION:-$((0 < SOAK_SECONDS && SOAK_SECONDS < 30 ? SOAK_SECONDS : 30))}
SOAK_KEEPS=${SOAK_KEEPS:-16384}		# KiB that memory may have shrunk by

# Caches are dropped first. The kernel's lists of free pages for each CPU count as memory in
# use and can grow to 100 MiB, so they are kept short.
soak_memory()
{
	sync
	echo 1000000 >/proc/sys/vm/percpu_pagelist_high_fraction
	echo 3 >/proc/sys/vm/drop_caches
	awk '$1 == "MemAvailable:" { free = $2 } $1 == "Slab:" { slab = $2 }
		END { print free, slab }' /proc/meminfo
}

# Of soak()'s figures.
soak_kept() { [ $((free0 - free)) -le "$SOAK_KEEPS" ] && [ $((slab - slab0)) -le "$SOAK_KEEPS" ]; }

# Warnings and worse, except from a machine that the host has not scheduled for a while.
soak_complaints()
{
	dmesg --level=emerg,alert,crit,err,warn |
		grep -vE '^$|hrtimer: interrupt took|clocksource: |perf: interrupt took'
}

# The resources of all processes, as the kernel counts them.
soak_resources() { rdma resource show; }

# soak_generation MS: one process; then all is as it was.
soak_generation()
{
	local log=$LOGS/soak.log rc=0
	SOAK_MS=$1 SOAK_SEED=$SOAK_SEED RDMA_DEVICE=$QHCA_DEV \
		/opt/qhca/selftests/soak >"$log" 2>&1 || rc=$?
	[ $rc != 0 ] || ! grep -q '^not ok' "$log" || rc=1
	SOAK_TOTAL=$(awk -v c="${SOAK_TOTAL:-0 0 0}" '/^# seed/ { split(c, n)
		print n[1] + $4, n[2] + $6, n[3] + $8 }' "$log")
	SOAK_SEED=$((SOAK_SEED + 1))
	[ $rc = 0 ] || sed 's/^/    /' "$log"
	return $rc
}

soak_report()
{
	local connections messages xrc
	read -r connections messages xrc <<<"$SOAK_TOTAL"
	echo "# soak: ${1} s, $connections connections, $messages messages, $xrc of XRC;" \
		"KiB free $2, in slabs $3"
}

# The first generation only fills caches.
soak()
{
	local start rc=0 objects complaints free slab free0 slab0
	[ -x /opt/qhca/selftests/soak ] || { result skip soak "none in the payload"; return; }
	objects=$(soak_resources)
	complaints=$(soak_complaints)
	expect soak/first soak_generation 5000
	read -r free0 slab0 < <(soak_memory)
	start=$SECONDS
	while :; do
		soak_generation $((SOAK_GENERATION * 1000)) || rc=$?
		read -r free slab < <(soak_memory)
		soak_report $((SECONDS - start)) "$free" "$slab"
		[ "$(soak_complaints)" = "$complaints" ] || rc=1
		[ "$(soak_resources)" = "$objects" ] || rc=1
		soak_kept || rc=1
		[ $rc = 0 ] || break
		[ "$SOAK_SECONDS" = 0 ] || [ $((SECONDS - start)) -lt "$SOAK_SECONDS" ] || break
	done
	expect "soak/connections with data" [ $rc = 0 ]
	expect "soak/rdma res as before" same "rdma res" "$(soak_resources)" "$objects"
	expect "soak/memory: $((free0 - free)) KiB less, $((slab - slab0)) KiB more in slabs" soak_kept
	expect "soak/nothing in the kernel's log" diff <(echo "$complaints") <(soak_complaints)
}
