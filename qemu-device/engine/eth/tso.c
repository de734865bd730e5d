/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: TCP segmentation: a frame that is too large for the network is
 * sent as several, each with its own headers, unless the network takes it as it
 * is.
 */
#include "eth.h"
#include "../wire/wire.h"

#define TCP_FIN         0x01
#define TCP_PSH         0x08
#define TCP_CWR         0x80

/*
 * Find the headers of a frame, whose type of at most one VLAN tag or of IP ends
 * at @l3; @csum_start: of its TCP header. false: it is not TCP over IP.
 */
static bool find_headers(struct vhca_tso *t, const uint8_t *frame, uint32_t len,
                         uint32_t l3, uint16_t csum_start)
{
    uint32_t type;
    bool fragment;

    if (len < l3 + VHCA_VLAN_ROOM + IPV4_LEN) {
        return false;
    }
    t->l3 = (uint16_t)l3;
    if (get_be16(frame + l3 - 2) == ETHERTYPE_VLAN) {
        t->l3 += VHCA_VLAN_ROOM;
    }
    type = get_be16(frame + t->l3 - 2);
    t->ipv4 = type == ETHERTYPE_IPV4;
    if ((!t->ipv4 && type != ETHERTYPE_IPV6) ||
        frame[t->l3] >> 4 != (t->ipv4 ? 4 : 6)) {
        return false;
    }
    if (csum_start < t->l3 + (t->ipv4 ? IPV4_LEN : IPV6_LEN) ||
        csum_start != vhca_frame_find_l4(frame, len, t->l3, IP_PROTO_TCP,
                                         &fragment)) {
        return false;
    }
    if (csum_start > VHCA_TSO_HDR - 60u + (l3 - ETH_LEN) ||
        csum_start + (uint32_t)TCP_LEN > len) {
        return false;
    }
    t->l4 = csum_start;
    t->hdr_len = (uint16_t)(t->l4 + (frame[t->l4 + 12] >> 4) * 4);
    return t->hdr_len >= t->l4 + TCP_LEN && t->hdr_len <= len;
}

bool vhca_tso_headers_ok(const struct vhca_tso *t,
                         const struct vhca_eth_gather *g)
{
    uint32_t tag = g->flags & QHCA_ETH_VLAN ? VHCA_VLAN_ROOM : 0;
    struct vhca_tso found;

    return find_headers(&found, t->hdr, t->hdr_len, ETH_LEN + tag,
                        (uint16_t)(g->csum_start + tag)) &&
           found.ipv4 == t->ipv4 && found.l3 == t->l3 && found.l4 == t->l4 &&
           found.hdr_len == t->hdr_len;
}

/* Make the header that all frames start from, with the tag if there is one. */
static void make_header(struct vhca_tso *t, const struct vhca_eth_gather *g)
{
    const uint8_t *frame = g->data + VHCA_VLAN_ROOM;

    if (!(g->flags & QHCA_ETH_VLAN)) {
        memcpy(t->hdr, frame, t->hdr_len);
        return;
    }
    memcpy(t->hdr, frame, 12);
    put_be16(t->hdr + 12, ETHERTYPE_VLAN);
    put_be16(t->hdr + 14, g->vlan_tci);
    memcpy(t->hdr + 16, frame + 12, t->hdr_len - 12u);
    t->l3 += VHCA_VLAN_ROOM;
    t->l4 += VHCA_VLAN_ROOM;
    t->hdr_len += VHCA_VLAN_ROOM;
}

bool vhca_tso_fits(const struct vhca_tso *t, uint32_t mtu)
{
    return t->hdr_len + MIN_OF(t->len, t->mss) <= t->l3 + mtu;
}

enum qhca_cqe_status vhca_tso_start(struct vhca_eth_gather *g, uint32_t mtu)
{
    struct vhca_tso *t = &g->tso;

    memset(t, 0, sizeof(*t));
    if (!g->mss || !find_headers(t, g->data + VHCA_VLAN_ROOM, g->len, ETH_LEN,
                                 g->csum_start)) {
        return QHCA_WC_LOC_QP_OP_ERR;
    }
    t->mss = g->mss;
    t->payload = VHCA_VLAN_ROOM + t->hdr_len;
    t->len = g->len - t->hdr_len;
    make_header(t, g);
    if (!vhca_tso_fits(t, mtu)) {
        return QHCA_WC_LOC_LEN_ERR;
    }
    t->active = true;
    return QHCA_WC_SUCCESS;
}

