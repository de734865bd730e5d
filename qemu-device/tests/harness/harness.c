/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: the simulated machine: memory, callbacks, commands. */
#include "../../common/ram.h"
#include "debug.h"
#include "digest.h"
#include "harness.h"
#include "long.h"
#include "net.h"
#include "shadow.h"
#include "snapshot.h"
#include "sniff.h"
#include "story.h"

#include <stdio.h>
#include <sys/mman.h>

#define GUARD_SIZE  65536       /* behind a guest's memory */
#define MAP_SIZE    ((size_t)RAM_SIZE + GUARD_SIZE + BANK_SIZE)

const uint8_t test_mac[6] = { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 };

static struct guest *guests;    /* all of them */
uint32_t guest_control;

/* ---- the world of one engine ---- */

/* The memory that the device accesses, or NULL. */
static uint8_t *dma(struct guest *g, uint64_t addr, size_t len)
{
    bool bad = addr < g->bad_to && addr + len > g->bad_from;

    g->cost.dma++;
    g->cost.dma_bytes += len;
    g->dma_after_stop += g->e->state != QHCA_STATE_RUNNING;
    if (g->bank_closed && addr < BANK_BASE + BANK_SIZE &&
        addr + len > BANK_BASE) {
        tap_fail(__FILE__, __LINE__, "access to the memory of a bystander");
    }
    return bad ? NULL : guest_find(g, addr, len);
}

/* How much of an access to memory that stands for more is copied. */
static size_t copied(const struct guest *g, uint64_t addr, size_t len)
{
    bool hollow = addr >= g->hollow_from && addr < g->hollow_to;

    return hollow && len > HOLLOW_LEN ? HOLLOW_LEN : len;
}

static bool dma_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    struct guest *g = opaque;
    const uint8_t *p = dma(g, addr, len);

    g->reads++;
    if (!p) {
        return false;
    }
    memcpy(buf, p, copied(g, addr, len));
    if (g->on_dma) {
        g->on_dma(g, addr, len, false);
    }
    return true;
}

static bool dma_write(void *opaque, uint64_t addr, const void *buf, size_t len)
{
    struct guest *g = opaque;
    uint8_t *p = dma(g, addr, len);

    heap_check_known(buf, len);
    g->writes++;
    if (!p) {
        return false;
    }
    memmove(p, buf, copied(g, addr, len));
    digest_feed('w', addr, p, len);
    if (g->on_dma) {
        g->on_dma(g, addr, len, true);
    }
    return true;
}

/* One access, but on_dma() runs once more before the last byte is written. */
static bool dma_write_entry(void *opaque, uint64_t addr, const void *entry,
                            size_t len)
{
    struct guest *g = opaque;
    size_t last = len - 1;

    g->entries++;
    if (!dma_write(g, addr, entry, last)) {
        return false;
    }
    g->writes--;
    g->cost.dma--;
    return dma_write(g, addr + last, (const uint8_t *)entry + last, 1);
}

/* At most one page at a time, so that what spans two is in pieces. */
static const void *dma_peek(void *opaque, uint64_t addr, size_t *len)
{
    size_t page_left = 4096 - addr % 4096;
    struct guest *g = opaque;
    const void *p;

    if (g->no_peek) {
        return NULL;
    }
    *len = *len < page_left ? *len : page_left;
    p = dma(g, addr, *len);
    g->cost.dma_bytes -= *len;          /* nothing has been copied */
    return p;
}

/* The 8 bytes of an atomic operation, or NULL. */
static uint64_t *dma_atomic(struct guest *g, uint64_t addr)
{
    void *p = dma(g, addr, 8);

    return addr % 8 ? NULL : p;
}

static bool atomic_cas(void *opaque, uint64_t addr, uint64_t compare,
                       uint64_t swap, uint64_t *old)
{
    struct guest *g = opaque;
    uint64_t *p = dma_atomic(g, addr);

    if (p && g->on_cas) {
        g->on_cas(g, addr);
    }
    if (p) {
        digest_feed('c', addr, (uint64_t[]) { compare, swap }, 16);
        *old = qhca_ram_cas(p, compare, swap);
    }
    return p;
}

static bool atomic_add(void *opaque, uint64_t addr, uint64_t add, uint64_t *old)
{
    uint64_t *p = dma_atomic(opaque, addr);

    if (p) {
        digest_feed('a', addr, &add, 8);
        *old = qhca_ram_add(p, add);
    }
    return p;
}

