/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: aggregated frames come out as they went in. */
#include "harness/debug.h"
#include "harness/net.h"

#define MANY    (3 * VHCA_AGGREGATE_FRAMES)

static struct vhca_aggregate tx;
static uint8_t frames[MANY][9018];
static size_t lens[MANY];

/* All frames have the same addresses; the destination begins with @dst. */
static void make_frames(uint64_t *rng, size_t max, uint8_t dst)
{
    for (unsigned i = 0; i < MANY; i++) {
        lens[i] = 60 + (test_random(rng) >> 20) % (max - 59);
        for (size_t at = 0; at < lens[i]; at++) {
            frames[i][at] = (uint8_t)(at < 12 ? at : i + at);
        }
        frames[i][0] = dst;
    }
}

/* A heap block of its own, so that a sanitizer knows where it ends. */
static uint8_t *copy_of(const uint8_t *frame, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);

    REQUIRE(copy);
    memcpy(copy, frame, len);
    return copy;
}

static unsigned came_out;

static void is_next(const uint8_t *frame, size_t len)
{
    CHECK_EQ(len, lens[came_out]);
    CHECK(!memcmp(frame, frames[came_out], len));
    came_out++;
}

/* Takes a frame from the network apart, as a receiver does. */
static void arrive(const uint8_t *frame, size_t len)
{
    uint8_t *copy = copy_of(frame, len);
    const uint8_t *one;
    size_t at = 0, part;

    CHECK(len <= VHCA_AGGREGATE_MAX);
    if (vhca_aggregate_is(copy, len)) {
        while ((one = vhca_aggregate_next(copy, len, &at, &part))) {
            is_next(one, part);
        }
        CHECK_EQ(at, len);
    } else {
        is_next(copy, len);
    }
    free(copy);
}

static unsigned push(void)
{
    const uint8_t *frame;
    size_t len;

    frame = vhca_aggregate_take(&tx, &len);
    if (frame) {
        arrive(frame, len);
    }
    CHECK(!vhca_aggregate_take(&tx, &len));
    return frame != NULL;
}

static unsigned send_all(void)
{
    unsigned pushes = 0;

    came_out = 0;
    for (unsigned i = 0; i < MANY; i++) {
        if (!vhca_aggregate_add(&tx, frames[i], lens[i])) {
            pushes += push();
            CHECK(vhca_aggregate_add(&tx, frames[i], lens[i]));
        }
    }
    pushes += push();
    CHECK_EQ(came_out, MANY);
    return pushes;
}

static void test_in_order(void)
{
    uint64_t rng = 1;

    for (unsigned round = 0; round < 20; round++) {
        make_frames(&rng, 60 + round * 450, 2);
        CHECK(send_all() < MANY / 2);
    }
    make_frames(&rng, 60, 2);
    CHECK_EQ(send_all(), MANY / VHCA_AGGREGATE_FRAMES);
}

static void test_alone(void)
{
    uint64_t rng = 1;
    size_t len;

    make_frames(&rng, 100, 2);
    CHECK(vhca_aggregate_add(&tx, frames[0], lens[0]));
    CHECK(!vhca_aggregate_is(vhca_aggregate_take(&tx, &len), lens[0]));
    CHECK(vhca_aggregate_add(&tx, frames[0], lens[0]));
    CHECK(vhca_aggregate_add(&tx, frames[0], lens[0]));
    CHECK(vhca_aggregate_is(vhca_aggregate_take(&tx, &len), ETH_LEN + 8));
    make_frames(&rng, 100, 3);          /* to a group */
    CHECK_EQ(send_all(), MANY);
    make_frames(&rng, 100, 2);
    for (unsigned i = 0; i < MANY; i++) {
        frames[i][5 + i % 7] ^= (uint8_t)i;
    }
    send_all();
}

static void test_limits(void)
{
    static uint8_t large[VHCA_AGGREGATE_MAX];
    size_t len;

    CHECK(!vhca_aggregate_add(&tx, large, 65536));
    CHECK(!vhca_aggregate_add(&tx, large, 13));
    CHECK(vhca_aggregate_add(&tx, large, 65535));
    CHECK(!vhca_aggregate_add(&tx, large, VHCA_AGGREGATE_MAX - 65535 - 25));
    CHECK(vhca_aggregate_add(&tx, large, VHCA_AGGREGATE_MAX - 65535 - 26));
    CHECK(!vhca_aggregate_add(&tx, large, 14));
    CHECK(vhca_aggregate_take(&tx, &len));
    CHECK_EQ(len, VHCA_AGGREGATE_MAX);
}

/* Aggregates cut off at each length, and with random bytes. */
static void test_hostile(void)
{
    uint64_t rng = 7;
    const uint8_t *whole;
    uint8_t copy[600];
    size_t len;

    make_frames(&rng, 100, 2);
    for (unsigned i = 0; i < 5; i++) {
        REQUIRE(vhca_aggregate_add(&tx, frames[i], lens[i]));
    }
    whole = vhca_aggregate_take(&tx, &len);
    REQUIRE(whole && len <= sizeof(copy));
    for (unsigned i = 0; i < 20000; i++) {
        size_t cut = i <= len ? i : len, at = 0, part, sum = 0;
        uint8_t *p;

        memcpy(copy, whole, len);
        if (i > len) {
            copy[14 + test_random(&rng) % (len - 14)] = (uint8_t)i;
        }
        p = copy_of(copy, cut);
        while (vhca_aggregate_is(p, cut) &&
               vhca_aggregate_next(p, cut, &at, &part)) {
            sum += part + 2;
            CHECK(part >= 14 && at <= cut && sum + 22 == at);
        }
        free(p);
    }
}

static const struct test tests[] = {
    { "frames come out as they went in", test_in_order },
    { "a lone frame, or one to a group, is sent unchanged", test_alone },
    { "an aggregate is no longer than the network allows", test_limits },
    { "hostile aggregates are not read past their end", test_hostile },
};

TEST_MAIN(tests)
