/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: structures and services shared by the engine's own files.
 *
 * Reading order: util.h, objects.h, this header; engine.c (life cycle and entry
 * points), regs.c, doorbell.c; cmdq.c (how a command reaches its handler); the
 * object files; then wire.h and the transport: requester.c, responder.c,
 * completer.c.
 */
#ifndef QHCA_ENGINE_INTERNAL_H
#define QHCA_ENGINE_INTERNAL_H

#include "objects.h"

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
int qhca_cmd_alloc_cntset(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_dealloc_cntset(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_query_cntset(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_bind_cntset(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_alloc_xrcd(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_dealloc_xrcd(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_reg_mr(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_rereg_mr(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_dereg_mr(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_alloc_mw(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_dealloc_mw(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_create_cq(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_destroy_cq(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_query_cq(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_resize_cq(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_modify_cq(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_create_srq(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_destroy_srq(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_modify_srq(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_query_srq(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_resize_srq(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_create_qp(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_modify_qp(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_query_qp(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_destroy_qp(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_attach_mcast(struct qhca_engine *e, struct qhca_cmd_ctx *c);
int qhca_cmd_detach_mcast(struct qhca_engine *e, struct qhca_cmd_ctx *c);

/* Command doorbell: executes what is new. */
void qhca_cmdq_doorbell(struct qhca_engine *e, uint32_t pi);
/* Starts the queue that the base registers describe; false: they are wrong. */
bool qhca_cmdq_start(struct qhca_engine *e);

/* ---- run.c, regs.c, doorbell.c ---- */

/* The run loop: the tail of every entry point. */
void qhca_run(struct qhca_engine *e);

uint32_t qhca_reg_read(struct qhca_engine *e, unsigned off);
void qhca_reg_write(struct qhca_engine *e, unsigned off, uint32_t val);
void qhca_doorbell(struct qhca_engine *e, unsigned page, unsigned off,
                   uint64_t val);

/* ---- object files: everything of a kind goes (reset), without events ---- */

void qhca_pd_free_all(struct qhca_engine *e);
void qhca_xrcd_free_all(struct qhca_engine *e);
void qhca_cntset_free_all(struct qhca_engine *e);
void qhca_mw_free_all(struct qhca_engine *e);
void qhca_mr_free_all(struct qhca_engine *e);
void qhca_cq_free_all(struct qhca_engine *e);
void qhca_srq_free_all(struct qhca_engine *e);
void qhca_eq_free_all(struct qhca_engine *e);
void qhca_mcast_free_all(struct qhca_engine *e);

/* ---- what the transport (qp.c, roce.c) gives the rest ---- */

struct qhca_qp;

/*
 * SQ, RQ and SRQ doorbells. False: no such queue on that page, or index out of
 * range.
 */
bool qhca_qp_doorbell_sq(struct qhca_engine *e, unsigned page, uint32_t qpn,
                         uint32_t pi);
bool qhca_qp_doorbell_rq(struct qhca_engine *e, unsigned page, uint32_t qpn,
                         uint32_t pi);
bool qhca_srq_doorbell(struct qhca_engine *e, unsigned page, uint32_t srqn,
                       uint32_t pi);
/* CQ @cq failed: QPs that use it get QP_FATAL and go to ERR (H-002, C-029). */
void qhca_qp_cq_failed(struct qhca_engine *e, struct qhca_cq *cq);
/*
 * A frame whose Ethernet destination is the port's or a multicast one, whose IP
 * protocol is UDP with destination port 4791 and whose IP destination is a GID
 * of the port: from the network or looped back. @frame starts at the Ethernet
 * header, @len ends with the ICRC or Ethernet padding. @from: number of the QP
 * that has sent it, if it is looped back, else 0.
 */
void qhca_roce_rx(struct qhca_engine *e, const uint8_t *frame, size_t len,
                  uint32_t from);
/* Whether RoCE packets to a multicast GID are wanted; mcast.c. */
bool qhca_mcast_wanted(const struct qhca_engine *e, const uint8_t *gid);
/* The Ethernet address of a multicast GID. */
void qhca_mcast_mac(const uint8_t *gid, uint8_t *mac);
/*
 * Does a bounded part of the work of the QP at the head of the ready list, and
 * takes it off when nothing is left that can be done now. Returns the cost in
 * packets, at least 1.
 */
unsigned qhca_qp_work(struct qhca_engine *e, struct qhca_qp *qp);
/* Puts the QP's node on the ready list if it is not there. */
void qhca_qp_schedule(struct qhca_engine *e, struct qhca_qp *qp);
/* The QP whose ready node is @n. */
struct qhca_qp *qhca_qp_of_ready(struct qhca_list *n);
/* The network takes frames again: QPs that wait for it go on. */
void qhca_qp_tx_ready(struct qhca_engine *e);
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

#define QHCA_TSO_HDR    256     /* Ethernet, IP and TCP headers with options */

/*
 * struct qhca_tso - the way of a large TCP segment
 *
 * Each frame's headers are put in front of its part of the payload, over what
 * has been sent before; @hdr is what they are made from.
 */
struct qhca_tso {
    bool active;                /* not all of it is sent */
    bool ipv4;
    uint16_t l3, l4, hdr_len;   /* offsets in @hdr, its length */
    uint16_t mss, pieces;       /* that are sent */
    uint32_t payload;           /* where it starts in the gathered data */
    uint32_t len, done;         /* bytes of payload: all, sent */
    uint32_t wire_len;          /* bytes of all frames sent */
    uint8_t hdr[QHCA_TSO_HDR + QHCA_VLAN_ROOM];
};

/*
 * struct qhca_eth_gather - the Ethernet frame that is being put together
 *
 * It outlives a doorbell: each WQE is read once and its data taken then,
 * however many doorbells a frame is spread over.
 */
struct qhca_eth_gather {
    bool active;
    uint8_t status;             /* enum qhca_cqe_status the frame will have */
    /* The first fragment's: */
    uint16_t flags, vlan_tci, csum_start, csum_offset, mss;
    uint32_t frags;
    uint32_t len;
    uint64_t wr_id;             /* last fragment's, as it came */
    struct qhca_tso tso;
    uint8_t data[QHCA_VLAN_ROOM + QHCA_MAX_TSO];    /* room to insert a tag */
};

/* The room of device/: what the guest's driver talks to. */
struct qhca_device {
    uint32_t clock_hi;          /* latched by reading CLOCK_LO */
    struct qhca_cmdq cmdq;
    _Alignas(8) uint8_t mbox[QHCA_PAGE_SIZE];  /* of the command in execution */

    /*
     * Callbacks should not call back into the engine, but a guest can aim DMA
     * at the device's own BARs, and a network of the same process can answer a
     * frame before the call that sends it returns. What comes while @busy is
     * put here (or refused) and served when the entry point is about to return.
     */
    bool busy;
    bool link_changed, link_wanted, run_wanted, tx_wanted;
    struct qhca_fifo late;      /* frames that arrived meanwhile */
};

struct qhca_eth {
    struct qhca_ethq queue[QHCA_MAX_ETHQ];
    struct qhca_eth_gather gather;
};

/* struct qhca_memory - protection domains, and what keys name */
struct qhca_memory {
    struct qhca_table pd, mr;
    uint32_t num_mw;            /* objects in mr that are windows */
    /* Last one used, by table slot. */
    uint8_t mr_variant[QHCA_MAX_MR + QHCA_MAX_MW];
    struct qhca_mr reserved_mr;         /* what the reserved key stands for */
    struct qhca_mr null_mr;             /* and the null key */
};

struct qhca_queues {
    struct qhca_eq eq[QHCA_MAX_EQ];
    struct qhca_table cq;
    struct qhca_list failed;    /* CQs whose users do not know yet */
};

struct qhca_qps {
    struct qhca_table table, cntset;
    struct qhca_qp *gsi;        /* QP 1, or NULL */
    struct qhca_list ready;     /* QPs with work to do */
    struct qhca_list tx_wait;   /* QPs that the network had no room for */
    uint64_t set_cnt[QHCA_CNT_MAX]; /* of e->cnt, since the reset, in sets */
};

struct qhca_receive {
    struct qhca_table srq, xrcd;
    uint32_t rwr_nodes;         /* struct qhca_rwr_node, of all SRQs and QPs */
};

/*
 * struct qhca_engine - the device: what every room needs, and where the rooms
 * have theirs
 */
struct qhca_engine {
    struct qhca_engine_config cfg;
    const struct qhca_engine_ops *ops;
    void *opaque;
    uint64_t now;               /* of the entry point being served */
    uint64_t rng;
    uint8_t state;              /* enum qhca_state */
    uint8_t fatal;              /* enum qhca_fatal */
    bool reset_wanted;          /* silent until the entry point resets it */
    uint32_t table_blocks;      /* block addresses held, of MAX_TABLE_BLOCKS */
    struct qhca_timers timers;
    uint64_t cnt[QHCA_CNT_MAX];

    struct qhca_memory *memory;
    struct qhca_queues *queues;
    struct qhca_port *port;
    struct qhca_qps *qps;
    struct qhca_receive *receive;
    struct qhca_eth *eth;
    struct qhca_device *device;
};

/* What is of no QP; else qhca_count_qp(). */
static inline void qhca_count(struct qhca_engine *e, enum qhca_counter which)
{
    e->cnt[which]++;
}

static inline void qhca_trace(struct qhca_engine *e, enum qhca_trace_point p,
                              uint64_t a, uint64_t b, uint64_t c)
{
    e->ops->trace(e->opaque, p, a, b, c);
}

/* Whether DMA, interrupts and frames are allowed. */
static inline bool qhca_running(const struct qhca_engine *e)
{
    return e->state == QHCA_STATE_RUNNING && !e->reset_wanted;
}

void qhca_raise_irq(struct qhca_engine *e, unsigned vector);

/* Back to power-on; the caller is at no place that holds an object. */
void qhca_reset(struct qhca_engine *e);

/*
 * The guest's driver made a mistake: one printf-formatted line for its author.
 */
__attribute__((format(printf, 2, 3)))
void qhca_guest_error(struct qhca_engine *e, const char *fmt, ...);

/* Stops the device: no DMA, no interrupt but that of the DEVICE_FATAL event. */
void qhca_fatal(struct qhca_engine *e, enum qhca_fatal reason);

#endif /* QHCA_ENGINE_INTERNAL_H */
