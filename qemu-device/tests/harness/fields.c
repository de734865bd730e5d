/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "debug.h"
#include "fields.h"
#include "snapshot.h"

#define MAX_FIELDS  65536u
#define MAX_EDITS   64u

/* struct field - @size bytes at @at of the state */
struct field {
    const char *section, *name;
    size_t at, size;
    uint64_t max;
};

static struct field map[MAX_FIELDS];
static uint32_t num_fields;
static bool watching;

/* Edits of objects, and the values that they have replaced. */
static const struct field_edit *in_object;
static unsigned num_in_object;
static struct {
    uint8_t *p;
    size_t size;
    uint64_t value;
} changed[MAX_EDITS];
static unsigned num_changed;

static uint8_t *state;
static size_t state_size;

static void note(const struct vhca_snap *s, const char *name, size_t at,
                 size_t size, uint64_t max)
{
    if (num_fields < MAX_FIELDS) {
        map[num_fields++] = (struct field) { s->section, name, at, size, max };
    }
}

static uint64_t get(const uint8_t *p, size_t size)
{
    uint64_t v = 0;

    memcpy(&v, p, MIN_OF(size, sizeof(v)));
    return le64toh(v);
}

static void put(uint8_t *p, size_t size, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, MIN_OF(size, sizeof(v)));
}

static uint64_t edited(const struct field_edit *edit, uint64_t v, uint64_t max)
{
    const struct field *from;

    switch (edit->how % FIELD_HOWS) {
    case FIELD_SET:
        return edit->value;
    case FIELD_ADD:
        return v + edit->value;
    case FIELD_LAST:
        return max;
    default:
        from = &map[edit->value % num_fields];
        return from->at + sizeof(v) <= state_size ?
               get(state + from->at, from->size) : 0;
    }
}

/* Fields that a save does not check: they decide what it reads next. */
static bool is_shape(const char *name)
{
    static const char *const names[] = { "type", "window", "async" };

    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        if (!strcmp(name, names[i])) {
            return true;
        }
    }
    return false;
}

static void change_object(const struct field_edit *edit,
                          const struct vhca_snap_field *f, uint8_t *p)
{
    uint64_t v = get(p, f->size);

    changed[num_changed].p = p;
    changed[num_changed].size = f->size;
    changed[num_changed++].value = v;
    v = edited(edit, v, f->max);
    put(p, f->size, f->max == UINT64_MAX ? v : v % (f->max + 1));
}

static void change_objects(const struct vhca_snap_field *f, uint8_t *p)
{
    for (unsigned i = 0; i < num_in_object; i++) {
        if (in_object[i].which == num_fields && f->count == 1 &&
            num_changed < MAX_EDITS && !is_shape(f->name)) {
            change_object(&in_object[i], f, p);
        }
    }
}

/* ---- the calls that write fields ---- */

void __real_vhca_snap_raw(struct vhca_snap *s, const char *field, void *p,
                          size_t n);
uint64_t __real_vhca_snap_num(struct vhca_snap *s, const char *field,
                              uint64_t v, unsigned size, uint64_t max);
void __real_vhca_snap_u64s(struct vhca_snap *s, const char *field, uint64_t *v,
                           size_t n);
void __real_vhca_snap_fields(struct vhca_snap *s,
                             const struct vhca_snap_field *f, void *obj);
uint32_t __real_vhca_snap_count(struct vhca_snap *s, const char *field,
                                uint32_t n, size_t size);
uint64_t __real_vhca_snap_time(struct vhca_snap *s, const char *field,
                               uint64_t t);
void __real_vhca_snap_mem(struct vhca_snap *s, struct vhca_mem *mem,
                          uint64_t min_len);
void __real_vhca_snap_fifo(struct vhca_snap *s, const char *field,
                           struct vhca_fifo *f, uint16_t min_len);

void __wrap_vhca_snap_raw(struct vhca_snap *s, const char *field, void *p,
                          size_t n)
{
    if (watching) {
        note(s, field, s->at, n, UINT64_MAX);
    }
    __real_vhca_snap_raw(s, field, p, n);
}

uint64_t __wrap_vhca_snap_num(struct vhca_snap *s, const char *field,
                              uint64_t v, unsigned size, uint64_t max)
{
    if (watching) {
        note(s, field, s->at, size, max);
    }
    return __real_vhca_snap_num(s, field, v, size, max);
}

void __wrap_vhca_snap_u64s(struct vhca_snap *s, const char *field, uint64_t *v,
                           size_t n)
{
    for (size_t i = 0; watching && i < n && i < 8; i++) {
        note(s, field, s->at + i * sizeof(*v), sizeof(*v), UINT64_MAX);
    }
    __real_vhca_snap_u64s(s, field, v, n);
}

