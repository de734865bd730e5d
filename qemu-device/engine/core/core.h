/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, core: what knows nothing of RDMA. Lists, object numbers, guest
 * memory, timers, frame FIFOs, how commands find their handlers, and the
 * struct qhca_engine that every room is handed.
 */
#ifndef QHCA_ENGINE_CORE_H
#define QHCA_ENGINE_CORE_H

#include <string.h>

#include "../engine.h"
#include "../wire/bytes.h"
#include "mem.h"

#define container_of(ptr, type, member) \
    ((type *)((char *)(ptr) - offsetof(type, member)))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN_OF(a, b) ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))

/* Limits are advertised by device/query.c. */
#define QHCA_MAX_TABLE_BLOCKS   (16u << 20)
#define QHCA_UNIT_FRAME         1024u   /* bytes of one, for a unit of work */
#define QHCA_UNIT_COPY          2048u   /* bytes of guest memory */
#define QHCA_UNIT_OBJECTS       64u     /* looked at, or let go, for one */
#define QHCA_UNIT_BLOCKS        4096u   /* of a table that goes */
#define QHCA_VLAN_ROOM          4
#define QHCA_MAX_FRAME          (14 + 2 * QHCA_VLAN_ROOM + QHCA_ETH_MTU_MAX)

/* ---- intrusive doubly linked list with a head node ---- */

struct qhca_list {
    struct qhca_list *prev, *next;
};

static inline void qhca_list_init(struct qhca_list *l)
{
    l->prev = l->next = l;
}

static inline bool qhca_list_empty(const struct qhca_list *l)
{
    return l->next == l;
}

static inline void qhca_list_add_tail(struct qhca_list *head,
                                      struct qhca_list *n)
{
    n->prev = head->prev;
    n->next = head;
    head->prev->next = n;
    head->prev = n;
}

/*
 * Safe on a node that is on no list, as long as it was initialised. (The
 * analyzer does not see that a node is off the list when it is freed.)
 */
static inline void qhca_list_del(struct qhca_list *n)
{
    n->prev->next = n->next;    /* NOLINT(clang-analyzer-unix.Malloc) */
    n->next->prev = n->prev;
    qhca_list_init(n);
}

/* ---- table.c: object numbers ---- */

/*
 * struct qhca_table - objects of one kind by number
 *
 * Numbers are below 2^24 and random, and one that was freed does not come back
 * soon (conformance A-022). Iteration is by slot.
 */
struct qhca_table {
    void **slot;                /* in buckets, by the low bits of the number */
    uint32_t *number;           /* in use, or last used, per slot; 0: never */
    uint32_t *freed;            /* @frees when it was freed, per slot */
    uint32_t max;               /* objects */
    uint32_t size;              /* slots */
    uint32_t used, frees;
    struct qhca_engine *e;
};

/* 32 bits from ops->random. */
uint32_t qhca_random(struct qhca_engine *e);
/* For up to @max objects, of 2^20 at most. False: no memory. */
bool qhca_table_init(struct qhca_table *t, struct qhca_engine *e, uint32_t max);
void qhca_table_free(struct qhca_table *t);
/* Gives @obj a number, never 0, 1 or 0xffffff; 0 if the table is full. */
uint32_t qhca_table_add(struct qhca_table *t, void *obj);
/* The object of a number, or NULL; the number may come from the guest. */
void *qhca_table_get(const struct qhca_table *t, uint32_t number);
/* Takes the object of a number that is in use out of the table. */
void qhca_table_del(struct qhca_table *t, uint32_t number);
/* Nothing is remembered of the numbers of before; there are no objects. */
void qhca_table_forget(struct qhca_table *t);
/* Whether @number, which no object has or had, can be that of slot @i. */
bool qhca_table_fits(const struct qhca_table *t, uint32_t i, uint32_t number);
/* @i, or the first slot behind a row of buckets, from @i on, never used. */
uint32_t qhca_table_skip(const struct qhca_table *t, uint32_t i);
/* What its slots take. */
struct qhca_holding qhca_table_holding(const struct qhca_table *t,
                                       const char *what);
/* The object in slot *@i or the next one that has any; *@i goes behind it. */
static inline void *qhca_table_next(const struct qhca_table *t, uint32_t *i)
{
    while (t->used > 0 && (*i = qhca_table_skip(t, *i)) < t->size) {
        void *obj = t->slot[(*i)++];

        if (obj) {
            return obj;
        }
    }
    return NULL;
}

/*
 * The same as far as the budget goes, a unit for some slots; NULL also if
 * that is at its end before *@i is.
 */
void *qhca_table_scan(struct qhca_engine *e, const struct qhca_table *t,
                      uint32_t *i);

/* Visits every object of @t; the body may delete the one it is given. */
#define qhca_table_each(t, obj) \
    for (uint32_t i_ = 0; ((obj) = qhca_table_next((t), &i_)) != NULL;)

/* ---- timer.c: any number of deadlines on one host timer ---- */

