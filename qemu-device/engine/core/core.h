/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, core: what knows nothing of RDMA, and struct qhca_engine, which
 * every room is handed.
 */
#ifndef QHCA_ENGINE_CORE_H
#define QHCA_ENGINE_CORE_H

#include <string.h>

#include "../engine.h"
#include "../wire/bytes.h"
#include "command.h"
#include "fifo.h"
#include "holder.h"
#include "list.h"
#include "mem.h"
#include "pace.h"
#include "snapshot.h"
#include "table.h"
#include "timer.h"
#include "util.h"

/* Limits are advertised by cmd/query.c. */
#define QHCA_MAX_TABLE_BLOCKS   (16u << 20)
#define QHCA_UNIT_FRAME         1024u   /* bytes of one, for a unit of work */
#define QHCA_UNIT_COPY          2048u   /* bytes of guest memory */
#define QHCA_UNIT_OBJECTS       64u     /* looked at, or let go, for one */
#define QHCA_UNIT_BLOCKS        4096u   /* of a table that goes */

/*
 * struct qhca_engine - the device: what every room needs, and where each room
 * keeps what is its own, which only the rooms below can look into
 */
struct qhca_engine {
    struct qhca_engine_config cfg;
    const struct qhca_engine_ops *ops;
    void *opaque;
    uint64_t now;               /* of the entry point being served */
    unsigned spent, limit;      /* units of work in it, see vhca_spend() */
    uint8_t state;              /* enum qhca_state */
    uint8_t fatal;              /* enum qhca_fatal */
    uint8_t fault_points;       /* where fault rules look, a bit each */
    bool inside;                /* somebody is: an entry point, a neighbour */
    unsigned visited;           /* units that neighbours have worked here */
    uint32_t table_blocks;      /* block addresses held, of MAX_TABLE_BLOCKS */
    struct vhca_timers timers;
    uint64_t cnt[QHCA_CNT_MAX];

    struct vhca_faults *faults;
    struct vhca_memory *memory;
    struct vhca_events *events;
    struct vhca_port *port;
    struct vhca_qps *qps;
    struct vhca_rqs *rqs;
    struct vhca_eth *eth;
    struct vhca_cmdq *cmdq;
    struct vhca_device *device;
};

/*
 * struct vhca_room - what a room with state of its own has to offer
 * @init: once; false: no memory
 * @reset: everything goes, without events; the rooms below have done so before
 * @fini: gives back what @init took
 * @holdings: writes down what memory the room has, and returns how many kinds
 * @section: name of its part of a saved state, which is written as @version and
 *           loaded from @oldest on
 * @walk: over that; on load the rooms above have done so, and the room is as
 *        after @reset
 */
struct vhca_room {
    bool (*init)(struct qhca_engine *e);
    void (*reset)(struct qhca_engine *e);
    void (*fini)(struct qhca_engine *e);
    unsigned (*holdings)(const struct qhca_engine *e, struct qhca_holding *h);
    const char *section;
    uint16_t version, oldest;
    void (*walk)(struct vhca_snap *s);
};

extern const struct vhca_room vhca_core_room;

/* Counts what is of no QP; else vhca_count_qp(). */
static inline void vhca_count(struct qhca_engine *e, enum qhca_counter which)
{
    e->cnt[which]++;
}

/* vhca_trace_NAME(): what trace.def says. */
#define QHCA_TRACE(name, params, args) \
static inline void vhca_trace_##name(struct qhca_engine *e, params) \
{ \
    if (e->ops->trace) { \
        e->ops->trace->name(e->opaque, args); \
    } \
}
#include "../trace.def"

/* Before anything is written that the driver is to believe. */
static inline void vhca_tamper(struct qhca_engine *e, enum qhca_told what,
                               void *data, size_t len)
{
#ifdef QHCA_HOSTILE
    if (e->ops->tamper) {
        e->ops->tamper(e->opaque, what, data, len);
    }
#else
    (void)e;
    (void)what;
    (void)data;
    (void)len;
#endif
}

/* Whether DMA, interrupts and frames are allowed. */
static inline bool vhca_running(const struct qhca_engine *e)
{
    return e->state == QHCA_STATE_RUNNING;
}

/*
 * Work is counted in units and bounded. A unit is an access to guest memory, a
 * frame that comes or goes, or a look at objects, of up to QHCA_UNIT_*: half a
 * microsecond or less. Who works says so, and asks before each step whether to
 * go on; @e->limit is set by the run loop.
 */
static inline void vhca_spend(struct qhca_engine *e, unsigned units)
{
    e->spent += units;
}

/* The same for what has @len bytes, a unit for each @per. */
static inline void vhca_spend_bytes(struct qhca_engine *e, size_t len,
                                    unsigned per)
{
    vhca_spend(e, MAX_OF((unsigned)(len / per), 1u));
}

/* False: what is left to do waits for its next turn. */
static inline bool vhca_may_go_on(const struct qhca_engine *e)
{
    return e->spent < e->limit && vhca_running(e);
}

/*
 * Until vhca_leave_neighbour(), which lets @at go on by itself soon, what @e
 * does to it is as if one of its own entry points had been called.
 */
static inline void vhca_enter_neighbour(const struct qhca_engine *e,
                                        struct qhca_engine *at)
{
    VHCA_ASSERT(!at->inside && at != e);
    at->inside = true;
    at->now = MAX_OF(at->now, e->now);
    at->spent = 0;
}

static inline void vhca_leave_neighbour(struct qhca_engine *at)
{
    at->visited += at->spent;
    at->inside = false;
    at->ops->schedule(at->opaque);
}

/*
 * The guest's driver made a mistake: one printf-formatted line for its author.
 */
__attribute__((format(printf, 2, 3)))
void vhca_guest_error(struct qhca_engine *e, const char *fmt, ...);

#endif /* QHCA_ENGINE_CORE_H */
