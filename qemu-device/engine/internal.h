/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: structures and services shared by the engine's own files.
 *
 * Reading order: this header; engine.c (life cycle, registers, run loop);
 * cmdq.c (how a command reaches its handler); the object files; then wire.h and
 * the transport: requester.c, responder.c, completer.c.
 */
#ifndef QHCA_ENGINE_INTERNAL_H
#define QHCA_ENGINE_INTERNAL_H

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
#define QHCA_MAX_CQ             16384u
#define QHCA_MAX_EQ             64u
#define QHCA_MAX_GID            128u
#define QHCA_MAX_MCAST          512u
#define QHCA_MAX_ETHQ           2u
#define QHCA_MAX_TABLE_BLOCKS   (16u << 20)
#define QHCA_MAX_MR_SIZE        (1ull << 36)
#define QHCA_CMD_LOG_MAX        8
#define QHCA_CQ_LOG_MAX         17
#define QHCA_WQ_LOG_MAX         14
#define QHCA_EQ_LOG_MAX         15
#define QHCA_ETHQ_LOG_MAX       12
#define QHCA_MAX_RD_ATOMIC      16
#define QHCA_MAX_MSG            (1u << 31)
#define QHCA_RESERVED_LKEY      0x00000100u
#define QHCA_MAX_FRAME          (14 + 4 + QHCA_ETH_MTU_MAX)

/* ---- list.h in four lines: intrusive doubly linked list with a head node ---- */

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

/* Safe on a node that is on no list, as long as it was initialised. */
static inline void qhca_list_del(struct qhca_list *n)
{
    n->prev->next = n->next;
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
    uint32_t number_bits;       /* 24, or less for a kind with fewer */
    uint64_t *rng;
};

bool qhca_table_init(struct qhca_table *t, uint32_t size, uint64_t *rng);
void qhca_table_free(struct qhca_table *t);
/* Gives @obj a number from @min (say 2) on; 0 if the table is full. */
uint32_t qhca_table_add(struct qhca_table *t, void *obj);
void *qhca_table_get(const struct qhca_table *t, uint32_t number);
void qhca_table_del(struct qhca_table *t, uint32_t number);
/* The object in slot @i, or NULL; for (i = 0; i < t->size; i++). */
static inline void *qhca_table_at(const struct qhca_table *t, uint32_t i)
{
    return t->slot[i];
}

uint64_t qhca_random(uint64_t *state);

/* ---- mem.c: guest memory described by struct qhca_buf ---- */

struct qhca_mem {
    uint64_t *block;            /* DMA address of each; NULL: contiguous */
    uint64_t base;              /* of the first block, if contiguous */
    uint32_t num_blocks;
    uint8_t block_shift;
};

/*
 * Reads the tables of @buf once. Returns QHCA_OK, QHCA_ERR_PARAM (shape, or less
 * than @min_len bytes), QHCA_ERR_LIMIT or QHCA_ERR_DMA; @mem is empty on error.
 */
int qhca_mem_import(struct qhca_engine *e, struct qhca_mem *mem,
                    const struct qhca_buf *buf, uint64_t min_len);
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
    struct qhca_timer **heap;
    uint32_t used, size;
    uint64_t armed;             /* deadline given to ops->set_timer */
};

/* (Re)starts @t to expire at @deadline; cannot fail (space is kept in advance
 * by qhca_timer_reserve(), which object creation calls once per timer). */
bool qhca_timer_reserve(struct qhca_engine *e, unsigned num_timers);
void qhca_timer_set(struct qhca_engine *e, struct qhca_timer *t,
                    uint64_t deadline);
void qhca_timer_cancel(struct qhca_engine *e, struct qhca_timer *t);
void qhca_timers_expire(struct qhca_engine *e);

/* ---- pd.c, mr.c ---- */

struct qhca_pd {
    uint32_t pdn;
    uint32_t users;             /* MRs and QPs; DEALLOC_PD needs 0 */
};

