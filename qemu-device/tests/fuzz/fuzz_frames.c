/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: sessions of a hostile network (fuzz_frames.h).
 */
#include "harness/debug.h"
#include "harness/flows.h"
#include "fuzz_frames.h"

#define NUM_QPS     6
#define MAX_RECORDS 200

/* struct target - the device and its objects */
struct target {
    struct node n, peer;
    struct rc_qp qp[NUM_QPS];
    struct gsrq srq;            /* in the domain of the XRC_TGT QP */
    struct eth_rx rx[2];
    struct rc_qp raw;           /* receives frames by rules */
    uint8_t gid[16], mac[6];
    struct canary canary;
    uint64_t rng;
};

/* The QP that @aim names: one of the first four, or an XRC QP. */
static unsigned qp_of(uint8_t aim)
{
    return aim & 8 ? 4u + (aim & 1) : aim & 3u;
}

/* ---- fixing up a frame ---- */

/* struct place - where the headers of a frame are */
struct place {
    bool ipv4;
    size_t ip, udp, bth;
};

static void put_be(uint8_t *p, uint64_t v, unsigned bytes)
{
    while (bytes--) {
        p[bytes] = (uint8_t)v;
        v >>= 8;
    }
}

static uint64_t get_be(const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;

    while (bytes--) {
        v = v << 8 | *p++;
    }
    return v;
}

static bool find(struct place *at, const uint8_t *f, size_t len)
{
    if (len < ETH_LEN + VLAN_LEN) {
        return false;
    }
    at->ip = ETH_LEN + (get_be(f + 12, 2) == 0x8100 ? VLAN_LEN : 0);
    at->ipv4 = get_be(f + at->ip - 2, 2) == 0x0800;
    at->udp = at->ip + (at->ipv4 ? IPV4_LEN : IPV6_LEN);
    at->bth = at->udp + UDP_LEN;
    return len >= at->bth + BTH_LEN + ICRC_LEN;
}

static void fix_addr(const struct target *t, const struct place *at, uint8_t *f)
{
    unsigned n = at->ipv4 ? 4 : 16;
    uint8_t *addr = f + at->ip + (at->ipv4 ? 12 : 8);

    memcpy(f, t->mac, 6);
    memcpy(addr, t->qp[0].peer_gid + 16 - n, n);
    memcpy(addr + n, t->gid + 16 - n, n);
}

static void fix_length(const struct place *at, uint8_t *f, size_t len)
{
    put_be(f + at->udp + 4, len - at->udp, 2);
    if (at->ipv4) {
        put_be(f + at->ip + 2, len - at->ip, 2);
        put_be(f + at->ip + 10, 0, 2);
        put_be(f + at->ip + 10,
               vhca_csum_fold(vhca_csum_add(0, f + at->ip, IPV4_LEN)), 2);
    } else {
        put_be(f + at->ip + 4, len - at->udp, 2);
    }
}

static void fix_qp(const struct target *t, const struct place *at, uint8_t *f,
                   uint8_t aim)
{
    put_be(f + at->bth + 5, t->qp[qp_of(aim)].qpn, 3);
}

static void fix_psn(const struct target *t, const struct place *at, uint8_t *f,
                    uint8_t aim)
{
    struct vhca_qp *qp = vhca_qp_get(t->n.g->e,
                                     t->qp[qp_of(aim)].qpn);
    bool response = roce_opcode(f[at->bth])->flags & OPF_RESPONSE;

    if (qp) {
        put_be(f + at->bth + 9, ((response ? qp->req.una_psn : qp->rsp.epsn) +
                                 (uint32_t)(aim >> 4) - 4) & PSN_MASK, 3);
    }
}

static void fix_key(const struct target *t, const struct place *at, uint8_t *f,
                    size_t len)
{
    uint16_t flags = roce_opcode(f[at->bth])->flags;
    uint8_t *va = f + at->bth + BTH_LEN;

    if (len < at->bth + BTH_LEN + 20) {
        return;
    }
    if (flags & OPF_XRCETH) {
        put_be(va, t->srq.srqn, 4);
        va += 4;
    }
    if (flags & OPF_DETH) {
        put_be(va, t->qp[3].o.qkey, 4);
    }
    if (flags & OPF_FETH) {
        va += 4;
    }
    if (!(flags & (OPF_RETH | OPF_ATOMICETH))) {
        return;
    }
    put_be(va, t->n.mr.addr + get_be(va, 8) % NODE_MEM, 8);
    put_be(va + 8, t->n.mr.key, 4);
}

