/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: XRC, the commands: domains, SRQs in them, QPs of both
 * types.
 */
#include "harness/debug.h"
#include "harness/xrc.h"

static struct xrc *x;

static void start(void)
{
    x = xrc_new(&RC_OPTS);
}

static int dealloc_xrcd(uint32_t xrcdn)
{
    return guest_cmd_obj(g, QHCA_CMD_DEALLOC_XRCD, xrcdn);
}

/* A domain can be freed only after all its objects. */
static void domains(void)
{
    uint32_t other;

    start();
    other = xrcd_create(g);
    CHECK_EQ(dealloc_xrcd(other), QHCA_OK);
    CHECK_EQ(dealloc_xrcd(other), QHCA_ERR_OBJ);
    CHECK_EQ(dealloc_xrcd(x->xrcdn), QHCA_ERR_BUSY);
    CHECK_EQ(rc_destroy(&x->tgt), QHCA_OK);
    CHECK_EQ(dealloc_xrcd(x->xrcdn), QHCA_ERR_BUSY);
    CHECK_EQ(srq_destroy(&x->srq[0]), QHCA_OK);
    CHECK_EQ(dealloc_xrcd(x->xrcdn), QHCA_ERR_BUSY);
    CHECK_EQ(srq_destroy(&x->srq[1]), QHCA_OK);
    CHECK_EQ(dealloc_xrcd(x->xrcdn), QHCA_OK);
}

/* C-023, G-017: the CQ and PD of an SRQ can be freed only after it. */
static void srq_objects(void)
{
    uint32_t cqn;

    start();
    cqn = x->srq[0].cq.cqn;
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_CQ, cqn), QHCA_ERR_BUSY);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_PD, x->pdn[0]), QHCA_ERR_BUSY);
    CHECK_EQ(srq_destroy(&x->srq[0]), QHCA_OK);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_CQ, cqn), QHCA_OK);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, x->mr[0].key), QHCA_OK);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_PD, x->pdn[0]), QHCA_OK);
}

static void limits(void)
{
    struct qhca_cmd alloc = { .opcode = htole16(QHCA_CMD_ALLOC_XRCD) };
    struct qhca_device_attr attr;
    uint32_t xrcdn, last = 0;

    start();
    attr = device_attr(g);
    for (uint32_t n = 1; n < le32toh(attr.max_xrcd); n++) {
        REQUIRE(guest_cmd(g, &alloc, &last) == QHCA_OK);
    }
    CHECK_EQ(guest_cmd(g, &alloc, &xrcdn), QHCA_ERR_NO_RESOURCE);
    CHECK_EQ(dealloc_xrcd(last), QHCA_OK);
    CHECK_EQ(guest_cmd(g, &alloc, &xrcdn), QHCA_OK);
    CHECK(xrcdn != last);                                       /* */
    CHECK(qhca_engine_num_objects(g->e) > le32toh(attr.max_xrcd));
    qhca_engine_reset(g->e, *g->clock);
    CHECK_EQ(qhca_engine_num_objects(g->e), 0);
}

static struct qhca_cmd good_srq(void)
{
    struct qhca_cmd cmd = {
        .opcode = htole16(QHCA_CMD_CREATE_SRQ),
        .create_srq = {
            .buf = guest_buf(g, 4096, 12, 0).desc,
            .pdn = htole32(node.pdn), .uar = htole32(1),
            .max_sge = htole32(3), .log_size = 6, .log_stride = 6,
            .xrcdn = htole32(x->xrcdn), .cqn = htole32(x->srq[0].cq.cqn),
        },
    };

    return cmd;
}

