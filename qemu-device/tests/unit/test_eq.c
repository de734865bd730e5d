/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event queues: interrupts, full queues, the asynchronous EQ.
 */
#include "harness/debug.h"
#include "harness/harness.h"

/* Raises an event for a number without an object. */
static void raise_event(struct guest *g, enum qhca_event type, uint32_t obj)
{
    static struct vhca_async async[128];

    REQUIRE(obj < ARRAY_SIZE(async));
    if (!async[obj].node.next || !async[obj].waiting) {
        vhca_async_init(&async[obj], obj);
    }
    g->strangers = ARRAY_SIZE(async);
    vhca_event(g->e, &async[obj], type);
}

static void interrupts(void)
{
    struct guest *g = guest_start();
    struct geq eq = eq_create(g, 3, 4, QHCA_EQ_ASYNC);
    unsigned i;

    raise_event(g, QHCA_EVENT_COMM_EST, 5);
    raise_event(g, QHCA_EVENT_COMM_EST, 6);
    CHECK_EQ(g->irqs[3], 1);            /* created armed; one per arm */
    eq_expect(&eq, QHCA_EVENT_COMM_EST, 5);
    eq_arm(&eq);                        /* 6 has not been taken */
    CHECK_EQ(g->irqs[3], 2);
    eq_expect(&eq, QHCA_EVENT_COMM_EST, 6);
    eq_arm(&eq);
    eq_arm(&eq);
    CHECK_EQ(g->irqs[3], 2);
    for (i = 0; i < 100; i++) {         /* across both phases */
        raise_event(g, QHCA_EVENT_QP_FATAL, i);
        eq_expect(&eq, QHCA_EVENT_QP_FATAL, i);
        eq_arm(&eq);
    }
    CHECK_EQ(g->irqs[3], 102);
}

static void bad_consumer_index(void)
{
    struct guest *g = guest_start();
    struct geq eq = eq_create(g, 1, 2, QHCA_EQ_ASYNC);

    raise_event(g, QHCA_EVENT_COMM_EST, 1);
    raise_event(g, QHCA_EVENT_COMM_EST, 2);
    ring(g, 0, QHCA_DB_EQ, eq.eqn, 3);
    ring(g, 0, QHCA_DB_EQ, eq.eqn, UINT32_MAX);
    ring(g, 0, QHCA_DB_EQ, eq.eqn, 2);
    ring(g, 0, QHCA_DB_EQ, eq.eqn, 1);          /* backwards */
    ring(g, 0, QHCA_DB_EQ, 0, 0);
    ring(g, 0, QHCA_DB_EQ, 65, 0);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 5);
}

/*
 * Events that do not fit the queue wait, one of each type and object, in the
 * order of the objects' first events.
 */
static void async_waits(void)
{
    struct guest *g = guest_start();
    struct geq eq = eq_create(g, 2, 2, QHCA_EQ_ASYNC);
    unsigned i;

    for (i = 0; i < 10; i++) {
        raise_event(g, QHCA_EVENT_COMM_EST, i);
    }
    raise_event(g, QHCA_EVENT_COMM_EST, 9);         /* waits already */
    raise_event(g, QHCA_EVENT_QP_FATAL, 8);
    raise_event(g, QHCA_EVENT_LAST_WQE_REACHED, 8);
    CHECK_EQ(dev_state(g), QHCA_STATE_RUNNING);
    CHECK_EQ(g->irqs[2], 1);
    for (i = 0; i < 9; i++) {
        eq_expect(&eq, QHCA_EVENT_COMM_EST, i);
        eq_arm(&eq);
    }
    eq_expect(&eq, QHCA_EVENT_QP_FATAL, 8);
    eq_expect(&eq, QHCA_EVENT_LAST_WQE_REACHED, 8);
    eq_expect(&eq, QHCA_EVENT_COMM_EST, 9);
    eq_arm(&eq);
    eq_expect_none(&eq);
    raise_event(g, QHCA_EVENT_COMM_EST, 9);         /* nothing waits any more */
    eq_expect(&eq, QHCA_EVENT_COMM_EST, 9);
    CHECK_EQ(dev_state(g), QHCA_STATE_RUNNING);
}