struct qhca_mr {
    uint32_t key;               /* number << 8 | variant */
    uint16_t access;
    uint8_t type;
    struct qhca_pd *pd;
    uint64_t iova, length;
    struct qhca_mem mem;
};

/* Who uses a key: @reserved allows QHCA_RESERVED_LKEY (kernel QPs). */
struct qhca_key_user {
    const struct qhca_pd *pd;
    bool reserved;
};

/*
 * Whether @key gives @user @access (QHCA_ACCESS_*; 0: local read) to all of
 * [@addr, @addr + @len), conformance F-004. NULL if not, counted as
 * QHCA_CNT_BAD_KEY. @len must not be 0 (a zero-length access is not checked).
 * DMA MRs and the reserved key never serve remote access.
 */
struct qhca_mr *qhca_mr_check(struct qhca_engine *e,
                              const struct qhca_key_user *user, uint32_t key,
                              uint64_t addr, uint64_t len, uint16_t access);
/* Copy to or from a range that qhca_mr_check() passed. False: DMA failed. */
bool qhca_mr_read(struct qhca_engine *e, struct qhca_mr *mr, uint64_t addr,
                  void *buf, size_t len);
bool qhca_mr_write(struct qhca_engine *e, struct qhca_mr *mr, uint64_t addr,
                   const void *buf, size_t len);
/* 8-byte atomics on a checked, aligned address. */
bool qhca_mr_cas(struct qhca_engine *e, struct qhca_mr *mr, uint64_t addr,
                 uint64_t compare, uint64_t swap, uint64_t *old);
bool qhca_mr_add(struct qhca_engine *e, struct qhca_mr *mr, uint64_t addr,
                 uint64_t add, uint64_t *old);

/* One SGE in CPU order. */
struct qhca_seg {
    uint64_t addr;
    uint32_t length;
    uint32_t lkey;
};

enum qhca_seg_result {
    QHCA_SEG_OK = 0,
    QHCA_SEG_KEY,               /* key, range or right missing */
    QHCA_SEG_DMA,               /* guest memory failed */
};

/*
 * Copies @len bytes between @buf and the byte range of the SGE list that starts
 * @off bytes in. Keys of the touched segments are checked each time (they may
 * have gone since). The range must be inside the list.
 */
enum qhca_seg_result qhca_segs_read(struct qhca_engine *e,
                                    const struct qhca_key_user *user,
                                    const struct qhca_seg *segs, unsigned n,
                                    uint64_t off, void *buf, size_t len);
enum qhca_seg_result qhca_segs_write(struct qhca_engine *e,
                                     const struct qhca_key_user *user,
                                     const struct qhca_seg *segs, unsigned n,
                                     uint64_t off, const void *buf, size_t len);
/* Whether every non-empty segment is valid for @access over its whole length. */
bool qhca_segs_check(struct qhca_engine *e, const struct qhca_key_user *user,
                     const struct qhca_seg *segs, unsigned n, uint16_t access);

/* ---- eq.c, cq.c ---- */

struct qhca_eq {
    bool used, async, armed;
    uint16_t vector;
    uint8_t log_size;
    uint32_t pi, ci;
    uint32_t users;             /* CQs that report here */
    struct qhca_mem mem;
    struct qhca_list pending;   /* CQs whose COMP event found the EQ full */
};

struct qhca_cq {
    uint32_t cqn, uar;
    struct qhca_eq *eq;
    struct qhca_mem mem;
    uint8_t log_size, state, arm;
    uint32_t pi, ci;            /* ci: as last read from the doorbell record */
    uint32_t arm_sn, event_sn;
    uint32_t users;             /* queues that complete here */
    struct qhca_list pending;   /* node in eq->pending */
};

