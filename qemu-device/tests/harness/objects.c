/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: memory and objects of the simulated driver. */
#include "harness.h"
#include "net.h"

/* ---- memory ---- */

static bool inside(uint64_t addr, size_t len, uint64_t base, size_t size)
{
    return addr >= base && len <= size && addr - base <= size - len;
}

uint8_t *guest_find(struct guest *g, uint64_t addr, size_t len)
{
    if (inside(addr, len, RAM_BASE, RAM_SIZE)) {
        return g->ram + (addr - RAM_BASE);
    }
    if (inside(addr, len, BANK_BASE, BANK_SIZE)) {
        return g->bank + (addr - BANK_BASE);
    }
    return NULL;
}

uint64_t guest_alloc(struct guest *g, size_t len, size_t align)
{
    uint64_t *brk = g->in_bank ? &g->bank_brk : &g->brk;
    uint64_t addr = (*brk + align - 1) & ~((uint64_t)align - 1);

    REQUIRE(guest_find(g, addr, len));
    *brk = addr + len;
    return addr;
}

void *guest_ptr(struct guest *g, uint64_t addr, size_t len)
{
    void *p = guest_find(g, addr, len);

    REQUIRE(p);
    return p;
}

void guest_spoil(struct guest *g, uint64_t addr, uint64_t len)
{
    g->bad_from = addr;
    g->bad_to = addr + len;
}

uint8_t guest_pattern(size_t i, unsigned seed)
{
    return (uint8_t)(i * 7 + (i >> 8) * 13 + (i >> 16) * 29 + seed * 101);
}

void guest_fill(struct guest *g, uint64_t addr, size_t len, unsigned seed)
{
    uint8_t *p = guest_ptr(g, addr, len);
    size_t i;

    for (i = 0; i < len; i++) {
        p[i] = guest_pattern(i, seed);
    }
}

/* Offset of the first byte that does not have the pattern, or @len. */
static size_t first_bad(const uint8_t *p, size_t len, unsigned seed)
{
    size_t i = 0;

    while (i < len && p[i] == guest_pattern(i, seed)) {
        i++;
    }
    return i;
}

bool guest_has_pattern(struct guest *g, uint64_t addr, size_t len,
                       unsigned seed)
{
    return first_bad(guest_ptr(g, addr, len), len, seed) == len;
}

bool guest_is_filled(struct guest *g, uint64_t addr, size_t len, unsigned seed)
{
    const uint8_t *p = guest_ptr(g, addr, len);
    size_t i = first_bad(p, len, seed);

    if (i < len) {
        tap_note("byte %zu of %zu is 0x%x, not 0x%x", i, len, p[i],
                 guest_pattern(i, seed));
    }
    return i == len;
}

/* Block lists of all buffers of a test case. */
static uint64_t **block_lists;
static unsigned num_block_lists;

void gbuf_cleanup(void)
{
    while (num_block_lists > 0) {
        free(block_lists[--num_block_lists]);
    }
    free(block_lists);
    block_lists = NULL;
}

uint64_t *address_list(uint32_t n)
{
    uint64_t *list = calloc(n, sizeof(*list));

    block_lists = realloc(block_lists,
                          (num_block_lists + 1) * sizeof(*block_lists));
    block_lists[num_block_lists++] = list;
    return list;
}

/* A table page tree of @depth over @addr[0..n); returns its root. */
static uint64_t build_table(struct guest *g, const uint64_t *addr, uint32_t n,
                            unsigned depth)
{
    uint64_t page = guest_alloc(g, QHCA_PAGE_SIZE, QHCA_PAGE_SIZE);
    uint64_t *entry = guest_ptr(g, page, QHCA_PAGE_SIZE);
    uint32_t i, j, span = 1;

    for (i = 1; i < depth; i++) {
        span *= QHCA_TABLE_ENTRIES;
    }
    for (i = 0, j = 0; j < n; i++, j += span) {
        entry[i] = htole64(depth == 1 ? addr[j] :
                           build_table(g, addr + j, n - j < span ? n - j : span,
                                       depth - 1));
    }
    return page;
}