/* Write IP's lengths and checksum for @n bytes of payload. */
static void fill_ip(const struct vhca_tso *t, uint8_t *ip, uint32_t n)
{
    if (t->ipv4) {
        put_be16(ip + 2, (uint16_t)(t->hdr_len - t->l3 + n));
        put_be16(ip + 4, (uint16_t)(get_be16(ip + 4) + t->pieces));
        put_be16(ip + 10, 0);
        put_be16(ip + 10, vhca_csum_fold(vhca_csum_add(0, ip,
                                                       t->l4 - t->l3)));
    } else {
        put_be16(ip + 4, (uint16_t)(t->hdr_len - t->l3 - IPV6_LEN + n));
    }
}

/* Write the header of the frame with the next @n bytes. */
static void fill_header(const struct vhca_tso *t, uint8_t *frame, uint32_t n)
{
    uint8_t *ip = frame + t->l3, *tcp = frame + t->l4;
    uint32_t tcp_len = t->hdr_len - t->l4 + n, sum;

    memcpy(frame, t->hdr, t->hdr_len);
    fill_ip(t, ip, n);
    put_be32(tcp + 4, get_be32(tcp + 4) + t->done);
    if (t->done + n < t->len) {
        tcp[13] &= (uint8_t)~(TCP_FIN | TCP_PSH);
    }
    if (t->done > 0) {
        tcp[13] &= (uint8_t)~TCP_CWR;
    }
    put_be16(tcp + 16, 0);
    sum = vhca_csum_pseudo(ip, t->ipv4, IP_PROTO_TCP, tcp_len);
    put_be16(tcp + 16, vhca_csum_fold(vhca_csum_add(sum, tcp, tcp_len)));
}

/*
 * Return whether the network would cut this segment as vhca_tso_send() does.
 * Rare cases return false, as do a CWR, which belongs in the first frame only,
 * and frames that need padding.
 */
static bool may_be_whole(const struct vhca_tso *t, const struct vhca_cut *cut)
{
    const uint8_t *ip = t->hdr + t->l3;
    uint32_t len = t->hdr_len - t->l3 + t->len;

    if (t->done || cut->num < 2 || cut->num > VHCA_TSO_WHOLE ||
        MIN_OF(cut->len, cut->last) < ETH_MIN_LEN ||
        t->l3 > ETH_LEN + VHCA_VLAN_ROOM || t->hdr[t->l4 + 13] & TCP_CWR) {
        return false;
    }
    return t->ipv4 ? len <= UINT16_MAX && !(get_be16(ip + 6) & 0x3fff) :
                     len - IPV6_LEN <= UINT16_MAX && t->l4 == t->l3 + IPV6_LEN;
}

/* Send the segment whole if the network takes it; false: it has to be cut. */
static bool send_whole(struct qhca_engine *e, struct vhca_eth_gather *g)
{
    struct vhca_tso *t = &g->tso;
    uint8_t *frame = g->data + t->payload - t->hdr_len;
    const struct vhca_cut cut = {
        .num = (t->len + t->mss - 1) / t->mss,
        .len = t->hdr_len + t->mss,
        .last = t->hdr_len + (t->len - 1) % t->mss + 1,
    };
    const struct qhca_long_frame how = {
        .hdr_len = t->hdr_len, .mss = t->mss, .csum_start = t->l4,
        .csum_offset = 16, .ipv4 = t->ipv4,
    };

    if (!e->ops->send_long || !may_be_whole(t, &cut)) {
        return false;
    }
    memcpy(frame, t->hdr, t->hdr_len);
    fill_ip(t, frame + t->l3, t->len);
    put_be16(frame + t->l4 + how.csum_offset,
             (uint16_t)~vhca_csum_fold(vhca_csum_pseudo(
                 frame + t->l3, t->ipv4, IP_PROTO_TCP,
                 t->hdr_len - t->l4 + t->len)));
    if (!vhca_eth_send_long(e, frame, t->hdr_len + t->len, &how, &cut)) {
        return false;
    }
    t->wire_len = vhca_cut_bytes(&cut);
    t->active = false;
    return true;
}

enum qhca_cqe_status vhca_tso_send(struct qhca_engine *e,
                                   struct vhca_eth_gather *g)
{
    struct vhca_tso *t = &g->tso;
    uint32_t n = MIN_OF(t->len - t->done, t->mss), len = t->hdr_len + n;
    uint8_t *frame = g->data + t->payload + t->done - t->hdr_len;
    uint8_t padded[ETH_MIN_LEN] = { 0 };
    enum qhca_cqe_status status;

    if (send_whole(e, g)) {
        return QHCA_WC_SUCCESS;
    }
    fill_header(t, frame, n);
    if (len < ETH_MIN_LEN) {
        frame = memcpy(padded, frame, len);
        len = ETH_MIN_LEN;
    }
    status = vhca_eth_send(e, frame, len);
    if (status != QHCA_WC_SUCCESS) {
        return status;
    }
    t->wire_len += len;
    t->pieces++;
    t->done += n;
    t->active = t->done < t->len;
    return QHCA_WC_SUCCESS;
}
