/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object numbers, timers, FIFOs, checksums: the services below the objects,
 * tested directly.
 */
#include "harness/debug.h"
#include "harness/harness.h"
#include "harness/net.h"

/* ---- numbers ---- */

static void numbers(void)
{
    struct guest *g = guest_new();
    struct vhca_table t;
    uint32_t n[100], last = 0, in_sequence = 0;
    int obj[100];
    unsigned i;

    REQUIRE(vhca_table_init(&t, g->e, 100));
    for (i = 0; i < 100; i++) {
        n[i] = vhca_table_add(&t, &obj[i]);
        CHECK(n[i] > 1 && n[i] < QHCA_OBJ_MASK);
        in_sequence += n[i] == last + 1;
        last = n[i];
    }
    CHECK(in_sequence < 10);
    CHECK_EQ(vhca_table_add(&t, &obj[0]), 0);
    for (i = 0; i < 100; i++) {
        CHECK(vhca_table_get(&t, n[i]) == &obj[i]);
        CHECK(!vhca_table_get(&t, n[i] ^ 0x800000));
        CHECK(!vhca_table_get(&t, n[i] | 0xff000000));
    }
    CHECK(!vhca_table_get(&t, 0));
    CHECK(!vhca_table_get(&t, UINT32_MAX));
    vhca_table_del(&t, n[40]);
    CHECK(!vhca_table_get(&t, n[40]));
    CHECK_EQ(t.used, 99);
    vhca_table_free(&t);
}

static uint32_t script[2];      /* random numbers: [1] once, then [0] */

static uint32_t next_of_script(void *opaque)
{
    uint32_t value = script[1] ? script[1] : script[0];

    (void)opaque;
    script[1] = 0;
    return value;
}

/* a freed number is not given out again until others replace it. */
static void no_early_reuse(void)
{
    const struct qhca_engine_ops ops = { .random = next_of_script };
    const uint32_t first = 0x123456;
    struct qhca_engine e = { .ops = &ops };
    struct vhca_table t;
    int obj;

    REQUIRE(vhca_table_init(&t, &e, 64));
    script[0] = first;
    CHECK_EQ(vhca_table_add(&t, &obj), first);
    vhca_table_del(&t, first);
    for (uint32_t i = 1; i < 8; i++) {
        script[0] = first + i * t.size;
        script[1] = first;
        REQUIRE(vhca_table_add(&t, &obj) == first + i * t.size);
        vhca_table_del(&t, first + i * t.size);
    }
    vhca_table_free(&t);
}

#define PLACES  512

/*
 * A user allocates all numbers of a kind and frees them in order. If each slot
 * counted its numbers up, the user would know all that follow.
 */
static void not_from_history(void)
{
    struct guest *g = guest_new();
    static uint32_t was[PLACES], now[PLACES];
    struct vhca_table t;
    unsigned i, hits = 0;
    int obj;

    REQUIRE(vhca_table_init(&t, g->e, PLACES));
    for (i = 0; i < PLACES; i++) {
        was[i] = vhca_table_add(&t, &obj);
    }
    for (i = 0; i < PLACES; i++) {
        vhca_table_del(&t, was[i]);
    }
    for (i = 0; i < PLACES; i++) {
        now[i] = vhca_table_add(&t, &obj);
        hits += now[i] == ((was[i] + PLACES) & QHCA_OBJ_MASK);
    }
    CHECK_EQ(hits, 0);
    vhca_table_free(&t);
}

/* Chi square of @n values that should be uniform over 256, in 1/256. */
static uint64_t chi_square(const uint32_t *count, uint32_t n)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < 256; i++) {
        sum += (uint64_t)count[i] * count[i];
    }
    return sum * 256 * 256 / n - (uint64_t)n * 256;
}

/*
 * The last free number of a table can be any number: each of its bytes is about
 * uniform. Chi square is expected to be 255, with a deviation of 23; for
 * numbers that only count up it exceeds a million.
 */
static void full_table(void)
{
    enum { ROUNDS = 1 << 16 };
    static uint32_t count[3][256];
    struct guest *g = guest_new();
    struct vhca_table t;
    int obj;

    REQUIRE(vhca_table_init(&t, g->e, PLACES));
    memset(count, 0, sizeof(count));
    for (unsigned i = 1; i < PLACES; i++) {
        REQUIRE(vhca_table_add(&t, &obj));
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint32_t n = vhca_table_add(&t, &obj);

        CHECK_EQ(vhca_table_add(&t, &obj), 0);
        for (unsigned j = 0; j < 3; j++) {
            count[j][n >> 8 * j & 0xff]++;
        }
        vhca_table_del(&t, n);
    }
    /* Full buckets show in the low bits, by an eighth at most here. */
    CHECK(chi_square(count[0], ROUNDS) < 256ull * (255 + ROUNDS / 8));
    CHECK(chi_square(count[1], ROUNDS) < 256 * 400);
    CHECK(chi_square(count[2], ROUNDS) < 256 * 400);
    vhca_table_free(&t);
}