static bool atomic_store(void *opaque, uint64_t addr, const uint8_t *bytes)
{
    struct guest *g = opaque;
    uint64_t *p = dma_atomic(g, addr);

    if (p) {
        qhca_ram_store(p, bytes);
        digest_feed('s', addr, bytes, 8);
        g->stores++;
    }
    return p;
}

static bool send_frame(void *opaque, const uint8_t *frame, size_t len)
{
    struct guest *g = opaque;
    struct sent *s;

    heap_check_known(frame, len);
    g->cost.frames++;
    if (g->net_blocked) {
        g->refused++;
        return false;
    }
    if (len > MAX_FRAME) {
        tap_fail(__FILE__, __LINE__, "frame too long");
        return true;
    }
    digest_feed('f', g->net_port, frame, len);
    if (g->on_send) {
        g->on_send(g, frame, len);
    }
    if (g->uplink) {
        return g->uplink(g, frame, len);
    }
    if (g->net) {
        net_send(g->net, g->net_port, frame, len);
        return true;
    }
    if (!(g->num_sent & (g->num_sent - 1))) {   /* a power of two of them */
        g->sent = realloc(g->sent, (2 * g->num_sent + 1) * sizeof(*g->sent));
    }
    s = &g->sent[g->num_sent++];
    s->len = len;
    memcpy(s->data, frame, len);
    return true;
}

static void raise_irq(void *opaque, unsigned vector)
{
    struct guest *g = opaque;

    REQUIRE(vector < NUM_VECTORS);
    g->irqs[vector]++;
    g->cost.irqs++;
    digest_feed('i', vector, NULL, 0);
}

static void set_timer(void *opaque, uint64_t deadline)
{
    struct guest *g = opaque;

    qhca_host_set_timer(opaque, deadline);
    g->cost.timers++;
}

static void schedule(void *opaque)
{
    struct guest *g = opaque;

    qhca_host_schedule(opaque);
    g->cost.timers++;
}

static struct qhca_engine *neighbour(void *opaque, const uint8_t smac[6],
                                     const uint8_t dmac[6])
{
    struct guest *to = net_neighbour(opaque, smac, dmac);

    return to ? to->e : NULL;
}

static void remove_device(void *opaque)
{
    ((struct guest *)opaque)->removed++;
}

static uint32_t random_bits(void *opaque)
{
    struct guest *g = opaque;

    g->drawn = g->drawn << 32 | qhca_random_next(&g->host.rng) >> 32;
    return (uint32_t)g->drawn;
}

static void guest_error(void *opaque, const char *msg)
{
    struct guest *g = opaque;

    g->errors++;
    g->cost.lines++;
    snprintf(g->last_error, sizeof(g->last_error), "%s", msg);
    story_say("guest", g->net_port, *g->clock, "%s", msg);
}

const struct qhca_engine_ops guest_ops = {
    .dma_read = dma_read,
    .dma_write = dma_write,
    .dma_write_entry = dma_write_entry,
    .dma_peek = dma_peek,
    .atomic_cas = atomic_cas,
    .atomic_add = atomic_add,
    .atomic_store = atomic_store,
    .send_frame = send_frame,
    .send_long = long_send,
    .raise_irq = raise_irq,
    .set_timer = set_timer,
    .schedule = schedule,
    .random = random_bits,
    .neighbour = neighbour,
    .remove = remove_device,
    .guest_error = guest_error,
    .trace = &story_traces,
};

/* ---- life ---- */

