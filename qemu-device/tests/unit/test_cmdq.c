/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command queue: rings, indices, mailboxes, refusals.
 */
#include "harness/harness.h"

static void wraps(void)
{
    struct guest *g = guest_new();
    unsigned log, i;

    for (log = 0; log <= 8; log++) {
        guest_enable(g, log);
        for (i = 0; i < 700; i++) {
            REQUIRE(guest_cmd_obj(g, QHCA_CMD_NOP, 0) == QHCA_OK);
        }
        reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    }
    CHECK_EQ(counter(g, QHCA_CNT_BAD_CMD), 0);
}

/* A ring full of commands, with one doorbell: all are executed, in order. */
static void batch(void)
{
    struct guest *g = guest_new();
    struct qhca_cmd *cmd;
    struct qhca_cmd_comp *comp;
    unsigned i;

    guest_enable(g, 4);
    cmd = guest_ptr(g, g->cmd_sq, 16 * sizeof(*cmd));
    comp = guest_ptr(g, g->cmd_cq, 16 * sizeof(*comp));
    for (i = 0; i < 16; i++) {
        cmd[i].opcode = htole16(QHCA_CMD_ALLOC_PD);
        cmd[i].token = htole32(i * 3);
    }
    ring(g, 0, QHCA_DB_CMD, 0, 16);
    for (i = 0; i < 16; i++) {
        CHECK_EQ(comp[i].owner, QHCA_OWNER_PHASE);
        CHECK_EQ(le32toh(comp[i].token), i * 3);
        CHECK_EQ(le16toh(comp[i].slot), i);
        CHECK(comp[i].obj != 0);
    }
    CHECK_EQ(qhca_engine_num_objects(g->e), 16);
    CHECK_EQ(g->irqs[0], 1);
    CHECK_EQ(g->reads, 16);
    ring(g, 0, QHCA_DB_CMD, 0, 16);     /* nothing new */
    CHECK_EQ(g->irqs[0], 1);
    CHECK_EQ(g->reads, 16);
}

/* Rings for @n commands; those in the mask @polled need no interrupt. */
static void batch_polled(struct guest *g, unsigned n, unsigned polled)
{
    struct qhca_cmd cmd[16] = { 0 };

    for (unsigned i = 0; i < n; i++) {
        cmd[i].opcode = htole16(QHCA_CMD_NOP);
        cmd[i].polled = polled >> i & 1;
    }
    guest_cmd_start(g, cmd, n);
    CHECK(guest_cmd_comp(g, g->cmd_pi - 1) != NULL);
    g->cmd_ci = g->cmd_pi;
}

/* No interrupt for those who look themselves; the others are told. */
static void polled(void)
{
    struct guest *g = guest_new();
    struct qhca_cmd *cmd;

    guest_enable(g, 4);
    cmd = guest_ptr(g, g->cmd_sq, 16 * sizeof(*cmd));
    batch_polled(g, 1, 1);
    CHECK_EQ(g->irqs[0], 0);
    CHECK_EQ(cmd[0].polled, 1);         /* the driver's to write */
    batch_polled(g, 7, 0x7f);
    CHECK_EQ(g->irqs[0], 0);
    batch_polled(g, 3, 5);              /* the one in the middle */
    CHECK_EQ(g->irqs[0], 1);
    batch_polled(g, 2, 2);
    CHECK_EQ(g->irqs[0], 2);
    batch_polled(g, 1, 0);
    CHECK_EQ(g->irqs[0], 3);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_CMD), 0);
}

/* The driver stops looking just before it could have seen the answer. */
static void stop_polling(struct guest *g, uint64_t addr, size_t len, bool write)
{
    struct qhca_cmd *cmd = guest_ptr(g, g->cmd_sq, sizeof(*cmd));

    (void)len;
    if (write && addr == g->cmd_cq) {
        CHECK_EQ(g->irqs[0], 0);
        cmd->polled = 0;
    }
}

