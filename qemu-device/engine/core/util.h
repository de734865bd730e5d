/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: what C lacks. */
#ifndef QHCA_ENGINE_CORE_UTIL_H
#define QHCA_ENGINE_CORE_UTIL_H

#include <assert.h>
#include <stddef.h>

#define container_of(ptr, type, member) \
    ((type *)((char *)(ptr) - offsetof(type, member)))
#define sizeof_field(type, member) sizeof(((type *)0)->member)
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN_OF(a, b) ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))

/* An obligation of the caller, checked in test builds only. */
#ifdef QHCA_VERIFY
#define VHCA_ASSERT(what) assert(what)
#else
#define VHCA_ASSERT(what) ((void)sizeof(!(what)))
#endif

#endif /* QHCA_ENGINE_CORE_UTIL_H */
