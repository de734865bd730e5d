/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca PCIe device: QOM properties for the operator of the VM. */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "hw/qdev-core.h"

#include "qhca.h"

static bool qhca_is_realized(QHCAState *s, Error **errp)
{
    if (!s->host.engine || s->gone) {
        error_setg(errp, "the device is not realized");
        return false;
    }
    return true;
}

/* All counters of the contract, and the front end's, as one struct. */
static void qhca_get_counters(Object *obj, Visitor *v, const char *name,
                              void *opaque, Error **errp)
{
    QHCAState *s = QHCA(obj);
    bool ok = true;
    int i;

    if (!qhca_is_realized(s, errp) ||
        !visit_start_struct(v, name, NULL, 0, errp)) {
        return;
    }
    for (i = 0; ok && i < QHCA_CNT_MAX; i++) {
        uint64_t val = qhca_engine_counter(s->host.engine, i);

        ok = visit_type_uint64(v, qhca_counter_name(i), &val, errp);
    }
    if (ok && visit_type_uint64(v, "nested-mmio", &s->nested, errp)) {
        visit_check_struct(v, errp);
    }
    visit_end_struct(v, NULL);
}

static void qhca_get_objects(Object *obj, Visitor *v, const char *name,
                             void *opaque, Error **errp)
{
    QHCAState *s = QHCA(obj);
    uint32_t val;

    if (qhca_is_realized(s, errp)) {
        val = qhca_engine_num_objects(s->host.engine);
        visit_type_uint32(v, name, &val, errp);
    }
}

/* Host memory that the engine holds; with @opaque, the most it can hold. */
static void qhca_get_memory(Object *obj, Visitor *v, const char *name,
                            void *opaque, Error **errp)
{
    QHCAState *s = QHCA(obj);
    uint64_t now, max;

    if (qhca_is_realized(s, errp)) {
        now = qhca_engine_memory(s->host.engine, &max);
        visit_type_uint64(v, name, opaque ? &max : &now, errp);
    }
}

/* Always false: writing the property is an action. */
static bool qhca_get_inject_fatal(Object *obj, Error **errp)
{
    return false;
}

static void qhca_set_inject_fatal(Object *obj, bool value, Error **errp)
{
    QHCAState *s = QHCA(obj);

    if (value && qhca_is_realized(s, errp)) {
        qhca_dev_kick(s, QHCA_TODO_FATAL);
    }
}

static void qhca_get_bandwidth(Object *obj, Visitor *v, const char *name,
                               void *opaque, Error **errp)
{
    visit_type_uint32(v, name, &QHCA(obj)->props.bandwidth, errp);
}

/* The engine learns of it when it may: the driver gets an event. */
static void qhca_set_bandwidth(Object *obj, Visitor *v, const char *name,
                               void *opaque, Error **errp)
{
    QHCAState *s = QHCA(obj);
    const char *wrong;
    uint32_t mbit;

    if (!visit_type_uint32(v, name, &mbit, errp)) {
        return;
    }
    wrong = qhca_props_bandwidth_wrong(mbit);
    if (wrong) {
        error_setg(errp, "%s", wrong);
        return;
    }
    s->props.bandwidth = mbit;
    if (s->host.engine && !s->gone) {
        qhca_dev_kick(s, QHCA_TODO_SPEED);
    }
}

const PropertyInfo qhca_dev_prop_bandwidth = {
    .type = "uint32",
    .description = "Mbit/s that the port may send; 0 is no limit",
    .realized_set_allowed = true,
    .get = qhca_get_bandwidth,
    .set = qhca_set_bandwidth,
};

void qhca_dev_stats_class_init(ObjectClass *oc)
{
    object_class_property_add(oc, "counters", "qhca-counters",
                              qhca_get_counters, NULL, NULL, NULL);
    object_class_property_set_description(oc, "counters",
        "Counters since the machine was started");

    object_class_property_add(oc, "objects", "uint32",
                              qhca_get_objects, NULL, NULL, NULL);
    object_class_property_set_description(oc, "objects",
        "Objects (PD, MR, CQ, QP, ...) that exist now");

    object_class_property_add(oc, "memory", "uint64",
                              qhca_get_memory, NULL, NULL, NULL);
    object_class_property_set_description(oc, "memory",
        "Bytes of host memory that the device holds, device memory aside");

    object_class_property_add(oc, "max-memory", "uint64",
                              qhca_get_memory, NULL, NULL, (void *)1);
    object_class_property_set_description(oc, "max-memory",
        "Bytes of host memory that it can hold, whatever a guest does");

    object_class_property_add_bool(oc, "inject-fatal", qhca_get_inject_fatal,
                                   qhca_set_inject_fatal);
    object_class_property_set_description(oc, "inject-fatal",
        "Write true to stop the device with a fatal error");
}
