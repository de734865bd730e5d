/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls that arrive while the engine is at work: DMA that a guest has aimed at
 * the device's own BARs, a reset from within, networks that answer at once.
 */
#include "harness/debug.h"
#include "harness/rc.h"

/* ---- everything from within a DMA access ---- */

static unsigned depth, calls;

static void call_all(struct guest *g, uint64_t addr, size_t len, bool write)
{
    uint8_t frame[60] = { 0x52, 0x54, 0, 0x12, 0x34, 1 };

    (void)addr;
    (void)len;
    (void)write;
    if (depth) {
        return;
    }
    depth++;
    calls++;
    reg_write(g, QHCA_REG_CMD_SQ_LO, 5);
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    CHECK_EQ(reg_read(g, QHCA_REG_MAGIC), UINT32_MAX);
    ring(g, 0, QHCA_DB_CMD, 0, 77);
    ring(g, 1, QHCA_DB_SQ, 5, 1);
    qhca_engine_bad_doorbell(g->e);
    qhca_engine_tick(g->e, *g->clock);
    qhca_engine_run(g->e, *g->clock);
    qhca_engine_tx_ready(g->e, *g->clock);
    qhca_engine_rx_frame(g->e, *g->clock, frame, sizeof(frame));
    qhca_engine_inject_fatal(g->e, *g->clock);
    depth--;
}

static void from_dma(void)
{
    struct node n = node_new(NULL, 1);
    struct rc_opts o = RC_OPTS;
    struct rc_qp a, b;
    struct rc_wr wr;

    depth = calls = 0;
    n.g->on_dma = call_all;
    a = rc_create(&n, &o);
    b = rc_create(&n, &o);
    rc_connect(&a, &b);
    guest_fill(n.g, n.mr.addr, 10000, 3);
    rc_recv(&b, 1, 20000, 10000);
    wr = rc_wr(&a, QHCA_WR_SEND, 0, 10000);
    rc_post(&a, &wr);
    guest_advance(n.g, 1000000);
    rc_expect(&a.scq, wr.wr_id, QHCA_WC_SUCCESS);
    rc_expect(&b.rcq, 1, QHCA_WC_SUCCESS);
    CHECK(guest_is_filled(n.g, n.mr.addr + 20000, 10000, 3));
    CHECK_EQ(dev_state(n.g), QHCA_STATE_RUNNING);
    CHECK(calls > 50);
    CHECK(counter(n.g, QHCA_CNT_BAD_DOORBELL) >= 3 * calls);
}

static void link_flaps_within(struct guest *g, uint64_t addr, size_t len,
                              bool write)
{
    (void)addr;
    (void)len;
    (void)write;
    g->on_dma = NULL;
    qhca_engine_set_link(g->e, *g->clock, false);
}

static void link_from_dma(void)
{
    struct guest *g = guest_start();
    struct geq async = eq_create(g, 0, 4, QHCA_EQ_ASYNC);

    g->on_dma = link_flaps_within;
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_NOP, 0), QHCA_OK);
    guest_settle(g);
    eq_expect(&async, QHCA_EVENT_LINK_DOWN, 1);
    CHECK(!(reg_read(g, QHCA_REG_STATUS) & QHCA_STATUS_LINK_UP));
}

/* ---- reset at any point ---- */

static unsigned countdown;
static uint64_t writes_at_reset, irqs_at_reset;

static unsigned all_irqs(const struct guest *g)
{
    unsigned i, n = 0;

    for (i = 0; i < NUM_VECTORS; i++) {
        n += g->irqs[i];
    }
    return n;
}

static void reset_within(struct guest *g, uint64_t addr, size_t len, bool write)
{
    (void)addr;
    (void)len;
    (void)write;
    if (--countdown == 0) {
        g->on_dma = NULL;
        qhca_engine_reset(g->e, *g->clock);
        writes_at_reset = g->writes + g->reads;
        irqs_at_reset = all_irqs(g);
    }
}

