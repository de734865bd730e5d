/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory regions: what a key allows (F-004), REREG_MR. */
#include "harness/debug.h"
#include "harness/harness.h"

#define RW  (QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE | \
             QHCA_ACCESS_REMOTE_READ)

static struct qhca_cmd reg_cmd(const struct gbuf *b, uint32_t pd, uint64_t iova,
                               uint64_t len, unsigned access)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_REG_MR) };

    cmd.reg_mr.buf = b->desc;
    cmd.reg_mr.iova = htole64(iova);
    cmd.reg_mr.offset = htole32(iova & ((1u << b->shift) - 1));
    cmd.reg_mr.length = htole64(len);
    cmd.reg_mr.pdn = htole32(pd);
    cmd.reg_mr.access = htole16((uint16_t)access);
    return cmd;
}

static struct vhca_key_user user_of(struct guest *g, uint32_t pd)
{
    struct vhca_key_user u = { .pd = vhca_table_get(&g->e->memory->pd, pd) };

    return u;
}

static bool allowed(struct guest *g, uint32_t pd, uint32_t key, uint64_t addr,
                    uint64_t len, unsigned access)
{
    struct vhca_key_user u = user_of(g, pd);

    return vhca_mr_check(g->e, &u, key, addr, len, (uint16_t)access) != NULL;
}

static void keys(void)
{
    struct guest *g = guest_start();
    uint32_t pd = pd_create(g), other = pd_create(g), bit;
    struct gmr mr = mr_create(g, pd, 10000, RW);
    uint64_t bad = 0;

    CHECK(allowed(g, pd, mr.key, mr.addr, 1, 0));
    for (bit = 0; bit < 32; bit++) {
        CHECK(!allowed(g, pd, mr.key ^ 1u << bit, mr.addr, 1, 0));
        bad++;
    }
    CHECK(!allowed(g, other, mr.key, mr.addr, 1, 0));
    CHECK(!allowed(g, pd, 0, mr.addr, 1, 0));
    CHECK(!allowed(g, pd, VHCA_RESERVED_LKEY, mr.addr, 1, 0));
    CHECK_EQ(counter(g, QHCA_CNT_BAD_KEY), bad + 3);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, mr.key ^ 1), QHCA_ERR_OBJ);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, mr.key), QHCA_OK);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, mr.key), QHCA_ERR_OBJ);
    CHECK(!allowed(g, pd, mr.key, mr.addr, 1, 0));
}

static void ranges(void)
{
    struct guest *g = guest_start();
    uint32_t pd = pd_create(g);
    struct gmr mr = mr_create(g, pd, 10000, RW);
    uint64_t a = mr.addr;

    CHECK(allowed(g, pd, mr.key, a, 10000, 0));
    CHECK(allowed(g, pd, mr.key, a + 9999, 1, 0));
    CHECK(!allowed(g, pd, mr.key, a, 10001, 0));
    CHECK(!allowed(g, pd, mr.key, a - 1, 1, 0));
    CHECK(!allowed(g, pd, mr.key, a - 1, 2, 0));
    CHECK(!allowed(g, pd, mr.key, a + 9999, 2, 0));
    CHECK(!allowed(g, pd, mr.key, a + 10000, 1, 0));
    CHECK(!allowed(g, pd, mr.key, a + 1, UINT64_MAX, 0));
    CHECK(!allowed(g, pd, mr.key, a + 1, UINT64_MAX - a, 0));
    CHECK(!allowed(g, pd, mr.key, UINT64_MAX, 1, 0));
    CHECK(!allowed(g, pd, mr.key, UINT64_MAX, 2, 0));
    CHECK(!allowed(g, pd, mr.key, 0, UINT64_MAX, 0));
}

