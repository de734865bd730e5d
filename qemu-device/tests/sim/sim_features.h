/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: network simulator: the features that a schedule can have,
 * whatever its kind. Included by sim.h.
 */
#ifndef QHCA_TESTS_SIM_FEATURES_H
#define QHCA_TESTS_SIM_FEATURES_H

/* A row each in sim_features.c, which says what they are. */
enum sim_feature {
    SIM_LOSS,
    SIM_UNTIMED,
    SIM_LINE,
    SIM_PAGES,
    SIM_MIND,
    SIM_XRC,
    SIM_SRQ,
    SIM_WINDOWS,
    SIM_STALE,
    SIM_COPIED,
    SIM_ORDER,
    SIM_RATES,
    SIM_MARKS,
    SIM_PAUSE,
    SIM_MOVE,
    SIM_FLR,
    SIM_FEATURES
};

#define SIM_HAS(feature)    (1u << SIM_##feature)

/*
 * Decides what the schedule has: a pair of features, which its seed chooses, so
 * that many seeds have all pairs, and others by chance.
 */
void sim_features_draw(struct sim *s);
/* How many schedules had both features. */
typedef unsigned sim_pairs[SIM_FEATURES][SIM_FEATURES];
/* Counts what the schedule, which has ended, has had. */
void sim_features_count(const struct sim *s, sim_pairs count);
/*
 * Prints how many schedules had each feature. If @judge, returns false, and
 * says which, if none had a pair that can be, or some one that cannot.
 */
bool sim_features_report(sim_pairs count, bool judge);

/* ---- sim_move.c ---- */

/* Decides when. */
void sim_move_draw(struct sim *s);
/* Perhaps another engine loads the state of a node, and takes its place. */
void sim_move(struct sim *s);
/* Perhaps resets a function in this round: all that its node has is gone. */
void sim_flr(struct sim *s, unsigned round);
/* Whether all that the node has is gone. */
bool sim_node_gone(const struct sim *s, const struct node *n);

#endif /* QHCA_TESTS_SIM_FEATURES_H */
