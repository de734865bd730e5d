/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: BARs that appear, move and vanish.
 *
 * QEMU 10.0 with one thread for each of TCG's CPUs has a mistake. A CPU finds a
 * region that it accesses by its number in the map of the address space, and a
 * new map, with other numbers, becomes current before the CPUs have forgotten
 * the old ones. When a BAR appears or vanishes, another CPU may so write to the
 * wrong region. What it loses is often an EOI or the deadline of its timer, and
 * then it gets no timer interrupt any more. The map must not change while a CPU
 * executes the guest's code. A QEMU that we build has that mended
 * (patches/tlb-section.patch), and Debian's has not.
 *
 * So there the new map becomes current when no CPU does, which is soon: a CPU
 * that has made the change leaves its translated code for that at the next
 * jump. Until then all CPUs reach what they reached before, and what a device
 * no longer in its slot answers, it answers.
 *
 * BARs move by writes to our configuration space and to that of the port above,
 * which has the slot's power, by resets, and when the device is unplugged.
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "hw/core/cpu.h"
#include "hw/pci/pci_bridge.h"
#include "hw/pci/pci_device.h"
#include "hw/pci/pcie_aer.h"
#include "system/cpus.h"
#include "system/tcg.h"

#include "qhca.h"

/* ---- the map of the address space ---- */

/* A CPU that may execute the guest's code now, and go wrong; or NULL. */
static CPUState *running_cpu(void)
{
#ifdef QHCA_BESIDE
    CPUState *cpu = tcg_enabled() ? current_cpu ?: qemu_get_cpu(0) : NULL;

    return cpu && !cpu_is_stopped(cpu) ? cpu : NULL;
#else
    return NULL;
#endif
}

/* No CPU executes the guest's code, and none has the BQL. */
static void settle_alone(CPUState *cpu, run_on_cpu_data data)
{
    bql_lock();
    memory_region_transaction_commit();
    bql_unlock();
}

/* What happens between begin and settle becomes the new map. */
static void begin(void)
{
    memory_region_transaction_begin();
}

static void settle(void)
{
    CPUState *cpu = running_cpu();

    if (cpu) {
        async_safe_run_on_cpu(cpu, settle_alone, RUN_ON_CPU_NULL);
    } else {
        memory_region_transaction_commit();
    }
}

/* ---- the port above ---- */

#ifdef QHCA_BESIDE
/* How each port was written that has had such a device below it. */
static GHashTable *ports;

static void port_write(PCIDevice *port, uint32_t addr, uint32_t val, int len)
{
    PCIConfigWriteFunc *write = g_hash_table_lookup(ports, port);

    begin();
    write(port, addr, val, len);
    settle();
}

static void watch_port(PCIDevice *pci)
{
    PCIDevice *port = pci_bridge_get_device(pci_get_bus(pci));

    if (!port || port->config_write == port_write) {
        return;
    }
    if (!ports) {
        ports = g_hash_table_new(NULL, NULL);
    }
    g_hash_table_insert(ports, port, port->config_write);
    port->config_write = port_write;
}
#else
static void watch_port(PCIDevice *pci)
{
}
#endif

/* ---- the device ---- */

static void bars_of(const PCIDevice *pci, pcibus_t addr[PCI_NUM_REGIONS])
{
    for (unsigned i = 0; i < PCI_NUM_REGIONS; i++) {
        addr[i] = pci->io_regions[i].addr;
    }
}

/*
 * Clearing MSI-X's function mask sends messages at once, and one may unplug the
 * device. Then its configuration space is gone.
 */
static void config_write(PCIDevice *pci, uint32_t addr, uint32_t val, int len)
{
    pcibus_t before[PCI_NUM_REGIONS], after[PCI_NUM_REGIONS];
    QHCAState *s = QHCA(pci);

    bars_of(pci, before);
    begin();
    qhca_dev_hold(s);
    pci_default_write_config(pci, addr, val, len);
    if (!s->gone) {
        pcie_cap_flr_write_config(pci, addr, val, len);
        pcie_aer_write_config(pci, addr, val, len);
    }
    bars_of(pci, after);
    qhca_dev_release(s);
    if (memcmp(before, after, sizeof(before))) {
        settle();
    } else {
        memory_region_transaction_commit();
    }
}

void qhca_dev_moves_init(QHCAState *s)
{
    PCIDevice *pci = PCI_DEVICE(s);

    pci->config_write = config_write;
    watch_port(pci);
}

static void reset_enter(Object *obj, ResetType type)
{
    begin();
    settle();
}

static DeviceUnrealize parent_unrealize;

static void unrealize(DeviceState *dev)
{
    begin();
    parent_unrealize(dev);
    settle();
}

void qhca_dev_moves_class_init(ObjectClass *oc)
{
    RESETTABLE_CLASS(oc)->phases.enter = reset_enter;
    device_class_set_parent_unrealize(DEVICE_CLASS(oc), unrealize,
                                      &parent_unrealize);
}
