/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * struct qhca_buf: tables of every depth, and every way to get them wrong.
 */
#include <limits.h>

#include "harness/debug.h"
#include "harness/harness.h"

static void check_content(struct guest *g, const struct vhca_mem *mem,
                          const struct gbuf *b, uint64_t len)
{
    uint8_t out[9000];
    uint64_t off;
    size_t n, i;

    for (off = 0; off < len; off += 4099) {
        CHECK_EQ(vhca_mem_addr(mem, off), gbuf_addr(b, off));
    }
    for (off = 0; off < len; off += 7001) {
        n = len - off < sizeof(out) ? (size_t)(len - off) : sizeof(out);
        for (i = 0; i < n; i++) {
            *(uint8_t *)guest_ptr(g, gbuf_addr(b, off + i), 1) =
                (uint8_t)(off + i * 3);
        }
        REQUIRE(vhca_mem_read(g->e, mem, off, out, n));
        for (i = 0; i < n; i++) {
            REQUIRE(out[i] == (uint8_t)(off + i * 3));
            out[i] = (uint8_t)~out[i];
        }
        REQUIRE(vhca_mem_write(g->e, mem, off, out, n));
        for (i = 0; i < n; i++) {
            REQUIRE(*(uint8_t *)guest_ptr(g, gbuf_addr(b, off + i), 1) ==
                    (uint8_t)~(off + i * 3));
        }
    }
}

static int import(struct guest *g, struct vhca_mem *mem,
                  const struct qhca_buf *desc, uint64_t len)
{
    static struct vhca_import im;
    int status;

    g->e->limit = UINT_MAX;
    status = vhca_import(g->e, &im, desc, len);
    if (status != QHCA_OK) {
        vhca_import_drop(g->e, &im);
    }
    *mem = vhca_import_take(&im);
    im.started = false;
    return status;
}

static void depths(void)
{
    static const struct {
        unsigned depth, shift;
        uint32_t blocks;
    } cases[] = {
        { 0, 12, 1 }, { 0, 12, 9 }, { 0, 16, 3 }, { 1, 12, 1 }, { 1, 12, 2 },
        { 1, 12, 512 }, { 1, 16, 5 }, { 2, 12, 1 }, { 2, 12, 513 },
        { 2, 12, 1500 }, { 3, 12, 1 }, { 3, 12, 1100 }, { 3, 13, 600 },
    };
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(cases); i++) {
        struct guest *g = guest_start();
        uint64_t len = (uint64_t)cases[i].blocks << cases[i].shift;
        struct gbuf b = guest_buf(g, len, cases[i].shift, cases[i].depth);
        struct vhca_mem mem;
        bool scattered = cases[i].depth && cases[i].blocks > 1;

        CHECK_EQ(import(g, &mem, &b.desc, len), QHCA_OK);
        CHECK((mem.block != NULL) == scattered);
        CHECK_EQ(g->e->table_blocks, cases[i].blocks * scattered);
        check_content(g, &mem, &b, len);
        vhca_mem_release(g->e, &mem);
        CHECK_EQ(g->e->table_blocks, 0);
        guest_free(g);
    }
}

/* Blocks in a row need no table, and are accessed in one piece. */
static void contiguous(void)
{
    struct guest *g = guest_start();
    struct gbuf b = guest_buf(g, 64 << 12, 12, 1);
    uint64_t base = guest_alloc(g, 64 << 12, 4096), reads;
    uint64_t *entry = guest_ptr(g, le64toh(b.desc.addr), 4096);
    static uint8_t out[64 << 12];
    struct vhca_mem mem;
    unsigned i;

    for (i = 0; i < 64; i++) {
        entry[i] = htole64(base + i * 4096);
    }
    CHECK_EQ(import(g, &mem, &b.desc, 64 << 12), QHCA_OK);
    CHECK(!mem.block);
    CHECK_EQ(mem.base, base);
    reads = g->reads;
    CHECK(vhca_mem_read(g->e, &mem, 1, out, sizeof(out) - 1));
    CHECK_EQ(g->reads, reads + 1);
    vhca_mem_release(g->e, &mem);

    entry[40] = htole64(base);          /* two runs and a lone block */
    CHECK_EQ(import(g, &mem, &b.desc, 64 << 12), QHCA_OK);
    CHECK(mem.block);
    reads = g->reads;
    CHECK(vhca_mem_read(g->e, &mem, 0, out, sizeof(out)));
    CHECK_EQ(g->reads, reads + 3);
    vhca_mem_release(g->e, &mem);
}

