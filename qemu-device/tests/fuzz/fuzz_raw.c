/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: sessions of a hostile guest whose QPs send and receive
 * Ethernet frames: QPs of type RAW, rules and spreads.
 */
#include "harness/flows.h"
#include "fuzz.h"

#define PORTS   3u              /* of UDP, that frames are to */

static void add_rule(struct fuzz *f, const struct qhca_flow *r)
{
    uint32_t number = 0;

    REQUIRE(flow_create(f->n.g, r, &number) == QHCA_OK);
    remember(f, FLOW, number);
}

/* Rules for both QPs: for a port, for all frames to groups, for the rest. */
static void add_rules(struct fuzz *f)
{
    const struct rc_qp *q[] = { &f->a, &f->b };

    for (unsigned i = 0; i < ARRAY_SIZE(q); i++) {
        struct qhca_flow r = flow_rule(q[i]);

        r.tag = htole32(i);
        r.key.dmac[0] = r.mask.dmac[0] = 1;
        add_rule(f, &r);
        r = flow_rule(q[i]);
        r.priority = htole32(1);
        flow_match_udp(&r, i);
        add_rule(f, &r);
        r = flow_rule(q[i]);
        r.order = QHCA_FLOW_REST;
        add_rule(f, &r);
    }
}

static void add_spread(struct fuzz *f)
{
    struct qhca_spread s = {
        .types = htole32(VHCA_RSS_TYPES), .log_size = 1, .key = { 1, 2, 3 },
        .qpn = { htole32(f->a.qpn), htole32(f->b.qpn) },
    };
    struct qhca_flow r = { .action = QHCA_FLOW_SPREAD };
    uint32_t number = 0;

    REQUIRE(spread_create(f->n.g, &s, &number) == QHCA_OK);
    remember(f, SPREAD, number);
    r.target = htole32(number);
    r.priority = htole32(1);
    flow_match_udp(&r, 2);
    add_rule(f, &r);
}

void fuzz_raw_begin(struct fuzz *f, struct rc_opts *o)
{
    o->type = QHCA_QPT_RAW;
    f->a = rc_create(&f->n, o);
    f->srq = srq_create(&f->n2, f->n2.pdn, 5, 3);
    if (one_in(f, 2)) {
        o->srqn = f->srq.srqn;
    }
    o->uar = 2;
    f->b = rc_create(&f->n2, o);
    add_rules(f);
    add_spread(f);
}

/* A frame that rules may be for, with mistakes. */
static struct frame some_frame(struct fuzz *f)
{
    static const uint8_t macs[][6] = {
        { 0x52, 0x54, 0, 9, 9, 9 }, { 0x01, 0, 0x5e, 1, 1, 1 },
        { 255, 255, 255, 255, 255, 255 },
    };
    static const uint8_t v6[16] = { 0xfd, [15] = 9 };
    const uint8_t *to = macs[rnd(f, ARRAY_SIZE(macs))];
    unsigned port = one_in(f, 9) ? 4791 : (unsigned)rnd(f, PORTS);
    size_t len = rnd(f, one_in(f, 4) ? 9000 : 300);
    struct frame fr;

    if (one_in(f, 3)) {
        fr = udp6_frame(to, v6, port, len);
    } else {
        fr = udp_frame(to, (unsigned)rnd(f, 3), 2, port, len);
    }
    while (one_in(f, 4)) {
        frame_add_vlan(&fr, (unsigned)rnd(f, 0x10000));
    }
    while (one_in(f, 2)) {
        fr.data[rnd(f, 70)] = (uint8_t)nasty(f);
    }
    if (one_in(f, 9)) {
        fr.len = rnd(f, fr.len + 1);
    }
    return fr;
}

void fuzz_raw_rx(struct fuzz *f)
{
    struct frame fr = some_frame(f);

    guest_rx(f->n.g, fr.data, fr.len);
}

void fuzz_raw_wr(struct fuzz *f, const struct rc_qp *q, struct rc_wr *wr)
{
    struct frame fr = some_frame(f);
    uint64_t off = rnd(f, NODE_MEM - sizeof(fr.data));

    memcpy(guest_ptr(f->n.g, q->n->mr.addr + off, fr.len), fr.data, fr.len);
    wr->opcode = QHCA_WR_SEND;
    wr->flags = (uint8_t)rnd(f, 32) & (uint8_t)~QHCA_WQE_INLINE;
    wr->num_sge = 1;
    wr->sge[0].addr = q->n->mr.addr + off;
    wr->sge[0].length = (uint32_t)fr.len;
    wr->sge[0].lkey = q->n->mr.key;
}
