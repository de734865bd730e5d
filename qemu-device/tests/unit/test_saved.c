/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: saved states with single fields edited: the device refuses
 * to load values that would do harm later.
 */
#include "harness/budget.h"
#include "harness/fields.h"
#include "harness/keys.h"
#include "harness/scene.h"
#include "harness/snapshot.h"

#define MAX_EDITS   8u

static struct field_edit edits[MAX_EDITS];
static unsigned num_edits;

static struct vhca_qp *q_of(const struct rc_qp *q)
{
    return vhca_qp_get(g->e, q->qpn);
}

/* Edits the only field @name of @section. */
static void set(const char *section, const char *name, uint64_t value)
{
    REQUIRE(num_edits < MAX_EDITS);
    CHECK_EQ(fields_count(g, section, name), 1);
    edits[num_edits++] = (struct field_edit) {
        .which = fields_find(g, section, name, 0), .value = value,
    };
}

/* Edits the @nth field @name of @section. */
static void set_nth(const char *section, const char *name, unsigned nth,
                    uint64_t value)
{
    REQUIRE(num_edits < MAX_EDITS);
    edits[num_edits++] = (struct field_edit) {
        .which = fields_find(g, section, name, nth), .value = value,
    };
}

/* Loading the state with the edits must fail, with @why in the reason. */
static void refused_for(const char *why)
{
    size_t len;
    uint8_t *state = fields_save(g, edits, num_edits, &len);

    num_edits = 0;
    CHECK(!snapshot_load(g, state, len));
    CHECK_EQ(dev_state(g), QHCA_STATE_RESET);
    if (!strstr(snapshot_why(), why)) {
        tap_note("%s", snapshot_why());
        CHECK(!"the reason");
    }
}

/* The device must refuse to save its state, with @why in the reason. */
static void not_saved_for(const char *why)
{
    static uint8_t scratch[1u << 20];
    static char said[200];

    CHECK_EQ(qhca_engine_save(g->e, g->e->now, scratch, sizeof(scratch), said,
                              sizeof(said)), 0);
    CHECK(strstr(said, why));
}

/* ---- the send cursor where nothing is being sent ---- */

static void cursor_before_rts(void)
{
    static const char *const unused[] = {
        "next_psn", "snd_psn", "max_psn", "una_psn", "rd_atomic", "rnr_wait",
    };

    for (unsigned state = QHCA_QPS_RESET; state <= QHCA_QPS_RTR; state++) {
        start_in(&RC_OPTS, state);
        set("transport", "snd_wqe", 5);
        refused_for("PSNs");
        for (unsigned i = 0; i < ARRAY_SIZE(unused); i++) {
            start_in(&RC_OPTS, state);
            set("transport", unused[i], 1);
            refused_for("PSNs");
        }
    }
}

/* A fence would wait for ever for a READ, a QP for a WR that has failed. */
static void waits_in_rts(void)
{
    static const char *const none[] = { "rd_atomic", "stopped" };

    for (unsigned i = 0; i < ARRAY_SIZE(none); i++) {
        start_in(&RC_OPTS, QHCA_QPS_RTS);
        set("transport", none[i], 1);
        refused_for("PSNs");
    }
}

static void cursor_in_sqe(void)
{
    struct rc_wr wr;

    start_type(QHCA_QPT_UC);
    wr = rc_wr(&qp, 0x77, 0, 8);
    rc_post(&qp, &wr);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_SQE);
    snapshot_cycle(g);
    set("transport", "snd_wqe", 9);
    refused_for("PSNs");
}

/* No WR has begun, so the QP has no memory for WRs. */
static void cursor_while_flushing(void)
{
    start_type(QHCA_QPT_UC);
    set("transport", "snd_wqe", 7);
    set("transport", "flushing", 1);
    set("transport", "flush_to", q_of(&qp)->sq.ci);
    refused_for("PSNs");
}

/* A send cursor beyond the inline data would send the host's memory. */
static void psns_while_flushing(void)
{
    static const char *const psns[] = {
        "next_psn", "snd_psn", "max_psn", "una_psn"
    };
    struct rc_wr wr;

    start_alone(&RC_OPTS);
    g->net_blocked = true;
    for (unsigned i = 0; i < 2; i++) {
        wr = rc_wr(&qp, QHCA_WR_SEND, 0, 0);
        wr.num_sge = 0;
        wr.flags |= QHCA_WQE_INLINE;
        wr.inline_data = "inline";
        wr.inline_len = 6;
        rc_put(&qp, &wr);
    }
    rc_ring(&qp);
    guest_settle(g);
    vhca_timer_cancel(g->e, &q_of(&qp)->req.timer);
    set("transport", "flushing", 1);
    set("transport", "flush_to", q_of(&qp)->sq.ci + 1);
    for (unsigned i = 0; i < ARRAY_SIZE(psns); i++) {
        set("transport", psns[i], 0x112111);
    }
    refused_for("PSNs");
}

/* ---- responses of a QP whose type has none ---- */

