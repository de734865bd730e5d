/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: saving and loading the machine with the device running.
 *
 * The engine has a format of its own, with versions and a checksum, and checks
 * everything that it loads; QEMU's stream carries it as one piece. The rest is
 * what the front end has put off: interrupts that are not sent yet, and work
 * for the bottom half. Frames that the network had queued are lost, as on any
 * network.
 */
#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "qemu/units.h"
#include "hw/pci/msix.h"
#include "hw/pci/pcie_aer.h"
#include "migration/qemu-file-types.h"
#include "migration/vmstate.h"

#include "qhca.h"

#define QHCA_STATE_GUESS (1 * MiB)
#define QHCA_STATE_MAX (4 * GiB)

/* Work that does not follow from the rest of the state. */
#define QHCA_TODO_SAVED (QHCA_TODO_RUN | QHCA_TODO_FATAL)
/* Work to do whenever a loaded machine continues. */
#define QHCA_TODO_LOADED (QHCA_TODO_RUN | QHCA_TODO_TX_READY | \
                          QHCA_TODO_RX | QHCA_TODO_LINK | \
                          QHCA_TODO_SPEED)

static int qhca_put_engine(QEMUFile *f, void *pv, size_t size,
                           const VMStateField *field, JSONWriter *vmdesc)
{
    QHCAState *s = pv;
    size_t room = QHCA_STATE_GUESS, len;
    g_autofree uint8_t *buf = g_malloc(room);
    char why[200];

    while ((len = qhca_engine_save(s->host.engine, qhca_dev_now(), buf, room,
                                   why, sizeof(why))) > room) {
        room = len;
        g_free(g_steal_pointer(&buf));
        buf = g_try_malloc(room);
        if (!buf) {
            error_report("%s: no memory for %zu bytes of state", s->id, room);
            return -ENOMEM;
        }
    }
    if (!len) {
        error_report("%s: cannot be saved: %s", s->id, why);
        return -EINVAL;
    }
    qemu_put_be64(f, len);
    qemu_put_buffer(f, buf, len);
    return 0;
}

/*
 * Return the next @len bytes of @f, or NULL. @len is part of the stream, and
 * not trusted: memory is allocated as the bytes arrive.
 */
static uint8_t *qhca_get_bytes(QEMUFile *f, size_t len)
{
    g_autofree uint8_t *buf = NULL;
    size_t room, got = 0;
    uint8_t *more;

    do {
        room = MIN(len, MAX(2 * got, QHCA_STATE_GUESS));
        more = g_try_realloc(buf, room);
        if (!more) {
            return NULL;
        }
        buf = more;
        if (qemu_get_buffer(f, buf + got, room - got) != room - got) {
            return NULL;
        }
        got = room;
    } while (got < len);
    return g_steal_pointer(&buf);
}

static int qhca_get_engine(QEMUFile *f, void *pv, size_t size,
                           const VMStateField *field)
{
    QHCAState *s = pv;
    uint64_t len = qemu_get_be64(f);
    g_autofree uint8_t *buf = len && len <= QHCA_STATE_MAX ?
                              qhca_get_bytes(f, len) : NULL;
    char why[200] = "";
    bool ok;

    if (!buf) {
        error_report("%s: %" PRIu64 " bytes of state are missing", s->id,
                     len);
        return -EINVAL;
    }
    if (!qhca_dev_enter(s)) {
        return -EBUSY;
    }
    qhca_host_forget(&s->host);
    ok = qhca_engine_load(s->host.engine, qhca_dev_now(), buf, len, why,
                          sizeof(why));
    qhca_dev_leave(s);
    if (!ok) {
        error_report("%s: cannot be loaded: %s", s->id, why);
    }
    return ok ? 0 : -EINVAL;
}

static const VMStateInfo qhca_engine_info = {
    .name = "qhca engine",
    .get = qhca_get_engine,
    .put = qhca_put_engine,
};

/* Device memory migrates as RAM. A wrong size is reported before that fails. */
static int qhca_put_dm_size(QEMUFile *f, void *pv, size_t size,
                            const VMStateField *field, JSONWriter *vmdesc)
{
    QHCAState *s = pv;

    qemu_put_be64(f, s->props.dm_size);
    return 0;
}

static int qhca_get_dm_size(QEMUFile *f, void *pv, size_t size,
                            const VMStateField *field)
{
    QHCAState *s = pv;
    uint64_t dm_size = qemu_get_be64(f);

    if (dm_size != s->props.dm_size) {
        error_report("%s: 'dm-size' is %" PRIu64 ", here %" PRIu64, s->id,
                     dm_size, s->props.dm_size);
        return -EINVAL;
    }
    return 0;
}

static const VMStateInfo qhca_dm_size_info = {
    .name = "qhca device memory's size",
    .get = qhca_get_dm_size,
    .put = qhca_put_dm_size,
};

static int qhca_pre_save(void *opaque)
{
    QHCAState *s = opaque;

    qhca_dev_do_todo(s);        /* a stopped machine does a reset only */
    if (s->busy || s->host.todo & QHCA_TODO_RESET) {
        error_report("%s: cannot be saved while it is busy", s->id);
        return -EBUSY;
    }
    s->saved_todo = s->host.todo & QHCA_TODO_SAVED;
    return 0;
}

static int qhca_post_load(void *opaque, int version_id)
{
    QHCAState *s = opaque;

    s->host.irqs &= MAKE_64BIT_MASK(0, s->props.vectors);
    s->host.todo |= (s->saved_todo & QHCA_TODO_SAVED) | QHCA_TODO_LOADED;
    return 0;
}

/* A field that QEMU does not look into. */
#define QHCA_WHOLE(_name, _info) { \
    .name = _name, \
    .info = &(_info), \
    .flags = VMS_SINGLE, \
}

const VMStateDescription qhca_dev_vmstate = {
    .name = TYPE_QHCA,
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = qhca_pre_save,
    .post_load = qhca_post_load,
    .fields = (const VMStateField[]) {
        QHCA_WHOLE("dm-size", qhca_dm_size_info),
        VMSTATE_PCI_DEVICE(parent_obj, QHCAState),
        VMSTATE_STRUCT(parent_obj.exp.aer_log, QHCAState, 0,
                       vmstate_pcie_aer_log, PCIEAERLog),
        VMSTATE_MSIX(parent_obj, QHCAState),
        QHCA_WHOLE("engine", qhca_engine_info),
        VMSTATE_UINT64(host.irqs, QHCAState),
        VMSTATE_UINT32(saved_todo, QHCAState),
        VMSTATE_END_OF_LIST()
    },
};
