/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scatter/gather lists.
 */
#include "harness/debug.h"
#include "harness/harness.h"

#define RW  (QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE | \
             QHCA_ACCESS_REMOTE_READ)

static struct vhca_key_user user_of(struct guest *g, uint32_t pd)
{
    struct vhca_key_user u = { .pd = vhca_table_get(&g->e->memory->pd, pd) };

    return u;
}

static void lists(void)
{
    struct guest *g = guest_start();
    uint32_t pd = pd_create(g);
    struct gmr a = mr_create(g, pd, 5000, RW), b = mr_create(g, pd, 5000, RW);
    const struct vhca_seg segs[] = {
        { a.addr + 100, 10, a.key }, { 0xdead, 0, 0xbeef },
        { b.addr, 5000, b.key }, { a.addr + 4000, 1, a.key },
        { 0, 0, 0 },
    };
    struct vhca_key_user user = user_of(g, pd);
    uint8_t in[5011], out[5011];
    uint64_t off;
    size_t i, n;

    for (i = 0; i < sizeof(in); i++) {
        in[i] = (uint8_t)(i * 31 + 5);
    }
    CHECK(vhca_segs_check(g->e, &user, segs, 5, QHCA_ACCESS_LOCAL_WRITE));
    CHECK_EQ(vhca_segs_write(g->e, 0, &user, segs, 5, 0, in, sizeof(in)),
             VHCA_MEM_OK);
    for (off = 0; off < sizeof(in); off += off < 20 ? 1 : 333) {
        for (n = 0; n <= sizeof(in) - off; n += n < 20 ? 1 : 457) {
            memset(out, 0, sizeof(out));
            REQUIRE(vhca_segs_read(g->e, &user, segs, 5, off, out, n) ==
                    VHCA_MEM_OK);
            REQUIRE(memcmp(out, in + off, n) == 0);
        }
    }
    CHECK_EQ(*(uint8_t *)guest_ptr(g, a.addr + 4000, 1), in[5010]);
    CHECK_EQ(*(uint8_t *)guest_ptr(g, a.addr + 110, 1), 0);
    CHECK_EQ(vhca_segs_write(g->e, 0, &user, segs, 5, 0, in, 0), VHCA_MEM_OK);
    CHECK_EQ(vhca_segs_read(g->e, &user, NULL, 0, 0, out, 0), VHCA_MEM_OK);
}

static void list_errors(void)
{
    struct guest *g = guest_start();
    uint32_t pd = pd_create(g);
    struct gmr rw = mr_create(g, pd, 4096, RW), ro = mr_create(g, pd, 4096, 0);
    struct vhca_seg segs[] = {
        { rw.addr, 100, rw.key }, { ro.addr, 100, ro.key },
        { rw.addr + 4000, 97, rw.key },
    };
    struct vhca_key_user user = user_of(g, pd);
    uint8_t buf[300] = { 0 };

    CHECK(vhca_segs_check(g->e, &user, segs, 2, 0));
    CHECK(!vhca_segs_check(g->e, &user, segs, 2, QHCA_ACCESS_LOCAL_WRITE));
    CHECK(!vhca_segs_check(g->e, &user, segs, 3, 0));
    CHECK_EQ(vhca_segs_write(g->e, 0, &user, segs, 2, 0, buf, 100),
             VHCA_MEM_OK);
    CHECK_EQ(vhca_segs_write(g->e, 0, &user, segs, 2, 0, buf, 101),
             VHCA_MEM_DENIED);
    CHECK_EQ(vhca_segs_read(g->e, &user, segs, 3, 0, buf, 296), VHCA_MEM_OK);
    CHECK_EQ(vhca_segs_read(g->e, &user, segs, 3, 0, buf, 297),
             VHCA_MEM_DENIED);
    g->bad_from = ro.addr + 50;
    g->bad_to = ro.addr + 51;
    CHECK_EQ(vhca_segs_read(g->e, &user, segs, 2, 0, buf, 150), VHCA_MEM_OK);
    CHECK_EQ(vhca_segs_read(g->e, &user, segs, 2, 0, buf, 151), VHCA_MEM_DMA);
    /* A segment across the end of the address space does not start at 0. */
    segs[0].addr = UINT64_MAX - 49;
    CHECK_EQ(vhca_segs_read(g->e, &user, segs, 1, 60, buf, 10),
             VHCA_MEM_DENIED);
}

/* Any QP may use the null key beside other keys; it accesses no memory. */
static void null_key(void)
{
    struct guest *g = guest_start();
    uint32_t pd = pd_create(g);
    struct gmr a = mr_create(g, pd, 4096, RW);
    struct vhca_seg segs[] = {
        { 0, 100, VHCA_NULL_LKEY }, { a.addr, 100, a.key },
        { UINT64_MAX - 99, 100, VHCA_NULL_LKEY },
    };
    struct vhca_key_user user = user_of(g, pd), other = { .pd = NULL };
    uint8_t in[300], out[300];
    uint64_t calls;

    memset(in, 0xab, sizeof(in));
    memset(out, 0xcd, sizeof(out));
    CHECK(vhca_segs_check(g->e, &user, segs, 3, QHCA_ACCESS_LOCAL_WRITE));
    CHECK_EQ(vhca_segs_write(g->e, 0, &user, segs, 3, 0, in, 300), VHCA_MEM_OK);
    CHECK_EQ(vhca_segs_read(g->e, &user, segs, 3, 0, out, 300), VHCA_MEM_OK);
    for (unsigned i = 0; i < 300; i++) {
        REQUIRE(out[i] == (i / 100 == 1 ? 0xab : 0));
    }
    calls = g->reads + g->writes;
    CHECK_EQ(vhca_segs_write(g->e, 0, &other, segs, 1, 0, in, 100),
             VHCA_MEM_OK);
    CHECK_EQ(vhca_segs_read(g->e, &other, segs, 1, 0, in, 100), VHCA_MEM_OK);
    CHECK_EQ(g->reads + g->writes, calls);
    for (unsigned access = 2; access <= QHCA_ACCESS_FLUSH_PERSISTENT;
         access <<= 1) {
        CHECK(!vhca_mr_check(g->e, &user, VHCA_NULL_LKEY, 0, 8,
                             (uint16_t)access));
    }
    segs[2].addr++;
    CHECK(!vhca_segs_check(g->e, &user, segs, 3, 0));
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, VHCA_NULL_LKEY),
             QHCA_ERR_OBJ);
}

static const struct test tests[] = {
    { "F-022 the null key reads zeros and writes nothing", null_key },
    { "B-025 scatter and gather", lists },
    { "scatter and gather errors", list_errors },
};

TEST_MAIN(tests)
