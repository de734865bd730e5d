/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Registers, life cycle, doorbell addressing.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/harness.h"

static void identity(void)
{
    struct guest *g = guest_new();

    CHECK_EQ(reg_read(g, QHCA_REG_MAGIC), QHCA_MAGIC);
    CHECK_EQ(reg_read(g, QHCA_REG_VERSION), QHCA_VERSION);
    CHECK_EQ(QHCA_GET(QHCA_CMD_CAPS_LOG_MAX,
                      reg_read(g, QHCA_REG_CMD_CAPS)), 8);
    CHECK_EQ(reg_read(g, QHCA_REG_CMD_TIMEOUT), 5000);
    CHECK_EQ(QHCA_GET(QHCA_DB_CAPS_PAGES, reg_read(g, QHCA_REG_DB_CAPS)),
             NUM_UARS);
    CHECK_EQ(QHCA_GET(QHCA_DB_CAPS_LOG_STRIDE, reg_read(g, QHCA_REG_DB_CAPS)),
             QHCA_PAGE_SHIFT);
    CHECK_EQ(QHCA_GET(QHCA_EQ_CAPS_MAX, reg_read(g, QHCA_REG_EQ_CAPS)), 64);
    CHECK_EQ(reg_read(g, QHCA_REG_VECTORS), NUM_VECTORS);
    CHECK_EQ(reg_read(g, QHCA_REG_MAC_LO), 0x12005452);
    CHECK_EQ(reg_read(g, QHCA_REG_MAC_HI), 0x5634);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_REG), 0);
}

static void power_on(void)
{
    struct guest *g = guest_new();

    CHECK_EQ(dev_state(g), QHCA_STATE_RESET);
    CHECK_EQ(reg_read(g, QHCA_REG_CONTROL), 0);
    CHECK_EQ(reg_read(g, QHCA_REG_FATAL), 0);
    CHECK(reg_read(g, QHCA_REG_STATUS) & QHCA_STATUS_LINK_UP);
    qhca_engine_set_link(g->e, 1, false);
    CHECK(!(reg_read(g, QHCA_REG_STATUS) & QHCA_STATUS_LINK_UP));
    CHECK_EQ(qhca_engine_num_objects(g->e), 0);
}

static void access_rights(void)
{
    static const unsigned ro[] = {
        QHCA_REG_MAGIC, QHCA_REG_VERSION, QHCA_REG_CMD_CAPS,
        QHCA_REG_CMD_TIMEOUT, QHCA_REG_DB_CAPS, QHCA_REG_EQ_CAPS,
        QHCA_REG_VECTORS, QHCA_REG_STATUS, QHCA_REG_FATAL,
        QHCA_REG_CMD_PROGRESS, QHCA_REG_MAC_LO, QHCA_REG_MAC_HI,
        QHCA_REG_CLOCK_LO, QHCA_REG_CLOCK_HI,
    };
    static const unsigned none[] = { 0x1c, 0x58, 0x5c, 0xffc, 0x1000 };
    struct guest *g = guest_new();
    uint64_t bad = 0;
    uint32_t before;
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(ro); i++) {
        before = reg_read(g, ro[i]);
        reg_write(g, ro[i], ~before);
        CHECK_EQ(counter(g, QHCA_CNT_BAD_REG), ++bad);
    }
    CHECK_EQ(reg_read(g, QHCA_REG_MAGIC), QHCA_MAGIC);
    CHECK_EQ(reg_read(g, QHCA_REG_RESET), 0);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_REG), ++bad);
    for (i = 0; i < ARRAY_SIZE(none); i++) {
        CHECK_EQ(reg_read(g, none[i]), 0);
        reg_write(g, none[i], 1);
        bad += 2;
        CHECK_EQ(counter(g, QHCA_CNT_BAD_REG), bad);
    }
    reg_write(g, QHCA_REG_RESET, 1);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_REG), ++bad);
    CHECK_EQ(reg_read(g, 2), 0);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_REG), ++bad);
    CHECK_EQ(g->errors, bad);
}

