/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: guest memory, by DMA address and by struct qhca_buf.
 */
#include <stdlib.h>

#include "core.h"

/* struct import - a walk over the tables of a struct qhca_buf */
struct import {
    struct qhca_engine *e;
    uint64_t *block;
    uint32_t num_blocks, done;
    uint64_t align_mask;
};

bool qhca_dma_read(struct qhca_engine *e, uint64_t addr, void *buf, size_t len)
{
    if (!qhca_running(e)) {
        return false;
    }
    if (!e->ops->dma_read(e->opaque, addr, buf, len)) {
        qhca_count(e, QHCA_CNT_DMA_ERR);
        return false;
    }
    return true;
}

bool qhca_dma_write(struct qhca_engine *e, uint64_t addr, const void *buf,
                    size_t len)
{
    if (!qhca_running(e)) {
        return false;
    }
    if (!e->ops->dma_write(e->opaque, addr, buf, len)) {
        qhca_count(e, QHCA_CNT_DMA_ERR);
        return false;
    }
    return true;
}

/* Takes the block addresses of one table page, if they are aligned. */
static int import_leaf(struct import *im, const uint64_t *entry, uint32_t n)
{
    uint64_t addr;
    uint32_t i;

    for (i = 0; i < n; i++) {
        addr = le64toh(entry[i]);
        if (addr & im->align_mask || addr > UINT64_MAX - im->align_mask) {
            return QHCA_ERR_PARAM;
        }
        im->block[im->done++] = addr;
    }
    return QHCA_OK;
}

/* Entries in a table page at @depth when @left blocks remain. */
static uint32_t entries_needed(uint32_t left, unsigned depth)
{
    uint64_t per_entry = 1;

    while (--depth > 0) {
        per_entry *= QHCA_TABLE_ENTRIES;
    }
    return (uint32_t)MIN_OF((left + per_entry - 1) / per_entry,
                            QHCA_TABLE_ENTRIES);
}

/* Recurses QHCA_BUF_MAX_DEPTH levels at most: the caller checked @depth. */
static int import_table(struct import *im, uint64_t addr, unsigned depth)
{
    uint64_t entry[QHCA_TABLE_ENTRIES];
    uint32_t i, n = entries_needed(im->num_blocks - im->done, depth);
    int status = QHCA_OK;

    if (addr & (QHCA_PAGE_SIZE - 1)) {
        return QHCA_ERR_PARAM;
    }
    if (!qhca_dma_read(im->e, addr, entry, n * sizeof(entry[0]))) {
        return QHCA_ERR_DMA;
    }
    if (depth == 1) {
        return import_leaf(im, entry, n);
    }
    for (i = 0; i < n && status == QHCA_OK; i++) {
        status = import_table(im, le64toh(entry[i]), depth - 1);
    }
    return status;
}

static bool is_contiguous(const struct qhca_mem *mem)
{
    uint64_t size = 1ull << mem->block_shift;
    uint32_t i;

    for (i = 1; i < mem->num_blocks; i++) {
        if (mem->block[i] != mem->block[i - 1] + size) {
            return false;
        }
    }
    return true;
}

static int check_shape(const struct qhca_buf *buf, uint64_t min_len)
{
    uint64_t blocks = le32toh(buf->num_blocks), fit = 1;
    uint64_t addr = le64toh(buf->addr);
    uint64_t bytes;
    unsigned i;

    if (buf->depth > QHCA_BUF_MAX_DEPTH || blocks == 0 ||
        buf->block_shift < QHCA_BLOCK_SHIFT_MIN ||
        buf->block_shift > QHCA_BLOCK_SHIFT_MAX) {
        return QHCA_ERR_PARAM;
    }
    bytes = blocks << buf->block_shift;     /* 63 bits at most */
    if (bytes < min_len) {
        return QHCA_ERR_PARAM;
    }
    if (buf->depth == 0) {
        return addr & ((1ull << buf->block_shift) - 1) ||
               addr > UINT64_MAX - (bytes - 1) ? QHCA_ERR_PARAM : QHCA_OK;
    }
    for (i = 0; i < buf->depth; i++) {
        fit *= QHCA_TABLE_ENTRIES;
    }
    return blocks > fit ? QHCA_ERR_PARAM : QHCA_OK;
}

