/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: sessions of a hostile guest in a hostile network:
 * doorbells, ring contents, frames and failures against two connected QPs.
 * Checks what must always hold: no sanitizer report, no endless work, no DMA
 * after the device has stopped, and that the engine's counts of users add up.
 */
#include "harness/debug.h"
#include "harness/long.h"
#include "harness/odp.h"
#include "harness/snapshot.h"
#include "fuzz.h"

/* ---- doorbells and rings ---- */

static void random_doorbell(struct fuzz *f)
{
    static const uint8_t offs[] = {
        QHCA_DB_SQ, QHCA_DB_RQ, QHCA_DB_SRQ, QHCA_DB_CQ_ARM, QHCA_DB_EQ,
        QHCA_DB_ETH,
    };
    static const enum fuzz_kind kinds[] = { QP, QP, SRQ, CQ, EQ, ETHQ };
    unsigned which = (unsigned)rnd(f, sizeof(offs));
    uint32_t index = one_in(f, 4) ? (uint32_t)nasty(f) : (uint32_t)rnd(f, 70);
    unsigned page = one_in(f, 6) ? (unsigned)nasty(f) :
                    which >= 4 ? 0 : 1 + (unsigned)rnd(f, 2);
    uint32_t obj = some(f, kinds[which]);

    if (one_in(f, 12)) {
        obj = which == 3 ? f->canary.qp[0].rcq.cqn : f->canary.qp[0].qpn;
    }
    if (page != CANARY_UAR) {   /* which only the canary has mapped */
        ring(f->n.g, page, one_in(f, 20) ? (unsigned)rnd(f, 4096) : offs[which],
             obj, index);
    }
    if (one_in(f, 1000)) {
        ring(f->n.g, 0, QHCA_DB_CMD, 0, (uint32_t)nasty(f));
    }
}

/* Writes a doorbell to memory that may have some, and may be used otherwise. */
static void ring_in_memory(struct fuzz *f)
{
    const struct gbuf *m = &f->mem[rnd(f, ARRAY_SIZE(f->mem))];
    struct qhca_shadow *s = guest_ptr(f->n.g, gbuf_addr(m, 0), 4096);
    uint64_t slot = rnd(f, 384), index = one_in(f, 4) ? nasty(f) : rnd(f, 70);

    s->slot[slot] = htole64(rnd(f, 12) << 25 | index << 32 |
                            (some(f, (enum fuzz_kind)rnd(f, FUZZ_KINDS)) &
                             QHCA_DB_OBJ));
    s->rung[slot / 64] |= htole64(UINT64_C(1) << slot % 64);
    s->look |= htole64(one_in(f, 9) ? nasty(f) : UINT64_C(1) << slot / 64);
    if (one_in(f, 2)) {
        ring(f->n.g, (unsigned)rnd(f, 3), QHCA_DB_SHADOW, 0, 0);
    }
    qhca_engine_look(f->n.g->e, *f->n.g->clock);
    if (one_in(f, 4)) {
        qhca_engine_rest(f->n.g->e, *f->n.g->clock);
    }
}

/* REG_MR, BIND_MW, LOCAL_INV, FLUSH, some of them valid, and other opcodes. */
static void random_memop(struct fuzz *f, struct rc_wr *wr)
{
    static const uint8_t opcodes[] = {
        QHCA_WR_BIND_MW, QHCA_WR_LOCAL_INV, QHCA_WR_REG_MR, QHCA_WR_FLUSH,
        QHCA_WR_MAX,
    };
    uint32_t key = one_in(f, 12) ? f->canary.n.mr.key : some(f, MR);

    wr->opcode = opcodes[rnd(f, sizeof(opcodes))];
    wr->flush_type = (uint8_t)rnd(f, one_in(f, 9) ? 256 : 3);
    wr->flush_level = (uint8_t)rnd(f, one_in(f, 9) ? 256 : 2);
    wr->flush_len = one_in(f, 9) ? (uint32_t)nasty(f) : (uint32_t)rnd(f, 9000);
    wr->num_sge = one_in(f, 10);
    wr->flags &= (uint8_t)~QHCA_WQE_INLINE;
    wr->imm = wr->key = key ^ (uint32_t)rnd(f, 2);
    wr->mr_key = one_in(f, 4) ? some(f, MR) : f->n.mr.key;
    wr->num_blocks = (uint32_t)rnd(f, 20);
    wr->offset = (uint32_t)rnd(f, one_in(f, 10) ? 10000 : 4096);
    wr->addr = one_in(f, 9) ? nasty(f) : f->n.mr.addr + rnd(f, 1000);
    wr->length = one_in(f, 9) ? nasty(f) : rnd(f, 9000);
    wr->table = some_addr(f) & ~7ull;
    wr->access = (unsigned)rnd(f, 0x42) | (unsigned)rnd(f, 4) << 8;
    wr->block_shift = one_in(f, 4) ? 0 : 12 + (unsigned)rnd(f, 3);
}

