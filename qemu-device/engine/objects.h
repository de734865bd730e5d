/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the objects the transport works with and on: protection domains,
 * memory regions, event and completion queues, the port.
 */
#ifndef QHCA_ENGINE_OBJECTS_H
#define QHCA_ENGINE_OBJECTS_H

#include "util.h"

/* ---- pd.c, mr.c, mw.c, key.c ---- */

struct qhca_pd {
    uint32_t pdn;
    uint32_t users;             /* MRs, MWs, SRQs, QPs; DEALLOC_PD needs 0 */
};

/* struct qhca_mr - what a key names: a memory region, or a window on one */
struct qhca_mr {
    uint32_t key;               /* number << 8 | variant */
    uint16_t access;
    uint8_t type;               /* enum qhca_mr_type */
    uint8_t window;             /* enum qhca_mw_type, 0: a region */
    bool valid;                 /* registered, bound; else IBTA's state Free */
    struct qhca_pd *pd;
    uint64_t iova, length;
    /* A region's: */
    uint32_t offset;            /* of the byte at iova, in the first block */
    uint32_t windows;           /* bound to it */
    struct qhca_mem mem;
    /* A valid window's: */
    struct qhca_mr *region;
    uint64_t base;              /* address in the region of the byte at iova */
    struct qhca_key_user *binder;   /* type 2: the QP it was bound on */
};

#define QHCA_ACCESS_REMOTE  (QHCA_ACCESS_REMOTE_WRITE | \
                             QHCA_ACCESS_REMOTE_READ | \
                             QHCA_ACCESS_REMOTE_ATOMIC | \
                             QHCA_ACCESS_FLUSH_GLOBAL | \
                             QHCA_ACCESS_FLUSH_PERSISTENT)

/* Who uses keys: @reserved allows QHCA_RESERVED_LKEY (kernel QPs). */
struct qhca_key_user {
    const struct qhca_pd *pd;
    uint32_t qpn;
    uint32_t windows;           /* of type 2, bound to it */
    bool reserved;
};

/* struct qhca_memop - REG_MR, BIND_MW or LOCAL_INV, in CPU order */
struct qhca_memop {
    uint32_t key;               /* the new one; LOCAL_INV: the one to go */
    uint32_t mr_key;            /* BIND_MW: the region */
    uint64_t addr, length;
    uint64_t table;             /* REG_MR: this and the next three */
    uint32_t num_blocks, offset;
    uint8_t block_shift;
    uint16_t access;
};

/* The object of that very key, valid or not, or NULL. */
struct qhca_mr *qhca_mr_get(struct qhca_engine *e, uint32_t key);
/* The object of @key's number, whatever the variant. */
struct qhca_mr *qhca_mr_by_number(struct qhca_engine *e, uint32_t key);
/* A new object's number and key. False: there are too many. */
bool qhca_mr_add_key(struct qhca_engine *e, struct qhca_mr *mr);
/* They go; the next object of that number will have another variant (F-007). */
void qhca_mr_del_key(struct qhca_engine *e, struct qhca_mr *mr);
/* Whether a region may have these rights (F-002). */
bool qhca_access_ok(uint16_t access);
/* Byte-exact, and without the sum of two guest values that could wrap. */
bool qhca_mr_in_range(const struct qhca_mr *mr, uint64_t addr, uint64_t len);

/*
 * Memory management work requests of a QP; enum qhca_cqe_status. The caller has
 * put them in order.
 */
enum qhca_cqe_status qhca_mr_fast_reg(struct qhca_engine *e,
                                      const struct qhca_key_user *user,
                                      const struct qhca_memop *op);
/* The window holds on to @user until it is unbound. */
enum qhca_cqe_status qhca_mw_bind(struct qhca_engine *e,
                                  struct qhca_key_user *user,
                                  const struct qhca_memop *op);
/* Makes @key's object Free. @remote: the peer of the user asks for it. */
bool qhca_mr_invalidate(struct qhca_engine *e, const struct qhca_key_user *user,
                        uint32_t key, bool remote);
/* Takes a window off its region, if it is bound. */
void qhca_mw_unbind(struct qhca_mr *mw);
/* The QP goes: false if windows keep it (F-054), else they are unbound. */
bool qhca_mw_release_user(struct qhca_engine *e, struct qhca_key_user *user);

/*
 * Whether @key gives @user @access (QHCA_ACCESS_*; 0: local read) to all of
 * [@addr, @addr + @len), conformance F-004. NULL if not, counted as
 * QHCA_CNT_BAD_KEY. @len must not be 0 (a zero-length access is not checked).
 * DMA MRs and the reserved key never serve remote access.
 */
struct qhca_mr *qhca_mr_check(struct qhca_engine *e,
                              const struct qhca_key_user *user, uint32_t key,
                              uint64_t addr, uint64_t len, uint16_t access);
