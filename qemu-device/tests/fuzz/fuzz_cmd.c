/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: the hostile guest's commands and its stream of numbers. */
#include "harness/debug.h"
#include "fuzz.h"

/* Pages of the users' memory, and how many a command sets or clears. */
#define PAGES_OF_NODE   (NODE_MEM / QHCA_PAGE_SIZE)
#define MANY_PAGES      40u

/* The next number of the stream. */
static uint64_t draw(struct fuzz *f)
{
    uint64_t v = 0;
    size_t n = f->input_len < 3 ? f->input_len : 3;

    if (n == 0) {               /* no input left */
        return test_random(&f->rng) >> 11;
    }
    memcpy(&v, f->input, n);
    f->input += n;
    f->input_len -= n;
    return v;
}

uint64_t rnd(struct fuzz *f, uint64_t n)
{
    return draw(f) % n;
}

bool one_in(struct fuzz *f, unsigned n)
{
    return rnd(f, n) == 0;
}

uint64_t nasty(struct fuzz *f)
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
        return draw(f) << 16 ^ draw(f);
    }
}

uint32_t some(struct fuzz *f, enum fuzz_kind k)
{
    if (f->num[k] && !one_in(f, 12)) {
        return f->pool[k][rnd(f, f->num[k])];
    }
    return (uint32_t)nasty(f);
}

void remember(struct fuzz *f, enum fuzz_kind k, uint32_t obj)
{
    if (f->num[k] < FUZZ_POOL) {
        f->pool[k][f->num[k]++] = obj;
    } else {
        f->pool[k][rnd(f, FUZZ_POOL)] = obj;
    }
}

