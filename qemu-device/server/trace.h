/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca server: trace events, the same as for the device in QEMU. The build
 * makes events.def from QEMU's table, ../trace-events.
 */
#ifndef QHCA_SERVER_TRACE_H
#define QHCA_SERVER_TRACE_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#include "../engine/engine.h"

#define ROW(...) __VA_ARGS__

enum {
#define QHCA_EVENT(name, params, args, format) TRACE_##name,
#include "events.def"
#undef QHCA_EVENT
    TRACE_EVENTS
};

/* The events that are printed. */
extern bool trace_on[TRACE_EVENTS];

/* trace_NAME(): print the event NAME to standard error, if that is wanted. */
void trace_print(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
#define QHCA_EVENT(name, params, args, format) \
static inline void trace_##name(params) \
{ \
    if (trace_on[TRACE_##name]) { \
        trace_print(#name " " format "\n", args); \
    } \
}
#include "events.def"
#undef QHCA_EVENT
#undef ROW

/*
 * Print the events whose names match, where * is any text and ? any character.
 * Returns false if there is none.
 */
bool trace_enable(const char *pattern);
/* Print the names of all events to standard output. */
void trace_list(void);
/* Return the functions for the engine's events, or NULL if none is printed. */
const struct qhca_engine_traces *trace_of_engine(void);

#endif /* QHCA_SERVER_TRACE_H */
