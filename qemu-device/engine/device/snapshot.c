/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the state as a whole. A header identifies it and the device;
 * then each room has a section, with a name, a version and a length. A CRC
 * covers all of it, so damage is refused, whether it makes sense or not. Older
 * headers and sections are loaded, newer ones are refused.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../save/save.h"
#include "device.h"

#define MAGIC       0x61636871u     /* "qhca" */
#define FORMAT      1u              /* of the header */
#define OLDEST      1u              /* version of anything that can be loaded */
#define CRC_AT      8u              /* covers what follows it */
#define NAME_LEN    12u

/* Properties of the device that the guest has seen and objects depend on. */
static void walk_config(struct vhca_snap *s)
{
    const struct qhca_engine_config *cfg = &s->e->cfg;
    const struct {
        const char *name;
        uint64_t value;
    } same[] = {
        { "vectors", cfg->num_vectors }, { "uars", cfg->num_uars },
        { "max-qp", cfg->max_qp },
        { "mac", (uint64_t)cfg->mac[0] << 40 | (uint64_t)cfg->mac[1] << 32 |
                 (uint64_t)cfg->mac[2] << 24 | (uint64_t)cfg->mac[3] << 16 |
                 (uint64_t)cfg->mac[4] << 8 | cfg->mac[5] },
        { "guest-faults", cfg->guest_faults },
        { "db-stride", UINT64_C(1) << cfg->log_db_stride },
        { "shadow-doorbells", cfg->shadow },
        { "eth-queues", cfg->eth_queues },
    };

    s->section = "properties";
    for (unsigned i = 0; i < ARRAY_SIZE(same); i++) {
        uint64_t v = vhca_snap_num(s, same[i].name, same[i].value, 8,
                                   UINT64_MAX);

        if (v != same[i].value) {
            vhca_snap_refuse(s, same[i].name, "is 0x%llx, here 0x%llx",
                             (unsigned long long)v,
                             (unsigned long long)same[i].value);
        }
    }
}

/* Walk over a version, which is @newest, or on load at least OLDEST. */
static void walk_version(struct vhca_snap *s, const char *field,
                         uint32_t newest)
{
    s->version = vhca_snap_u32(s, field, newest, UINT32_MAX);
    if (!s->bad && (s->version < OLDEST || s->version > newest)) {
        vhca_snap_refuse(s, field, "is %u, here %u to %u", s->version, OLDEST,
                         newest);
    }
}

/* Save a number at @at, where its place was left free. */
static void patch(struct vhca_snap *s, size_t at, uint32_t v)
{
    v = htole32(v);
    if (!s->load && at + sizeof(v) <= s->end) {
        memcpy(s->out + at, &v, sizeof(v));
    }
}

static void walk_section(struct vhca_snap *s, const struct vhca_room *room)
{
    size_t end = s->end, start;
    char name[NAME_LEN] = { 0 };
    uint32_t len;

    s->section = room->section;
    snprintf(name, sizeof(name), "%s", room->section);
    vhca_snap_raw(s, "name", name, sizeof(name));
    vhca_snap_check(s, !strncmp(name, room->section, sizeof(name)), "name");
    walk_version(s, "version", room->version);
    len = vhca_snap_u32(s, "length", 0, UINT32_MAX);
    start = s->at;
    if (s->load) {
        if (!vhca_snap_check(s, len <= end - start, "length")) {
            return;
        }
        s->end = start + len;
    }
    room->walk(s);
    if (s->load) {
        vhca_snap_check(s, s->at == s->end, "length");
        s->end = end;
    }
    if (s->at - start > UINT32_MAX) {
        vhca_snap_refuse(s, "length", "is too much");
    }
    patch(s, start - sizeof(len), (uint32_t)(s->at - start));
}

