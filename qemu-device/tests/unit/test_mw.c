/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory windows: binding, and how a window ends.
 */
#include "harness/windows.h"
#include "tables.h"

/* ---- objects ---- */

static void alloc(void)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_ALLOC_MW) };
    unsigned before;

    start();
    before = qhca_engine_num_objects(g->e);
    for (unsigned type = 0; type < 256; type++) {
        bool known = type == QHCA_MW_1 || type == QHCA_MW_2B;
        uint32_t key;

        cmd.alloc_mw.type = (uint8_t)type;
        cmd.alloc_mw.pdn = htole32(node.pdn);
        CHECK_EQ(guest_cmd(g, &cmd, &key), known ? QHCA_OK : QHCA_ERR_PARAM);
        if (!known) {
            continue;
        }
        CHECK(!usable(&qp, key, at(0), 1, RD));
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, key), QHCA_ERR_OBJ);
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_MW, key), QHCA_OK);
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_MW, key), QHCA_ERR_OBJ);
    }
    cmd.alloc_mw.type = QHCA_MW_1;
    cmd.alloc_mw.pdn = htole32(node.pdn ^ 1);
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_OBJ);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_MW, node.mr.key), QHCA_ERR_OBJ);
    CHECK_EQ(qhca_engine_num_objects(g->e), before);
}

static void all_of_them(void)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_ALLOC_MW) };
    struct qhca_device_attr attr;

    start();
    attr = device_attr(g);
    cmd.alloc_mw.type = QHCA_MW_1;
    cmd.alloc_mw.pdn = htole32(node.pdn);
    for (uint32_t i = 0; i < le32toh(attr.max_mw); i++) {
        REQUIRE(guest_cmd(g, &cmd, NULL) == QHCA_OK);
    }
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_NO_RESOURCE);
    mr_create(g, node.pdn, 4096, 0);            /* regions have places left */
}

/* ---- binding ---- */

/* Payload is read where it is, with any key that names memory. */
static void views(void)
{
    struct vhca_key_user user = { .reserved = true };
    uint32_t keys[3], key;

    start();
    user.pd = vhca_qp_get(g->e, qp.qpn)->pd;
    key = next_key(mw_create(g, node.pdn, QHCA_MW_1));
    bind_window(&qp, key, 100, 200, RD, QHCA_WC_SUCCESS);
    keys[0] = key;
    keys[1] = node.mr.key;
    keys[2] = VHCA_RESERVED_LKEY;
    for (unsigned i = 0; i < ARRAY_SIZE(keys); i++) {
        struct vhca_view view = { 0 };

        CHECK(vhca_key_view(g->e, &user, keys[i], at(100), 200, i ? 0 : RD,
                            &view));
        CHECK_EQ(view.len, 200);
        CHECK(view.piece[0].base == guest_ptr(g, at(100), 200));
    }
}

static void type1(void)
{
    struct rc_wr wr;
    uint32_t key, old;

    start();
    old = mw_create(g, node.pdn, QHCA_MW_1);
    key = next_key(old);
    bind_window(&qp, key, 100, 200, RD, QHCA_WC_SUCCESS);
    CHECK(usable(&qp, key, at(100), 200, RD));
    CHECK(usable(&peer, key, at(100), 200, RD));                /* F-045 */
    CHECK(!usable(&qp, key, at(99), 1, RD));
    CHECK(!usable(&qp, key, at(100), 201, RD));
    CHECK(!usable(&qp, key, at(100), 1, WR));
    CHECK(!usable(&qp, key, at(100), 1, 0));            /* no local use */
    CHECK(!usable(&qp, key, at(100), 1, QHCA_ACCESS_LOCAL_WRITE));
    old = key;
    key = next_key(key);
    bind_window(&qp, key, 1000, 10, WR, QHCA_WC_SUCCESS);   /* while bound */
    CHECK(!usable(&qp, old, at(100), 1, RD));                   /* F-036 */
    CHECK(!usable(&qp, old, at(1000), 1, WR));
    CHECK(usable(&qp, key, at(1000), 10, WR));
    old = key;
    key = next_key(key);
    bind_window(&qp, key, 0, 0, 0, QHCA_WC_SUCCESS);        /* length 0 */
    CHECK(!usable(&qp, old, at(1000), 1, WR));
    CHECK(!usable(&qp, key, at(0), 1, RD));
    bind_window(&qp, next_key(key), 0, 10, RD, QHCA_WC_SUCCESS);
    key = next_key(key);
    wr = wr_bind(&qp, next_key(key), 0, 0, 0);      /* without a region */
    wr.mr_key = 0;
    rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
    CHECK(!usable(&qp, key, at(0), 1, RD));
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, node.mr.key), QHCA_OK);
}

