/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, events: how the guest hears of what happened. Completion queues,
 * event queues, the events of objects, and the last event of a device that
 * stops.
 */
#ifndef QHCA_ENGINE_EVENTS_H
#define QHCA_ENGINE_EVENTS_H

#include "../faults/faults.h"

#define QHCA_MAX_CQ             16384u
#define QHCA_MAX_EQ             64u
#define QHCA_CQ_LOG_MAX         22
#define QHCA_EQ_LOG_MAX         15
#define QHCA_MAX_CQ_COUNT       65535u
#define QHCA_MAX_CQ_PERIOD      65535u
/* More types of asynchronous events than any object has. */
#define QHCA_ASYNC_TYPES        8

/*
 * struct vhca_async - what asynchronous events of one object need
 *
 * Events that find the EQ full wait here, one of each type, oldest first: so
 * objects pay for their events, and no user can make one of another's be lost.
 */
struct vhca_async {
    struct vhca_list node;      /* in the pending list of the async EQ */
    uint32_t obj;               /* the number events carry */
    uint8_t waiting;            /* how many of: */
    uint8_t type[QHCA_ASYNC_TYPES];
};

static inline void vhca_async_init(struct vhca_async *a, uint32_t obj)
{
    memset(a, 0, sizeof(*a));
    vhca_list_init(&a->node);
    a->obj = obj;
}

/* The object goes, and with it what it had to say. */
static inline void vhca_async_del(struct vhca_async *a)
{
    vhca_list_del(&a->node);
    a->waiting = 0;
}

struct vhca_eq {
    bool used, async, armed;
    uint16_t vector;
    uint8_t log_size;
    uint32_t pi, ci;
    uint32_t users;             /* CQs that report here */
    struct vhca_mem mem;
    /* What found the EQ full: CQs with a COMP event, or struct vhca_async. */
    struct vhca_list pending;
    struct vhca_list roomy;     /* node in the list of EQs that have room */
};

struct vhca_cq {
    uint32_t cqn, uar;
    struct vhca_eq *eq;
    struct vhca_mem mem;
    uint8_t log_size, state, arm;
    uint32_t pi, ci;            /* ci: as last read from the doorbell record */
    uint32_t arm_sn, event_sn;
    uint32_t users;             /* queues that complete here */
    bool ever_armed;            /* arm_sn means something */
    uint32_t count, period;     /* moderation; period in us */
    uint32_t held;              /* CQEs since an event is being held back */
    struct vhca_timer timer;    /* until it is raised all the same */
    struct vhca_list pending;   /* node in eq->pending */
    struct vhca_list failed;    /* node in the list of failed CQs */
    bool owner_told;            /* of its failure, and those in slots up to: */
    uint32_t qps_told, srqs_told;
    struct vhca_async async;
};

struct vhca_events {
    struct vhca_eq eq[QHCA_MAX_EQ];
    struct vhca_table cq;
    struct vhca_list failed;    /* CQs whose users do not know yet */
    struct vhca_list roomy;     /* EQs that have room again for what waits */
};

extern const struct vhca_room vhca_events_room;

/* ---- fault.c ---- */

/* Whether fault rules let the event pass. */
bool vhca_fault_event(struct qhca_engine *e, uint8_t type, uint32_t obj);
/* Whether they let the interrupt pass. */
bool vhca_fault_irq(struct qhca_engine *e, unsigned vector);

/* ---- eq.c ---- */

/* Raises MSI-X vector @vector, if the device runs. */
void vhca_raise_irq(struct qhca_engine *e, unsigned vector);

/* Whether an EQ can be as the command describes it: enum qhca_cmd_status. */
int vhca_eq_check_create(const struct qhca_engine *e,
                         const struct qhca_cmd_create_eq *r);
