/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, save: saving and loading the state of the engine.
 *
 * A room walks over its state field by field, and the same walk saves and
 * loads. Objects are named by their numbers; no pointer leaves the engine.
 * Relations between fields are checked in both directions, so a state that
 * could not be loaded is not saved. On load nothing is believed before it is
 * checked, and an object enters its table only when all of it is right.
 */
#ifndef QHCA_ENGINE_SAVE_H
#define QHCA_ENGINE_SAVE_H

#include "../core/core.h"

/*
 * struct vhca_snap - a walk
 * @bad: the state has been refused; from then on reads return 0, and loops must
 *       end. Saving changes nothing, refused or not: the device goes on
 * @brief: leave out numbers that no object has any more: not a whole state
 * @version: version of the section, or of the header before the first section
 * @counters: how many of enum qhca_counter the state has
 * @at: position in @in or @out, which ends at @end; when saving, @at may pass
 *      @end
 * @section, @kind, @number: what is being walked over, for the message in @why
 */
struct vhca_snap {
    struct qhca_engine *e;
    bool load, bad, brief;
    uint32_t version, counters;
    uint8_t *out;
    const uint8_t *in;
    size_t at, end;
    const char *section, *kind;
    uint32_t number;
    char *why;
    size_t why_size;
};

/*
 * struct vhca_snap_field - @count numbers of @size bytes each at @off of a
 * structure; a table of them ends with an empty row
 * @max: largest value
 * @since: version of the section that introduced the field; when an older one
 *         is loaded, the field becomes 0
 */
struct vhca_snap_field {
    const char *name;
    size_t off, size, count;
    uint64_t max;
    uint32_t since;
};

#define VHCA_SNAP_SINCE(v, type, member, limit) \
    { #member, offsetof(type, member), sizeof_field(type, member), 1, \
      limit, v }
/* Rows for up to nine members: at most @limit, of any value, or flags. */
#define VHCA_SNAP_MAX(type, limit, ...) \
    VHCA_SNAP_PICK(__VA_ARGS__, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0) \
    (type, limit, __VA_ARGS__)
#define VHCA_SNAP_ANY(type, ...)    VHCA_SNAP_MAX(type, UINT64_MAX, __VA_ARGS__)
#define VHCA_SNAP_FLAG(type, ...)   VHCA_SNAP_MAX(type, 1, __VA_ARGS__)
#define VHCA_SNAP_PICK(a, b, c, d, e, f, g, h, i, n, ...)   VHCA_SNAP_##n
#define VHCA_SNAP_1(t, max, m)      VHCA_SNAP_SINCE(0, t, m, max)
#define VHCA_SNAP_2(t, max, m, ...) \
    VHCA_SNAP_1(t, max, m), VHCA_SNAP_1(t, max, __VA_ARGS__)
#define VHCA_SNAP_3(t, max, m, ...) \
    VHCA_SNAP_1(t, max, m), VHCA_SNAP_2(t, max, __VA_ARGS__)
#define VHCA_SNAP_4(t, max, m, ...) \
    VHCA_SNAP_1(t, max, m), VHCA_SNAP_3(t, max, __VA_ARGS__)
#define VHCA_SNAP_5(t, max, m, ...) \
    VHCA_SNAP_1(t, max, m), VHCA_SNAP_4(t, max, __VA_ARGS__)
#define VHCA_SNAP_6(t, max, m, ...) \
    VHCA_SNAP_1(t, max, m), VHCA_SNAP_5(t, max, __VA_ARGS__)
#define VHCA_SNAP_7(t, max, m, ...) \
    VHCA_SNAP_1(t, max, m), VHCA_SNAP_6(t, max, __VA_ARGS__)
#define VHCA_SNAP_8(t, max, m, ...) \
    VHCA_SNAP_1(t, max, m), VHCA_SNAP_7(t, max, __VA_ARGS__)
#define VHCA_SNAP_9(t, max, m, ...) \
    VHCA_SNAP_1(t, max, m), VHCA_SNAP_8(t, max, __VA_ARGS__)
/* Bytes, and structures of the contract, which are little-endian. */
#define VHCA_SNAP_RAW(type, member) \
    { #member, offsetof(type, member), 1, sizeof_field(type, member), \
      UINT64_MAX, 0 }

/*
 * Fails to compile when @type gains a member. Then add the member to the table
 * of fields, with the next version of the section, or decide that it need not
 * be saved, and put the new size here (that on a 64-bit host).
 */