/* F-039: only rights to write need a writable region. */
static void to_read(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
        struct rc_wr wr;

        start();
        wr = wr_bind(&qp, mw_create(g, node.pdn, types[i]) ^ 1, 0, 100, RD);
        wr.mr_key = region(QHCA_ACCESS_MW_BIND, 0);
        rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
        CHECK(usable(&qp, wr.key, at(0), 100, RD));
        CHECK(!usable(&qp, wr.key, at(0), 1, WR));
    }
}

static void type2(void)
{
    uint32_t key;

    start();
    key = mw_create(g, node.pdn, QHCA_MW_2B);
    for (unsigned n = 0; n < 300; n++) {                /* any variant */
        bind_window(&qp, key, n, 100, RD | WR, QHCA_WC_SUCCESS);
        CHECK(usable(&qp, key, at(n), 100, WR));
        invalidate(&qp, key, QHCA_WC_SUCCESS);
        CHECK(!usable(&qp, key, at(n), 1, RD));
        key = n % 7 ? next_key(key) : key;
    }
    bind_window(&qp, key, 0, 100, RD, QHCA_WC_SUCCESS);
    bind_window(&qp, next_key(key), 0, 100, RD, QHCA_WC_MW_BIND_ERR);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);                      /* F-037 */
    CHECK(usable(&qp, key, at(0), 100, RD));            /* still bound */
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_MW, key), QHCA_OK);
    /* No earlier bind keeps the region alive. */
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, node.mr.key), QHCA_OK);
}

/* Each bind has one mistake. */
enum bad_bind {
    BIND_NONE, BIND_ON_MR, BIND_ON_FAST, BIND_MW_PD, BIND_MR_PD, BIND_MR_RIGHT,
    BIND_MR_ZERO, BIND_MR_FREE, BIND_MR_IS_MW, BIND_MR_KEY, BIND_LOW, BIND_HIGH,
    BIND_WRAP, BIND_READ_ONLY, BIND_RIGHTS, BIND_LOCAL, BIND_DMA,
    BIND_SAME_KEY, BIND_TYPE1_ZERO,         /* type 1 only */
    BIND_NOTHING,                           /* type 2 only */
    BAD_BINDS
};

/* A fast region that was Valid with all rights, and is Free again. */
static uint32_t was_bindable(void)
{
    struct fast f = fast_create(&node, 4, 3);
    struct rc_wr wr = wr_reg(&qp, &f, f.key, at(0), QHCA_ACCESS_LOCAL_WRITE |
                                                    QHCA_ACCESS_MW_BIND);

    rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
    invalidate(&qp, f.key, QHCA_WC_SUCCESS);
    return f.key;
}

