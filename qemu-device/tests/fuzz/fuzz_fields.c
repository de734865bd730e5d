/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: saved states with edited fields. An input is a scene and
 * edits. A device that accepts the state is used with commands, doorbells,
 * packets and timers, and must always be able to save its own.
 */
#include "harness/fields.h"
#include "harness/scene.h"
#include "harness/snapshot.h"
#include "inputs.h"

#define MAX_EDITS   32u

/* The first byte: how often the scene is poked before the save, and: */
#define CFG_POKES   3u
#define CFG_STATES  4u          /* there is a QP in each state */
#define CFG_FRAMES  8u          /* all packets are frames */
#define CFGS        16u

/* The data of a record; the record's @fix is the edit's @how. */
struct edit {
    uint8_t which[4], value[8]; /* little-endian */
};

static bool has_data(uint8_t kind)
{
    (void)kind;
    return true;
}

static struct field_edit edit_of(const struct record *r, const struct edit *d)
{
    struct field_edit edit = { .how = r->fix };
    uint64_t value;
    uint32_t which;

    memcpy(&which, d->which, sizeof(which));
    memcpy(&value, d->value, sizeof(value));
    edit.which = le32toh(which);
    edit.value = le64toh(value);
    return edit;
}

static unsigned parse(const uint8_t *data, size_t size, struct field_edit *out)
{
    unsigned n = 0;
    size_t len;

    for (size_t at = 1; at + sizeof(struct record) <= size && n < MAX_EDITS;
         at += len) {
        const struct record *r = (const void *)(data + at);
        struct edit d = { 0 };

        at += sizeof(*r);
        len = record_number(r);
        len = len < size - at ? len : size - at;
        memcpy(&d, data + at, len < sizeof(d) ? len : sizeof(d));
        out[n++] = edit_of(r, &d);
    }
    return n;
}

static void start(uint8_t cfg)
{
    scene_start();
    if (cfg & CFG_STATES) {
        scene_states();
    }
    g->e->cfg.frames = cfg & CFG_FRAMES;
    g->lenient = true;
    for (unsigned i = 0; i < (cfg & CFG_POKES); i++) {
        scene_poke(i + 1);
    }
}

static uint64_t play(const uint8_t *data, size_t size)
{
    struct field_edit edits[MAX_EDITS];
    unsigned n = parse(data, size, edits);
    uint64_t rng = n + 1;
    uint8_t *state;
    size_t len;

    start(data[0]);
    state = fields_save(g, edits, n, &len);
    for (unsigned i = 0; i < n; i++) {
        rng = rng * 0x9e3779b97f4a7c15u + edits[i].value + edits[i].which;
    }
    if (!snapshot_load(g, state, len)) {
        CHECK_EQ(dev_state(g), QHCA_STATE_RESET);
        CHECK_EQ(qhca_engine_num_objects(g->e), 0);
        guest_enable(g, 5);
        return 0;
    }
    snapshot_cycle(g);
    for (unsigned i = 0; i < 3; i++) {
        scene_commands(&rng);
        scene_poke(rng);
        snapshot_cycle(g);
    }
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    return 1;
}

static size_t put(uint8_t *out, uint8_t how, uint32_t which, uint64_t value)
{
    struct edit d;

    which = htole32(which);
    value = htole64(value);
    memcpy(d.which, &which, sizeof(which));
    memcpy(d.value, &value, sizeof(value));
    return input_put(out, 0, how, 0, &d, sizeof(d), true);
}

/* Edits that add 0 to fields in different places. */
static size_t seed(unsigned n, uint8_t *data)
{
    size_t len = 1;

    if (n >= 4 * CFGS) {
        return 0;
    }
    data[0] = (uint8_t)(n % CFGS);
    for (unsigned i = 0; i <= n / CFGS; i++) {
        len += put(data + len, FIELD_ADD | (i % 2 ? FIELD_IN_OBJECT : 0),
                   n * 97 + i * 331, 0);
    }
    return len;
}

static void change(uint8_t kind, uint8_t *data, size_t len, uint64_t *rng)
{
    struct edit d;
    uint64_t value = input_odd(rng);
    uint32_t which = htole32((uint32_t)input_pick(rng, 8192));

    (void)kind;
    if (len < sizeof(d)) {
        return;
    }
    memcpy(&d, data, sizeof(d));
    if (input_pick(rng, 2)) {
        memcpy(d.which, &which, sizeof(which));
    } else {
        value = htole64(input_pick(rng, 4) ? value : input_pick(rng, 70));
        memcpy(d.value, &value, sizeof(value));
    }
    memcpy(data, &d, sizeof(d));
}

const struct input_kind input_fields = {
    .name = "fields",
    .cfgs = CFGS,
    .has_data = has_data,
    .play = play,
    .seed = seed,
    .change = change,
};
