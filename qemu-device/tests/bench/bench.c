/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cost of the worst events: DMA calls, units of work and microseconds of
 * CPU time of one call of the engine, and of the worst call by the bottom half
 * that follows. Guest memory is an array here; QEMU's costs more.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "harness/budget.h"

/* ---- measuring ---- */

struct cost {
    uint64_t dma, ns;
    unsigned units;
};

static struct cost event, bh;
static unsigned num_bh;

static uint64_t ns_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct cost before;

static void begin(void)
{
    before.dma = g->reads + g->writes;
    before.ns = ns_now();
}

static struct cost end(void)
{
    return (struct cost) {
        .ns = ns_now() - before.ns,
        .dma = g->reads + g->writes - before.dma,
        .units = g->e->spent,
    };
}

static void worst(struct cost *w, struct cost c)
{
    *w = c.ns > w->ns ? c : *w;
}

static void run_all(void)
{
    for (; g->host.todo; num_bh++) {
        g->host.todo = 0;
        begin();
        qhca_engine_run(g->e, *g->clock);
        worst(&bh, end());
    }
    g->cmd_ci = g->cmd_pi;
}

static void timed_ring(unsigned page, unsigned off, uint32_t obj,
                       uint32_t index)
{
    begin();
    ring(g, page, off, obj, index);
    worst(&event, end());
}

/* Lets time pass until the slice is unused again, and clears the results. */
static void new_slice(void)
{
    run_all();
    *g->clock += 10000000;
    event = bh = (struct cost) { 0 };
    num_bh = 0;
}

/* ---- commands ---- */

static void start_commands(void)
{
    start_pair(&RC_OPTS);
    run_all();
}

static void ring_commands(const struct qhca_cmd *cmd, unsigned n)
{
    begin();
    guest_cmd_start(g, cmd, n);
    worst(&event, end());
}

static void many_regions(void)
{
    struct qhca_cmd cmd[32];

    start_commands();
    cmd[0] = huge_region(VHCA_MAX_TABLE_BLOCKS / 40);
    for (unsigned i = 1; i < ARRAY_SIZE(cmd); i++) {
        cmd[i] = cmd[0];
    }
    new_slice();
    ring_commands(cmd, ARRAY_SIZE(cmd));
}

static void one_region(void)
{
    struct qhca_cmd cmd;

    start_commands();
    cmd = huge_region(VHCA_MAX_TABLE_BLOCKS - g->e->table_blocks);
    new_slice();
    ring_commands(&cmd, 1);
}

static void huge_dereg(void)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_DEREG_MR) };

    one_region();
    run_all();
    cmd.obj.obj = guest_cmd_comp(g, g->cmd_pi - 1)->obj;
    new_slice();
    ring_commands(&cmd, 1);
}

static void resize_cq(void)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_RESIZE_CQ) };
    struct gcq cq;

    start_commands();
    cq = cq_create(g, &node.comp, 1, VHCA_CQ_LOG_MAX);
    for (unsigned i = 0; i < 1u << VHCA_CQ_LOG_MAX; i++) {
        push_cqe(&cq, i);
    }
    cmd.create_cq.cqn = htole32(cq.cqn);
    cmd.create_cq.log_size = VHCA_CQ_LOG_MAX;
    cmd.create_cq.buf = guest_buf(g, (64ull << VHCA_CQ_LOG_MAX) + 64, 12,
                                  0).desc;
    new_slice();
    ring_commands(&cmd, 1);
}

/* ---- queues ---- */

static void long_queue(void)
{
    struct rc_opts o = RC_OPTS;

    o.sq_log = 12;
    o.cq_log = 13;
    o.mtu = 5;
    start_pair(&o);
    post_writes(&qp, 4000, 65536);
    new_slice();
    timed_ring(1, QHCA_DB_SQ, qp.qpn, qp.sq_pi);
}