/* Setting it later changes nothing: the interrupt may be on its way. */
static void start_polling(struct guest *g, uint64_t addr, size_t len,
                          bool write)
{
    struct qhca_cmd *cmd = guest_ptr(g, g->cmd_sq, 2 * sizeof(*cmd));

    (void)len;
    if (write && addr == g->cmd_cq + 64) {
        cmd[1].polled = 1;
    }
}

static void polled_no_more(void)
{
    struct guest *g = guest_new();

    guest_enable(g, 4);
    g->on_dma = stop_polling;
    batch_polled(g, 1, 1);
    CHECK_EQ(g->irqs[0], 1);
    g->on_dma = start_polling;
    batch_polled(g, 1, 0);
    CHECK_EQ(g->irqs[0], 2);
}

static void bad_index(void)
{
    static const uint32_t index[] = { 33, 0x80000000, 0xffffffff };
    struct guest *g = guest_new();
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(index); i++) {
        guest_enable(g, 5);
        ring(g, 0, QHCA_DB_CMD, 0, index[i]);
        CHECK_EQ(dev_state(g), QHCA_STATE_FATAL);
        CHECK_EQ(reg_read(g, QHCA_REG_FATAL), QHCA_FATAL_CMDQ_INDEX);
        CHECK_EQ(g->irqs[0], i + 1);
        CHECK_EQ(g->reads, 0);
        reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    }
    guest_enable(g, 5);
    guest_cmd_obj(g, QHCA_CMD_NOP, 0);
    ring(g, 0, QHCA_DB_CMD, 0, 0);      /* backwards */
    CHECK_EQ(reg_read(g, QHCA_REG_FATAL), QHCA_FATAL_CMDQ_INDEX);
}

static void ring_dma_fails(void)
{
    struct guest *g = guest_start();

    guest_spoil(g, g->cmd_sq, 64);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_ALLOC_PD, 0), -1);
    CHECK_EQ(reg_read(g, QHCA_REG_FATAL), QHCA_FATAL_CMDQ_DMA);
    CHECK_EQ(qhca_engine_num_objects(g->e), 0);
    g->bad_from = g->bad_to = 0;
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);

    guest_enable(g, 5);
    g->bad_from = g->cmd_cq + 63;       /* the owner byte alone */
    g->bad_to = g->cmd_cq + 64;
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_NOP, 0), -1);
    CHECK_EQ(reg_read(g, QHCA_REG_FATAL), QHCA_FATAL_CMDQ_DMA);
    CHECK_EQ(g->dma_after_stop, 0);
}

static void unknown_opcodes(void)
{
    struct guest *g = guest_start();
    struct qhca_cmd cmd = { 0 };
    unsigned op, known = 0, refused = 0;

    for (op = 0; op < 0x10000; op++) {
        cmd.opcode = htole16((uint16_t)op);
        switch (guest_cmd(g, &cmd, NULL)) {
        case QHCA_ERR_OPCODE:
            refused++;
            break;
        default:
            known++;
        }
    }
    CHECK_EQ(known, 56);
    CHECK_EQ(known + refused, 0x10000);
    CHECK(counter(g, QHCA_CNT_BAD_CMD) >= refused);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_CMD), g->errors);
    CHECK_EQ(dev_state(g), QHCA_STATE_RUNNING);
}

static void mailboxes(void)
{
    static const uint16_t with_mbox[] = {
        QHCA_CMD_QUERY_DEVICE, QHCA_CMD_SET_MCAST, QHCA_CMD_QUERY_COUNTERS,
        QHCA_CMD_CREATE_QP,
    };
    struct guest *g = guest_start();
    struct qhca_cmd cmd = { 0 };
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(with_mbox); i++) {
        cmd.opcode = htole16(with_mbox[i]);
        cmd.mailbox = 0;
        CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_PARAM);
        cmd.mailbox = htole64(g->mbox + 8);
        CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_PARAM);
        cmd.mailbox = htole64(0xfffffffffffff000ull);
        CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_DMA);
        cmd.mailbox = htole64(RAM_BASE - 4096);
        CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_DMA);
    }
    CHECK_EQ(counter(g, QHCA_CNT_DMA_ERR), 2 * i);
    cmd.opcode = htole16(QHCA_CMD_NOP);         /* ignores it */
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_OK);
}