static void clock_latch(void)
{
    struct guest *g = guest_new();

    *g->clock = 0x00000002fffffffeull;
    CHECK_EQ(reg_read(g, QHCA_REG_CLOCK_LO), 0xfffffffe);
    *g->clock = 0x0000000300000005ull;
    CHECK_EQ(reg_read(g, QHCA_REG_CLOCK_HI), 2);
    CHECK_EQ(reg_read(g, QHCA_REG_CLOCK_LO), 5);
    CHECK_EQ(reg_read(g, QHCA_REG_CLOCK_HI), 3);
    *g->clock = 7;              /* the device's clock does not step back */
    CHECK_EQ(reg_read(g, QHCA_REG_CLOCK_LO), 5);
}

static void bad_config(void)
{
    static const struct {
        uint64_t sq, cq;
        uint32_t log;
    } bad[] = {
        { 0, RAM_BASE, 5 }, { RAM_BASE, 0, 5 }, { RAM_BASE + 64, RAM_BASE, 5 },
        { RAM_BASE, RAM_BASE + 2048, 5 }, { RAM_BASE, RAM_BASE + 8192, 9 },
        { RAM_BASE, RAM_BASE + 8192, 0xffffffff },
        { RAM_BASE, RAM_BASE + 8192, 0x108 },
    };
    struct guest *g = guest_new();
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(bad); i++) {
        reg_write(g, QHCA_REG_CMD_SQ_LO, (uint32_t)bad[i].sq);
        reg_write(g, QHCA_REG_CMD_SQ_HI, (uint32_t)(bad[i].sq >> 32));
        reg_write(g, QHCA_REG_CMD_CQ_LO, (uint32_t)bad[i].cq);
        reg_write(g, QHCA_REG_CMD_CQ_HI, (uint32_t)(bad[i].cq >> 32));
        reg_write(g, QHCA_REG_CMD_LOG_SIZE, bad[i].log);
        reg_write(g, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
        CHECK_EQ(dev_state(g), QHCA_STATE_FATAL);
        CHECK_EQ(reg_read(g, QHCA_REG_FATAL), QHCA_FATAL_CMDQ_CONFIG);
        reg_write(g, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
        CHECK_EQ(dev_state(g), QHCA_STATE_FATAL);
        reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
        CHECK_EQ(dev_state(g), QHCA_STATE_RESET);
        CHECK_EQ(reg_read(g, QHCA_REG_FATAL), 0);
    }
    CHECK_EQ(g->reads + g->writes, 0);
    guest_enable(g, 8);
    guest_cmd_obj(g, QHCA_CMD_NOP, 0);
}

static void running_is_fixed(void)
{
    struct guest *g = guest_start();
    uint64_t bad = counter(g, QHCA_CNT_BAD_REG);

    reg_write(g, QHCA_REG_CMD_SQ_LO, 0);
    reg_write(g, QHCA_REG_CMD_LOG_SIZE, 0);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_REG), bad + 2);
    CHECK_EQ(reg_read(g, QHCA_REG_CMD_SQ_LO), (uint32_t)g->cmd_sq);
    CHECK_EQ(reg_read(g, QHCA_REG_CMD_LOG_SIZE), 5);
    reg_write(g, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
    reg_write(g, QHCA_REG_CONTROL, 0);
    CHECK_EQ(dev_state(g), QHCA_STATE_RUNNING);
    CHECK_EQ(reg_read(g, QHCA_REG_CONTROL), QHCA_CONTROL_ENABLE);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_NOP, 0), QHCA_OK);
}

