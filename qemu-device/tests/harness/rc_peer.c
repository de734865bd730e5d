/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the scripted peer. It builds packets itself, so it can
 * send what no engine would.
 */
#include "rc.h"

struct roce_packet peer_packet(const struct rc_qp *q, uint8_t opcode,
                               uint32_t psn)
{
    struct roce_packet p = {
        .vlan = q->n->vlan, .ipv4 = !q->n->ipv6, .hop_limit = 64,
        .sport = 0xc123, .opcode = opcode, .pkey = PKEY_DEFAULT,
        .psn = psn & PSN_MASK, .dest_qp = q->qpn, .syndrome = AETH_ACK,
        .ackreq = q->o.type != QHCA_QPT_UC && q->o.type != QHCA_QPT_UD,
        .qkey = q->o.qkey, .src_qp = q->peer_qpn,
    };

    memcpy(p.smac, q->peer_mac, 6);
    memcpy(p.sgid, q->peer_gid, 16);
    node_gid(q->n, p.dgid, p.dmac);
    if (roce_opcode(opcode)->flags & OPF_RESPONSE) {
        p.ackreq = false;
    }
    return p;
}

struct roce_packet peer_request(const struct rc_qp *q, uint8_t opcode,
                                uint32_t psn, uint64_t off, uint32_t dma_len)
{
    struct roce_packet p = peer_packet(q, opcode, psn);

    p.va = q->n->mr.addr + off;
    p.rkey = q->n->mr.key;
    p.dma_len = dma_len;
    return p;
}

struct roce_packet peer_to_group(const struct rc_qp *q, uint32_t psn,
                                 const uint8_t *gid)
{
    struct roce_packet p = peer_packet(q, SVC_UD | RC_SEND_ONLY, psn);
    const uint8_t mac4[6] = { 0x01, 0, 0x5e, gid[13] & 0x7f, gid[14], gid[15] };
    const uint8_t mac6[6] = { 0x33, 0x33, gid[12], gid[13], gid[14], gid[15] };

    p.dest_qp = QHCA_QPN_MCAST;
    memcpy(p.dgid, gid, 16);
    memcpy(p.dmac, p.ipv4 ? mac4 : mac6, 6);
    return p;
}

void peer_inject(struct rc_qp *q, const struct roce_packet *p,
                 const void *payload, size_t len)
{
    uint8_t frame[MAX_FRAME];
    struct roce_packet out = *p;

    out.payload_len = len;
    if (len) {
        memcpy(frame + roce_payload_offset(p), payload, len);
    }
    guest_rx(q->n->g, frame, roce_finish(&out, frame));
    guest_settle(q->n->g);
}

void peer_send(struct rc_qp *q, uint8_t opcode, uint32_t psn,
               const void *payload, size_t len)
{
    struct roce_packet p = peer_packet(q, opcode, psn);

    peer_inject(q, &p, payload, len);
}

void peer_nak(struct rc_qp *q, uint8_t syndrome, uint32_t psn)
{
    struct roce_packet p = peer_packet(q, RC_ACKNOWLEDGE, psn);

    p.syndrome = syndrome;
    peer_inject(q, &p, NULL, 0);
}

void peer_ack(struct rc_qp *q, uint32_t psn)
{
    peer_nak(q, AETH_ACK, psn);
}

/* The frame returned last: removing it from g->sent moves the others. */
static uint8_t last_frame[MAX_FRAME];

bool peer_next(struct rc_qp *q, struct roce_packet *p)
{
    struct guest *g = q->n->g;
    size_t len;

    if (!g->num_sent) {
        return false;
    }
    len = g->sent[0].len;
    memcpy(last_frame, g->sent[0].data, len);
    memmove(g->sent, g->sent + 1, --g->num_sent * sizeof(*g->sent));
    CHECK_EQ(roce_parse(p, last_frame, len), ROCE_OK);
    CHECK_EQ(p->dest_qp, q->peer_qpn);
    CHECK(!memcmp(p->dmac, q->peer_mac, 6));
    CHECK(!memcmp(p->dgid, q->peer_gid, 16));
    CHECK_EQ(p->pkey, 0xffff);
    CHECK(!p->payload_len || roce_opcode(p->opcode)->flags & OPF_PAYLOAD);
    return true;
}

struct roce_packet peer_expect(struct rc_qp *q, uint8_t opcode, uint32_t psn)
{
    struct roce_packet p = { 0 };

    if (!peer_next(q, &p)) {
        tap_note("no packet, expected opcode 0x%02x PSN 0x%06x", opcode,
                 psn & PSN_MASK);
        tap_fail(__FILE__, __LINE__, "packet");
        return p;
    }
    CHECK_EQ(p.opcode, opcode);
    CHECK_EQ(p.psn, psn & PSN_MASK);
    /* D-017: responses with data have no credits. Callers check ACKs. */
    if ((roce_opcode(p.opcode)->flags & OPF_AETH) &&
        (p.opcode & 0x1f) != RC_ACKNOWLEDGE) {
        CHECK_EQ(p.syndrome, AETH_ACK);
    }
    return p;
}

void peer_expect_none(struct rc_qp *q)
{
    struct roce_packet p;

    if (peer_next(q, &p)) {
        tap_note("opcode 0x%02x PSN 0x%06x syndrome 0x%02x", p.opcode, p.psn,
                 p.syndrome);
        tap_fail(__FILE__, __LINE__, "no packet");
    }
}

unsigned peer_drain(struct rc_qp *q)
{
    unsigned n = q->n->g->num_sent;

    q->n->g->num_sent = 0;
    return n;
}
