/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a guest's commands, send and receive WQEs, doorbells and
 * memory tables as inputs. They are played on the guest of fuzz.h; its seed is
 * the input's cfg, which therefore decides the types of the QPs.
 */
#include "harness/debug.h"
#include "fuzz_device.h"

static struct rc_qp *qp_of(struct device *d, const struct record *r)
{
    return r->aim & 1 ? &d->f.b : &d->f.a;
}

static uint64_t in_memory(const struct node *n, uint64_t addr)
{
    return n->mr.addr + addr % (NODE_MEM / 2);
}

/* ---- WQEs ---- */

static __le32 some_key(const struct device *d, __le32 which)
{
    return htole32(device_one_of(&d->f, MR, le32toh(which)));
}

static void put_sges(struct device *d, const struct record *r,
                     const struct node *n, uint8_t *sge, unsigned num)
{
    for (unsigned i = 0; i < num; i++, sge += sizeof(struct qhca_sge)) {
        struct qhca_sge s;

        memcpy(&s, sge, sizeof(s));
        if (r->fix & DEVICE_FIX_ADDR) {
            s.addr = htole64(in_memory(n, le64toh(s.addr)));
            s.length = htole32(le32toh(s.length) % 20000);
        }
        if (r->fix & DEVICE_FIX_OBJ) {
            s.lkey = r->aim & 2 ? some_key(d, s.lkey) : htole32(n->mr.key);
        }
        memcpy(sge, &s, sizeof(s));
    }
}

/* Fixes up the addresses and keys in the fixed part of a send WQE. */
static void put_remote(struct device *d, const struct record *r,
                       const struct rc_qp *q, struct qhca_sq_wqe *w)
{
    const struct node *to = q == &d->f.a ? &d->f.n2 : &d->f.n;

    if (q->o.type == QHCA_QPT_UD) {
        w->ud.av = rc_attr(q).av;
        w->ud.av.pdn = htole32(q->n->pdn);
        w->ud.qpn = htole32(q->peer_qpn);
        w->ud.qkey = htole32(q->o.qkey);
    } else if (w->opcode == QHCA_WR_REG_MR || w->opcode == QHCA_WR_BIND_MW ||
               w->opcode == QHCA_WR_LOCAL_INV) {
        w->inv_key = some_key(d, w->inv_key);
        w->bind.mw_key = some_key(d, w->bind.mw_key);
        w->bind.mr_key = some_key(d, w->bind.mr_key);
    } else {
        w->rdma.addr = htole64(in_memory(to, le64toh(w->rdma.addr)) & ~7ull);
        w->rdma.rkey = r->aim & 4 ? some_key(d, w->rdma.rkey) :
                                    htole32(to->mr.key);
        w->rdma.srqn = htole32(d->f.srq.srqn);
    }
}

static void play_send(struct device *d, const struct record *r,
                      const uint8_t *data, size_t len)
{
    struct rc_qp *q = qp_of(d, r);
    const struct vhca_qp *dev = vhca_qp_get(d->f.n.g->e, q->qpn);
    size_t stride = 1u << q->sq_stride;
    uint8_t raw[QHCA_SQ_STRIDE_MAX] = { 0 };
    struct qhca_sq_wqe w;
    uint16_t count;

    if (!dev || !dev->sq.present) {
        return;
    }
    memcpy(raw, data, len < stride ? len : stride);
    memcpy(&w, raw, sizeof(w));
    if (r->fix & DEVICE_FIX_OPCODE) {
        w.opcode %= QHCA_WR_MAX + 1;
    }
    if (r->fix & DEVICE_FIX_COUNT) {
        count = le16toh(w.count);
        count %= w.flags & QHCA_WQE_INLINE ? 65 : 5;
        w.count = htole16(count);
    }
    if (r->fix & DEVICE_FIX_OBJ) {
        put_remote(d, r, q, &w);
    }
    memcpy(raw, &w, sizeof(w));
    if (!(w.flags & QHCA_WQE_INLINE)) {
        put_sges(d, r, q->n, raw + sizeof(w), 4);
    }
    q->sq_pi = dev->sq.pi;
    memcpy(guest_ptr(d->f.n.g,
                     gbuf_addr(&q->sq, (q->sq_pi % (1u << q->o.sq_log))
                                       << q->sq_stride), stride),
           raw, stride);
    q->sq_pi++;
    rc_ring(q);
}

