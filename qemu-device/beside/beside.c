/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca.so: whether the program beside which the object was loaded is a QEMU
 * that it was made for. Nothing of that program is used before; see
 * Documentation/architecture.rst.
 */
#include "hw/pci/pci_device.h"
#include "migration/vmstate.h"
#include "qapi/qapi-commands-control.h"

/* Missing in what is no QEMU, or exports nothing. */
#pragma weak qmp_query_version

static QHCABesideInit *kept;

void qhca_beside_keep(QHCABesideInit *init)
{
    init->next = kept;
    kept = init;
}

static void start(void)
{
    for (int last = 0; last <= 1; last++) {
        for (QHCABesideInit *init = kept; init; init = init->next) {
            if (init->last == last) {
                init->function();
            }
        }
    }
}

/*
 * Where QEMU has the fields of a PCIDevice that it saves: they lie behind what
 * depends on how QEMU was configured.
 */
static const struct {
    const char *name;
    size_t offset;
} pci_fields[] = {
    { "version_id", offsetof(PCIDevice, version_id) },
    { "config", offsetof(PCIDevice, config) },
    { "irq_state", offsetof(PCIDevice, irq_state) },
};

static bool same_layout(void)
{
    unsigned found = 0;

    for (const VMStateField *f = vmstate_pci_device.fields;
         f->name && f->flags != VMS_END; f++) {
        for (unsigned i = 0; i < ARRAY_SIZE(pci_fields); i++) {
            if (!strcmp(f->name, pci_fields[i].name)) {
                if (f->offset != pci_fields[i].offset) {
                    return false;
                }
                found |= 1u << i;
            }
        }
    }
    return found == (1u << ARRAY_SIZE(pci_fields)) - 1;
}

static void G_NORETURN G_GNUC_PRINTF(1, 2) refuse(const char *how, ...)
{
    va_list args;

    fprintf(stderr, "qhca.so, made for QEMU %s: ", QEMU_VERSION);
    va_start(args, how);
    vfprintf(stderr, how, args);
    va_end(args);
    fputc('\n', stderr);
    _exit(1);
}

static void __attribute__((constructor)) check(void)
{
    VersionInfo *info;
    VersionTriple *v;
    char *name;

    if (!qmp_query_version) {
        refuse("%s is no qemu-system that exports its functions, as a build "
               "with modules does", program_invocation_name);
    }
    info = qmp_query_version(NULL);
    v = info->qemu;
    name = g_strdup_printf("this is QEMU %" PRId64 ".%" PRId64 ".%" PRId64
                           "%s%s", v->major, v->minor, v->micro,
                           *info->package ? ", " : "", info->package);
    /* From 50 on it is what becomes the next minor version. */
    if (v->major != QEMU_VERSION_MAJOR || v->minor != QEMU_VERSION_MINOR ||
        v->micro >= 50) {
        refuse("%s", name);
    }
    if (!same_layout()) {
        refuse("%s, configured so that its structures differ", name);
    }
    g_free(name);
    qapi_free_VersionInfo(info);
    /* Called right after QEMU's own types have been registered. */
    register_module_init(start, MODULE_INIT_MIGRATION);
}
