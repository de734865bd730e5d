/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine, faults: frames that are damaged or held back. */
#include "rules.h"

/* Return a free place for a frame, or NULL. */
static struct vhca_rule_held *packet_place(struct vhca_rules *f)
{
    for (unsigned i = 0; f->held && i < VHCA_RULE_HELD; i++) {
        if (!f->held[i].used) {
            return &f->held[i];
        }
    }
    return NULL;
}

/* As in a queue of the network, a frame that finds no free place is lost. */
static void hold(struct qhca_engine *e, const struct vhca_rule_frame *f,
                 uint64_t ns, bool swap)
{
    struct vhca_rule_held *h = packet_place(e->rules);

    if (!h) {
        return;
    }
    h->used = true;
    h->swap = swap;
    h->loop = f->loop;
    h->net = f->net;
    h->point = (uint8_t)f->point;
    h->qpn = f->qpn;
    h->from = f->from;
    h->when = e->now + ns;
    h->order = e->rules->order++;
    h->len = f->len;
    memcpy(h->frame, f->frame, f->len);
    e->rules->num_held++;
    vhca_rules_update(e);
}

void vhca_rule_release(struct qhca_engine *e, struct vhca_rule_held *h)
{
    h->used = false;
    e->rules->num_held--;
    vhca_rules_update(e);
}

struct vhca_rule_held *vhca_rule_due(struct qhca_engine *e)
{
    struct vhca_rules *f = e->rules;
    struct vhca_rule_held *first = NULL;

    for (unsigned i = 0; f->num_held && i < VHCA_RULE_HELD; i++) {
        struct vhca_rule_held *h = &f->held[i];

        if (h->used && h->when <= e->now &&
            (!first || h->when < first->when ||
             (h->when == first->when && h->order < first->order))) {
            first = h;
        }
    }
    return first;
}

struct vhca_rule_held *vhca_rule_behind(struct qhca_engine *e,
                                          const struct vhca_rule_frame *f)
{
    struct vhca_rules *all = e->rules;
    struct vhca_rule_held *first = NULL;

    for (unsigned i = 0; all->num_held && i < VHCA_RULE_HELD; i++) {
        struct vhca_rule_held *h = &all->held[i];

        if (h->used && h->swap && h->point == f->point && h->qpn == f->qpn &&
            (!first || h->order < first->order)) {
            first = h;
        }
    }
    return first;
}

void vhca_rule_hurry(struct qhca_engine *e, struct vhca_rule_held *h)
{
    h->swap = false;
    h->when = e->now;
    vhca_rules_update(e);
}

void vhca_rule_repeat(struct qhca_engine *e, const struct vhca_rule_frame *f)
{
    hold(e, f, 0, false);
}

/* ---- damage ---- */

/* Compute the ICRC, which follows the padding, anew. */
static void seal(const struct vhca_rule_frame *f, const struct roce_packet *p)
{
    size_t ip = (size_t)(p->ip - f->frame);
    size_t end = (size_t)(p->payload - f->frame) + p->payload_len + p->pad;
    uint32_t icrc = roce_icrc(p->ip, p->ipv4, end - ip);

    for (unsigned i = 0; i < ICRC_LEN; i++) {
        f->frame[end + i] = (uint8_t)(icrc >> 8 * i);
    }
}

/*
 * Change a byte in the middle of the payload so that the ICRC does not show it,
 * or a byte of the ICRC, so that the receiver drops the packet.
 */
static void damage(const struct vhca_rule_frame *f,
                   const struct roce_packet *p, uint64_t what)
{
    size_t payload = (size_t)(p->payload - f->frame);

    if (what == VHCA_RULE_ICRC) {
        f->frame[payload + p->payload_len + p->pad] ^= 0x55;
    } else if (p->payload_len) {
        f->frame[payload + p->payload_len / 2] ^= 0x55;
        seal(f, p);
    }
}

static void move_psn(const struct vhca_rule_frame *f,
                     const struct roce_packet *p, uint64_t by)
{
    size_t bth = (size_t)(p->ip - f->frame) +
                 (p->ipv4 ? IPV4_LEN : IPV6_LEN) + UDP_LEN;
    uint32_t psn = psn_add(p->psn, (uint32_t)by);

    f->frame[bth + 9] = (uint8_t)(psn >> 16);
    f->frame[bth + 10] = (uint8_t)(psn >> 8);
    f->frame[bth + 11] = (uint8_t)psn;
    seal(f, p);
}

struct vhca_effect vhca_rule_packet(struct qhca_engine *e,
                                    enum vhca_rule_point point, uint32_t qpn,
                                    const struct roce_packet *p)
{
    struct vhca_rule_at at = { .point = (uint8_t)point, .kind = p->opcode };

    at.field[VHCA_RULE_QPN] = qpn;
    at.field[VHCA_RULE_PSN] = p->psn;
    return vhca_rule_judge(e, &at);
}

unsigned vhca_rule_act(struct qhca_engine *e, struct vhca_rule_frame *f,
                        const struct roce_packet *p)
{
    switch (f->does.action) {
    case VHCA_RULE_DROP:
        return 0;
    case VHCA_RULE_DUPLICATE:
        return 2;
    case VHCA_RULE_DELAY:
        hold(e, f, f->does.value, false);
        return 0;
    case VHCA_RULE_REORDER:
        hold(e, f, VHCA_RULE_SWAP_NS, true);
        return 0;
    case VHCA_RULE_CORRUPT:
        damage(f, p, f->does.value);
        return 1;
    case VHCA_RULE_WRONG_PSN:
        move_psn(f, p, f->does.value);
        return 1;
    case VHCA_RULE_MARK:
        roce_set_ecn(f->frame + (p->ip - f->frame), p->ipv4,
                     (uint8_t)f->does.value);
        return 1;
    default:
        return 1;
    }
}

unsigned vhca_rule_frame(struct qhca_engine *e, struct vhca_rule_frame *f)
{
    struct roce_packet p;

    f->does.action = VHCA_RULE_NONE;
    if (f->len > ROCE_MAX_FRAME ||
        roce_parse(&p, f->frame, f->len) != ROCE_OK) {
        return 1;
    }
    if (f->point == VHCA_RULE_RX) {
        f->qpn = p.dest_qp;
    }
    f->does = vhca_rule_packet(e, f->point, f->qpn, &p);
    return vhca_rule_act(e, f, &p);
}
