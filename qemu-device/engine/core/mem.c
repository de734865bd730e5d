/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: guest memory, by DMA address and by struct qhca_buf. */
#include <stdlib.h>

#include "core.h"

#define TABLE_SHIFT     9

_Static_assert(QHCA_TABLE_ENTRIES == 1u << TABLE_SHIFT, "size of a table page");

bool vhca_dma_counted(struct qhca_engine *e, bool done)
{
    if (!done && vhca_running(e)) {
        vhca_count(e, QHCA_CNT_DMA_ERR);
    }
    return done;
}

bool vhca_dma_read(struct qhca_engine *e, uint64_t addr, void *buf, size_t len)
{
    if (!vhca_running(e)) {
        return false;
    }
    vhca_spend_bytes(e, len, VHCA_UNIT_COPY);
    return vhca_dma_counted(e, e->ops->dma_read(e->opaque, addr, buf, len));
}

bool vhca_dma_try_write(struct qhca_engine *e, uint64_t addr, const void *buf,
                        size_t len)
{
    if (!vhca_running(e)) {
        return false;
    }
    vhca_spend_bytes(e, len, VHCA_UNIT_COPY);
    return e->ops->dma_write(e->opaque, addr, buf, len);
}

bool vhca_dma_write(struct qhca_engine *e, uint64_t addr, const void *buf,
                    size_t len)
{
    return vhca_dma_counted(e, vhca_dma_try_write(e, addr, buf, len));
}

bool vhca_dma_write_entry(struct qhca_engine *e, uint64_t addr,
                          const void *entry, size_t len)
{
    if (!vhca_running(e)) {
        return false;
    }
    vhca_spend(e, 2);           /* the whole entry, then its last byte again */
    return vhca_dma_counted(e, e->ops->dma_write_entry(e->opaque, addr, entry,
                                                       len));
}

static bool append(struct vhca_view *view, const uint8_t *base, size_t len)
{
    struct vhca_piece *next = view->piece + view->num_pieces;

    if (view->num_pieces && next[-1].base + next[-1].len == base) {
        next[-1].len += len;
    } else if (view->num_pieces < VHCA_VIEW_PIECES) {
        *next = (struct vhca_piece) { base, len };
        view->num_pieces++;
    } else {
        return false;
    }
    view->len += len;
    return true;
}

bool vhca_dma_view(struct qhca_engine *e, uint64_t addr, size_t len,
                   struct vhca_view *view)
{
    const uint8_t *base;
    size_t n;

    for (; len > 0 && vhca_running(e); addr += n, len -= n) {
        n = len;
        vhca_spend(e, 1);
        base = e->ops->dma_peek(e->opaque, addr, &n);
        if (!base || !append(view, base, n)) {
            return false;
        }
    }
    return len == 0;
}

/* Whether @n blocks from @addr on are aligned and inside the address space. */
static bool blocks_ok(uint64_t addr, uint64_t n, unsigned block_shift)
{
    return !(addr & ((1ull << block_shift) - 1)) &&
           addr <= UINT64_MAX - ((n << block_shift) - 1);
}

/* Copy @n block addresses of a table; all must be aligned. */
static int take_blocks(uint64_t *block, const uint64_t *entry, uint32_t n,
                       unsigned block_shift)
{
    for (uint32_t i = 0; i < n; i++) {
        block[i] = le64toh(entry[i]);
        if (!blocks_ok(block[i], 1, block_shift)) {
            return QHCA_ERR_PARAM;
        }
    }
    return QHCA_OK;
}

static int check_shape(const struct qhca_buf *buf, uint64_t min_len)
{
    uint64_t blocks = le32toh(buf->num_blocks), fit = 1;

    if (buf->depth > QHCA_BUF_MAX_DEPTH || blocks == 0 ||
        buf->block_shift < QHCA_BLOCK_SHIFT_MIN ||
        buf->block_shift > QHCA_BLOCK_SHIFT_MAX ||
        blocks << buf->block_shift < min_len) {     /* at most 63 bits */
        return QHCA_ERR_PARAM;
    }
    if (buf->depth == 0) {
        return blocks_ok(le64toh(buf->addr), blocks, buf->block_shift) ?
               QHCA_OK : QHCA_ERR_PARAM;
    }
    for (unsigned i = 0; i < buf->depth; i++) {
        fit *= QHCA_TABLE_ENTRIES;
    }
    return blocks > fit ? QHCA_ERR_PARAM : QHCA_OK;
}

static int import_start(struct qhca_engine *e, struct vhca_import *im,
                        const struct qhca_buf *buf, uint64_t min_len)
{
    int status = check_shape(buf, min_len);
    struct vhca_mem mem = {
        .base = le64toh(buf->addr), .num_blocks = le32toh(buf->num_blocks),
    };

    if (status == QHCA_OK && buf->depth > 0) {
        status = vhca_mem_reserve(e, &mem, mem.num_blocks);
    }
    if (status != QHCA_OK) {
        return status;
    }
    mem.block_shift = buf->block_shift;
    im->mem = mem;
    im->root = le64toh(buf->addr);
    im->depth = buf->depth;
    im->done = buf->depth ? 0 : mem.num_blocks;
    im->started = im->contiguous = true;
    return QHCA_OK;
}

