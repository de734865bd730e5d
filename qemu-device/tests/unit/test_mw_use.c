/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory windows: what QPs may use them for. */
#include "harness/windows.h"
#include "tables.h"

static void over_the_wire(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
        uint32_t key, plain;

        start_two_pairs();
        /* The window's rights count, not the region's. */
        plain = region(QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_MW_BIND, 0);
        key = mw_create(g, node.pdn, types[i]) ^ 1;
        struct rc_wr wr = wr_bind(&qp, key, 4096, 4096, RD | WR | ATOMIC);

        wr.mr_key = plain;
        rc_finish(&qp, &wr, QHCA_WC_SUCCESS);                   /* F-048 */
        CHECK_EQ(use(&peer, QHCA_WR_RDMA_WRITE, key, at(4096), 4096), 0);
        CHECK_EQ(use(&peer, QHCA_WR_RDMA_READ, key, at(4097), 4095), 0);
        CHECK_EQ(use(&peer, QHCA_WR_ATOMIC_FETCH_AND_ADD, key, at(4104), 8), 0);
        /* F-045, F-047: through another QP. */
        CHECK_EQ(use(&other_peer, QHCA_WR_RDMA_WRITE, key, at(4096), 8),
                 types[i] == QHCA_MW_1 ? QHCA_WC_SUCCESS : I_011_RQ);
        CHECK_EQ(use(&peer, QHCA_WR_RDMA_WRITE, key, at(4096), 4097),
                 QHCA_WC_REM_ACCESS_ERR);
    }
}

/* All need the PD, and type 2 the QP of the bind as well. */
static void domains(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
        uint32_t key, pd2;

        start();
        pd2 = pd_create(g);
        key = mw_create(g, node.pdn, types[i]) ^ 1;
        bind_window(&qp, key, 0, 100, RD, QHCA_WC_SUCCESS);
        CHECK(key_allows(g, node.pdn, qp.qpn, key, at(0), 1, RD));
        CHECK_EQ(key_allows(g, node.pdn, peer.qpn, key, at(0), 1, RD),
                 types[i] == QHCA_MW_1);
        CHECK(!key_allows(g, pd2, qp.qpn, key, at(0), 1, RD));
    }
}

static void zero_based(void)
{
    uint32_t key;

    start();
    key = mw_create(g, node.pdn, QHCA_MW_2B);
    bind_window(&qp, key, 5000, 4000, RD | WR | ZERO, QHCA_WC_SUCCESS);
    guest_fill(g, at(0x80000), 4000, 3);
    CHECK_EQ(use(&peer, QHCA_WR_RDMA_WRITE, key, 0, 4000), 0);
    CHECK(guest_is_filled(g, at(5000), 4000, 3));
    CHECK(!usable(&qp, key, 1, 4000, RD));
    CHECK(!usable(&qp, key, at(5000), 1, RD));
    CHECK(!usable(&qp, key, UINT64_MAX, 1, RD));
}

/*
 * An address that is a multiple of 8 can be a word that is not, and lies in two
 * pages: nothing is written, least of all behind the page.
 */
static void zero_based_words(void)
{
    uint64_t before, *word;
    uint32_t key;

    start();
    key = mw_create(g, node.pdn, QHCA_MW_2B);
    bind_window(&qp, key, 4096 + 4, 8192, WR | ATOMIC | ZERO, QHCA_WC_SUCCESS);
    word = guest_ptr(g, at(8192 - 8), 16);
    before = counter(g, QHCA_CNT_DMA_ERR);
    CHECK_EQ(use(&peer, QHCA_WR_ATOMIC_FETCH_AND_ADD, key, 4088, 8),
             QHCA_WC_REM_ACCESS_ERR);
    CHECK_EQ(counter(g, QHCA_CNT_DMA_ERR), before);
    CHECK(!word[0] && !word[1]);
}

static void overlap(void)
{
    uint32_t a, b;

    start();
    a = mw_create(g, node.pdn, QHCA_MW_2B);
    b = mw_create(g, node.pdn, QHCA_MW_1) ^ 1;
    bind_window(&qp, a, 0, 1000, RD, QHCA_WC_SUCCESS);
    bind_window(&qp, b, 500, 1000, WR, QHCA_WC_SUCCESS);        /* F-041 */
    CHECK(usable(&qp, a, at(500), 500, RD) && !usable(&qp, a, at(500), 1, WR));
    CHECK(usable(&qp, b, at(500), 500, WR) && !usable(&qp, b, at(500), 1, RD));
    invalidate(&qp, a, QHCA_WC_SUCCESS);
    CHECK(usable(&qp, b, at(500), 500, WR));
}