static void create_srq(void)
{
    struct qhca_srqc c;
    struct qhca_cmd cmd;
    unsigned objects;
    uint32_t srqn;

    start();
    objects = qhca_engine_num_objects(g->e);
    cmd = good_srq();
    cmd.create_srq.xrcdn ^= htole32(0x800000);
    CHECK_EQ(guest_cmd(g, &cmd, &srqn), QHCA_ERR_OBJ);
    cmd = good_srq();
    cmd.create_srq.cqn = 0;
    CHECK_EQ(guest_cmd(g, &cmd, &srqn), QHCA_ERR_OBJ);
    cmd = good_srq();
    cmd.create_srq.buf.num_blocks = htole32(2);
    cmd.create_srq.buf.depth = 1;
    cmd.create_srq.buf.addr = htole64(1ull << 60);
    CHECK_EQ(guest_cmd(g, &cmd, &srqn), QHCA_ERR_DMA);
    CHECK_EQ(qhca_engine_num_objects(g->e), objects);
    CHECK_EQ(cq_query(&x->srq[0].cq).users, htole32(1));

    CHECK_EQ(srq_query(&x->srq[1], &c), QHCA_OK);
    CHECK_EQ(le32toh(c.xrcdn), x->xrcdn);
    CHECK_EQ(le32toh(c.cqn), x->srq[1].cq.cqn);
    CHECK_EQ(le32toh(c.pdn), x->pdn[1]);

    /* Without a domain the CQ is ignored. */
    cmd = good_srq();
    cmd.create_srq.xrcdn = 0;
    cmd.create_srq.cqn = htole32(0xffffffff);
    CHECK_EQ(guest_cmd(g, &cmd, &srqn), QHCA_OK);
}

static void cq_in_error(void)
{
    struct qhca_cmd cmd;
    uint32_t srqn;

    x = xrc_loop();
    xrc_recv(x, 0, 1, 4);
    guest_spoil(g, gbuf_addr(&x->srq[0].cq.buf, 0), 64);
    struct rc_wr wr = xrc_wr(x, 0, QHCA_WR_SEND, 4);

    rc_do(&x->ini, &wr);
    g->bad_from = g->bad_to = 0;
    cmd = good_srq();
    CHECK_EQ(guest_cmd(g, &cmd, &srqn), QHCA_ERR_STATE);
}

static struct qhca_create_qp good_qp(uint8_t type)
{
    struct qhca_create_qp c = {
        .type = type, .uar = htole32(1), .sq_log_size = 4, .sq_log_stride = 7,
        .rq_log_size = 4, .rq_log_stride = 6,
    };

    if (type == QHCA_QPT_XRC_TGT) {
        c.xrcdn = htole32(x->xrcdn);
    } else {
        c.sq = guest_buf(g, 4096, 12, 0).desc;
        c.pdn = htole32(node.pdn);
        c.send_cqn = htole32(x->ini.scq.cqn);
    }
    if (type == QHCA_QPT_RC) {
        c.recv_cqn = c.send_cqn;
        c.rq = guest_buf(g, 4096, 12, 0).desc;
    }
    return c;
}