static void read_once(void)
{
    struct guest *g = guest_start();
    struct gbuf b = guest_buf(g, 1500 << 12, 12, 2);
    struct vhca_mem mem;

    CHECK_EQ(import(g, &mem, &b.desc, 1500 << 12), QHCA_OK);
    CHECK_EQ(g->reads, 1 + 3);
    vhca_mem_release(g->e, &mem);
}

/* Memory that is read where it is: as much as was asked for, if it can be. */
static void views(void)
{
    struct guest *g = guest_start();
    struct gbuf b = guest_buf(g, 20000, 12, 1);
    struct vhca_mem mem;

    CHECK_EQ(import(g, &mem, &b.desc, 20000), QHCA_OK);
    for (size_t len = 1; len <= 4097; len += len < 4 ? 1 : 4093) {
        struct vhca_view view = { 0 };

        CHECK(vhca_mem_view(g->e, &mem, 8000, len, &view));
        CHECK_EQ(view.len, len);
        CHECK(view.piece[0].base == guest_ptr(g, gbuf_addr(&b, 8000), 1));
    }
    vhca_mem_release(g->e, &mem);
}

/* A device that has stopped neither reads nor writes. */
static void stopped(void)
{
    struct guest *g = guest_start();
    uint64_t at = guest_alloc(g, 8, 8);
    struct vhca_view view = { 0 };
    uint64_t word = 5;

    qhca_engine_inject_fatal(g->e, *g->clock);
    CHECK(!vhca_dma_read(g->e, at, &word, sizeof(word)));
    CHECK(!vhca_dma_write(g->e, at, &word, sizeof(word)));
    CHECK(!vhca_dma_write_entry(g->e, at, &word, sizeof(word)));
    CHECK(!vhca_dma_view(g->e, at, sizeof(word), &view));
    CHECK_EQ(word, 5);
    CHECK_EQ(g->dma_after_stop, 0);
}

/* With a budget of one page at a time the result is the same. */
static void in_pieces(void)
{
    struct guest *g = guest_start();
    struct gbuf b = guest_buf(g, 1500 << 12, 12, 3);
    static struct vhca_import im;
    unsigned calls = 0;
    int status;

    do {
        g->e->limit = g->e->spent + 1;
        status = vhca_import(g->e, &im, &b.desc, 1500 << 12);
        calls++;
    } while (status == VHCA_AGAIN);
    CHECK_EQ(status, QHCA_OK);
    CHECK_EQ(calls, 3);
    CHECK_EQ(g->reads, 1 + 1 + 3);
    check_content(g, &im.mem, &b, 1500 << 12);
    vhca_import_drop(g->e, &im);
    CHECK_EQ(g->e->table_blocks, 0);
}

static int try_import(struct guest *g, const struct qhca_buf *desc,
                      uint64_t len)
{
    struct vhca_mem mem;
    int status = import(g, &mem, desc, len);

    if (status == QHCA_OK) {
        vhca_mem_release(g->e, &mem);
    } else {
        CHECK(!mem.block && !mem.num_blocks);
    }
    CHECK_EQ(g->e->table_blocks, 0);
    return status;
}

