/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: registers (BAR 0), doorbells (BAR 2), memory (BAR 4).
 *
 * The first two accept accesses of every size and alignment, so that those
 * without a meaning are counted and logged rather than split by the memory
 * core.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/bitops.h"
#include "migration/vmstate.h"

#include "qhca.h"
#include "trace.h"

/*
 * Returns false if the access has no effect, and reads qhca_mmio_nothing(). One
 * that was looked up before the device was unplugged reaches an empty slot.
 */
static bool qhca_mmio_enter(QHCAState *s, const char *bar, hwaddr off)
{
    if (qhca_dev_enter(s)) {
        return true;
    }
    if (s->gone) {
        trace_qhca_mmio_gone(s->id, bar, off);
        return false;
    }
    s->nested++;
    trace_qhca_mmio_nested(s->id, bar, off);
    qemu_log_mask(LOG_GUEST_ERROR, "%s: %s+0x%" HWADDR_PRIx
                  ": access from within the device's own work\n",
                  s->id, bar, off);
    return false;
}

static uint64_t qhca_mmio_nothing(const QHCAState *s)
{
    return s->gone ? UINT64_MAX : 0;
}

static void qhca_mmio_leave(QHCAState *s)
{
    qhca_dev_leave(s);
    qhca_dev_send_irqs(s);
}

static uint64_t qhca_regs_read(void *opaque, hwaddr off, unsigned size)
{
    QHCAState *s = opaque;
    uint32_t val;

    if (!qhca_mmio_enter(s, "regs", off)) {
        return qhca_mmio_nothing(s);
    }
    val = qhca_host_reg_read(&s->host, qhca_dev_now(), off, size);
    val = qhca_dev_tamper_reg(s, off, val);
    qhca_mmio_leave(s);
    return val;
}

static void qhca_regs_write(void *opaque, hwaddr off, uint64_t val,
                            unsigned size)
{
    QHCAState *s = opaque;

    if (!qhca_mmio_enter(s, "regs", off)) {
        return;
    }
    qhca_host_reg_write(&s->host, qhca_dev_now(), off, size, val);
    qhca_mmio_leave(s);
}

static uint64_t qhca_db_read(void *opaque, hwaddr off, unsigned size)
{
    QHCAState *s = opaque;

    if (!qhca_mmio_enter(s, "db", off)) {
        return qhca_mmio_nothing(s);
    }
    qhca_host_db_read(&s->host, off, size);
    qhca_mmio_leave(s);
    return 0;
}

static void qhca_db_write(void *opaque, hwaddr off, uint64_t val,
                          unsigned size)
{
    QHCAState *s = opaque;

    if (!qhca_mmio_enter(s, "db", off)) {
        return;
    }
    qhca_host_db_write(&s->host, qhca_dev_now(), off, size, val);
    qhca_mmio_leave(s);
}

static const MemoryRegionOps qhca_regs_ops = {
    .read = qhca_regs_read,
    .write = qhca_regs_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
    .impl = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
};

static const MemoryRegionOps qhca_db_ops = {
    .read = qhca_db_read,
    .write = qhca_db_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
    .impl = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
};

/*
 * RAM on the device: CPUs and other devices access it without running code of
 * the device. The device uses a separate address space, so it does not matter
 * where the guest has put the BAR, or whether it is enabled.
 *
 * It migrates like the machine's RAM: page by page while the machine runs, then
 * the pages that were written since.
 */
static bool qhca_init_dm(QHCAState *s, Error **errp)
{
    if (!memory_region_init_ram(&s->dm, OBJECT(s), "qhca-dm", s->props.dm_size,
                                errp)) {
        return false;
    }
    address_space_init(&s->dm_as, &s->dm, "qhca-dm");
    memory_region_init_alias(&s->dm_bar, OBJECT(s), "qhca-dm-bar", &s->dm, 0,
                             s->props.dm_size);
    pci_register_bar(PCI_DEVICE(s), QHCA_BAR_DM,
                     PCI_BASE_ADDRESS_SPACE_MEMORY |
                     PCI_BASE_ADDRESS_MEM_TYPE_64 |
                     PCI_BASE_ADDRESS_MEM_PREFETCH, &s->dm_bar);
    return true;
}

bool qhca_dev_mmio_init(QHCAState *s, Error **errp)
{
    PCIDevice *pci = PCI_DEVICE(s);

    if (s->props.dm_size && !qhca_init_dm(s, errp)) {
        return false;
    }
    memory_region_init_io(&s->regs, OBJECT(s), &qhca_regs_ops, s, "qhca-regs",
                          QHCA_BAR_REGS_SIZE);
    memory_region_init_io(&s->db, OBJECT(s), &qhca_db_ops, s, "qhca-db",
                          s->props.uars * s->props.db_stride);

    /*
     * qhca_dev_enter() guards these two against re-entry. Unlike the memory
     * core's guard it also covers timers and the network, and it counts what it
     * drops.
     */
    s->regs.disable_reentrancy_guard = true;
    s->db.disable_reentrancy_guard = true;

    pci_register_bar(pci, QHCA_BAR_REGS, PCI_BASE_ADDRESS_SPACE_MEMORY,
                     &s->regs);
    /* Prefetchable: it grows with @uars and may lie above 4 GiB. */
    pci_register_bar(pci, QHCA_BAR_DB, PCI_BASE_ADDRESS_SPACE_MEMORY |
                     PCI_BASE_ADDRESS_MEM_TYPE_64 |
                     PCI_BASE_ADDRESS_MEM_PREFETCH, &s->db);
    return true;
}

void qhca_dev_mmio_exit(QHCAState *s)
{
    if (s->props.dm_size) {
        /*
         * The memory stays until the last reader of a memory map is gone, but
         * its name has to be free now: a successor may be plugged in first.
         */
        vmstate_unregister_ram(&s->dm, DEVICE(s));
        address_space_destroy(&s->dm_as);
    }
}
