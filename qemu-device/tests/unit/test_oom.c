/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A host out of memory, and limits that are reached: refusals that change
 * nothing.
 */
#include "harness/debug.h"
#include "harness/fixture.h"
#include "harness/oom.h"

/* ---- creation of the engine ---- */

static const struct qhca_engine_config good = {
    .mac = { 0x52, 0x54, 0, 1, 2, 3 },
    .num_vectors = 2, .num_uars = 1, .log_db_stride = 12, .max_qp = 1,
    .eth_queues = 1,
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
    TRY(c.eth_queues = 0, 0);
    TRY(c.eth_queues = 3, 0);
    TRY(c.eth_queues = 8, 1);
    TRY(c.eth_queues = 16, 0);
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
        CHECK_EQ(!!e, at == offsetof(struct qhca_engine_ops, send_long) ||
                      at == offsetof(struct qhca_engine_ops, loop_frame) ||
                      at == offsetof(struct qhca_engine_ops, neighbour) ||
                      at == offsetof(struct qhca_engine_ops, remove) ||
                      at == offsetof(struct qhca_engine_ops, enough) ||
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

static int run_one(unsigned which, const struct gbuf *mem, uint32_t key)
{
    struct qhca_cmd cmd = { .mailbox = htole64(g->mbox) };
    struct qhca_create_qp c = {
        .sq = mem->desc, .rq = mem->desc, .pdn = htole32(node.pdn),
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
        cmd.reg_mr.pdn = htole32(node.pdn);
        cmd.reg_mr.key = htole32(key);
        cmd.reg_mr.rereg = QHCA_REREG_TRANS;
        break;
    case 3:
        cmd.opcode = htole16(QHCA_CMD_CREATE_CQ);
        cmd.create_cq.buf = mem->desc;
        cmd.create_cq.eqn = htole32(node.comp.eqn);
        break;
    case 4:
        cmd.opcode = htole16(QHCA_CMD_CREATE_EQ);
        cmd.create_eq.buf = mem->desc;
        break;
    case 5:
        cmd.opcode = htole16(QHCA_CMD_CREATE_SHADOW);
        cmd.create_shadow.buf = mem->desc;
        cmd.create_shadow.uar = htole32(2);
        cmd.create_shadow.slots = htole32(64);
        break;
    default:
        cmd.opcode = htole16(QHCA_CMD_CREATE_QP);
        c.send_cqn = c.recv_cqn = htole32(key);   /* here @key is a CQN */
        memcpy(guest_ptr(g, g->mbox, sizeof(c)), &c, sizeof(c));
    }
    return guest_cmd(g, &cmd, NULL);
}

static void no_memory_for_objects(void)
{
    unsigned which, i, objects;
    uint32_t blocks;
    struct gbuf mem;
    struct gcq cq;
    int status;

    start_node();
    mem = guest_buf(g, 600 << 12, 12, 2);
    cq = cq_create(g, &node.comp, 1, 4);
    blocks = g->e->table_blocks;
    for (which = 0; which < 7; which++) {
        objects = qhca_engine_num_objects(g->e);
        status = QHCA_ERR_NO_RESOURCE;
        for (i = 1; i < 50 && status != QHCA_OK; i++) {
            oom_after(i);
            status = run_one(which, &mem, which == 6 ? cq.cqn : node.mr.key);
            CHECK_EQ(status, oom_happened() ? QHCA_ERR_NO_RESOURCE : QHCA_OK);
            oom_after(0);
            if (status != QHCA_OK) {
                CHECK_EQ(qhca_engine_num_objects(g->e), objects);
                CHECK_EQ(g->e->table_blocks, blocks);
            }
        }
        CHECK(i > 2);
        blocks = g->e->table_blocks;
    }
}

/* Frames for which there is no memory are lost, and sent again. */
static void no_memory_for_frames(void)
{
    start_pair(&RC_OPTS);
    g->e->cfg.frames = true;
    guest_fill(g, node.mr.addr, 5000, 4);
    rc_recv(&peer, 1, 10000, 5000);
    oom_after(2);                       /* the first is for the WR */
    rc_send(&qp, 5000);
    CHECK(oom_happened());
    oom_after(0);
    guest_advance(g, 1000000000);
    done(0, QHCA_WC_SUCCESS);
    rc_expect(&peer.rcq, 1, QHCA_WC_SUCCESS);
    CHECK(guest_is_filled(g, node.mr.addr + 10000, 5000, 4));
}

/* A QP allocates memory for outstanding WRs when its first WR begins. */
static void no_memory_for_wrs(void)
{
    start_pair(&RC_OPTS);
    post_writes(&qp, 1, 8);
    oom_after(1);
    rc_ring(&qp);
    CHECK(oom_happened());
    oom_after(0);
    done(0, QHCA_WC_WR_FLUSH_ERR);
    eq_expect(&node.async, QHCA_EVENT_QP_FATAL, qp.qpn);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
    CHECK_EQ(rc_destroy(&qp), QHCA_OK);
}

/* Memory for rules is allocated when they are set; else they are refused. */
static void no_memory_for_rules(void)
{
    struct qhca_fault_error err = { 0 };

    static const struct {
        const char *text;
        unsigned blocks;
    } rules[] = { { "tx delay=1ms", 1 }, { "port order=adversarial", 3 } };

    for (unsigned i = 0; i < ARRAY_SIZE(rules); i++) {
        for (unsigned n = 1; n <= rules[i].blocks; n++) {
            g = guest_new();
            oom_once(n);
            CHECK(!qhca_engine_set_faults(g->e, *g->clock, rules[i].text,
                                          &err));
            CHECK(oom_happened());
            oom_after(0);
            CHECK(!strcmp(err.what, "no memory for rules"));
            CHECK(!g->e->rules->num_rules);
            guest_set_faults(g, rules[i].text);
        }
    }
}

/* ---- J-001: every limit works, and one more is refused ---- */

static void fill_kind(struct qhca_cmd *cmd, unsigned max)
{
    unsigned i;

    for (i = 0; i < max; i++) {
        REQUIRE(guest_cmd(g, cmd, NULL) == QHCA_OK);
    }
    CHECK_EQ(guest_cmd(g, cmd, NULL), QHCA_ERR_NO_RESOURCE);
}

static void limits(void)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_ALLOC_PD) };
    struct gbuf mem;
    struct geq eq;

    g = guest_start();
    eq = eq_create(g, 1, 4, 0);
    mem = guest_buf(g, 8192, 12, 0);
    fill_kind(&cmd, le32toh(device_attr(g).max_pd));
    cmd.opcode = htole16(QHCA_CMD_CREATE_CQ);
    cmd.create_cq.buf = mem.desc;
    cmd.create_cq.eqn = htole32(eq.eqn);
    fill_kind(&cmd, le32toh(device_attr(g).max_cq));
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