/* A waiting event disappears with its object, and with the queue. */
static void async_waits_in_vain(void)
{
    struct guest *g = guest_start();
    struct geq eq = eq_create(g, 2, 0, QHCA_EQ_ASYNC);
    struct vhca_async gone, left;

    g->strangers = 3;
    vhca_async_init(&gone, 20);
    vhca_async_init(&left, 21);
    raise_event(g, QHCA_EVENT_CQ_ERR, 1);
    vhca_event(g->e, &gone, QHCA_EVENT_CQ_ERR);
    vhca_event(g->e, &left, QHCA_EVENT_CQ_ERR);
    vhca_async_del(&gone);
    eq_expect(&eq, QHCA_EVENT_CQ_ERR, 1);
    eq_arm(&eq);
    eq_expect(&eq, QHCA_EVENT_CQ_ERR, 21);
    vhca_event(g->e, &left, QHCA_EVENT_CQ_ERR);
    CHECK_EQ(left.waiting, 1);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_EQ, eq.eqn), QHCA_OK);
    CHECK_EQ(left.waiting, 0);
    eq = eq_create(g, 2, 0, QHCA_EQ_ASYNC);
    vhca_event(g->e, &left, QHCA_EVENT_SRQ_ERR);
    eq_expect(&eq, QHCA_EVENT_SRQ_ERR, 21);
}

/* H-012: a carrier loss that ends unreported never happened. */
static void link_flaps_unseen(void)
{
    struct guest *g = guest_start();
    struct geq eq = eq_create(g, 2, 0, QHCA_EQ_ASYNC);
    unsigned i;

    raise_event(g, QHCA_EVENT_CQ_ERR, 1);
    for (i = 0; i < 5; i++) {
        qhca_engine_set_link(g->e, *g->clock, i % 2);
    }
    eq_expect(&eq, QHCA_EVENT_CQ_ERR, 1);
    eq_arm(&eq);
    eq_expect(&eq, QHCA_EVENT_LINK_DOWN, 1);
    qhca_engine_set_link(g->e, *g->clock, true);
    qhca_engine_set_link(g->e, *g->clock, false);
    eq_arm(&eq);
    eq_expect_none(&eq);
    CHECK_EQ(dev_state(g), QHCA_STATE_RUNNING);
}

/* The port outlives a reset, unlike other objects with events. */
static void reset_while_waiting(void)
{
    struct guest *g = guest_start();
    struct geq eq = eq_create(g, 2, 0, QHCA_EQ_ASYNC);

    raise_event(g, QHCA_EVENT_CQ_ERR, 1);
    qhca_engine_set_link(g->e, *g->clock, false);
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    guest_enable(g, 5);
    eq = eq_create(g, 2, 4, QHCA_EQ_ASYNC);
    eq_expect_none(&eq);
    qhca_engine_set_link(g->e, *g->clock, true);
    eq_expect(&eq, QHCA_EVENT_LINK_UP, 1);
}

static void unwritable(void)
{
    struct guest *g = guest_start();
    struct geq eq = eq_create(g, 2, 4, QHCA_EQ_ASYNC);

    guest_spoil(g, gbuf_addr(&eq.buf, 0), 4096);
    qhca_engine_set_link(g->e, *g->clock, false);
    CHECK_EQ(reg_read(g, QHCA_REG_FATAL), QHCA_FATAL_EQ_DMA);
    CHECK_EQ(g->irqs[2], 1);
}

#define NUM_CQS 40

static void push_cqe(struct guest *g, const struct gcq *cq)
{
    struct qhca_cqe cqe = { 0 };

    vhca_cq_push(g->e, vhca_cq_get(g->e, cq->cqn), &cqe, false);
}

/* COMP events of a full EQ wait their turn; none is lost or duplicated. */
static void full_completion_eq(void)
{
    struct guest *g = guest_start();
    struct geq eq = eq_create(g, 1, 3, 0);
    unsigned seen[NUM_CQS] = { 0 }, i, n = 0;
    struct gcq cq[NUM_CQS];
    struct qhca_eqe eqe;

    for (i = 0; i < NUM_CQS; i++) {
        cq[i] = cq_create(g, &eq, 1, 4);
        cq[i].sn = i * 10;
        cq_arm(&cq[i], false);
        push_cqe(g, &cq[i]);
    }
    CHECK_EQ(g->irqs[1], 1);
    /*
     * A CQ gets another arm and CQE while it waits: the event names the last
     * arm.
     */
    cq_arm(&cq[30], false);
    push_cqe(g, &cq[30]);
    /* A CQ destroyed while it waits. */
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_CQ, cq[20].cqn), QHCA_OK);
    do {
        while (eq_next(&eq, &eqe)) {
            for (i = 0; i < NUM_CQS && cq[i].cqn != le32toh(eqe.obj); i++) {
                continue;
            }
            REQUIRE(i < NUM_CQS);
            CHECK_EQ(le32toh(eqe.arm_sn), cq[i].sn);
            seen[i]++;
        }
        eq_arm(&eq);
    } while (++n < 20);
    for (i = 0; i < NUM_CQS; i++) {
        CHECK_EQ(seen[i], i == 20 ? 0 : 1);
    }
    CHECK_EQ(dev_state(g), QHCA_STATE_RUNNING);
}

