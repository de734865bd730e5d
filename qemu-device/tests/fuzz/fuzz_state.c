/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: forged states. An input changes bytes of the saved state
 * of a busy device; the CRC is corrected.
 */
#include "harness/scene.h"
#include "harness/snapshot.h"
#include "inputs.h"

#define PATCH   4               /* bytes: offset, low byte first; how; value */
#define STATE_MAX   65536

static uint8_t state[STATE_MAX];

static void patch(uint8_t *data, size_t len, const uint8_t *p)
{
    size_t at = (p[0] | (size_t)p[1] << 8) % len;

    switch (p[2] % 4) {
    case 0:
        data[at] ^= p[3];
        break;
    case 1:
        data[at] = p[3];
        break;
    case 2:
        data[at] = (uint8_t)(data[at] + p[3]);
        break;
    default:
        data[at] = data[(at + p[3]) % len];
        break;
    }
}

static uint64_t play(const uint8_t *data, size_t size)
{
    const uint8_t *good;
    size_t len;

    scene_start();
    good = snapshot_save(g, &len);
    REQUIRE(good && len <= sizeof(state));
    memcpy(state, good, len);
    for (size_t i = 1; i + PATCH <= size; i += PATCH) {
        patch(state, len, data + i);
    }
    snapshot_fix(state, len);
    if (!snapshot_load(g, state, len)) {
        CHECK_EQ(dev_state(g), QHCA_STATE_RESET);
        CHECK_EQ(qhca_engine_num_objects(g->e), 0);
        guest_enable(g, 5);
        return 0;
    }
    snapshot_cycle(g);
    scene_poke(data[0] + 1u);
    snapshot_cycle(g);
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    return 1;
}

/* Patches without effect in different places. */
static size_t seed(unsigned n, uint8_t *data)
{
    size_t len = 1;

    if (n >= 8) {
        return 0;
    }
    data[0] = (uint8_t)n;
    for (unsigned i = 0; i <= n; i++, len += PATCH) {
        data[len] = (uint8_t)(i * 37);
        data[len + 1] = (uint8_t)(i * 5);
        data[len + 2] = 0;
        data[len + 3] = 0;
    }
    return len;
}

const struct input_kind input_state = {
    .name = "state",
    .cfgs = 256,
    .play = play,
    .seed = seed,
};
