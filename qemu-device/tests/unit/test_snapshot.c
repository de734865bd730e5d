/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: saving a state and loading it restores everything; damaged
 * and forged states are refused or do no harm.
 */
#include <stdio.h>

#include "harness/budget.h"
#include "harness/scene.h"
#include "harness/seed.h"
#include "harness/snapshot.h"

#define MAX_STATE   (1u << 20)
#define HEADER_LEN  (12u + 8 * 8)   /* including the properties */
#define NAME_LEN    12u             /* name of a section */

static uint8_t good[MAX_STATE], bad[MAX_STATE];
static size_t good_len;

static void put_le32(uint8_t *p, uint32_t v)
{
    v = htole32(v);
    memcpy(p, &v, sizeof(v));
}

static void save_good(void)
{
    const uint8_t *state = snapshot_save(g, &good_len);

    REQUIRE(state && good_len <= MAX_STATE);
    memcpy(good, state, good_len);
}

static void take_scene(void)
{
    scene_start();
    save_good();
}

static bool is_good(void)
{
    const uint8_t *state;
    size_t len;

    state = snapshot_save(g, &len);
    return state && len == good_len && !memcmp(state, good, len);
}

/* After a refused state the device is reset, and works. */
static void check_usable(void)
{
    CHECK_EQ(dev_state(g), QHCA_STATE_RESET);
    CHECK_EQ(qhca_engine_num_objects(g->e), 0);
    CHECK_EQ(g->host.deadline, UINT64_MAX);
    guest_enable(g, 5);
    pd_create(g);
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
}

/* The scene has work of every kind; another engine has it after loading. */
static void everything(void)
{
    const struct qhca_engine *e;
    struct vhca_qp *q;
    unsigned held = 0;

    scene_start();
    for (unsigned i = 0; i < 2; i++) {
        e = g->e;
        q = vhca_qp_get(g->e, qp.qpn);
        CHECK_EQ(q->sq.next - q->sq.ci, 4);
        CHECK(q->req.timer.pos && q->req.stopped && q->cntset);
        CHECK(q->rsp.rwr.taken && q->rsp.res[q->rsp.res_last].valid);
        CHECK(e->eth->gather[0].active && vhca_fifo_used(&e->port->tx));
        CHECK(e->port->num_groups == 1 && e->port->tx_blocked);
        CHECK(!vhca_list_empty(&vhca_eq_async(g->e)->pending));
        CHECK_EQ(vhca_srq_get(g->e, srq.srqn)->held, 1);
        CHECK(vhca_cq_get(g->e, qp.scq.cqn)->held > 0);
        if (i == 0) {
            held = vhca_cq_get(g->e, qp.scq.cqn)->held;
            save_good();
            snapshot_cycle(g);
            CHECK(g->e != e);
        }
    }
    CHECK_EQ(vhca_cq_get(g->e, qp.scq.cqn)->held, held);
    CHECK(is_good());
    scene_poke(1);
}

/* The same engine can load its state later, when its clock has changed. */
static void again_and_later(void)
{
    uint64_t left;

    take_scene();
    left = g->host.deadline - g->e->now;
    scene_poke(2);
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    *g->clock += 1000000000000ull;
    g->e->now = *g->clock;
    CHECK(snapshot_load(g, good, good_len));
    CHECK_EQ(g->host.deadline - g->e->now, left);
    CHECK(is_good());
    g->e->now -= 500000000000ull;       /* the clock is set back */
    CHECK(snapshot_load(g, good, good_len));
    CHECK_EQ(g->host.deadline - g->e->now, left);
    CHECK(is_good());
}

static void empty_and_stopped(void)
{
    start_node();
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    reg_write(g, QHCA_REG_CMD_LOG_SIZE, 0xff);
    save_good();
    snapshot_cycle(g);
    CHECK(is_good());
    CHECK_EQ(reg_read(g, QHCA_REG_CMD_LOG_SIZE), 0xff);
    start_node();
    qhca_engine_inject_fatal(g->e, *g->clock);
    snapshot_cycle(g);
    CHECK_EQ(dev_state(g), QHCA_STATE_FATAL);
    CHECK_EQ(reg_read(g, QHCA_REG_FATAL), QHCA_FATAL_INJECTED);
}

static void truncated(void)
{
    take_scene();
    for (size_t len = 0; len < good_len; len += len < 2000 ? 1 : 11) {
        /* In a block of exactly this size: reading past it is reported. */
        uint8_t *data = malloc(len + 1);

        memcpy(data + 1, good, len);
        snapshot_fix(data + 1, len);
        CHECK(!snapshot_load(g, data + 1, len));
        free(data);
        if (len % 1000 == 0) {
            check_usable();
        }
    }
    CHECK(snapshot_load(g, good, good_len));
    CHECK(is_good());
    good[good_len] = 0;
    snapshot_fix(good, good_len + 1);
    CHECK(!snapshot_load(g, good, good_len + 1));
}

