/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hostile guest and a hostile network: seeded random commands, doorbells, ring
 * contents, frames and failures against two connected QPs. What is checked is
 * what must hold whatever comes: no sanitizer report, no endless work, no DMA
 * after the device has stopped, the engine's own books in order.
 *
 * FUZZ_ITERATIONS and FUZZ_SEED in the environment; the seed of a failure is in
 * its message.
 */
#include "internal.h"
#include "qp.h"
#include "rc.h"

#define STEPS       400         /* per session */
#define POOL        24          /* object numbers remembered per kind */
#define KINDS       6

enum kind { PD, MR, CQ, EQ, QP, ETHQ };

struct fuzz {
    uint64_t rng, seed;
    struct node n;
    struct rc_qp a, b;
    uint32_t pool[KINDS][POOL];
    unsigned num[KINDS];
    struct gbuf mem[4];         /* for rings and regions, one per depth */
    unsigned fatals, resets, ok, refused;
};

static uint64_t rnd(struct fuzz *f, uint64_t n)
{
    return (test_random(&f->rng) >> 11) % n;
}

static bool one_in(struct fuzz *f, unsigned n)
{
    return rnd(f, n) == 0;
}

/* Numbers that break things: small, around powers of two, at the ends. */
static uint64_t nasty(struct fuzz *f)
{
    uint64_t v = 1ull << rnd(f, 64);

    switch (rnd(f, 5)) {
    case 0:
        return rnd(f, 20);
    case 1:
        return v - rnd(f, 3);
    case 2:
        return v + rnd(f, 3);
    case 3:
        return UINT64_MAX - rnd(f, 20);
    default:
        return test_random(&f->rng);
    }
}

/* A number of that kind: mostly one that exists or did. */
static uint32_t some(struct fuzz *f, enum kind k)
{
    if (f->num[k] && !one_in(f, 12)) {
        return f->pool[k][rnd(f, f->num[k])];
    }
    return (uint32_t)nasty(f);
}

static void remember(struct fuzz *f, enum kind k, uint32_t obj)
{
    if (f->num[k] < POOL) {
        f->pool[k][f->num[k]++] = obj;
    } else {
        f->pool[k][rnd(f, POOL)] = obj;
    }
}

static uint64_t some_addr(struct fuzz *f)
{
    if (one_in(f, 8)) {
        return nasty(f);
    }
    return f->n.mr.addr + rnd(f, NODE_MEM);
}

/* ---- commands ---- */

static struct qhca_buf some_buf(struct fuzz *f)
{
    struct qhca_buf b = f->mem[rnd(f, 4)].desc;

    if (one_in(f, 6)) {
        ((uint8_t *)&b)[rnd(f, sizeof(b))] = (uint8_t)nasty(f);
    }
    return b;
}