static void remote_invalidation(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
        bool ok = types[i] != QHCA_MW_1;
        struct rc_wr wr;
        uint32_t key;

        start();
        key = mw_create(g, node.pdn, types[i]) ^ 1;
        bind_window(&qp, key, 0, 100, RD, QHCA_WC_SUCCESS);
        rc_recv(&qp, 5, 0x1000, 100);
        wr = wr_inv(&peer, QHCA_WR_SEND_WITH_INV, key);
        rc_do(&peer, &wr);
        rc_expect(&qp.rcq, 5, ok ? QHCA_WC_SUCCESS : QHCA_WC_REM_INV_REQ_ERR);
        guest_advance(g, ok ? 0 : 1000000000);  /* no NAK: class J */
        rc_expect(&peer.scq, wr.wr_id, ok ? QHCA_WC_SUCCESS :
                                            QHCA_WC_RETRY_EXC_ERR);
        CHECK_EQ(usable(&qp, key, at(0), 1, RD), !ok);
        if (ok) {
            CHECK_EQ(use(&peer, QHCA_WR_RDMA_READ, key, at(0), 1),
                     QHCA_WC_REM_ACCESS_ERR);                   /* F-052 */
        }
    }
}

/* A window on a region of type FAST keeps the region Valid. */
static void on_fast_region(void)
{
    uint32_t key;
    struct fast f;
    struct rc_wr wr;

    start();
    f = fast_create(&node, 4, 3);
    wr = wr_reg(&qp, &f, f.key, 0x5000, QHCA_ACCESS_LOCAL_WRITE |
                                        QHCA_ACCESS_MW_BIND);
    rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
    key = mw_create(g, node.pdn, QHCA_MW_2B);
    wr = wr_bind(&qp, key, 0, 4096, WR);
    wr.mr_key = f.key;
    wr.addr = 0x6000;
    rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
    guest_fill(g, at(0x80000), 4096, 3);
    CHECK_EQ(use(&peer, QHCA_WR_RDMA_WRITE, key, 0x6000, 4096), 0);
    CHECK(guest_is_filled(g, gbuf_addr(&f.buf, 0x1000), 4096, 3));
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, f.key), QHCA_ERR_BUSY);
    invalidate(&qp, f.key, QHCA_WC_MW_BIND_ERR);                /* F-029 */
    CHECK(usable(&qp, key, 0x6000, 4096, WR));
}

/* F-040: a SEND behind the bind carries the key, which the peer can use. */
static void key_passed_on(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
        struct rc_wr wr;
        uint32_t key;

        start();
        rc_recv(&peer, 5, 0x1000, 4);
        wr = wr_bind(&qp, mw_create(g, node.pdn, types[i]) ^ 1, 4096, 4096, WR);
        memcpy(guest_ptr(g, at(0), 4), &wr.key, 4);
        wr.flags = 0;
        rc_put(&qp, &wr);
        wr = rc_wr(&qp, QHCA_WR_SEND, 0, 4);
        rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
        rc_expect(&peer.rcq, 5, QHCA_WC_SUCCESS);
        memcpy(&key, guest_ptr(g, at(0x1000), 4), 4);
        CHECK_EQ(use(&peer, QHCA_WR_RDMA_WRITE, key, at(4096), 4096), 0);
    }
}

static const struct test tests[] = {
    { "F-045 F-047 F-048 I-011 over the wire", over_the_wire },
    { "F-045 F-047 F-006 QPs and PDs", domains },
    { "zero-based windows", zero_based },
    { "B-033 I-017 words of zero-based windows", zero_based_words },
    { "F-041 windows that overlap", overlap },
    { "F-049 F-052 SEND_WITH_INV", remote_invalidation },
    { "F-029 a window on a fast region", on_fast_region },
    { "F-040 a key that is passed on", key_passed_on },
};

TEST_MAIN(tests)
