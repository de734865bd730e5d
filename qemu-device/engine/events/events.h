/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, events: how the guest learns what happened: completion queues,
 * event queues, the events of objects, and the last event of a device that
 * stops.
 */
#ifndef QHCA_ENGINE_EVENTS_H
#define QHCA_ENGINE_EVENTS_H

#include "../rules/rules.h"

#define VHCA_MAX_CQ             16384u
#define VHCA_MAX_EQ             64u
#define VHCA_CQ_LOG_MAX         22
#define VHCA_EQ_LOG_MAX         15
#define VHCA_MAX_CQ_COUNT       65535u
#define VHCA_MAX_CQ_PERIOD      65535u
/* More than any object has types of asynchronous events. */
#define VHCA_ASYNC_TYPES        8

/*
 * struct vhca_async - the asynchronous events of one object
 *
 * Events that find the EQ full wait here, one of each type, oldest first. So
 * every object pays for its own events, and no user can cause the loss of
 * another's.
 */
struct vhca_async {
    struct vhca_list node;      /* in the pending list of the async EQ */
    uint32_t obj;               /* the number that events carry */
    uint8_t waiting;            /* entries of @type in use */
    uint8_t type[VHCA_ASYNC_TYPES];
};

static inline void vhca_async_init(struct vhca_async *a, uint32_t obj)
{
    memset(a, 0, sizeof(*a));
    vhca_list_init(&a->node);
    a->obj = obj;
}

/* Drop the waiting events of an object that is being destroyed. */
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
    uint32_t users;             /* CQs that send their events here */
    struct vhca_mem mem;
    /* Events that found the EQ full: nodes of CQs (COMP) or vhca_async. */
    struct vhca_list pending;
    struct vhca_list roomy;     /* node in the list of EQs with room again */
};

struct vhca_cq {
    uint32_t cqn, uar;
    struct vhca_eq *eq;
    struct vhca_mem mem;
    uint8_t log_size, state, arm;
    uint32_t pi, ci;            /* ci: as last read from the doorbell record */
    uint32_t arm_sn, event_sn;
    uint32_t users;             /* queues with completions here */
    bool ever_armed;            /* by a doorbell: arm_sn is valid */
    bool dbrec;                 /* arms are in the doorbell record */
    uint32_t count, period;     /* moderation; period in us */
    uint32_t held;              /* CQEs since moderation holds an event back */
    struct vhca_timer timer;    /* raises that event at the latest */
    struct vhca_list pending;   /* node in eq->pending */
    struct vhca_list failed;    /* node in the list of failed CQs */
    bool owner_told;            /* its owner knows of the failure */
    uint32_t qps_told, srqs_told;   /* and QPs and SRQs below these slots */
    struct vhca_async async;
};

struct vhca_events {
    struct vhca_eq eq[VHCA_MAX_EQ];
    struct vhca_table cq;
    struct vhca_list failed;    /* failed CQs that some user does not know of */
    struct vhca_list roomy;     /* EQs with waiting events and room again */
};

extern const struct vhca_room vhca_events_room;

/* ---- eq.c ---- */

/* Raise MSI-X vector @vector, if the device runs. */
void vhca_raise_irq(struct qhca_engine *e, unsigned vector);

/* Check the parameters of CREATE_EQ; returns enum qhca_cmd_status. */
int vhca_eq_check_create(const struct qhca_engine *e,
                         const struct qhca_cmd_create_eq *r);
void vhca_eq_free_all(struct qhca_engine *e);
/* Return the EQ with number @eqn, or NULL. EQN 0 does not exist. */
struct vhca_eq *vhca_eq_get(struct qhca_engine *e, uint32_t eqn);
uint32_t vhca_eqn(const struct qhca_engine *e, const struct vhca_eq *eq);
/* Return the EQ for asynchronous events, or NULL. */
struct vhca_eq *vhca_eq_async(struct qhca_engine *e);
/* Set the consumer index and arm the EQ. */
bool vhca_eq_doorbell(struct qhca_engine *e, const struct vhca_db *db);
/* Write events that wait for the first EQ with room, within the budget. */
void vhca_eq_serve(struct qhca_engine *e);
/* Write the COMP event of @cq for event_sn, or let it wait for room. */
void vhca_eq_comp(struct qhca_engine *e, struct vhca_cq *cq);
/*
 * Write an event of the object to the async EQ, if there is one, or let it wait
 * for room. A second one of the same type is dropped while the first waits.
 */
void vhca_event(struct qhca_engine *e, struct vhca_async *a,
                enum qhca_event type);
/* Take back an event that waits; returns false if there is none. */
bool vhca_event_cancel(struct vhca_async *a, enum qhca_event type);
/* Stop the device: no more DMA or interrupts after the DEVICE_FATAL event. */
void vhca_fatal(struct qhca_engine *e, enum qhca_fatal reason);

/* ---- cq.c ---- */

/*
 * Check the parameters of CREATE_CQ or MODIFY_CQ; return enum qhca_cmd_status.
 */
int vhca_cq_check_create(struct qhca_engine *e,
                         const struct qhca_cmd_create_cq *r);
int vhca_cq_check_modify(const struct qhca_cmd_modify_cq *r);
void vhca_cq_free_all(struct qhca_engine *e);
/* Set up a CQ, zeroed except for what CREATE_CQ or a saved state defines. */
void vhca_cq_init(struct vhca_cq *cq, uint32_t cqn);
/* Return the bytes of a CQ's ring and its doorbell record. */
uint64_t vhca_cq_bytes(unsigned log_size);
/* Raise the event that moderation held back: the count was not reached. */
void vhca_cq_moderation_timeout(struct qhca_engine *e, struct vhca_timer *t);
/* Return the CQ with number @cqn, which may come from the guest, or NULL. */
struct vhca_cq *vhca_cq_get(struct qhca_engine *e, uint32_t cqn);
/*
 * Arm a CQ; @index: sequence number of the arm. Repeating the last arm does
 * nothing. False also for a CQ whose arms are in its doorbell record.
 */
bool vhca_cq_doorbell_arm(struct qhca_engine *e, const struct vhca_db *db);
/*
 * Append @cqe, whose timestamp and owner are filled in here, and raise the COMP
 * event if the CQ is armed for it: NEXT by any CQE, SOLICITED by an error or by
 * @solicited. If the CQ overruns or its ring cannot be written, it enters state
 * ERROR. The run loop, never this call, tells its owner and its QPs: one failed
 * CQ can lead to the next. Returns false if the CQE is lost, as all are in
 * state ERROR.
 */
bool vhca_cq_push(struct qhca_engine *e, struct vhca_cq *cq,
                  struct qhca_cqe *cqe, bool solicited);
/* Let the CQ fail as if it had overrun. */
void vhca_cq_overrun(struct qhca_engine *e, struct vhca_cq *cq);
/*
 * Return the CQ that failed first, after raising its CQ_ERR event. The caller
 * tells its QPs and SRQs, and then takes it off the list.
 */
struct vhca_cq *vhca_cq_failed(struct qhca_engine *e);

/* ---- snapshot.c ---- */

void vhca_events_walk(struct vhca_snap *s);
extern const struct vhca_snap_ref vhca_cq_timer_ref;

#endif /* QHCA_ENGINE_EVENTS_H */
