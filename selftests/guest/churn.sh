# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh, after life.sh and eth-storm.sh: the storms of both, one after the other for
# CHURN_SECONDS, each with other random numbers and beside programs that register, spread, page
# in, get killed. For kernels that find mistakes: what they say counts, and so does what is left.

CHURN_SECONDS=${CHURN_SECONDS:-120}
CHURN_STORM=${CHURN_STORM:-40}		# seconds of one
CHURN_PROGRAMS='raw rwq odp odp_busy stress rereg mw_race dm import flow_counters xrc_share'

churn_queues()
{
	# shellcheck disable=SC2034 # storm() reads them
	local STORM=$CHURN_STORM STORM_PROGRAMS=$CHURN_PROGRAMS STORM_SEED=$RANDOM
	STRESS_SEED=$RANDOM storm
}

churn()
{
	local end=$((SECONDS + CHURN_SECONDS)) n=0
	# shellcheck disable=SC2034 # life_ways() reads them
	local LIFE_CYCLES=1 LIFE_STORM_SECONDS=$CHURN_STORM
	life_prepare || return 0
	expect churn/before life_works || return
	while [ $SECONDS -lt $end ]; do
		n=$((n + 1))
		EXPECT_LINES=40 expect "churn/$n: queues of the network card" churn_queues
		life_ways "storm round $n"
		device_recovers false
	done
}
