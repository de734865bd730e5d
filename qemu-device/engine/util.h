/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: services that know nothing of RDMA: lists, object numbers, guest
 * memory, timers, frame FIFOs.
 */
#ifndef QHCA_ENGINE_UTIL_H
#define QHCA_ENGINE_UTIL_H

#include <endian.h>
#include <string.h>

#include "engine.h"

#define container_of(ptr, type, member) \
    ((type *)((char *)(ptr) - offsetof(type, member)))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN_OF(a, b) ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))

/* Limits; qhca_fill_device_attr() in device.c advertises them. */
#define QHCA_MAX_PD             4096u
#define QHCA_MAX_MR             65536u
#define QHCA_MAX_MW             65536u
#define QHCA_MAX_FAST_REG       512u
#define QHCA_MAX_CQ             16384u
#define QHCA_MAX_EQ             64u
#define QHCA_MAX_GID            128u
#define QHCA_MAX_MCAST          512u
#define QHCA_MAX_MCAST_GRP      512u
#define QHCA_MAX_MCAST_QP       128u
#define QHCA_MAX_ETHQ           2u
#define QHCA_MAX_TABLE_BLOCKS   (16u << 20)
#define QHCA_MAX_MR_SIZE        (1ull << 36)
#define QHCA_CMD_LOG_MAX        8
#define QHCA_CQ_LOG_MAX         22
#define QHCA_WQ_LOG_MAX         14
#define QHCA_MAX_SRQ            4096u
#define QHCA_MAX_XRCD           4096u
#define QHCA_MAX_CNTSET         4096u
#define QHCA_SRQ_LOG_MAX        14
/* Receive WRs that QPs hold for SRQs, or SRQs were given back, per QP. */
#define QHCA_RWR_NODES_PER_QP   16u
#define QHCA_MAX_CQ_COUNT       65535u
#define QHCA_MAX_CQ_PERIOD      65535u
#define QHCA_EQ_LOG_MAX         15
#define QHCA_ETHQ_LOG_MAX       12
#define QHCA_MAX_RD_ATOMIC      16
#define QHCA_MAX_MSG            (1u << 31)
/* Keys of number 1, which the table of regions does not give out. */
#define QHCA_RESERVED_LKEY      0x00000100u
#define QHCA_NULL_LKEY          0x00000102u
#define QHCA_MAX_FRAME          (14 + 2 * QHCA_VLAN_ROOM + QHCA_ETH_MTU_MAX)
#define QHCA_VLAN_ROOM               4
/* A frame to be cut up: 64 KiB of IP, and what is in front of it. */
#define QHCA_MAX_TSO            (65536 + 64)

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
 * Numbers are below 2^24, are not handed out in sequence, and one that was just
 * freed comes back last (conformance A-022). Iteration is by slot.
 */
struct qhca_table {
    void **slot;                /* by low bits of the number */
    uint32_t *number;           /* number in use, or last used, per slot */
    uint32_t *free_slot;        /* FIFO of free slots */
    uint32_t size, used, head;
    uint32_t slot_mask;         /* low bits of a number that name its slot */
    uint64_t *rng;
};

bool qhca_table_init(struct qhca_table *t, uint32_t size, uint64_t *rng);
void qhca_table_free(struct qhca_table *t);
/* Gives @obj a number, never 0, 1 or 0xffffff; 0 if the table is full. */
uint32_t qhca_table_add(struct qhca_table *t, void *obj);
void *qhca_table_get(const struct qhca_table *t, uint32_t number);
void qhca_table_del(struct qhca_table *t, uint32_t number);
/* The object in slot @i, or NULL; for (i = 0; i < t->size; i++). */
static inline void *qhca_table_at(const struct qhca_table *t, uint32_t i)
{
    return t->slot[i];
}

/* Visits the objects of @t; the one at hand may be deleted. */
#define qhca_table_each(t, obj)                                     \
    for (uint32_t i_ = 0; i_ < (t)->size && (t)->used > 0; i_++)    \
        if (((obj) = qhca_table_at((t), i_)))

uint64_t qhca_random(uint64_t *state);

/* ---- mem.c: guest memory described by struct qhca_buf ---- */

struct qhca_mem {
    uint64_t *block;            /* DMA address of each; NULL: contiguous */
    uint64_t base;              /* of the first block, if contiguous */
    uint32_t num_blocks;
    uint8_t block_shift;
};