/* The same for all there is behind @key, whatever the range. */
struct qhca_mr *qhca_mr_check_whole(struct qhca_engine *e,
                                    const struct qhca_key_user *user,
                                    uint32_t key, uint16_t access);
/* Copy to or from a range that qhca_mr_check() passed. False: DMA failed. */
bool qhca_mr_read(struct qhca_engine *e, const struct qhca_mr *mr,
                  uint64_t addr, void *buf, size_t len);
bool qhca_mr_write(struct qhca_engine *e, const struct qhca_mr *mr,
                   uint64_t addr, const void *buf, size_t len);
/* 8-byte atomics on a checked, aligned address. */
bool qhca_mr_cas(struct qhca_engine *e, const struct qhca_mr *mr,
                 uint64_t addr, uint64_t compare, uint64_t swap, uint64_t *old);
bool qhca_mr_add(struct qhca_engine *e, const struct qhca_mr *mr,
                 uint64_t addr, uint64_t add, uint64_t *old);
bool qhca_mr_store(struct qhca_engine *e, const struct qhca_mr *mr,
                   uint64_t addr, const uint8_t *bytes);

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
/*
 * Whether every non-empty segment is valid for @access over its whole length.
 */
bool qhca_segs_check(struct qhca_engine *e, const struct qhca_key_user *user,
                     const struct qhca_seg *segs, unsigned n, uint16_t access);

/* ---- eq.c, cq.c ---- */

/* More types of asynchronous events than any object has. */
#define QHCA_ASYNC_TYPES    8

/*
 * struct qhca_async - what asynchronous events of one object need
 *
 * Events that find the EQ full wait here, one of each type, oldest first: so
 * objects pay for their events, and no user can make one of another's be lost.
 */
struct qhca_async {
    struct qhca_list node;      /* in the pending list of the async EQ */
    uint32_t obj;               /* the number events carry */
    uint8_t waiting;            /* how many of: */
    uint8_t type[QHCA_ASYNC_TYPES];
};

static inline void qhca_async_init(struct qhca_async *a, uint32_t obj)
{
    memset(a, 0, sizeof(*a));
    qhca_list_init(&a->node);
    a->obj = obj;
}

/* The object goes, and with it what it had to say. */
static inline void qhca_async_del(struct qhca_async *a)
{
    qhca_list_del(&a->node);
    a->waiting = 0;
}

struct qhca_eq {
    bool used, async, armed;
    uint16_t vector;
    uint8_t log_size;
    uint32_t pi, ci;
    uint32_t users;             /* CQs that report here */
    struct qhca_mem mem;
    /* What found the EQ full: CQs with a COMP event, or struct qhca_async. */
    struct qhca_list pending;
};

struct qhca_cq {
    uint32_t cqn, uar;
    struct qhca_eq *eq;
    struct qhca_mem mem;
    uint8_t log_size, state, arm;
    uint32_t pi, ci;            /* ci: as last read from the doorbell record */
    uint32_t arm_sn, event_sn;
    uint32_t users;             /* queues that complete here */
    bool ever_armed;            /* arm_sn means something */
    bool timer_reserved;
    uint32_t count, period;     /* moderation; period in us */
    uint32_t held;              /* CQEs since an event is being held back */
    struct qhca_timer timer;    /* until it is raised all the same */
    struct qhca_list pending;   /* node in eq->pending */
    struct qhca_list failed;    /* node in e->queues->failed */
    struct qhca_async async;
};

/* The EQ of number @eqn, or NULL. EQN 0 does not exist. */
struct qhca_eq *qhca_eq_get(struct qhca_engine *e, uint32_t eqn);
uint32_t qhca_eqn(const struct qhca_engine *e, const struct qhca_eq *eq);
/*
 * EQ doorbell: consumer index, arm. False: no such EQ, or index out of range.
 */
bool qhca_eq_doorbell(struct qhca_engine *e, uint32_t eqn, uint32_t ci);
/* COMP event of @cq for the arm event_sn, now or when its EQ has room. */
void qhca_eq_comp(struct qhca_engine *e, struct qhca_cq *cq);
/* The last event of a device that stops, and its interrupt. */
void qhca_eq_fatal(struct qhca_engine *e);
/* Arm doorbell. False: no such CQ on that page. */
bool qhca_cq_doorbell_arm(struct qhca_engine *e, unsigned page, uint32_t cqn,
                          bool solicited, uint32_t sn);
/*
 * Tells the owner of one CQ that failed, and returns it: its QPs must be told,
 * too. NULL: there is none.
 */
struct qhca_cq *qhca_cq_take_failed(struct qhca_engine *e);