/* Return log2 of how many blocks an entry of a page at @level stands for. */
static unsigned level_shift(unsigned level)
{
    return level * TABLE_SHIFT;
}

/* Read the page at @level that describes the next block. */
static int read_table(struct qhca_engine *e, struct vhca_import *im,
                      unsigned level)
{
    uint64_t done = im->done, addr = im->root;
    uint64_t left = im->mem.num_blocks - done;
    unsigned shift = level_shift(level + 1);
    uint64_t n = MIN_OF((left + (1ull << level_shift(level)) - 1) >>
                        level_shift(level), QHCA_TABLE_ENTRIES);

    if (level + 1 < im->depth) {
        addr = le64toh(im->table[level + 1][(done >> shift) %
                                            QHCA_TABLE_ENTRIES]);
    }
    if (addr & (QHCA_PAGE_SIZE - 1)) {
        return QHCA_ERR_PARAM;
    }
    return vhca_dma_read(e, addr, im->table[level], n * sizeof(uint64_t)) ?
           QHCA_OK : QHCA_ERR_DMA;
}

/* Import the block addresses of the next page at level 0. */
static int import_leaf(struct qhca_engine *e, struct vhca_import *im)
{
    uint64_t *block = im->mem.block, size = 1ull << im->mem.block_shift;
    uint32_t i, n = MIN_OF(im->mem.num_blocks - im->done, QHCA_TABLE_ENTRIES);
    unsigned level = 0;
    int status;

    while (level + 1u < im->depth &&
           im->done % (1ull << level_shift(level + 2)) == 0) {
        level++;
    }
    do {
        status = read_table(e, im, level);
    } while (status == QHCA_OK && level-- > 0);
    if (status == QHCA_OK) {
        status = take_blocks(block + im->done, im->table[0], n,
                             im->mem.block_shift);
    }
    if (status != QHCA_OK) {
        return status;
    }
    for (i = MAX_OF(im->done, 1u); i < im->done + n && im->contiguous; i++) {
        im->contiguous = block[i] == block[i - 1] + size;
    }
    im->done += n;
    return QHCA_OK;
}

int vhca_import(struct qhca_engine *e, struct vhca_import *im,
                const struct qhca_buf *buf, uint64_t min_len)
{
    struct vhca_mem *mem = &im->mem;
    int status = im->started ? QHCA_OK : import_start(e, im, buf, min_len);

    while (status == QHCA_OK && im->done < mem->num_blocks) {
        status = vhca_may_go_on(e) ? import_leaf(e, im) : VHCA_AGAIN;
    }
    if (status == QHCA_OK && mem->block && im->contiguous) {
        mem->base = mem->block[0];
        e->table_blocks -= mem->num_blocks;
        free(mem->block);
        mem->block = NULL;
    }
    return status;
}

struct vhca_mem vhca_import_take(struct vhca_import *im)
{
    struct vhca_mem mem = im->mem;

    memset(&im->mem, 0, sizeof(im->mem));
    return mem;
}

void vhca_import_drop(struct qhca_engine *e, struct vhca_import *im)
{
    vhca_mem_release(e, &im->mem);
    im->started = false;
}

bool vhca_mem_blocks_ok(const struct vhca_mem *mem)
{
    if (!mem->block) {
        return blocks_ok(mem->base, mem->num_blocks, mem->block_shift);
    }
    for (uint32_t i = 0; i < mem->num_blocks; i++) {
        if (!blocks_ok(mem->block[i], 1, mem->block_shift)) {
            return false;
        }
    }
    return true;
}

int vhca_mem_reserve(struct qhca_engine *e, struct vhca_mem *mem,
                     uint32_t num_blocks)
{
    memset(mem, 0, sizeof(*mem));
    if (num_blocks > VHCA_MAX_TABLE_BLOCKS) {
        return QHCA_ERR_LIMIT;
    }
    if (num_blocks > VHCA_MAX_TABLE_BLOCKS - e->table_blocks) {
        return QHCA_ERR_NO_RESOURCE;
    }
    mem->block = calloc(num_blocks, sizeof(*mem->block));
    if (!mem->block) {
        return QHCA_ERR_NO_RESOURCE;
    }
    mem->num_blocks = num_blocks;
    e->table_blocks += num_blocks;
    return QHCA_OK;
}

/* ---- pieces ---- */

#define piece_end(mem, i)   ((mem)->block[2 * (i) + 1])

