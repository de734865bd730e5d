/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: writes to configuration space.
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
 * So a write that makes BARs appear, vanish or move waits until no CPU does,
 * which is soon: the CPU that has written leaves its translated code for that
 * at the next jump. Who looks at configuration space before sees the write.
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "hw/core/cpu.h"
#include "hw/pci/pci_device.h"
#include "hw/pci/pcie_aer.h"
#include "system/cpus.h"
#include "system/tcg.h"

#include "qhca.h"

#define BARS_BEGIN  PCI_BASE_ADDRESS_0
#define BARS_END    (PCI_BASE_ADDRESS_0 + 4 * PCI_ROM_SLOT)

/* What a register has after a write, as far as it covers the register. */
static uint32_t written(PCIDevice *pci, uint32_t reg, uint32_t addr,
                        uint32_t val, int len)
{
    uint8_t bytes[4];

    memcpy(bytes, pci->config + reg, sizeof(bytes));
    for (int i = 0; i < len; i++) {
        if (addr + i >= reg && addr + i < reg + sizeof(bytes)) {
            bytes[addr + i - reg] = val >> (8 * i);
        }
    }
    return ldl_le_p(bytes);
}

/* Whether a write changes what the CPUs find at an address. */
static bool moves_bars(PCIDevice *pci, uint32_t addr, uint32_t val, int len)
{
    uint16_t cmd = pci_get_word(pci->config + PCI_COMMAND);
    uint32_t devctl = pci->exp.exp_cap + PCI_EXP_DEVCTL;
    uint32_t pmcsr = pci->pm_cap + PCI_PM_CTRL;

    if (ranges_overlap(addr, len, PCI_COMMAND, 2)) {
        return (written(pci, PCI_COMMAND, addr, val, len) ^ cmd) &
               PCI_COMMAND_MEMORY;
    }
    if (!(cmd & PCI_COMMAND_MEMORY)) {
        return false;
    }
    if (ranges_overlap(addr, len, devctl, 2)) {
        return written(pci, devctl, addr, val, len) & PCI_EXP_DEVCTL_BCR_FLR;
    }
    if (ranges_overlap(addr, len, pmcsr, 2)) {
        return (written(pci, pmcsr, addr, val, len) ^
                pci_get_word(pci->config + pmcsr)) & PCI_PM_CTRL_STATE_MASK;
    }
    return ranges_overlap(addr, len, BARS_BEGIN, BARS_END - BARS_BEGIN);
}

/* Whether another CPU may execute the guest's code now, and go wrong. */
static bool others_run(void)
{
#ifdef QHCA_BESIDE
    return tcg_enabled() && qemu_in_vcpu_thread() && CPU_NEXT(first_cpu);
#else
    return false;
#endif
}

/*
 * Clearing MSI-X's function mask sends messages at once, and one may unplug the
 * device. Then its configuration space is gone.
 */
static void do_write(QHCAState *s, uint32_t addr, uint32_t val, int len)
{
    PCIDevice *pci = PCI_DEVICE(s);

    qhca_dev_hold(s);
    pci_default_write_config(pci, addr, val, len);
    if (!s->gone) {
        pcie_cap_flr_write_config(pci, addr, val, len);
        pcie_aer_write_config(pci, addr, val, len);
    }
    qhca_dev_release(s);
}

void qhca_dev_config_settle(QHCAState *s)
{
    QHCALateWrite w = s->late;

    s->late.len = 0;
    if (w.len && !s->gone) {
        do_write(s, w.addr, w.val, w.len);
    }
}

/* No CPU executes the guest's code, and none has the BQL. */
static void settle_alone(CPUState *cpu, run_on_cpu_data data)
{
    QHCAState *s = data.host_ptr;

    bql_lock();
    qhca_dev_config_settle(s);
    object_unref(OBJECT(s));
    bql_unlock();
}

void qhca_dev_config_write(PCIDevice *pci, uint32_t addr, uint32_t val, int len)
{
    QHCAState *s = QHCA(pci);

    qhca_dev_config_settle(s);
    if (s->gone) {
        return;
    }
    if (!others_run() || !moves_bars(pci, addr, val, len)) {
        do_write(s, addr, val, len);
        return;
    }
    s->late = (QHCALateWrite) { addr, val, len };
    object_ref(OBJECT(s));
    async_safe_run_on_cpu(current_cpu, settle_alone, RUN_ON_CPU_HOST_PTR(s));
}

uint32_t qhca_dev_config_read(PCIDevice *pci, uint32_t addr, int len)
{
    qhca_dev_config_settle(QHCA(pci));
    return QHCA(pci)->gone ? UINT32_MAX :
                             pci_default_read_config(pci, addr, len);
}