static void spoil(struct rc_wr *wr, unsigned type, enum bad_bind how,
                  uint32_t pd2)
{
    const unsigned all = REMOTE_ALL | QHCA_ACCESS_LOCAL_WRITE |
                         QHCA_ACCESS_MW_BIND;
    uint32_t pd = node.pdn;

    switch (how) {
    case BIND_NONE:
        wr->key ^= 0x4200;
        break;
    case BIND_ON_MR:
        wr->key = node.mr.key;
        break;
    case BIND_ON_FAST:
        wr->key = region(0, QHCA_MR_FAST);
        break;
    case BIND_MW_PD:
        wr->key = mw_create(g, pd2, type) ^ 1;
        break;
    case BIND_MR_PD:
        node.pdn = pd2;
        wr->mr_key = region(all, 0);
        break;
    case BIND_MR_RIGHT:
        wr->mr_key = region(all & ~QHCA_ACCESS_MW_BIND, 0);
        break;
    case BIND_MR_ZERO:
        wr->mr_key = region(all | ZERO, 0);
        break;
    case BIND_MR_FREE:
        wr->mr_key = was_bindable();
        wr->length = 4096;
        break;
    case BIND_MR_IS_MW:
        wr->mr_key = mw_create(g, pd, QHCA_MW_1);
        break;
    case BIND_MR_KEY:
        wr->mr_key ^= 1;
        break;
    case BIND_LOW:
        wr->addr = at(0) - 1;
        break;
    case BIND_HIGH:
        wr->length = NODE_MEM + 1;
        break;
    case BIND_WRAP:
        wr->length = UINT64_MAX;
        break;
    case BIND_READ_ONLY:
        wr->mr_key = region(QHCA_ACCESS_MW_BIND, 0);
        break;
    case BIND_RIGHTS:
        wr->access = 0x40 | RD;
        break;
    case BIND_LOCAL:
        wr->access = QHCA_ACCESS_LOCAL_WRITE | RD;
        break;
    case BIND_DMA:
        wr->mr_key = region(0, QHCA_MR_DMA);
        break;
    case BIND_SAME_KEY:
        wr->key ^= 3;
        break;
    case BIND_TYPE1_ZERO:
        wr->access |= ZERO;
        break;
    default:
        wr->length = 0;
        break;
    }
    node.pdn = pd;
}

/* A window of type 1 is bound before and stays bound; one of type 2 is not. */
static void refused_binds(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(types) * BAD_BINDS; i++) {
        unsigned type = types[i / BAD_BINDS], how = i % BAD_BINDS;
        uint32_t key;
        struct rc_wr wr;

        if (type == QHCA_MW_1 ? how == BIND_NOTHING :
            how == BIND_SAME_KEY || how == BIND_TYPE1_ZERO) {
            continue;
        }
        start();
        key = mw_create(g, node.pdn, type);
        if (type == QHCA_MW_1) {
            bind_window(&qp, key ^ 2, 50, 100, RD, QHCA_WC_SUCCESS);
        }
        wr = wr_bind(&qp, key ^ 1, 0, NODE_MEM, RD | WR);
        spoil(&wr, type, how, pd_create(g));
        tap_note("type %u, mistake %u", type, how);
        rc_finish(&qp, &wr, I_034_RQ);
        CHECK_EQ(rc_state(&qp), I_034_RQ_QP);
        CHECK(how == BIND_ON_MR || !usable(&qp, wr.key, at(0), 1, RD));
        CHECK(usable(&qp, node.mr.key, at(0), NODE_MEM, RD));
        CHECK_EQ(usable(&qp, key ^ 2, at(50), 100, RD), type == QHCA_MW_1);
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_MW, key), QHCA_OK);
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, node.mr.key), QHCA_OK);
    }
}

/* ---- the end of a window ---- */

static void invalidation(void)
{
    for (unsigned i = 0; i < 2 * ARRAY_SIZE(types); i++) {
        unsigned type = types[i / 2];
        bool own = i % 2;
        uint32_t key;

        start_two_pairs();
        key = mw_create(g, node.pdn, type) ^ 1;
        bind_window(&qp, key, 0, 100, RD, QHCA_WC_SUCCESS);
        invalidate(own ? &qp : &other, key,
                   own && type != QHCA_MW_1 ? QHCA_WC_SUCCESS :
                                              QHCA_WC_MW_BIND_ERR);
        CHECK_EQ(usable(&qp, key, at(0), 1, RD), !own || type == QHCA_MW_1);
        if (own && type != QHCA_MW_1) {         /* Free: any QP of the PD */
            invalidate(&other, key, QHCA_WC_SUCCESS);
            bind_window(&other, key, 0, 100, RD, QHCA_WC_SUCCESS);
            CHECK(!usable(&qp, key, at(0), 1, RD));
            CHECK(usable(&other, key, at(0), 1, RD));
        }
    }
}