static void fix_icrc(const struct place *at, uint8_t *f, size_t len)
{
    size_t total = at->ipv4 ? get_be(f + at->ip + 2, 2) :
                              IPV6_LEN + get_be(f + at->ip + 4, 2);
    uint32_t icrc;

    if (total < at->bth - at->ip + BTH_LEN + ICRC_LEN || total > len - at->ip) {
        return;
    }
    icrc = htole32(roce_icrc(f + at->ip, at->ipv4, total - ICRC_LEN));
    memcpy(f + at->ip + total - ICRC_LEN, &icrc, sizeof(icrc));
}

static void put_right(const struct target *t, const struct record *r,
                      uint8_t *f, size_t len)
{
    struct place at;

    if (!find(&at, f, len)) {
        return;
    }
    if (r->fix & FRAMES_FIX_ADDR) {
        fix_addr(t, &at, f);
    }
    if (r->fix & FRAMES_FIX_LENGTH) {
        fix_length(&at, f, len);
    }
    if (r->fix & FRAMES_FIX_QP) {
        fix_qp(t, &at, f, r->aim);
    }
    if (r->fix & FRAMES_FIX_PSN) {
        fix_psn(t, &at, f, r->aim);
    }
    if (r->fix & FRAMES_FIX_KEY) {
        fix_key(t, &at, f, len);
    }
    if (r->fix & FRAMES_FIX_ICRC) {
        fix_icrc(&at, f, len);
    }
}

/* ---- the session ---- */

static struct target *racer;

static bool in_buf(const struct gbuf *b, uint64_t addr)
{
    for (uint32_t i = 0; i < b->num_blocks; i++) {
        if (addr - b->block[i] < 1ull << b->shift) {
            return true;
        }
    }
    return false;
}

/* Changes data and send WQEs that the device has just read. */
static void race(struct guest *g, uint64_t addr, size_t len, bool write)
{
    struct target *t = racer;
    bool hit = addr - t->n.mr.addr < NODE_MEM;

    for (unsigned i = 0; i < NUM_QPS; i++) {
        hit |= in_buf(&t->qp[i].sq, addr);
    }
    if (!write && hit) {
        *(uint8_t *)guest_ptr(g, addr + test_random(&t->rng) % len, 1) ^=
            (uint8_t)test_random(&t->rng);
    }
}

/* Rules for what the Ethernet queues receive as well, or do not want. */
static void add_rules(struct target *t)
{
    struct qhca_flow r;

    t->raw = flow_qp(&t->n);
    r = flow_rule(&t->raw);
    r.key.dmac[0] = r.mask.dmac[0] = 1;
    flow_add(t->n.g, &r);
    r = flow_rule(&t->raw);
    r.order = QHCA_FLOW_REST;
    flow_match_udp(&r, 7);
    flow_add(t->n.g, &r);
    r.priority = htole32(1);
    r.key.headers = r.mask.headers = QHCA_FLOW_HAS_TCP;
    r.key.dport = r.mask.dport = 0;
    flow_add(t->n.g, &r);
}

/* Gives it a buffer in place of each that has been used. */
static void refill_raw(struct target *t)
{
    const struct vhca_qp *dev = vhca_qp_get(t->n.g->e, t->raw.qpn);

    while (dev->rq.pi - dev->rq.ci < 2) {
        flow_recv(&t->raw, 0, VHCA_MAX_FRAME);
    }
}

