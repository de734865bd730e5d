/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: functions of the engine itself that every room may call. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core.h"
#include "qhca/counters.h"

void vhca_guest_error(struct qhca_engine *e, const char *fmt, ...)
{
    char msg[160];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    e->ops->guest_error(e->opaque, msg);
}

const char *qhca_counter_name(enum qhca_counter which)
{
    return (unsigned)which < QHCA_CNT_MAX ? qhca_counter_names[which] : NULL;
}

uint64_t qhca_engine_counter(const struct qhca_engine *e,
                             enum qhca_counter which)
{
    return (unsigned)which < QHCA_CNT_MAX ? e->cnt[which] : 0;
}

static bool core_init(struct qhca_engine *e)
{
    e->timers.armed = UINT64_MAX;
    return true;
}

static void core_reset(struct qhca_engine *e)
{
    e->timers.used = 0;
    e->big_endian = false;
}

static void core_fini(struct qhca_engine *e)
{
    free(e->timers.heap);
}

static unsigned core_holdings(const struct qhca_engine *e,
                              struct qhca_holding *h)
{
    h[0] = (struct qhca_holding) {
        "block addresses", false, sizeof(uint64_t), VHCA_MAX_TABLE_BLOCKS,
        e->table_blocks
    };
    h[1] = (struct qhca_holding) {
        "timers", false, sizeof(*e->timers.heap), e->timers.size, e->timers.size
    };
    return 2;
}

const struct vhca_room vhca_core_room = {
    .init = core_init, .reset = core_reset, .fini = core_fini,
    .holdings = core_holdings,
};
