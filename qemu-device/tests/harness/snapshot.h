/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: saves an engine and goes on with one that has loaded it.
 */
#ifndef QHCA_TESTS_SNAPSHOT_H
#define QHCA_TESTS_SNAPSHOT_H

#include "harness.h"

/*
 * After every @nth call into an engine, saves its state and loads it into
 * another one, which takes its place; pointers into the old one are stale. 0:
 * never. QHCA_TEST_SNAPSHOT in the environment is the initial value.
 */
void snapshot_every(unsigned nth);
/* How many engines have been replaced. */
uint64_t snapshot_count(void);
/* Replaces @g's engine now; fails the test if that is not possible. */
void snapshot_cycle(struct guest *g);
/* Saves and loads, but @g goes on with the engine that it has. */
void snapshot_check(struct guest *g);
/* Saves the state; the result is valid until the next save. */
uint8_t *snapshot_save(struct guest *g, size_t *len);
/* Loads a state into the engine; false: refused, see snapshot_why(). */
bool snapshot_load(struct guest *g, const uint8_t *data, size_t len);
const char *snapshot_why(void);
/* Corrects the CRC in @data. */
void snapshot_fix(uint8_t *data, size_t len);

/* For the harness only. */
void snapshot_after_call(struct guest *g);
void snapshot_free(struct guest *g);

#endif /* QHCA_TESTS_SNAPSHOT_H */
