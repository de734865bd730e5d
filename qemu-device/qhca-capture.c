/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: a capture of the frames between two queue pairs of the
 * port, which never leave the device, so no netdev or filter sees them.
 *
 * The file is in pcapng, where each frame belongs to an interface: the name of
 * the interface marks them, even in a file merged with the network's.
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/iov.h"
#include "qapi/error.h"
#include "system/rtc.h"

#include "qhca.h"

#define PCAPNG_SECTION 0x0a0d0d0a
#define PCAPNG_INTERFACE 1
#define PCAPNG_PACKET 6
#define PCAPNG_BYTE_ORDER 0x1a2b3c4d
#define PCAPNG_IF_NAME 2
#define PCAPNG_IF_DESCRIPTION 3
#define LINKTYPE_ETHERNET 1

static void qhca_put16(GByteArray *b, uint16_t value)
{
    g_byte_array_append(b, (const guint8 *)&value, sizeof(value));
}

static void qhca_put32(GByteArray *b, uint32_t value)
{
    g_byte_array_append(b, (const guint8 *)&value, sizeof(value));
}

static void qhca_put_option(GByteArray *b, uint16_t code, const char *text)
{
    static const guint8 zeros[3];
    size_t len = strlen(text);

    qhca_put16(b, code);
    qhca_put16(b, len);
    g_byte_array_append(b, (const guint8 *)text, len);
    g_byte_array_append(b, zeros, -len & 3);
}

/* A block has its length at both ends. */
static void qhca_end_block(GByteArray *b, guint start)
{
    uint32_t len = b->len - start + sizeof(len);

    memcpy(b->data + start + sizeof(len), &len, sizeof(len));
    qhca_put32(b, len);
}

static GByteArray *qhca_capture_head(const char *id)
{
    g_autofree char *name = g_strdup_printf("%.64s-loopback", id);
    GByteArray *b = g_byte_array_new();
    guint start;

    qhca_put32(b, PCAPNG_SECTION);
    qhca_put32(b, 0);
    qhca_put32(b, PCAPNG_BYTE_ORDER);
    qhca_put16(b, 1);
    qhca_put16(b, 0);
    qhca_put32(b, UINT32_MAX);  /* length of the section: unknown */
    qhca_put32(b, UINT32_MAX);
    qhca_end_block(b, 0);

    start = b->len;
    qhca_put32(b, PCAPNG_INTERFACE);
    qhca_put32(b, 0);
    qhca_put16(b, LINKTYPE_ETHERNET);
    qhca_put16(b, 0);
    qhca_put32(b, 0);           /* frames are whole */
    qhca_put_option(b, PCAPNG_IF_NAME, name);
    qhca_put_option(b, PCAPNG_IF_DESCRIPTION,
                    "inside the port: no network has carried these frames");
    qhca_put32(b, 0);           /* end of options */
    qhca_end_block(b, start);
    return b;
}

static void qhca_capture_write(QHCAState *s, const struct iovec *iov, int num)
{
    ssize_t done = RETRY_ON_EINTR(writev(s->capture_fd, iov, num));

    if (done != (ssize_t)iov_size(iov, num)) {
        error_report("%s: %s: %s; no frames are captured from now on", s->id,
                     s->props.loopback_capture,
                     done < 0 ? strerror(errno) : "disk full");
        qhca_dev_capture_exit(s);
    }
}

void qhca_dev_capture(void *opaque, const uint8_t *frame, size_t len)
{
    QHCAState *s = opaque;
    uint32_t block[7], tail[2] = { 0 };
    uint64_t ts = s->capture_start + qemu_clock_get_us(QEMU_CLOCK_VIRTUAL);
    size_t pad = -len & 3;
    struct iovec iov[] = {
        { block, sizeof(block) }, { (void *)frame, len },
        { (uint8_t *)&tail[1] - pad, pad + sizeof(tail[1]) },
    };

    if (s->capture_fd < 0) {
        return;
    }
    block[0] = PCAPNG_PACKET;
    block[1] = tail[1] = iov_size(iov, ARRAY_SIZE(iov));
    block[2] = 0;               /* of interface 0 */
    block[3] = ts >> 32;
    block[4] = ts;
    block[5] = block[6] = len;
    qhca_capture_write(s, iov, ARRAY_SIZE(iov));
}

bool qhca_dev_capture_init(QHCAState *s, Error **errp)
{
    g_autoptr(GByteArray) head = NULL;
    struct iovec iov;
    struct tm tm;

    s->capture_fd = -1;
    if (!s->props.loopback_capture) {
        return true;
    }
    s->capture_fd = qemu_create(s->props.loopback_capture,
                                O_WRONLY | O_TRUNC | O_BINARY, 0644, errp);
    if (s->capture_fd < 0) {
        return false;
    }
    /* The same time as filter-dump's, so that the files can be merged. */
    qemu_get_timedate(&tm, 0);
    s->capture_start = mktime(&tm) * G_USEC_PER_SEC;
    head = qhca_capture_head(s->id);
    iov = (struct iovec) { head->data, head->len };
    qhca_capture_write(s, &iov, 1);
    return true;
}

void qhca_dev_capture_exit(QHCAState *s)
{
    if (s->capture_fd >= 0) {
        close(s->capture_fd);
        s->capture_fd = -1;
    }
}
