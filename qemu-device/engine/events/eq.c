/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: event queues. While an EQ is full, objects with events for it
 * wait in line.
 */
#include "../memory/memory.h"
#include "events.h"

struct vhca_eq *vhca_eq_get(struct qhca_engine *e, uint32_t eqn)
{
    struct vhca_eq *eq;

    if (eqn == 0 || eqn > VHCA_MAX_EQ) {
        return NULL;
    }
    eq = &e->events->eq[eqn - 1];
    return eq->used ? eq : NULL;
}

uint32_t vhca_eqn(const struct qhca_engine *e, const struct vhca_eq *eq)
{
    return (uint32_t)(eq - e->events->eq) + 1;
}

struct vhca_eq *vhca_eq_async(struct qhca_engine *e)
{
    for (unsigned i = 0; i < VHCA_MAX_EQ; i++) {
        if (e->events->eq[i].used && e->events->eq[i].async) {
            return &e->events->eq[i];
        }
    }
    return NULL;
}

static bool eq_full(const struct vhca_eq *eq)
{
    return eq->pi - eq->ci == 1u << eq->log_size;
}

/* Write an event into a free entry; the owner byte makes it valid. */
static bool eq_put(struct qhca_engine *e, struct vhca_eq *eq, uint8_t type,
                   uint32_t obj, uint32_t arm_sn)
{
    struct qhca_eqe eqe = {
        .type = type,
        .obj = htole32(obj),
        .arm_sn = htole32(arm_sn),
        .timestamp = htole64(e->now),
        .owner = (eq->pi >> eq->log_size) & 1 ? 0 : QHCA_OWNER_PHASE,
    };
    uint64_t off = (uint64_t)(eq->pi & ((1u << eq->log_size) - 1)) *
                   sizeof(eqe);

    vhca_tamper(e, VHCA_TOLD_EQE, &eqe, sizeof(eqe));
    if (!vhca_dma_write_entry(e, vhca_mem_addr(&eq->mem, off), &eqe,
                              sizeof(eqe))) {
        return false;
    }
    eq->pi++;
    vhca_trace_event(e, type, obj, vhca_eqn(e, eq));
    return true;
}

/* Whether fault rules let the interrupt pass. */
static bool irq_passes(struct qhca_engine *e, unsigned vector)
{
    struct vhca_rule_at at = { .point = VHCA_RULE_IRQ };

    at.field[VHCA_RULE_VECTOR] = vector;
    return vhca_rule_judge(e, &at).action != VHCA_RULE_DROP;
}

/* Whether fault rules let the event pass. */
static bool event_passes(struct qhca_engine *e, uint8_t type, uint32_t obj)
{
    struct vhca_rule_at at = { .point = VHCA_RULE_EVENT, .kind = type };

    at.field[VHCA_RULE_OBJ] = obj;
    return vhca_rule_judge(e, &at).action != VHCA_RULE_DROP;
}

void vhca_raise_irq(struct qhca_engine *e, unsigned vector)
{
    if (vhca_running(e) && (!vhca_rules_at(e, VHCA_RULE_IRQ) ||
                            irq_passes(e, vector))) {
        e->ops->raise_irq(e->opaque, vector);
    }
}

static void eq_notify(struct qhca_engine *e, struct vhca_eq *eq)
{
    if (eq->armed) {
        eq->armed = false;
        vhca_raise_irq(e, eq->vector);
    }
}

void vhca_fatal(struct qhca_engine *e, enum qhca_fatal reason)
{
    if (e->fatal) {
        return;
    }
    e->fatal = (uint8_t)reason;
    vhca_trace_fatal(e, reason);
    if (vhca_running(e)) {
        struct vhca_eq *eq = vhca_eq_async(e);

        if (eq && !eq_full(eq)) {
            eq_put(e, eq, QHCA_EVENT_DEVICE_FATAL, e->fatal, 0);
        }
        /* Even without room or an armed EQ: the driver gets no other. */
        vhca_raise_irq(e, eq ? eq->vector : 0);
    }
    e->state = QHCA_STATE_FATAL;
}

static void eq_post(struct qhca_engine *e, struct vhca_eq *eq, uint8_t type,
                    uint32_t obj, uint32_t arm_sn)
{
    if (vhca_rules_at(e, VHCA_RULE_EVENT) && !event_passes(e, type, obj)) {
        return;
    }
    if (!eq_put(e, eq, type, obj, arm_sn)) {
        vhca_guest_error(e, "EQ %u: ring cannot be written", vhca_eqn(e, eq));
        vhca_fatal(e, QHCA_FATAL_EQ_DMA);
        return;
    }
    eq_notify(e, eq);
}

static int find_waiting(const struct vhca_async *a, enum qhca_event type)
{
    for (int i = 0; i < a->waiting; i++) {
        if (a->type[i] == type) {
            return i;
        }
    }
    return -1;
}

/* Remove and return the waiting event at @i. */
static uint8_t take_waiting(struct vhca_async *a, unsigned i)
{
    uint8_t type = a->type[i];

    a->waiting--;
    memmove(&a->type[i], &a->type[i + 1], a->waiting - i);
    if (!a->waiting) {
        vhca_list_del(&a->node);
    }
    return type;
}

static void wait_in_line(struct vhca_eq *eq, struct vhca_async *a,
                         enum qhca_event type)
{
    if (find_waiting(a, type) >= 0) {
        return;
    }
    if (!a->waiting) {
        vhca_list_add_tail(&eq->pending, &a->node);
    }
    a->type[a->waiting++] = (uint8_t)type;
}

void vhca_event(struct qhca_engine *e, struct vhca_async *a,
                enum qhca_event type)
{
    struct vhca_eq *eq = vhca_eq_async(e);