/* Commands of every kind, until the device does not answer any more. */
static bool run_commands(struct node *n)
{
    struct gbuf mem = guest_buf(n->g, 600 << 12, 12, 2);
    struct qhca_cmd cmd[8];
    uint32_t key = 0;
    unsigned i;

    memset(cmd, 0, sizeof(cmd));
    for (i = 0; i < ARRAY_SIZE(cmd); i++) {
        cmd[i].mailbox = htole64(n->g->mbox);
    }
    cmd[0].opcode = htole16(QHCA_CMD_REG_MR);
    cmd[0].reg_mr.buf = mem.desc;
    cmd[0].reg_mr.length = htole64(600 << 12);
    cmd[0].reg_mr.pdn = htole32(n->pdn);
    cmd[1] = cmd[0];
    cmd[1].opcode = htole16(QHCA_CMD_REREG_MR);
    cmd[1].reg_mr.rereg = QHCA_REREG_TRANS;
    cmd[2].opcode = htole16(QHCA_CMD_CREATE_EQ);
    cmd[2].create_eq.buf = mem.desc;
    cmd[2].create_eq.log_size = 3;
    cmd[3].opcode = htole16(QHCA_CMD_CREATE_CQ);
    cmd[3].create_cq.buf = mem.desc;
    cmd[3].create_cq.eqn = htole32(n->comp.eqn);
    cmd[3].create_cq.log_size = 5;
    cmd[4].opcode = htole16(QHCA_CMD_QUERY_COUNTERS);
    cmd[5].opcode = htole16(QHCA_CMD_QUERY_DEVICE);
    cmd[6].opcode = htole16(QHCA_CMD_SET_MCAST);
    cmd[7].opcode = htole16(QHCA_CMD_ALLOC_PD);
    for (i = 0; i < ARRAY_SIZE(cmd); i++) {
        if (i == 1) {
            cmd[1].reg_mr.key = htole32(key);
        }
        if (guest_cmd(n->g, &cmd[i], i ? NULL : &key) < 0 || !n->g->on_dma) {
            return false;
        }
    }
    return true;
}

/* Sends, receives, reads, resizes, destroys; false once there was a reset. */
static bool run_traffic(struct node *n, struct rc_qp *a, struct rc_qp *b)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_RESIZE_CQ) };
    struct rc_wr wr;
    unsigned i;

    for (i = 0; i < 3 && n->g->on_dma; i++) {
        rc_recv(b, i, 40000, 20000);
        wr = rc_wr(a, i == 1 ? QHCA_WR_RDMA_READ : QHCA_WR_SEND, 0, 20000);
        rc_aim(&wr, n, 60000);
        rc_post(a, &wr);
        guest_settle(n->g);
    }
    cmd.create_cq.cqn = htole32(a->scq.cqn);
    cmd.create_cq.buf = guest_buf(n->g, 64 * 65, 12, 1).desc;
    cmd.create_cq.log_size = 6;
    return n->g->on_dma && guest_cmd(n->g, &cmd, NULL) == QHCA_OK &&
           n->g->on_dma && rc_destroy(a) == QHCA_OK && n->g->on_dma;
}

static void check_silence(struct guest *g)
{
    CHECK_EQ(dev_state(g), QHCA_STATE_RESET);
    CHECK_EQ(qhca_engine_num_objects(g->e), 0);
    CHECK_EQ(g->reads + g->writes, writes_at_reset);
    CHECK_EQ(all_irqs(g), irqs_at_reset);
    CHECK_EQ(g->e->table_blocks, 0);
    CHECK_EQ(g->e->timers.used, 0);
    CHECK_EQ(g->deadline, UINT64_MAX);
    CHECK(!g->e->device->busy);
}

static void reset_anywhere(void)
{
    bool survived = false;
    struct rc_opts o = RC_OPTS;
    struct rc_qp a, b;
    struct node n;
    unsigned at;

    for (at = 1; at < 2000 && !survived; at++) {
        n = node_new(NULL, 1);
        a = rc_create(&n, &o);
        b = rc_create(&n, &o);
        rc_connect(&a, &b);
        countdown = at;
        n.g->on_dma = reset_within;
        survived = run_commands(&n) && run_traffic(&n, &a, &b);
        if (!survived) {
            check_silence(n.g);
        }
        guest_free(n.g);
    }
    CHECK(survived);
    CHECK(at > 60);
}