/*
 * Reads the tables of @buf once. Returns QHCA_OK, QHCA_ERR_PARAM (shape, or
 * less than @min_len bytes), QHCA_ERR_LIMIT or QHCA_ERR_DMA; @mem is empty on
 * error.
 */
int qhca_mem_import(struct qhca_engine *e, struct qhca_mem *mem,
                    const struct qhca_buf *buf, uint64_t min_len);
/* Room for @num_blocks addresses, which qhca_mem_fill() reads from a list. */
int qhca_mem_reserve(struct qhca_engine *e, struct qhca_mem *mem,
                     uint32_t num_blocks);
int qhca_mem_fill(struct qhca_engine *e, struct qhca_mem *mem, uint64_t table,
                  uint32_t num_blocks, uint8_t block_shift);
void qhca_mem_release(struct qhca_engine *e, struct qhca_mem *mem);
/* Copies at byte offset @off; the range must be inside. False: DMA failed. */
bool qhca_mem_read(struct qhca_engine *e, const struct qhca_mem *mem,
                   uint64_t off, void *buf, size_t len);
bool qhca_mem_write(struct qhca_engine *e, const struct qhca_mem *mem,
                    uint64_t off, const void *buf, size_t len);
/* DMA address of the byte at @off. */
uint64_t qhca_mem_addr(const struct qhca_mem *mem, uint64_t off);

/* Plain DMA, counted (QHCA_CNT_DMA_ERR) when it fails. */
bool qhca_dma_read(struct qhca_engine *e, uint64_t addr, void *buf, size_t len);
bool qhca_dma_write(struct qhca_engine *e, uint64_t addr, const void *buf,
                    size_t len);

/* ---- timer.c: any number of deadlines on one host timer ---- */

struct qhca_timer {
    uint64_t deadline;
    uint32_t pos;               /* 1-based place in the heap; 0: not running */
    void (*fn)(struct qhca_engine *e, struct qhca_timer *t);
};

struct qhca_timers {
    struct qhca_timer **heap;   /* the one due first at [0] */
    uint32_t used, size, reserved;
    uint64_t armed;             /* deadline given to ops->set_timer */
};

/*
 * (Re)starts @t to expire at @deadline; cannot fail: space is kept in advance
 * by qhca_timer_reserve(), which object creation calls once per timer, and
 * given back by qhca_timer_unreserve() when the object goes, its timers
 * cancelled.
 */
bool qhca_timer_reserve(struct qhca_engine *e, unsigned num_timers);
void qhca_timer_unreserve(struct qhca_engine *e, unsigned num_timers);
void qhca_timer_set(struct qhca_engine *e, struct qhca_timer *t,
                    uint64_t deadline);
void qhca_timer_cancel(struct qhca_engine *e, struct qhca_timer *t);
/*
 * Runs what is due; a timer that its own function sets again waits for a tick.
 */
void qhca_timers_expire(struct qhca_engine *e);
/* Tells ops->set_timer when that is next, if it has changed. */
void qhca_timers_sync(struct qhca_engine *e);

/* ---- fifo.c: frames on their way ---- */

/* struct qhca_fifo - bounded FIFO of frames, in fifo.c */
#define QHCA_FIFO_FRAMES 128u
struct qhca_fifo {
    uint8_t *data;              /* QHCA_FIFO_FRAMES * QHCA_MAX_FRAME, lazily */
    uint16_t len[QHCA_FIFO_FRAMES];
    uint32_t from[QHCA_FIFO_FRAMES];
    uint32_t head, tail;       /* free-running: read at head, written at tail */
};

/* @from: number of the QP that has sent it, if that matters. */
bool qhca_fifo_push(struct qhca_fifo *f, const uint8_t *frame, size_t len,
                    uint32_t from);
/* The oldest frame, valid until qhca_fifo_pop(), or NULL. */
const uint8_t *qhca_fifo_peek(const struct qhca_fifo *f, size_t *len,
                              uint32_t *from);
void qhca_fifo_pop(struct qhca_fifo *f);
void qhca_fifo_free(struct qhca_fifo *f);
static inline uint32_t qhca_fifo_used(const struct qhca_fifo *f)
{
    return f->tail - f->head;
}

#endif /* QHCA_ENGINE_UTIL_H */