static void answers(void)
{
    static const uint8_t types[] = { QHCA_QPT_UC, QHCA_QPT_UD };

    for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
        struct vhca_qp *q;

        start_type(types[i]);
        q = q_of(&qp);
        q->attr.path_mtu = 3;
        q->mtu = 1024;
        vhca_response_ack(q, AETH_ACK, 5);
        not_saved_for("answers");
    }
}

/* ---- receive WRs ---- */

static void sges_of_srq(void)
{
    struct qhca_seg_le sge[3];
    struct rc_qp q;

    start_shared(4, 3, 1, &RC_OPTS);
    far = node;
    far.host = 99;
    for (unsigned i = 0; i < ARRAY_SIZE(sge); i++) {
        sge[i] = (struct qhca_seg_le) { node.mr.addr, 1000, node.mr.key };
    }
    srq_put(&srq, 1, ARRAY_SIZE(sge), sge);
    srq_ring(&srq);
    q = srq_scripted();
    srq_half_message(&q);
    CHECK(q_of(&q)->rsp.rwr.taken);
    snapshot_cycle(g);
    set("receive", "max_sge", 2);
    refused_for("SGEs of a receive WR");
}

static void sges_of_rq(void)
{
    struct qhca_seg_le sge[3];

    start_alone(&RC_OPTS);
    for (unsigned i = 0; i < ARRAY_SIZE(sge); i++) {
        sge[i] = (struct qhca_seg_le) { node.mr.addr, 1000, node.mr.key };
    }
    rc_recv_raw(&qp, 1, ARRAY_SIZE(sge), sge);
    srq_half_message(&qp);
    CHECK(q_of(&qp)->rsp.rwr.taken);
    snapshot_cycle(g);
    set_nth("transport", "max_sge", 1, 2);      /* 0 is the SQ's */
    refused_for("SGEs of a receive WR");
}

/* A bad receive WR fails when a message takes it, so none is ever in use. */
static void bad_wr_in_use(void)
{
    start_alone(&RC_OPTS);
    rc_recv(&qp, 1, 0, 3000);
    srq_half_message(&qp);
    CHECK(q_of(&qp)->rsp.rwr.taken);
    snapshot_cycle(g);
    set("transport", "bad", 1);
    refused_for("bad");
}

/* ---- what commands and WRs would refuse ---- */

/* A region of type DMA has no remote rights. */
static void rights_of_dma_region(void)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_REG_MR) };
    unsigned n;

    start_node();
    cmd.reg_mr.pdn = htole32(node.pdn);
    cmd.reg_mr.type = QHCA_MR_DMA;
    cmd.reg_mr.access = htole16(QHCA_ACCESS_LOCAL_WRITE);
    guest_create(g, &cmd);
    n = fields_count(g, "memory", "access");
    CHECK_EQ(n, 2);
    while (n > 0) {
        set_nth("memory", "access", --n, QHCA_ACCESS_LOCAL_WRITE |
                                         QHCA_ACCESS_REMOTE_WRITE);
    }
    refused_for("region is inconsistent");
}

/* No window can be bound to a zero-based region. */
static void rights_of_window(void)
{
    struct vhca_mr *mr;
    unsigned nth = 0;
    struct rc_wr wr;

    start_alone(&RC_OPTS);
    wr = wr_bind(&qp, next_key(mw_create(g, node.pdn, QHCA_MW_2B)), 4096, 5000,
                 QHCA_ACCESS_REMOTE_READ);
    rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
    vhca_table_each(&g->e->memory->mr, mr) {
        if (!mr->window) {
            break;
        }
        nth++;
    }
    set_nth("memory", "access", nth, QHCA_ACCESS_MW_BIND |
                                     QHCA_ACCESS_ZERO_BASED);
    refused_for("region is inconsistent");
}

/* MODIFY_QP refuses this right and all ports but 1. */
static void attributes(void)
{
    static const struct {
        size_t at;
        uint8_t byte;
    } bad[] = {
        { offsetof(struct qhca_qp_attr, access) + 1, 0x80 },
        { offsetof(struct qhca_qp_attr, av.port), 2 },
        { offsetof(struct qhca_qp_attr, port), 0 },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        start_alone(&RC_OPTS);
        set("transport", "attr", bad[i].at << 8 | bad[i].byte);
        refused_for("attributes");
    }
}

/* ---- frames ---- */

static void short_frames(void)
{
    static const uint8_t frame[ETH_LEN] = { 1 };

    start_node();
    REQUIRE(vhca_fifo_push(&g->e->port->tx, frame, ETH_LEN, 0, 0));
    snapshot_cycle(g);
    CHECK_EQ(vhca_fifo_used(&g->e->port->tx), 1);
    for (unsigned len = 0; len < ETH_LEN; len++) {
        set_nth("port", "length", 1, len);      /* 0 is the section's */
        refused_for("length of a frame");
        start_node();
        REQUIRE(vhca_fifo_push(&g->e->port->tx, frame, ETH_LEN, 0, 0));
    }
}

