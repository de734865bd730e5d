/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca server: the dma_* and atomic_* callbacks of the engine, see engine.h. */
#ifndef QHCA_SERVER_DMA_H
#define QHCA_SERVER_DMA_H

#include "hca.h"

bool hca_dma_read(void *opaque, uint64_t addr, void *buf, size_t len);
bool hca_dma_write(void *opaque, uint64_t addr, const void *buf, size_t len);
bool hca_dma_write_entry(void *opaque, uint64_t addr, const void *entry,
                         size_t len);
const void *hca_dma_peek(void *opaque, uint64_t addr, size_t *len);
bool hca_dma_cas(void *opaque, uint64_t addr, uint64_t compare, uint64_t swap,
                 uint64_t *old);
bool hca_dma_add(void *opaque, uint64_t addr, uint64_t add, uint64_t *old);
bool hca_dma_store(void *opaque, uint64_t addr, const uint8_t *bytes);

#endif /* QHCA_SERVER_DMA_H */
