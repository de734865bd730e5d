/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The code that all hosts of an engine share: common/host.c, ram.c.
 */
#include <stdarg.h>
#include <stdio.h>

#include "../../common/ram.h"
#include "harness/debug.h"
#include "harness/frames.h"
#include "harness/harness.h"

#define STRIDE      (4 * QHCA_PAGE_SIZE)

static struct qhca_props props = {
    .vectors = 5, .uars = 4, .db_stride = STRIDE, .max_qp = 64,
    .eth_queues = 1, .cmd_timeout_ms = 1000, .cpu_share = 100, .seed = 7,
};
static const uint8_t unicast[6] = { 2 };
static char said[400];
static unsigned dropped;

static void say(const char *format, ...)
{
    size_t len = strlen(said);
    va_list args;

    va_start(args, format);
    vsnprintf(said + len, sizeof(said) - len, format, args);
    va_end(args);
}

/* Whether @text was said since the last time. */
static bool was_said(const char *text)
{
    bool ok = !strcmp(said, text);

    if (!ok) {
        tap_note("said: %s", said);
    }
    said[0] = '\0';
    return ok;
}

static void guest_error(void *opaque, const char *msg)
{
    (void)opaque;
    say("%s;", msg);
}

static void drop_frames(void *opaque)
{
    (void)opaque;
    dropped++;
}

static void ignore(void *opaque, uint64_t deadline)
{
    (void)opaque;
    (void)deadline;
}

static void on_irq(void *opaque, unsigned vector)
{
    (void)opaque;
    say("irq %u;", vector);
}

static void on_bh(void *opaque, unsigned todo)
{
    (void)opaque;
    say("todo %x;", todo);
}

static void on_link(void *opaque, bool up)
{
    (void)opaque;
    say("up %d;", up);
}

static void on_read(void *opaque, unsigned off, uint32_t val)
{
    (void)opaque;
    say("read %x %x;", off, val);
}

static void on_write(void *opaque, unsigned off, uint32_t val)
{
    (void)opaque;
    say("write %x %x;", off, val);
}

static void on_bad(void *opaque, const char *bar, uint64_t off, unsigned size,
                   bool write)
{
    (void)opaque;
    say("%s %x %u %d;", bar, (unsigned)off, size, write);
}

static void on_wait(void *opaque, uint64_t until)
{
    (void)opaque;
    say("wait %u;", (unsigned)(until / 1000));
}

static void on_giveup(void *opaque, uint64_t until)
{
    (void)opaque;
    say("over %u;", (unsigned)(until / 1000));
}

static const struct qhca_host_ops ops = {
    .guest_error = guest_error, .drop_frames = drop_frames, .irq = on_irq,
    .timer = ignore, .bh = on_bh, .net_link = on_link, .reg_read = on_read,
    .reg_write = on_write, .mmio_bad = on_bad, .net_rx_wait = on_wait,
    .net_rx_giveup = on_giveup,
};

/* A guest whose host tells what it does. */
static struct guest *start(void)
{
    struct guest *g = guest_start();

    g->host.props = &props;
    g->host.ops = &ops;
    said[0] = '\0';
    dropped = 0;
    return g;
}

/* ---- life ---- */

static void test_start(void)
{
    struct qhca_host h, twin;
    struct qhca_props p = props;
    struct heap heap = { 0 };
    uint32_t bits, other;

    qhca_host_init(&h, &p, NULL);
    qhca_host_init(&twin, &p, NULL);
    CHECK(!qhca_host_random(&h, &bits));
    p.vectors = 1;
    CHECK(strstr(qhca_host_start(&h, unicast, true, &guest_ops), "'vectors'"));
    CHECK(!h.engine);
    p = props;
    p.max_qp = UINT32_MAX;
    CHECK(strstr(qhca_host_start(&h, unicast, true, &guest_ops), "'max-qp'"));
    p = props;
    heap_use(&heap);
    CHECK(!qhca_host_start(&h, unicast, true, &guest_ops));
    REQUIRE(h.engine);
    CHECK_EQ(h.engine->cfg.num_vectors, 5);
    CHECK(h.engine->cfg.removable);
    qhca_host_stop(&h);
    CHECK(!h.engine);
    qhca_host_stop(&h);
    heap_use(NULL);
    heap_check_freed(&heap);
    qhca_host_seed(&twin, 7);           /* as in the properties */
    for (unsigned i = 0; i < 10; i++) {
        CHECK(qhca_host_random(&h, &bits) && qhca_host_random(&twin, &other));
        CHECK_EQ(bits, other);
    }
    qhca_host_seed(&twin, 8);
    CHECK(qhca_host_random(&h, &bits) && qhca_host_random(&twin, &other));
    CHECK(bits != other);
}