/* An iova at the very end of the address space, and one of 0. */
static void extreme_iova(void)
{
    struct guest *g = guest_start();
    uint32_t pd = pd_create(g), key;
    const uint64_t max = le64toh(device_attr(g).max_mr_size);
    struct gbuf b = guest_buf(g, 4 << 12, 12, 1), all = {
        .desc.num_blocks = htole32((uint32_t)(max >> 31)),
        .desc.block_shift = 31, .shift = 31,
    };
    struct qhca_cmd cmd = reg_cmd(&b, pd, UINT64_MAX - 4095, 4096, RW);

    key = guest_create(g, &cmd);
    CHECK(allowed(g, pd, key, UINT64_MAX - 4095, 4096, 0));
    CHECK(allowed(g, pd, key, UINT64_MAX, 1, 0));
    CHECK(!allowed(g, pd, key, UINT64_MAX, 2, 0));
    cmd = reg_cmd(&b, pd, UINT64_MAX - 4095, 4097, RW);
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_PARAM);
    cmd = reg_cmd(&b, pd, 5, 100, RW);
    key = guest_create(g, &cmd);
    CHECK(!allowed(g, pd, key, 4, 1, 0));
    CHECK(allowed(g, pd, key, 5, 100, 0));
    CHECK(!allowed(g, pd, key, UINT64_MAX, 7, 0));
    cmd = reg_cmd(&all, pd, 0, max, RW);
    key = guest_create(g, &cmd);
    CHECK(allowed(g, pd, key, 0, max, RW));
    CHECK(!allowed(g, pd, key, 0, max + 1, 0));
    CHECK(!allowed(g, pd, key, max, 1, 0));
    all.desc.num_blocks = htole32((uint32_t)(max >> 31) + 1);
    cmd = reg_cmd(&all, pd, 0, max + 1, RW);
    CHECK(guest_cmd(g, &cmd, NULL) != QHCA_OK);                 /* J-036 */
}

/* An empty region can be registered, and its key allows nothing. */
static void empty(void)
{
    struct guest *g = guest_start();
    uint32_t pd = pd_create(g), key;
    struct gbuf b = guest_buf(g, 4096, 12, 1);
    struct qhca_cmd cmd;

    for (uint64_t iova = 0; iova <= 5; iova += 5) {
        cmd = reg_cmd(&b, pd, iova, 0, RW);
        key = guest_create(g, &cmd);
        CHECK(!allowed(g, pd, key, iova, 1, 0));
        CHECK(!allowed(g, pd, key, iova - 1, 1, 0));
        CHECK(!allowed(g, pd, key, iova + 1, 1, 0));
        CHECK(!allowed(g, pd, key, iova, UINT64_MAX, 0));
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, key), QHCA_OK);
    }
    CHECK_EQ(g->e->table_blocks, 0);
}

/* The address of the first byte is independent of its offset in the block. */
static void offsets(void)
{
    static const uint64_t iovas[] = { 0, 5, 0xfff, 0x12345678, 1ull << 63 };
    struct guest *g = guest_start();
    uint32_t pd = pd_create(g), key;
    struct gbuf b = guest_buf(g, 4 << 12, 12, 1);
    struct vhca_key_user user = user_of(g, pd);
    uint8_t out[8000];
    struct vhca_mr *mr;

    for (size_t i = 0; i < ARRAY_SIZE(iovas); i++) {
        struct qhca_cmd cmd = reg_cmd(&b, pd, iovas[i], (4 << 12) - 4095, RW);

        cmd.reg_mr.offset = htole32(4095);
        key = guest_create(g, &cmd);
        CHECK(!allowed(g, pd, key, iovas[i] - 1, 1, 0));
        CHECK(!allowed(g, pd, key, iovas[i], (4 << 12) - 4094, 0));
        mr = vhca_mr_check(g->e, &user, key, iovas[i], sizeof(out), 0);
        REQUIRE(mr);
        memset(out, (int)i + 1, sizeof(out));
        CHECK_EQ(vhca_mr_write(g->e, 0, mr, iovas[i], out, sizeof(out)),
                 VHCA_MEM_OK);
        CHECK_EQ(*(uint8_t *)guest_ptr(g, gbuf_addr(&b, 4094), 1), 0);
        CHECK_EQ(*(uint8_t *)guest_ptr(g, gbuf_addr(&b, 4095), 1), i + 1);
        CHECK_EQ(*(uint8_t *)guest_ptr(g, gbuf_addr(&b, 4095 + 7999), 1),
                 i + 1);
        CHECK_EQ(*(uint8_t *)guest_ptr(g, gbuf_addr(&b, 4095 + 8000), 1), 0);
        memset(out, 0, sizeof(out));
        CHECK_EQ(vhca_mr_read(g->e, mr, iovas[i] + 1, out, sizeof(out) - 1),
                 VHCA_MEM_OK);
        CHECK_EQ(out[sizeof(out) - 2], i + 1);
    }
}