/* A buffer that is too small is left alone where it ends. */
static void small_buffers(void)
{
    char why[80];

    take_scene();
    for (size_t size = good_len - 500; size < good_len; size++) {
        bad[size] = 0xa5;
        CHECK_EQ(qhca_engine_save(g->e, g->e->now, bad, size, why,
                                  sizeof(why)), good_len);
        CHECK_EQ(bad[size], 0xa5);
    }
}

/* The CRC detects a single wrong bit anywhere. */
static void damaged(void)
{
    take_scene();
    for (size_t bit = 0; bit < good_len * 8; bit += 251) {
        good[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK(!snapshot_load(g, good, good_len));
        good[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    check_usable();
}

/* Random changes with a correct CRC: the state is refused or does no harm. */
static void forged(void)
{
    uint64_t rng = seed_from_env("FUZZ_SEED", 1) * 2 + 1;
    uint64_t n = seed_from_env("FUZZ_ITERATIONS", 100) * 5;
    unsigned taken = 0, refused = 0;

    take_scene();
    g->forged = true;
    for (uint64_t i = 0; i < n; i++) {
        unsigned changes = 1 + (unsigned)(test_random(&rng) >> 40) % 3;

        tap_seed(i);
        memcpy(bad, good, good_len);
        while (changes-- > 0) {
            size_t at = (size_t)(test_random(&rng) >> 20) % good_len;

            bad[at] = test_random(&rng) >> 60 ?
                      bad[at] ^ (uint8_t)(1u << (test_random(&rng) >> 61)) :
                      (uint8_t)(test_random(&rng) >> 30);
        }
        snapshot_fix(bad, good_len);
        if (snapshot_load(g, bad, good_len)) {
            taken++;
            snapshot_cycle(g);
            scene_poke(rng);
            snapshot_cycle(g);
            reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
        } else {
            refused++;
            if (refused % 50 == 1) {
                check_usable();
            }
        }
    }
    tap_note("%u loaded, %u refused, the last: %s", taken, refused,
             snapshot_why());
    CHECK(taken > n / 20 && refused > n / 20);
}

/* The state is refused if memory runs out, wherever that happens. */
static void out_of_memory(void)
{
    unsigned i;

    take_scene();
    for (i = 1; ; i++) {
        oom_after(i);
        if (snapshot_load(g, good, good_len)) {
            break;
        }
        CHECK(oom_happened());
    }
    oom_after(0);
    CHECK(i > 20);
    CHECK(is_good());
}

/* Loading @bad with a correct CRC must fail, with @what in the reason. */
static void refused_for(const char *what)
{
    snapshot_fix(bad, good_len);
    CHECK(!snapshot_load(g, bad, good_len));
    if (!strstr(snapshot_why(), what)) {
        tap_note("%s", snapshot_why());
        CHECK(!"the reason");
    }
}

static void other_devices(void)
{
    take_scene();
    memcpy(bad, good, good_len);
    bad[4]++;
    refused_for("header: format is 2, here 1 to 1");
    memcpy(bad, good, good_len);
    bad[4] = 0;
    refused_for("header: format is 0, here 1 to 1");
    memcpy(bad, good, good_len);
    bad[12]++;                          /* vectors */
    refused_for("properties: vectors is 0x9, here 0x8");
    memcpy(bad, good, good_len);
    bad[12 + 2 * 8] ^= 1;
    refused_for("properties: max-qp");
    memcpy(bad, good, good_len);
    bad[12 + 4 * 8] ^= 1;
    refused_for("properties: guest-faults is 0x1, here 0x0");
    memcpy(bad, good, good_len);
    put_le32(bad + 12 + 5 * 8, 0x10000);
    refused_for("properties: db-stride is 0x10000, here 0x1000");
    memcpy(bad, good, good_len);
    bad[12 + 6 * 8] ^= 1;
    refused_for("properties: shadow-doorbells is 0x0, here 0x1");
    memcpy(bad, good, good_len);
    bad[12 + 7 * 8] = 1;
    refused_for("properties: eth-queues is 0x1, here 0x8");
    memcpy(bad, good, good_len);
    bad[HEADER_LEN + NAME_LEN]++;
    refused_for("core: version is 2, here 1 to 1");
    memcpy(bad, good, good_len);
    bad[HEADER_LEN + NAME_LEN] = 0;
    refused_for("core: version is 0, here 1 to 1");
}

/* ---- states of older devices ---- */

/*
 * Reads a state of format 1 that scene_start() made when that was the newest
 * to @bad; returns its length.
 */
static size_t read_first_format(void)
{
    FILE *f = fopen("corpus/saved/format-1", "rb");
    size_t len;

    REQUIRE(f);
    len = fread(bad, 1, sizeof(bad), f);
    fclose(f);
    CHECK_EQ(bad[4], 1);
    return len;
}

static void first_format(void)
{
    size_t len = read_first_format();
    unsigned sending = 0, receiving = 0;
    struct vhca_qp *q;

    scene_start();
    CHECK(snapshot_load(g, bad, len));
    vhca_table_each(&g->e->qps->table, q) {
        sending += q->sq.next - q->sq.ci == 4 && q->req.timer.pos;
        receiving += q->rsp.rwr.taken;
    }
    CHECK_EQ(g->e->qps->table.used, 13);
    CHECK_EQ(sending, 1);
    CHECK_EQ(receiving, 2);
    CHECK(g->e->eth->gather[0].active && vhca_fifo_used(&g->e->port->tx));
    CHECK_EQ(g->e->eth->queue[QHCA_ETH_RX].frags, 1);
    CHECK_EQ(g->e->port->num_groups, 1);
    CHECK(counter(g, QHCA_CNT_RX_PKTS) > 0);
    snapshot_cycle(g);
    scene_poke(3);
    snapshot_cycle(g);
}

/* Copies the section at @from without its last @less bytes. */
static size_t copy_section(uint8_t *to, const uint8_t *from, size_t less)
{
    const size_t head = NAME_LEN + 8;
    uint32_t len;

    memcpy(&len, from + NAME_LEN + 4, sizeof(len));
    len = le32toh(len);
    memcpy(to, from, head + len - less);
    put_le32(to + NAME_LEN + 4, (uint32_t)(len - less));
    return head + len;
}

/* A state of a device that had one counter less. */
static void fewer_counters(void)
{
    size_t at = HEADER_LEN, out = HEADER_LEN;

    start_node();
    qhca_engine_bad_doorbell(g->e);
    save_good();
    memcpy(bad, good, HEADER_LEN);
    while (at < good_len) {
        bool core = !strcmp((const char *)good + at, "core");
        size_t less = core || !strcmp((const char *)good + at, "qp") ? 8 : 0;
        size_t len = copy_section(bad + out, good + at, less);

        if (core) {
            put_le32(bad + out + NAME_LEN + 8, QHCA_CNT_MAX - 1);
        }
        at += len;
        out += len - less;
    }
    CHECK_EQ(out, good_len - 16);
    snapshot_fix(bad, out);
    g->e->cnt[QHCA_CNT_MAX - 1] = 77;
    CHECK(snapshot_load(g, bad, out));
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 1);
    CHECK_EQ(counter(g, QHCA_CNT_MAX - 1), 0);
    CHECK(is_good());
}

/* A table has a row that older sections lack. */
static void newer_rows(void)
{
    struct pair {
        uint32_t old, new;
    } is = { 1, 2 };
    const struct vhca_snap_field rows[] = {
        VHCA_SNAP_ANY(struct pair, old),
        VHCA_SNAP_SINCE(2, struct pair, new, 5),
        { 0 }
    };
    struct vhca_snap s = { .out = bad, .end = sizeof(bad), .version = 2 };

    vhca_snap_fields(&s, rows, &is);
    CHECK_EQ(s.at, 8);
    for (uint32_t version = 1; version <= 2; version++) {
        struct vhca_snap from = {
            .load = true, .in = bad, .end = 4 * version, .version = version,
        };
        struct pair then = { 77, 77 };

        vhca_snap_fields(&from, rows, &then);
        CHECK(!from.bad);
        CHECK_EQ(from.at, 4 * version);
        CHECK_EQ(then.old, 1);
        CHECK_EQ(then.new, version == 2 ? 2 : 0);
    }
}

/* A long command starts again after loading, and completes. */
static void long_command(void)
{
    const uint32_t blocks = 3u << 20;
    struct qhca_cmd cmd;
    unsigned cycles = 0;

    start_node();
    cmd = huge_region(blocks);
    guest_cmd_start(g, &cmd, 1);
    /* The command has begun, so the guest cannot take it back. */
    ring(g, 0, QHCA_DB_CMD, 0, g->cmd_pi - 1);
    CHECK(g->e->cmdq->active && g->e->table_blocks);
    snapshot_cycle(g);
    CHECK(g->e->cmdq->active && !g->e->table_blocks);
    while (g->host.todo && cycles++ < 1000) {
        g->host.todo = 0;
        qhca_engine_run(g->e, *g->clock);
    }
    CHECK(!g->e->cmdq->active);
    CHECK_EQ(g->e->table_blocks, blocks);
}

static const struct test tests[] = {
    { "loading a state restores everything", everything },
    { "a state is loaded later, with another clock", again_and_later },
    { "states without objects, and of a stopped device", empty_and_stopped },
    { "truncated states are refused", truncated },
    { "a state needs a buffer as large as it is", small_buffers },
    { "damaged states are refused", damaged },
    { "forged states do no harm", forged },
    { "states are refused when memory runs out", out_of_memory },
    { "states of other devices or versions are refused", other_devices },
    { "a state of the first format is loaded", first_format },
    { "a state with fewer counters is loaded", fewer_counters },
    { "a state without a newer field is loaded", newer_rows },
    { "a command in progress starts again", long_command },
};

TEST_MAIN(tests)
