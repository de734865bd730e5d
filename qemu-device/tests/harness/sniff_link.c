/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: where the sniffer listens: where the engine's link has
 * finished a frame, or hands a packet across to another QP. Fault rules and the
 * network act later, and frames that a test builds itself do not pass there.
 */
#include "debug.h"
#include "harness.h"
#include "sniff.h"

/* The QP whose turn it is, and its machine, if that is one of the harness. */
static const struct vhca_qp *sender;
static struct guest *machine;

static void complain(const char *why, uint32_t qpn, const struct sniffed *s)
{
    tap_note("QP %x sends opcode 0x%02x, PSN 0x%06x, %zu bytes", qpn, s->opcode,
             s->psn, s->payload_len);
    tap_fail("sniffer", 0, why);
}

static void qp_state(struct guest *g, uint32_t qpn, unsigned from, unsigned to)
{
    sniff_state(g->sniffer, qpn, from, to);
}

static void listen(struct guest *g, const struct vhca_qp *qp, uint8_t state,
                   const uint8_t *frame, size_t len, bool crosses)
{
    const struct sniff_qp of = {
        .qpn = qp->qpn, .mtu = 128u << qp->attr.path_mtu, .state = state,
        .sq_psn = le32toh(qp->attr.sq_psn) & 0xffffff,
    };
    struct sniffed s;
    const char *why;

    if (g->forged) {
        return;
    }
    why = sniff_read(&s, frame, len, crosses);
    if (!g->sniffer) {
        g->sniffer = sniffer_new();
        g->on_qp_state = qp_state;
    }
    if (!why) {
        why = sniff_next(g->sniffer, &of, &s);
    }
    if (why) {
        complain(why, qp->qpn, &s);
    }
}

/* ---- frames ---- */

void __real_vhca_link_turn(struct qhca_engine *e, struct vhca_qp *qp);
void __wrap_vhca_link_turn(struct qhca_engine *e, struct vhca_qp *qp)
{
    const struct vhca_qp *before = sender;
    struct guest *of = machine;

    machine = e->ops == &guest_ops ? e->opaque : NULL;
    sender = qp;
    __real_vhca_link_turn(e, qp);
    machine = of;
    sender = before;
}

size_t __real_roce_finish(const struct roce_packet *p, uint8_t *frame);
size_t __wrap_roce_finish(const struct roce_packet *p, uint8_t *frame)
{
    size_t len = __real_roce_finish(p, frame);

    if (machine) {
        listen(machine, sender, sender->state, frame, len, false);
    }
    return len;
}

/* ---- packets without a frame ---- */

/* The first, middle and last opcodes in a burst, by the opcode of it all. */
static const struct opcodes {
    uint8_t first, middle, last;
} opcodes_of[32] = {
    [0x00] = { 0x00, 0x01, 0x01 }, [0x01] = { 0x01, 0x01, 0x01 },
    [0x02] = { 0x01, 0x01, 0x02 }, [0x03] = { 0x01, 0x01, 0x03 },
    [0x04] = { 0x00, 0x01, 0x02 }, [0x05] = { 0x00, 0x01, 0x03 },
    [0x06] = { 0x06, 0x07, 0x07 }, [0x07] = { 0x07, 0x07, 0x07 },
    [0x08] = { 0x07, 0x07, 0x08 }, [0x09] = { 0x07, 0x07, 0x09 },
    [0x0a] = { 0x06, 0x07, 0x08 }, [0x0b] = { 0x06, 0x07, 0x09 },
    [0x0d] = { 0x0d, 0x0e, 0x0e }, [0x0e] = { 0x0e, 0x0e, 0x0e },
    [0x0f] = { 0x0e, 0x0e, 0x0f }, [0x10] = { 0x0d, 0x0e, 0x0f },
    [0x16] = { 0x01, 0x01, 0x16 }, [0x17] = { 0x00, 0x01, 0x16 },
};

/* The packet with index @i of those that @all stands for. */
static struct roce_packet one_of(const struct roce_packet *all, uint32_t i)
{
    const struct opcodes *o = &opcodes_of[all->opcode & 0x1f];
    bool last = i + 1 == all->num_psn;
    struct roce_packet p = *all;

    p.sport = 0xc000;
    if (all->num_psn == 1) {
        return p;
    }
    p.opcode = (all->opcode & 0xe0) |
               (i == 0 ? o->first : last ? o->last : o->middle);
    p.psn = (all->psn + i) & 0xffffff;
    p.num_psn = 1;
    p.payload_len = last ? all->payload_len - (size_t)i * all->mtu : all->mtu;
    p.ackreq = last && all->ackreq;
    p.solicited = last && all->solicited;
    return p;
}

static uint8_t across[VHCA_SPAN * 4096];

/* Copies the payload, before the packet arrives where that may lie. */
static void copy_payload(const struct roce_packet *p)
{
    size_t len = 0;

    REQUIRE(p->payload_len <= sizeof(across));
    for (size_t i = 0; len < p->payload_len; i++) {
        struct vhca_piece at = roce_piece(p, i, len);

        memcpy(across + len, at.base, at.len);
        len += at.len;
    }
}

static void listen_across(struct guest *g, const struct vhca_qp *qp,
                          uint8_t state, const struct roce_packet *all)
{
    static uint8_t frame[ROCE_MAX_FRAME];
    size_t off = 0;

    for (uint32_t i = 0; i < all->num_psn; i++) {
        struct roce_packet p = one_of(all, i);

        memcpy(frame + roce_payload_offset(&p), across + off, p.payload_len);
        off += p.payload_len;
        listen(g, qp, state, frame, __real_roce_finish(&p, frame), true);
    }
}

/* Only the packets that are taken have been sent. */
void __real_vhca_link_cross(struct qhca_engine *e, const struct vhca_qp *by,
                            const struct vhca_way *way, struct roce_packet *p);
void __wrap_vhca_link_cross(struct qhca_engine *e, const struct vhca_qp *by,
                            const struct vhca_way *way, struct roce_packet *p)
{
    uint8_t state = by->state;

    copy_payload(p);
    __real_vhca_link_cross(e, by, way, p);
    if (e->ops == &guest_ops) {
        listen_across(e->opaque, by, state, p);
    }
}

/* An ACK of all that has crossed, for which the engine builds no packet. */
void __real_vhca_link_ack(struct qhca_engine *e, struct vhca_qp *qp,
                          const struct vhca_way *way, uint32_t psn);
void __wrap_vhca_link_ack(struct qhca_engine *e, struct vhca_qp *qp,
                          const struct vhca_way *way, uint32_t psn)
{
    const struct vhca_qp *by = way->peer;
    const struct vhca_gid *local = &way->at->port->gid[by->attr.av.sgid_index];
    const struct roce_packet ack = {
        .opcode = vhca_qp_service(by) | RC_ACKNOWLEDGE, .syndrome = AETH_ACK,
        .psn = psn, .msn = by->rsp.msn, .dest_qp = qp->qpn, .num_psn = 1,
        .pkey = PKEY_DEFAULT, .vlan = local->vlan, .ipv4 = local->ipv4,
    };

    if (way->at->ops == &guest_ops) {
        listen_across(way->at->opaque, by, by->state, &ack);
    }
    __real_vhca_link_ack(e, qp, way, psn);
}