void __wrap_vhca_snap_fields(struct vhca_snap *s,
                             const struct vhca_snap_field *f, void *obj)
{
    const struct vhca_snap_field *row = f;

    for (size_t at = s->at; watching && row->name; row++) {
        change_objects(row, (uint8_t *)obj + row->off);
        note(s, row->name, at, row->count * row->size, row->max);
        at += row->count * row->size;
    }
    __real_vhca_snap_fields(s, f, obj);
}

uint32_t __wrap_vhca_snap_count(struct vhca_snap *s, const char *field,
                                uint32_t n, size_t size)
{
    if (watching) {
        note(s, field, s->at, sizeof(n), UINT64_MAX);
    }
    return __real_vhca_snap_count(s, field, n, size);
}

uint64_t __wrap_vhca_snap_time(struct vhca_snap *s, const char *field,
                               uint64_t t)
{
    if (watching) {
        note(s, field, s->at, sizeof(t), UINT64_MAX);
    }
    return __real_vhca_snap_time(s, field, t);
}

void __wrap_vhca_snap_mem(struct vhca_snap *s, struct vhca_mem *mem,
                          uint64_t min_len)
{
    if (watching) {
        note(s, "list", s->at, 1, 1);
        note(s, "block_shift", s->at + 1, 1, QHCA_BLOCK_SHIFT_MAX);
        note(s, "num_blocks", s->at + 2, 4, UINT64_MAX);
        note(s, mem->block ? "block" : "base", s->at + 6, 8, UINT64_MAX);
    }
    __real_vhca_snap_mem(s, mem, min_len);
}

void __wrap_vhca_snap_fifo(struct vhca_snap *s, const char *field,
                           struct vhca_fifo *f, uint16_t min_len)
{
    if (watching) {
        note(s, field, s->at, 4, VHCA_FIFO_FRAMES);
        if (vhca_fifo_used(f)) {
            note(s, "from", s->at + 4, 4, QHCA_OBJ_MASK);
            note(s, "length", s->at + 8, 2, VHCA_MAX_FRAME);
        }
    }
    __real_vhca_snap_fifo(s, field, f, min_len);
}

/* ---- saving ---- */

/* Saves with these edits in objects, restores them, and maps the fields. */
static bool save(struct guest *g, const struct field_edit *edits, unsigned n,
                 size_t *len)
{
    static char why[200];

    in_object = edits;
    num_in_object = n;
    num_fields = num_changed = 0;
    watching = true;
    *len = qhca_engine_save(g->e, g->e->now, state, state_size, why,
                            sizeof(why));
    watching = false;
    while (num_changed > 0) {
        num_changed--;
        put(changed[num_changed].p, changed[num_changed].size,
            changed[num_changed].value);
    }
    return *len && *len <= state_size;
}

/* Saves without edits; the buffer grows until the state fits. */
static void save_good(struct guest *g, size_t *len)
{
    while (!save(g, NULL, 0, len)) {
        REQUIRE(*len);
        free(state);
        state_size = *len * 2;
        state = malloc(state_size);
        REQUIRE(state);
    }
}

static void change_state(const struct field_edit *edit, size_t len)
{
    const struct field *f = &map[edit->which % num_fields];
    size_t size = f->size, at = f->at;

    if (size > 8) {
        at += (edit->value >> 8) % size;
        size = 1;
    }
    if (at + size <= len) {
        put(state + at, size, edited(edit, get(state + at, size), f->max));
    }
}

uint8_t *fields_save(struct guest *g, const struct field_edit *edits,
                     unsigned n, size_t *len)
{
    struct field_edit object[MAX_EDITS];
    unsigned num = 0;

    save_good(g, len);
    for (unsigned i = 0; i < n && num < MAX_EDITS; i++) {
        if (edits[i].how & FIELD_IN_OBJECT) {
            object[num] = edits[i];
            object[num++].which %= num_fields;
        }
    }
    /* A state that cannot be saved says nothing about loading. */
    if (num && !save(g, object, num, len)) {
        save_good(g, len);
        num = 0;
    }
    for (unsigned i = 0; i < n; i++) {
        if (!num || !(edits[i].how & FIELD_IN_OBJECT)) {
            change_state(&edits[i], *len);
        }
    }
    snapshot_fix(state, *len);
    return state;
}

unsigned fields_count(struct guest *g, const char *section, const char *name)
{
    unsigned n = 0;
    size_t len;

    save_good(g, &len);
    for (uint32_t i = 0; i < num_fields; i++) {
        n += !strcmp(map[i].section, section) && !strcmp(map[i].name, name);
    }
    return n;
}

uint32_t fields_find(struct guest *g, const char *section, const char *name,
                     unsigned nth)
{
    size_t len;

    save_good(g, &len);
    for (uint32_t i = 0; i < num_fields; i++) {
        if (!strcmp(map[i].section, section) && !strcmp(map[i].name, name) &&
            nth-- == 0) {
            return i;
        }
    }
    tap_note("%s: %s", section, name);
    REQUIRE(!"a field of that name");
    return 0;
}