static void some_body(struct fuzz *f, struct qhca_cmd *c)
{
    switch (le16toh(c->opcode)) {
    case QHCA_CMD_CREATE_EQ:
        c->create_eq.buf = some_buf(f);
        c->create_eq.vector = htole16((uint16_t)rnd(f, NUM_VECTORS + 1));
        c->create_eq.log_size = (uint8_t)rnd(f, 9);
        break;
    case QHCA_CMD_CREATE_ETHQ:
        c->create_ethq.buf = some_buf(f);
        c->create_ethq.cqn = htole32(some(f, CQ));
        c->create_ethq.log_size = (uint8_t)rnd(f, 8);
        c->create_ethq.dir = (uint8_t)rnd(f, 3);
        break;
    case QHCA_CMD_REG_MR:
    case QHCA_CMD_REREG_MR:
        c->reg_mr.buf = some_buf(f);
        c->reg_mr.iova = htole64(some_addr(f));
        c->reg_mr.length = htole64(one_in(f, 5) ? nasty(f) : rnd(f, 40000));
        c->reg_mr.pdn = htole32(some(f, PD));
        c->reg_mr.key = htole32(some(f, MR));
        c->reg_mr.access = htole16((uint16_t)rnd(f, 0x22));
        c->reg_mr.type = (uint8_t)(one_in(f, 10) ? rnd(f, 3) : 0);
        c->reg_mr.rereg = (uint8_t)rnd(f, 9);
        break;
    case QHCA_CMD_CREATE_CQ:
    case QHCA_CMD_RESIZE_CQ:
        c->create_cq.buf = some_buf(f);
        c->create_cq.uar = htole32((uint32_t)rnd(f, NUM_UARS + 1));
        c->create_cq.eqn = htole32(some(f, EQ));
        c->create_cq.cqn = htole32(some(f, CQ));
        c->create_cq.log_size = (uint8_t)rnd(f, 10);
        break;
    case QHCA_CMD_MODIFY_QP:
        c->modify_qp.qpn = htole32(some(f, QP));
        c->modify_qp.attr_mask = htole32((uint32_t)nasty(f) | QHCA_QP_STATE);
        break;
    case QHCA_CMD_SET_PORT:
        memcpy(c->set_port.mac, test_mac, 6);
        c->set_port.port = 1;
        c->set_port.flags = (uint8_t)rnd(f, 9);
        c->set_port.mtu = htole32((uint32_t)rnd(f, 9100));
        break;
    default:
        c->obj.obj = htole32(some(f, (enum kind)rnd(f, KINDS)));
        break;
    }
}

/* Mailboxes: a QP to create or attributes, with a byte or two wrong. */
static void fill_mbox(struct fuzz *f, unsigned opcode, uint8_t *mbox)
{
    struct qhca_create_qp c = {
        .sq = some_buf(f), .rq = some_buf(f), .pdn = htole32(some(f, PD)),
        .uar = htole32(1), .send_cqn = htole32(some(f, CQ)),
        .recv_cqn = htole32(some(f, CQ)), .type = QHCA_QPT_RC,
        .sq_log_size = (uint8_t)rnd(f, 5), .sq_log_stride = 7,
        .rq_log_size = (uint8_t)rnd(f, 5), .rq_log_stride = 6,
        .max_send_sge = htole32(4), .max_recv_sge = htole32(3),
    };
    struct qhca_qp_attr a = rc_attr(&f->a);

    a.state = (uint8_t)rnd(f, 8);
    memset(mbox, 0, 4096);
    if (opcode == QHCA_CMD_CREATE_QP) {
        memcpy(mbox, &c, sizeof(c));
    } else if (opcode == QHCA_CMD_MODIFY_QP) {
        memcpy(mbox, &a, sizeof(a));
    }
    if (one_in(f, 3)) {
        mbox[rnd(f, 80)] = (uint8_t)nasty(f);
    }
}

static void random_command(struct fuzz *f)
{
    static const uint8_t opcodes[] = {
        0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x10, 0x11, 0x12, 0x13, 0x20,
        0x20, 0x21, 0x28, 0x28, 0x29, 0x29, 0x2a, 0x30, 0x30, 0x31, 0x32, 0x33,
        0x33, 0x40, 0x40, 0x41, 0x41, 0x41, 0x42, 0x43,
    };
    static const struct {
        uint8_t opcode, kind;
    } creates[] = {
        { QHCA_CMD_ALLOC_PD, PD }, { QHCA_CMD_REG_MR, MR },
        { QHCA_CMD_CREATE_CQ, CQ }, { QHCA_CMD_CREATE_EQ, EQ },
        { QHCA_CMD_CREATE_QP, QP }, { QHCA_CMD_CREATE_ETHQ, ETHQ },
    };
    struct qhca_cmd c = { 0 };
    uint32_t obj = 0;
    unsigned i;
    int status;

    c.opcode = htole16(one_in(f, 30) ? (uint16_t)nasty(f) :
                       opcodes[rnd(f, sizeof(opcodes))]);
    some_body(f, &c);
    if (one_in(f, 8)) {
        c.body[rnd(f, sizeof(c.body))] = (uint8_t)nasty(f);
    }
    c.mailbox = htole64(one_in(f, 20) ? nasty(f) : f->n.g->mbox);
    fill_mbox(f, le16toh(c.opcode), guest_ptr(f->n.g, f->n.g->mbox, 4096));
    status = guest_cmd(f->n.g, &c, &obj);
    f->ok += status == QHCA_OK;
    f->refused += status > 0;
    for (i = 0; status == QHCA_OK && i < ARRAY_SIZE(creates); i++) {
        if (creates[i].opcode == le16toh(c.opcode)) {
            remember(f, (enum kind)creates[i].kind, obj);
        }
    }
}

