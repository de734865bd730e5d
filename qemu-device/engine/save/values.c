/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: saving and loading what consists of bytes and numbers. */
#include <stdarg.h>
#include <stdio.h>

#include "save.h"

/* All deadlines are nearer: the longest ACK timeout takes 2.5 hours. */
#define FAR_NS      10000000000000ll
/* Bytes saved in front of a frame: its sender and its length. */
#define FRAME_HEAD  6u

void vhca_snap_refuse(struct vhca_snap *s, const char *field, const char *fmt,
                      ...)
{
    int n = 0;
    va_list ap;

    if (s->bad) {
        return;                 /* the first reason is the one that matters */
    }
    s->bad = true;
    if (s->kind) {
        n = snprintf(s->why, s->why_size, "%s: %s 0x%x: %s ", s->section,
                     s->kind, s->number, field);
    } else {
        n = snprintf(s->why, s->why_size, "%s: %s ", s->section, field);
    }
    if (n >= 0 && (size_t)n < s->why_size) {
        va_start(ap, fmt);
        vsnprintf(s->why + n, s->why_size - (size_t)n, fmt, ap);
        va_end(ap);
    }
}

void vhca_snap_raw(struct vhca_snap *s, const char *field, void *p, size_t n)
{
    if (s->load) {
        if (n > s->end - s->at) {
            vhca_snap_refuse(s, field, "is missing");
        }
        if (s->bad) {
            memset(p, 0, n);
            return;
        }
        memcpy(p, s->in + s->at, n);
    } else if (s->at <= s->end && n <= s->end - s->at) {
        memcpy(s->out + s->at, p, n);
    }
    s->at += n;
}

uint64_t vhca_snap_num(struct vhca_snap *s, const char *field, uint64_t v,
                       unsigned size, uint64_t max)
{
    uint64_t le = htole64(v);

    vhca_snap_raw(s, field, &le, size);
    if (s->load) {
        v = le64toh(le) & UINT64_MAX >> (64 - 8 * size);
    }
    if (v > max) {
        vhca_snap_refuse(s, field, "is %llu, at most %llu",
                         (unsigned long long)v, (unsigned long long)max);
    }
    return s->load && s->bad ? 0 : v;
}

void vhca_snap_u64s(struct vhca_snap *s, const char *field, uint64_t *v,
                    size_t n)
{
    for (size_t i = 0; i < n; i++) {
        v[i] = vhca_snap_num(s, field, v[i], sizeof(*v), UINT64_MAX);
    }
}

static uint64_t get_number(const void *p, size_t size)
{
    switch (size) {
    case 1:
        return *(const uint8_t *)p;
    case 2:
        return *(const uint16_t *)p;
    case 4:
        return *(const uint32_t *)p;
    default:
        return *(const uint64_t *)p;
    }
}

static void put_number(void *p, size_t size, uint64_t v)
{
    switch (size) {
    case 1:
        *(uint8_t *)p = (uint8_t)v;
        break;
    case 2:
        *(uint16_t *)p = (uint16_t)v;
        break;
    case 4:
        *(uint32_t *)p = (uint32_t)v;
        break;
    default:
        *(uint64_t *)p = v;
        break;
    }
}

void vhca_snap_fields(struct vhca_snap *s, const struct vhca_snap_field *f,
                      void *obj)
{
    for (; f->name; f++) {
        char *p = (char *)obj + f->off;
        uint64_t v;

        if (f->since > s->version) {
            memset(p, 0, f->count * f->size);
            continue;
        }
        if (f->count > 1) {
            vhca_snap_raw(s, f->name, p, f->count * f->size);
            continue;
        }
        v = vhca_snap_num(s, f->name, s->load ? 0 : get_number(p, f->size),
                          (unsigned)f->size, f->max);
        if (s->load) {
            put_number(p, f->size, v);
        }
    }
}

uint32_t vhca_snap_count(struct vhca_snap *s, const char *field, uint32_t n,
                         size_t size)
{
    n = vhca_snap_u32(s, field, n, UINT32_MAX);
    if (s->load && n > (s->end - s->at) / size) {
        vhca_snap_refuse(s, field, "is %u, more than the state can hold", n);
    }
    return s->bad ? 0 : n;
}

