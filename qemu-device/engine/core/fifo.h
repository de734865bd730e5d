/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: frames on their way. */
#ifndef QHCA_ENGINE_CORE_FIFO_H
#define QHCA_ENGINE_CORE_FIFO_H

#include "../engine.h"

#define QHCA_VLAN_ROOM          4
#define QHCA_MAX_FRAME          (14 + 2 * QHCA_VLAN_ROOM + QHCA_ETH_MTU_MAX)

#define QHCA_FIFO_FRAMES 128u

/* struct vhca_fifo - bounded FIFO of frames */
struct vhca_fifo {
    uint8_t *data;              /* QHCA_FIFO_FRAMES * QHCA_MAX_FRAME, lazily */
    uint16_t len[QHCA_FIFO_FRAMES];
    uint32_t from[QHCA_FIFO_FRAMES];
    uint32_t head, tail;       /* free-running: read at head, written at tail */
};

/*
 * Appends a copy. @from: number of the QP that has sent it, if that matters.
 * False: no room, no memory, or longer than any frame.
 */
bool vhca_fifo_push(struct vhca_fifo *f, const uint8_t *frame, size_t len,
                    uint32_t from);
/* The oldest frame, valid until vhca_fifo_pop(), or NULL. */
const uint8_t *vhca_fifo_peek(const struct vhca_fifo *f, size_t *len,
                              uint32_t *from);
void vhca_fifo_pop(struct vhca_fifo *f);
/* Empties it. */
void vhca_fifo_free(struct vhca_fifo *f);
static inline uint32_t vhca_fifo_used(const struct vhca_fifo *f)
{
    return f->tail - f->head;
}
/* What it takes. */
struct qhca_holding vhca_fifo_holding(const struct vhca_fifo *f,
                                      const char *what);

#endif /* QHCA_ENGINE_CORE_FIFO_H */
