/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a device in the middle of everything: one or more objects
 * of each kind, and work, events, frames, timers that have come half way.
 */
#ifndef QHCA_TESTS_SCENE_H
#define QHCA_TESTS_SCENE_H

#include "fixture.h"

/* On the fixture's @node, with @qp and @srq. */
void scene_start(void);
/* Adds QPs of other types, and in other states, with work in progress. */
void scene_states(void);
/* What a guest, a network and time can do to whatever is there. */
void scene_poke(uint64_t rng);
/* Commands to whatever is there: to QPs, other states; to some, their end. */
void scene_commands(uint64_t *rng);

#endif /* QHCA_TESTS_SCENE_H */