static void walk_all(struct vhca_snap *s)
{
    s->section = "header";
    vhca_snap_check(s, vhca_snap_u32(s, "magic", MAGIC, UINT32_MAX) == MAGIC,
                    "magic");
    walk_version(s, "format", FORMAT);
    uint32_t crc = vhca_snap_u32(s, "crc", 0, UINT32_MAX);

    if (s->load && !s->bad &&
        crc != roce_crc32(0, s->in + s->at, s->end - s->at)) {
        vhca_snap_refuse(s, "crc", "is wrong: the state is damaged");
    }
    walk_config(s);
    for (unsigned i = 0; vhca_rooms[i] && !s->bad; i++) {
        if (vhca_rooms[i]->walk) {
            walk_section(s, vhca_rooms[i]);
        }
    }
    s->section = "end";
    if (s->load) {
        vhca_snap_check(s, s->at == s->end, "of the state");
    } else if (s->at <= s->end) {
        patch(s, CRC_AT, roce_crc32(0, s->out + CRC_AT + sizeof(crc),
                                    s->at - CRC_AT - sizeof(crc)));
    }
}

#ifdef QHCA_VERIFY
/*
 * The larger a state is, the more turns pass until the next check: the time to
 * check long lists grows with the square of their length.
 */
#define VERIFY_BYTES    32768u
/*
 * Numbers that are only remembered become many where objects come and go, and
 * nothing but new numbers depends on them: of states that are not small, one in
 * so many checks includes them.
 */
#define VERIFY_SMALL    8192u
#define VERIFY_WHOLE    64u

unsigned vhca_verify_every = QHCA_VERIFY;

void vhca_verify_turn(struct qhca_engine *e)
{
    static size_t turns;        /* until the next check */
    static unsigned brief;      /* checks until the next of the whole state */
    char why[160] = "";
    struct vhca_snap s = { .e = e, .why = why, .why_size = sizeof(why) };
    size_t size;

    if (turns-- > 1) {
        return;
    }
    s.brief = brief > 0;
    walk_all(&s);
    if (s.bad) {
        fprintf(stderr, "invariant: %s\n", why);
        abort();
    }
    size = s.at / VERIFY_BYTES;
    brief = brief > 0 ? brief - 1 : s.at > VERIFY_SMALL ? VERIFY_WHOLE - 1 : 0;
    turns = vhca_verify_every + 4 * size * size;
}
#endif

size_t qhca_engine_save(struct qhca_engine *e, uint64_t now, void *buf,
                        size_t size, char *why, size_t why_size)
{
    struct vhca_snap s = {
        .e = e, .out = buf, .end = size, .why = why, .why_size = why_size,
    };

    VHCA_ASSERT(!e->inside);
    e->now = MAX_OF(e->now, now);
    qhca_engine_settle(e);
    walk_all(&s);
    return s.bad ? 0 : s.at;
}

/* Set the clock to @now, and forget what has to be paid for on the old one. */
static void start_clock(struct qhca_engine *e, uint64_t now)
{
    vhca_rules_set_clock(e, now);
    e->now = now;
    e->slice.paid = e->share.paid = e->port->pace.paid = now;
}

bool qhca_engine_load(struct qhca_engine *e, uint64_t now, const void *buf,
                      size_t size, char *why, size_t why_size)
{
    struct vhca_snap s = {
        .e = e, .load = true, .in = buf, .end = size, .why = why,
        .why_size = why_size,
    };

    VHCA_ASSERT(!e->inside);
    vhca_reset(e);
    start_clock(e, now);
    walk_all(&s);
    if (s.bad) {
        vhca_reset(e);
        start_clock(e, now);
    }
    vhca_rules_update(e);      /* rules are not part of the state, and stay */
    vhca_tx_wait(e);
    vhca_pause(e, 0, 0);        /* waits for the end of those in force */
    /* Set the timer, whatever it was set to before. */
    e->timers.armed = UINT64_MAX;
    e->ops->set_timer(e->opaque, UINT64_MAX);
    vhca_timers_sync(e, vhca_run_wake(e));
    return !s.bad;
}