struct gbuf guest_buf(struct guest *g, uint64_t len, unsigned shift,
                      unsigned depth)
{
    uint64_t size = 1ull << shift;
    struct gbuf b = {
        .shift = shift,
        .num_blocks = (uint32_t)((len + size - 1) >> shift),
    };
    uint64_t gap = depth ? size : 0, base;
    uint32_t i;

    b.block = address_list(b.num_blocks);
    base = guest_alloc(g, b.num_blocks * (size + gap), size);
    for (i = 0; i < b.num_blocks; i++) {
        b.block[i] = depth ? base + (b.num_blocks - 1 - i) * (size + gap) :
                             base + i * size;
    }
    b.desc.num_blocks = htole32(b.num_blocks);
    b.desc.block_shift = (uint8_t)shift;
    b.desc.depth = (uint8_t)depth;
    b.desc.addr = htole64(depth ? build_table(g, b.block, b.num_blocks, depth) :
                                  base);
    return b;
}

uint64_t gbuf_addr(const struct gbuf *b, uint64_t off)
{
    return b->block[off >> b->shift] + (off & ((1ull << b->shift) - 1));
}

struct gbuf rq_ring(struct guest *g, unsigned log, unsigned depth)
{
    uint64_t record = g->dbrecs ? sizeof(struct qhca_rq_dbrec) : 0;

    return guest_buf(g, (1ull << log) + record, 12, depth);
}

bool rq_posted(struct guest *g, const struct gbuf *ring, unsigned log,
               uint32_t pi)
{
    struct qhca_rq_dbrec *rec;

    if (!g->dbrecs) {
        return true;
    }
    rec = guest_ptr(g, gbuf_addr(ring, 1ull << log), sizeof(*rec));
    rec->pi = htole32(pi);
    return rec->ring;
}

/* ---- event queues ---- */

struct geq eq_create(struct guest *g, unsigned vector, unsigned log,
                     unsigned flags)
{
    struct geq eq = { .g = g, .log = log };
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_CREATE_EQ) };

    eq.buf = guest_buf(g, sizeof(struct qhca_eqe) << log, 12, 0);
    cmd.create_eq.buf = eq.buf.desc;
    cmd.create_eq.vector = htole16((uint16_t)vector);
    cmd.create_eq.log_size = (uint8_t)log;
    cmd.create_eq.flags = (uint8_t)flags;
    eq.eqn = guest_create(g, &cmd);
    return eq;
}

bool eq_next(struct geq *eq, struct qhca_eqe *eqe)
{
    uint64_t off = (eq->ci & ((1u << eq->log) - 1)) * sizeof(*eqe);
    uint8_t phase = eq->ci >> eq->log & 1 ? 0 : QHCA_OWNER_PHASE;

    memcpy(eqe, guest_ptr(eq->g, gbuf_addr(&eq->buf, off), sizeof(*eqe)),
           sizeof(*eqe));
    if ((eqe->owner & QHCA_OWNER_PHASE) != phase) {
        return false;
    }
    eq->ci++;
    return true;
}

void eq_arm(struct geq *eq)
{
    ring(eq->g, 0, QHCA_DB_EQ, eq->eqn, eq->ci);
}

void eq_expect(struct geq *eq, unsigned type, uint32_t obj)
{
    struct qhca_eqe eqe;

    if (!eq_next(eq, &eqe)) {
        tap_note("no event, expected %u", type);
        tap_fail(__FILE__, __LINE__, "event");
        return;
    }
    CHECK_EQ(eqe.type, type);
    CHECK_EQ(le32toh(eqe.obj), obj);
}

void eq_expect_none(struct geq *eq)
{
    struct qhca_eqe eqe;

    if (eq_next(eq, &eqe)) {
        tap_note("event %u of 0x%x", eqe.type, le32toh(eqe.obj));
        tap_fail(__FILE__, __LINE__, "no event");
    }
}