static void rights(void)
{
    static const unsigned all[] = {
        QHCA_ACCESS_LOCAL_WRITE, QHCA_ACCESS_REMOTE_WRITE,
        QHCA_ACCESS_REMOTE_READ, QHCA_ACCESS_REMOTE_ATOMIC,
        QHCA_ACCESS_FLUSH_GLOBAL,
    };
    /* Not FLUSH_PERSISTENT: no memory has that right. */
    const unsigned rights = 0x011f | QHCA_ACCESS_ZERO_BASED;
    struct guest *g = guest_start();
    uint32_t pd = pd_create(g);
    struct gbuf b = guest_buf(g, 4096, 12, 0);
    unsigned access, i;
    uint32_t key;

    for (access = 0; access < 0x800; access++) {
        struct qhca_cmd cmd = reg_cmd(&b, pd, 0x1000, 4096, access);
        bool writes = access & (QHCA_ACCESS_REMOTE_WRITE |
                                QHCA_ACCESS_REMOTE_ATOMIC);
        bool ok = !(access & ~rights) &&
                  (!writes || access & QHCA_ACCESS_LOCAL_WRITE);

        CHECK_EQ(guest_cmd(g, &cmd, &key), ok ? QHCA_OK : QHCA_ERR_PARAM);
        if (!ok) {
            continue;
        }
        CHECK(allowed(g, pd, key, 0x1000, 8, 0));
        for (i = 0; i < ARRAY_SIZE(all); i++) {
            CHECK_EQ(allowed(g, pd, key, 0x1000, 8, all[i]),
                     (access & all[i]) != 0);
        }
    }
}

static void bad_registrations(void)
{
    struct guest *g = guest_start();
    uint32_t pd = pd_create(g);
    struct gbuf b = guest_buf(g, 4 << 12, 12, 1);
    struct qhca_cmd cmd;
    unsigned before = qhca_engine_num_objects(g->e);

#define TRY(iova, len, change, status) \
    do { \
        cmd = reg_cmd(&b, pd, iova, len, RW); \
        change; \
        CHECK_EQ(guest_cmd(g, &cmd, NULL), status); \
    } while (0)
    TRY(0, (4 << 12) + 1, (void)0, QHCA_ERR_PARAM);
    TRY(0x10, 4 << 12, (void)0, QHCA_ERR_PARAM);    /* offset eats into it */
    TRY(0, VHCA_MAX_MR_SIZE + 1, (void)0, QHCA_ERR_LIMIT);
    TRY(0, 100, cmd.reg_mr.offset = htole32(4096), QHCA_ERR_PARAM);
    TRY(0, 100, cmd.reg_mr.offset = htole32(UINT32_MAX), QHCA_ERR_PARAM);
    TRY(0, (4 << 12) - 4094, cmd.reg_mr.offset = htole32(4095), QHCA_ERR_PARAM);
    TRY(0, 100, cmd.reg_mr.pdn = htole32(pd ^ 1), QHCA_ERR_OBJ);
    TRY(0, 100, cmd.reg_mr.type = 3, QHCA_ERR_PARAM);
    TRY(0, 100, cmd.reg_mr.type = QHCA_MR_DMA, QHCA_ERR_PARAM);    /* remote */
    TRY(0, 100, cmd.reg_mr.buf.block_shift = 64, QHCA_ERR_PARAM);
    TRY(0, 100, cmd.reg_mr.buf.addr = 0, QHCA_ERR_DMA);
#undef TRY
    CHECK_EQ(qhca_engine_num_objects(g->e), before);
    CHECK_EQ(g->e->table_blocks, 0);
}

