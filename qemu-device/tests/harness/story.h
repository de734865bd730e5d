/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a log for people to read, printed if QHCA_TEST_VERBOSE is
 * in the environment or a program asks for it.
 */
#ifndef QHCA_TESTS_STORY_H
#define QHCA_TESTS_STORY_H

#include "engine.h"

bool story_wanted(void);
void story_want(bool wanted);

/* The trace points of a guest's engine. */
extern const struct qhca_engine_traces story_traces;
/* Logs anything else; @who is "net", "guest" or the like. */
__attribute__((format(printf, 4, 5)))
void story_say(const char *who, unsigned node, uint64_t now, const char *fmt,
               ...);

#endif /* QHCA_TESTS_STORY_H */
