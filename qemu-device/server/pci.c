/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca server: the PCI function: configuration space, registers (BAR 0), MSI-X
 * (BAR 1), doorbells (BAR 2), memory (BAR 4), reset.
 *
 * The machine's QEMU handles MSI-X itself and hears about messages by eventfd.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <syslog.h>

#include "../common/link.h"
#include "at_path.h"
#include "hca.h"
#include "trace.h"

#define PM_POS          0x40
#define MSIX_POS        0x50
#define EXP_POS         0x60
#define DSN_POS         0x100

#define MSIX_BAR_SIZE   4096
#define MSIX_PBA        2048

/* A longer answer could have to wait for the machine. */
#define LONGEST_ACCESS  65536

#define BAR_64          (PCI_BASE_ADDRESS_MEM_TYPE_64 | \
                         PCI_BASE_ADDRESS_MEM_PREFETCH)

bool hca_is_bus_master(const struct hca *hca)
{
    return hca->config->hdr.cmd.bme;
}

static ssize_t regs_access(vfu_ctx_t *vfu, char *buf, size_t count, loff_t off,
                           bool write)
{
    struct hca *hca = vfu_get_private(vfu);
    uint32_t val = 0;
    size_t len = MIN(count, sizeof(val));

    if (write) {
        memcpy(&val, buf, len);
        qhca_host_reg_write(&hca->host, hca_now(), (uint64_t)off,
                            (unsigned)count, le32toh(val));
    } else {
        val = htole32(qhca_host_reg_read(&hca->host, hca_now(), (uint64_t)off,
                                         (unsigned)count));
        memset(buf, 0, count);
        memcpy(buf, &val, len);
    }
    return (ssize_t)count;
}

static ssize_t db_access(vfu_ctx_t *vfu, char *buf, size_t count, loff_t off,
                         bool write)
{
    struct hca *hca = vfu_get_private(vfu);
    uint64_t val = 0;

    if (count > LONGEST_ACCESS) {
        errno = EINVAL;
        return -1;
    }
    if (write) {
        memcpy(&val, buf, MIN(count, sizeof(val)));
        qhca_host_db_write(&hca->host, hca_now(), (uint64_t)off,
                           (unsigned)count, le64toh(val));
    } else {
        memset(buf, 0, count);
        qhca_host_db_read(&hca->host, (uint64_t)off, (unsigned)count);
    }
    return (ssize_t)count;
}

/* The machine's QEMU has the table; what it reads here has no meaning. */
static ssize_t msix_access(vfu_ctx_t *vfu, char *buf, size_t count, loff_t off,
                           bool write)
{
    (void)vfu;
    (void)off;
    if (!write) {
        memset(buf, 0, count);
    }
    return (ssize_t)count;
}

/* For a machine that does not map the memory. */
static ssize_t dm_access(vfu_ctx_t *vfu, char *buf, size_t count, loff_t off,
                         bool write)
{
    struct hca *hca = vfu_get_private(vfu);

    if (count > LONGEST_ACCESS) {
        errno = EINVAL;
        return -1;
    }
    if (write) {
        memcpy(hca->dm + off, buf, count);
    } else {
        memcpy(buf, hca->dm + off, count);
    }
    return (ssize_t)count;
}

static int reset(vfu_ctx_t *vfu, vfu_reset_type_t type)
{
    struct hca *hca = vfu_get_private(vfu);

    trace_qhca_reset(hca->name, type, false);
    hca_reset(hca, type == VFU_RESET_LOST_CONN);
    return 0;
}

static void dma_register(vfu_ctx_t *vfu, vfu_dma_info_t *info)
{
    struct hca *hca = vfu_get_private(vfu);
    const struct ram ram = {
        .range = { (uintptr_t)info->iova.iov_base, info->iova.iov_len },
        .at = info->vaddr,
        .whole = info->mapping.iov_base,
        .whole_len = info->mapping.iov_len,
        .writable = info->prot & PROT_WRITE,
    };

    /* Without a file: other devices' memory, or RAM that is not shared. */
    if (!ram.at) {
        if (ram.range.base < 4096 && ram.range.len > 4096) {
            hca_log(hca, "the machine's memory is not shared: give QEMU "
                    "-object memory-backend-memfd,id=mem,size=…,share=on and "
                    "-machine memory-backend=mem");
        }
        return;
    }
    if (info->prot & PROT_READ && !memory_add(&hca->memory, ram)) {
        hca_log(hca, "no place for memory at 0x%" PRIx64, ram.range.base);
    }
}

static void dma_unregister(vfu_ctx_t *vfu, vfu_dma_info_t *info)
{
    struct hca *hca = vfu_get_private(vfu);

    memory_remove(&hca->memory, (uintptr_t)info->iova.iov_base,
                  info->iova.iov_len);
}

static void log_line(vfu_ctx_t *vfu, int level, const char *text)
{
    (void)level;
    hca_note(vfu_get_private(vfu), "vfio-user: %s", text);
}

