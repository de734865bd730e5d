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
#include "qemu/units.h"
#include "hw/pci/msi.h"
#include "hw/pci/msix.h"
#include "hw/pci/pcie.h"
#include "hw/pci/pcie_aer.h"
#include "hw/qdev-properties.h"
#include "net/eth.h"

#include "qhca.h"
#include "trace.h"

#define QHCA_PCIE_AER_OFFSET 0x100
#define QHCA_PCIE_DSN_OFFSET 0x148

#define QHCA_MAX_VECTORS 64     /* the engine has as many event queues */
#define QHCA_MAX_UARS 32768
#define QHCA_MAX_CMD_TIMEOUT_MS (10 * 60 * 1000)
#define QHCA_MAX_DM (1 * GiB)
#define QHCA_MAX_BANDWIDTH 100000   /* the port's speed */

static bool qhca_check_properties(QHCAState *s, Error **errp)
{
    if (s->vectors < 2 || s->vectors > QHCA_MAX_VECTORS) {
        error_setg(errp, "'vectors' must be between 2 and %d",
                   QHCA_MAX_VECTORS);
    } else if (s->uars < 2 || s->uars > QHCA_MAX_UARS ||
               !is_power_of_2(s->uars)) {
        error_setg(errp, "'uars' must be a power of two between 2 and %d",
                   QHCA_MAX_UARS);
    } else if (s->db_stride < QHCA_PAGE_SIZE ||
               s->db_stride > 1u << QHCA_DB_LOG_STRIDE_MAX ||
               !is_power_of_2(s->db_stride)) {
        error_setg(errp, "'db-stride' must be a power of two between 4K and "
                   "64K");
    } else if (s->max_qp < 2) {
        error_setg(errp, "'max-qp' must be at least 2");
    } else if (!s->cmd_timeout_ms ||
               s->cmd_timeout_ms > QHCA_MAX_CMD_TIMEOUT_MS) {
        error_setg(errp, "'cmd-timeout-ms' must be between 1 and %d",
                   QHCA_MAX_CMD_TIMEOUT_MS);
    } else if (s->dm_size && (s->dm_size < QHCA_PAGE_SIZE ||
                              s->dm_size > QHCA_MAX_DM ||
                              !is_power_of_2(s->dm_size))) {
        error_setg(errp, "'dm-size' must be 0 or a power of two between 4K "
                   "and 1G");
    } else if (s->cpu_share < 1 || s->cpu_share > 100) {
        error_setg(errp, "'cpu-share' must be between 1 and 100");
    } else if (s->bandwidth > QHCA_MAX_BANDWIDTH) {
        error_setg(errp, "'bandwidth' must be between 1 and %d, or 0 for no "
                   "limit", QHCA_MAX_BANDWIDTH);
    } else if (is_multicast_ether_addr(s->conf.macaddr.a)) {
        error_setg(errp, "'mac' must be a unicast address");
    } else {
        return true;
    }
    return false;
}

static bool qhca_init_engine(QHCAState *s, Error **errp)
{
    struct qhca_engine_config cfg = {
        .num_vectors = s->vectors,
        .num_uars = s->uars,
        .log_db_stride = ctz64(s->db_stride),
        .max_qp = s->max_qp,
        .cmd_timeout_ms = s->cmd_timeout_ms,
        .cpu_share = s->cpu_share < 100 ? s->cpu_share : 0,
        .bandwidth = s->bandwidth,
        .mw_2a = s->mw2a,
        .frames = s->frames || s->loopback_capture,
        .removable = qhca_dev_removable(s),
        .guest_faults = s->guest_faults,
    };

    memcpy(cfg.mac, s->conf.macaddr.a, sizeof(cfg.mac));
    qhca_dev_random_init(s);
    s->engine = qhca_engine_new(&cfg, &qhca_dev_callbacks, s);
    if (!s->engine) {
        qhca_dev_random_exit(s);
        error_setg(errp, "no memory for the device, or 'max-qp' is too large");
    }
    return s->engine;
}

static void qhca_exit_engine(QHCAState *s)
{
    qhca_engine_free(s->engine);
    s->engine = NULL;
    qhca_dev_random_exit(s);
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

/* EUI-64 of the MAC address, which PCIe has in the serial number. */
static uint64_t qhca_serial_number(const uint8_t *mac)
{
    const uint8_t eui[8] = { mac[0], mac[1], mac[2], 0xff, 0xfe,
                             mac[3], mac[4], mac[5] };

    return ldq_be_p(eui);
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
    if (pcie_aer_init(pci, PCI_ERR_VER, QHCA_PCIE_AER_OFFSET, PCI_ERR_SIZEOF,
                      errp) < 0) {
        pcie_cap_exit(pci);
        return false;
    }
    pcie_dev_ser_num_init(pci, QHCA_PCIE_DSN_OFFSET,
                          qhca_serial_number(s->conf.macaddr.a));
    return true;
}

/*
 * Clearing MSI-X's function mask sends messages at once, and one may unplug the
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
    if (!qhca_check_properties(s, errp) || !qhca_init_engine(s, errp)) {
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
    qhca_exit_engine(s);
}

static void qhca_free_engine(QHCAState *s)
{
    qhca_exit_engine(s);
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
    if (now) {
        qhca_dev_run_reset(s);
        qhca_dev_leave(s);
    } else {
        qhca_dev_kick(s, QHCA_TODO_RESET);
    }
}

static const Property qhca_properties[] = {
    DEFINE_NIC_PROPERTIES(QHCAState, conf),
    DEFINE_PROP_UINT32("vectors", QHCAState, vectors, 5),
    DEFINE_PROP_UINT32("uars", QHCAState, uars, 1024),
    DEFINE_PROP_SIZE("db-stride", QHCAState, db_stride, QHCA_PAGE_SIZE),
    DEFINE_PROP_UINT32("max-qp", QHCAState, max_qp, 4096),
    DEFINE_PROP_BOOL("mw2a", QHCAState, mw2a, false),
    DEFINE_PROP_BOOL("frames", QHCAState, frames, false),
    DEFINE_PROP_STRING("loopback-capture", QHCAState, loopback_capture),
    DEFINE_PROP_BOOL("aggregate", QHCAState, aggregate, false),
    DEFINE_PROP_UINT32("cmd-timeout-ms", QHCAState, cmd_timeout_ms, 10000),
    DEFINE_PROP_UINT32("cpu-share", QHCAState, cpu_share, 100),
    DEFINE_PROP_UINT32("bandwidth", QHCAState, bandwidth, 0),
    DEFINE_PROP_SIZE("dm-size", QHCAState, dm_size, 1 * MiB),
    DEFINE_PROP_BOOL("guest-faults", QHCAState, guest_faults, false),
    DEFINE_PROP_UINT64("seed", QHCAState, seed, 0),
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
