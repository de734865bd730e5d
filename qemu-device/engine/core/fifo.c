/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: bounded FIFO of frames. Its memory is allocated with the first
 * frame, so a device that never loops back or waits pays nothing.
 */
#include <stdlib.h>

#include "core.h"

#define FIFO_SIZE   ((size_t)VHCA_FIFO_FRAMES * VHCA_MAX_FRAME)

static uint8_t *fifo_slot(const struct vhca_fifo *f, uint32_t index)
{
    return f->data + (size_t)(index % VHCA_FIFO_FRAMES) * VHCA_MAX_FRAME;
}

struct qhca_holding vhca_fifo_holding(const struct vhca_fifo *f,
                                      const char *what)
{
    return (struct qhca_holding) {
        .what = what, .size = FIFO_SIZE, .max = 1, .used = f->data ? 1 : 0,
    };
}

bool vhca_fifo_push(struct vhca_fifo *f, const uint8_t *frame, size_t len,
                    uint32_t from, uint64_t due)
{
    if (len > VHCA_MAX_FRAME || vhca_fifo_used(f) == VHCA_FIFO_FRAMES) {
        return false;
    }
    if (!f->data) {
        f->data = malloc(FIFO_SIZE);
        if (!f->data) {
            return false;
        }
    }
    memcpy(fifo_slot(f, f->tail), frame, len);
    f->len[f->tail % VHCA_FIFO_FRAMES] = (uint16_t)len;
    f->from[f->tail % VHCA_FIFO_FRAMES] = from;
    f->due[f->tail % VHCA_FIFO_FRAMES] = due;
    f->tail++;
    return true;
}

const uint8_t *vhca_fifo_peek(const struct vhca_fifo *f, size_t *len,
                              uint32_t *from)
{
    if (!vhca_fifo_used(f)) {
        return NULL;
    }
    *len = f->len[f->head % VHCA_FIFO_FRAMES];
    *from = f->from[f->head % VHCA_FIFO_FRAMES];
    return fifo_slot(f, f->head);
}

void vhca_fifo_pop(struct vhca_fifo *f)
{
    VHCA_ASSERT(vhca_fifo_used(f));
    f->head++;
}

void vhca_fifo_free(struct vhca_fifo *f)
{
    free(f->data);
    f->data = NULL;
    f->head = f->tail = 0;
}
