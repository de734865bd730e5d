/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine, core: guest memory, by DMA address and by struct qhca_buf. */
#ifndef QHCA_ENGINE_MEM_H
#define QHCA_ENGINE_MEM_H

#include "../engine.h"
#include "../wire/bytes.h"

/*
 * struct vhca_mem - memory of blocks of one size or, if @block_shift is 0 and
 * there is a list, of pieces of any size. A piece takes two words of the list:
 * its DMA address, and how many bytes of the memory end with it. Unused words
 * describe pieces that end at UINT64_MAX.
 */
struct vhca_mem {
    uint64_t *block;            /* DMA addresses of blocks; NULL: contiguous */
    uint64_t base;              /* address of the first block, if contiguous */
    uint32_t num_blocks;        /* or words of the list of pieces */
    uint8_t block_shift;
};

/*
 * struct vhca_import - a walk over the tables of a struct qhca_buf, which can
 * be interrupted and continued; zeroes start a new one
 */
struct vhca_import {
    struct vhca_mem mem;        /* the result */
    uint64_t root;              /* address of the root table */
    uint32_t done;              /* blocks whose addresses have been read */
    uint8_t depth;
    bool started, contiguous;
    /* Pages last read: [0] has addresses of blocks, [1] and [2] of tables. */
    uint64_t table[QHCA_BUF_MAX_DEPTH][QHCA_TABLE_ENTRIES];
};

/*
 * Read the tables of @buf, once, at a unit of work per page. Returns QHCA_OK;
 * VHCA_AGAIN if the budget ended first; QHCA_ERR_PARAM (bad shape, or less than
 * @min_len bytes), QHCA_ERR_LIMIT, QHCA_ERR_NO_RESOURCE or QHCA_ERR_DMA.
 */
int vhca_import(struct qhca_engine *e, struct vhca_import *im,
                const struct qhca_buf *buf, uint64_t min_len);
/* Move the imported memory to the caller, who has to release it. */
struct vhca_mem vhca_import_take(struct vhca_import *im);
/* Release whatever has been imported, so that a new walk can start. */
void vhca_import_drop(struct qhca_engine *e, struct vhca_import *im);
/*
 * Make room for @num_blocks addresses. Returns QHCA_OK; QHCA_ERR_LIMIT if the
 * device never has as many; QHCA_ERR_NO_RESOURCE if it has not now.
 */
int vhca_mem_reserve(struct qhca_engine *e, struct vhca_mem *mem,
                     uint32_t num_blocks);
/*
 * Read @num_blocks addresses, no more than were reserved, from the list at
 * @table; with a @block_shift of 0 that is a list of pieces, an even number of
 * words, for @len bytes. Returns QHCA_OK, QHCA_ERR_PARAM or QHCA_ERR_DMA; after
 * an error the contents of @mem are undefined.
 */
int vhca_mem_fill(struct qhca_engine *e, struct vhca_mem *mem, uint64_t table,
                  uint32_t num_blocks, uint8_t block_shift, uint64_t len);
/* Whether the pieces are in order, and have @len bytes, with none too many. */
bool vhca_mem_pieces_ok(const struct vhca_mem *mem, uint64_t len);
/* Whether the block addresses of @mem are such as vhca_import() accepts. */
bool vhca_mem_blocks_ok(const struct vhca_mem *mem);
/* Free the block list, if there is any, and clear @mem. */
void vhca_mem_release(struct qhca_engine *e, struct vhca_mem *mem);
/*
 * Copy at byte offset @off; the range must be inside. Return false if DMA
 * failed, which all but vhca_mem_try_write() count (QHCA_CNT_DMA_ERR).
 */
bool vhca_mem_read(struct qhca_engine *e, const struct vhca_mem *mem,
                   uint64_t off, void *buf, size_t len);
bool vhca_mem_write(struct qhca_engine *e, const struct vhca_mem *mem,
                    uint64_t off, const void *buf, size_t len);
bool vhca_mem_try_write(struct qhca_engine *e, const struct vhca_mem *mem,
                        uint64_t off, const void *buf, size_t len);
/* Return the DMA address of the byte at @off, which must be inside. */
uint64_t vhca_mem_addr(const struct vhca_mem *mem, uint64_t off);
/* And reduce @len to how many bytes are contiguous from there on. */
uint64_t vhca_mem_run(const struct vhca_mem *mem, uint64_t off, size_t *len);
/* Whether the 8 bytes at @off, which must be inside, can be one word. */
bool vhca_mem_is_word(const struct vhca_mem *mem, uint64_t off);

/*
 * Plain DMA. Return false if it failed, which all but vhca_dma_try_write()
 * count (QHCA_CNT_DMA_ERR), or if the device does not run.
 */
bool vhca_dma_read(struct qhca_engine *e, uint64_t addr, void *buf, size_t len);
bool vhca_dma_write(struct qhca_engine *e, uint64_t addr, const void *buf,
                    size_t len);
bool vhca_dma_try_write(struct qhca_engine *e, uint64_t addr, const void *buf,
                        size_t len);

/*
 * Count a failed access unless the device has stopped running; @done is the
 * result of the access, and is returned.
 */
bool vhca_dma_counted(struct qhca_engine *e, bool done);

/*
 * Write a queue entry, whose size is a power of two and aligned. The guest sees
 * its last byte, with the owner bit, after the others.
 */
bool vhca_dma_write_entry(struct qhca_engine *e, uint64_t addr,
                          const void *entry, size_t len);

#define VHCA_VIEW_PIECES    64u

/* struct vhca_view - guest memory to read in place, within one entry point */
struct vhca_view {
    struct vhca_piece piece[VHCA_VIEW_PIECES];
    size_t num_pieces, len;     /* @len: bytes of all pieces */
};

/*
 * Append the bytes at @addr or @off to @view. Returns false if some of them
 * cannot be read in place. That is not an error: copy them, which shows whether
 * they can be read at all.
 */
bool vhca_dma_view(struct qhca_engine *e, uint64_t addr, size_t len,
                   struct vhca_view *view);
bool vhca_mem_view(struct qhca_engine *e, const struct vhca_mem *mem,
                   uint64_t off, size_t len, struct vhca_view *view);

#endif /* QHCA_ENGINE_MEM_H */
