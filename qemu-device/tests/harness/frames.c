/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: Ethernet frames and Ethernet queues.
 */
#include "frames.h"

static uint16_t csum(uint32_t sum, const uint8_t *p, size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
    }
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)~sum;
}

static uint32_t partial(const uint8_t *p, size_t len)
{
    return (uint16_t)~csum(0, p, len);
}

static void put16(uint8_t *p, unsigned v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static void put_udp(uint8_t *udp, unsigned dport, size_t payload,
                    uint32_t pseudo)
{
    size_t i, len = 8 + payload;

    put16(udp, 0xc123);
    put16(udp + 2, dport);
    put16(udp + 4, (unsigned)len);
    put16(udp + 6, 0);
    for (i = 0; i < payload; i++) {
        udp[8 + i] = (uint8_t)(i * 3 + 1);
    }
    put16(udp + 6, csum(pseudo + 17 + (uint32_t)len, udp, len));
}

static void put_eth(struct frame *f, const uint8_t *dmac, unsigned type)
{
    static const uint8_t smac[6] = { 0x52, 0x54, 0, 0xaa, 0xbb, 0xcc };

    memcpy(f->data, dmac, 6);
    memcpy(f->data + 6, smac, 6);
    put16(f->data + 12, type);
}

struct frame udp_frame(const uint8_t *dmac, unsigned from, unsigned to,
                       unsigned dport, size_t payload)
{
    struct frame f = { .len = 14 + 20 + 8 + payload };
    uint8_t *ip = f.data + 14;

    put_eth(&f, dmac, 0x0800);
    ip[0] = 0x45;
    put16(ip + 2, (unsigned)(28 + payload));
    ip[8] = 64;
    ip[9] = 17;
    ip[12] = ip[16] = 10;
    ip[15] = (uint8_t)from;
    ip[19] = (uint8_t)to;
    put16(ip + 10, csum(0, ip, 20));
    put_udp(ip + 20, dport, payload, partial(ip + 12, 8));
    return f;
}

struct frame udp6_frame(const uint8_t *dmac, const uint8_t *dst, unsigned dport,
                        size_t payload)
{
    struct frame f = { .len = 14 + 40 + 8 + payload };
    uint8_t *ip = f.data + 14;

    put_eth(&f, dmac, 0x86dd);
    ip[0] = 0x60;
    put16(ip + 4, (unsigned)(8 + payload));
    ip[6] = 17;
    ip[7] = 64;
    ip[8] = 0xfd;
    ip[23] = 2;
    memcpy(ip + 24, dst, 16);
    put_udp(ip + 40, dport, payload, partial(ip + 8, 32));
    return f;
}

void frame_add_vlan(struct frame *f, unsigned tci)
{
    memmove(f->data + 16, f->data + 12, f->len - 12);
    put16(f->data + 12, 0x8100);
    put16(f->data + 14, tci);
    f->len += 4;
}

/* ---- queues ---- */

/* @frags: of a receive queue that spreads frames, else 0 */
static uint32_t create_ethq(struct guest *g, const struct gcq *cq,
                            const struct gbuf *ring, unsigned log,
                            unsigned dir, unsigned index, unsigned frags)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_CREATE_ETHQ) };

    cmd.create_ethq.buf = ring->desc;
    cmd.create_ethq.cqn = htole32(cq->cqn);
    cmd.create_ethq.log_size = (uint8_t)log;
    cmd.create_ethq.dir = (uint8_t)dir;
    cmd.create_ethq.index = (uint8_t)index;
    cmd.create_ethq.flags = frags ? QHCA_ETHQ_SCATTER : 0;
    cmd.create_ethq.frags = (uint8_t)frags;
    return guest_create(g, &cmd);
}

static struct qhca_eth_wqe *wqe_at(struct guest *g, const struct gbuf *ring,
                                   unsigned log, uint32_t index)
{
    uint64_t off = (index & ((1u << log) - 1)) * sizeof(struct qhca_eth_wqe);

    return guest_ptr(g, gbuf_addr(ring, off), sizeof(struct qhca_eth_wqe));
}