uint64_t some_addr(struct fuzz *f)
{
    if (one_in(f, 8)) {
        return nasty(f);
    }
    return (one_in(f, 2) ? f->n2 : f->n).mr.addr + rnd(f, NODE_MEM);
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

/* Attributes that a QP may be modified with; type RAW needs few. */
static uint32_t some_mask(struct fuzz *f)
{
    return !one_in(f, 3) ? (uint32_t)nasty(f) :
           one_in(f, 2) ? QHCA_QP_PORT : 0;
}

/* Mostly pages of the users' regions, and answers to faults that are open. */
static void pages_body(struct fuzz *f, struct qhca_cmd *c)
{
    const struct node *n = one_in(f, 2) ? &f->n : &f->n2;
    const struct vhca_qp *qp;

    if (le16toh(c->opcode) == QHCA_CMD_RESUME_QP) {
        uint8_t kind = (uint8_t)rnd(f, one_in(f, 20) ? 256 : QHCA_PAGE_KINDS);

        c->resume_qp.qpn = htole32(some(f, QP));
        c->resume_qp.kind = kind;
        c->resume_qp.deny = one_in(f, 8);
        qp = vhca_qp_get(f->n.g->e, le32toh(c->resume_qp.qpn));
        c->resume_qp.sn = htole32(qp && kind < QHCA_PAGE_KINDS &&
                                  !one_in(f, 9) ? qp->fault[kind].sn :
                                                  (uint32_t)rnd(f, 9));
        return;
    }
    c->pages.key = htole32(one_in(f, 4) ? some(f, MR) : n->mr.key);
    c->pages.first = htole64(one_in(f, 9) ? nasty(f) : rnd(f, PAGES_OF_NODE));
    c->pages.num = htole64(one_in(f, 9) ? nasty(f) : rnd(f, MANY_PAGES));
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
        c->create_ethq.flags = (uint8_t)rnd(f, 4);
        c->create_ethq.frags = (uint8_t)rnd(f, one_in(f, 9) ? 256 : 5);
        c->create_ethq.index = (uint8_t)rnd(f, one_in(f, 20) ? 256 : 3);
        c->create_ethq.pi = htole32((uint32_t)rnd(f, 80));
        break;
    case QHCA_CMD_SET_RSS:
        c->set_rss.types = htole32((uint32_t)rnd(f, one_in(f, 9) ? 256 : 64));
        c->set_rss.context = htole32((uint32_t)rnd(f, one_in(f, 9) ? 64 : 3));
        break;
    case QHCA_CMD_CREATE_FLOW:
        c->obj.obj = htole32(one_in(f, 4) ? some(f, FLOW) : 0);
        break;
    case QHCA_CMD_REG_MR:
    case QHCA_CMD_REREG_MR:
        c->reg_mr.buf = some_buf(f);
        c->reg_mr.iova = htole64(some_addr(f));
        c->reg_mr.offset = htole32(rnd(f, one_in(f, 10) ? 1u << 31 : 4096));
        c->reg_mr.length = htole64(one_in(f, 5) ? nasty(f) : rnd(f, 40000));
        c->reg_mr.pdn = htole32(some(f, PD));
        c->reg_mr.key = htole32(some(f, MR));
        c->reg_mr.access = htole16((uint16_t)(rnd(f, 0x42) | rnd(f, 3) << 8));
        c->reg_mr.type = (uint8_t)(one_in(f, 6) ? rnd(f, 6) : 0);
        c->reg_mr.rereg = (uint8_t)rnd(f, 9);
        break;
    case QHCA_CMD_ALLOC_MW:
        c->alloc_mw.pdn = htole32(some(f, PD));
        c->alloc_mw.type = (uint8_t)rnd(f, 5);
        break;
    case QHCA_CMD_CREATE_CQ:
    case QHCA_CMD_RESIZE_CQ:
        c->create_cq.buf = some_buf(f);
        c->create_cq.uar = htole32((uint32_t)rnd(f, NUM_UARS + 1));
        c->create_cq.eqn = htole32(some(f, EQ));
        c->create_cq.cqn = htole32(some(f, CQ));
        c->create_cq.log_size = (uint8_t)rnd(f, 10);
        c->create_cq.flags = (uint8_t)rnd(f, one_in(f, 20) ? 256 : 2);
        break;
    case QHCA_CMD_MODIFY_CQ:
        c->modify_cq.cqn = htole32(some(f, CQ));
        c->modify_cq.count = htole32((uint32_t)rnd(f, 5));
        c->modify_cq.period = htole32((uint32_t)rnd(f, 100));
        break;
    case QHCA_CMD_CREATE_SRQ:
    case QHCA_CMD_RESIZE_SRQ:
        c->create_srq.buf = some_buf(f);
        c->create_srq.pdn = htole32(some(f, PD));
        c->create_srq.uar = htole32(1);
        c->create_srq.max_sge = htole32((uint32_t)rnd(f, 4));
        c->create_srq.srqn = htole32(some(f, SRQ));
        c->create_srq.limit = htole32((uint32_t)rnd(f, 9));
        c->create_srq.log_size = (uint8_t)rnd(f, 6);
        c->create_srq.log_stride = 6;
        c->create_srq.flags = (uint8_t)rnd(f, 3);
        c->create_srq.xrcdn = htole32(one_in(f, 2) ? some(f, XRCD) : 0);
        c->create_srq.cqn = htole32(some(f, CQ));
        break;
    case QHCA_CMD_MODIFY_SRQ:
        c->modify_srq.srqn = htole32(some(f, SRQ));
        c->modify_srq.limit = htole32((uint32_t)rnd(f, 40));
        break;
    case QHCA_CMD_MODIFY_QP:
        c->modify_qp.qpn = htole32(some(f, QP));
        c->modify_qp.attr_mask = htole32(QHCA_QP_STATE | some_mask(f));
        break;
    case QHCA_CMD_ATTACH_MCAST:
    case QHCA_CMD_DETACH_MCAST:
        c->mcast.gid[0] = one_in(f, 8) ? 0 : 0xff;
        c->mcast.gid[15] = (uint8_t)rnd(f, 4);
        c->mcast.qpn = htole32(some(f, QP));
        break;
    case QHCA_CMD_ALLOW_GID:
        c->allow_gid.uar = htole32((uint32_t)rnd(f, 4));
        c->allow_gid.index = htole16((uint16_t)rnd(f, 4));
        c->allow_gid.port = 1;
        c->allow_gid.allow = (uint8_t)!one_in(f, 4);
        break;
    case QHCA_CMD_CREATE_SHADOW:
        c->create_shadow.buf = some_buf(f);
        c->create_shadow.uar = htole32((uint32_t)rnd(f, 3));
        c->create_shadow.slots = htole32(1 + (uint32_t)rnd(f, 384));
        break;
    case QHCA_CMD_DESTROY_SHADOW:
        c->obj.obj = htole32((uint32_t)rnd(f, 3));
        break;
    case QHCA_CMD_BIND_CNTSET:
        c->bind_cntset.qpn = htole32(some(f, QP));
        c->bind_cntset.cntset = htole32(one_in(f, 4) ? 0 : some(f, CNTSET));
        break;
    case QHCA_CMD_SET_PORT:
        memcpy(c->set_port.mac, test_mac, 6);
        c->set_port.port = 1;
        c->set_port.flags = (uint8_t)rnd(f, 9);
        c->set_port.mtu = htole32((uint32_t)rnd(f, 9100));
        break;
    case QHCA_CMD_SET_PAGES:
    case QHCA_CMD_CLEAR_PAGES:
    case QHCA_CMD_RESUME_QP:
        pages_body(f, c);
        break;
    default:
        c->obj.obj = htole32(some(f, (enum fuzz_kind)rnd(f, FUZZ_KINDS)));
        break;
    }
}