/* ---- completion queues ---- */

struct gcq cq_create(struct guest *g, const struct geq *eq, uint32_t uar,
                     unsigned log)
{
    struct gcq cq = { .g = g, .log = log, .uar = uar };
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_CREATE_CQ) };

    cq.buf = guest_buf(g, (sizeof(struct qhca_cqe) << log) +
                          sizeof(struct qhca_cq_dbrec), 12,
                   log < 15 ? 1 : 2);
    cmd.create_cq.buf = cq.buf.desc;
    cmd.create_cq.uar = htole32(uar);
    cmd.create_cq.eqn = htole32(eq->eqn);
    cmd.create_cq.log_size = (uint8_t)log;
    cmd.create_cq.flags = g->in_memory ? QHCA_CQ_DBREC : 0;
    cq.cqn = guest_create(g, &cmd);
    return cq;
}

bool cq_peek(struct gcq *cq, struct qhca_cqe *cqe)
{
    uint64_t off = (uint64_t)(cq->ci & ((1u << cq->log) - 1)) * sizeof(*cqe);
    uint8_t phase = cq->ci >> cq->log & 1 ? 0 : QHCA_OWNER_PHASE;

    memcpy(cqe, guest_ptr(cq->g, gbuf_addr(&cq->buf, off), sizeof(*cqe)),
           sizeof(*cqe));
    return (cqe->owner & QHCA_OWNER_PHASE) == phase;
}

bool cq_poll(struct gcq *cq, struct qhca_cqe *cqe)
{
    uint64_t rec = (uint64_t)sizeof(*cqe) << cq->log;
    uint32_t ci;

    if (!cq_peek(cq, cqe)) {
        return false;
    }
    ci = htole32(++cq->ci);
    memcpy(guest_ptr(cq->g, gbuf_addr(&cq->buf, rec), sizeof(ci)), &ci,
           sizeof(ci));
    return true;
}

static __le64 *arms(struct gcq *cq, const struct gbuf *ring, unsigned log)
{
    uint64_t off = ((uint64_t)sizeof(struct qhca_cqe) << log) +
                   offsetof(struct qhca_cq_dbrec, arm);

    return guest_ptr(cq->g, gbuf_addr(ring, off), sizeof(__le64));
}

void cq_copy_arms(struct gcq *cq, const struct gbuf *ring, unsigned log)
{
    *arms(cq, ring, log) = *arms(cq, &cq->buf, cq->log);
}

void cq_arm(struct gcq *cq, bool solicited)
{
    cq->sn++;
    cq->any_sn = solicited ? cq->any_sn : cq->sn;
    if (!solicited || !cq->armed) {
        cq->armed = solicited ? QHCA_CQ_ARM_SOLICITED : QHCA_CQ_ARM_NEXT;
    }
    if (cq->g->in_memory) {
        *arms(cq, &cq->buf, cq->log) =
            htole64(QHCA_PREP(QHCA_CQ_ARM_SN, cq->sn) |
                    QHCA_PREP(QHCA_CQ_ARM_ANY_SN, (uint64_t)cq->any_sn));
    } else {
        ring(cq->g, cq->uar, QHCA_DB_CQ_ARM,
             cq->cqn | (solicited ? (uint32_t)QHCA_DB_SOLICITED : 0), cq->sn);
    }
}

struct qhca_cqc cq_query(struct gcq *cq)
{
    struct qhca_cqc c;

    CHECK_EQ(guest_query(cq->g, QHCA_CMD_QUERY_CQ, cq->cqn, &c, sizeof(c)), 0);
    return c;
}

int cq_moderate(const struct gcq *cq, uint32_t count, uint32_t period)
{
    struct qhca_cmd cmd = {
        .opcode = htole16(QHCA_CMD_MODIFY_CQ),
        .modify_cq = {
            .cqn = htole32(cq->cqn), .count = htole32(count),
            .period = htole32(period),
        },
    };

    return guest_cmd(cq->g, &cmd, NULL);
}