    if (!eq || !vhca_running(e)) {
        return;
    }
    vhca_late_finish(e, VHCA_EVERY_QP);
    if (eq_full(eq) || !vhca_list_empty(&eq->pending)) {
        wait_in_line(eq, a, type);
        return;
    }
    eq_post(e, eq, (uint8_t)type, a->obj, 0);
}

bool vhca_event_cancel(struct vhca_async *a, enum qhca_event type)
{
    int i = find_waiting(a, type);

    if (i < 0) {
        return false;
    }
    (void)take_waiting(a, (unsigned)i);
    return true;
}

void vhca_eq_comp(struct qhca_engine *e, struct vhca_cq *cq)
{
    if (!vhca_list_empty(&cq->pending)) {
        return;         /* in line already; it will carry the new event_sn */
    }
    if (eq_full(cq->eq) || !vhca_list_empty(&cq->eq->pending)) {
        vhca_list_add_tail(&cq->eq->pending, &cq->pending);
        return;
    }
    eq_post(e, cq->eq, QHCA_EVENT_COMP, cq->cqn, cq->event_sn);
}

static void post_comp(struct qhca_engine *e, struct vhca_eq *eq)
{
    struct vhca_cq *cq = container_of(eq->pending.next, struct vhca_cq,
                                      pending);

    vhca_list_del(&cq->pending);
    eq_post(e, eq, QHCA_EVENT_COMP, cq->cqn, cq->event_sn);
}

static void post_async(struct qhca_engine *e, struct vhca_eq *eq)
{
    struct vhca_async *a = container_of(eq->pending.next, struct vhca_async,
                                        node);

    eq_post(e, eq, take_waiting(a, 0), a->obj, 0);
}

void vhca_eq_serve(struct qhca_engine *e)
{
    struct vhca_eq *eq = container_of(e->events->roomy.next, struct vhca_eq,
                                      roomy);

    while (!eq_full(eq) && !vhca_list_empty(&eq->pending) &&
           vhca_may_go_on(e)) {
        (eq->async ? post_async : post_comp)(e, eq);
    }
    if (eq_full(eq) || vhca_list_empty(&eq->pending)) {
        vhca_list_del(&eq->roomy);
    }
}

bool vhca_eq_doorbell(struct qhca_engine *e, const struct vhca_db *db)
{
    struct vhca_eq *eq = vhca_eq_get(e, db->obj);

    if (!eq || eq->pi - db->index > eq->pi - eq->ci) {
        return false;
    }
    eq->ci = db->index;
    eq->armed = true;
    if (!eq_full(eq) && !vhca_list_empty(&eq->pending) &&
        vhca_list_empty(&eq->roomy)) {
        vhca_list_add_tail(&e->events->roomy, &eq->roomy);
    }
    if (eq->pi != eq->ci) {
        eq_notify(e, eq);
    }
    return true;
}

int vhca_eq_check_create(const struct qhca_engine *e,
                         const struct qhca_cmd_create_eq *r)
{
    if (r->log_size > VHCA_EQ_LOG_MAX) {
        return QHCA_ERR_LIMIT;
    }
    if (r->flags & ~QHCA_EQ_ASYNC || le16toh(r->vector) >= e->cfg.num_vectors) {
        return QHCA_ERR_PARAM;
    }
    return QHCA_OK;
}

static struct vhca_eq *free_eq(struct qhca_engine *e)
{
    for (unsigned i = 0; i < VHCA_MAX_EQ; i++) {
        if (!e->events->eq[i].used) {
            return &e->events->eq[i];
        }
    }
    return NULL;
}

/* A new EQ is armed. */
int vhca_do_create_eq(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const struct qhca_cmd_create_eq *r = &c->cmd->create_eq;
    struct vhca_eq *eq = free_eq(e);
    int status = vhca_eq_check_create(e, r);

    if (status != QHCA_OK) {
        return status;
    }
    if (r->flags & QHCA_EQ_ASYNC && vhca_eq_async(e)) {
        return QHCA_ERR_BUSY;
    }
    if (!eq) {
        return QHCA_ERR_NO_RESOURCE;
    }
    memset(eq, 0, sizeof(*eq));
    status = vhca_import(e, &c->import[0], &r->buf,
                         sizeof(struct qhca_eqe) << r->log_size);
    if (status != QHCA_OK) {
        return status;
    }
    eq->mem = vhca_import_take(&c->import[0]);
    eq->used = true;
    eq->armed = true;
    eq->async = r->flags & QHCA_EQ_ASYNC;
    eq->vector = le16toh(r->vector);
    eq->log_size = r->log_size;
    vhca_list_init(&eq->pending);
    vhca_list_init(&eq->roomy);
    c->obj = vhca_eqn(e, eq);
    return QHCA_OK;
}

/* Drop asynchronous events that wait for this EQ. */
static void release_eq(struct qhca_engine *e, struct vhca_eq *eq)
{
    while (eq->async && !vhca_list_empty(&eq->pending)) {
        vhca_async_del(container_of(eq->pending.next, struct vhca_async,
                                    node));
    }
    vhca_list_del(&eq->roomy);
    vhca_mem_release(e, &eq->mem);
    eq->used = false;
}

int vhca_do_destroy_eq(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    struct vhca_eq *eq = vhca_eq_get(e, le32toh(c->cmd->obj.obj));

    if (!eq) {
        return QHCA_ERR_OBJ;
    }
    if (eq->users) {
        return QHCA_ERR_BUSY;
    }
    release_eq(e, eq);
    return QHCA_OK;
}

void vhca_eq_free_all(struct qhca_engine *e)
{
    for (unsigned i = 0; i < VHCA_MAX_EQ; i++) {
        if (e->events->eq[i].used) {
            release_eq(e, &e->events->eq[i]);
        }
    }
}