static void post_buffer(struct eth_rx *q, uint32_t which)
{
    struct qhca_eth_wqe *w = wqe_at(q->g, &q->ring, q->log, q->pi++);

    memset(w, 0, sizeof(*w));
    w->wr_id = htole64(which);
    w->addr = htole64(q->buf[which]);
    w->length = htole32(q->buf_len);
}

struct eth_rx eth_rx_create_scatter(struct guest *g, const struct geq *eq,
                                    unsigned index, unsigned log,
                                    uint32_t buf_len, unsigned frags)
{
    struct eth_rx q = { .g = g, .log = log, .buf_len = buf_len };
    uint32_t i;

    q.cq = cq_create(g, eq, 0, log);
    q.ring = guest_buf(g, sizeof(struct qhca_eth_wqe) << log, 12, 1);
    q.number = create_ethq(g, &q.cq, &q.ring, log, QHCA_ETH_RX, index,
                           frags);
    q.buf = address_list(1u << log);
    for (i = 0; i < 1u << log; i++) {
        q.buf[i] = guest_alloc(g, buf_len, 64);
        post_buffer(&q, i);
    }
    ring(g, 0, QHCA_DB_ETH, q.number, q.pi);
    return q;
}

struct eth_rx eth_rx_create_at(struct guest *g, const struct geq *eq,
                               unsigned index, unsigned log, uint32_t buf_len)
{
    return eth_rx_create_scatter(g, eq, index, log, buf_len, 0);
}

struct eth_rx eth_rx_create(struct guest *g, const struct geq *eq, unsigned log,
                            uint32_t buf_len)
{
    return eth_rx_create_at(g, eq, 0, log, buf_len);
}

void eth_rx_refill(struct eth_rx *q)
{
    struct qhca_cqe cqe;

    /* All WQEs up to the CQE's are free, and buffers come in turn. */
    while (cq_poll(&q->cq, &cqe)) {
        while (q->pi - le32toh(cqe.wqe_index) <= 1u << q->log) {
            post_buffer(q, q->pi & ((1u << q->log) - 1));
        }
    }
    ring(q->g, 0, QHCA_DB_ETH, q->number, q->pi);
}

struct qhca_rss eth_rss_even(unsigned queues)
{
    struct qhca_rss rss = { 0 };

    for (unsigned i = 0; i < sizeof(rss.key); i++) {
        rss.key[i] = (uint8_t)(i * 37 + 11);
    }
    for (unsigned i = 0; i < sizeof(rss.queue); i++) {
        rss.queue[i] = (uint8_t)(i % queues);
    }
    return rss;
}

int eth_set_rss(struct guest *g, uint32_t types, const struct qhca_rss *rss)
{
    return eth_set_context(g, 0, types, rss);
}

int eth_set_context(struct guest *g, uint32_t context, uint32_t types,
                    const struct qhca_rss *rss)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_SET_RSS) };

    cmd.set_rss.types = htole32(types);
    cmd.set_rss.context = htole32(context);
    return guest_cmd_mbox(g, &cmd, rss, rss ? sizeof(*rss) : 0, NULL, 0, NULL);
}

struct eth_tx eth_tx_create_at(struct guest *g, const struct geq *eq,
                               unsigned index, unsigned log)
{
    struct eth_tx q = { .g = g, .log = log };

    q.cq = cq_create(g, eq, 0, log);
    q.ring = guest_buf(g, sizeof(struct qhca_eth_wqe) << log, 12, 1);
    q.number = create_ethq(g, &q.cq, &q.ring, log, QHCA_ETH_TX, index, 0);
    return q;
}

struct eth_tx eth_tx_create(struct guest *g, const struct geq *eq, unsigned log)
{
    return eth_tx_create_at(g, eq, 0, log);
}

struct qhca_eth_wqe *eth_tx_post(struct eth_tx *q, uint64_t addr, uint32_t len,
                                 unsigned flags)
{
    struct qhca_eth_wqe *w = wqe_at(q->g, &q->ring, q->log, q->pi);

    memset(w, 0, sizeof(*w));
    w->wr_id = htole64(q->pi++);
    w->addr = htole64(addr);
    w->length = htole32(len);
    w->flags = htole16((uint16_t)flags);
    return w;
}

void eth_tx_ring(struct eth_tx *q)
{
    ring(q->g, 0, QHCA_DB_ETH, q->number, q->pi);
    guest_settle(q->g);
}