static void bad_shapes(void)
{
    struct guest *g = guest_start();
    struct gbuf b = guest_buf(g, 4 << 12, 12, 1);
    struct qhca_buf d;

#define TRY(change, len, status) \
    do { \
        d = b.desc; \
        change; \
        CHECK_EQ(try_import(g, &d, len), status); \
    } while (0)
    TRY((void)0, 4 << 12, QHCA_OK);
    TRY((void)0, (4 << 12) + 1, QHCA_ERR_PARAM);
    TRY(d.depth = 4, 1, QHCA_ERR_PARAM);
    TRY(d.depth = 255, 1, QHCA_ERR_PARAM);
    TRY(d.num_blocks = 0, 0, QHCA_ERR_PARAM);
    TRY(d.block_shift = 11, 1, QHCA_ERR_PARAM);
    TRY(d.block_shift = 32, 1, QHCA_ERR_PARAM);
    TRY(d.block_shift = 255, 1, QHCA_ERR_PARAM);
    TRY(d.num_blocks = htole32(513), 1, QHCA_ERR_PARAM);
    TRY(d.addr += 8, 1, QHCA_ERR_PARAM);
    TRY(d.block_shift = 13, 1, QHCA_ERR_PARAM);   /* blocks not aligned to it */
    TRY((d.depth = 3, d.num_blocks = 0xffffffff), 1, QHCA_ERR_PARAM);
    TRY((d.depth = 3, d.num_blocks = htole32(VHCA_MAX_TABLE_BLOCKS + 1)), 1,
        QHCA_ERR_LIMIT);
    TRY(d.addr = htole64(RAM_BASE - 4096), 1, QHCA_ERR_DMA);
    TRY(d.addr = htole64(0xfffffffffffff000), 1, QHCA_ERR_DMA);
    TRY(d.depth = 2, 1, QHCA_OK);   /* data pages used as tables: all zero */
    /* Depth 0: alignment, and the end of the address space. */
    TRY((d.depth = 0, d.addr = htole64(RAM_BASE + 512)), 1, QHCA_ERR_PARAM);
    TRY((d.depth = 0, d.addr = htole64(0xfffffffffffff000)), 1, QHCA_ERR_PARAM);
    TRY((d.depth = 0, d.addr = htole64(0xffffffffffffc000)), 1, QHCA_OK);
    TRY((d.depth = 0, d.block_shift = 31, d.num_blocks = 0xffffffff,
         d.addr = 0), 1ull << 62, QHCA_OK);
#undef TRY
}

static void bad_entries(void)
{
    struct guest *g = guest_start();
    struct gbuf b = guest_buf(g, 600 << 12, 12, 2);
    uint64_t *root = guest_ptr(g, le64toh(b.desc.addr), 4096);
    uint64_t *leaf = guest_ptr(g, le64toh(root[1]), 4096);
    uint64_t save = leaf[87];

    CHECK_EQ(try_import(g, &b.desc, 600 << 12), QHCA_OK);
    leaf[87] = htole64(RAM_BASE + 1);
    CHECK_EQ(try_import(g, &b.desc, 600 << 12), QHCA_ERR_PARAM);
    leaf[87] = htole64(0xfffffffffffff000);     /* the last page */
    CHECK_EQ(try_import(g, &b.desc, 600 << 12), QHCA_OK);
    leaf[87] = save;
    leaf[88] = htole64(3);                      /* behind the last block */
    CHECK_EQ(try_import(g, &b.desc, 600 << 12), QHCA_OK);
    root[1] = htole64(RAM_BASE + 8);
    CHECK_EQ(try_import(g, &b.desc, 600 << 12), QHCA_ERR_PARAM);
    root[1] = htole64(RAM_BASE + RAM_SIZE);
    CHECK_EQ(try_import(g, &b.desc, 600 << 12), QHCA_ERR_DMA);
}

/*
 * The sum over all objects is checked before memory is allocated. A size that
 * the device never has is another error than one that it does not have now.
 */
static void table_limit(void)
{
    struct guest *g = guest_start();
    struct gbuf b = guest_buf(g, 512 << 12, 12, 1);
    struct qhca_buf never = b.desc;
    struct vhca_mem mem;

    never.depth = 3;
    never.num_blocks = htole32(VHCA_MAX_TABLE_BLOCKS + 1);
    CHECK_EQ(import(g, &mem, &never, 1), QHCA_ERR_LIMIT);
    g->e->table_blocks = VHCA_MAX_TABLE_BLOCKS - 511;
    CHECK_EQ(import(g, &mem, &b.desc, 1), QHCA_ERR_NO_RESOURCE);
    CHECK_EQ(import(g, &mem, &never, 1), QHCA_ERR_LIMIT);
    CHECK_EQ(g->reads, 0);
    g->e->table_blocks--;
    CHECK_EQ(import(g, &mem, &b.desc, 1), QHCA_OK);
    CHECK_EQ(g->e->table_blocks, VHCA_MAX_TABLE_BLOCKS);
    vhca_mem_release(g->e, &mem);
    g->e->table_blocks = 0;
}

static const struct test tests[] = {
    { "tables of every depth", depths },
    { "contiguous blocks are merged", contiguous },
    { "tables are read once", read_once },
    { "tables are read in pieces", in_pieces },
    { "memory is read in place", views },
    { "a stopped device leaves memory alone", stopped },
    { "bad shapes are refused", bad_shapes },
    { "bad table entries are refused", bad_entries },
    { "table blocks are limited", table_limit },
};

TEST_MAIN(tests)
