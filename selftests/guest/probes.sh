# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh and consumers: the kernel's tracing, and which of its functions were called,
# in which order, where nothing else shows it. Kernels without kprobe events show none.

TRACING=/sys/kernel/tracing

tracing_there()
{
	[ -e $TRACING/trace ] || mount -t tracefs none $TRACING 2>/dev/null
}

probes_there() { tracing_there && [ -e $TRACING/kprobe_events ]; }

# probes_start PROBE…: as Documentation/trace/kprobetrace.rst of Linux has them, group/name
# and function. Only where probes_there.
probes_start()
{
	: >$TRACING/trace
	echo global >$TRACING/trace_clock
	printf '%s\n' "$@" >$TRACING/kprobe_events && echo 1 >$TRACING/events/probes/enable
}

# Prints what has been called since, in the order of time: CPU, name and arguments.
probes_stop()
{
	echo 0 >$TRACING/events/probes/enable
	sed -n 's/^.*\[\([0-9]*\)\][^:]*: \([a-z_]*\): ([^)]*) *\(.*\)$/\1 \2 \3/p' $TRACING/trace
	: >$TRACING/kprobe_events
	: >$TRACING/trace
}