static void creation(void)
{
    struct guest *g = guest_start();
    struct geq eq = eq_create(g, 0, 4, QHCA_EQ_ASYNC);
    struct qhca_cmd good = { .opcode = htole16(QHCA_CMD_CREATE_EQ) }, cmd;
    unsigned before = qhca_engine_num_objects(g->e) - 1;
    uint32_t eqn[VHCA_MAX_EQ], i;

    good.create_eq.buf = eq.buf.desc;
    good.create_eq.vector = htole16(1);
    good.create_eq.log_size = 4;
#define TRY(change, status) \
    do { \
        cmd = good; \
        change; \
        CHECK_EQ(guest_cmd(g, &cmd, NULL), status); \
    } while (0)
    TRY(cmd.create_eq.flags = QHCA_EQ_ASYNC, QHCA_ERR_BUSY);
    TRY(cmd.create_eq.flags = 2, QHCA_ERR_PARAM);
    TRY(cmd.create_eq.vector = htole16(NUM_VECTORS), QHCA_ERR_PARAM);
    TRY(cmd.create_eq.vector = 0xffff, QHCA_ERR_PARAM);
    TRY(cmd.create_eq.log_size = 16, QHCA_ERR_LIMIT);
    TRY(cmd.create_eq.log_size = 8, QHCA_ERR_PARAM);
    TRY(cmd.create_eq.buf.num_blocks = 0, QHCA_ERR_PARAM);
#undef TRY
    for (i = 1; i < VHCA_MAX_EQ; i++) {
        cmd = good;
        eqn[i] = guest_create(g, &cmd);
        CHECK(eqn[i] != 0);
    }
    cmd = good;
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_NO_RESOURCE);
    for (i = 1; i < VHCA_MAX_EQ; i++) {
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_EQ, eqn[i]), QHCA_OK);
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_EQ, eqn[i]), QHCA_ERR_OBJ);
    }
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_EQ, eq.eqn), QHCA_OK);
    qhca_engine_set_link(g->e, *g->clock, false);   /* no EQ to report to */
    CHECK_EQ(qhca_engine_num_objects(g->e), before);
}

/* H-012: events of the link alternate strictly. */
static void link_events(void)
{
    struct guest *g = guest_start();
    struct geq eq = eq_create(g, 0, 4, QHCA_EQ_ASYNC);

    qhca_engine_set_link(g->e, *g->clock, true);
    eq_expect_none(&eq);
    qhca_engine_set_link(g->e, *g->clock, false);
    qhca_engine_set_link(g->e, *g->clock, false);
    qhca_engine_set_link(g->e, *g->clock, true);
    eq_expect(&eq, QHCA_EVENT_LINK_DOWN, 1);
    eq_expect(&eq, QHCA_EVENT_LINK_UP, 1);
    eq_expect_none(&eq);
}

static const struct test tests[] = {
    { "interrupts and phases", interrupts },
    { "bad consumer index", bad_consumer_index },
    { "H-022 full async EQ: events wait", async_waits },
    { "a waiting event dies with its object or the EQ", async_waits_in_vain },
    { "a link that flaps unseen (H-012)", link_flaps_unseen },
    { "a reset while an event of the port waits", reset_while_waiting },
    { "EQ that cannot be written is fatal", unwritable },
    { "full completion EQ", full_completion_eq },
    { "creation, destruction, refusals", creation },
    { "H-012 link events alternate", link_events },
};

int main(int argc, char **argv)
{
    harness_verify(VERIFY_NEVER);      /* some events have no object */
    return tap_main(argc, argv, tests, ARRAY_SIZE(tests), harness_cleanup);
}
