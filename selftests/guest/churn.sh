# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh, after life.sh and eth-storm.sh: the storms of both, one after the other for
# CHURN_SECONDS (0: until something fails), each with other random numbers and beside programs
# that register, spread, page in, get killed. For kernels that find mistakes: what they say
# counts, and so does what is left.

CHURN_SECONDS=${CHURN_SECONDS:-120}
CHURN_STORM=${CHURN_STORM:-40}		# seconds of one
CHURN_DIR=${CHURN_DIR:-/opt/qhca/selftests}
CHURN_PROGRAMS='raw rwq odp odp_busy stress rereg mw_race dm import flow_counters xrc_share'

churn_queues()
{
	# shellcheck disable=SC2034 # storm() reads them
	local STORM=$CHURN_STORM STORM_PROGRAMS=$CHURN_PROGRAMS STORM_SEED=$RANDOM
	STRESS_SEED=$RANDOM storm
}

# They may fail while the device comes and goes, so that one that is not there would not be missed.
churn_programs()
{
	local name
	for name in $CHURN_PROGRAMS; do
		[ -x "$CHURN_DIR/$name" ] || { result fail churn/before "no program $name"; return 1; }
	done
}

churn_goes_on()
{
	[[ $SECONDS -lt $end || ($CHURN_SECONDS = 0 && $FAIL = "$failed") ]]
}

churn()
{
	local end n=0 failed=$FAIL
	# shellcheck disable=SC2034 # life_ways() reads them
	local LIFE_CYCLES=1 LIFE_STORM_SECONDS=$CHURN_STORM
	life_prepare || return 0
	churn_programs && expect churn/before life_works || return
	end=$((SECONDS + CHURN_SECONDS))
	while churn_goes_on; do
		n=$((n + 1))
		EXPECT_LINES=40 expect "churn/$n: queues of the network card" churn_queues
		life_ways "storm round $n"
		device_recovers false
	done
}