static void test_faults(void)
{
    struct guest *g = start();

    CHECK(!qhca_host_set_faults(&g->host, *g->clock, "tx drop"));
    CHECK_EQ(strncmp(qhca_host_set_faults(&g->host, *g->clock,
                                          "tx drop\nrx often"),
                     "faults: line 2, column 4: ", 26), 0);
    CHECK_EQ(g->host.wrong.line, 2);
    CHECK_EQ(g->host.wrong.column, 4);
}

/* ---- work ---- */

static void test_irqs(void)
{
    struct guest *g = start();

    qhca_host_raise_irq(&g->host, 3);
    qhca_host_raise_irq(&g->host, 5);
    qhca_host_raise_irq(&g->host, 1);
    qhca_host_raise_irq(&g->host, 3);
    CHECK(was_said("irq 3;irq 1;irq 3;"));
    CHECK_EQ(qhca_host_next_irq(&g->host), 1);
    CHECK_EQ(qhca_host_next_irq(&g->host), 3);
    CHECK_EQ(g->host.irqs, 0);
}

static void test_order(void)
{
    struct guest *g = start();

    g->host.up = false;
    g->host.todo = QHCA_TODO_RX | QHCA_TODO_LINK | QHCA_TODO_FATAL;
    qhca_host_work(&g->host, *g->clock, QHCA_TODO_RX | QHCA_TODO_RUN);
    CHECK(was_said("todo 4;"));
    CHECK_EQ(g->host.todo, QHCA_TODO_LINK | QHCA_TODO_FATAL);
    CHECK_EQ(dev_state(g), QHCA_STATE_RUNNING);
    qhca_host_work(&g->host, *g->clock, g->host.todo);
    CHECK(was_said("todo 18;up 0;"));
    CHECK(!(reg_read(g, QHCA_REG_STATUS) & QHCA_STATUS_LINK_UP));
    CHECK_EQ(dev_state(g), QHCA_STATE_FATAL);
    CHECK_EQ(g->host.todo & ~(unsigned)QHCA_TODO_RUN, 0);
    qhca_host_work(&g->host, *g->clock, 0);
    CHECK(was_said(""));
}

static void test_speed(void)
{
    struct guest *g = start();

    props.bandwidth = 1000;
    g->host.todo = QHCA_TODO_SPEED;
    qhca_host_work(&g->host, *g->clock, g->host.todo);
    props.bandwidth = 0;
    CHECK(was_said("todo 40;"));
    CHECK_EQ(g->e->cfg.bandwidth, 1000);
}

/* Work from outside stays; the engine knows the carrier after the reset. */
static void test_reset(void)
{
    struct guest *g = start();

    g->host.up = false;
    g->host.irqs = 2;
    g->host.give_up = 5;
    g->host.todo = 0xff;
    qhca_host_work(&g->host, *g->clock, QHCA_TODO_RESET | QHCA_TODO_FATAL);
    CHECK_EQ(dropped, 1);
    CHECK_EQ(g->host.irqs, 0);
    CHECK_EQ(g->host.give_up, 0);
    CHECK_EQ(g->host.todo, QHCA_TODO_RX | QHCA_TODO_LINK | QHCA_TODO_SPEED |
                           QHCA_TODO_REMOVE);
    CHECK_EQ(dev_state(g), QHCA_STATE_RESET);
    CHECK(!(reg_read(g, QHCA_REG_STATUS) & QHCA_STATUS_LINK_UP));
}

static void test_tick(void)
{
    struct guest *g = start();

    qhca_host_set_timer(&g->host, 500);
    qhca_host_tick(&g->host, 499);
    CHECK_EQ(g->host.deadline, 500);
    qhca_host_tick(&g->host, 500);
    CHECK_EQ(g->host.deadline, UINT64_MAX);
    qhca_host_tick(&g->host, 501);
    CHECK_EQ(g->host.deadline, UINT64_MAX);
}