static void query_device(void)
{
    struct guest *g = guest_start();
    struct {
        struct qhca_device_attr a;
        uint8_t rest[16];
    } out;

    CHECK_EQ(guest_query(g, QHCA_CMD_QUERY_DEVICE, 0, &out, sizeof(out)),
             QHCA_OK);
    CHECK_EQ(le64toh(out.a.node_guid), 0x505400fffe123456);
    CHECK_EQ(le32toh(out.a.max_qp), 1024);
    CHECK_EQ(le32toh(out.a.max_uar), NUM_UARS);
    CHECK(le32toh(out.a.max_cqe_log) >= 18);    /* libfabric: 196608 entries */
    CHECK(le32toh(out.a.max_sq_wr_log) >= 12);
    CHECK(le32toh(out.a.max_send_sge) >= 8);
    CHECK(le32toh(out.a.max_inline) >= 256);
    CHECK(le64toh(out.a.fw_version) != 0);
    CHECK_EQ(le64toh(out.a.caps), QHCA_CAP_SHADOW);
    CHECK_EQ(out.rest[0], 0x5a);                /* nothing after the struct */
}

static void query_counters(void)
{
    struct guest *g = guest_start();
    uint64_t v[QHCA_CNT_MAX + 1];

    guest_cmd_obj(g, 0x7777, 0);
    reg_read(g, 0x800);
    CHECK_EQ(guest_query(g, QHCA_CMD_QUERY_COUNTERS, 0, v, sizeof(v)), QHCA_OK);
    CHECK_EQ(le64toh(v[QHCA_CNT_BAD_CMD]), 1);
    CHECK_EQ(le64toh(v[QHCA_CNT_BAD_REG]), 1);
    CHECK_EQ(v[QHCA_CNT_MAX], 0x5a5a5a5a5a5a5a5a);
}

/* A command is read once: changes that the guest makes later have no effect. */
static void flip_opcode(struct guest *g, uint64_t addr, size_t len, bool write)
{
    (void)len;
    if (!write && addr >= g->cmd_sq && addr < g->cmd_sq + 2048) {
        memset(guest_ptr(g, addr, 64), 0xff, 64);
    }
}

static void read_once(void)
{
    struct guest *g = guest_start();
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_ALLOC_PD) };
    uint32_t obj = 0;

    g->on_dma = flip_opcode;
    CHECK_EQ(guest_cmd(g, &cmd, &obj), QHCA_OK);
    CHECK(obj != 0);
    CHECK_EQ(g->reads, 1);
}

static void pd_objects(void)
{
    struct guest *g = guest_start();
    uint32_t pd[8], i;
    struct gmr mr;

    for (i = 0; i < 8; i++) {
        pd[i] = pd_create(g);
    }
    mr = mr_create(g, pd[3], 4096, 0);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_PD, pd[3]), QHCA_ERR_BUSY);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, mr.key), QHCA_OK);
    for (i = 0; i < 8; i++) {
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_PD, pd[i]), QHCA_OK);
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_PD, pd[i]), QHCA_ERR_OBJ);
    }
    CHECK_EQ(qhca_engine_num_objects(g->e), 0);
}

static const struct test tests[] = {
    { "rings of all sizes wrap", wraps },
    { "a whole ring at once", batch },
    { "an answer that is polled for needs no interrupt", polled },
    { "an answer that is polled for no more needs one", polled_no_more },
    { "index out of range is fatal", bad_index },
    { "ring that cannot be accessed is fatal", ring_dma_fails },
    { "unknown opcodes are refused", unknown_opcodes },
    { "mailbox addresses are checked", mailboxes },
    { "QUERY_DEVICE", query_device },
    { "QUERY_COUNTERS", query_counters },
    { "a command is read once", read_once },
    { "protection domains and their users", pd_objects },
};

TEST_MAIN(tests)