/* ---- doorbells and rings ---- */

static void random_doorbell(struct fuzz *f)
{
    static const uint8_t offs[] = {
        QHCA_DB_SQ, QHCA_DB_RQ, QHCA_DB_SRQ, QHCA_DB_CQ_ARM, QHCA_DB_EQ,
        QHCA_DB_ETH,
    };
    static const enum kind kinds[] = { QP, QP, QP, CQ, EQ, ETHQ };
    unsigned which = (unsigned)rnd(f, sizeof(offs));
    uint32_t index = one_in(f, 4) ? (uint32_t)nasty(f) : (uint32_t)rnd(f, 70);

    ring(f->n.g, one_in(f, 6) ? (unsigned)nasty(f) : which >= 4 ? 0 : 1,
         one_in(f, 20) ? (unsigned)rnd(f, 4096) : offs[which],
         some(f, kinds[which]), index);
    if (one_in(f, 1000)) {
        ring(f->n.g, 0, QHCA_DB_CMD, 0, (uint32_t)nasty(f));
    }
}

static void random_wr(struct fuzz *f, struct rc_qp *q)
{
    struct rc_wr wr = rc_wr(q, (uint8_t)rnd(f, 9), rnd(f, NODE_MEM / 2),
                            (uint32_t)rnd(f, 20000));
    unsigned i;

    wr.num_sge = (unsigned)rnd(f, 5);
    wr.flags = (uint8_t)rnd(f, one_in(f, 5) ? 256 : 8);
    wr.inline_len = (unsigned)rnd(f, 70);
    wr.imm = (uint32_t)nasty(f);
    for (i = 0; i < wr.num_sge; i++) {
        wr.sge[i].addr = some_addr(f);
        wr.sge[i].length = one_in(f, 9) ? (uint32_t)nasty(f) :
                                          (uint32_t)rnd(f, 9000);
        wr.sge[i].lkey = one_in(f, 9) ? some(f, MR) : f->n.mr.key;
    }
    rc_aim(&wr, &f->n, rnd(f, NODE_MEM / 2) & ~7ull);
    if (one_in(f, 9)) {
        wr.raddr = nasty(f);
        wr.rkey = some(f, MR);
    }
    rc_put(q, &wr);
    if (!one_in(f, 3)) {
        rc_ring(q);
    }
}

static void random_recv(struct fuzz *f, struct rc_qp *q)
{
    struct qhca_seg_le sge[4] = { { 0 } };
    unsigned i, n = (unsigned)rnd(f, 4);

    for (i = 0; i < n; i++) {
        sge[i].addr = some_addr(f);
        sge[i].length = (uint32_t)rnd(f, 20000);
        sge[i].lkey = one_in(f, 12) ? some(f, MR) : f->n.mr.key;
    }
    rc_recv_raw(q, rnd(f, 100), one_in(f, 20) ? (unsigned)nasty(f) & 0xffff : n,
                sge);
}

/* Writes over whatever stands in guest memory below the heap's end. */
static void corrupt_memory(struct fuzz *f)
{
    struct guest *g = f->n.g;
    uint64_t addr = RAM_BASE + rnd(f, g->brk - RAM_BASE - 8), v = nasty(f);

    memcpy(guest_ptr(g, addr, 8), &v, 1 + rnd(f, 8));
}

/* ---- frames ---- */