static void play_recv(struct device *d, const struct record *r,
                      const uint8_t *data, size_t len)
{
    struct rc_qp *q = qp_of(d, r);
    uint8_t raw[4 * sizeof(struct qhca_sge)] = { 0 };
    struct qhca_seg_le sge[4];
    unsigned num = r->fix & DEVICE_FIX_COUNT ? r->aim >> 4 & 3 :
                   r->aim | 0x100u;

    memcpy(raw, data, len < sizeof(raw) ? len : sizeof(raw));
    put_sges(d, r, q->n, raw, 4);
    for (unsigned i = 0; i < 4; i++) {
        struct qhca_sge s;

        memcpy(&s, raw + i * sizeof(s), sizeof(s));
        sge[i] = (struct qhca_seg_le) {
            le64toh(s.addr), le32toh(s.length), le32toh(s.lkey),
        };
    }
    if (q->o.srqn || q->o.type == QHCA_QPT_XRC_TGT) {
        srq_put(&d->f.srq, 1, num, sge);
        srq_ring(&d->f.srq);
    } else if (q->o.type != QHCA_QPT_XRC_INI) {
        rc_recv_raw(q, 1, num, sge);
    }
}

/* ---- doorbells ---- */

static uint32_t producer(const struct device *d, unsigned off, uint32_t obj)
{
    struct qhca_engine *e = d->f.n.g->e;
    const struct vhca_qp *qp = vhca_qp_get(e, obj);
    const struct vhca_srq *srq = vhca_srq_get(e, obj);
    const struct vhca_eq *eq = vhca_eq_get(e, obj);

    switch (off) {
    case QHCA_DB_SQ:
        return qp ? qp->sq.pi : 0;
    case QHCA_DB_RQ:
        return qp ? qp->rq.pi : 0;
    case QHCA_DB_SRQ:
        return srq ? srq->wq.pi : 0;
    case QHCA_DB_EQ:
        return eq ? eq->ci : 0;
    default:
        return 0;
    }
}

static void play_doorbell(struct device *d, const struct record *r,
                          const uint8_t *data, size_t len)
{
    static const struct {
        uint8_t off, kind;
    } doorbells[] = {
        { QHCA_DB_SQ, QP }, { QHCA_DB_RQ, QP }, { QHCA_DB_SRQ, SRQ },
        { QHCA_DB_CQ_ARM, CQ }, { QHCA_DB_EQ, EQ }, { QHCA_DB_ETH, ETHQ },
    };
    struct device_doorbell db = { 0 };
    unsigned page, off, which;
    uint32_t obj, index;

    memcpy(&db, data, len < sizeof(db) ? len : sizeof(db));
    page = le16toh(db.page);
    off = le16toh(db.off);
    obj = le32toh(db.obj);
    index = le32toh(db.index);
    which = off % ARRAY_SIZE(doorbells);
    if (r->fix & DEVICE_FIX_OPCODE) {
        off = doorbells[which].off;
    }
    if (r->fix & DEVICE_FIX_OBJ) {
        obj = device_one_of(&d->f, doorbells[which].kind, obj);
    }
    if (r->fix & DEVICE_FIX_ADDR) {
        page = which >= 4 ? 0 : 1 + page % 2;
    }
    if (r->fix & DEVICE_FIX_COUNT) {
        index = producer(d, off, obj) + index % 8;
    }
    if (page != CANARY_UAR) {
        ring(d->f.n.g, page, off, obj, index);
    }
}

/* ---- tables ---- */

/* A table whose depth and number of blocks @aim decides. */
static struct qhca_buf table_of(const struct device *d, uint8_t aim, size_t num)
{
    static const uint32_t blocks[] = { 0, 1, 2, 511, 512, 513, 1025, 1u << 24 };
    uint32_t n = blocks[aim >> 5] ? blocks[aim >> 5] : (uint32_t)num;

    return (struct qhca_buf) {
        .addr = htole64(d->pages), .num_blocks = htole32(n ? n : 1),
        .block_shift = 12, .depth = aim & 3,
    };
}

