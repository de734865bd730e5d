/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: a virtual RDMA host channel adapter with an Ethernet port.
 *
 * This file holds the PCI function, its properties and its life cycle.
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "qapi/error.h"
#include "qemu/module.h"
#include "hw/pci/msi.h"
#include "hw/pci/msix.h"
#include "hw/pci/pcie.h"
#include "hw/pci/pcie_aer.h"

#include "common/link.h"
#include "qhca.h"
#include "trace.h"

#define QHCA_PCIE_AER_OFFSET 0x100
#define QHCA_PCIE_DSN_OFFSET 0x148

static bool qhca_init_engine(QHCAState *s, Error **errp)
{
    const char *wrong;

    qhca_host_init(&s->host, &s->props, &qhca_dev_host_callbacks);
    wrong = qhca_host_start(&s->host, s->conf.macaddr.a, qhca_dev_removable(s),
                            &qhca_dev_callbacks);
    if (wrong) {
        error_setg(errp, "%s", wrong);
    }
    return !wrong;
}

static bool qhca_init_pm(PCIDevice *pci, Error **errp)
{
    int pos = pci_pm_init(pci, 0, errp);

    if (pos < 0) {
        return false;
    }
    pci_set_word(pci->config + pos + PCI_PM_PMC, PCI_PM_CAP_VER_1_2);
    /* The device keeps its state in D3hot; the driver resets it anyway. */
    pci_set_word(pci->config + pos + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
    pci_set_word(pci->wmask + pos + PCI_PM_CTRL, PCI_PM_CTRL_STATE_MASK);
    return true;
}

static uint8_t *qhca_pcie(PCIDevice *pci, uint8_t *space)
{
    return space + pci->exp.exp_cap;
}

static void qhca_reset_link(PCIDevice *pci)
{
    pci_set_word(qhca_pcie(pci, pci->config) + PCI_EXP_DEVCTL,
                 QHCA_LINK_DEVCTL);
}

/*
 * A machine keeps the link that it was saved with: another one is no reason to
 * refuse a state, as it says nothing of what the device does.
 */
static void qhca_init_link(PCIDevice *pci)
{
    uint8_t *cmask = qhca_pcie(pci, pci->cmask);

    pcie_cap_fill_link_ep_usp(pci, QHCA_LINK_WIDTH, QHCA_LINK_SPEED);
    pci_set_long(cmask + PCI_EXP_LNKCAP, 0);
    pci_set_long(cmask + PCI_EXP_LNKCAP2, 0);
    pci_set_word(cmask + PCI_EXP_LNKCTL2, 0);
    pci_word_test_and_set_mask(qhca_pcie(pci, pci->wmask) + PCI_EXP_DEVCTL,
                               PCI_EXP_DEVCTL_READRQ);
    qhca_reset_link(pci);
}

static bool qhca_init_pcie(QHCAState *s, Error **errp)
{
    PCIDevice *pci = PCI_DEVICE(s);

    if (pcie_endpoint_cap_init(pci, 0) < 0) {
        error_setg(errp, "no room for the PCI Express capability");
        return false;
    }
    pcie_cap_flr_init(pci);
    pcie_cap_deverr_init(pci);
    qhca_init_link(pci);
    if (pcie_aer_init(pci, PCI_ERR_VER, QHCA_PCIE_AER_OFFSET, PCI_ERR_SIZEOF,
                      errp) < 0) {
        pcie_cap_exit(pci);
        return false;
    }
    pcie_dev_ser_num_init(pci, QHCA_PCIE_DSN_OFFSET,
                          qhca_props_serial(s->conf.macaddr.a));
    return true;
}

/*
 * Clearing MSI-X's function mask sends pending messages, and one may unplug the
 * device. Then its configuration space is gone.
 */
static void qhca_config_write(PCIDevice *pci, uint32_t addr, uint32_t val,
                              int len)
{
    QHCAState *s = QHCA(pci);

    qhca_dev_hold(s);
    pci_default_write_config(pci, addr, val, len);
    if (!s->gone) {
        pcie_cap_flr_write_config(pci, addr, val, len);
        pcie_aer_write_config(pci, addr, val, len);
    }
    qhca_dev_release(s);
}

static void qhca_realize(PCIDevice *pci, Error **errp)
{
    QHCAState *s = QHCA(pci);

    s->gone = false;
    qemu_macaddr_default_if_unset(&s->conf.macaddr);
    if (!qhca_init_engine(s, errp)) {
        return;
    }
    s->id = DEVICE(s)->id ?: TYPE_QHCA;
    pci->config_write = qhca_config_write;
    if (!qhca_dev_capture_init(s, errp)) {
        goto err_engine;
    }
    if (!qhca_dev_faults_init(s, errp) || !qhca_init_pm(pci, errp) ||
        !qhca_init_pcie(s, errp)) {
        goto err_capture;
    }
    if (!qhca_dev_msix_init(s, errp)) {
        goto err_pcie;
    }
    if (!qhca_dev_mmio_init(s, errp)) {
        goto err_msix;
    }
    qhca_dev_dma_init(s);
    qhca_dev_run_init(s);
    qhca_dev_hostile_init(s);
    qhca_dev_net_init(&s->net, DEVICE(s), &s->conf, s->id, s->aggregate,
                      &qhca_dev_net_callbacks, s);
    return;

err_msix:
    qhca_dev_msix_exit(s);
err_pcie:
    pcie_aer_exit(pci);
    pcie_cap_exit(pci);
err_capture:
    qhca_dev_capture_exit(s);
err_engine:
    qhca_host_stop(&s->host);
}

static void qhca_free_engine(QHCAState *s)
{
    qhca_host_stop(&s->host);
    qhca_dev_capture_exit(s);
}

/* Free what may be on the stack even if the engine is not. */
static void qhca_free_rest(QHCAState *s)
{
    qhca_dev_net_exit(&s->net);
    qhca_dev_run_exit(s);
}

static void qhca_free_rest_later(void *opaque)
{
    qhca_free_rest(opaque);
    object_unref(OBJECT(opaque));
}

/*
 * No stack frame of the device needs the engine any more, so free it. Its
 * callers may still need the rest: the network delivers a frame, or the timer
 * has expired. They have returned when the main loop handles file descriptors
 * again, which nested polls never do.
 */
void qhca_dev_free(QHCAState *s)
{
    qhca_free_engine(s);
    aio_bh_schedule_oneshot(iohandler_get_aio_context(), qhca_free_rest_later,
                            s);
}

/*
 * The device may be unplugged while the engine runs: a frame that it sends, or
 * an access to memory, makes another device send an interrupt or an IOMMU
 * report a fault, and the guest has aimed that at the slot. Keep what is on the
 * stack until its functions have returned; until then the engine finds neither
 * memory nor network.
 */
static void qhca_exit(PCIDevice *pci)
{
    QHCAState *s = QHCA(pci);

    s->gone = true;
    if (s->held) {
        object_ref(OBJECT(s));      /* until qhca_free_rest_later() */
    } else {
        qhca_free_engine(s);
        qhca_free_rest(s);
    }
    qhca_dev_dma_exit(s);
    qhca_dev_mmio_exit(s);
    qhca_dev_msix_exit(s);
    pcie_aer_exit(pci);
    pcie_cap_exit(pci);
}

static void qhca_reset_hold(Object *obj, ResetType type)
{
    QHCAState *s = QHCA(obj);
    bool now = qhca_dev_enter(s);

    trace_qhca_reset(s->id, type, !now);
    if (!s->gone) {
        qhca_reset_link(PCI_DEVICE(s));
    }
    if (now) {
        qhca_host_reset(&s->host, qhca_dev_now());
        qhca_dev_leave(s);
    } else {
        qhca_dev_kick(s, QHCA_TODO_RESET);
    }
}

static const Property qhca_properties[] = {
    DEFINE_NIC_PROPERTIES(QHCAState, conf),
    DEFINE_PROP_BOOL("aggregate", QHCAState, aggregate, false),
#define QHCA_PROP(type, name, member, ...) \
    DEFINE_PROP_##type(name, QHCAState, props.member, ##__VA_ARGS__)
#define QHCA_LIVE_PROP(type, name, member, zero) \
    DEFINE_PROP_UNSIGNED_NODEFAULT(name, QHCAState, props.member, \
                                   qhca_dev_prop_##member, uint32_t)
#include "common/props.def"
};

static void qhca_class_init(ObjectClass *oc, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(oc);
    ResettableClass *rc = RESETTABLE_CLASS(oc);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(oc);

    pc->realize = qhca_realize;
    pc->exit = qhca_exit;
    pc->vendor_id = QHCA_PCI_VENDOR_ID;
    pc->device_id = QHCA_PCI_DEVICE_ID;
    pc->subsystem_vendor_id = QHCA_PCI_VENDOR_ID;
    pc->subsystem_id = QHCA_PCI_DEVICE_ID;
    pc->revision = QHCA_PCI_REVISION;
    pc->class_id = PCI_CLASS_NETWORK_ETHERNET;

    rc->phases.hold = qhca_reset_hold;

    dc->desc = "Virtual RDMA host channel adapter (RoCEv2) with Ethernet port";
    dc->vmsd = &qhca_dev_vmstate;
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
    device_class_set_props(dc, qhca_properties);
    qhca_dev_faults_class_init(oc);
    qhca_dev_stats_class_init(oc);
}

static const TypeInfo qhca_types[] = {
    {
        .name = TYPE_QHCA,
        .parent = TYPE_PCI_DEVICE,
        .instance_size = sizeof(QHCAState),
        .instance_finalize = qhca_dev_faults_finalize,
        .class_init = qhca_class_init,
        .interfaces = (InterfaceInfo[]) {
            { INTERFACE_PCIE_DEVICE },
            { }
        },
    },
};

DEFINE_TYPES(qhca_types)
