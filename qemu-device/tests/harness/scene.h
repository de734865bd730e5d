/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a busy device: objects of every kind, and work, events,
 * frames and timers that are half done.
 */
#ifndef QHCA_TESTS_SCENE_H
#define QHCA_TESTS_SCENE_H

#include "fixture.h"

/* Starts it on the fixture's @node, with @qp and @srq. */
void scene_start(void);
/* Adds QPs of other types, and in other states, with work in progress. */
void scene_states(void);
/* Rings all doorbells, sends packets to all QPs and lets time pass. */
void scene_poke(uint64_t rng);
/* Issues random commands: moves QPs to other states, destroys objects. */
void scene_commands(uint64_t *rng);

#endif /* QHCA_TESTS_SCENE_H */
