/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A host out of memory, and limits that are reached: refusals that change
 * nothing.
 */
#include "harness/debug.h"
#include "harness/oom.h"
#include "harness/rc.h"

/* ---- creation of the engine ---- */

static const struct qhca_engine_config good = {
    .mac = { 0x52, 0x54, 0, 1, 2, 3 },
    .num_vectors = 2, .num_uars = 1, .log_db_stride = 12, .max_qp = 1,
};

static struct guest nobody;     /* whom its engines never need */

static void configurations(void)
{
    struct qhca_engine_config c;
    struct qhca_engine *e;
    struct qhca_engine_ops o;
    unsigned i;

#define TRY(change, works) \
    do { \
        c = good; \
        change; \
        e = qhca_engine_new(&c, &guest_ops, &nobody); \
        CHECK_EQ(e != NULL, works); \
        qhca_engine_free(e); \
    } while (0)
    TRY((void)0, 1);
    TRY(c.num_vectors = 1, 0);
    TRY(c.num_vectors = 2049, 0);
    TRY(c.num_uars = 0, 0);
    TRY(c.num_uars = 65536, 0);
    TRY(c.num_uars = 65535, 1);
    TRY(c.log_db_stride = 11, 0);
    TRY(c.log_db_stride = 16, 1);
    TRY(c.log_db_stride = 17, 0);
    TRY(c.max_qp = 0, 0);
    TRY(c.max_qp = 1000, 1);
    TRY(c.max_qp = (1 << 18) + 1, 0);
    TRY(c.mac[0] = 1, 0);
#undef TRY
    for (i = 0; i < sizeof(o) / sizeof(void *); i++) {
        size_t at = i * sizeof(void *);

        o = guest_ops;
        memset((char *)&o + at, 0, sizeof(void *));
        e = qhca_engine_new(&good, &o, &nobody);
        CHECK_EQ(!!e, at == offsetof(struct qhca_engine_ops, loop_frame) ||
                      at == offsetof(struct qhca_engine_ops, neighbour) ||
                      at == offsetof(struct qhca_engine_ops, remove) ||
                      at == offsetof(struct qhca_engine_ops, trace));
        qhca_engine_free(e);
    }
    o = guest_ops;
    o.remove = NULL;
    c = good;
    c.removable = true;
    CHECK(!qhca_engine_new(&c, &o, &nobody));
}

static void no_memory_at_start(void)
{
    struct qhca_engine *e = NULL;
    unsigned i;

    for (i = 1; i < 100 && !e; i++) {
        oom_after(i);
        e = qhca_engine_new(&good, &guest_ops, &nobody);
        CHECK_EQ(!e, oom_happened());
        oom_after(0);
    }
    CHECK(i > 10);
    qhca_engine_free(e);
}

/* ---- commands ---- */

static int run_one(struct node *n, unsigned which, const struct gbuf *mem,
                   uint32_t key)
{
    struct qhca_cmd cmd = { .mailbox = htole64(n->g->mbox) };
    struct qhca_create_qp qp = {
        .sq = mem->desc, .rq = mem->desc, .pdn = htole32(n->pdn),
        .type = QHCA_QPT_RC, .sq_log_stride = 7, .rq_log_stride = 6,
    };

    switch (which) {
    case 0:
        cmd.opcode = htole16(QHCA_CMD_ALLOC_PD);
        break;
    case 1:
    case 2:
        cmd.opcode = htole16(which == 1 ? QHCA_CMD_REG_MR : QHCA_CMD_REREG_MR);
        cmd.reg_mr.buf = mem->desc;
        cmd.reg_mr.length = htole64(4096);
        cmd.reg_mr.pdn = htole32(n->pdn);
        cmd.reg_mr.key = htole32(key);
        cmd.reg_mr.rereg = QHCA_REREG_TRANS;
        break;
    case 3:
        cmd.opcode = htole16(QHCA_CMD_CREATE_CQ);
        cmd.create_cq.buf = mem->desc;
        cmd.create_cq.eqn = htole32(n->comp.eqn);
        break;
    case 4:
        cmd.opcode = htole16(QHCA_CMD_CREATE_EQ);
        cmd.create_eq.buf = mem->desc;
        break;
    default:
        cmd.opcode = htole16(QHCA_CMD_CREATE_QP);
        qp.send_cqn = qp.recv_cqn = htole32(key);   /* here @key is a CQN */
        memcpy(guest_ptr(n->g, n->g->mbox, sizeof(qp)), &qp, sizeof(qp));
    }
    return guest_cmd(n->g, &cmd, NULL);
}