/*
 * DMA regions and the reserved key: all of memory, for kernel QPs only (F-016).
 */
static void dma_regions(void)
{
    struct guest *g = guest_start();
    uint32_t pd = pd_create(g), key;
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_REG_MR) };
    struct vhca_key_user kernel, user = user_of(g, pd);
    uint64_t addr = guest_alloc(g, 64, 64), v = 0x1122334455667788;
    struct vhca_mr *mr;

    cmd.reg_mr.pdn = htole32(pd);
    cmd.reg_mr.type = QHCA_MR_DMA;
    cmd.reg_mr.access = htole16(QHCA_ACCESS_LOCAL_WRITE);
    key = guest_create(g, &cmd);
    CHECK(allowed(g, pd, key, 0, UINT64_MAX, 0));
    CHECK(allowed(g, pd, key, UINT64_MAX, 1, QHCA_ACCESS_LOCAL_WRITE));
    CHECK(!allowed(g, pd, key, UINT64_MAX, 2, 0));
    CHECK(!allowed(g, pd, key, 0, 8, QHCA_ACCESS_REMOTE_READ));

    kernel = user;
    kernel.reserved = true;
    CHECK(!vhca_mr_check(g->e, &user, VHCA_RESERVED_LKEY, addr, 8, 0));
    CHECK(!vhca_mr_check(g->e, &kernel, VHCA_RESERVED_LKEY, addr, 8,
                         QHCA_ACCESS_REMOTE_READ));
    CHECK(!vhca_mr_check(g->e, &kernel, VHCA_RESERVED_LKEY | 1, addr, 8, 0));
    mr = vhca_mr_check(g->e, &kernel, VHCA_RESERVED_LKEY, addr, 8,
                       QHCA_ACCESS_LOCAL_WRITE);
    REQUIRE(mr);
    CHECK_EQ(vhca_mr_write(g->e, 0, mr, addr, &v, 8), VHCA_MEM_OK);
    CHECK_EQ(*(uint64_t *)guest_ptr(g, addr, 8), v);
}

static void atomics(void)
{
    struct guest *g = guest_start();
    uint32_t pd = pd_create(g), key;
    struct gbuf b = guest_buf(g, 3 << 12, 12, 1);
    struct qhca_cmd cmd = reg_cmd(&b, pd, 0x7008, 8192,
                                  QHCA_ACCESS_LOCAL_WRITE |
                                  QHCA_ACCESS_REMOTE_ATOMIC);
    struct vhca_key_user user = user_of(g, pd);
    struct vhca_mr *mr;
    uint64_t old, *p;

    key = guest_create(g, &cmd);
    mr = vhca_mr_check(g->e, &user, key, 0x8ff8, 8, QHCA_ACCESS_REMOTE_ATOMIC);
    REQUIRE(mr);
    p = guest_ptr(g, gbuf_addr(&b, 0x1ff8), 8);
    *p = 40;
    CHECK_EQ(vhca_mr_add(g->e, mr, 0x8ff8, 2, &old), VHCA_MEM_OK);
    CHECK_EQ(old, 40);
    CHECK_EQ(vhca_mr_cas(g->e, mr, 0x8ff8, 41, 7, &old), VHCA_MEM_OK);
    CHECK_EQ(*p, 42);
    CHECK_EQ(vhca_mr_cas(g->e, mr, 0x8ff8, 42, 7, &old), VHCA_MEM_OK);
    CHECK_EQ(old, 42);
    CHECK_EQ(*p, 7);
    guest_spoil(g, gbuf_addr(&b, 0x1000), 4096);
    CHECK_EQ(vhca_mr_add(g->e, mr, 0x8ff8, 2, &old), VHCA_MEM_DMA);
    CHECK_EQ(vhca_mr_cas(g->e, mr, 0x8ff8, 2, 3, &old), VHCA_MEM_DMA);
    CHECK_EQ(counter(g, QHCA_CNT_DMA_ERR), 2);
}