/*
 * Async event of the object to the async EQ, if there is one; now, or when it
 * has room. The second of a type while the first waits says nothing new.
 */
void qhca_event(struct qhca_engine *e, struct qhca_async *a,
                enum qhca_event type);
/* Takes back an event that waits; false: there is none. */
bool qhca_event_cancel(struct qhca_async *a, enum qhca_event type);
struct qhca_cq *qhca_cq_get(struct qhca_engine *e, uint32_t cqn);
/*
 * Appends @cqe (timestamp and owner are filled in here), raises the COMP event
 * if the CQ is armed for it: NEXT by any CQE, SOLICITED by an error or by
 * @solicited. On overrun, or if the ring cannot be written: state ERROR at
 * once; its owner and its QPs hear of it from the run loop, never from inside
 * this call: one failed CQ can lead to the next. A CQ in ERROR swallows CQEs.
 * False: the CQE is lost.
 */
bool qhca_cq_push(struct qhca_engine *e, struct qhca_cq *cq,
                  struct qhca_cqe *cqe, bool solicited);

/* ---- port.c, steer.c, tx.c, eth.c ---- */

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
    bool link;                  /* carrier; survives a reset */
    struct qhca_async async;
    uint32_t num_gid;           /* one past the last valid entry */
    uint32_t num_mcast;
    uint8_t mcast[QHCA_MAX_MCAST][6];
    uint32_t bad_pkey, qkey_viol;
    uint32_t num_groups;
    struct qhca_mcast_group *group[QHCA_MAX_MCAST_GRP];
    struct qhca_fifo loop;      /* frames to the port itself */
    struct qhca_fifo tx;        /* frames the network did not take */
    bool tx_blocked;
};

/* Index of @gid (16 bytes) on VLAN @vlan in the port's table, or -1. */
int qhca_gid_find(const struct qhca_engine *e, const uint8_t *gid,
                  uint16_t vlan);

/* Whether it is an IPv4 address, ::ffff:a.b.c.d. */
bool qhca_gid_is_ipv4(const uint8_t *gid);
bool qhca_gid_is_multicast(const uint8_t *gid);
/* Whether the port has a GID on that VLAN. */
bool qhca_gid_on_vlan(const struct qhca_engine *e, uint16_t vlan);

void qhca_port_reset(struct qhca_engine *e);
void qhca_port_set_link(struct qhca_engine *e, bool up);
uint32_t qhca_port_path_mtu(const struct qhca_engine *e);
/* Whether frames leave and arrive: enabled, and there is a carrier. */
bool qhca_port_up(const struct qhca_engine *e);

/*
 * Gives a frame to the transport, the Ethernet queue, or nobody. @from: the
 * port sent it to itself, for the QP of that number, and the address filter
 * does not apply; 0: it came from the network.
 */
void qhca_steer(struct qhca_engine *e, const uint8_t *frame, size_t len,
                uint32_t from);

/* A received frame of the Ethernet queue's. */
void qhca_eth_rx(struct qhca_engine *e, const uint8_t *frame, size_t len,
                 bool csum_ok);

/*
 * Sends a frame: with the number of a QP in @from it goes to the port's own
 * receive path (processed by the run loop, never from inside this call), as one
 * that this QP has sent; with 0 it goes to the network, waiting in the transmit
 * FIFO while the network does not take frames. The frame is copied. False: no
 * room; the caller keeps the packet and is scheduled again when there is
 * (requests, READ responses); an ACK that finds no room is lost.
 */
bool qhca_tx(struct qhca_engine *e, const uint8_t *frame, size_t len,
             uint32_t from);
/* Whether @n more frames of any size would fit. */
bool qhca_tx_room(struct qhca_engine *e, bool loop, unsigned n);

/* Hands the network what waits for it, as long as it takes frames. */
void qhca_tx_flush(struct qhca_engine *e);

/* Takes up to @budget WQEs off the Ethernet send queue; returns how many. */
unsigned qhca_eth_tx_work(struct qhca_engine *e, unsigned budget);
bool qhca_eth_tx_ready(const struct qhca_engine *e);
/* Sends and counts a frame of that queue; false: there is no room for it. */
bool qhca_eth_send(struct qhca_engine *e, const uint8_t *frame, uint32_t len);
/* Gathered is what is to be cut up; SUCCESS: qhca_tso_send() sends a piece. */
struct qhca_eth_gather;
enum qhca_cqe_status qhca_tso_start(struct qhca_eth_gather *g, uint32_t mtu);
bool qhca_tso_send(struct qhca_engine *e);
/* False: no such queue, or index out of range. */
bool qhca_eth_doorbell(struct qhca_engine *e, uint32_t number, uint32_t pi);
void qhca_eth_free_all(struct qhca_engine *e);

#endif /* QHCA_ENGINE_OBJECTS_H */