/* Async event to the async EQ, if there is one. */
void qhca_event(struct qhca_engine *e, enum qhca_event type, uint32_t obj);
struct qhca_cq *qhca_cq_get(struct qhca_engine *e, uint32_t cqn);
/*
 * Appends @cqe (timestamp and owner are filled in here), raises the COMP event if
 * the CQ is armed for it: NEXT by any CQE, SOLICITED by an error or by
 * @solicited. On overrun, or if the ring cannot be written: CQ_ERR event, state
 * ERROR, and qhca_qp_cq_failed() for the QPs; a CQ in ERROR swallows CQEs.
 */
void qhca_cq_push(struct qhca_engine *e, struct qhca_cq *cq,
                  struct qhca_cqe *cqe, bool solicited);

/* ---- port.c, eth.c ---- */

struct qhca_gid {
    bool valid;
    bool ipv4;                  /* ::ffff:a.b.c.d */
    uint8_t gid[16];
    uint8_t smac[6];
    uint16_t vlan;              /* QHCA_NO_VLAN: untagged */
};

struct qhca_port {
    struct qhca_gid gid[QHCA_MAX_GID];
    uint8_t mac[6];
    uint8_t flags;              /* QHCA_PORT_* */
    uint32_t mtu;
    bool link;
    uint32_t num_mcast;
    uint8_t mcast[QHCA_MAX_MCAST][6];
    uint32_t bad_pkey, qkey_viol;
};

/* Index of @gid (16 bytes) on VLAN @vlan in the port's table, or -1. */
int qhca_gid_find(const struct qhca_engine *e, const uint8_t *gid,
                  uint16_t vlan);

/* A received frame of the Ethernet queue's. */
void qhca_eth_rx(struct qhca_engine *e, const uint8_t *frame, size_t len,
                 bool csum_ok);

/*
 * Sends a RoCE frame: @loop puts it in the port's own receive path (processed
 * by the run loop, never from inside this call), else it goes to the network,
 * waiting in the transmit FIFO while the network does not take frames. The frame
 * is copied. False: no room; the caller keeps the packet and is scheduled again
 * when there is (requests, READ responses); an ACK that finds no room is lost.
 */
bool qhca_tx(struct qhca_engine *e, const uint8_t *frame, size_t len, bool loop);
/* Whether @n more frames of any size would fit. */
bool qhca_tx_room(struct qhca_engine *e, bool loop, unsigned n);

/* struct qhca_fifo - bounded FIFO of frames, in fifo.c */
#define QHCA_FIFO_FRAMES 128
struct qhca_fifo {
    uint8_t *data;              /* QHCA_FIFO_FRAMES * QHCA_MAX_FRAME, lazily */
    uint16_t len[QHCA_FIFO_FRAMES];
    uint32_t head, tail;
};

/* ---- cmdq.c ---- */

/*
 * What a command handler works with. @cmd was read from guest memory once.
 * @mbox holds the mailbox: read before the handler runs for opcodes with an
 * "in" mailbox, written after success for those with "out".
 */
struct qhca_cmd_ctx {
    const struct qhca_cmd *cmd;
    uint8_t *mbox;
    uint32_t obj;               /* answer: object number */
};

/* Returns enum qhca_cmd_status. */
typedef int (*qhca_cmd_fn)(struct qhca_engine *e, struct qhca_cmd_ctx *c);