/* A reset frees all objects and keeps counters; the device works again. */
static void reset_empties(void)
{
    struct guest *g = guest_start();
    unsigned round, bad = 0;
    struct geq eq, async;
    struct gcq cq;
    uint32_t pd;

    for (round = 0; round < 5; round++) {
        async = eq_create(g, 0, 4, QHCA_EQ_ASYNC);
        eq = eq_create(g, 1, 4, 0);
        cq = cq_create(g, &eq, 3, 6);
        pd = pd_create(g);
        mr_create(g, pd, 5000, QHCA_ACCESS_LOCAL_WRITE);
        port_enable(g, test_mac, 0, 9000);
        gid_set_ipv4(g, 5, 1, test_mac);
        CHECK_EQ(qhca_engine_num_objects(g->e), 5);
        guest_cmd_obj(g, 0x99, 0);
        bad++;
        if (round % 2) {
            qhca_engine_reset(g->e, *g->clock);
        } else {
            reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
        }
        CHECK_EQ(qhca_engine_num_objects(g->e), 0);
        CHECK_EQ(dev_state(g), QHCA_STATE_RESET);
        CHECK_EQ(reg_read(g, QHCA_REG_CMD_SQ_LO), 0);
        CHECK_EQ(counter(g, QHCA_CNT_BAD_CMD), bad);
        guest_enable(g, 5);
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_CQ, cq.cqn), QHCA_ERR_OBJ);
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_EQ, async.eqn),
                 QHCA_ERR_OBJ);
        bad += 2;
    }
}

static void doorbell_addressing(void)
{
    struct guest *g = guest_start();
    struct geq eq = eq_create(g, 1, 4, 0);
    struct gcq cq = cq_create(g, &eq, 3, 4);
    uint64_t bad = 0;
    unsigned off;

    /* Offsets without a doorbell, and an SRQ that does not exist. */
    for (off = 0; off < QHCA_DB_PAGE_SIZE; off++) {
        if (off % 8 == 0 && (off <= QHCA_DB_CQ_ARM || (off >= QHCA_DB_EQ &&
                                                      off <= QHCA_DB_ETH))) {
            continue;
        }
        ring(g, 0, off, 0, 0);
        CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), ++bad);
    }
    ring(g, 0, QHCA_DB_SRQ, 5, 0);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), ++bad);

    /* Between two pages, where the stride is larger than a page. */
    for (off = QHCA_DB_PAGE_SIZE; off < 1u << QHCA_DB_LOG_STRIDE_MAX;
         off += QHCA_DB_PAGE_SIZE) {
        ring(g, 3, off + QHCA_DB_CQ_ARM, cq.cqn, 1);
        CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), ++bad);
    }

    /* A page reaches its own CQs only. */
    ring(g, 2, QHCA_DB_CQ_ARM, cq.cqn, 1);
    ring(g, 0, QHCA_DB_CQ_ARM, cq.cqn, 1);
    ring(g, 3, QHCA_DB_CQ_ARM, cq.cqn ^ 0x800000, 1);
    bad += 3;
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), bad);
    CHECK_EQ(cq_query(&cq).arm, QHCA_CQ_NOT_ARMED);
    cq_arm(&cq, false);
    CHECK_EQ(cq_query(&cq).arm, QHCA_CQ_ARM_NEXT);

    /* Doorbells of page 0 on other pages, and pages that do not exist. */
    ring(g, 1, QHCA_DB_EQ, eq.eqn, 0);
    ring(g, 1, QHCA_DB_CMD, 0, g->cmd_pi + 1);
    ring(g, 1, QHCA_DB_ETH, 1, 1);
    ring(g, NUM_UARS, QHCA_DB_CQ_ARM, cq.cqn, 9);
    ring(g, UINT32_MAX, QHCA_DB_SQ, 0, 0);
    ring(g, 0, QHCA_DB_CMD, 1, g->cmd_pi);
    qhca_engine_bad_doorbell(g->e);
    bad += 7;
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), bad);
    CHECK_EQ(g->errors, bad);
    CHECK_EQ(dev_state(g), QHCA_STATE_RUNNING);
}

static void doorbells_in_reset(void)
{
    struct guest *g = guest_new();

    ring(g, 0, QHCA_DB_CMD, 0, 1);
    ring(g, 0, QHCA_DB_EQ, 1, 0);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 2);
    CHECK_EQ(g->reads + g->writes, 0);
    qhca_engine_tick(g->e, 5);
    qhca_engine_run(g->e, 6);
    qhca_engine_tx_ready(g->e, 7);
    qhca_engine_rx_frame(g->e, 8, (const uint8_t *)"0123456789abcdef", 16);
    CHECK(!qhca_engine_can_receive(g->e));
    CHECK_EQ(dev_state(g), QHCA_STATE_RESET);
}