static bool add_caps(struct hca *hca)
{
    const uint64_t serial = qhca_props_serial(hca->mac);
    struct pmcap pm = {
        .hdr.id = PCI_CAP_ID_PM,
        .pc.vs = 2,
        /* The device keeps its state in D3hot; the driver resets it anyway. */
        .pmcs.nsfrst = 1,
    };
    struct msixcap msix = {
        .hdr.id = PCI_CAP_ID_MSIX,
        .mxc.ts = (uint16_t)((hca->props.vectors - 1) & 0x7ff),
        .mtab.tbir = QHCA_BAR_MSIX,
        .mpba = { .pbir = QHCA_BAR_MSIX, .pbao = MSIX_PBA >> 3 },
    };
    struct pxcap exp = {
        .hdr.id = PCI_CAP_ID_EXP,
        .pxcaps.ver = 2,
        .pxdcap = { .rer = 1, .flrc = 1 },
        .pxdc.raw = QHCA_LINK_DEVCTL,
        .pxlcap.stuff = QHCA_LINK_CAP,
        .pxls.stuff = QHCA_LINK_CAP,
        .pxlcap2.stuff = QHCA_LINK_SPEEDS,
        .pxlc2.stuff = QHCA_LINK_SPEED,
    };
    struct dsncap dsn = {
        .hdr = { .id = PCI_EXT_CAP_ID_DSN, .version = 1 },
        .sn_lo = (uint32_t)serial,
        .sn_hi = (uint32_t)(serial >> 32),
    };

    return vfu_pci_add_capability(hca->vfu, PM_POS, 0, &pm) >= 0 &&
           vfu_pci_add_capability(hca->vfu, MSIX_POS, 0, &msix) >= 0 &&
           vfu_pci_add_capability(hca->vfu, EXP_POS, 0, &exp) >= 0 &&
           vfu_pci_add_capability(hca->vfu, DSN_POS, VFU_CAP_FLAG_EXTENDED |
                                  VFU_CAP_FLAG_READONLY, &dsn) >= 0;
}

static bool add_regions(struct hca *hca)
{
    const int flags = VFU_REGION_FLAG_RW | VFU_REGION_FLAG_MEM;
    const struct {
        int bar;
        size_t size;
        vfu_region_access_cb_t *access;
        int fd;
        uint32_t type;
    } regions[] = {
        { QHCA_BAR_REGS, QHCA_BAR_REGS_SIZE, regs_access, -1, 0 },
        { QHCA_BAR_MSIX, MSIX_BAR_SIZE, msix_access, -1, 0 },
        { QHCA_BAR_DB, hca->props.uars * hca->props.db_stride, db_access, -1,
          BAR_64 },
        { QHCA_BAR_DM, hca->props.dm_size, dm_access, hca->dm_fd, BAR_64 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(regions); i++) {
        if (!regions[i].size) {
            continue;
        }
        if (vfu_setup_region(hca->vfu, regions[i].bar, regions[i].size,
                             regions[i].access, flags, NULL, 0, regions[i].fd,
                             0)) {
            return false;
        }
        hca->config->hdr.bars[regions[i].bar].raw = regions[i].type;
    }
    return true;
}

static bool setup(struct hca *hca)
{
    vfu_ctx_t *vfu = hca->vfu;

    vfu_setup_log(vfu, log_line, LOG_ERR);
    vfu_setup_close(vfu, hca_close_fd);
    vfu_setup_unmap(vfu, hca_unmap);
    if (vfu_pci_init(vfu, VFU_PCI_TYPE_EXPRESS, PCI_HEADER_TYPE_NORMAL, 0)) {
        return false;
    }
    hca->config = vfu_pci_get_config_space(vfu);
    vfu_pci_set_id(vfu, QHCA_PCI_VENDOR_ID, QHCA_PCI_DEVICE_ID,
                   QHCA_PCI_VENDOR_ID, QHCA_PCI_DEVICE_ID);
    vfu_pci_set_class(vfu, 0x02, 0x00, 0x00);   /* Ethernet controller */
    hca->config->hdr.rid = QHCA_PCI_REVISION;
    return add_caps(hca) && add_regions(hca) &&
           !vfu_setup_device_nr_irqs(vfu, VFU_DEV_MSIX_IRQ,
                                     hca->props.vectors) &&
           !vfu_setup_device_reset_cb(vfu, reset) &&
           !vfu_setup_device_dma(vfu, dma_register, dma_unregister) &&
           !vfu_realize_ctx(vfu);
}

bool hca_pci_init(struct hca *hca)
{
    int lock = at_path_clear(hca->socket);

    hca->vfu = vfu_create_ctx(VFU_TRANS_SOCK, hca->socket,
                              LIBVFIO_USER_FLAG_ATTACH_NB, hca,
                              VFU_DEV_TYPE_PCI);
    at_path_done(lock);
    if (!hca->vfu) {
        hca_log(hca, "%s: %s", hca->socket, g_strerror(errno));
        return false;
    }
    if (!setup(hca)) {
        hca_log(hca, "no PCI function: %s", g_strerror(errno));
        return false;
    }
    memcpy(hca->initial, hca->config, sizeof(hca->initial));
    return true;
}

void hca_pci_power_on(struct hca *hca)
{
    memcpy(hca->config, hca->initial, sizeof(hca->initial));
}

void hca_pci_exit(struct hca *hca)
{
    if (hca->vfu && !hca->attaching) {
        vfu_destroy_ctx(hca->vfu);
    }
}