int qhca_cmd_query_device(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_query_port(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_set_port(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_set_mcast(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_set_gid(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_query_counters(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_create_eq(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_destroy_eq(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_create_ethq(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_destroy_ethq(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_alloc_pd(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_dealloc_pd(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_reg_mr(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_rereg_mr(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_dereg_mr(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_create_cq(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_destroy_cq(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_query_cq(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_resize_cq(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_create_qp(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_modify_qp(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_query_qp(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_destroy_qp(struct qhca_engine *e, struct qhca_cmd_ctx *c);

/* ---- what the transport (qp.c, roce.c) gives the rest ---- */

struct qhca_qp;

/* SQ and RQ doorbells. False: no such QP on that page, or index out of range. */
bool qhca_qp_doorbell_sq(struct qhca_engine *e, unsigned page, uint32_t qpn,
                         uint32_t pi);
bool qhca_qp_doorbell_rq(struct qhca_engine *e, unsigned page, uint32_t qpn,
                         uint32_t pi);
/* CQ @cq failed: QPs that use it get QP_FATAL and go to ERR (H-002, C-029). */
void qhca_qp_cq_failed(struct qhca_engine *e, struct qhca_cq *cq);
/*
 * A frame whose Ethernet destination is the port's or a multicast one, whose IP
 * protocol is UDP with destination port 4791 and whose IP destination is a GID
 * of the port: from the network or looped back. @frame starts at the Ethernet
 * header, @len ends with the ICRC or Ethernet padding.
 */
void qhca_roce_rx(struct qhca_engine *e, const uint8_t *frame, size_t len);
/*
 * Does a bounded part of the work the QP at the head of e->ready has; takes it
 * off the list when nothing is left that can be done now. Returns the cost in
 * packets, at least 1.
 */
unsigned qhca_qp_work(struct qhca_engine *e, struct qhca_qp *qp);
/* Puts the QP's node on e->ready if it is not there. */
void qhca_qp_schedule(struct qhca_engine *e, struct qhca_qp *qp);
/* The QP whose ready node is @n. */
struct qhca_qp *qhca_qp_of_ready(struct qhca_list *n);
/* Frees every QP without events or CQEs (reset). */
void qhca_qp_free_all(struct qhca_engine *e);

/* ---- the engine ---- */

struct qhca_cmdq {
    uint64_t sq, cq;
    uint8_t log_size;
    uint32_t pi, ci;            /* commands */
    uint32_t cq_pi;             /* completions */
};

struct qhca_ethq {
    bool used;
    uint8_t log_size;
    uint32_t number, pi, ci;
    struct qhca_cq *cq;
    struct qhca_mem mem;
};

struct qhca_engine {
    struct qhca_engine_config cfg;
    const struct qhca_engine_ops *ops;
    void *opaque;
    uint64_t now;               /* of the entry point being served */
    uint64_t rng;

    uint8_t state;              /* enum qhca_state */
    uint8_t fatal;              /* enum qhca_fatal */
    uint32_t clock_hi;          /* latched by reading CLOCK_LO */
    struct qhca_cmdq cmdq;

    struct qhca_eq eq[QHCA_MAX_EQ];
    struct qhca_table pd, mr, cq, qp;
    struct qhca_ethq ethq[QHCA_MAX_ETHQ];
    struct qhca_port port;
    uint32_t table_blocks;      /* block addresses held, of MAX_TABLE_BLOCKS */

    struct qhca_timers timers;
    struct qhca_list ready;     /* QPs with work to do */
    struct qhca_fifo loop;      /* frames to the port itself */
    struct qhca_fifo tx;        /* frames the network did not take */
    bool tx_blocked;

    uint64_t cnt[QHCA_CNT_MAX];
};

static inline void qhca_count(struct qhca_engine *e, enum qhca_counter which)
{
    e->cnt[which]++;
}

static inline void qhca_trace(struct qhca_engine *e, enum qhca_trace_point p,
                              uint64_t a, uint64_t b, uint64_t c)
{
    e->ops->trace(e->opaque, p, a, b, c);
}

/* The guest's driver made a mistake: one printf-formatted line for its author. */
__attribute__((format(printf, 2, 3)))
void qhca_guest_error(struct qhca_engine *e, const char *fmt, ...);

/* Stops the device: no DMA, no interrupt but that of the DEVICE_FATAL event. */
void qhca_fatal(struct qhca_engine *e, enum qhca_fatal reason);

#endif /* QHCA_ENGINE_INTERNAL_H */
