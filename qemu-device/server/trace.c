/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca server: trace events. */
#include <stdarg.h>
#include <stdio.h>

#include "hca.h"
#include "trace.h"

bool trace_on[TRACE_EVENTS];

static const char *const names[] = {
#define QHCA_EVENT(name, params, args, format) #name,
#include "events.def"
#undef QHCA_EVENT
};

void trace_print(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
}

bool trace_enable(const char *pattern)
{
    bool found = false;

    for (unsigned i = 0; i < TRACE_EVENTS; i++) {
        if (g_pattern_match_simple(pattern, names[i])) {
            trace_on[i] = found = true;
        }
    }
    return found;
}

void trace_list(void)
{
    for (unsigned i = 0; i < TRACE_EVENTS; i++) {
        puts(names[i]);
    }
}

static const char *id_of(const struct hca *hca)
{
    return hca->name;
}

#define VHCA_TRACE(name, params, args) \
static void on_##name(void *opaque, params) \
{ \
    trace_qhca_##name(id_of(opaque), args); \
}
#include "../engine/trace.def"

const struct qhca_engine_traces *trace_of_engine(void)
{
    static const struct qhca_engine_traces traces = {
#define VHCA_TRACE(name, params, args) .name = on_##name,
#include "../engine/trace.def"
    };
    static const int of_engine[] = {
#define VHCA_TRACE(name, params, args) TRACE_qhca_##name,
#include "../engine/trace.def"
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(of_engine); i++) {
        if (trace_on[of_engine[i]]) {
            return &traces;
        }
    }
    return NULL;
}