/* An SGE with the canary's key and memory, which only the PD protects. */
static void canary_sge(struct fuzz *f, struct qhca_seg_le *sge)
{
    sge->addr = f->canary.n.mr.addr + rnd(f, NODE_MEM);
    sge->lkey = f->canary.n.mr.key;
}

static void random_wr(struct fuzz *f, struct rc_qp *q)
{
    struct rc_wr wr = rc_wr(q, (uint8_t)rnd(f, QHCA_WR_MAX),
                            rnd(f, NODE_MEM / 2), (uint32_t)rnd(f, 20000));
    unsigned i;

    const struct node *to = q == &f->a ? &f->n2 : &f->n;

    wr.num_sge = (unsigned)rnd(f, 5);
    wr.flags = (uint8_t)rnd(f, one_in(f, 5) ? 256 : 8);
    wr.inline_len = (unsigned)rnd(f, 70);
    wr.imm = one_in(f, 2) ? some(f, MR) : (uint32_t)nasty(f);
    for (i = 0; i < wr.num_sge; i++) {
        wr.sge[i].addr = some_addr(f);
        wr.sge[i].length = one_in(f, 9) ? (uint32_t)nasty(f) :
                                          (uint32_t)rnd(f, 9000);
        wr.sge[i].lkey = one_in(f, 9) ? some(f, MR) : q->n->mr.key;
        if (one_in(f, 20)) {
            canary_sge(f, &wr.sge[i]);
        }
    }
    rc_aim(&wr, one_in(f, 20) ? &f->canary.n : to,
           rnd(f, NODE_MEM / 2) & ~7ull);
    wr.srqn = one_in(f, 9) ? some(f, SRQ) : f->srq.srqn;
    if (one_in(f, 9)) {
        wr.raddr = nasty(f);
        wr.rkey = some(f, MR);
    }
    if (vhca_wr_info(wr.opcode)->rules & VHCA_WR_NO_DATA) {
        random_memop(f, &wr);
    }
    if (q->o.type == QHCA_QPT_RAW && !one_in(f, 4)) {
        fuzz_raw_wr(f, q, &wr);
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
        sge[i].lkey = one_in(f, 12) ? some(f, MR) : q->n->mr.key;
        if (one_in(f, 20)) {
            canary_sge(f, &sge[i]);
        }
    }
    uint64_t wr_id = rnd(f, 100);

    if (one_in(f, 20)) {
        n = (unsigned)nasty(f) & 0xffff;
    }
    if (q->o.srqn || q->o.type == QHCA_QPT_XRC_TGT) {
        srq_put(&f->srq, wr_id, n, sge);
        srq_ring(&f->srq);
    } else if (q->o.type != QHCA_QPT_XRC_INI) {
        rc_recv_raw(q, wr_id, n, sge);
    }
}

/* Overwrites any 8 bytes of guest memory that is allocated. */
static void corrupt_memory(struct fuzz *f)
{
    struct guest *g = f->n.g;
    uint64_t addr = RAM_BASE + rnd(f, g->brk - RAM_BASE - 8), v = nasty(f);

    memcpy(guest_ptr(g, addr, 8), &v, 1 + rnd(f, 8));
}

/*
 * Another CPU changes memory that the device has just read. on_dma() gets only
 * the guest, so the session is here.
 */
static struct fuzz *racer;