/* The command with a table that @r->aim names; high bits of @r->fix: size. */
static struct qhca_cmd table_command(const struct device *d,
                                     const struct record *r)
{
    static const uint8_t opcodes[] = {
        QHCA_CMD_CREATE_CQ, QHCA_CMD_RESIZE_CQ, QHCA_CMD_CREATE_SRQ,
        QHCA_CMD_RESIZE_SRQ, QHCA_CMD_CREATE_EQ, QHCA_CMD_REG_MR,
        QHCA_CMD_REG_MR, QHCA_CMD_REREG_MR,
    };
    const struct fuzz *f = &d->f;
    uint8_t size = r->fix >> 4;
    struct qhca_cmd c = { .opcode = htole16(opcodes[r->aim >> 2 & 7]) };

    switch (le16toh(c.opcode)) {
    case QHCA_CMD_CREATE_CQ:
    case QHCA_CMD_RESIZE_CQ:
        c.create_cq.eqn = htole32(f->n.comp.eqn);
        c.create_cq.cqn = htole32(f->a.scq.cqn);
        c.create_cq.log_size = size;
        break;
    case QHCA_CMD_CREATE_SRQ:
    case QHCA_CMD_RESIZE_SRQ:
        c.create_srq.pdn = htole32(f->n.pdn);
        c.create_srq.srqn = htole32(f->srq.srqn);
        c.create_srq.log_stride = 6;
        c.create_srq.log_size = size;
        break;
    case QHCA_CMD_CREATE_EQ:
        c.create_eq.log_size = size;
        break;
    default:
        c.reg_mr.length = htole64(1ull << (size + 8));
        c.reg_mr.pdn = htole32(f->n.pdn);
        c.reg_mr.key = htole32(f->n.mr.key);
        c.reg_mr.iova = htole64(f->n.mr.addr);
        c.reg_mr.access = htole16(QHCA_ACCESS_LOCAL_WRITE | REMOTE_ALL);
        c.reg_mr.rereg = QHCA_REREG_TRANS;
        break;
    }
    return c;
}

static void play_table(struct device *d, const struct record *r,
                       const uint8_t *data, size_t len)
{
    struct qhca_cmd c = table_command(d, r);
    size_t num = MIN_OF(len / 8, DEVICE_PAGES * 512);
    uint64_t entry;

    for (size_t i = 0; i < num; i++) {
        memcpy(&entry, data + i * 8, 8);
        if (r->fix & DEVICE_FIX_ADDR) {
            entry = htole64(d->pages + le64toh(entry) % DEVICE_PAGES * 4096);
        }
        memcpy(guest_ptr(d->f.n.g, d->pages + i * 8, 8), &entry, 8);
    }
    c.reg_mr.buf = table_of(d, r->aim, num);    /* at the same offset in all */
    fuzz_command(&d->f, &c);
}

/* ---- sessions ---- */

bool device_has_data(uint8_t kind)
{
    return kind % DEVICE_KINDS != DEVICE_TIME;
}

static void play(struct device *d, const struct record *r, const uint8_t *data,
                 size_t len)
{
    static void (*const play_kind[DEVICE_KINDS])(struct device *d,
                                                 const struct record *r,
                                                 const uint8_t *data,
                                                 size_t len) = {
        [DEVICE_COMMAND] = device_command, [DEVICE_SEND] = play_send,
        [DEVICE_RECV] = play_recv, [DEVICE_DOORBELL] = play_doorbell,
        [DEVICE_TABLE] = play_table,
    };
    unsigned kind = r->kind % DEVICE_KINDS;

    if (play_kind[kind]) {
        play_kind[kind](d, r, data, len);
    } else {
        guest_advance(d->f.n.g, record_number(r) * 1000ull);
    }
    fuzz_check(&d->f);
}

/* Counts the commands, WRs and so on that passed the checks. */
static uint64_t good(const struct device *d)
{
    const struct qhca_engine *e = d->f.n.g->e;

    return d->f.ok + e->cnt[QHCA_CNT_TX_PKTS] + e->cnt[QHCA_CNT_ETH_TX_PKTS];
}

uint64_t device_session(const uint8_t *data, size_t size)
{
    const uint8_t *end = data + size;
    struct device d = { .f.rng = 1 };
    struct record r;
    unsigned rung = 0;
    uint64_t bad, n;

    d.f.rng += size ? *data++ * 0x9e3779b97f4a7c15u : 0;
    fuzz_begin(&d.f);
    d.pages = guest_alloc(d.f.n.g, DEVICE_PAGES * 4096, 4096);
    bad = counter(d.f.n.g, QHCA_CNT_BAD_DOORBELL);
    for (n = 0; n < DEVICE_RECORDS && end - data > (ptrdiff_t)sizeof(r) - 1 &&
                d.f.n.g->e->state == QHCA_STATE_RUNNING; n++) {
        size_t len = 0;

        memcpy(&r, data, sizeof(r));
        data += sizeof(r);
        if (device_has_data(r.kind)) {
            len = record_number(&r);
            len = len > (size_t)(end - data) ? (size_t)(end - data) : len;
        }
        rung += r.kind % DEVICE_KINDS == DEVICE_DOORBELL;
        play(&d, &r, data, len);
        data += len;
    }
    bad = counter(d.f.n.g, QHCA_CNT_BAD_DOORBELL) - bad;
    n = good(&d) + (rung > bad ? rung - bad : 0);
    fuzz_end(&d.f);
    return n;
}