/* The sum of 200 doorbells that ring one after the other. */
static void many_doorbells(void)
{
    static struct rc_qp q[400];
    struct cost sum = { 0 };

    start_pair(&RC_OPTS);
    for (unsigned i = 0; i < 400; i += 2) {
        rc_pair(&node, &RC_OPTS, &q[i], &q[i + 1]);
        post_writes(&q[i], 60, 4096);
    }
    new_slice();
    for (unsigned i = 0; i < 400; i += 2) {
        begin();
        ring(g, 1, QHCA_DB_SQ, q[i].qpn, q[i].sq_pi);
        sum.ns += end().ns;
        sum.dma += end().dma;
        sum.units += end().units;
    }
    event = sum;
}

/* ---- others ---- */

static void group_frame(void)
{
    struct roce_packet p;
    uint8_t frame[MAX_FRAME] = { 0 };
    struct rc_qp *last;
    size_t len;

    setenv("QHCA_TEST_SHADOW", "1", 1);
    last = start_group(1);
    unsetenv("QHCA_TEST_SHADOW");
    for (int i = 0; i < (int)VHCA_MAX_MCAST_QP; i++) {
        cq_arm(&last[-i].rcq, false);
    }
    p = peer_to_group(&qp, 1, full_group);
    p.payload_len = 4096;
    len = roce_finish(&p, frame);
    new_slice();
    begin();
    guest_rx(g, frame, len);
    worst(&event, end());
}

static void tick(struct qhca_engine *e, struct vhca_timer *t)
{
    uint64_t word;

    (void)t;
    (void)vhca_dma_read(e, node.mr.addr, &word, sizeof(word));
}

static void timers(void)
{
    static struct vhca_timer t[16000];

    start_node();
    g->strangers = ARRAY_SIZE(t);
    new_slice();
    for (unsigned i = 0; i < ARRAY_SIZE(t); i++) {
        t[i] = (struct vhca_timer) { .fn = tick };
        vhca_timer_set(g->e, &t[i], *g->clock + 1000);
    }
    *g->clock += 1000;
    begin();
    qhca_engine_tick(g->e, *g->clock);
    worst(&event, end());
}

static void failed_cq(void)
{
    struct rc_opts o = RC_OPTS;

    o.sq_log = o.rq_log = 1;
    start_pair(&o);
    for (unsigned i = 0; i < 1000; i++) {
        struct rc_qp q = rc_create_shared(&qp, &o);

        rc_bring_up(&q, QHCA_QPS_INIT);
    }
    new_slice();
    guest_spoil(g, gbuf_addr(&qp.scq.buf, 0), 4096);
    push_cqe(&qp.scq, 0);
    timed_ring(1, QHCA_DB_CQ_ARM, qp.rcq.cqn, 1);
}

static void full_reset(void)
{
    one_region();
    run_all();
    for (unsigned i = 0; i < 60000; i++) {
        mr_create(g, node.pdn, 64, 0);
    }
    new_slice();
    begin();
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    worst(&event, end());
}

static const struct {
    const char *name;
    void (*run)(void);
} rows[] = {
    { "command doorbell: 32 regions of 2^24 blocks in all", many_regions },
    { "command doorbell: a region of 2^24 blocks", one_region },
    { "command doorbell: that region is deregistered", huge_dereg },
    { "command doorbell: a CQ of 2^22 CQEs is resized", resize_cq },
    { "SQ doorbell: 4000 WRITEs of 64 KiB", long_queue },
    { "200 SQ doorbells of a slice: 60 WRITEs each", many_doorbells },
    { "frame to 128 QPs with 32 SGEs each, CQs armed", group_frame },
    { "16000 timers at once", timers },
    { "CQ of 1000 QPs fails", failed_cq },
    { "reset with 60000 regions and 2^24 blocks", full_reset },
};

int main(void)
{
    printf("%-52s %27s   %s\n", "", "event", "bottom half");
    printf("%-52s %9s %8s %8s   %8s %8s %8s %6s\n", "", "DMA", "units", "us",
           "DMA", "units", "us", "calls");
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        rows[i].run();
        run_all();
        printf("%-52s %9llu %8u %8llu   %8llu %8u %8llu %6u\n", rows[i].name,
               (unsigned long long)event.dma, event.units,
               (unsigned long long)event.ns / 1000,
               (unsigned long long)bh.dma, bh.units,
               (unsigned long long)bh.ns / 1000, num_bh);
        harness_cleanup();
    }
    return 0;
}
