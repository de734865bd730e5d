/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a log of what happened, for people to read. With
 * QHCA_TEST_VERBOSE in the environment, or when a program asks for it.
 */
#ifndef QHCA_TESTS_STORY_H
#define QHCA_TESTS_STORY_H

#include "engine.h"

bool story_wanted(void);
void story_want(bool wanted);

/* The trace points of a guest's engine. */
extern const struct qhca_engine_traces story_traces;
/* Anything else; @who is "net", "guest" or the like. */
__attribute__((format(printf, 4, 5)))
void story_say(const char *who, unsigned node, uint64_t now, const char *fmt,
               ...);

#endif /* QHCA_TESTS_STORY_H */
