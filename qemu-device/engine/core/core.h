/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, core: everything that is not about RDMA, and struct qhca_engine,
 * which all rooms share.
 */
#ifndef QHCA_ENGINE_CORE_H
#define QHCA_ENGINE_CORE_H

#include <string.h>

#include "../engine.h"
#include "../wire/bytes.h"
#include "command.h"
#include "fifo.h"
#include "mem.h"
#include "table.h"
#include "timer.h"
#include "util.h"

/* Limits are advertised by driver/query.c. */
#define VHCA_MAX_TABLE_BLOCKS   (16u << 20)
/* One unit of work, see vhca_spend(), covers up to: */
#define VHCA_UNIT_FRAME         1024u   /* bytes of a frame */
#define VHCA_UNIT_COPY          2048u   /* bytes of guest memory */
#define VHCA_UNIT_OBJECTS       64u     /* objects visited or freed */
#define VHCA_UNIT_RUN           64u     /* block addresses that are compared */
#define VHCA_UNIT_BLOCKS        4096u   /* block addresses freed */
#define VHCA_UNIT_PAGES         64u     /* pages of ODP regions looked up */

/*
 * struct qhca_engine - the device: what every room needs, and a pointer to the
 * state of each room, which only that room and those below can follow
 */
struct qhca_engine {
    struct qhca_engine_config cfg;
    const struct qhca_engine_ops *ops;
    void *opaque;
    uint64_t now;               /* time of the entry point being served */
    unsigned spent, limit;      /* units of work in it, see vhca_spend() */
    uint8_t state;              /* enum qhca_state */
    uint8_t fatal;              /* enum qhca_fatal */
    bool big_endian;            /* the words of atomics, see vhca_word() */
    uint8_t fault_points;       /* points with fault rules, a bit each */
    bool inside;                /* an entry point or a neighbour is running */
    bool late_data;             /* some are held back, see memory/late.c */
    struct vhca_pace slice;     /* units until the main loop has its turn */
    struct vhca_pace share;     /* units the operator allows */
    uint32_t table_blocks;      /* block addresses held, of MAX_TABLE_BLOCKS */
    struct vhca_timers timers;
    uint64_t cnt[QHCA_CNT_MAX];

    struct vhca_rules *rules;
    struct vhca_memory *memory;
    struct vhca_events *events;
    struct vhca_port *port;
    struct vhca_congestion *congestion;
    struct vhca_qps *qps;
    struct vhca_rqs *rqs;
    struct vhca_eth *eth;
    struct vhca_raw *raw;
    struct vhca_cmdq *cmdq;
    struct vhca_shadows *shadows;
    struct vhca_device *device;
};

struct vhca_snap;

/*
 * struct vhca_room - the interface of a room that has state; what it does not
 *                    need is NULL
 * @init: allocate the state; called once. Returns false if there is no memory
 * @reset: free all objects, without events; the rooms below are reset before
 * @fini: free what @init allocated
 * @holdings: write what memory the room holds to @h; returns how many kinds
 * @section: name of the room's section in a saved state, which is written as
 *           @version and loaded from version 1 on
 * @walk: save or load the section; on load the rooms above have been loaded,
 *        and the room is as after @reset
 */
struct vhca_room {
    bool (*init)(struct qhca_engine *e);
    void (*reset)(struct qhca_engine *e);
    void (*fini)(struct qhca_engine *e);
    unsigned (*holdings)(const struct qhca_engine *e, struct qhca_holding *h);
    const char *section;
    uint16_t version;
    void (*walk)(struct vhca_snap *s);
};

extern const struct vhca_room vhca_core_room;

/* Count an event that has no QP; with one, use vhca_count_qp(). */
static inline void vhca_count(struct qhca_engine *e, enum qhca_counter which)
{
    e->cnt[which]++;
}

/* vhca_trace_NAME(): report to the trace point of that name in trace.def. */
#define VHCA_TRACE(name, params, args) \
static inline void vhca_trace_##name(struct qhca_engine *e, params) \
{ \
    if (e->ops->trace) { \
        e->ops->trace->name(e->opaque, args); \
    } \
}
#include "../trace.def"

/* In hostile test builds, let the front end change what the driver will see. */
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
 * frame sent or received, or a look at objects, of up to VHCA_UNIT_*: half a
 * microsecond or less. Charge every step with vhca_spend(), and ask
 * vhca_may_go_on() before each. The run loop sets @e->limit.
 */
static inline void vhca_spend(struct qhca_engine *e, unsigned units)
{
    e->spent += units;
}

/* Charge a step over @len bytes, a unit for each @per of them. */
static inline void vhca_spend_bytes(struct qhca_engine *e, size_t len,
                                    unsigned per)
{
    vhca_spend(e, MAX_OF((unsigned)(len / per), 1u));
}

/* Whether there is budget left; if not, leave the rest for the next turn. */
static inline bool vhca_may_go_on(const struct qhca_engine *e)
{
    return e->spent < e->limit && vhca_running(e);
}

/* Charge the slice and the share with what has been spent. */
static inline void vhca_pay(struct qhca_engine *e)
{
    vhca_pace_take(&e->slice, e->now, e->spent);
    vhca_pace_take(&e->share, e->now, e->spent);
}

/* Whether the device may use the host's CPU at @now (property cpu-share). */
static inline bool vhca_has_time(const struct qhca_engine *e, uint64_t now)
{
    return vhca_pace_left(&e->share, now, 1);
}

/*
 * Let @e work on @at as if one of @at's own entry points had been called, until
 * vhca_leave_neighbour(), which schedules @at to do the rest.
 */
static inline void vhca_enter_neighbour(const struct qhca_engine *e,
                                        struct qhca_engine *at)
{
    VHCA_ASSERT(!at->inside && at != e);
    at->inside = true;
    at->now = MAX_OF(at->now, e->now);
    at->spent = 0;
    at->limit = e->limit - MIN_OF(e->spent, e->limit);
}

/* Charge @at what has been spent there since the last time; return that. */
static inline unsigned vhca_pay_visit(struct qhca_engine *at)
{
    unsigned units = at->spent;

    vhca_pay(at);
    at->spent = 0;
    return units;
}

static inline void vhca_leave_neighbour(struct qhca_engine *at)
{
    vhca_pay_visit(at);
    at->inside = false;
    at->ops->schedule(at->opaque);
}

/* Report a mistake of the guest's driver, as one printf-formatted line. */
__attribute__((format(printf, 2, 3)))
void vhca_guest_error(struct qhca_engine *e, const char *fmt, ...);

#endif /* QHCA_ENGINE_CORE_H */