/* each type of QP accepts only its own objects. */
static void create_qp(void)
{
    struct qhca_create_qp c;
    unsigned objects;

#define REFUSE(type, field, val, status) \
    (c = good_qp(QHCA_QPT_##type), c.field = (val), \
     CHECK_EQ(rc_create_raw(g, &c, NULL), (status)))
    start();
    objects = qhca_engine_num_objects(g->e);
    REFUSE(XRC_TGT, sq, x->ini.sq.desc, QHCA_ERR_PARAM);
    REFUSE(XRC_TGT, rq, x->ini.sq.desc, QHCA_ERR_PARAM);
    REFUSE(XRC_TGT, srqn, htole32(x->srq[0].srqn), QHCA_ERR_PARAM);
    REFUSE(XRC_TGT, xrcdn, htole32(x->xrcdn ^ 0x800000), QHCA_ERR_OBJ);
    REFUSE(XRC_TGT, xrcdn, 0, QHCA_ERR_OBJ);
    REFUSE(XRC_TGT, uar, htole32(NUM_UARS), QHCA_ERR_PARAM);
    REFUSE(XRC_INI, rq, x->ini.sq.desc, QHCA_ERR_PARAM);
    REFUSE(XRC_INI, srqn, htole32(x->srq[0].srqn), QHCA_ERR_PARAM);
    REFUSE(XRC_INI, xrcdn, htole32(x->xrcdn), QHCA_ERR_PARAM);
    REFUSE(XRC_INI, pdn, 0, QHCA_ERR_OBJ);
    REFUSE(XRC_INI, send_cqn, 0, QHCA_ERR_OBJ);
    REFUSE(RC, xrcdn, htole32(x->xrcdn), QHCA_ERR_PARAM);
    /* Only packets can name the SRQ of a domain. */
    c = good_qp(QHCA_QPT_RC);
    memset(&c.rq, 0, sizeof(c.rq));
    c.srqn = htole32(x->srq[0].srqn);
    CHECK_EQ(rc_create_raw(g, &c, NULL), QHCA_ERR_PARAM);
    CHECK_EQ(qhca_engine_num_objects(g->e), objects);

    for (unsigned type = 0; type < 256; type++) {
        bool xrc = type == QHCA_QPT_XRC_INI || type == QHCA_QPT_XRC_TGT;

        if (type != QHCA_QPT_RAW &&
            (type < QHCA_QPT_GSI || type > QHCA_QPT_UD)) {
            c = good_qp((uint8_t)type);
            CHECK_EQ(rc_create_raw(g, &c, NULL),
                     xrc ? QHCA_OK : QHCA_ERR_NOT_SUPPORTED);
        }
    }
}

static void query_qp(void)
{
    struct qhca_qpc c;

    x = xrc_loop();
    c = rc_query(&x->ini);
    CHECK_EQ(c.type, QHCA_QPT_XRC_INI);
    CHECK_EQ(le32toh(c.pdn), node.pdn);
    CHECK_EQ(le32toh(c.send_cqn), x->ini.scq.cqn);
    CHECK_EQ(le32toh(c.recv_cqn), 0);
    CHECK_EQ(le32toh(c.xrcdn), 0);
    c = rc_query(&x->tgt);
    CHECK_EQ(c.type, QHCA_QPT_XRC_TGT);
    CHECK_EQ(le32toh(c.pdn), 0);
    CHECK_EQ(le32toh(c.send_cqn), 0);
    CHECK_EQ(le32toh(c.recv_cqn), 0);
    CHECK_EQ(le32toh(c.xrcdn), x->xrcdn);
    CHECK_EQ(le32toh(c.srqn), 0);

    struct rc_wr wr = xrc_wr(x, 1, QHCA_WR_RDMA_WRITE, 4);

    rc_do(&x->ini, &wr);
    CHECK_EQ(le32toh(rc_query(&x->tgt).srqn), x->srq[1].srqn);
}

/* J-020: doorbells for queues that the QP lacks are refused. */
static void doorbells(void)
{
    uint64_t bad;

    x = xrc_loop();
    bad = counter(g, QHCA_CNT_BAD_DOORBELL);
    ring(g, 1, QHCA_DB_SQ, x->tgt.qpn, 1);
    ring(g, 1, QHCA_DB_RQ, x->tgt.qpn, 1);
    ring(g, 1, QHCA_DB_RQ, x->ini.qpn, 1);
    ring(g, 2, QHCA_DB_SRQ, x->srq[0].srqn, 1);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), bad + 4);
}

static const struct test tests[] = {
    { "G-012 XRC domains", domains },
    { "C-023 G-012 G-017 objects of an SRQ", srq_objects },
    { "A-022 J-001 J-004 max_xrcd domains, and one more", limits },
    { "G-012 SRQs with wrong parameters", create_srq },
    { "C-028 SRQs with a CQ in error", cq_in_error },
    { "A-014 A-015 G-012 QPs with wrong parameters", create_qp },
    { "A-072 query_qp", query_qp },
    { "J-020 doorbells", doorbells },
};

TEST_MAIN(tests)
