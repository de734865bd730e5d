/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fast registration of pieces: memory of any addresses and lengths, one behind
 * the other.
 */
#include "harness/debug.h"
#include "harness/fixture.h"
#include "harness/keys.h"
#include "tables.h"

#define RW      (QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE | \
                 QHCA_ACCESS_REMOTE_READ | QHCA_ACCESS_REMOTE_ATOMIC)
#define IOVA    0x123456001ull
#define NUM     6

static const uint32_t sizes[NUM] = { 1, 5000, 7, 0, 4096, 900 };
#define TOTAL   10004u

static struct fast f;
static uint64_t where[NUM];
static uint64_t *list;

/* Pieces at odd addresses, in falling order, with gaps between them. */
static void start(void)
{
    struct rc_opts o = RC_OPTS;
    uint64_t base, end = 0;

    o.qp_flags = KERNEL_QP;
    start_pair(&o);
    f = fast_create(&node, 2 * NUM + 1, 1);
    base = guest_alloc(g, 65536, 4096);
    guest_fill(g, base, 65536, 99);
    f.table = guest_alloc(g, 2 * NUM * sizeof(*list), 8);
    list = guest_ptr(g, f.table, 2 * NUM * sizeof(*list));
    for (unsigned i = 0; i < NUM; i++) {
        where[i] = base + (NUM - i) * 8192 + 3 * i + 1;
        end += sizes[i];
        list[2 * i] = htole64(where[i]);
        list[2 * i + 1] = htole64(end);
    }
    CHECK_EQ(end, TOTAL);
}

static struct rc_wr wr_pieces(void)
{
    struct rc_wr wr = wr_reg(&qp, &f, f.key, IOVA, RW);

    wr.length = TOTAL;
    wr.num_blocks = 2 * NUM;
    wr.block_shift = 0;
    return wr;
}

static void reg(void)
{
    struct rc_wr wr = wr_pieces();

    rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
}

/* The byte at @off of the region. */
static uint8_t *at(uint32_t off)
{
    unsigned i;

    for (i = 0; off >= sizes[i]; i++) {
        off -= sizes[i];
    }
    return guest_ptr(g, where[i] + off, 1);
}

static void check_data(uint32_t off, uint32_t len, uint64_t flat)
{
    const uint8_t *p = guest_ptr(g, flat, len);

    for (uint32_t i = 0; i < len; i++) {
        if (*at(off + i) != p[i]) {
            CHECK_EQ(i, len);
            return;
        }
    }
}

static void check_untouched(void)
{
    for (unsigned i = 0; i < NUM; i++) {
        uint64_t behind = where[i] + sizes[i];

        CHECK_EQ(*(uint8_t *)guest_ptr(g, where[i] - 1, 1), 0xa5);
        CHECK_EQ(*(uint8_t *)guest_ptr(g, behind, 1), 0x5a);
    }
}

static void mark(void)
{
    for (unsigned i = 0; i < NUM; i++) {
        *(uint8_t *)guest_ptr(g, where[i] + sizes[i], 1) = 0x5a;
        *(uint8_t *)guest_ptr(g, where[i] - 1, 1) = 0xa5;
    }
}

static const struct {
    uint32_t off, len;
} ranges[] = {
    { 0, TOTAL }, { 0, 1 }, { 1, 1 }, { 0, 2 }, { 5000, 10 }, { 5001, 7 },
    { 5008, 4096 }, { TOTAL - 1, 1 }, { 4999, 4200 },
};

/* The peer writes and reads ranges of the region; so does its owner. */
static void data(void)
{
    start();
    reg();
    for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
        uint32_t off = ranges[i].off, len = ranges[i].len;
        struct rc_wr wr;

        guest_fill(g, node.mr.addr, len, (unsigned)i);
        mark();
        wr = rc_wr(&peer, QHCA_WR_RDMA_WRITE, 0, len);
        wr.raddr = IOVA + off;
        wr.rkey = f.key;
        wr.wr_id = 0x1000u + peer.sq_pi;
        rc_finish(&peer, &wr, QHCA_WC_SUCCESS);
        check_data(off, len, node.mr.addr);
        check_untouched();

        wr = rc_wr(&peer, QHCA_WR_RDMA_READ, 20000, len);
        wr.raddr = IOVA + off;
        wr.rkey = f.key;
        rc_finish(&peer, &wr, QHCA_WC_SUCCESS);
        check_data(off, len, node.mr.addr + 20000);

        wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, len);
        wr.sge[0].addr = IOVA + off;
        wr.sge[0].lkey = f.key;
        rc_aim(&wr, &node, 40000);
        rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
        check_data(off, len, node.mr.addr + 40000);
    }
}

static bool usable(uint64_t addr, uint64_t len)
{
    return key_allows(g, node.pdn, qp.qpn, f.key, addr, len, 0);
}