static void begin(struct target *t, uint8_t cfg)
{
    static const uint8_t type[NUM_QPS] = {
        QHCA_QPT_RC, QHCA_QPT_UC, QHCA_QPT_RC, QHCA_QPT_UD,
        QHCA_QPT_XRC_TGT, QHCA_QPT_XRC_INI,
    };
    struct qhca_qp_attr slow = { .rate_limit = htole32(1000000) };
    struct rc_opts o = RC_OPTS;
    struct qhca_rss rss;
    unsigned i;

    t->n = node_new(NULL, 1);
    t->n.g->lenient = true;
    node_set_gid(&t->n, cfg & FRAMES_CFG_IPV6,
                 cfg & FRAMES_CFG_VLAN ? 7 : QHCA_NO_VLAN);
    node_gid(&t->n, t->gid, t->mac);
    port_enable(t->n.g, t->mac,
                cfg & FRAMES_CFG_PROMISC ? QHCA_PORT_PROMISC : 0,
                cfg & FRAMES_CFG_SMALL ? 1500 : 9000);
    t->peer = t->n;
    t->peer.host = 2;
    o.mtu = cfg & FRAMES_CFG_SMALL ? 1 : 3;
    o.xrcdn = xrcd_create(t->n.g);
    t->srq = srq_create_xrc(&t->n, t->n.pdn, 6, 4, o.xrcdn);
    for (i = 0; i < NUM_QPS; i++) {
        o.type = type[i];
        o.dest_rd_atomic = o.rd_atomic = i ? 1 : 4;
        t->qp[i] = rc_create(&t->n, &o);
        rc_set_peer(&t->qp[i], &t->peer, 0x77 + i);
        rc_bring_up(&t->qp[i], i == 2 ? QHCA_QPS_RTR : QHCA_QPS_RTS);
    }
    if (cfg & FRAMES_CFG_RATES) {
        congestion_on(t->n.g);
        REQUIRE(!rc_modify(&t->qp[0], &slow, QHCA_QP_RATE_LIMIT));
    }
    rss = eth_rss_even(2);
    for (i = 0; i < 2; i++) {
        /* The second spreads frames. */
        t->rx[i] = eth_rx_create_scatter(t->n.g, &t->n.comp, i, 3,
                                         i ? 500 : 2000, i ? 4 : 0);
    }
    CHECK_EQ(eth_set_rss(t->n.g, 0x3f, &rss), QHCA_OK);
    add_rules(t);
    refill_raw(t);
    canary_begin(&t->canary, &t->n);
    racer = t;
    t->rng = cfg | 1;
    t->n.g->on_dma = cfg & FRAMES_CFG_RACE ? race : NULL;
}

/* The device must send valid packets, whatever it received. */
static void check_sent(struct target *t)
{
    struct guest *g = t->n.g;
    struct roce_packet p;
    unsigned i;

    for (i = 0; i < g->num_sent; i++) {
        REQUIRE(roce_parse(&p, g->sent[i].data, g->sent[i].len) == ROCE_OK);
        REQUIRE(p.dest_qp >= 0x77 && p.dest_qp < 0x77 + NUM_QPS);
        REQUIRE(!memcmp(p.dgid, t->qp[0].peer_gid, 16));
        REQUIRE(!memcmp(p.dmac, t->qp[0].peer_mac, 6));
    }
    g->num_sent = 0;
}

static void empty_cq(struct gcq *cq)
{
    struct qhca_cqe cqe;

    while (cq_poll(cq, &cqe)) {
        REQUIRE(cqe.status <= QHCA_WC_GENERAL_ERR);
    }
}

/* Sets up QPs again that are in an error state. */
static void revive(struct target *t)
{
    struct rc_qp *q;
    unsigned i;

    for (i = 0; i < NUM_QPS; i++) {
        q = &t->qp[i];
        if (rc_state(q) == QHCA_QPS_ERR || rc_state(q) == QHCA_QPS_SQE) {
            REQUIRE(rc_set_state(q, QHCA_QPS_RESET) == QHCA_OK);
            q->sq_pi = q->rq_pi = 0;
            rc_bring_up(q, i == 2 ? QHCA_QPS_RTR : QHCA_QPS_RTS);
        }
    }
}

