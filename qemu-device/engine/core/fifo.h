/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: queues of frames. */
#ifndef QHCA_ENGINE_CORE_FIFO_H
#define QHCA_ENGINE_CORE_FIFO_H

#include "../engine.h"

#define VHCA_FIFO_FRAMES 128u

/* struct vhca_fifo - bounded FIFO of frames */
struct vhca_fifo {
    uint8_t *data;              /* VHCA_FIFO_FRAMES * VHCA_MAX_FRAME, or NULL */
    uint16_t len[VHCA_FIFO_FRAMES];
    uint32_t from[VHCA_FIFO_FRAMES];
    uint64_t due[VHCA_FIFO_FRAMES];
    uint32_t head, tail;       /* free-running: read at head, written at tail */
};

/*
 * Append a copy of @frame. @from: number of the QP that sent it, or any value
 * if that does not matter; @due: when it may go on. Returns false if the FIFO
 * is full, if there is no memory, or if @frame is longer than VHCA_MAX_FRAME.
 */
bool vhca_fifo_push(struct vhca_fifo *f, const uint8_t *frame, size_t len,
                    uint32_t from, uint64_t due);
/* Return the oldest frame, valid until vhca_fifo_pop(), or NULL. */
const uint8_t *vhca_fifo_peek(const struct vhca_fifo *f, size_t *len,
                              uint32_t *from);
void vhca_fifo_pop(struct vhca_fifo *f);
/* Drop all frames and free their memory. */
void vhca_fifo_free(struct vhca_fifo *f);
static inline uint32_t vhca_fifo_used(const struct vhca_fifo *f)
{
    return f->tail - f->head;
}
/* Return when the oldest frame may go on, UINT64_MAX if there is none. */
static inline uint64_t vhca_fifo_due(const struct vhca_fifo *f)
{
    return vhca_fifo_used(f) ? f->due[f->head % VHCA_FIFO_FRAMES] : UINT64_MAX;
}
/* Return the memory that @f holds. */
struct qhca_holding vhca_fifo_holding(const struct vhca_fifo *f,
                                      const char *what);

#endif /* QHCA_ENGINE_CORE_FIFO_H */