/* F-007: keys of deregistered regions are invalid. */
static void stale_keys(void)
{
    enum { KEPT = 64, ROUNDS = 20000 };
    struct guest *g = guest_start();
    uint32_t pd = pd_create(g), key, i, variants = 0, last[KEPT] = { 0 };
    struct gbuf b = guest_buf(g, 4096, 12, 0);
    struct qhca_cmd cmd = reg_cmd(&b, pd, 0, 4096, 0);

    for (i = 0; i < ROUNDS; i++) {
        key = guest_create(g, &cmd);
        variants += (key & 0xff) != (last[(i - 1) % KEPT] & 0xff);
        /* Change the variant as REG_MR and BIND_MW do. */
        vhca_mr_get(g->e, key)->key ^= i % 256;
        for (unsigned j = 0; j < KEPT; j++) {
            REQUIRE(!vhca_mr_get(g->e, last[j]));
        }
        last[i % KEPT] = key ^ i % 256;
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, last[i % KEPT]), QHCA_OK);
    }
    CHECK(variants > ROUNDS / 256 * 250);
}

/* F-007: keys are random; even the owner of all cannot predict the next. */
static void all_of_them(void)
{
    static uint32_t key[VHCA_MAX_MR];
    struct guest *g = guest_start();
    uint32_t pd = pd_create(g), *k;
    struct gbuf b = guest_buf(g, 4096, 12, 0);
    struct qhca_cmd cmd = reg_cmd(&b, pd, 0, 4096, 0);

    for (unsigned i = 0; i < 2 * VHCA_MAX_MR; i++) {
        k = &key[i % VHCA_MAX_MR];
        REQUIRE(!*k || guest_cmd_obj(g, QHCA_CMD_DEREG_MR, *k) == QHCA_OK);
        *k = guest_create(g, &cmd);
        REQUIRE(*k == (uint32_t)(g->drawn >> 32 << 8 | (g->drawn & 0xff)));
    }
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_NO_RESOURCE);
    CHECK_EQ(qhca_engine_num_objects(g->e), VHCA_MAX_MR + 1);
}

static int rereg(struct guest *g, struct qhca_cmd cmd, uint32_t key,
                 unsigned what)
{
    uint32_t out = 0;
    int status;

    cmd.opcode = htole16(QHCA_CMD_REREG_MR);
    cmd.reg_mr.key = htole32(key);
    cmd.reg_mr.rereg = (uint8_t)what;
    status = guest_cmd(g, &cmd, &out);
    if (status == QHCA_OK) {
        CHECK_EQ(out, key);
    }
    return status;
}

static void reregister(void)
{
    struct guest *g = guest_start();
    uint32_t pd = pd_create(g), pd2 = pd_create(g);
    struct gbuf a = guest_buf(g, 4 << 12, 12, 1);
    struct gbuf b = guest_buf(g, 6 << 12, 12, 1);
    struct qhca_cmd cmd = reg_cmd(&a, pd, 0x10000, 4 << 12, RW);
    uint32_t key = guest_create(g, &cmd);
    struct vhca_key_user user;
    struct vhca_mr *mr;
    uint8_t byte;

    cmd = reg_cmd(&b, pd2, 0x50000, 6 << 12, QHCA_ACCESS_LOCAL_WRITE);
    CHECK_EQ(rereg(g, cmd, key, QHCA_REREG_ACCESS), QHCA_OK);
    CHECK(!allowed(g, pd, key, 0x10000, 1, QHCA_ACCESS_REMOTE_READ));
    CHECK(allowed(g, pd, key, 0x10000, 4 << 12, QHCA_ACCESS_LOCAL_WRITE));
    CHECK_EQ(rereg(g, cmd, key, QHCA_REREG_PD), QHCA_OK);
    CHECK(!allowed(g, pd, key, 0x10000, 1, 0));
    CHECK(allowed(g, pd2, key, 0x10000, 1, 0));
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_PD, pd2), QHCA_ERR_BUSY);
    cmd.reg_mr.pdn = htole32(pd);       /* is not looked at */
    CHECK_EQ(rereg(g, cmd, key, QHCA_REREG_TRANS), QHCA_OK);
    CHECK(!allowed(g, pd2, key, 0x10000, 1, 0));
    CHECK(allowed(g, pd2, key, 0x50000, 6 << 12, 0));
    CHECK_EQ(g->e->table_blocks, 6);
    *(uint8_t *)guest_ptr(g, gbuf_addr(&b, 0x5fff), 1) = 77;
    user = user_of(g, pd2);
    mr = vhca_mr_check(g->e, &user, key, 0x55fff, 1, 0);
    REQUIRE(mr);
    CHECK_EQ(vhca_mr_read(g->e, mr, 0x55fff, &byte, 1), VHCA_MEM_OK);
    CHECK_EQ(byte, 77);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_PD, pd), QHCA_OK);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, key), QHCA_OK);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_PD, pd2), QHCA_OK);
    CHECK_EQ(g->e->table_blocks, 0);
}