/* The region ends where its length says, and is gone when it is invalidated. */
static void bounds(void)
{
    struct rc_wr wr;

    start();
    reg();
    CHECK(usable(IOVA, TOTAL));
    CHECK(!usable(IOVA, TOTAL + 1));
    CHECK(!usable(IOVA - 1, 1));
    CHECK(usable(IOVA + TOTAL - 1, 1));
    wr = wr_inv(&qp, QHCA_WR_LOCAL_INV, f.key);
    rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
    CHECK(!usable(IOVA, 1));
    /* Blocks after pieces, and pieces after blocks. */
    wr = wr_reg(&qp, &f, f.key, IOVA, RW);
    wr.table = guest_alloc(g, 8, 8);
    *(uint64_t *)guest_ptr(g, wr.table, 8) = htole64(gbuf_addr(&f.buf, 0));
    rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
    CHECK(usable(IOVA, 4096));
    wr = wr_inv(&qp, QHCA_WR_LOCAL_INV, f.key);
    rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
    wr = wr_pieces();
    wr.length = TOTAL - 100;            /* not all of the last piece */
    rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
    CHECK(usable(IOVA, TOTAL - 100));
    CHECK(!usable(IOVA, TOTAL - 99));
    wr = wr_inv(&qp, QHCA_WR_LOCAL_INV, f.key);
    rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
    wr = wr_pieces();
    wr.num_blocks = 2;                  /* the first one alone */
    wr.length = sizes[0];
    rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
    CHECK(usable(IOVA, sizes[0]));
}

static const struct {
    const char *what;
    uint64_t length, add;
    uint32_t num_blocks, offset;
    int word;
    uint64_t value;
} bad[] = {
    { "an odd number of words", TOTAL, 0, 11, 0, -1, 0 },
    { "too many words", TOTAL, 0, 14, 0, -1, 0 },
    { "no words", TOTAL, 0, 0, 0, -1, 0 },
    { "nothing", 0, 0, 12, 0, -1, 0 },
    { "more than there is", TOTAL + 1, 0, 12, 0, -1, 0 },
    { "all of it", UINT64_MAX, 0, 12, 0, -1, 0 },
    { "a piece too many", 9104, 0, 12, 0, -1, 0 },
    { "an offset", TOTAL, 0, 12, 1, -1, 0 },
    { "an end before the last", TOTAL, 0, 12, 0, 3, 0 },
    { "an end that is none", TOTAL, 0, 12, 0, 11, UINT64_MAX },
    { "a piece that wraps", TOTAL, 0, 12, 0, 2, UINT64_MAX - 4998 },
    { "a list not aligned", TOTAL, 4, 12, 0, -1, 0 },
    { "no list", TOTAL, 1ull << 60, 12, 0, -1, 0 },
};

static void refused(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct rc_wr wr;

        start();
        wr = wr_pieces();
        wr.length = bad[i].length;
        wr.num_blocks = bad[i].num_blocks;
        wr.offset = bad[i].offset;
        wr.table += bad[i].add;
        if (bad[i].word >= 0) {
            list[bad[i].word] = htole64(bad[i].value);
        }
        tap_note("%s", bad[i].what);
        rc_finish(&qp, &wr, bad[i].add > 4 ? QHCA_WC_LOC_PROT_ERR : I_035_RQ);
        CHECK(!usable(IOVA, 1));
    }
}

/* An address that is no memory is found when it is used. */
static void no_memory(void)
{
    struct rc_wr wr;

    start();
    list[8] = htole64(1ull << 60);
    reg();
    wr = rc_wr(&peer, QHCA_WR_RDMA_WRITE, 0, 5008);
    wr.raddr = IOVA;
    wr.rkey = f.key;
    rc_finish(&peer, &wr, QHCA_WC_SUCCESS);
    wr = rc_wr(&peer, QHCA_WR_RDMA_WRITE, 0, 5009);
    wr.raddr = IOVA;
    wr.rkey = f.key;
    rc_finish(&peer, &wr, QHCA_WC_REM_OP_ERR);
}

/* A word that is in two pieces, or not aligned in its piece, is not atomic. */
static void words(void)
{
    static const struct {
        uint32_t off, shift;
        unsigned status;
    } rows[] = {
        { 7, 0, QHCA_WC_REM_ACCESS_ERR },       /* aligned by IOVA only */
        { 7, 4, QHCA_WC_SUCCESS },
        { 4999, 4, QHCA_WC_REM_ACCESS_ERR },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct rc_wr wr;

        start();
        /* Byte 7 of the region is byte 6 of the second piece. */
        list[2] = htole64((where[1] & ~7ull) + (rows[i].shift ? 2 : 1));
        reg();
        wr = rc_wr(&peer, QHCA_WR_ATOMIC_FETCH_AND_ADD, 0, 8);
        wr.raddr = IOVA + rows[i].off;
        wr.rkey = f.key;
        rc_finish(&peer, &wr, rows[i].status);
    }
}

static const struct test tests[] = {
    { "F-031 B-011 data in pieces of any size", data },
    { "F-031 F-026 the range of such a region, and other lists after it",
      bounds },
    { "F-031 F-026 I-035 lists that are refused", refused },
    { "F-031 pieces that are no memory", no_memory },
    { "F-031 F-016 atomics", words },
};

TEST_MAIN(tests)
