/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: a capture of the frames between two queue pairs of the
 * port, which never leave the device, so no netdev or filter sees them.
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qapi/error.h"
#include "system/rtc.h"

#include "qhca.h"

static void qhca_capture_failed(QHCAState *s)
{
    error_report("%s: %s: %s; no frames are captured from now on", s->id,
                 s->props.loopback_capture, strerror(errno));
}

void qhca_dev_capture(void *opaque, const uint8_t *frame, size_t len)
{
    QHCAState *s = qhca_dev_of(opaque);
    uint64_t now = s->capture_start + qemu_clock_get_us(QEMU_CLOCK_VIRTUAL);

    if (!qhca_capture_frame(&s->capture, now, frame, len)) {
        qhca_capture_failed(s);
    }
}

bool qhca_dev_capture_init(QHCAState *s, Error **errp)
{
    struct tm tm;
    int fd;

    s->capture.fd = -1;
    if (!s->props.loopback_capture) {
        return true;
    }
    fd = qemu_create(s->props.loopback_capture, O_WRONLY | O_TRUNC | O_BINARY,
                     0644, errp);
    if (fd < 0) {
        return false;
    }
    /* The same time as filter-dump's, so that the files can be merged. */
    qemu_get_timedate(&tm, 0);
    s->capture_start = mktime(&tm) * G_USEC_PER_SEC;
    if (!qhca_capture_begin(&s->capture, fd, s->id)) {
        qhca_capture_failed(s);
    }
    return true;
}

void qhca_dev_capture_exit(QHCAState *s)
{
    qhca_capture_end(&s->capture);
}
