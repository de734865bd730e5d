/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: engines that are saved, and go on as others.
 */
#ifndef QHCA_TESTS_SNAPSHOT_H
#define QHCA_TESTS_SNAPSHOT_H

#include "harness.h"

/*
 * After every @nth call into an engine its state is saved and loaded into
 * another one, which takes its place: what a test has a pointer to is gone. 0:
 * never; QHCA_TEST_SNAPSHOT in the environment says what it is at first.
 */
void snapshot_every(unsigned nth);
/* How often that has happened. */
uint64_t snapshot_count(void);
/* Once; fails the test if it cannot be done. */
void snapshot_cycle(struct guest *g);
/* The same, but @g goes on with the engine that it has. */
void snapshot_check(struct guest *g);
/* The state, valid until this is called again. */
uint8_t *snapshot_save(struct guest *g, size_t *len);
/* Loads a state into the engine; false: refused, see snapshot_why(). */
bool snapshot_load(struct guest *g, const uint8_t *data, size_t len);
const char *snapshot_why(void);
/* Makes the CRC in @data right. */
void snapshot_fix(uint8_t *data, size_t len);

/* The harness's own. */
void snapshot_after_call(struct guest *g);
void snapshot_free(struct guest *g);

#endif /* QHCA_TESTS_SNAPSHOT_H */
