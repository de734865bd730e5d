/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: fault rules as a property, before the machine starts and
 * while it runs. Documentation/faults.rst has the language.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/cutils.h"
#include "qemu/main-loop.h"
#include "hw/hotplug.h"
#include "hw/pci/pci_bridge.h"
#include "hw/pci/pcie_regs.h"

#include "qhca.h"

/* Return line @number of @text, without its newline. */
static char *qhca_line(const char *text, unsigned number)
{
    const char *end;

    for (; number > 1 && (end = strchr(text, '\n')); number--) {
        text = end + 1;
    }
    return g_strndup(text, qemu_strchrnul(text, '\n') - text);
}

/* Set rules; a hint shows the line that is wrong and marks the place. */
static bool qhca_set_rules(QHCAState *s, const char *text, Error **errp)
{
    const char *wrong = qhca_host_set_faults(&s->host, qhca_dev_now(), text);
    g_autofree char *line = NULL;

    if (wrong) {
        line = qhca_line(text, s->host.wrong.line);
        g_strdelimit(line, "\t", ' ');
        error_setg(errp, "%s", wrong);
        error_append_hint(errp, "%s\n%*s\n", line,
                          (int)s->host.wrong.column, "^");
    }
    return !wrong;
}

bool qhca_dev_faults_apply(QHCAState *s, const char *text, Error **errp)
{
    bool ok;

    if (!qhca_dev_enter(s)) {
        error_setg(errp, "faults: the device is busy");
        return false;
    }
    ok = qhca_set_rules(s, text, errp);
    qhca_dev_leave(s);
    return ok;
}

bool qhca_dev_faults_init(QHCAState *s, Error **errp)
{
    return !s->faults || qhca_set_rules(s, s->faults, errp);
}

/* Tell a slot with native hot-plug that it is empty. */
static void qhca_empty_slot(PCIDevice *slot)
{
    uint32_t pos = slot->exp.exp_cap;
    uint8_t *cap = slot->config + pos;

    if (!pos || !(pci_get_long(cap + PCI_EXP_SLTCAP) & PCI_EXP_SLTCAP_HPC)) {
        return;
    }
    pci_word_test_and_clear_mask(cap + PCI_EXP_SLTSTA, PCI_EXP_SLTSTA_PDS);
    pci_word_test_and_clear_mask(cap + PCI_EXP_LNKSTA, PCI_EXP_LNKSTA_DLLLA);
    pci_word_test_and_set_mask(cap + PCI_EXP_SLTSTA, PCI_EXP_SLTSTA_PDC);
    /* Writing the register, even unchanged, makes the slot interrupt. */
    slot->config_write(slot, pos + PCI_EXP_SLTCTL,
                       pci_get_word(cap + PCI_EXP_SLTCTL), 2);
}

/*
 * Surprise removal: unlike device_del this does not ask the guest, which finds
 * no device from now on.
 */
static void qhca_remove_bh(void *opaque)
{
    DeviceState *dev = opaque;

    if (dev->realized) {
        PCIDevice *slot = pci_bridge_get_device(pci_get_bus(PCI_DEVICE(dev)));

        hotplug_handler_unplug(qdev_get_hotplug_handler(dev), dev,
                               &error_abort);
        object_unparent(OBJECT(dev));
        if (slot) {
            qhca_empty_slot(slot);
        }
    }
    object_unref(OBJECT(dev));
}

bool qhca_dev_removable(QHCAState *s)
{
    return qbus_is_hotpluggable(qdev_get_parent_bus(DEVICE(s)));
}

void qhca_dev_remove(void *opaque)
{
    QHCAState *s = qhca_dev_of(opaque);

    object_ref(OBJECT(s));
    aio_bh_schedule_oneshot(qemu_get_aio_context(), qhca_remove_bh, s);
}

static char *qhca_get_faults(Object *obj, Error **errp)
{
    QHCAState *s = QHCA(obj);
    char *text;

    if (!s->host.engine) {
        return g_strdup(s->faults ?: "");
    }
    text = g_malloc(VHCA_RULES_TEXT);
    qhca_engine_get_faults(s->host.engine, text, VHCA_RULES_TEXT);
    return text;
}

static void qhca_set_faults(Object *obj, const char *text, Error **errp)
{
    QHCAState *s = QHCA(obj);

    if (s->host.engine && !qhca_dev_faults_apply(s, text, errp)) {
        return;
    }
    g_free(s->faults);
    s->faults = g_strdup(text);
}

void qhca_dev_faults_finalize(Object *obj)
{
    g_free(QHCA(obj)->faults);
}

void qhca_dev_faults_class_init(ObjectClass *oc)
{
    object_class_property_add_str(oc, "faults", qhca_get_faults,
                                  qhca_set_faults);
    object_class_property_set_description(oc, "faults",
        "Rules by which the device misbehaves; read with their hits");
}