/* ---- a network that answers before the call returns ---- */

static struct guest *hub[2];

static void to_the_other(struct guest *g, const uint8_t *frame, size_t len)
{
    struct guest *other = hub[g == hub[0]];

    qhca_engine_rx_frame(other->e, *other->clock, frame, len);
}

static void settle_both(void)
{
    unsigned i;

    for (i = 0; i < 10000 && (hub[0]->scheduled || hub[1]->scheduled); i++) {
        guest_settle(hub[0]);
        guest_settle(hub[1]);
    }
}

static void synchronous_network(void)
{
    struct node n[2] = { node_new(NULL, 1), node_new(NULL, 2) };
    struct rc_opts o = RC_OPTS;
    struct rc_qp a, b;
    struct rc_wr wr;
    unsigned i;

    hub[0] = n[0].g;
    hub[1] = n[1].g;
    n[0].g->on_send = n[1].g->on_send = to_the_other;
    a = rc_create(&n[0], &o);
    b = rc_create(&n[1], &o);
    rc_connect(&a, &b);
    guest_fill(n[0].g, n[0].mr.addr, 100000, 9);
    for (i = 0; i < 20; i++) {
        rc_recv(&b, i, 100000, 100000);
        wr = rc_wr(&a, QHCA_WR_SEND, 0, 50000 + i);
        rc_post(&a, &wr);
        wr = rc_wr(&a, QHCA_WR_RDMA_READ, 200000, 30000);
        rc_aim(&wr, &n[1], 100000);
        rc_post(&a, &wr);
        settle_both();
        rc_expect(&b.rcq, i, QHCA_WC_SUCCESS);
        rc_expect(&a.scq, wr.wr_id - 1, QHCA_WC_SUCCESS);
        rc_expect(&a.scq, wr.wr_id, QHCA_WC_SUCCESS);
        CHECK(guest_is_filled(n[1].g, n[1].mr.addr + 100000, 50000 + i, 9));
        CHECK(guest_is_filled(n[0].g, n[0].mr.addr + 200000, 30000, 9));
    }
    CHECK_EQ(counter(n[0].g, QHCA_CNT_RETRANSMIT), 0);
}

/*
 * More frames arrive at once than fit: the rest is lost, nothing else happens.
 */
static void late_frames_overflow(struct guest *g, uint64_t addr, size_t len,
                                 bool write)
{
    uint8_t frame[60] = { 0x52, 0x54, 0, 0x12, 0x34, 1 };
    unsigned i;

    (void)addr;
    (void)len;
    (void)write;
    g->on_dma = NULL;
    for (i = 0; i < 1000; i++) {
        qhca_engine_rx_frame(g->e, *g->clock, frame, sizeof(frame));
    }
    qhca_engine_rx_frame(g->e, *g->clock, frame, 0);
}

static void too_many_late_frames(void)
{
    struct node n = node_new(NULL, 1);

    n.g->on_dma = late_frames_overflow;
    CHECK_EQ(guest_cmd_obj(n.g, QHCA_CMD_NOP, 0), QHCA_OK);
    guest_settle(n.g);
    CHECK_EQ(counter(n.g, QHCA_CNT_ETH_RX_NO_BUF), 128);
    CHECK_EQ(qhca_fifo_used(&n.g->e->device->late), 0);
}

static const struct test tests[] = {
    { "all entry points from within DMA", from_dma },
    { "link change from within DMA", link_from_dma },
    { "reset at any point", reset_anywhere },
    { "a network that answers at once", synchronous_network },
    { "too many frames at once", too_many_late_frames },
};

int main(int argc, char **argv)
{
    return tap_main(argc, argv, tests, ARRAY_SIZE(tests), harness_cleanup);
}
