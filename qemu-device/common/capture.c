/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca front ends: a capture of the frames that a port sends to itself.
 *
 * The file is in pcapng, where each frame belongs to an interface: the name of
 * the interface marks them, even in a file merged with the network's.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../engine/engine.h"
#include "capture.h"

#define SECTION         0x0a0d0d0a
#define INTERFACE       1
#define PACKET          6
#define BYTE_ORDER_MARK 0x1a2b3c4d
#define IF_NAME         2
#define IF_DESCRIPTION  3
#define ETHERNET        1       /* of the link types */

/* Bytes of a block with a frame that are not the frame's. */
#define PACKET_REST     (8 * sizeof(uint32_t) + 3)

/* struct text - what is to be written next */
struct text {
    uint8_t data[VHCA_MAX_FRAME + PACKET_REST];
    size_t len;
};

static void put(struct text *t, const void *data, size_t len)
{
    memcpy(t->data + t->len, data, len);
    t->len += len;
}

static void put16(struct text *t, uint16_t value)
{
    put(t, &value, sizeof(value));
}

static void put32(struct text *t, uint32_t value)
{
    put(t, &value, sizeof(value));
}

/* Put data with a length, and pad them to a multiple of four bytes. */
static void put_padded(struct text *t, const void *data, size_t len)
{
    static const uint8_t zeros[3];

    put(t, data, len);
    put(t, zeros, -len & 3);
}

static void put_option(struct text *t, uint16_t code, const char *value)
{
    put16(t, code);
    put16(t, (uint16_t)strlen(value));
    put_padded(t, value, strlen(value));
}

/* A block has its length at both ends. Returns where it starts. */
static size_t begin_block(struct text *t, uint32_t type)
{
    size_t start = t->len;

    put32(t, type);
    put32(t, 0);
    return start;
}

static void end_block(struct text *t, size_t start)
{
    uint32_t len = (uint32_t)(t->len - start + sizeof(len));

    memcpy(t->data + start + sizeof(len), &len, sizeof(len));
    put32(t, len);
}

static bool flush(struct qhca_capture *c, const struct text *t)
{
    ssize_t done;

    do {
        done = write(c->fd, t->data, t->len);
    } while (done < 0 && errno == EINTR);
    if (done == (ssize_t)t->len) {
        return true;
    }
    if (done >= 0) {
        errno = ENOSPC;
    }
    qhca_capture_end(c);
    return false;
}

bool qhca_capture_begin(struct qhca_capture *c, int fd, const char *id)
{
    struct text t = { .len = 0 };
    char name[80];
    size_t start;

    c->fd = fd;
    snprintf(name, sizeof(name), "%.64s-loopback", id);

    start = begin_block(&t, SECTION);
    put32(&t, BYTE_ORDER_MARK);
    put16(&t, 1);
    put16(&t, 0);
    put32(&t, UINT32_MAX);      /* length of the section: unknown */
    put32(&t, UINT32_MAX);
    end_block(&t, start);

    start = begin_block(&t, INTERFACE);
    put16(&t, ETHERNET);
    put16(&t, 0);
    put32(&t, 0);               /* frames are whole */
    put_option(&t, IF_NAME, name);
    put_option(&t, IF_DESCRIPTION,
               "inside the port: no network has carried these frames");
    put32(&t, 0);               /* end of options */
    end_block(&t, start);
    return flush(c, &t);
}

bool qhca_capture_frame(struct qhca_capture *c, uint64_t us,
                        const uint8_t *frame, size_t len)
{
    struct text t;
    size_t start;

    if (c->fd < 0) {
        return true;
    }
    t.len = 0;
    start = begin_block(&t, PACKET);
    put32(&t, 0);               /* of interface 0 */
    put32(&t, (uint32_t)(us >> 32));
    put32(&t, (uint32_t)us);
    put32(&t, (uint32_t)len);
    put32(&t, (uint32_t)len);
    put_padded(&t, frame, len);
    end_block(&t, start);
    return flush(c, &t);
}

void qhca_capture_end(struct qhca_capture *c)
{
    int error = errno;

    if (c->fd >= 0) {
        close(c->fd);
        c->fd = -1;
    }
    errno = error;
}