static int import_blocks(struct qhca_engine *e, struct qhca_mem *mem,
                         const struct qhca_buf *buf)
{
    struct import im = {
        .e = e,
        .num_blocks = mem->num_blocks,
        .align_mask = (1ull << mem->block_shift) - 1,
    };
    int status;

    if (mem->num_blocks > QHCA_MAX_TABLE_BLOCKS - e->table_blocks) {
        return QHCA_ERR_LIMIT;
    }
    im.block = calloc(mem->num_blocks, sizeof(*im.block));
    if (!im.block) {
        return QHCA_ERR_NO_RESOURCE;
    }
    status = import_table(&im, le64toh(buf->addr), buf->depth);
    if (status != QHCA_OK) {
        free(im.block);
        return status;
    }
    mem->block = im.block;
    mem->base = im.block[0];
    e->table_blocks += mem->num_blocks;
    return QHCA_OK;
}

int qhca_mem_import(struct qhca_engine *e, struct qhca_mem *mem,
                    const struct qhca_buf *buf, uint64_t min_len)
{
    int status = check_shape(buf, min_len);

    memset(mem, 0, sizeof(*mem));
    if (status != QHCA_OK) {
        return status;
    }
    mem->num_blocks = le32toh(buf->num_blocks);
    mem->block_shift = buf->block_shift;
    mem->base = le64toh(buf->addr);
    if (buf->depth == 0) {
        return QHCA_OK;
    }
    status = import_blocks(e, mem, buf);
    if (status != QHCA_OK) {
        memset(mem, 0, sizeof(*mem));
        return status;
    }
    if (is_contiguous(mem)) {
        e->table_blocks -= mem->num_blocks;
        free(mem->block);
        mem->block = NULL;
    }
    return QHCA_OK;
}

int qhca_mem_reserve(struct qhca_engine *e, struct qhca_mem *mem,
                     uint32_t num_blocks)
{
    memset(mem, 0, sizeof(*mem));
    if (num_blocks > QHCA_MAX_TABLE_BLOCKS - e->table_blocks) {
        return QHCA_ERR_LIMIT;
    }
    mem->block = calloc(num_blocks, sizeof(*mem->block));
    if (!mem->block) {
        return QHCA_ERR_NO_RESOURCE;
    }
    mem->num_blocks = num_blocks;
    e->table_blocks += num_blocks;
    return QHCA_OK;
}

int qhca_mem_fill(struct qhca_engine *e, struct qhca_mem *mem, uint64_t table,
                  uint32_t num_blocks, uint8_t block_shift)
{
    struct import im = {
        .e = e,
        .block = mem->block,
        .align_mask = (1ull << block_shift) - 1,
    };

    if (table & 7) {
        return QHCA_ERR_PARAM;
    }
    if (!qhca_dma_read(e, table, mem->block,
                       num_blocks * sizeof(*mem->block))) {
        return QHCA_ERR_DMA;
    }
    mem->block_shift = block_shift;
    return import_leaf(&im, mem->block, num_blocks);
}

void qhca_mem_release(struct qhca_engine *e, struct qhca_mem *mem)
{
    if (mem->block) {
        e->table_blocks -= mem->num_blocks;
        free(mem->block);
    }
    memset(mem, 0, sizeof(*mem));
}

uint64_t qhca_mem_addr(const struct qhca_mem *mem, uint64_t off)
{
    if (!mem->block) {
        return mem->base + off;
    }
    return mem->block[off >> mem->block_shift] +
           (off & ((1ull << mem->block_shift) - 1));
}

/* Bytes from @off on, up to @len, that follow each other in DMA space. */
static size_t contiguous_len(const struct qhca_mem *mem, uint64_t off,
                             size_t len)
{
    uint64_t size = 1ull << mem->block_shift;
    uint64_t i = off >> mem->block_shift;
    uint64_t n = size - (off & (size - 1));

    if (!mem->block) {
        return len;
    }
    while (n < len && mem->block[i + 1] == mem->block[i] + size) {
        n += size;
        i++;
    }
    return (size_t)MIN_OF(n, (uint64_t)len);
}

bool qhca_mem_read(struct qhca_engine *e, const struct qhca_mem *mem,
                   uint64_t off, void *buf, size_t len)
{
    uint8_t *p = buf;
    size_t n;

    while (len > 0) {
        n = contiguous_len(mem, off, len);
        if (!qhca_dma_read(e, qhca_mem_addr(mem, off), p, n)) {
            return false;
        }
        p += n;
        off += n;
        len -= n;
    }
    return true;
}

bool qhca_mem_write(struct qhca_engine *e, const struct qhca_mem *mem,
                    uint64_t off, const void *buf, size_t len)
{
    const uint8_t *p = buf;
    size_t n;

    while (len > 0) {
        n = contiguous_len(mem, off, len);
        if (!qhca_dma_write(e, qhca_mem_addr(mem, off), p, n)) {
            return false;
        }
        p += n;
        off += n;
        len -= n;
    }
    return true;
}