/* ---- BARs ---- */

static void test_regs_bar(void)
{
    struct guest *g = start();
    struct qhca_host *h = &g->host;
    uint64_t now = *g->clock, bad;
    char text[80];

    CHECK_EQ(qhca_host_reg_read(h, now, QHCA_REG_VECTORS, 4), NUM_VECTORS);
    qhca_host_reg_write(h, now, QHCA_REG_CMD_SQ_LO, 4, 1);
    snprintf(text, sizeof(text), "read %x %x;write %x 1;", QHCA_REG_VECTORS,
             NUM_VECTORS, QHCA_REG_CMD_SQ_LO);
    CHECK(!strncmp(said, text, strlen(text)));
    said[0] = '\0';
    bad = counter(g, QHCA_CNT_BAD_REG);
    CHECK_EQ(qhca_host_reg_read(h, now, QHCA_REG_MAGIC, 8), 0);
    CHECK_EQ(qhca_host_reg_read(h, now, QHCA_REG_MAGIC + 2, 4), 0);
    qhca_host_reg_write(h, now, QHCA_REG_RESET, 2, QHCA_RESET_KEY);
    qhca_host_reg_write(h, now, 14, 4, 0);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_REG), bad + 4);
    CHECK(strstr(said, "regs 0 8 0;regs+0x0: bad read of 8 bytes;"));
    CHECK(strstr(said, "regs 2 4 0;regs+0x2: bad read of 4 bytes;"));
    CHECK(strstr(said, ": bad write of 2 bytes;"));
    CHECK(strstr(said, "regs e 4 1;regs+0xe: bad write of 4 bytes;"));
    CHECK_EQ(dev_state(g), QHCA_STATE_RUNNING);
    CHECK_EQ(dropped, 0);
    qhca_host_reg_write(h, now, QHCA_REG_RESET, 4, QHCA_RESET_KEY + 1);
    CHECK_EQ(dropped, 0);
    qhca_host_reg_write(h, now, QHCA_REG_RESET, 4, QHCA_RESET_KEY);
    CHECK_EQ(dropped, 1);
    CHECK_EQ(dev_state(g), QHCA_STATE_RESET);
}

static void test_doorbell_bar(void)
{
    struct guest *g = start();
    struct geq eq = eq_create(g, 1, 6, 0);
    struct gcq cq = cq_create(g, &eq, 2, 4);
    struct qhca_host *h = &g->host;
    uint64_t now = *g->clock, at = 2 * STRIDE + QHCA_DB_CQ_ARM;

    qhca_host_db_read(h, at, 8);
    CHECK(was_said("db 8018 8 0;db+0x8018: bad read of 8 bytes;"));
    qhca_host_db_write(h, now, at, 4, cq.cqn);
    CHECK(was_said("db 8018 4 1;db+0x8018: bad write of 4 bytes;"));
    qhca_host_db_write(h, now, at + 4, 8, cq.cqn);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 3);
    qhca_host_db_write(h, now, at, 8, cq.cqn);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 3);
    qhca_host_db_write(h, now, at + STRIDE, 8, cq.cqn);     /* not its page */
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 4);
}

/* ---- frames ---- */

static void test_takes(void)
{
    struct guest *g = start();
    struct geq eq = eq_create(g, 1, 6, 0);
    struct frame f = udp_frame(test_mac, 1, 2, 99, 500);
    struct qhca_host *h = &g->host;
    uint64_t now = *g->clock, again, over = now + QHCA_RX_WAIT_NS;
    struct eth_rx rx;
    char text[80];

    CHECK(qhca_host_takes(h, now, &again));     /* there is no ring yet */
    CHECK(was_said(""));
    rx = eth_rx_create(g, &eq, 1, 1600);
    port_enable(g, test_mac, 0, 1500);
    for (unsigned i = 0; i < 2; i++) {
        REQUIRE(qhca_host_takes(h, now, &again));
        qhca_host_receive(h, now, f.data, f.len, false);
    }
    CHECK(h->rx_budget < QHCA_RX_BUDGET && h->rx_budget > 0);
    for (unsigned i = 0; i < 2; i++) {
        CHECK(!qhca_host_takes(h, now + i, &again));
        CHECK_EQ(again, over);
    }
    CHECK(!qhca_host_takes(h, over - 1, &again));
    CHECK(qhca_host_takes(h, over, &again));
    CHECK(qhca_host_takes(h, over + 1, &again));
    snprintf(text, sizeof(text), "wait %u;over %u;", (unsigned)(over / 1000),
             (unsigned)(over / 1000));
    CHECK(was_said(text));
    eth_rx_refill(&rx);
    CHECK(qhca_host_takes(h, over, &again));
    CHECK_EQ(h->give_up, UINT64_MAX);           /* they wait again */
    h->rx_budget = 1;
    qhca_host_receive(h, now, f.data, f.len, true);
    CHECK_EQ(h->rx_budget, 0);
}

