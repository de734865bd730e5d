/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, core: the engine's state on its way to a file, and back.
 *
 * A room walks over what it has, field by field, and the same walk saves and
 * loads: saving writes down what is there, loading puts there what it reads.
 * Objects are named by their numbers; no pointer leaves the engine. What holds
 * between fields is checked both ways, so a state that could not be loaded is
 * not saved. On load nothing is believed that has not been checked, and an
 * object is put among the others only once all of it has.
 */
#ifndef QHCA_ENGINE_SNAPSHOT_H
#define QHCA_ENGINE_SNAPSHOT_H

#include "fifo.h"
#include "holder.h"
#include "mem.h"
#include "timer.h"
#include "util.h"

/*
 * struct vhca_snap - a walk
 * @bad: it has been refused; from then on reads give 0, and loops must end.
 *       Saving changes nothing, refused or not: the device goes on.
 * @version: of the section, or of the header before the first
 * @counters: how many of enum qhca_counter there are
 * @at: where it is in @in or @out, which ends at @end; save: it may be beyond
 * @section, @kind, @number: where it is, for who reads why it was refused
 */
struct vhca_snap {
    struct qhca_engine *e;
    bool load, bad;
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
 * @since: version of the section from which on it is there; in an older one it
 *         is 0
 */
struct vhca_snap_field {
    const char *name;
    size_t off, size, count;
    uint64_t max;
    uint32_t since;
};

#define QHCA_SNAP_SINCE(v, type, member, limit) \
    { #member, offsetof(type, member), sizeof_field(type, member), 1, \
      limit, v }
#define QHCA_SNAP_MAX(type, member, limit) \
    QHCA_SNAP_SINCE(0, type, member, limit)
#define QHCA_SNAP_ANY(type, member)     QHCA_SNAP_MAX(type, member, UINT64_MAX)
#define QHCA_SNAP_FLAG(type, member)    QHCA_SNAP_MAX(type, member, 1)
/* Bytes, and structures of the contract, which are little-endian. */
#define QHCA_SNAP_RAW(type, member) \
    { #member, offsetof(type, member), 1, sizeof_field(type, member), \
      UINT64_MAX, 0 }

/*
 * A member that @type gains is in the table of its fields, with the next
 * version of the section, or need not be saved: who adds it decides, and puts
 * the new size here. (That of a host with 64 bits.)
 */
#define QHCA_SNAP_KNOWS(type, size) \
    _Static_assert(sizeof(void *) != 8 || sizeof(type) == (size), \
                   "is the new member of " #type " to be saved?")

/* Refuses it: @field of the object being walked over, and a printf format. */
__attribute__((format(printf, 3, 4)))
void vhca_snap_refuse(struct vhca_snap *s, const char *field, const char *fmt,
                      ...);
/* Refuses it unless @ok. Returns whether it goes on. */
static inline bool vhca_snap_check(struct vhca_snap *s, bool ok,
                                   const char *field)
{
    if (!ok) {
        vhca_snap_refuse(s, field, "does not fit the rest");
    }
    return ok && !s->bad;
}

/* Takes down @v, or gives what was; up to @max, in @size bytes. */
uint64_t vhca_snap_num(struct vhca_snap *s, const char *field, uint64_t v,
                       unsigned size, uint64_t max);
static inline uint32_t vhca_snap_u32(struct vhca_snap *s, const char *field,
                                     uint32_t v, uint32_t max)
{
    return (uint32_t)vhca_snap_num(s, field, v, sizeof(v), max);
}

void vhca_snap_raw(struct vhca_snap *s, const char *field, void *p, size_t n);
void vhca_snap_u64s(struct vhca_snap *s, const char *field, uint64_t *v,
                    size_t n);
void vhca_snap_fields(struct vhca_snap *s, const struct vhca_snap_field *f,
                      void *obj);
/* The number of things that follow, each of at least @size bytes. */
uint32_t vhca_snap_count(struct vhca_snap *s, const char *field, uint32_t n,
                         size_t size);
/* A time, which is written as its distance from now. */
uint64_t vhca_snap_time(struct vhca_snap *s, const char *field, uint64_t t);
/* What is owed. */
void vhca_snap_pace(struct vhca_snap *s, struct vhca_pace *p);
/*
 * Memory of at least @min_len bytes. On load @mem is empty before, and the
 * caller's to release after, even if it was refused.
 */
void vhca_snap_mem(struct vhca_snap *s, struct vhca_mem *mem, uint64_t min_len);
/* Frames of at least @min_len bytes. */
void vhca_snap_fifo(struct vhca_snap *s, const char *field,
                    struct vhca_fifo *f, uint16_t min_len);

/*
 * struct vhca_snap_kind - how the objects of a table are walked over
 * @walk_one: on load @obj is NULL; it makes one of that number, which can be
 *        taken down again as any other. NULL: refused, and nothing is left.
 */
struct vhca_snap_kind {
    const char *name;
    void *(*walk_one)(struct vhca_snap *s, void *obj, uint32_t number);
};

/*
 * Numbers, in use or remembered, and objects by their slots. On load there are
 * none before.
 */
void vhca_snap_table(struct vhca_snap *s, struct vhca_table *t,
                     const struct vhca_snap_kind *kind);
/* For @walk_one of an object that begins with a struct vhca_holder. */
void *vhca_snap_holder(void *obj, uint32_t number, size_t size);

/*
 * struct vhca_snap_ref - how those on a list, or who owns a timer, are named
 * @off: of the node or the timer in the object
 * @fn: what the timer runs
 */
struct vhca_snap_ref {
    const char *name;
    size_t off;
    uint32_t (*number)(const struct qhca_engine *e, const void *obj);
    void *(*find)(struct qhca_engine *e, uint32_t number);
    void (*fn)(struct qhca_engine *e, struct vhca_timer *t);
};

/* Who is on the list, in order; on load it is empty before. */
void vhca_snap_list(struct vhca_snap *s, const char *field,
                    struct vhca_list *head, const struct vhca_snap_ref *ref);
/* The timers that run, which are those of @n kinds of objects. */
void vhca_snap_timers(struct vhca_snap *s, const struct vhca_snap_ref *refs,
                      unsigned n);

#endif /* QHCA_ENGINE_SNAPSHOT_H */