void vhca_eq_free_all(struct qhca_engine *e);
/* The EQ of number @eqn, or NULL. EQN 0 does not exist. */
struct vhca_eq *vhca_eq_get(struct qhca_engine *e, uint32_t eqn);
uint32_t vhca_eqn(const struct qhca_engine *e, const struct vhca_eq *eq);
/* The one for asynchronous events, or NULL. */
struct vhca_eq *vhca_eq_async(struct qhca_engine *e);
/*
 * EQ doorbell: consumer index, arm. False: no such EQ, or index out of range.
 */
bool vhca_eq_doorbell(struct qhca_engine *e, uint32_t eqn, uint32_t ci);
/*
 * What waits for the first of the EQs that have room is written, as far as the
 * budget goes.
 */
void vhca_eq_serve(struct qhca_engine *e);
/* COMP event of @cq for the arm event_sn, now or when its EQ has room. */
void vhca_eq_comp(struct qhca_engine *e, struct vhca_cq *cq);
/*
 * Async event of the object to the async EQ, if there is one; now, or when it
 * has room. The second of a type while the first waits says nothing new.
 */
void vhca_event(struct qhca_engine *e, struct vhca_async *a,
                enum qhca_event type);
/* Takes back an event that waits; false: there is none. */
bool vhca_event_cancel(struct vhca_async *a, enum qhca_event type);
/* Stops the device: no DMA, no interrupt but that of the DEVICE_FATAL event. */
void vhca_fatal(struct qhca_engine *e, enum qhca_fatal reason);

/* ---- cq.c ---- */

/*
 * Whether a CQ can be as the command describes it, and its events be held back
 * for so long: enum qhca_cmd_status.
 */
int vhca_cq_check_create(struct qhca_engine *e,
                         const struct qhca_cmd_create_cq *r);
int vhca_cq_check_modify(const struct qhca_cmd_modify_cq *r);
void vhca_cq_free_all(struct qhca_engine *e);
/* A new one, zeroed but for what its creator has set. */
void vhca_cq_init(struct vhca_cq *cq, uint32_t cqn);
/* Of the ring of a CQ, and its doorbell record. */
uint64_t vhca_cq_bytes(unsigned log_size);
/* Too few CQEs have come to reach the count: the event is raised now. */
void vhca_cq_moderation_timeout(struct qhca_engine *e, struct vhca_timer *t);
/* The CQ of number @cqn, which may come from the guest, or NULL. */
struct vhca_cq *vhca_cq_get(struct qhca_engine *e, uint32_t cqn);
/*
 * Arm doorbell. @solicited: wait for a solicited or failed CQE only; @sn:
 * sequence number of the arm: the one before, repeated, does nothing. False: no
 * such CQ on that page.
 */
bool vhca_cq_doorbell_arm(struct qhca_engine *e, unsigned page, uint32_t cqn,
                          bool solicited, uint32_t sn);
/*
 * Appends @cqe (timestamp and owner are filled in here), raises the COMP event
 * if the CQ is armed for it: NEXT by any CQE, SOLICITED by an error or by
 * @solicited. On overrun, or if the ring cannot be written: state ERROR at
 * once; its owner and its QPs hear of it from the run loop, never from inside
 * this call: one failed CQ can lead to the next. A CQ in ERROR swallows CQEs.
 * False: the CQE is lost.
 */
bool vhca_cq_push(struct qhca_engine *e, struct vhca_cq *cq,
                  struct qhca_cqe *cqe, bool solicited);
/* It fails as if it had overrun. */
void vhca_cq_overrun(struct qhca_engine *e, struct vhca_cq *cq);
/*
 * The oldest CQ in the list of those that failed; its owner has been told, its
 * QPs must be, too, before it leaves the list.
 */
struct vhca_cq *vhca_cq_failed(struct qhca_engine *e);

/* ---- snapshot.c ---- */

void vhca_events_walk(struct vhca_snap *s);
extern const struct vhca_snap_ref vhca_cq_timer_ref;

#endif /* QHCA_ENGINE_EVENTS_H */
