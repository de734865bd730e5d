/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: what the files of the front end share.
 *
 * The front end owns everything that is QEMU's: PCI, memory, interrupts, time,
 * the network, properties. The HCA itself is in engine/, which is called
 * through engine.h and calls back through qhca_dev_callbacks.
 *
 * All of it runs under the BQL. A call into the engine is bracketed by
 * qhca_dev_enter() and qhca_dev_leave(), and the engine is never entered
 * twice: what happens while it is busy (a guest pointing an MSI-X message or
 * another device's DMA at our BARs, a frame looped back by the network) is
 * dropped, or left to do for the bottom half. Interrupt messages wait until
 * the engine has been left, see qhca_dev_send_irqs().
 *
 * Once the device is out of its slot it is @gone, and the engine is not entered
 * any more. Accesses to its BARs that were looked up before still arrive, and
 * timers, bottom halves and the network may still call. As it may be on the
 * stack, the engine stays until the last qhca_dev_release(), or the unplug
 * itself, frees it. A bottom half of the main loop must not free it, because
 * nested polls run those.
 *
 * Names: qhca_dev_* are the front end's, all others the engine's.
 */
#ifndef HW_NET_QHCA_H
#define HW_NET_QHCA_H

#include "hw/pci/pci_device.h"
#include "qemu/timer.h"
#include "system/runstate.h"

#include "common/capture.h"
#include "common/host.h"
#include "common/props.h"
#include "common/ram.h"
#include "engine/engine.h"
#include "qhca-map.h"
#include "hw/qdev-properties.h"

#include "qhca-net.h"

#define TYPE_QHCA "qhca"
OBJECT_DECLARE_SIMPLE_TYPE(QHCAState, QHCA)

/*
 * struct QHCAHostile - how the device deceives its driver, in test builds
 * @seed: seed of random lies; 0: none
 * @kinds: 1 << enum qhca_told, and QHCA_HOSTILE_*
 * @rate: one of so many answers is a random lie
 * @lies: number of lies told
 * @lie: the lie that is told whenever it can be, or NULL
 * @first: the value that it repeats (LIE_AGAIN)
 */
typedef struct QHCAHostile {
    uint64_t seed;
    uint32_t kinds;
    uint32_t rate;
    uint64_t lies;
    uint64_t used;                  /* @seed that @rng began with */
    uint64_t rng;
    const char *lie;
    uint64_t first;
} QHCAHostile;

/* Bits of @kinds for lies that are not written to memory. */
#define QHCA_HOSTILE_REG (1 << VHCA_TOLD_MAX)
#define QHCA_HOSTILE_IRQ (2 << VHCA_TOLD_MAX)

struct QHCAState {
    PCIDevice parent_obj;

    MemoryRegion regs;
    MemoryRegion db;
    MemoryRegion msix;              /* in front of the PCI core's regions */
    MemoryRegion dm;                /* device memory */
    MemoryRegion dm_bar;            /* the guest's way to @dm */
    AddressSpace dm_as;             /* the device's way to @dm */
    QHCAMap dm_map;                 /* of @dm_as */
    QHCAMap bus_map;                /* of the bus master address space */
    bool wrote;                     /* the last access was a write */

    NICConf conf;
    struct qhca_props props;
    struct qhca_capture capture;
    int64_t capture_start;          /* us since 1970 */
    char *faults;                   /* as last set, or NULL */
    bool aggregate;

    struct qhca_host host;          /* the engine's opaque pointer */
    const char *id;                 /* names the device in traces and logs */
    QEMUTimer *timer;
    uint64_t armed;                 /* when @timer expires, not later */
    QEMUBH *bh;
    VMChangeStateEntry *vm_change;
    uint32_t saved_todo;            /* the part of @todo in a saved state */
    bool busy;                      /* inside the engine, or sending @irqs */
    bool gone;                      /* taken out of its slot */
    unsigned held;                  /* stack frames that need the engine */
    uint64_t nested;                /* accesses dropped because of @busy */

    QHCANet net;
#ifdef QHCA_HOSTILE
    QHCAHostile hostile;
#endif
};

/* Return the device that a callback of the engine is for. */
static inline QHCAState *qhca_dev_of(void *host)
{
    return container_of(host, QHCAState, host);
}

/* qhca.c */
void qhca_dev_free(QHCAState *s);

/* qhca-run.c */
extern const struct qhca_engine_ops qhca_dev_callbacks;
extern const struct qhca_host_ops qhca_dev_host_callbacks;
extern const QHCANetOps qhca_dev_net_callbacks;
bool qhca_dev_enter(QHCAState *s);
void qhca_dev_leave(QHCAState *s);
void qhca_dev_hold(QHCAState *s);
void qhca_dev_release(QHCAState *s);
void qhca_dev_kick(QHCAState *s, unsigned todo);
void qhca_dev_do_todo(QHCAState *s);
void qhca_dev_send_irqs(QHCAState *s);
uint64_t qhca_dev_now(void);
void qhca_dev_run_init(QHCAState *s);
void qhca_dev_run_exit(QHCAState *s);

/* qhca-migrate.c */
extern const VMStateDescription qhca_dev_vmstate;

/* qhca-mmio.c */
bool qhca_dev_mmio_init(QHCAState *s, Error **errp);
void qhca_dev_mmio_exit(QHCAState *s);

/* qhca-msix.c */
bool qhca_dev_msix_init(QHCAState *s, Error **errp);
void qhca_dev_msix_exit(QHCAState *s);

/* qhca-dma.c: with the engine's dma_* and atomic_* callbacks */
void qhca_dev_dma_init(QHCAState *s);
void qhca_dev_dma_exit(QHCAState *s);
bool qhca_dev_dma_read(void *opaque, uint64_t addr, void *buf, size_t len);
bool qhca_dev_dma_write(void *opaque, uint64_t addr, const void *buf,
                        size_t len);
bool qhca_dev_dma_write_entry(void *opaque, uint64_t addr, const void *entry,
                              size_t len);
const void *qhca_dev_dma_peek(void *opaque, uint64_t addr, size_t *len);
bool qhca_dev_dma_cas(void *opaque, uint64_t addr, uint64_t compare,
                      uint64_t swap, uint64_t *old);
bool qhca_dev_dma_add(void *opaque, uint64_t addr, uint64_t add, uint64_t *old);
bool qhca_dev_dma_store(void *opaque, uint64_t addr, const uint8_t *bytes);

/* qhca-hostile.c, and stubs for the product */
#ifdef QHCA_HOSTILE
void qhca_dev_hostile_init(QHCAState *s);
void qhca_dev_tamper(void *opaque, enum qhca_told what, void *data, size_t len);
uint32_t qhca_dev_tamper_reg(QHCAState *s, unsigned off, uint32_t val);
unsigned qhca_dev_tamper_irq(QHCAState *s, unsigned vector);

/*
 * qhca-lies.c. qhca_dev_tell() applies the chosen lie to @data, which the
 * device is about to tell its driver, if the lie is about such data; @of as in
 * QHCALie.
 */
void qhca_dev_tell(QHCAState *s, unsigned kind, unsigned of, void *data);
const char *qhca_dev_find_lie(const char *name);
char *qhca_dev_lie_names(Object *obj, Error **errp);
#else
static inline void qhca_dev_hostile_init(QHCAState *s)
{
}

static inline uint32_t qhca_dev_tamper_reg(QHCAState *s, unsigned off,
                                           uint32_t val)
{
    return val;
}

static inline unsigned qhca_dev_tamper_irq(QHCAState *s, unsigned vector)
{
    return vector;
}
#endif

/* qhca-capture.c */
bool qhca_dev_capture_init(QHCAState *s, Error **errp);
void qhca_dev_capture_exit(QHCAState *s);
void qhca_dev_capture(void *opaque, const uint8_t *frame, size_t len);

/* qhca-faults.c */
bool qhca_dev_faults_init(QHCAState *s, Error **errp);
bool qhca_dev_faults_apply(QHCAState *s, const char *text, Error **errp);
bool qhca_dev_removable(QHCAState *s);
void qhca_dev_remove(void *opaque);
void qhca_dev_faults_finalize(Object *obj);
void qhca_dev_faults_class_init(ObjectClass *oc);

/* qhca-stats.c */
extern const PropertyInfo qhca_dev_prop_bandwidth;
void qhca_dev_stats_class_init(ObjectClass *oc);

#endif /* HW_NET_QHCA_H */
