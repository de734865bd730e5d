# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh and pair.sh: pings, and whether each was answered. The kernel
# counts, because ping waits for the last reply only twice as long as the slowest one
# took, whatever -W says, and is content with a single one. Needs result.sh.

# Echo requests sent, and replies, in this network namespace since it was made.
echoes()
{
	nstat -asz IcmpOutEchos IcmpInEchoReps |
		awk '{ n[$1] = $2 } END { print n["IcmpOutEchos"], n["IcmpInEchoReps"] }'
}

# all_answered N: but for N
all_answered()
{
	local sent back
	read -r sent back < <(echoes)
	[ $((sent - back)) -le "$1" ]
}

# answered COMMAND…: pings during COMMAND are answered in the end.
answered()
{
	local rc=0 sent back sent0 back0
	read -r sent0 back0 < <(echoes)
	"$@" || rc=1
	until_true all_answered $((sent0 - back0)) && return $rc
	read -r sent back < <(echoes)
	echo "$((sent - sent0)) pings, $((back - back0)) answered"
	return 1
}
