/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: saved states in which one field says what no device can
 * have come to: each is refused for its own reason; and what the busiest scene
 * lacks is there after loading.
 */
#include "harness/budget.h"
#include "harness/debug.h"
#include "harness/fields.h"
#include "harness/flows.h"
#include "harness/keys.h"
#include "harness/odp.h"
#include "harness/scene.h"
#include "harness/snapshot.h"
#include "harness/tso.h"
#include "harness/windows.h"

/* struct change - an edit, and the reason for which the state is refused */
struct change {
    const char *section, *name;
    unsigned nth;
    uint64_t value;
    const char *why;            /* NULL: it is loaded */
};

static bool load(const struct change *c)
{
    struct field_edit edit = {
        .which = fields_find(g, c->section, c->name, c->nth),
        .value = c->value,
    };
    size_t len;
    uint8_t *state = fields_save(g, &edit, 1, &len);

    return snapshot_load(g, state, len);
}

static void refused(const struct change *c)
{
    CHECK(!load(c));
    CHECK_EQ(dev_state(g), QHCA_STATE_RESET);
    if (!strstr(snapshot_why(), c->why)) {
        tap_note("%s %s = %llu: %s", c->section, c->name,
                 (unsigned long long)c->value, snapshot_why());
        CHECK(!"the reason");
    }
}

/* ---- one field of the scene is wrong ---- */

static void one_field(void)
{
    static const struct change changes[] = {
        { "device", "timers", 0, UINT32_MAX, "more than the state can hold" },
        { "device", "waiting", 0, 0, "waiting is inconsistent" },
        { "device", "event", 0, QHCA_EVENT_COMM_EST, "event is inconsistent" },
        { "eth", "tx_next", 0, VHCA_MAX_ETH_PAIRS, "tx_next is 8, at most 7" },
        { "transport", "joins", 0, 0, "member is inconsistent" },
        { "transport", "QP", 1, 0, "member is inconsistent" },
        { "queues", "srqs_told", 0, UINT32_MAX, "told of a CQ" },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(changes); i++) {
        scene_start();
        refused(&changes[i]);
    }
}

/* An object waits for room with at most one event of each type. */
static void event_twice(void)
{
    struct field_edit edit = { .how = FIELD_COPY };
    size_t len;
    struct vhca_async *a;
    uint8_t *state;

    scene_start();
    a = &vhca_qp_get(g->e, qp.qpn)->async;
    vhca_event(g->e, a, QHCA_EVENT_COMM_EST);
    vhca_event(g->e, a, QHCA_EVENT_QP_FATAL);
    CHECK_EQ(a->waiting, 2);
    edit.which = fields_find(g, "device", "event", 2);
    edit.value = edit.which - 1;
    state = fields_save(g, &edit, 1, &len);
    CHECK(!snapshot_load(g, state, len));
    CHECK(strstr(snapshot_why(), "event is inconsistent"));
}

/* ---- work requests ---- */

/* A long message of @qp, without an ACK of its beginning. */
static void half_sent(uint8_t type)
{
    struct rc_wr wr;

    start_type(type);
    g->net_blocked = true;
    for (unsigned i = 0; i < 2; i++) {
        wr = rc_wr(&qp, QHCA_WR_SEND, 0, 60000);
        rc_put(&qp, &wr);
    }
    rc_ring(&qp);
    CHECK(vhca_qp_get(g->e, qp.qpn)->sq.next > 0);
}

static void opcodes(void)
{
    static const struct change c = {
        "transport", "opcode", 0, QHCA_WR_RDMA_READ, "opcode of a WR",
    };

    half_sent(QHCA_QPT_UC);
    refused(&c);
}

/* LOCAL_INV waits for the WRITE before it. */
static void lengths(void)
{
    static const struct change c = {
        "transport", "length", 3, 8, "opcode of a WR",
    };
    struct rc_opts o = RC_OPTS;
    struct rc_wr wr;

    o.qp_flags = KERNEL_QP;
    start_alone(&o);
    wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 100);
    rc_put(&qp, &wr);
    wr = wr_inv(&qp, QHCA_WR_LOCAL_INV, 0x12345600);
    rc_post(&qp, &wr);
    CHECK_EQ(vhca_qp_get(g->e, qp.qpn)->sq.next, 2);
    refused(&c);
}

static void posted_before_rts(void)
{
    static const struct change c = { "transport", "pi", 0, 1, "send queue" };

    start_in(&RC_OPTS, QHCA_QPS_RTR);
    refused(&c);
}

static void timers(void)
{
    static const struct change c = {
        "transport", "state", 0, QHCA_QPS_ERR, "timer of a QP",
    };

    half_sent(QHCA_QPT_RC);
    refused(&c);
}

static void records(void)
{
    static const struct change c = {
        "transport", "flags", 0, QHCA_QP_FLAG_RQ_DBREC, "queues",
    };

    start_alone(&RC_OPTS);
    refused(&c);
}

/* ---- memory ---- */

