/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: one that deceives its driver, to see that the driver does
 * not believe it. Not in the product: scripts/build-qemu.sh --hostile makes a
 * QEMU with it. The properties hostile-* say, while the machine runs, what is a
 * lie.
 */
#include "qemu/osdep.h"

#include "qhca.h"

#ifdef QHCA_HOSTILE
#include "qemu/log.h"
#include "qom/object.h"

#define QHCA_HOSTILE_RATE 50

/* Numbers that programs get wrong. */
static const uint64_t qhca_odd_numbers[] = {
    0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0xffffff, 0x1000000,
    0x7fffffff, 0x80000000, 0xffffffff, INT64_MAX, UINT64_MAX,
};

/* The next number of a repeatable sequence (SplitMix64), below @max. */
static uint64_t qhca_draw(QHCAHostile *h, uint64_t max)
{
    uint64_t z;

    if (h->used != h->seed) {
        h->used = h->rng = h->seed;
    }
    z = h->rng += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (z ^ (z >> 31)) % max;
}

static bool qhca_is_lie(QHCAState *s, unsigned kind)
{
    QHCAHostile *h = &s->hostile;

    if (!h->seed || !(h->kinds & kind) || qhca_draw(h, MAX(h->rate, 1))) {
        return false;
    }
    h->lies++;
    return true;
}

/* A field of @size bytes gets another value, near the true one or odd. */
static void qhca_tamper_field(QHCAHostile *h, uint8_t *field, size_t size)
{
    uint64_t val = 0;

    memcpy(&val, field, size);
    val = le64_to_cpu(val);
    switch (qhca_draw(h, 4)) {
    case 0:
        val ^= 1ull << qhca_draw(h, 8 * size);
        break;
    case 1:
        val += qhca_draw(h, 2) ? 1 : -1;
        break;
    case 2:
        val = qhca_odd_numbers[qhca_draw(h, ARRAY_SIZE(qhca_odd_numbers))];
        break;
    default:
        val = qhca_draw(h, UINT64_MAX);
        break;
    }
    val = cpu_to_le64(val);
    memcpy(field, &val, size);
}

void qhca_dev_tamper(void *opaque, enum qhca_told what, void *data, size_t len)
{
    static const char *const name[] = {
        [QHCA_TOLD_CMD] = "command completion",
        [QHCA_TOLD_MBOX] = "mailbox",
        [QHCA_TOLD_EQE] = "EQE",
        [QHCA_TOLD_CQE] = "CQE",
    };
    QHCAState *s = opaque;
    QHCAHostile *h = &s->hostile;
    size_t size, off, n;

    if (!len || !qhca_is_lie(s, 1 << what)) {
        return;
    }
    /* Most lies are about one thing, some about many. */
    for (n = qhca_draw(h, 8) ? 1 : qhca_draw(h, len) + 1; n > 0; n--) {
        size = 1 << qhca_draw(h, 4);
        size = MIN(size, len);
        off = QEMU_ALIGN_DOWN(qhca_draw(h, len - size + 1), size);
        qhca_tamper_field(h, (uint8_t *)data + off, size);
        qemu_log("%s: a lie: %s, %zu bytes at %zu\n", s->id, name[what], size,
                 off);
    }
}

uint32_t qhca_dev_tamper_reg(QHCAState *s, uint32_t val)
{
    if (qhca_is_lie(s, QHCA_HOSTILE_REG)) {
        qhca_tamper_field(&s->hostile, (uint8_t *)&val, sizeof(val));
        qemu_log("%s: a lie: register, 0x%x\n", s->id, val);
    }
    return val;
}

/* The wrong one, or none. */
unsigned qhca_dev_tamper_irq(QHCAState *s, unsigned vector)
{
    if (qhca_is_lie(s, QHCA_HOSTILE_IRQ)) {
        vector = qhca_draw(&s->hostile, s->vectors + 1);
        qemu_log("%s: a lie: vector %u\n", s->id, vector);
    }
    return vector;
}

void qhca_dev_hostile_init(QHCAState *s)
{
    Object *obj = OBJECT(s);

    s->hostile.kinds = UINT32_MAX;
    s->hostile.rate = QHCA_HOSTILE_RATE;
    object_property_add_uint64_ptr(obj, "hostile-seed", &s->hostile.seed,
                                   OBJ_PROP_FLAG_READWRITE);
    object_property_add_uint32_ptr(obj, "hostile-kinds", &s->hostile.kinds,
                                   OBJ_PROP_FLAG_READWRITE);
    object_property_add_uint32_ptr(obj, "hostile-rate", &s->hostile.rate,
                                   OBJ_PROP_FLAG_READWRITE);
    object_property_add_uint64_ptr(obj, "hostile-lies", &s->hostile.lies,
                                   OBJ_PROP_FLAG_READ);
}
#endif /* QHCA_HOSTILE */