/* Makes @c a QP of either XRC type, which lacks most attributes of others. */
static void some_xrc(struct fuzz *f, struct qhca_create_qp *c)
{
    bool tgt = one_in(f, 2);

    c->type = tgt ? QHCA_QPT_XRC_TGT : QHCA_QPT_XRC_INI;
    c->srqn = 0;
    c->rq.num_blocks = one_in(f, 9);
    if (tgt) {
        c->sq.num_blocks = one_in(f, 9);
        c->xrcdn = htole32(some(f, XRCD));
    }
}

/* Fills a table with few of the queues, so that it is often right. */
static void fill_rss(struct fuzz *f, struct qhca_rss *rss)
{
    unsigned queues = 1 + (unsigned)rnd(f, 3);

    for (unsigned i = 0; i < sizeof(rss->key); i++) {
        rss->key[i] = (uint8_t)rnd(f, 256);
    }
    for (unsigned i = 0; i < sizeof(rss->queue); i++) {
        rss->queue[i] = (uint8_t)rnd(f, queues);
    }
    if (one_in(f, 4)) {
        rss->queue[rnd(f, sizeof(rss->queue))] = (uint8_t)nasty(f);
    }
}

/* Fills a rule with few things to look at, so that frames match it. */
static void fill_flow(struct fuzz *f, struct qhca_flow *r)
{
    r->action = (uint8_t)rnd(f, one_in(f, 9) ? 256 : 3);
    r->order = one_in(f, 4);
    r->priority = htole32((uint32_t)rnd(f, 3));
    r->target = htole32(r->action == QHCA_FLOW_QP ? some(f, QP) :
                        r->action ? some(f, SPREAD) : 0);
    if (one_in(f, 3)) {
        r->action = (uint8_t)(QHCA_FLOW_QUEUE + rnd(f, 2));
        r->order = QHCA_FLOW_ETH;
        r->target = htole32((uint32_t)rnd(f, one_in(f, 9) ? 64 : 3));
    }
    if (one_in(f, 2)) {
        unsigned i = (unsigned)rnd(f, sizeof(r->key));

        ((uint8_t *)&r->mask)[i] = (uint8_t)(1u << rnd(f, 8));
        ((uint8_t *)&r->key)[i] = one_in(f, 2) ? ((uint8_t *)&r->mask)[i] : 0;
    }
}

static void fill_spread(struct fuzz *f, struct qhca_spread *s)
{
    s->types = htole32((uint32_t)rnd(f, one_in(f, 9) ? 256 : 64));
    s->log_size = (uint8_t)rnd(f, one_in(f, 9) ? 256 : 4);
    for (unsigned i = 0; i < 8; i++) {
        s->qpn[i] = htole32(some(f, QP));
    }
}

/* Fills a list of pages that the users have, some of them read-only. */
static void fill_pages(struct fuzz *f, struct qhca_pages *pages)
{
    uint64_t base = f->n.mr.addr & ~(QHCA_PAGE_SIZE - 1ull);

    for (unsigned i = 0; i < MANY_PAGES; i++) {
        uint64_t at = base + rnd(f, PAGES_OF_NODE) * QHCA_PAGE_SIZE;

        pages->page[i] = one_in(f, 9) ? 0 :
            htole64(at | QHCA_PAGE_READ |
                    (one_in(f, 4) ? 0 : QHCA_PAGE_WRITE));
    }
}

/* Fills the mailbox with a QP to create or attributes, with wrong bytes. */
static void fill_mbox(struct fuzz *f, unsigned opcode, uint8_t *mbox)
{
    struct qhca_create_qp c = {
        .sq = some_buf(f), .rq = some_buf(f), .pdn = htole32(some(f, PD)),
        .uar = htole32(1), .send_cqn = htole32(some(f, CQ)),
        .recv_cqn = htole32(some(f, CQ)), .type = (uint8_t)rnd(f, 9),
        .sq_log_size = (uint8_t)rnd(f, 5), .sq_log_stride = 7,
        .rq_log_size = (uint8_t)rnd(f, 5), .rq_log_stride = 6,
        .max_send_sge = htole32(4), .max_recv_sge = htole32(3),
    };
    struct qhca_qp_attr a = rc_attr(&f->a);

    if (one_in(f, 2)) {
        c.srqn = htole32(some(f, SRQ));
        c.rq.num_blocks = one_in(f, 9);
    }
    if (one_in(f, 3)) {
        some_xrc(f, &c);
    }
    if (c.type == QHCA_QPT_UD && one_in(f, 4)) {
        c.flags = QHCA_QP_FLAG_NO_OWN_MCAST;
    }
    a.state = (uint8_t)rnd(f, 8);
    a.av.static_rate = (uint8_t)rnd(f, 30);
    if (one_in(f, 8)) {         /* the QP may name the canary as its peer */
        a.dest_qpn = htole32(f->canary.qp[rnd(f, 2)].qpn);
    }
    memset(mbox, 0, 4096);
    if (opcode == QHCA_CMD_CREATE_QP) {
        memcpy(mbox, &c, sizeof(c));
    } else if (opcode == QHCA_CMD_MODIFY_QP) {
        memcpy(mbox, &a, sizeof(a));
    } else if (opcode == QHCA_CMD_SET_RSS) {
        fill_rss(f, (struct qhca_rss *)mbox);
    } else if (opcode == QHCA_CMD_CREATE_FLOW) {
        fill_flow(f, (struct qhca_flow *)mbox);
    } else if (opcode == QHCA_CMD_CREATE_SPREAD) {
        fill_spread(f, (struct qhca_spread *)mbox);
    } else if (opcode == QHCA_CMD_SET_CONGESTION) {
        fuzz_fill_congestion(f, (struct qhca_congestion *)mbox);
    } else if (opcode == QHCA_CMD_SET_PAGES) {
        fill_pages(f, (struct qhca_pages *)mbox);
    }
    if (one_in(f, 3)) {
        mbox[rnd(f, 80)] = (uint8_t)nasty(f);
    }
}