/* A user who keeps only the numbers of some buckets leaves room in others. */
static void crowded(void)
{
    struct guest *g = guest_new();
    static uint32_t kept[PLACES];
    unsigned n = 0, tries;
    struct vhca_table t;
    int obj;

    REQUIRE(vhca_table_init(&t, g->e, PLACES));
    for (tries = 0; n < PLACES - 1 && tries < 1000000; tries++) {
        uint32_t number = vhca_table_add(&t, &obj);

        REQUIRE(number);
        if (number % (t.size / 8) < t.size / 16) {
            kept[n++] = number;
        } else {
            vhca_table_del(&t, number);
        }
    }
    REQUIRE(n == PLACES - 1);
    kept[n] = vhca_table_add(&t, &obj);
    for (n = 0; n < PLACES; n++) {
        CHECK(vhca_table_get(&t, kept[n]) == &obj);
    }
    CHECK_EQ(t.used, PLACES);
    vhca_table_free(&t);
}

static void tables_of_one(void)
{
    struct guest *g = guest_new();
    struct vhca_table t;
    uint32_t a, b;
    int obj;

    REQUIRE(vhca_table_init(&t, g->e, 1));
    a = vhca_table_add(&t, &obj);
    CHECK_EQ(vhca_table_add(&t, &obj), 0);
    vhca_table_del(&t, a);
    b = vhca_table_add(&t, &obj);
    CHECK(a && b && a != b);
    CHECK(!vhca_table_get(&t, a));
    vhca_table_free(&t);
}

/* Random adds and deletes against a model. */
static void table_model(void)
{
    uint32_t live[200] = { 0 }, n = 0, i, k;
    struct guest *g = guest_new();
    struct vhca_table t;
    uint64_t dice = 5;
    int obj[200];

    REQUIRE(vhca_table_init(&t, g->e, 130));
    for (i = 0; i < 100000; i++) {
        k = (uint32_t)(test_random(&dice) >> 33) % 200;
        if (live[k]) {
            REQUIRE(vhca_table_get(&t, live[k]) == &obj[k]);
            vhca_table_del(&t, live[k]);
            live[k] = 0;
            n--;
        } else {
            live[k] = vhca_table_add(&t, &obj[k]);
            REQUIRE(!live[k] == (n == 130));
            n += live[k] != 0;
        }
        REQUIRE(t.used == n);
    }
    vhca_table_free(&t);
}

/* ---- timers ---- */

#define NUM_TIMERS 300

struct test_timer {
    struct vhca_timer t;
    uint64_t fired_at;
    unsigned fired;
};

static struct test_timer timers[NUM_TIMERS];
static uint64_t last_deadline;
static bool out_of_order;

static void expired(struct qhca_engine *e, struct vhca_timer *t)
{
    struct test_timer *tt = container_of(t, struct test_timer, t);

    tt->fired++;
    tt->fired_at = e->now;
    out_of_order |= t->deadline < last_deadline || t->deadline > e->now;
    last_deadline = t->deadline;
}

static struct guest *timer_guest(void)
{
    struct guest *g = guest_start();
    unsigned i;

    g->strangers = NUM_TIMERS;
    memset(timers, 0, sizeof(timers));
    for (i = 0; i < NUM_TIMERS; i++) {
        timers[i].t.fn = expired;
    }
    last_deadline = 0;
    out_of_order = false;
    return g;
}

static void timer_order(void)
{
    struct guest *g = timer_guest();
    uint64_t dice = 9, start = *g->clock, expect[NUM_TIMERS];
    unsigned i, round;

    for (i = 0; i < NUM_TIMERS; i++) {
        expect[i] = start + test_random(&dice) % 100000;
        vhca_timer_set(g->e, &timers[i].t, expect[i]);
    }
    for (round = 0; round < 2000; round++) {    /* move and cancel some */
        i = (unsigned)(test_random(&dice) >> 30) % NUM_TIMERS;
        if (round % 3) {
            expect[i] = start + test_random(&dice) % 100000;
            vhca_timer_set(g->e, &timers[i].t, expect[i]);
        } else {
            vhca_timer_cancel(g->e, &timers[i].t);
            expect[i] = 0;
        }
    }
    qhca_engine_run(g->e, start);
    guest_advance(g, 100000);
    for (i = 0; i < NUM_TIMERS; i++) {
        CHECK_EQ(timers[i].fired, expect[i] ? 1 : 0);
        CHECK_EQ(timers[i].fired_at, expect[i]);
    }
    CHECK(!out_of_order);
    CHECK_EQ(g->host.deadline, UINT64_MAX);
}

