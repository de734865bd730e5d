/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, core: guest memory, by DMA address and by struct qhca_buf.
 */
#ifndef QHCA_ENGINE_MEM_H
#define QHCA_ENGINE_MEM_H

#include "../engine.h"
#include "../wire/bytes.h"

struct vhca_mem {
    uint64_t *block;            /* DMA address of each; NULL: contiguous */
    uint64_t base;              /* of the first block, if contiguous */
    uint32_t num_blocks;
    uint8_t block_shift;
};

/*
 * struct vhca_import - a walk over the tables of a struct qhca_buf, which can
 * be left and gone on with; it begins zeroed
 */
struct vhca_import {
    struct vhca_mem mem;        /* what it comes to */
    uint64_t root;              /* where the tables begin */
    uint32_t done;              /* blocks whose addresses have been read */
    uint8_t depth;
    bool started, contiguous;
    /* The pages at hand; [0] has addresses of blocks, [1] those of such. */
    uint64_t table[QHCA_BUF_MAX_DEPTH][QHCA_TABLE_ENTRIES];
};

/*
 * Reads the tables of @buf once, a unit each. QHCA_OK; QHCA_AGAIN: not all of
 * them yet; QHCA_ERR_PARAM (shape, or less than @min_len bytes),
 * QHCA_ERR_LIMIT, QHCA_ERR_NO_RESOURCE or QHCA_ERR_DMA.
 */
int vhca_import(struct qhca_engine *e, struct vhca_import *im,
                const struct qhca_buf *buf, uint64_t min_len);
/* What it has come to is the caller's. */
struct vhca_mem vhca_import_take(struct vhca_import *im);
/* Whatever it has come to goes, and it can begin anew. */
void vhca_import_drop(struct qhca_engine *e, struct vhca_import *im);
/* Room for @num_blocks addresses that come later; QHCA_OK or why not. */
int vhca_mem_reserve(struct qhca_engine *e, struct vhca_mem *mem,
                     uint32_t num_blocks);
/*
 * Reads that many addresses, no more than were reserved, from the list at
 * @table. QHCA_OK, QHCA_ERR_PARAM or QHCA_ERR_DMA; on error it is undefined
 * what @mem describes.
 */
int vhca_mem_fill(struct qhca_engine *e, struct vhca_mem *mem, uint64_t table,
                  uint32_t num_blocks, uint8_t block_shift);
/* Whether its block addresses are ones that could have been imported. */
bool vhca_mem_blocks_ok(const struct vhca_mem *mem);
/* Also of one that is empty. */
void vhca_mem_release(struct qhca_engine *e, struct vhca_mem *mem);
/* Copies at byte offset @off; the range must be inside. False: DMA failed. */
bool vhca_mem_read(struct qhca_engine *e, const struct vhca_mem *mem,
                   uint64_t off, void *buf, size_t len);
bool vhca_mem_write(struct qhca_engine *e, const struct vhca_mem *mem,
                    uint64_t off, const void *buf, size_t len);
/* The same, whose failure is not counted. */
bool vhca_mem_try_write(struct qhca_engine *e, const struct vhca_mem *mem,
                        uint64_t off, const void *buf, size_t len);
/* DMA address of the byte at @off, which must be inside. */
uint64_t vhca_mem_addr(const struct vhca_mem *mem, uint64_t off);

/*
 * Plain DMA. False, counted (QHCA_CNT_DMA_ERR) but for a try: it failed; or the
 * device does not run.
 */
bool vhca_dma_read(struct qhca_engine *e, uint64_t addr, void *buf, size_t len);
bool vhca_dma_write(struct qhca_engine *e, uint64_t addr, const void *buf,
                    size_t len);
bool vhca_dma_try_write(struct qhca_engine *e, uint64_t addr, const void *buf,
                        size_t len);

/*
 * What @done, the end of an access, comes to: one that failed counts, unless
 * the device does not run.
 */
bool vhca_dma_counted(struct qhca_engine *e, bool done);

/*
 * Writes an entry of a queue, of a size that is a power of two and aligned: the
 * guest sees its last byte, which says whose it is, after the others.
 */
bool vhca_dma_write_entry(struct qhca_engine *e, uint64_t addr,
                          const void *entry, size_t len);

#define QHCA_VIEW_PIECES    64u

/* struct vhca_view - guest memory to be read in place, in this entry point */
struct vhca_view {
    struct vhca_piece piece[QHCA_VIEW_PIECES];
    size_t num_pieces, len;     /* in all */
};

/*
 * Puts the bytes from @addr or @off on behind what is in view. False: not all
 * of them can be seen. That is no error; who needs them copies them, and finds
 * out whether it is.
 */
bool vhca_dma_view(struct qhca_engine *e, uint64_t addr, size_t len,
                   struct vhca_view *view);
bool vhca_mem_view(struct qhca_engine *e, const struct vhca_mem *mem,
                   uint64_t off, size_t len, struct vhca_view *view);

#endif /* QHCA_ENGINE_MEM_H */