/* FATAL: the device raises one event and one interrupt, and stops. */
static void injected_fatal(void)
{
    struct guest *g = guest_start();
    struct geq async = eq_create(g, 2, 4, QHCA_EQ_ASYNC);
    uint64_t reads, writes;

    qhca_engine_inject_fatal(g->e, *g->clock);
    CHECK_EQ(dev_state(g), QHCA_STATE_FATAL);
    CHECK_EQ(reg_read(g, QHCA_REG_FATAL), QHCA_FATAL_INJECTED);
    eq_expect(&async, QHCA_EVENT_DEVICE_FATAL, QHCA_FATAL_INJECTED);
    CHECK_EQ(g->irqs[2], 1);
    reads = g->reads;
    writes = g->writes;
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_NOP, 0), -1);
    eq_arm(&async);
    qhca_engine_set_link(g->e, *g->clock, false);
    qhca_engine_inject_fatal(g->e, *g->clock);
    CHECK_EQ(g->reads, reads);
    CHECK_EQ(g->writes, writes);
    CHECK_EQ(g->irqs[2], 1);
    CHECK_EQ(g->dma_after_stop, 0);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 0);
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    guest_enable(g, 5);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_NOP, 0), QHCA_OK);
}

static void bad_configs(void)
{
    CHECK(qhca_counter_name(QHCA_CNT_MAX) == NULL);
    CHECK(strcmp(qhca_counter_name(QHCA_CNT_TX_PKTS), "tx_pkts") == 0);
    for (unsigned i = 0; i < QHCA_CNT_MAX; i++) {
        CHECK(qhca_counter_name((enum qhca_counter)i) != NULL);
    }
    qhca_engine_free(NULL);
}

/* ---- the engine is not entered from one of its own callbacks ---- */

static void doorbell_within(struct guest *g, uint64_t addr, size_t len,
                            bool write)
{
    (void)addr, (void)len, (void)write;
    qhca_engine_doorbell(g->e, *g->clock, 0, QHCA_DB_CMD, 0);
}

static void register_within(struct guest *g, uint64_t addr, size_t len,
                            bool write)
{
    (void)addr, (void)len, (void)write;
    (void)qhca_engine_reg_read(g->e, *g->clock, QHCA_REG_MAGIC);
}

static void frame_within(struct guest *g, uint64_t addr, size_t len, bool write)
{
    const uint8_t frame[60] = { 0 };

    (void)addr, (void)len, (void)write;
    qhca_engine_rx_frame(g->e, *g->clock, frame, sizeof(frame));
}

static void save_within(struct guest *g, uint64_t addr, size_t len, bool write)
{
    (void)addr, (void)len, (void)write;
    (void)qhca_engine_save(g->e, *g->clock, NULL, 0, NULL, 0);
}

static void run_within(struct guest *g, uint64_t addr, size_t len, bool write)
{
    (void)addr, (void)len, (void)write;
    qhca_engine_run(g->e, *g->clock);
}

/* A front end that enters twice makes a mistake, which an assertion ends. */
static void entered_within(void)
{
    void (*const within[])(struct guest *, uint64_t, size_t, bool) = {
        doorbell_within, register_within, frame_within, save_within, run_within,
    };
    struct guest *g = guest_start();
    int status;
    pid_t pid;

    for (unsigned i = 0; i < ARRAY_SIZE(within); i++) {
        fflush(stdout);
        pid = fork();
        if (pid == 0) {
            fclose(stderr);
            g->on_dma = within[i];
            guest_cmd_obj(g, QHCA_CMD_NOP, 0);
            _exit(0);
        }
        REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

static const struct test tests[] = {
    { "no call into the engine comes from within", entered_within },
    { "identity registers", identity },
    { "state after power-on", power_on },
    { "register access rights", access_rights },
    { "clock latches its high word", clock_latch },
    { "bad command queue configuration is fatal", bad_config },
    { "base registers are fixed while running", running_is_fixed },
    { "reset empties the device", reset_empties },
    { "doorbell addressing", doorbell_addressing },
    { "doorbells have no effect in reset", doorbells_in_reset },
    { "injected fatal error", injected_fatal },
    { "counter names", bad_configs },
};

TEST_MAIN(tests)