struct qhca_timer {
    uint64_t deadline;
    uint32_t pos;               /* 1-based place in the heap; 0: not running */
    void (*fn)(struct qhca_engine *e, struct qhca_timer *t);
};

struct qhca_timers {
    struct qhca_timer **heap;   /* the one due first at [0] */
    uint32_t used, size;
    uint64_t armed;             /* deadline given to ops->set_timer */
};

/*
 * Room for @num_timers more. Each room asks once, for all the objects that it
 * can have, so that starting a timer cannot fail. False: no memory.
 */
bool qhca_timers_provide(struct qhca_engine *e, uint32_t num_timers);
/* (Re)starts @t to expire at @deadline. */
void qhca_timer_set(struct qhca_engine *e, struct qhca_timer *t,
                    uint64_t deadline);
/* The same if that is over: it expires with what is due. */
void qhca_timer_put(struct qhca_engine *e, struct qhca_timer *t,
                    uint64_t deadline);
void qhca_timer_cancel(struct qhca_engine *e, struct qhca_timer *t);
/* Runs what is due, a unit each; false: all of that has been run. */
bool qhca_timers_expire(struct qhca_engine *e);
/*
 * Tells ops->set_timer when that is next, or that it is @wake if that is
 * sooner, if it has changed.
 */
void qhca_timers_sync(struct qhca_engine *e, uint64_t wake);

/* ---- pace.c: rates ---- */

#define QHCA_PACE_NS        1000000u

/* struct qhca_pace - a rate, which holds on average */
struct qhca_pace {
    uint64_t cost;              /* picoseconds per piece; 0: no limit */
    uint64_t slack;             /* nanoseconds of it that may be owed */
    uint64_t paid;              /* when what has been taken will be paid for */
};

/* How many pieces may be taken at @now, of @max. */
unsigned qhca_pace_left(const struct qhca_pace *p, uint64_t now, unsigned max);
/* Takes @n, which may be more than that. */
void qhca_pace_take(struct qhca_pace *p, uint64_t now, uint64_t n);

/* ---- fifo.c: frames on their way ---- */

#define QHCA_FIFO_FRAMES 128u

/* struct qhca_fifo - bounded FIFO of frames */
struct qhca_fifo {
    uint8_t *data;              /* QHCA_FIFO_FRAMES * QHCA_MAX_FRAME, lazily */
    uint16_t len[QHCA_FIFO_FRAMES];
    uint32_t from[QHCA_FIFO_FRAMES];
    uint32_t head, tail;       /* free-running: read at head, written at tail */
};

/*
 * Appends a copy. @from: number of the QP that has sent it, if that matters.
 * False: no room, no memory, or longer than any frame.
 */
bool qhca_fifo_push(struct qhca_fifo *f, const uint8_t *frame, size_t len,
                    uint32_t from);
/* The oldest frame, valid until qhca_fifo_pop(), or NULL. */
const uint8_t *qhca_fifo_peek(const struct qhca_fifo *f, size_t *len,
                              uint32_t *from);
void qhca_fifo_pop(struct qhca_fifo *f);
/* Empties it. */
void qhca_fifo_free(struct qhca_fifo *f);
static inline uint32_t qhca_fifo_used(const struct qhca_fifo *f)
{
    return f->tail - f->head;
}
/* What it takes. */
struct qhca_holding qhca_fifo_holding(const struct qhca_fifo *f,
                                      const char *what);

/* ---- commands ---- */

/*
 * What a command handler works with. @cmd was read from guest memory once.
 * @mbox holds the mailbox, zeroed: read before the handler runs for opcodes
 * with an "in" mailbox, written after success for those with "out".
 */
struct qhca_cmd_ctx {
    const struct qhca_cmd *cmd;
    uint8_t *mbox;
    uint32_t obj;               /* answer: object number */
    /* Kept from one call to the next: */
    bool again;                 /* not the first one */
    uint32_t from, done;        /* the handler's own */
    struct qhca_import import[2];   /* not taken: dropped with the command */
};

enum qhca_mbox_dir { QHCA_NO_MBOX, QHCA_MBOX_IN, QHCA_MBOX_OUT };

/*
 * struct qhca_command - one opcode
 *
 * Each file that has objects exports its commands as an array that ends with
 * an empty row; handlers return enum qhca_cmd_status, or
 * QHCA_AGAIN if the budget does not do for all of it: then they are called
 * again later, and check anew what may have changed.
 */
#define QHCA_AGAIN      (-1)

struct qhca_command {
    const char *name;
    int (*run)(struct qhca_engine *e, struct qhca_cmd_ctx *c);
    uint16_t opcode;
    uint8_t dir;                /* enum qhca_mbox_dir */
    uint16_t mbox_len;
};