static void random_frame(struct fuzz *f)
{
    struct rc_qp *q = one_in(f, 2) ? &f->a : &f->b;
    struct qhca_qp *dev = qhca_qp_get(f->n.g->e, q->qpn);
    struct roce_packet p = peer_packet(q, (uint8_t)rnd(f, 0x16), 0);
    uint8_t frame[MAX_FRAME] = { 0 };
    size_t len;

    if (dev) {
        p.psn = (roce_opcode(p.opcode)->flags & OPF_RESPONSE ?
                 dev->req.una_psn : dev->rsp.epsn) + (uint32_t)rnd(f, 4);
        p.psn = (p.psn - (uint32_t)rnd(f, 3)) & PSN_MASK;
    }
    if (one_in(f, 10)) {
        p.psn = (uint32_t)nasty(f) & PSN_MASK;
        p.opcode = (uint8_t)nasty(f);
    }
    p.va = some_addr(f);
    p.rkey = one_in(f, 6) ? some(f, MR) : f->n.mr.key;
    p.dma_len = one_in(f, 6) ? (uint32_t)nasty(f) : (uint32_t)rnd(f, 5000);
    p.syndrome = one_in(f, 3) ? (uint8_t)nasty(f) : AETH_ACK;
    p.payload_len = one_in(f, 3) ? 1024 : rnd(f, 1100);
    if (!(roce_opcode(p.opcode)->flags & OPF_PAYLOAD) && !one_in(f, 10)) {
        p.payload_len = 0;
    }
    len = roce_finish(&p, frame);
    while (one_in(f, 3)) {
        frame[rnd(f, len)] ^= (uint8_t)(1u << rnd(f, 8));
    }
    if (one_in(f, 10)) {
        len = rnd(f, len + 40);
    }
    guest_rx(f->n.g, frame, len);
}

/* ---- circumstances ---- */

static void random_trouble(struct fuzz *f)
{
    struct guest *g = f->n.g;

    switch (rnd(f, 8)) {
    case 0:
        g->bad_from = RAM_BASE + rnd(f, g->brk - RAM_BASE);
        g->bad_to = g->bad_from + (1ull << rnd(f, 14));
        break;
    case 1:
        g->bad_from = g->bad_to = 0;
        break;
    case 2:
        g->net_blocked = !g->net_blocked;
        if (!g->net_blocked) {
            qhca_engine_tx_ready(g->e, *g->clock);
        }
        break;
    case 3:
        qhca_engine_set_link(g->e, *g->clock, rnd(f, 2));
        break;
    case 4:
        reg_write(g, (unsigned)rnd(f, 0x60), (uint32_t)nasty(f));
        reg_read(g, (unsigned)rnd(f, 0x60));
        break;
    case 5:
        qhca_engine_tick(g->e, *g->clock);
        break;
    default:
        guest_advance(g, rnd(f, 2) ? rnd(f, 100000) : 20000000);
        break;
    }
}

static void check_books(struct fuzz *f)
{
    struct qhca_engine *e = f->n.g->e;
    uint64_t blocks = 0;
    uint32_t i;

    REQUIRE(!e->busy);
    REQUIRE(f->n.g->dma_after_stop == 0);
    REQUIRE(e->timers.used <= e->timers.reserved || !e->timers.used);
    for (i = 0; i < e->cq.size; i++) {
        struct qhca_cq *cq = qhca_table_at(&e->cq, i);

        if (cq) {
            REQUIRE(cq->pi - cq->ci <= 1u << cq->log_size);
            blocks += cq->mem.block ? cq->mem.num_blocks : 0;
        }
    }
    for (i = 0; i < e->mr.size; i++) {
        struct qhca_mr *mr = qhca_table_at(&e->mr, i);

        blocks += mr && mr->mem.block ? mr->mem.num_blocks : 0;
    }
    for (i = 0; i < e->qp.size; i++) {
        struct qhca_qp *qp = qhca_table_at(&e->qp, i);

        if (qp) {
            REQUIRE(qp->sq.pi - qp->sq.ci <= qhca_wq_size(&qp->sq));
            REQUIRE(qp->rq.pi - qp->rq.ci <= qhca_wq_size(&qp->rq));
            REQUIRE(qp->sq.next - qp->sq.ci <= qp->sq.pi - qp->sq.ci);
            blocks += qp->sq.mem.block ? qp->sq.mem.num_blocks : 0;
            blocks += qp->rq.mem.block ? qp->rq.mem.num_blocks : 0;
        }
    }
    REQUIRE(blocks <= e->table_blocks);
}