/* A driver does not let others name the canary's objects in commands. */
static bool names_canary(const struct fuzz *f, const void *buf, size_t len)
{
    uint32_t word;

    for (size_t i = 0; i < len; i += sizeof(word)) {
        memcpy(&word, (const uint8_t *)buf + i, sizeof(word));
        if (canary_owns(&f->canary, le32toh(word))) {
            return true;
        }
    }
    return false;
}

void fuzz_command(struct fuzz *f, struct qhca_cmd *c)
{
    static const struct {
        uint8_t opcode, kind;
    } creates[] = {
        { QHCA_CMD_ALLOC_PD, PD }, { QHCA_CMD_ALLOC_XRCD, XRCD },
        { QHCA_CMD_REG_MR, MR }, { QHCA_CMD_ALLOC_MW, MR },
        { QHCA_CMD_CREATE_CQ, CQ }, { QHCA_CMD_CREATE_EQ, EQ },
        { QHCA_CMD_CREATE_SRQ, SRQ }, { QHCA_CMD_CREATE_QP, QP },
        { QHCA_CMD_CREATE_ETHQ, ETHQ }, { QHCA_CMD_ALLOC_CNTSET, CNTSET },
        { QHCA_CMD_CREATE_FLOW, FLOW }, { QHCA_CMD_CREATE_SPREAD, SPREAD },
    };
    uint32_t obj = 0;
    unsigned i;
    int status;

    if (names_canary(f, c, sizeof(*c)) ||
        (le16toh(c->opcode) == QHCA_CMD_CREATE_QP &&
         names_canary(f, guest_ptr(f->n.g, f->n.g->mbox, 160), 160))) {
        return;
    }
    status = guest_cmd(f->n.g, c, &obj);
    f->ok += status == QHCA_OK;
    f->refused += status > 0;
    for (i = 0; status == QHCA_OK && i < ARRAY_SIZE(creates); i++) {
        if (creates[i].opcode == le16toh(c->opcode)) {
            remember(f, (enum fuzz_kind)creates[i].kind, obj);
        }
    }
}

void random_command(struct fuzz *f)
{
    static const uint8_t opcodes[] = {
        0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x10, 0x11, 0x12, 0x13, 0x14,
        0x14, 0x16, 0x16, 0x17, 0x18, 0x19, 0x20, 0x20, 0x21, 0x24, 0x25, 0x28,
        0x28, 0x29, 0x29, 0x2a, 0x2c, 0x2c, 0x2d, 0x2e, 0x2e, 0x2e, 0x2f, 0x44,
        0x45, 0x45, 0x45, 0x1a,
        0x30, 0x30, 0x31, 0x32, 0x33, 0x33, 0x34, 0x38, 0x38, 0x39, 0x3a, 0x3b,
        0x3c, 0x40, 0x40, 0x41, 0x41, 0x41, 0x42, 0x43, 0x48, 0x48, 0x49,
        0x50, 0x50, 0x51, 0x52, 0x53, 0x53,
    };
    struct qhca_cmd c = { 0 };

    c.opcode = htole16(one_in(f, 30) ? (uint16_t)nasty(f) :
                       opcodes[rnd(f, sizeof(opcodes))]);
    some_body(f, &c);
    if (one_in(f, 8)) {
        c.body[rnd(f, sizeof(c.body))] = (uint8_t)nasty(f);
    }
    c.mailbox = htole64(one_in(f, 20) ? nasty(f) : f->n.g->mbox);
    fill_mbox(f, le16toh(c.opcode), guest_ptr(f->n.g, f->n.g->mbox, 4096));
    fuzz_command(f, &c);
}