#define VHCA_SNAP_KNOWS(type, size) \
    _Static_assert(sizeof(void *) != 8 || sizeof(type) == (size), \
                   "is the new member of " #type " to be saved?")

/* The section of core/: its counters. */
extern const struct vhca_room vhca_save_room;

/* Refuse the state because of @field of the current object; say why. */
__attribute__((format(printf, 3, 4)))
void vhca_snap_refuse(struct vhca_snap *s, const char *field, const char *fmt,
                      ...);
/* Refuse the state unless @ok. Returns false if it is, or was, refused. */
static inline bool vhca_snap_check(struct vhca_snap *s, bool ok,
                                   const char *field)
{
    if (!ok) {
        vhca_snap_refuse(s, field, "is inconsistent with the rest");
    }
    return ok && !s->bad;
}

/* Save @v in @size bytes, or load and return it; refuse more than @max. */
uint64_t vhca_snap_num(struct vhca_snap *s, const char *field, uint64_t v,
                       unsigned size, uint64_t max);
static inline uint32_t vhca_snap_u32(struct vhca_snap *s, const char *field,
                                     uint32_t v, uint32_t max)
{
    return (uint32_t)vhca_snap_num(s, field, v, sizeof(v), max);
}

/* Walk over the number of an object, 0 if there is none. */
static inline uint32_t vhca_snap_obj(struct vhca_snap *s, const char *field,
                                     uint32_t number)
{
    return vhca_snap_u32(s, field, number, QHCA_OBJ_MASK);
}

void vhca_snap_raw(struct vhca_snap *s, const char *field, void *p, size_t n);
void vhca_snap_u64s(struct vhca_snap *s, const char *field, uint64_t *v,
                    size_t n);
void vhca_snap_fields(struct vhca_snap *s, const struct vhca_snap_field *f,
                      void *obj);
/* Walk over the number of things that follow, each of at least @size bytes. */
uint32_t vhca_snap_count(struct vhca_snap *s, const char *field, uint32_t n,
                         size_t size);
/* Walk over a time, which is saved as its distance from now. */
uint64_t vhca_snap_time(struct vhca_snap *s, const char *field, uint64_t t);
/* Walk over the debt of a rate. */
void vhca_snap_pace(struct vhca_snap *s, struct vhca_pace *p);
/*
 * Walk over memory of at least @min_len bytes. On load @mem is empty before;
 * afterwards the caller has to release it, even if it was refused.
 */
void vhca_snap_mem(struct vhca_snap *s, struct vhca_mem *mem, uint64_t min_len);
/* Walk over a FIFO of frames of at least @min_len bytes. */
void vhca_snap_fifo(struct vhca_snap *s, const char *field,
                    struct vhca_fifo *f, uint16_t min_len);

/*
 * struct vhca_snap_kind - how to walk over the objects of a table
 * @size: bytes of an object
 * @mem: offset in it of memory to release if it is refused; 0: none
 * @walk_one: save or load @obj, whose number is @s->number and which on load is
 *            zeroed before; or NULL. If it is refused, only @mem may be left
 * @enlist: make @obj, which has been loaded, one that can be destroyed like any
 *          other: with its number, and a user of the objects it refers to
 */
struct vhca_snap_kind {
    const char *name;
    size_t size, mem;
    void (*walk_one)(struct vhca_snap *s, void *obj);
    void (*enlist)(struct qhca_engine *e, void *obj, uint32_t number);
};

/*
 * Walk over the numbers of @t, in use or remembered, and its objects, by slot.
 * On load @t is empty before.
 */
void vhca_snap_table(struct vhca_snap *s, struct vhca_table *t,
                     const struct vhca_snap_kind *kind);
/* @enlist for an object that begins with a struct vhca_holder. */
void vhca_snap_holder(struct qhca_engine *e, void *obj, uint32_t number);

/*
 * struct vhca_snap_ref - how to name an object on a list, or with a timer
 * @off: offset of the list node or the timer in the object
 * @fn: the function of the timer
 */
struct vhca_snap_ref {
    const char *name;
    size_t off;
    uint32_t (*number)(const struct qhca_engine *e, const void *obj);
    void *(*find)(struct qhca_engine *e, uint32_t number);
    void (*fn)(struct qhca_engine *e, struct vhca_timer *t);
};

/* Walk over the objects on a list, in order; on load it is empty before. */
void vhca_snap_list(struct vhca_snap *s, const char *field,
                    struct vhca_list *head, const struct vhca_snap_ref *ref);
/* Walk over the running timers of objects of the @n kinds in @refs. */
void vhca_snap_timers(struct vhca_snap *s, const struct vhca_snap_ref *refs,
                      unsigned n);

#endif /* QHCA_ENGINE_SAVE_H */