/* ---- sessions ---- */

static void begin(struct fuzz *f)
{
    struct rc_opts o = RC_OPTS;
    unsigned i;

    f->n = node_new(NULL, 1);
    o.timeout = 4;
    o.retry = 2;
    o.cq_log = 5;
    f->a = rc_create(&f->n, &o);
    f->b = rc_create(&f->n, &o);
    rc_connect(&f->a, &f->b);
    for (i = 0; i < 4; i++) {
        f->mem[i] = guest_buf(f->n.g, 12 << 12, 12, i);
    }
    memset(f->num, 0, sizeof(f->num));
    remember(f, PD, f->n.pdn);
    remember(f, MR, f->n.mr.key);
    remember(f, CQ, f->a.scq.cqn);
    remember(f, CQ, f->b.rcq.cqn);
    remember(f, EQ, f->n.comp.eqn);
    remember(f, EQ, f->n.async.eqn);
    remember(f, QP, f->a.qpn);
    remember(f, QP, f->b.qpn);
}

static void step(struct fuzz *f)
{
    uint64_t what = rnd(f, 100);
    struct rc_qp *q = one_in(f, 2) ? &f->a : &f->b;

    if (what < 25) {
        random_command(f);
    } else if (what < 40) {
        random_doorbell(f);
    } else if (what < 58) {
        random_wr(f, q);
    } else if (what < 70) {
        random_recv(f, q);
    } else if (what < 85) {
        random_frame(f);
    } else if (what < 92) {
        corrupt_memory(f);
    } else {
        random_trouble(f);
    }
    guest_settle(f->n.g);
}

static void session(struct fuzz *f, unsigned steps)
{
    unsigned i;

    begin(f);
    for (i = 0; i < steps && dev_state(f->n.g) == QHCA_STATE_RUNNING; i++) {
        step(f);
        if (i % 16 == 0) {
            check_books(f);
        }
    }
    f->fatals += dev_state(f->n.g) == QHCA_STATE_FATAL;
    guest_advance(f->n.g, 1000000000);
    check_books(f);
    qhca_engine_reset(f->n.g->e, *f->n.g->clock);
    REQUIRE(qhca_engine_num_objects(f->n.g->e) == 0);
    REQUIRE(f->n.g->e->table_blocks == 0);
    REQUIRE(f->n.g->deadline == UINT64_MAX);
    harness_cleanup();
}

static uint64_t from_env(const char *name, uint64_t otherwise)
{
    const char *s = getenv(name);

    return s ? strtoull(s, NULL, 0) : otherwise;
}

static void fuzz(void)
{
    uint64_t left = from_env("FUZZ_ITERATIONS", 40000);
    struct fuzz f = { .seed = from_env("FUZZ_SEED", 1) };

    while (left > 0) {
        f.rng = f.seed * 0x9e3779b97f4a7c15u + 1;
        tap_seed(f.seed);
        session(&f, (unsigned)(left < STEPS ? left : STEPS));
        left -= left < STEPS ? left : STEPS;
        f.seed++;
    }
    tap_note("%u commands done, %u refused, %u sessions ended in FATAL", f.ok,
             f.refused, f.fatals);
    CHECK(f.ok > f.refused / 20);
}

static const struct test tests[] = {
    { "hostile guest, hostile network", fuzz },
};

int main(int argc, char **argv)
{
    return tap_main(argc, argv, tests, ARRAY_SIZE(tests), harness_cleanup);
}