bool vhca_mem_pieces_ok(const struct vhca_mem *mem, uint64_t len)
{
    uint32_t i, num = mem->num_blocks / 2;
    uint64_t from = 0, end;

    for (i = 0; i < num && from < len; i++) {
        end = piece_end(mem, i);
        if (end < from || end == UINT64_MAX ||
            mem->block[2 * i] > UINT64_MAX - (end - from)) {
            return false;
        }
        from = end;
    }
    for (; i < num; i++) {
        if (piece_end(mem, i) != UINT64_MAX) {
            return false;
        }
    }
    return from >= len;
}

/* Return the piece with the byte at @off. */
static uint32_t find_piece(const struct vhca_mem *mem, uint64_t off)
{
    uint32_t low = 0, high = mem->num_blocks / 2;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (piece_end(mem, middle) > off) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

int vhca_mem_fill(struct qhca_engine *e, struct vhca_mem *mem, uint64_t table,
                  uint32_t num_blocks, uint8_t block_shift, uint64_t len)
{
    if (table & 7) {
        return QHCA_ERR_PARAM;
    }
    if (!vhca_dma_read(e, table, mem->block,
                       num_blocks * sizeof(*mem->block))) {
        return QHCA_ERR_DMA;
    }
    mem->block_shift = block_shift;
    if (block_shift) {
        return take_blocks(mem->block, mem->block, num_blocks, block_shift);
    }
    /* Mark the rest of the list as unused. */
    for (uint32_t i = 0; i < mem->num_blocks; i++) {
        mem->block[i] = i < num_blocks ? le64toh(mem->block[i]) : UINT64_MAX;
    }
    return vhca_mem_pieces_ok(mem, len) ? QHCA_OK : QHCA_ERR_PARAM;
}

void vhca_mem_release(struct qhca_engine *e, struct vhca_mem *mem)
{
    if (mem->block) {
        vhca_spend(e, mem->num_blocks / VHCA_UNIT_BLOCKS);
        e->table_blocks -= mem->num_blocks;
        free(mem->block);
    }
    memset(mem, 0, sizeof(*mem));
}

uint64_t vhca_mem_run(const struct vhca_mem *mem, uint64_t off, size_t *len)
{
    uint64_t size = 1ull << mem->block_shift;
    uint64_t i = off >> mem->block_shift, in = off & (size - 1);
    const uint64_t *block = mem->block;
    uint64_t n = size - in;

    if (!block) {
        return mem->base + off;
    }
    if (!mem->block_shift) {
        uint32_t k = find_piece(mem, off);

        *len = (size_t)MIN_OF(piece_end(mem, k) - off, (uint64_t)*len);
        return block[2 * k] + off - (k ? piece_end(mem, k - 1) : 0);
    }
    for (block += i; n < *len && block[1] == block[0] + size; block++) {
        n += size;
    }
    *len = (size_t)MIN_OF(n, (uint64_t)*len);
    return mem->block[i] + in;
}

uint64_t vhca_mem_addr(const struct vhca_mem *mem, uint64_t off)
{
    size_t one = 1;

    return vhca_mem_run(mem, off, &one);
}

bool vhca_mem_is_word(const struct vhca_mem *mem, uint64_t off)
{
    size_t len = sizeof(uint64_t);

    return !(vhca_mem_run(mem, off, &len) & (sizeof(uint64_t) - 1)) &&
           len == sizeof(uint64_t);
}

bool vhca_mem_read(struct qhca_engine *e, const struct vhca_mem *mem,
                   uint64_t off, void *buf, size_t len)
{
    uint8_t *p = buf;
    uint64_t addr;
    size_t n;

    for (; len > 0; p += n, off += n, len -= n) {
        n = len;
        addr = vhca_mem_run(mem, off, &n);
        if (!vhca_dma_read(e, addr, p, n)) {
            return false;
        }
    }
    return true;
}

bool vhca_mem_view(struct qhca_engine *e, const struct vhca_mem *mem,
                   uint64_t off, size_t len, struct vhca_view *view)
{
    uint64_t addr;
    size_t n;

    for (; len > 0; off += n, len -= n) {
        n = len;
        addr = vhca_mem_run(mem, off, &n);
        if (!vhca_dma_view(e, addr, n, view)) {
            return false;
        }
    }
    return true;
}

bool vhca_mem_try_write(struct qhca_engine *e, const struct vhca_mem *mem,
                        uint64_t off, const void *buf, size_t len)
{
    const uint8_t *p = buf;
    uint64_t addr;
    size_t n;

    for (; len > 0; p += n, off += n, len -= n) {
        n = len;
        addr = vhca_mem_run(mem, off, &n);
        if (!vhca_dma_try_write(e, addr, p, n)) {
            return false;
        }
    }
    return true;
}

bool vhca_mem_write(struct qhca_engine *e, const struct vhca_mem *mem,
                    uint64_t off, const void *buf, size_t len)
{
    return vhca_dma_counted(e, vhca_mem_try_write(e, mem, off, buf, len));
}