static void no_memory_for_objects(void)
{
    struct node n = node_new(NULL, 1);
    struct gbuf mem = guest_buf(n.g, 600 << 12, 12, 2);
    struct gcq cq = cq_create(n.g, &n.comp, 1, 4);
    uint32_t blocks = n.g->e->table_blocks;
    unsigned which, i, objects;
    int status;

    for (which = 0; which < 6; which++) {
        objects = qhca_engine_num_objects(n.g->e);
        status = QHCA_ERR_NO_RESOURCE;
        for (i = 1; i < 50 && status != QHCA_OK; i++) {
            oom_after(i);
            status = run_one(&n, which, &mem, which == 5 ? cq.cqn : n.mr.key);
            CHECK_EQ(status, oom_happened() ? QHCA_ERR_NO_RESOURCE : QHCA_OK);
            oom_after(0);
            if (status != QHCA_OK) {
                CHECK_EQ(qhca_engine_num_objects(n.g->e), objects);
                CHECK_EQ(n.g->e->table_blocks, blocks);
            }
        }
        CHECK(i > 2);
        blocks = n.g->e->table_blocks;
    }
}

/* Frames for which there is no memory are lost, and sent again. */
static void no_memory_for_frames(void)
{
    struct node n = node_new(NULL, 1);
    struct rc_qp a = rc_create(&n, &RC_OPTS), b = rc_create(&n, &RC_OPTS);
    struct rc_wr wr;

    n.g->e->cfg.frames = true;
    rc_connect(&a, &b);
    guest_fill(n.g, n.mr.addr, 5000, 4);
    rc_recv(&b, 1, 10000, 5000);
    wr = rc_wr(&a, QHCA_WR_SEND, 0, 5000);
    oom_after(2);                       /* the first is for the WR */
    rc_post(&a, &wr);
    CHECK(oom_happened());
    oom_after(0);
    guest_advance(n.g, 1000000000);
    rc_expect(&a.scq, wr.wr_id, QHCA_WC_SUCCESS);
    rc_expect(&b.rcq, 1, QHCA_WC_SUCCESS);
    CHECK(guest_is_filled(n.g, n.mr.addr + 10000, 5000, 4));
}

/* A QP allocates memory for outstanding WRs when its first WR begins. */
static void no_memory_for_wrs(void)
{
    struct node n = node_new(NULL, 1);
    struct rc_qp a = rc_create(&n, &RC_OPTS), b = rc_create(&n, &RC_OPTS);
    struct rc_wr wr;

    rc_connect(&a, &b);
    wr = rc_wr(&a, QHCA_WR_RDMA_WRITE, 0, 8);
    rc_aim(&wr, &n, 4096);
    oom_after(1);
    rc_post(&a, &wr);
    CHECK(oom_happened());
    oom_after(0);
    rc_expect(&a.scq, wr.wr_id, QHCA_WC_WR_FLUSH_ERR);
    eq_expect(&n.async, QHCA_EVENT_QP_FATAL, a.qpn);
    CHECK_EQ(rc_state(&a), QHCA_QPS_ERR);
    CHECK_EQ(rc_destroy(&a), QHCA_OK);
}

/* Memory for rules is allocated when they are set; else they are refused. */
static void no_memory_for_rules(void)
{
    struct qhca_fault_error err = { 0 };
    struct guest *g = guest_new();

    oom_after(1);
    CHECK(!qhca_engine_set_faults(g->e, *g->clock, "tx delay=1ms", &err));
    CHECK(oom_happened());
    oom_after(0);
    CHECK(!strcmp(err.what, "no memory for rules"));
    CHECK(!g->e->faults->num_rules);
    guest_set_faults(g, "tx delay=1ms");
}

/* ---- J-001: every limit works, and one more is refused ---- */

static void fill_kind(struct guest *g, struct qhca_cmd *cmd, unsigned max)
{
    unsigned i;

    for (i = 0; i < max; i++) {
        REQUIRE(guest_cmd(g, cmd, NULL) == QHCA_OK);
    }
    CHECK_EQ(guest_cmd(g, cmd, NULL), QHCA_ERR_NO_RESOURCE);
}

static void limits(void)
{
    struct guest *g = guest_start();
    struct geq eq = eq_create(g, 1, 4, 0);
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_ALLOC_PD) };
    struct gbuf mem = guest_buf(g, 8192, 12, 0);

    fill_kind(g, &cmd, QHCA_MAX_PD);
    cmd.opcode = htole16(QHCA_CMD_CREATE_CQ);
    cmd.create_cq.buf = mem.desc;
    cmd.create_cq.eqn = htole32(eq.eqn);
    fill_kind(g, &cmd, QHCA_MAX_CQ);
}

static const struct test tests[] = {
    { "configurations of the engine", configurations },
    { "no memory for the engine", no_memory_at_start },
    { "no memory for objects", no_memory_for_objects },
    { "no memory for frames", no_memory_for_frames },
    { "no memory for WRs", no_memory_for_wrs },
    { "no memory for rules", no_memory_for_rules },
    { "J-001 limits that are reached", limits },
};

TEST_MAIN(tests)
