/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: a variant that deceives its driver, to test that the driver
 * does not trust it. It is not in the product: scripts/build/qemu.sh --hostile
 * makes a QEMU with it. While the machine runs, the properties hostile-* choose
 * a lie: a random one now and then (hostile-seed), or one in qhca-lies.c
 * whenever it can be told (hostile-lie).
 */
#include "qemu/osdep.h"

#include "qhca.h"

#ifdef QHCA_HOSTILE
#include "qapi/error.h"
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

/* Change a field of @size bytes to a value near the true one, or an odd one. */
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

/* Return the type of such a structure, as in struct QHCALie. */
static unsigned qhca_told_of(enum qhca_told what, const void *data, size_t len)
{
    switch (what) {
    case VHCA_TOLD_CMD:
        return le16_to_cpu(((const struct qhca_cmd_comp *)data)->opcode);
    case VHCA_TOLD_EQE:
        return ((const struct qhca_eqe *)data)->type;
    case VHCA_TOLD_CQE:
        return ((const struct qhca_cqe *)data)->opcode;
    default:
        return len;
    }
}

void qhca_dev_tamper(void *opaque, enum qhca_told what, void *data, size_t len)
{
    static const char *const name[] = {
        [VHCA_TOLD_CMD] = "command completion",
        [VHCA_TOLD_MBOX] = "mailbox",
        [VHCA_TOLD_EQE] = "EQE",
        [VHCA_TOLD_CQE] = "CQE",
    };
    QHCAState *s = qhca_dev_of(opaque);
    QHCAHostile *h = &s->hostile;
    size_t size, off, n;

    qhca_dev_tell(s, 1 << what, qhca_told_of(what, data, len), data);
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

uint32_t qhca_dev_tamper_reg(QHCAState *s, unsigned off, uint32_t val)
{
    val = cpu_to_le32(val);
    qhca_dev_tell(s, QHCA_HOSTILE_REG, off, &val);
    val = le32_to_cpu(val);
    if (qhca_is_lie(s, QHCA_HOSTILE_REG)) {
        qhca_tamper_field(&s->hostile, (uint8_t *)&val, sizeof(val));
        qemu_log("%s: a lie: register, 0x%x\n", s->id, val);
    }
    return val;
}

/* Return the wrong vector, or for none the first that does not exist. */
unsigned qhca_dev_tamper_irq(QHCAState *s, unsigned vector)
{
    uint32_t told = cpu_to_le32(vector);

    qhca_dev_tell(s, QHCA_HOSTILE_IRQ, vector, &told);
    vector = MIN(le32_to_cpu(told), s->props.vectors);
    if (qhca_is_lie(s, QHCA_HOSTILE_IRQ)) {
        vector = qhca_draw(&s->hostile, s->props.vectors + 1);
        qemu_log("%s: a lie: vector %u\n", s->id, vector);
    }
    return vector;
}

static char *qhca_get_lie(Object *obj, Error **errp)
{
    return g_strdup(QHCA(obj)->hostile.lie ?: "");
}

static void qhca_set_lie(Object *obj, const char *name, Error **errp)
{
    QHCAHostile *h = &QHCA(obj)->hostile;

    h->lie = NULL;
    h->first = 0;
    if (*name) {
        h->lie = qhca_dev_find_lie(name);
        if (!h->lie) {
            error_setg(errp, "no lie has the name '%s'", name);
        }
    }
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
    object_property_add_str(obj, "hostile-lie", qhca_get_lie, qhca_set_lie);
    object_property_add_str(obj, "hostile-names", qhca_dev_lie_names, NULL);
}
#endif /* QHCA_HOSTILE */
