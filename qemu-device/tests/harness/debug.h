/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The only way to the engine's internals, for a test that checks what no
 * register, command or frame shows. The public interface is engine.h.
 */

#ifndef QHCA_TESTS_DEBUG_H
#define QHCA_TESTS_DEBUG_H

#include "device/device.h"
#include "save/save.h"
#include "wire/aggregate.h"

/* Return the pieces taken at a limited rate that are not paid for at @now. */
static inline unsigned pieces_owed(const struct vhca_pace *p, uint64_t now)
{
    return (unsigned)((p->paid - now) * 1000 / p->cost);
}

#endif