#define QHCA_COMMAND(op, fn) \
    { .name = #op, .run = fn, .opcode = QHCA_CMD_##op }
#define QHCA_COMMAND_IN(op, fn, type) \
    { .name = #op, .run = fn, .opcode = QHCA_CMD_##op, .dir = QHCA_MBOX_IN, \
      .mbox_len = sizeof(type) }
#define QHCA_COMMAND_OUT(op, fn, type) \
    { .name = #op, .run = fn, .opcode = QHCA_CMD_##op, .dir = QHCA_MBOX_OUT, \
      .mbox_len = sizeof(type) }

/* ---- holder.c: objects that only hold others together ---- */

/*
 * struct qhca_holder - what a PD, an XRC domain, a set of counters begins with
 * @number: in its table
 * @users: objects that belong to it; it can go when there are none
 */
struct qhca_holder {
    uint32_t number, users;
};

/* Makes one of @size bytes, zeroed; enum qhca_cmd_status, as the next. */
int qhca_holder_alloc(struct qhca_table *t, size_t size,
                      struct qhca_cmd_ctx *c);
/* That of the command goes. */
int qhca_holder_dealloc(struct qhca_table *t, struct qhca_cmd_ctx *c);
/* All go (reset). */
void qhca_holder_free_all(struct qhca_table *t);

/* ---- snapshot.c, snapobj.c: the state, to a file and back ---- */

#include "snapshot.h"

/* ---- core.c: the engine, as every room sees it ---- */

/*
 * struct qhca_engine - the device: what every room needs, and where each room
 * keeps what is its own, which only the rooms below can look into
 */
struct qhca_engine {
    struct qhca_engine_config cfg;
    const struct qhca_engine_ops *ops;
    void *opaque;
    uint64_t now;               /* of the entry point being served */
    unsigned spent, limit;      /* units of work in it, see qhca_spend() */
    uint8_t state;              /* enum qhca_state */
    uint8_t fatal;              /* enum qhca_fatal */
    bool reset_wanted;          /* silent until the entry point resets it */
    uint8_t fault_points;       /* where fault rules look, a bit each */
    uint32_t table_blocks;      /* block addresses held, of MAX_TABLE_BLOCKS */
    struct qhca_timers timers;
    uint64_t cnt[QHCA_CNT_MAX];

    struct qhca_faults *faults;
    struct qhca_memory *memory;
    struct qhca_queues *queues;
    struct qhca_port *port;
    struct qhca_qps *qps;
    struct qhca_receive *receive;
    struct qhca_eth *eth;
    struct qhca_device *device;
};

/*
 * struct qhca_room - what a room with state of its own has to offer
 * @init: once; false: no memory
 * @reset: everything goes, without events; the rooms below have done so before
 * @fini: gives back what @init took
 * @holdings: writes down what memory the room has, and returns how many kinds
 * @commands: of its files, up to NULL
 * @section: name of its part of a saved state, which is written as @version and
 *           loaded from @oldest on
 * @walk: over that; on load the rooms above have done so, and the room is as
 *        after @reset
 */
struct qhca_room {
    bool (*init)(struct qhca_engine *e);
    void (*reset)(struct qhca_engine *e);
    void (*fini)(struct qhca_engine *e);
    unsigned (*holdings)(const struct qhca_engine *e, struct qhca_holding *h);
    const struct qhca_command *const *commands;
    const char *section;
    uint16_t version, oldest;
    void (*walk)(struct qhca_snap *s);
};

extern const struct qhca_room qhca_core_room;

/* Counts what is of no QP; else qhca_count_qp(). */
static inline void qhca_count(struct qhca_engine *e, enum qhca_counter which)
{
    e->cnt[which]++;
}

static inline void qhca_trace(struct qhca_engine *e, enum qhca_trace_point p,
                              uint64_t a, uint64_t b, uint64_t c)
{
    e->ops->trace(e->opaque, p, a, b, c);
}

/* Before anything is written that the driver is to believe. */
static inline void qhca_tamper(struct qhca_engine *e, enum qhca_told what,
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
static inline bool qhca_running(const struct qhca_engine *e)
{
    return e->state == QHCA_STATE_RUNNING && !e->reset_wanted;
}

/*
 * Work is counted in units and bounded. A unit is an access to guest memory, a
 * frame that comes or goes, or a look at objects, of up to QHCA_UNIT_*: half a
 * microsecond or less. Who works says so, and asks before each step whether to
 * go on; @e->limit is set by the run loop.
 */
static inline void qhca_spend(struct qhca_engine *e, unsigned units)
{
    e->spent += units;
}

/* The same for what has @len bytes, a unit for each @per. */
static inline void qhca_spend_bytes(struct qhca_engine *e, size_t len,
                                    unsigned per)
{
    qhca_spend(e, MAX_OF((unsigned)(len / per), 1u));
}

/* False: what is left to do waits for its next turn. */
static inline bool qhca_may_go_on(const struct qhca_engine *e)
{
    return e->spent < e->limit && qhca_running(e);
}

/*
 * The guest's driver made a mistake: one printf-formatted line for its author.
 */
__attribute__((format(printf, 2, 3)))
void qhca_guest_error(struct qhca_engine *e, const char *fmt, ...);

#endif /* QHCA_ENGINE_CORE_H */