static void timer_restarts_itself(struct qhca_engine *e, struct vhca_timer *t)
{
    struct test_timer *tt = container_of(t, struct test_timer, t);

    tt->fired++;
    vhca_timer_set(e, t, e->now);
}

/* A timer that rearms itself for "now" must not trap the engine. */
static void timer_no_spin(void)
{
    struct guest *g = timer_guest();

    timers[0].t.fn = timer_restarts_itself;
    vhca_timer_set(g->e, &timers[0].t, *g->clock + 10);
    qhca_engine_run(g->e, *g->clock);
    CHECK_EQ(g->host.deadline, *g->clock + 10);
    *g->clock += 10;
    qhca_engine_tick(g->e, *g->clock);
    CHECK_EQ(timers[0].fired, 1);
    CHECK_EQ(g->host.deadline, *g->clock + 1);
    vhca_timer_cancel(g->e, &timers[0].t);
    vhca_timer_cancel(g->e, &timers[0].t);
    qhca_engine_run(g->e, *g->clock);
    CHECK_EQ(g->host.deadline, UINT64_MAX);
}

static void timers_stop_with_the_device(void)
{
    struct guest *g = timer_guest();

    vhca_timer_set(g->e, &timers[0].t, *g->clock + 10);
    qhca_engine_run(g->e, *g->clock);
    qhca_engine_inject_fatal(g->e, *g->clock);
    CHECK_EQ(g->host.deadline, UINT64_MAX);
    qhca_engine_tick(g->e, *g->clock + 100);
    CHECK_EQ(timers[0].fired, 0);
}

/* ---- FIFO ---- */

static void fifo(void)
{
    struct vhca_fifo f = { 0 };
    uint8_t frame[VHCA_MAX_FRAME + 1];
    const uint8_t *p;
    unsigned i, round;
    uint32_t from;
    size_t len;

    CHECK(!vhca_fifo_peek(&f, &len, &from));
    memset(frame, 0, sizeof(frame));
    CHECK(!vhca_fifo_push(&f, frame, sizeof(frame), 0, 0));
    f.head = f.tail = UINT32_MAX - 200;         /* across the wrap */
    for (round = 0; round < 5; round++) {
        for (i = 0; i < VHCA_FIFO_FRAMES; i++) {
            frame[0] = (uint8_t)i;
            frame[i + 1] = (uint8_t)round;
            REQUIRE(vhca_fifo_push(&f, frame, i + 2, i << 16, 0));
        }
        CHECK(!vhca_fifo_push(&f, frame, 1, 0, 0));
        for (i = 0; i < VHCA_FIFO_FRAMES; i++) {
            p = vhca_fifo_peek(&f, &len, &from);
            REQUIRE(p && len == i + 2 && p[0] == i && p[i + 1] == round);
            REQUIRE(from == i << 16);
            vhca_fifo_pop(&f);
        }
    }
    vhca_fifo_free(&f);
    CHECK_EQ(vhca_fifo_used(&f), 0);
}

/* ---- checksums ---- */

static void checksum(void)
{
    /* The example of RFC 1071. */
    static const uint8_t rfc[] = { 0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7 };
    uint8_t buf[2000];
    uint64_t dice = 4;
    unsigned i, len;
    uint32_t slow;

    CHECK_EQ(vhca_csum_fold(vhca_csum_add(0, rfc, 8)), (uint16_t)~0xddf2);
    for (i = 0; i < sizeof(buf); i++) {
        buf[i] = (uint8_t)(test_random(&dice) >> 40) | 0xf0;
    }
    for (len = 0; len <= sizeof(buf); len += len < 20 ? 1 : 97) {
        slow = 0;
        for (i = 0; i < len; i++) {
            slow += i % 2 ? buf[i] : (uint32_t)buf[i] << 8;
            slow = (slow & 0xffff) + (slow >> 16);
        }
        CHECK_EQ(vhca_csum_fold(vhca_csum_add(0, buf, len)), (uint16_t)~slow);
    }
    CHECK_EQ(vhca_csum_add(UINT32_MAX, rfc, 0), UINT32_MAX);
}

static const struct test tests[] = {
    { "object numbers", numbers },
    { "A-022 freed numbers are not reused soon", no_early_reuse },
    { "A-025 old numbers do not tell the next ones",
      not_from_history },
    { "A-025 the last free number is random", full_table },
    { "A-025 keeping numbers of a few buckets leaves room", crowded },
    { "table of one", tables_of_one },
    { "table against a model", table_model },
    { "timers expire in order and on time", timer_order },
    { "a timer cannot trap the engine", timer_no_spin },
    { "timers stop with the device", timers_stop_with_the_device },
    { "FIFO", fifo },
    { "checksums", checksum },
};

TEST_MAIN(tests)