uint64_t vhca_snap_time(struct vhca_snap *s, const char *field, uint64_t t)
{
    uint64_t now = s->e->now;
    int64_t dist = (int64_t)(t - now);

    /* Shifted, as saved numbers are unsigned; times long ago are cut off. */
    dist = MAX_OF(dist, -FAR_NS) + FAR_NS;
    dist = (int64_t)vhca_snap_num(s, field, (uint64_t)dist, sizeof(dist),
                                  2 * FAR_NS) - FAR_NS;
    return dist < 0 && (uint64_t)-dist > now ? 0 : now + (uint64_t)dist;
}

void vhca_snap_pace(struct vhca_snap *s, struct vhca_pace *p)
{
    p->paid = vhca_snap_time(s, "paid", MAX_OF(p->paid, s->e->now));
    vhca_snap_check(s, p->paid <= s->e->now + VHCA_DEBT_NS, "paid");
}

/* ---- guest memory, frames ---- */

void vhca_snap_mem(struct vhca_snap *s, struct vhca_mem *mem, uint64_t min_len)
{
    bool list = vhca_snap_num(s, "list", mem->block != NULL, 1, 1);
    uint8_t shift = (uint8_t)vhca_snap_num(s, "block_shift", mem->block_shift,
                                           1, QHCA_BLOCK_SHIFT_MAX);
    uint32_t n = list ? vhca_snap_count(s, "num_blocks", mem->num_blocks,
                                        sizeof(*mem->block)) :
                        vhca_snap_u32(s, "num_blocks", mem->num_blocks,
                                      UINT32_MAX);

    if (!list) {
        mem->base = vhca_snap_num(s, "base", mem->base, sizeof(mem->base),
                                  UINT64_MAX);
        mem->num_blocks = n;
    } else if (s->load && !s->bad &&
               vhca_mem_reserve(s->e, mem, n) != QHCA_OK) {
        vhca_snap_refuse(s, "num_blocks", "is %u, and cannot be allocated", n);
    }
    mem->block_shift = shift;
    if (!vhca_snap_check(s, n && shift >= QHCA_BLOCK_SHIFT_MIN &&
                            (uint64_t)n << shift >= min_len, "memory")) {
        return;
    }
    if (mem->block) {
        vhca_snap_u64s(s, "block", mem->block, n);
    }
    vhca_snap_check(s, vhca_mem_blocks_ok(mem), "block addresses");
}

void vhca_snap_fifo(struct vhca_snap *s, const char *field,
                    struct vhca_fifo *f, uint16_t min_len)
{
    uint32_t n = vhca_snap_count(s, field, vhca_fifo_used(f),
                                 FRAME_HEAD + min_len);
    uint8_t frame[VHCA_MAX_FRAME];

    if (!vhca_snap_check(s, n <= VHCA_FIFO_FRAMES, field)) {
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = (f->head + i) % VHCA_FIFO_FRAMES;
        uint32_t from = vhca_snap_obj(s, "from", f->from[at]);
        uint16_t len = (uint16_t)vhca_snap_num(s, "length", f->len[at], 2,
                                               VHCA_MAX_FRAME);

        vhca_snap_check(s, len >= min_len, "length of a frame");
        if (!s->load) {
            vhca_snap_raw(s, "frame",
                          f->data + (size_t)at * VHCA_MAX_FRAME, len);
            continue;
        }
        vhca_snap_raw(s, "frame", frame, len);
        if (!s->bad && !vhca_fifo_push(f, frame, len, from, 0)) {
            vhca_snap_refuse(s, "frame", "cannot be allocated");
        }
    }
}

/* ---- the section of core/ ---- */

/*
 * The device room saves timers and the state (device/walk.c). A state of an
 * older device has fewer counters: new ones are always added at the end.
 */
static void walk_core(struct vhca_snap *s)
{
    s->counters = vhca_snap_u32(s, "counters", QHCA_CNT_MAX, QHCA_CNT_MAX);
    vhca_snap_u64s(s, "counter", s->e->cnt, s->counters);
    if (s->load) {
        memset(s->e->cnt + s->counters, 0,
               (QHCA_CNT_MAX - s->counters) * sizeof(*s->e->cnt));
    }
}

const struct vhca_room vhca_save_room = {
    .section = "core", .version = 1, .walk = walk_core,
};