/* ---- what a guest can do ---- */

#define XRC_USERS   200u

/* Starts DESTROY_SRQ of an XRC SRQ, which visits all QPs, but not its end. */
static struct gsrq leave_destroy_srq(void)
{
    struct rc_opts o = RC_OPTS;
    struct roce_packet p;
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_DESTROY_SRQ) };
    struct rc_qp q;
    struct gsrq s;

    start_node();
    far = node;
    far.host = 99;
    o.type = QHCA_QPT_XRC_TGT;
    o.xrcdn = xrcd_create(g);
    s = srq_create_xrc(&node, node.pdn, 6, 2, o.xrcdn);
    for (unsigned i = 0; i < XRC_USERS; i++) {
        q = rc_scripted(&node, &o, &far);
        p = peer_packet(&q, SVC_XRC | RC_WRITE_ONLY, o.rq_psn);
        p.srqn = s.srqn;
        p.va = node.mr.addr;
        p.rkey = node.mr.key;
        peer_inject(&q, &p, NULL, 0);
    }
    limit_cpu(g, 1);
    *g->clock += 10000000;
    cmd.obj.obj = htole32(s.srqn);
    guest_cmd_start(g, &cmd, 1);
    return s;
}

static void destroy_srq(void)
{
    struct gsrq s = leave_destroy_srq();
    unsigned using = 0;
    struct vhca_qp *q;

    vhca_table_each(&g->e->qps->table, q) {
        using += q->srq != NULL;
    }
    CHECK(using && using < XRC_USERS);
    CHECK(g->e->cmdq->active && vhca_srq_get(g->e, s.srqn)->gone);
    snapshot_cycle(g);
    CHECK(g->e->cmdq->active && vhca_srq_get(g->e, s.srqn)->gone);
    guest_advance(g, 1000000000);
    CHECK(!g->e->cmdq->active);
    CHECK(!vhca_srq_get(g->e, s.srqn));
}

/* ---- saving ---- */

#define ALL_FIELDS  3000u       /* the scene has at least as many */

/* A wrong state of any QP makes a save fail, which changes nothing. */
static void refused_save(void)
{
    static uint8_t good[1u << 20];
    struct vhca_qp *q;
    uint8_t *state;
    size_t len;

    scene_start();
    state = snapshot_save(g, &len);
    REQUIRE(state && len <= sizeof(good));
    memcpy(good, state, len);
    vhca_table_each(&g->e->qps->table, q) {
        uint8_t is = q->state;
        size_t again;

        q->state = QHCA_QPS_ERR + 1;
        not_saved_for("");
        q->state = is;
        state = snapshot_save(g, &again);
        CHECK(state && again == len && !memcmp(state, good, len));
    }
}

/* The harness restores the objects that it edits during a save. */
static void in_objects(void)
{
    static uint8_t good[1u << 20];
    struct field_edit edit = { .how = FIELD_ADD | FIELD_IN_OBJECT, .value = 1 };
    size_t len, again;
    uint8_t *state;

    scene_start();
    state = snapshot_save(g, &len);
    REQUIRE(state && len <= sizeof(good));
    memcpy(good, state, len);
    for (edit.which = 0; edit.which < ALL_FIELDS; edit.which += 5) {
        fields_save(g, &edit, 1, &again);
    }
    state = snapshot_save(g, &again);
    CHECK(state && again == len && !memcmp(state, good, len));
}

/* ---- numbers that lead beyond an array ---- */

static void slots(void)
{
    start_alone(&RC_OPTS);
    set_nth("transport", "slot", 0, g->e->qps->table.size);
    refused_for("slot is inconsistent");
}

static void kinds_of_timers(void)
{
    start_alone(&RC_OPTS);
    rc_send(&qp, 8);            /* without an ACK */
    set("device", "kind of timer", 3);
    refused_for("kind of timer is 3, at most 2");
}

static const struct test tests[] = {
    { "before RTS the send cursor is unused", cursor_before_rts },
    { "a QP in RTS waits only for WRs that have begun", waits_in_rts },
    { "in SQE the send cursor is unused", cursor_in_sqe },
    { "while flushing the send cursor is unused", cursor_while_flushing },
    { "while flushing there are no PSNs to send", psns_while_flushing },
    { "a receive WR fits its SRQ", sges_of_srq },
    { "a receive WR fits its receive queue", sges_of_rq },
    { "no receive WR in use is bad", bad_wr_in_use },
    { "a DMA region has no remote rights", rights_of_dma_region },
    { "the region of a window allows windows", rights_of_window },
    { "the attributes of a QP are valid", attributes },
    { "frames have an Ethernet header", short_frames },
    { "a DESTROY_SRQ that is half done is saved", destroy_srq },
    { "a QP without responses has none", answers },
    { "a save that is refused changes nothing", refused_save },
    { "edits of objects are undone", in_objects },
    { "an object has a slot of its table", slots },
    { "a timer is of one of three kinds", kinds_of_timers },
};

TEST_MAIN(tests)