/* mmap(), because a sanitizer would touch all of a heap block. */
static void *ram_new(void)
{
    uint8_t *ram = mmap(NULL, MAP_SIZE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (ram != MAP_FAILED) {
        mprotect(ram + RAM_SIZE, GUARD_SIZE, PROT_NONE);
    }
    return ram;
}

void guest_set_faults(struct guest *g, const char *text)
{
    const char *wrong =
        text ? qhca_host_set_faults(&g->host, *g->clock, text) : NULL;

    if (wrong) {
        tap_note("%s: %s", text, wrong);
    }
    REQUIRE(!wrong);
}

struct guest *guest_new_limited(uint64_t seed, unsigned cpu_share,
                                unsigned bandwidth)
{
    const struct qhca_engine_config cfg = {
        .mac = { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 },
        .num_vectors = NUM_VECTORS,
        .num_uars = NUM_UARS, .log_db_stride = QHCA_PAGE_SHIFT,
        .max_qp = 1024,
        .eth_queues = VHCA_MAX_ETH_PAIRS,
        .cmd_timeout_ms = 5000,
        .cpu_share = cpu_share,
        .bandwidth = bandwidth,
        .frames = getenv("QHCA_TEST_FRAMES") != NULL,
        .removable = true,
        .shadow = true,
    };
    struct guest *g = calloc(1, sizeof(*g));

    REQUIRE(g);
    g->next = guests;
    guests = g;
    g->ram = ram_new();
    REQUIRE(g->ram != MAP_FAILED);
    g->bank = g->ram + RAM_SIZE + GUARD_SIZE;
    g->brk = RAM_BASE;
    g->bank_brk = BANK_BASE;
    g->clock = &g->own_clock;
    g->own_clock = 1000000;
    g->limited = cpu_share || bandwidth;
    g->dbrecs = getenv("QHCA_TEST_DBREC") != NULL;
    g->in_memory = getenv("QHCA_TEST_SHADOW") != NULL;
    g->shadows = calloc(SHADOW_PAGES, sizeof(*g->shadows));
    REQUIRE(g->shadows);
    qhca_host_init(&g->host, NULL, NULL);
    qhca_host_seed(&g->host, seed);
    g->heap = &g->heaps[0];
    heap_use(g->heap);
    g->e = g->host.engine = qhca_engine_new(&cfg, &guest_ops, &g->host);
    heap_use(NULL);
    REQUIRE(g->e);
    guest_set_faults(g, getenv("QHCA_TEST_FAULTS"));
    return g;
}

struct guest *guest_new_seed(uint64_t seed)
{
    return guest_new_limited(seed, 0, 0);
}

struct guest *guest_new(void)
{
    return guest_new_seed(1);
}

struct guest *guest_start(void)
{
    struct guest *g = guest_new();

    guest_enable(g, 5);
    return g;
}

void guest_free(struct guest *g)
{
    struct guest **at = &guests;

    while (*at != g) {
        at = &(*at)->next;
    }
    *at = g->next;
    heap_use(NULL);             /* a longjmp() may have left a call */
    qhca_engine_free(g->e);
    snapshot_free(g);
    heap_check_freed(&g->heaps[0]);
    heap_check_freed(&g->heaps[1]);
    if (g->ram != MAP_FAILED) {
        munmap(g->ram, MAP_SIZE);
    }
    sniffer_free(g->sniffer);
    free(g->sent);
    free(g->shadows);
    free(g);
}

void harness_cleanup(void)
{
    while (guests) {
        guest_free(guests);
    }
    net_cleanup();
    gbuf_cleanup();
}

void guest_enable(struct guest *g, unsigned cmd_log)
{
    if (!g->cmd_sq) {
        g->cmd_sq = guest_alloc(g, 256 * sizeof(struct qhca_cmd), 4096);
        g->cmd_cq = guest_alloc(g, 256 * sizeof(struct qhca_cmd_comp), 4096);
        g->mbox = guest_alloc(g, 4096, 4096);
    }
    memset(guest_ptr(g, g->cmd_cq, 256 * 64), 0, 256 * 64);
    g->cmd_log = cmd_log;
    g->cmd_pi = g->cmd_ci = 0;
    reg_write(g, QHCA_REG_CMD_SQ_LO, (uint32_t)g->cmd_sq);
    reg_write(g, QHCA_REG_CMD_SQ_HI, (uint32_t)(g->cmd_sq >> 32));
    reg_write(g, QHCA_REG_CMD_CQ_LO, (uint32_t)g->cmd_cq);
    reg_write(g, QHCA_REG_CMD_CQ_HI, (uint32_t)(g->cmd_cq >> 32));
    reg_write(g, QHCA_REG_CMD_LOG_SIZE, cmd_log);
    reg_write(g, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE | guest_control);
    REQUIRE(dev_state(g) == QHCA_STATE_RUNNING);
    shadow_setup(g);
}

/* ---- time ---- */

void guest_run(struct guest *g)
{
    bool look = g->look;

    g->host.todo = 0;
    g->look = false;
    /* Without time it sees nothing: the timer wakes only one that sleeps. */
    if (look && !qhca_engine_look(g->e, *g->clock)) {
        qhca_engine_rest(g->e, *g->clock);
    }
    qhca_engine_run(g->e, *g->clock);
}

void guest_settle(struct guest *g)
{
    unsigned limit = 1000000;

    while (g->host.todo && limit-- > 0) {
        guest_run(g);
    }
    CHECK(!g->host.todo);       /* otherwise it spins */
}

void guest_advance(struct guest *g, uint64_t ns)
{
    uint64_t end = *g->clock + ns;

    guest_settle(g);
    while (g->host.deadline <= end) {
        *g->clock = g->host.deadline > *g->clock ? g->host.deadline : *g->clock;
        qhca_host_tick(&g->host, *g->clock);
        guest_settle(g);
    }
    *g->clock = end;
}