/* ---- memory ---- */

static void test_ranges(void)
{
    const struct {
        struct qhca_range range;
        const char *name;
    } table[] = {
        { { 0x1000, 0x1000 }, "a" }, { { 0x2000, 1 }, "b" },
        { { 0x9000, 0x10 }, "c" }, { { UINT64_MAX - 7, 8 }, "d" },
    };
    const struct { uint64_t addr; unsigned place; bool found; } asked[] = {
        { 0, 0, false }, { 0xfff, 0, false }, { 0x1000, 0, true },
        { 0x1fff, 0, true }, { 0x2000, 1, true }, { 0x2001, 2, false },
        { 0x900f, 2, true }, { 0x9010, 3, false }, { UINT64_MAX - 8, 3, false },
        { UINT64_MAX - 7, 3, true }, { UINT64_MAX, 3, true },
    };
    unsigned at;

    for (unsigned i = 0; i < ARRAY_SIZE(asked); i++) {
        for (unsigned from = 0; from < ARRAY_SIZE(table); from++) {
            at = from;
            CHECK_EQ(qhca_range_find(table, sizeof(table[0]),
                                     ARRAY_SIZE(table), asked[i].addr, &at),
                     asked[i].found);
            CHECK_EQ(at, asked[i].place);
        }
    }
    at = 3;
    CHECK(!qhca_range_find(NULL, 8, 0, 5, &at));
    CHECK_EQ(at, 0);
}

static void test_atomics(void)
{
    const uint8_t bytes[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    struct qhca_props none = { 0 }, some = { .dm_size = 4096 };
    uint64_t word = htole64(5), addr = QHCA_ADDR_DM | 9;
    uint8_t entry[8] = { 0 };
    bool wrote = false;

    CHECK_EQ(qhca_ram_cas(&word, 4, 9), 5);
    CHECK_EQ(le64toh(word), 5);
    CHECK_EQ(qhca_ram_cas(&word, 5, UINT64_MAX), 5);
    CHECK_EQ(qhca_ram_add(&word, 3), UINT64_MAX);
    CHECK_EQ(le64toh(word), 2);
    qhca_ram_store(&word, bytes);
    CHECK(!memcmp(&word, bytes, 8));
    qhca_ram_entry(entry, bytes, 8);
    CHECK(!memcmp(entry, bytes, 8));
    qhca_ram_order(&wrote, true);
    CHECK(wrote);
    qhca_ram_order(&wrote, false);
    CHECK(!wrote);
    CHECK(!qhca_ram_is_dm(&none, &addr));
    CHECK_EQ(addr, QHCA_ADDR_DM | 9);
    CHECK(qhca_ram_is_dm(&some, &addr));
    CHECK_EQ(addr, 9);
    CHECK(!qhca_ram_is_dm(&some, &addr));
    CHECK_EQ(addr, 9);
}

static const struct test tests[] = {
    { "an engine is made of properties, or the wrong one named", test_start },
    { "what is wrong with fault rules, and where", test_faults },
    { "interrupts wait once, the lowest vector is first", test_irqs },
    { "work that is left is done when it is asked for", test_order },
    { "the bandwidth is the one of the properties", test_speed },
    { "a reset drops what the device has left to do", test_reset },
    { "timers expire at the deadline, once", test_tick },
    { "accesses to registers of a wrong size or place", test_regs_bar },
    { "doorbells of a wrong size, place or page", test_doorbell_bar },
    { "frames wait for a buffer, but not for long", test_takes },
    { "the mapping of an address, or its place", test_ranges },
    { "atomic operations, entries, the device's own memory", test_atomics },
};

TEST_MAIN(tests)