/* Every failure leaves the region exactly as it was. */
static void rereg_is_atomic(void)
{
    struct guest *g = guest_start();
    uint32_t pd = pd_create(g), pd2 = pd_create(g), key;
    struct gbuf a = guest_buf(g, 4 << 12, 12, 1);
    struct qhca_cmd good = reg_cmd(&a, pd, 0x10000, 4 << 12, RW), cmd;
    struct vhca_mr before, *mr;
    const unsigned all = QHCA_REREG_TRANS | QHCA_REREG_PD | QHCA_REREG_ACCESS;

    key = guest_create(g, &good);
    mr = vhca_table_get(&g->e->memory->mr, key >> 8);
    before = *mr;
#define TRY(what, change, status) \
    do { \
        cmd = good; \
        cmd.reg_mr.pdn = htole32(pd2); \
        change; \
        CHECK_EQ(rereg(g, cmd, key, what), status); \
        CHECK(memcmp(&before, mr, sizeof(before)) == 0); \
        CHECK_EQ(g->e->table_blocks, 4); \
        CHECK_EQ(mr->pd->users, 1); \
    } while (0)
    TRY(0, (void)0, QHCA_ERR_PARAM);
    TRY(8, (void)0, QHCA_ERR_PARAM);
    TRY(all, cmd.reg_mr.pdn = htole32(pd2 ^ 2), QHCA_ERR_OBJ);
    TRY(all, cmd.reg_mr.access = htole16(QHCA_ACCESS_REMOTE_WRITE),
        QHCA_ERR_PARAM);
    TRY(all, cmd.reg_mr.buf.depth = 9, QHCA_ERR_PARAM);
    TRY(all, cmd.reg_mr.buf.addr = 0, QHCA_ERR_DMA);
    TRY(all, cmd.reg_mr.length = htole64(1 << 30), QHCA_ERR_PARAM);
    TRY(all, cmd.reg_mr.iova = htole64(UINT64_MAX), QHCA_ERR_PARAM);
#undef TRY
    CHECK_EQ(rereg(g, good, key ^ 1, all), QHCA_ERR_OBJ);
    cmd = (struct qhca_cmd) { .opcode = htole16(QHCA_CMD_ALLOC_MW) };
    cmd.alloc_mw.pdn = htole32(pd);
    cmd.alloc_mw.type = QHCA_MW_1;
    CHECK_EQ(rereg(g, good, guest_create(g, &cmd), QHCA_REREG_ACCESS),
             QHCA_ERR_OBJ);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_PD, pd2), QHCA_OK);
}

static const struct test tests[] = {
    { "F-004 keys and domains", keys },
    { "F-004 byte-exact ranges", ranges },
    { "F-004 J-036 ends of the address space, and all of it", extreme_iova },
    { "F-014 empty regions", empty },
    { "F-010, F-011 chosen addresses", offsets },
    { "F-002, F-003 rights", rights },
    { "bad registrations are refused", bad_registrations },
    { "F-016 DMA regions and the reserved key", dma_regions },
    { "atomics", atomics },
    { "F-007 stale keys", stale_keys },
    { "F-007 max_mr regions, and one more; their keys", all_of_them },
    { "F-012 REREG_MR", reregister },
    { "F-013 a failed REREG_MR changes nothing", rereg_is_atomic },
};

TEST_MAIN(tests)