/* ---- domains, regions, port ---- */

uint32_t pd_create(struct guest *g)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_ALLOC_PD) };

    return guest_create(g, &cmd);
}

struct gmr mr_register(struct guest *g, uint32_t pdn,
                       const struct qhca_buf *buf, uint64_t addr, uint64_t len,
                       unsigned access)
{
    struct gmr mr = { .g = g, .addr = addr, .len = len };
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_REG_MR) };

    cmd.reg_mr.buf = *buf;
    cmd.reg_mr.iova = htole64(addr);
    cmd.reg_mr.offset = htole32(addr & ((1u << buf->block_shift) - 1));
    cmd.reg_mr.length = htole64(len);
    cmd.reg_mr.pdn = htole32(pdn);
    cmd.reg_mr.access = htole16((uint16_t)access);
    mr.key = guest_create(g, &cmd);
    return mr;
}

struct gmr mr_create(struct guest *g, uint32_t pdn, uint64_t len,
                     unsigned access)
{
    struct gbuf b = guest_buf(g, len, 12, 0);

    return mr_register(g, pdn, &b.desc, b.block[0], len, access);
}

void port_enable(struct guest *g, const uint8_t *mac, unsigned flags,
                 uint32_t mtu)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_SET_PORT) };

    memcpy(cmd.set_port.mac, mac, 6);
    cmd.set_port.port = 1;
    cmd.set_port.flags = (uint8_t)(QHCA_PORT_ENABLE | flags);
    cmd.set_port.mtu = htole32(mtu);
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_OK);
}

int gid_allow(struct guest *g, unsigned page, unsigned index, unsigned allow)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_ALLOW_GID) };

    cmd.allow_gid.uar = htole32(page);
    cmd.allow_gid.index = htole16((uint16_t)index);
    cmd.allow_gid.port = 1;
    cmd.allow_gid.allow = (uint8_t)allow;
    return guest_cmd(g, &cmd, NULL);
}

int gid_set(struct guest *g, unsigned index, const uint8_t *gid,
            const uint8_t *mac, unsigned vlan)
{
    struct qhca_cmd cmd = {
        .opcode = htole16(QHCA_CMD_SET_GID),
        .set_gid = {
            .vlan = htole16((uint16_t)vlan), .index = htole16((uint16_t)index),
            .port = 1, .valid = gid != NULL,
        },
    };

    if (gid) {
        memcpy(cmd.set_gid.gid, gid, 16);
        memcpy(cmd.set_gid.smac, mac, 6);
    }
    return guest_cmd(g, &cmd, NULL);
}

void gid_set_ipv4(struct guest *g, unsigned index, unsigned host,
                  const uint8_t *mac)
{
    const uint8_t gid[16] = {
        [10] = 0xff, [11] = 0xff, [12] = 10, [15] = (uint8_t)host,
    };

    CHECK_EQ(gid_set(g, index, gid, mac, QHCA_NO_VLAN), QHCA_OK);
}

static void receive(struct guest *g, const uint8_t *frame, size_t len,
                    unsigned (*rx)(struct qhca_engine *e, uint64_t now,
                                   const uint8_t *frame, size_t len))
{
    /* In its own heap block, so that the sanitizer sees an access past it. */
    uint8_t *copy = malloc(len ? len : 1);

    memcpy(copy, frame, len);
    rx(g->e, *g->clock, copy, len);
    free(copy);
}

void guest_rx(struct guest *g, const uint8_t *frame, size_t len)
{
    receive(g, frame, len, qhca_engine_rx_frame);
}

void guest_rx_more(struct guest *g, const uint8_t *frame, size_t len)
{
    receive(g, frame, len, qhca_engine_rx_more);
}

void guest_unblock(struct guest *g)
{
    g->net_blocked = false;
    qhca_engine_tx_ready(g->e, *g->clock);
    guest_settle(g);
}