static void post_send(struct target *t, const struct record *r,
                      uint32_t len)
{
    static const uint8_t opcode[] = {
        QHCA_WR_SEND, QHCA_WR_RDMA_WRITE, QHCA_WR_RDMA_READ,
        QHCA_WR_ATOMIC_FETCH_AND_ADD, QHCA_WR_FLUSH, QHCA_WR_ATOMIC_WRITE,
    };
    struct rc_qp *q = &t->qp[r->aim & 8 ? 5 : r->aim & 1];
    struct vhca_qp *dev = vhca_qp_get(t->n.g->e, q->qpn);
    struct rc_wr wr = rc_wr(q, opcode[(r->aim >> 4) % sizeof(opcode)], 0,
                            len % 20000);

    if (wr.opcode == QHCA_WR_ATOMIC_FETCH_AND_ADD ||
        wr.opcode == QHCA_WR_ATOMIC_WRITE) {
        wr.sge[0].length = 8;
    } else if (wr.opcode == QHCA_WR_FLUSH) {
        wr.num_sge = 0;
        wr.flush_type = QHCA_FLUSH_GLOBAL;
    }
    wr.raddr = 0x1000;
    wr.rkey = 0x42;
    wr.srqn = 0x43;
    if (dev && dev->sq.pi - dev->sq.ci < vhca_wq_size(&dev->sq)) {
        rc_post(q, &wr);
    }
}

static void post_recv(struct target *t, const struct record *r,
                      uint32_t len)
{
    struct rc_qp *q = &t->qp[qp_of(r->aim)];
    struct vhca_qp *dev = vhca_qp_get(t->n.g->e, q->qpn);

    if (q->o.type == QHCA_QPT_XRC_TGT) {
        struct vhca_srq *srq = vhca_srq_get(t->n.g->e, t->srq.srqn);

        if (srq->wq.pi - srq->wq.ci < vhca_wq_size(&srq->wq)) {
            srq_post(&t->srq, 1, 0, len);
        }
    } else if (dev && dev->rq.pi - dev->rq.ci < vhca_wq_size(&dev->rq)) {
        rc_recv(q, 1, 0, len);
    }
}

static void play(struct target *t, const struct record *r,
                 const uint8_t *data, size_t len)
{
    uint8_t frame[MAX_FRAME];

    switch (r->kind % FRAMES_KINDS) {
    case FRAMES_FRAME:
        memcpy(frame, data, len);
        put_right(t, r, frame, len);
        guest_rx(t->n.g, frame, len);
        break;
    case FRAMES_RECV:
        post_recv(t, r, (uint32_t)record_number(r));
        break;
    case FRAMES_SEND:
        post_send(t, r, (uint32_t)record_number(r));
        break;
    default:
        guest_advance(t->n.g, record_number(r) * 1000ull);
        revive(t);
        break;
    }
    guest_settle(t->n.g);
}

static uint64_t finish(struct target *t)
{
    uint64_t taken = t->n.g->e->cnt[QHCA_CNT_RX_PKTS] +
                     t->n.g->e->cnt[QHCA_CNT_ETH_RX_PKTS];

    guest_advance(t->n.g, 1000000000);
    check_sent(t);
    REQUIRE(!t->n.g->e->inside);
    REQUIRE(t->n.g->dma_after_stop == 0);
    canary_end(&t->canary);
    qhca_engine_reset(t->n.g->e, *t->n.g->clock);
    REQUIRE(qhca_engine_num_objects(t->n.g->e) == 0);
    REQUIRE(t->n.g->e->table_blocks == 0);
    harness_cleanup();
    return taken;
}

uint64_t frames_session(const uint8_t *data, size_t size)
{
    const uint8_t *end = data + size;
    struct record r;
    struct target t;
    unsigned i, n;
    size_t len;

    begin(&t, size ? *data++ : 0);
    for (n = 0; n < MAX_RECORDS && end - data > (ptrdiff_t)sizeof(r); n++) {
        memcpy(&r, data, sizeof(r));
        data += sizeof(r);
        len = 0;
        if (r.kind % FRAMES_KINDS == FRAMES_FRAME) {
            len = record_number(&r);
            len = len > MAX_FRAME ? MAX_FRAME : len;
            len = len > (size_t)(end - data) ? (size_t)(end - data) : len;
        }
        play(&t, &r, data, len);
        data += len;
        check_sent(&t);
        canary_check(&t.canary);
        for (i = 0; i < NUM_QPS; i++) {
            empty_cq(&t.qp[i].scq);
            empty_cq(&t.qp[i].rcq);
        }
        empty_cq(&t.srq.cq);
        empty_cq(&t.raw.rcq);
        refill_raw(&t);
        eth_rx_refill(&t.rx[0]);
        eth_rx_refill(&t.rx[1]);
    }
    REQUIRE(dev_state(t.n.g) == QHCA_STATE_RUNNING);
    return finish(&t);
}