static void race(struct guest *g, uint64_t addr, size_t len, bool write)
{
    uint64_t v;

    if (write || one_in(racer, 2)) {
        return;
    }
    v = nasty(racer);
    addr += rnd(racer, len);
    len = 1 + rnd(racer, 8);
    if (guest_find(g, addr, len)) {
        memcpy(guest_ptr(g, addr, len), &v, len);
    }
}

/* ---- frames ---- */

static void random_frame(struct fuzz *f)
{
    struct rc_qp *q = one_in(f, 2) ? &f->a : &f->b;
    struct vhca_qp *dev = vhca_qp_get(f->n.g->e, q->qpn);
    static const uint8_t services[] = {
        [QHCA_QPT_RC] = SVC_RC, [QHCA_QPT_UC] = SVC_UC, [QHCA_QPT_UD] = SVC_UD,
        [QHCA_QPT_XRC_INI] = SVC_XRC, [QHCA_QPT_XRC_TGT] = SVC_XRC,
    };
    uint8_t service = services[q->o.type];
    struct roce_packet p = peer_packet(q, service | (uint8_t)rnd(f, 0x1e), 0);
    uint8_t frame[MAX_FRAME] = { 0 };
    size_t len;

    p.srqn = one_in(f, 9) ? some(f, SRQ) : f->srq.srqn;
    if (one_in(f, 12)) {        /* a known QPN, and a guessed PSN */
        q = &f->canary.qp[rnd(f, 2)];
        p.dest_qp = q->qpn;
        dev = vhca_qp_get(f->n.g->e, q->qpn);
    }
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
    p.flush_type = (uint8_t)rnd(f, one_in(f, 9) ? 16 : 3);
    p.flush_level = (uint8_t)rnd(f, 2);
    p.syndrome = one_in(f, 3) ? (uint8_t)nasty(f) : AETH_ACK;
    p.payload_len = one_in(f, 3) ? 1024 : rnd(f, 1100);
    if (p.opcode == RC_ATOMIC_WRITE && one_in(f, 2)) {
        p.payload_len = p.dma_len = 8;
    }
    if (!(roce_opcode(p.opcode)->flags & OPF_PAYLOAD) && !one_in(f, 10)) {
        p.payload_len = 0;
    }
    fuzz_congest(f, &p);
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

    switch (rnd(f, 10)) {
    case 8:
    case 9:
        fuzz_rate(f, one_in(f, 2) ? &f->a : &f->b);
        break;
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
        if (rnd(f, 4)) {
            qhca_engine_set_link(g->e, *g->clock, rnd(f, 2));
        } else {
            fuzz_speed(f);
        }
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

/* @a sends to the SRQ of an XRC domain, and @b receives for it. */
static void create_xrc(struct fuzz *f, struct rc_opts *o)
{
    o->type = QHCA_QPT_XRC_INI;
    f->a = rc_create(&f->n, o);
    o->type = QHCA_QPT_XRC_TGT;
    o->xrcdn = xrcd_create(f->n.g);
    f->srq = srq_create_xrc(&f->n2, f->n2.pdn, 5, 3, o->xrcdn);
    o->uar = 2;
    f->b = rc_create(&f->n2, o);
    remember(f, XRCD, o->xrcdn);
    remember(f, CQ, f->srq.cq.cqn);
}

static void create_pair(struct fuzz *f, struct rc_opts *o)
{
    o->type = (uint8_t)(one_in(f, 3) ? QHCA_QPT_RC + rnd(f, 3) : QHCA_QPT_RC);
    o->qp_flags = KERNEL_QP;
    f->a = rc_create(&f->n, o);
    o->qp_flags = 0;
    f->srq = srq_create(&f->n2, f->n2.pdn, 5, 3);
    if (o->type == QHCA_QPT_RC && one_in(f, 2)) {
        o->srqn = f->srq.srqn;
    }
    o->uar = 2;
    f->b = rc_create(&f->n2, o);
}

void fuzz_begin(struct fuzz *f)
{
    struct rc_opts o = RC_OPTS;
    uint64_t kind;
    unsigned i;

    f->n = f->n2 = node_new(NULL, 1);
    f->n2.pdn = pd_create(f->n.g);
    f->n2.mr = mr_create(f->n.g, f->n2.pdn, NODE_MEM,
                         REMOTE_ALL | QHCA_ACCESS_LOCAL_WRITE |
                         QHCA_ACCESS_MW_BIND);
    f->n.g->lenient = true;
    f->n.g->take_long = long_cut;
    f->rng |= 1;
    o.timeout = 4;
    o.retry = 2;
    o.min_rnr = 16;             /* 2.56 ms: endless retries cost little time */
    o.cq_log = 5;
    memset(f->num, 0, sizeof(f->num));
    kind = rnd(f, 8);
    if (kind < 2) {
        create_xrc(f, &o);
    } else if (kind < 4) {
        fuzz_raw_begin(f, &o);
    } else {
        create_pair(f, &o);
    }
    rc_connect(&f->a, &f->b);
    for (i = 0; i < 4; i++) {
        f->mem[i] = guest_buf(f->n.g, 12 << 12, 12, i);
    }
    remember(f, PD, f->n.pdn);
    remember(f, PD, f->n2.pdn);
    remember(f, MR, f->n.mr.key);
    remember(f, MR, f->n2.mr.key);
    remember(f, CQ, f->a.scq.cqn);
    remember(f, CQ, f->b.rcq.cqn);
    remember(f, SRQ, f->srq.srqn);
    remember(f, EQ, f->n.comp.eqn);
    remember(f, EQ, f->n.async.eqn);
    remember(f, QP, f->a.qpn);
    remember(f, QP, f->b.qpn);
    canary_begin(&f->canary, &f->n);
    racer = f;
    f->n.g->on_dma = one_in(f, 4) ? race : NULL;
}

void fuzz_check(struct fuzz *f)
{
    guest_settle(f->n.g);
    canary_check(&f->canary);
}

static void step(struct fuzz *f)
{
    uint64_t what = rnd(f, 100);
    struct rc_qp *q = one_in(f, 2) ? &f->a : &f->b;

    if (what < 25) {
        random_command(f);
    } else if (what < 37) {
        random_doorbell(f);
    } else if (what < 40) {
        ring_in_memory(f);
    } else if (what < 58) {
        random_wr(f, q);
    } else if (what < 70) {
        random_recv(f, q);
    } else if (what < 85) {
        (q->o.type == QHCA_QPT_RAW ? fuzz_raw_rx : random_frame)(f);
    } else if (what < 92) {
        corrupt_memory(f);
    } else {
        random_trouble(f);
    }
    fuzz_check(f);
}

void fuzz_end(struct fuzz *f)
{
    f->fatals += dev_state(f->n.g) == QHCA_STATE_FATAL;
    guest_advance(f->n.g, 1000000000);
    fuzz_check_books(f->n.g);
    canary_end(&f->canary);
    qhca_engine_reset(f->n.g->e, *f->n.g->clock);
    REQUIRE(qhca_engine_num_objects(f->n.g->e) == 0);
    REQUIRE(f->n.g->e->table_blocks == 0);
    REQUIRE(f->n.g->host.deadline == UINT64_MAX);
    harness_cleanup();
}

/* The memory of @n stays, but its pages come on demand. */
static void without_pages(struct fuzz *f, struct node *n)
{
    CHECK_EQ(guest_cmd_obj(n->g, QHCA_CMD_DEREG_MR, n->mr.key), QHCA_OK);
    n->mr.key = odp_create(n->g, n->pdn, n->mr.addr, NODE_MEM).key;
    remember(f, MR, n->mr.key);
}

void fuzz_session(struct fuzz *f, unsigned steps)
{
    unsigned i;

    fuzz_begin(f);
    if (one_in(f, 4)) {
        without_pages(f, &f->n);
        without_pages(f, &f->n2);
    }
    for (i = 0; i < steps && dev_state(f->n.g) == QHCA_STATE_RUNNING &&
                (!f->input || f->input_len > 0); i++) {
        step(f);
        if (i % 16 == 0) {
            fuzz_check_books(f->n.g);
            snapshot_check(f->n.g);
        }
    }
    fuzz_end(f);
}