static void fast_rights(void)
{
    struct change c = {
        "memory", "access", 0, QHCA_ACCESS_REMOTE_WRITE, "registration",
    };
    struct vhca_mr *mr;
    struct rc_opts o = RC_OPTS;
    struct fast f;
    struct rc_wr wr;

    o.qp_flags = KERNEL_QP;
    start_alone(&o);
    f = fast_create(&node, 20, 5);
    wr = wr_reg(&qp, &f, f.key, 0x10000, REMOTE_ALL | QHCA_ACCESS_LOCAL_WRITE);
    rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
    vhca_table_each(&g->e->memory->mr, mr) {
        if (mr->type == QHCA_MR_FAST) {
            break;
        }
        c.nth++;
    }
    refused(&c);
}

/* A region that a window is bound to stays, also after loading. */
static void windows_of_region(void)
{
    struct rc_wr wr;

    start_alone(&RC_OPTS);
    wr = wr_bind(&qp, next_key(mw_create(g, node.pdn, QHCA_MW_2B)), 4096, 5000,
                 QHCA_ACCESS_REMOTE_READ);
    rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
    snapshot_cycle(g);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, node.mr.key), QHCA_ERR_BUSY);
}

/* Pages are saved by leaves; a number inside of one names all of it. */
static void number_of_leaf(void)
{
    static const struct change c = { "memory", "pages", 1, 1, NULL };
    static uint8_t before[1u << 16];
    size_t len, now_len;
    uint8_t *state;
    struct odp o;

    start_node();
    o = odp_create(g, node.pdn, node.mr.addr, NODE_MEM);
    odp_set(&o, 0, 1, ODP_ALL);
    state = snapshot_save(g, &len);
    REQUIRE(state && len <= sizeof(before));
    memcpy(before, state, len);
    CHECK(load(&c));
    state = snapshot_save(g, &now_len);
    CHECK(state && now_len == len && !memcmp(state, before, len));
}

/* ---- what the scene does not have ---- */

/* CQs whose events the completion EQ has no room for. */
static void completion_events(void)
{
    struct geq eq;
    struct gcq cq[8];

    start_node();
    eq = eq_create(g, 2, 2, 0);
    for (unsigned i = 0; i < ARRAY_SIZE(cq); i++) {
        cq[i] = cq_create(g, &eq, 1, 4);
        cq_arm(&cq[i], false);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(cq); i++) {
        push_cqe(&cq[i], i);
    }
    CHECK(!vhca_list_empty(&vhca_eq_get(g->e, eq.eqn)->pending));
    snapshot_cycle(g);
    for (unsigned i = 0; i < ARRAY_SIZE(cq); i++) {
        eq_expect(&eq, QHCA_EVENT_COMP, cq[i].cqn);
        eq_arm(&eq);
    }
    eq_expect_none(&eq);
}

/* A frame that waits in the port goes on, whatever time it is. */
static void at_no_time(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 99, 100);
    struct qhca_cqe cqe;
    struct eth_rx rx;
    uint8_t *state;
    size_t len;

    start_node();
    port_enable(g, test_mac, 0, 1500);
    rx = eth_rx_create(g, &node.comp, 4, 2000);
    vhca_rx_keep(g->e, f.data, f.len);
    state = snapshot_save(g, &len);
    REQUIRE(state);
    g->e->now = *g->clock = 0;
    CHECK(snapshot_load(g, state, len));
    qhca_engine_run(g->e, 0);
    CHECK(cq_poll(&rx.cq, &cqe));
}

/* The addresses that the port takes frames for. */
static void filter(void)
{
    static const uint8_t mac[6] = { 0x33, 0x33, 1, 2, 3, 4 };
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_SET_MCAST) };
    struct qhca_mcast_list list = { 0 };
    struct frame f = udp_frame(mac, 1, 2, 99, 100);
    struct qhca_cqe cqe;
    struct eth_rx rx;

    start_node();
    rx = eth_rx_create(g, &node.comp, 4, 2000);
    memcpy(list.mac[0], mac, sizeof(mac));
    cmd.set_mcast.count = htole32(1);
    CHECK_EQ(guest_cmd_mbox(g, &cmd, &list, sizeof(list), NULL, 0, NULL),
             QHCA_OK);
    snapshot_cycle(g);
    guest_rx(g, f.data, f.len);
    CHECK(cq_poll(&rx.cq, &cqe));
}

static const struct test tests[] = {
    { "a field of the scene is wrong", one_field },
    { "an event waits twice", event_twice },
    { "a WR is none of the QP's type", opcodes },
    { "a WR without data has none", lengths },
    { "before RTS nothing is posted", posted_before_rts },
    { "only a QP that sends has a timer", timers },
    { "a QP has a doorbell record if it says so", records },
    { "a registration has rights that REG_MR allows", fast_rights },
    { "a region knows its windows", windows_of_region },
    { "a page has its place", number_of_leaf },
    { "CQs wait for room in their EQ", completion_events },
    { "a frame that waits goes on", at_no_time },
    { "the port takes multicast frames", filter },
};

TEST_MAIN(tests)
