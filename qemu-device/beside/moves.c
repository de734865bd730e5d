/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca.so: BARs that appear, move and vanish.
 *
 * QEMU 10.0 with one thread for each of TCG's CPUs has a mistake. A CPU finds a
 * region that it accesses by its number in the map of the address space, and a
 * new map, with other numbers, becomes current before the CPUs have forgotten
 * the old ones. When a BAR appears or vanishes, another CPU may so write to the
 * wrong region. Such a CPU often loses an EOI or the deadline of its timer, and
 * then gets no timer interrupt any more. A QEMU that we build has that mended
 * (patches/tlb-section.patch), and Debian's has not: there the map must not
 * change while a CPU executes the guest's code.
 *
 * So a new map becomes current when no CPU does: each is asked to leave its
 * translated code, which it does at the next jump, and the first that has left
 * it waits for the others and makes the map current. Until then all CPUs reach
 * what they reached before, and what a device no longer in its slot answers, it
 * answers.
 *
 * BARs move by writes to configuration space, of this device and of any other
 * (a kernel that looks for devices has several CPUs already), by resets of this
 * device, and when it is unplugged. All of it is put around their functions.
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "hw/core/cpu.h"
#include "hw/pci/pci_bus.h"
#include "hw/pci/pci_device.h"
#include "system/cpus.h"
#include "system/runstate.h"
#include "system/system.h"
#include "system/tcg.h"

/* ---- the map of the address space ---- */

#define MOST_CPUS 4096      /* of any machine; numbers may be missing */

static bool stopped = true; /* the machine, and so all CPUs */
static bool waiting;        /* the new map is left to the CPUs */

/* Whether a CPU may execute the guest's code now, and go wrong. */
static bool cpus_execute(void)
{
    if (!tcg_enabled() || stopped) {
        return false;
    }
    if (!runstate_is_running()) {
        return true;            /* the machine is about to stop */
    }
    for (int i = 0; i < MOST_CPUS; i++) {
        CPUState *cpu = qemu_get_cpu(i);

        if (cpu && !cpu_is_stopped(cpu)) {
            return true;
        }
    }
    return false;
}

static void settle_waiting(void)
{
    if (waiting) {
        waiting = false;
        memory_region_transaction_commit();
    }
}

/* No CPU executes the guest's code, and none has the BQL. */
static void settle_alone(CPUState *cpu, run_on_cpu_data data)
{
    bql_lock();
    settle_waiting();
    bql_unlock();
}

/* Changes between begin and settle become the new map. */
static void begin(void)
{
    memory_region_transaction_begin();
}

/*
 * One transaction waits at most, for all changes; all CPUs have it to do, so
 * that none goes on for long with a map to which changes of others, which have
 * nothing to do with the device, do not apply.
 */
static void settle(void)
{
    if (!cpus_execute()) {
        memory_region_transaction_commit();
        settle_waiting();
        return;
    }
    if (waiting) {
        memory_region_transaction_commit();
        return;
    }
    waiting = true;
    for (int i = 0; i < MOST_CPUS; i++) {
        CPUState *cpu = qemu_get_cpu(i);

        if (cpu) {
            async_safe_run_on_cpu(cpu, settle_alone, RUN_ON_CPU_NULL);
        }
    }
}

/* When it stops, all CPUs have left their code. */
static void state_changed(void *opaque, bool running, RunState state)
{
    stopped = !running;
    if (stopped) {
        settle_waiting();
    }
}

/* ---- any device ---- */

/* How each device is written. */
static GHashTable *writers;

/* A map follows from what is in the configuration space, if it has changed. */
static void config_write(PCIDevice *pci, uint32_t addr, uint32_t val, int len)
{
    PCIConfigWriteFunc *write = g_hash_table_lookup(writers, pci);
    uint8_t before[PCI_CONFIG_SPACE_SIZE];
    bool changed;

    memcpy(before, pci->config, sizeof(before));
    begin();
    object_ref(pci);
    write(pci, addr, val, len);
    changed = !pci->config || memcmp(before, pci->config, sizeof(before));
    object_unref(pci);
    if (changed) {
        settle();
    } else {
        memory_region_transaction_commit();
    }
}

static void watch(PCIBus *bus, PCIDevice *pci, void *opaque)
{
    if (tcg_enabled() && pci->config_write != config_write) {
        g_hash_table_insert(writers, pci, pci->config_write);
        pci->config_write = config_write;
    }
}

static int watch_bus(Object *object, void *opaque)
{
    if (object_dynamic_cast(object, TYPE_PCI_BUS)) {
        pci_for_each_device_under_bus(PCI_BUS(object), watch, NULL);
    }
    return 0;
}

static void watch_all(Notifier *notifier, void *data)
{
    object_child_foreach_recursive(object_get_root(), watch_bus, NULL);
}

/* ---- the device ---- */

static void (*device_realize)(PCIDevice *pci, Error **errp);
static DeviceUnrealize device_unrealize;

static void realize(PCIDevice *pci, Error **errp)
{
    ERRP_GUARD();

    device_realize(pci, errp);
    if (!*errp) {
        watch(NULL, pci, NULL);
    }
}

static void unrealize(DeviceState *dev)
{
    begin();
    device_unrealize(dev);
    settle();
}

static void reset_enter(Object *obj, ResetType type)
{
    begin();
    settle();
}

static void put_around(void)
{
    static Notifier done = { .notify = watch_all };
    ObjectClass *oc = object_class_by_name("qhca");
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(oc);

    writers = g_hash_table_new(NULL, NULL);
    qemu_add_vm_change_state_handler(state_changed, NULL);
    qemu_add_machine_init_done_notifier(&done);
    device_realize = pc->realize;
    pc->realize = realize;
    device_class_set_parent_unrealize(DEVICE_CLASS(oc), unrealize,
                                      &device_unrealize);
    RESETTABLE_CLASS(oc)->phases.enter = reset_enter;
}

static void __attribute__((constructor)) keep(void)
{
    static QHCABesideInit init = { put_around, .last = true };

    qhca_beside_keep(&init);
}
