/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: MSI-X table and pending bits (BAR 1).
 *
 * The PCI core owns them. It frees them when the device is unplugged, and
 * aborts QEMU if an access that was looked up before arrives after that. So a
 * region of the device covers them, and passes on what arrives in time.
 */
#include "qemu/osdep.h"
#include "exec/memop.h"
#include "hw/pci/msix.h"
#include "qapi/error.h"

#include "qhca.h"
#include "trace.h"

/* Return the core's region with @size bytes at *@off; make *@off relative. */
static MemoryRegion *qhca_msix_find(QHCAState *s, hwaddr *off, unsigned size)
{
    PCIDevice *pci = PCI_DEVICE(s);
    MemoryRegion *const parts[] = { &pci->msix_table_mmio,
                                    &pci->msix_pba_mmio };
    unsigned i;

    if (s->gone) {
        trace_qhca_mmio_gone(s->id, "msix", *off);
        return NULL;
    }
    for (i = 0; i < ARRAY_SIZE(parts); i++) {
        if (*off >= parts[i]->addr &&
            *off - parts[i]->addr + size <= memory_region_size(parts[i])) {
            *off -= parts[i]->addr;
            return parts[i];
        }
    }
    return NULL;
}

static MemTxResult qhca_msix_read(void *opaque, hwaddr off, uint64_t *val,
                                  unsigned size, MemTxAttrs attrs)
{
    QHCAState *s = opaque;
    MemoryRegion *mr = qhca_msix_find(s, &off, size);

    if (!mr) {
        *val = s->gone ? UINT64_MAX : 0;
        return s->gone ? MEMTX_OK : MEMTX_DECODE_ERROR;
    }
    return memory_region_dispatch_read(mr, off, val, size_memop(size) | MO_LE,
                                       attrs);
}

static MemTxResult qhca_msix_write(void *opaque, hwaddr off, uint64_t val,
                                   unsigned size, MemTxAttrs attrs)
{
    QHCAState *s = opaque;
    MemoryRegion *mr = qhca_msix_find(s, &off, size);

    if (!mr) {
        return s->gone ? MEMTX_OK : MEMTX_DECODE_ERROR;
    }
    return memory_region_dispatch_write(mr, off, val, size_memop(size) | MO_LE,
                                        attrs);
}

/* Like the core's, split accesses into 4 bytes, each looked up by itself. */
static const MemoryRegionOps qhca_msix_ops = {
    .read_with_attrs = qhca_msix_read,
    .write_with_attrs = qhca_msix_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 4, .max_access_size = 8 },
    .impl = { .min_access_size = 4, .max_access_size = 4 },
};

bool qhca_dev_msix_init(QHCAState *s, Error **errp)
{
    PCIDevice *pci = PCI_DEVICE(s);
    uint32_t i;

    if (msix_init_exclusive_bar(pci, s->props.vectors, QHCA_BAR_MSIX, errp)) {
        return false;
    }
    for (i = 0; i < s->props.vectors; i++) {
        msix_vector_use(pci, i);
    }
    memory_region_init_io(&s->msix, OBJECT(s), &qhca_msix_ops, s, "qhca-msix",
                          memory_region_size(&pci->msix_exclusive_bar));
    /* The core's regions have the same owner, and so the same guard. */
    s->msix.disable_reentrancy_guard = true;
    memory_region_add_subregion_overlap(&pci->msix_exclusive_bar, 0, &s->msix,
                                        1);
    return true;
}

void qhca_dev_msix_exit(QHCAState *s)
{
    PCIDevice *pci = PCI_DEVICE(s);

    memory_region_del_subregion(&pci->msix_exclusive_bar, &s->msix);
    msix_unuse_all_vectors(pci);
    msix_uninit_exclusive_bar(pci);
}