/*
 * IBTA table 78: any QP of its PD, and no other, may use a Free window. It
 * makes no difference whether the window has been bound before.
 */
static void foreign_invalidation(void)
{
    for (unsigned before = 0; before < 2; before++) {
        struct rc_opts o = RC_OPTS;
        struct rc_qp foreign;
        struct node strange;
        uint32_t key;

        start_two_pairs();
        o.qp_flags = KERNEL_QP;
        strange = node;
        strange.pdn = pd_create(g);
        foreign = rc_scripted(&strange, &o, &far);
        key = mw_create(g, node.pdn, QHCA_MW_2B);
        if (before) {
            bind_window(&qp, key ^ 1, 0, 100, RD, QHCA_WC_SUCCESS);
            invalidate(&qp, key ^ 1, QHCA_WC_SUCCESS);
            key ^= 1;
        }
        invalidate(&foreign, key, QHCA_WC_MW_BIND_ERR);
        CHECK_EQ(rc_state(&foreign), QHCA_QPS_ERR);
        /* The window has not changed: its own PD can invalidate and bind it. */
        invalidate(&other, key, QHCA_WC_SUCCESS);
        bind_window(&other, key, 0, 100, RD, QHCA_WC_SUCCESS);
        CHECK(usable(&other, key, at(0), 100, RD));
    }
}

/* Objects that a bound window keeps alive, and others. */
static void holding(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
        struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_REREG_MR) };
        uint32_t key, pd2;

        start();
        pd2 = pd_create(g);
        key = mw_create(g, pd2, types[i]);
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_PD, pd2), QHCA_ERR_BUSY);
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_MW, key), QHCA_OK);
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_PD, pd2), QHCA_OK);

        key = mw_create(g, node.pdn, types[i]) ^ 1;
        bind_window(&qp, key, 0, 100, RD, QHCA_WC_SUCCESS);
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, node.mr.key),
                 QHCA_ERR_BUSY);                                /* F-009 */
        cmd.reg_mr.key = htole32(node.mr.key);
        cmd.reg_mr.rereg = QHCA_REREG_ACCESS;
        CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_BUSY);
        CHECK_EQ(rc_destroy(&qp), QHCA_OK);
        CHECK_EQ(usable(&qp, key, at(0), 1, RD), types[i] == QHCA_MW_1);
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_MW, key ^ 0x80), QHCA_OK);
        CHECK(!usable(&qp, key, at(0), 1, RD));
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, node.mr.key), QHCA_OK);
    }
}

static void reset(void)
{
    start();
    for (unsigned i = 0; i < 100; i++) {
        uint32_t key = mw_create(g, node.pdn, i % 2 ? QHCA_MW_1 : QHCA_MW_2B);

        bind_window(&qp, key ^ 1, i, 10, RD, QHCA_WC_SUCCESS);
    }
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    CHECK_EQ(qhca_engine_num_objects(g->e), 0);
    CHECK_EQ(g->e->memory->num_mw, 0);
}

static const struct test tests[] = {
    { "F-035 ALLOC_MW, DEALLOC_MW", alloc },
    { "J-001 max_mw windows, and one more", all_of_them },
    { "F-036 F-045 B-009 type 1", type1 },
    { "F-037 B-009 type 2", type2 },
    { "memory is read in place", views },
    { "F-039 read-only windows", to_read },
    { "F-036 F-037 F-038 F-039 I-034 refused binds", refused_binds },
    { "F-049 F-050 LOCAL_INV", invalidation },
    { "F-006 F-050 LOCAL_INV by a QP of another PD", foreign_invalidation },
    { "F-009 F-052 F-054 objects a window keeps alive", holding },
    { "J-021 reset", reset },
};

TEST_MAIN(tests)
