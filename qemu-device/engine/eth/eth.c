/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the Ethernet queues, for sending and receiving, which make the
 * function a network card as well.
 */
#include "eth.h"
#include "../wire/aggregate.h"
#include "../wire/wire.h"

static uint32_t ethq_size(const struct vhca_ethq *q)
{
    return 1u << q->log_size;
}

/* Whether there are WQEs for a frame, and a CQ to complete them. */
static bool has_wqe(const struct vhca_ethq *q)
{
    return q->used && q->pi - q->ci >= q->frags &&
           q->cq->state == QHCA_CQ_OK;
}

/* Return the frame being put together, without the room for a tag. */
static uint8_t *gather_frame(struct vhca_eth_gather *g)
{
    return g->data + VHCA_VLAN_ROOM;
}

bool vhca_eth_doorbell(struct qhca_engine *e, const struct vhca_db *db)
{
    struct vhca_ethq *q = vhca_ethq_get(e, db->obj);

    if (!q || db->index - q->ci > ethq_size(q) ||
        db->index - q->ci < q->pi - q->ci) {
        return false;
    }
    q->pi = db->index;
    vhca_eth_tx_wake(e, q);
    return true;
}

/* Take the next WQE; its copy in guest memory is not read again. */
static bool take_wqe(struct qhca_engine *e, struct vhca_ethq *q,
                     struct qhca_eth_wqe *wqe)
{
    uint64_t off = (uint64_t)(q->ci & (ethq_size(q) - 1)) * sizeof(*wqe);

    q->ci++;
    return vhca_mem_read(e, &q->mem, off, wqe, sizeof(*wqe));
}

static void push_cqe(struct qhca_engine *e, struct vhca_ethq *q,
                     struct qhca_cqe *cqe)
{
    cqe->qpn = htole32(q->number);
    cqe->wqe_index = htole32(q->ci - 1);
    vhca_cq_push(e, q->cq, cqe, false);
}

/* ---- sending ---- */

static void gather_fail(struct vhca_eth_gather *g, enum qhca_cqe_status status)
{
    if (g->status == QHCA_WC_SUCCESS) {
        g->status = (uint8_t)status;
    }
}

static void gather_start(struct vhca_eth_gather *g,
                         const struct qhca_eth_wqe *wqe)
{
    g->active = true;
    g->status = QHCA_WC_SUCCESS;
    g->flags = le16toh(wqe->flags);
    g->vlan_tci = le16toh(wqe->vlan_tci);
    g->csum_start = le16toh(wqe->csum_start);
    g->csum_offset = le16toh(wqe->csum_offset);
    g->mss = le16toh(wqe->mss);
    g->frags = 0;
    g->len = 0;
}

static void gather_add(struct qhca_engine *e, struct vhca_eth_gather *g,
                       const struct qhca_eth_wqe *wqe)
{
    uint32_t max = g->flags & QHCA_ETH_TSO ? VHCA_MAX_TSO : VHCA_MAX_FRAME;
    uint32_t n = le32toh(wqe->length);

    if (g->status != QHCA_WC_SUCCESS) {
        return;
    }
    if (++g->frags > QHCA_ETH_MAX_FRAGS) {
        gather_fail(g, QHCA_WC_LOC_QP_OP_ERR);
    } else if (n > max - g->len) {
        gather_fail(g, QHCA_WC_LOC_LEN_ERR);
    } else if (n > 0 && !vhca_dma_read(e, le64toh(wqe->addr),
                                       gather_frame(g) + g->len, n)) {
        gather_fail(g, QHCA_WC_LOC_PROT_ERR);
    } else {
        g->len += n;
    }
}

static bool fill_csum(struct vhca_eth_gather *g)
{
    uint8_t *frame = gather_frame(g);
    uint32_t at = (uint32_t)g->csum_start + g->csum_offset;
    uint16_t csum;

    if (at + sizeof(csum) > g->len) {
        return false;
    }
    csum = vhca_csum_fold(vhca_csum_add(0, frame + g->csum_start,
                                        g->len - g->csum_start));
    if (csum == 0) {
        csum = 0xffff;          /* 0 would say "none" in UDP */
    }
    put_be16(frame + at, csum);
    return true;
}

static uint8_t *insert_vlan(struct vhca_eth_gather *g)
{
    uint8_t *frame = g->data;

    memmove(frame, frame + VHCA_VLAN_ROOM, 12);
    put_be16(frame + 12, ETHERTYPE_VLAN);
    put_be16(frame + 14, g->vlan_tci);
    g->len += VHCA_VLAN_ROOM;
    return frame;
}

bool vhca_eth_fit(const struct qhca_engine *e, uint8_t *frame, uint32_t *len)
{
    if (*len > vhca_frame_header_len(frame, *len) + e->port->mtu) {
        return false;
    }
    if (*len < ETH_MIN_LEN) {
        memset(frame + *len, 0, ETH_MIN_LEN - *len);
        *len = ETH_MIN_LEN;
    }
    return true;
}

bool vhca_eth_speaks_for_qp(const struct qhca_engine *e, const uint8_t *frame,
                            uint32_t len)
{
    uint8_t gid[16];

    return vhca_aggregate_is(frame, len) ||
           (vhca_frame_roce_source(frame, len, gid) && vhca_gid_is_own(e, gid));
}

/* Make a frame of the gathered bytes, or fail it. */
static uint8_t *gather_finish(struct qhca_engine *e, struct vhca_eth_gather *g)
{
    uint8_t *frame = gather_frame(g);

    if (g->len < ETH_LEN) {
        gather_fail(g, QHCA_WC_LOC_LEN_ERR);
        return NULL;
    }
    if (g->flags & QHCA_ETH_CSUM && !fill_csum(g)) {
        gather_fail(g, QHCA_WC_LOC_QP_OP_ERR);
        return NULL;
    }
    if (g->flags & QHCA_ETH_VLAN) {
        frame = insert_vlan(g);
    }
    if (!vhca_eth_fit(e, frame, &g->len)) {
        gather_fail(g, QHCA_WC_LOC_LEN_ERR);
        return NULL;
    }
    return frame;
}

/* Complete a frame that has been sent, in pieces or not, or has failed. */
static void complete_frame(struct qhca_engine *e, struct vhca_ethq *q,
                           struct vhca_eth_gather *g, uint32_t byte_len)
{
    struct qhca_cqe cqe = {
        .wr_id = g->wr_id,
        .opcode = QHCA_CQE_ETH_TX,
        .flags = htole16(QHCA_CQE_SQ),
        .status = g->status,
    };

    if (g->status == QHCA_WC_SUCCESS) {
        cqe.byte_len = htole32(byte_len);
    } else {
        vhca_count(e, QHCA_CNT_ETH_TX_ERR);
        vhca_guest_error(e,
                         "Ethernet frame of %u bytes, %u fragments: status %u",
                         g->len, g->frags, g->status);
    }
    g->active = false;
    push_cqe(e, q, &cqe);
}

enum qhca_cqe_status vhca_eth_send(struct qhca_engine *e, const uint8_t *frame,
                                   uint32_t len)
{
    if (vhca_eth_speaks_for_qp(e, frame, len)) {
        return QHCA_WC_LOC_QP_OP_ERR;
    }
    if (!vhca_tx(e, frame, len, 0)) {
        return QHCA_WC_GENERAL_ERR;
    }
    vhca_count(e, QHCA_CNT_ETH_TX_PKTS);
    e->cnt[QHCA_CNT_ETH_TX_BYTES] += len;
    return QHCA_WC_SUCCESS;
}

bool vhca_eth_send_long(struct qhca_engine *e, const uint8_t *frame,
                        uint32_t len, const struct qhca_long_frame *how,
                        const struct vhca_cut *cut)
{
    if (vhca_eth_speaks_for_qp(e, frame, len) ||
        !vhca_tx_long(e, frame, len, how, cut)) {
        return false;
    }
    e->cnt[QHCA_CNT_ETH_TX_PKTS] += cut->num;
    e->cnt[QHCA_CNT_ETH_TX_BYTES] += vhca_cut_bytes(cut);
    return true;
}

static void finish_frame(struct qhca_engine *e, struct vhca_ethq *q,
                         struct vhca_eth_gather *g)
{
    uint8_t *frame;

    if (g->status == QHCA_WC_SUCCESS && g->flags & QHCA_ETH_TSO) {
        gather_fail(g, vhca_tso_start(g, e->port->mtu));
        if (g->status == QHCA_WC_SUCCESS) {
            return;             /* send_piece() continues */
        }
    }
    frame = g->status == QHCA_WC_SUCCESS ? gather_finish(e, g) : NULL;
    if (frame) {
        gather_fail(g, vhca_eth_send(e, frame, g->len));
    }
    complete_frame(e, q, g, g->len);
}

/* Take the next WQE of a frame, and send the frame if that was the last. */
static void take_fragment(struct qhca_engine *e, struct vhca_ethq *q,
                          struct vhca_eth_gather *g)
{
    struct qhca_eth_wqe wqe;

    if (!take_wqe(e, q, &wqe)) {
        memset(&wqe, 0, sizeof(wqe));
        gather_start(g, &wqe);
        gather_fail(g, QHCA_WC_GENERAL_ERR);
    }
    if (!g->active) {
        gather_start(g, &wqe);
    }
    gather_add(e, g, &wqe);
    if (!(le16toh(wqe.flags) & QHCA_ETH_MORE)) {
        g->wr_id = wqe.wr_id;
        finish_frame(e, q, g);
    }
}

void vhca_eth_tx_wake(struct qhca_engine *e, const struct vhca_ethq *q)
{
    size_t i = (size_t)(q - e->eth->queue);

    if (i % 2 == QHCA_ETH_TX &&
        (has_wqe(q) || e->eth->gather[i / 2].tso.active)) {
        e->eth->tx_busy |= 1u << i / 2;
    }
}

/*
 * Take no WQEs while the network does not take frames: the guest's queue is the
 * buffer then, and the guest notices.
 */
bool vhca_eth_tx_ready(const struct qhca_engine *e)
{
    return e->eth->tx_busy && !e->port->tx_blocked && vhca_tx_free(e) &&
           !vhca_paused(e, 0);
}

/* Return the send queue whose turn it is; one is busy. */
static unsigned next_busy(struct vhca_eth *eth)
{
    uint32_t later = eth->tx_busy >> eth->tx_next;

    eth->tx_next = later ? eth->tx_next + (uint32_t)__builtin_ctz(later) :
                           (uint32_t)__builtin_ctz(eth->tx_busy);
    return eth->tx_next;
}

/*
 * Let send queue @i take a step. The next one has its turn when this one is
 * done with a frame, or a piece of a frame that is too large.
 */
static void tx_step(struct qhca_engine *e, unsigned i)
{
    struct vhca_ethq *q = vhca_ethq_at(e, i, QHCA_ETH_TX);
    struct vhca_eth_gather *g = &e->eth->gather[i];
    bool piece = g->tso.active;

    if (piece) {
        gather_fail(g, vhca_tso_send(e, g));
        g->tso.active &= g->status == QHCA_WC_SUCCESS;
        if (!g->tso.active) {
            complete_frame(e, q, g, g->tso.wire_len);
        }
    } else if (has_wqe(q)) {
        take_fragment(e, q, g);
    }
    if (!g->tso.active && !has_wqe(q)) {
        e->eth->tx_busy &= ~(1u << i);
    } else if (g->active && !piece) {
        return;
    }
    e->eth->tx_next = (i + 1) % VHCA_MAX_ETH_PAIRS;
}

void vhca_eth_tx_work(struct qhca_engine *e)
{
    while (vhca_eth_tx_ready(e) && vhca_may_go_on(e)) {
        tx_step(e, next_busy(e->eth));
    }
}

/* ---- receiving ---- */

/*
 * The next frame can go to any queue, so each must have WQEs: a flow whose
 * queue is full is slowed down, and does not lose frames.
 */
bool qhca_engine_can_receive(struct qhca_engine *e)
{
    bool any = false;

    for (unsigned i = 0; vhca_running(e) && i < e->cfg.eth_queues; i++) {
        const struct vhca_ethq *q = vhca_ethq_at(e, i, QHCA_ETH_RX);

        if (q->used && !has_wqe(q)) {
            return false;
        }
        any |= q->used;
    }
    return any;
}

/* Take WQEs with room for @len bytes; the queue has enough WQEs. */
static enum qhca_cqe_status take_buffers(struct qhca_engine *e,
                                         struct vhca_ethq *q,
                                         struct qhca_eth_wqe *wqe, size_t len,
                                         struct qhca_cqe *cqe)
{
    uint64_t room = 0;

    for (unsigned n = 0; n < q->frags; n++) {
        if (!take_wqe(e, q, &wqe[n])) {
            return QHCA_WC_GENERAL_ERR;
        }
        cqe->wr_id = wqe[n].wr_id;
        room += le32toh(wqe[n].length);
        if (len <= room) {
            return QHCA_WC_SUCCESS;
        }
    }
    return QHCA_WC_LOC_LEN_ERR;
}

/* Write the frame without its tag, which goes into the CQE. */
static enum qhca_cqe_status eth_deliver(struct qhca_engine *e,
                                        struct vhca_ethq *q,
                                        const uint8_t *frame, size_t len,
                                        struct qhca_cqe *cqe)
{
    struct qhca_eth_wqe wqe[QHCA_ETH_MAX_FRAGS];
    size_t tag = get_be16(frame + 12) == ETHERTYPE_VLAN &&
                 len >= ETH_LEN + VHCA_VLAN_ROOM ? VHCA_VLAN_ROOM : 0;
    enum qhca_cqe_status status = take_buffers(e, q, wqe, len - tag, cqe);

    if (status != QHCA_WC_SUCCESS) {
        return status;
    }
    if (tag) {
        cqe->vlan_tci = htole16(get_be16(frame + 14));
        cqe->flags |= htole16(QHCA_CQE_VLAN);
    }
    cqe->byte_len = htole32((uint32_t)(len - tag));
    return vhca_eth_scatter(e, wqe, frame, len, tag) ? QHCA_WC_SUCCESS :
                                                       QHCA_WC_LOC_PROT_ERR;
}

void vhca_eth_rx(struct qhca_engine *e, const uint8_t *frame, size_t len,
                 struct vhca_eth_to to, bool csum_ok)
{
    struct qhca_cqe cqe = {
        .opcode = QHCA_CQE_ETH_RX,
        .flags = htole16(csum_ok ? QHCA_CQE_CSUM_OK : 0),
    };
    struct vhca_ethq *q;

    VHCA_ASSERT(len >= ETH_LEN);
    q = vhca_rss_choose(e, frame, len, to, &cqe);
    if (!has_wqe(q)) {
        vhca_count(e, QHCA_CNT_ETH_RX_NO_BUF);
        return;
    }
    cqe.status = (uint8_t)eth_deliver(e, q, frame, len, &cqe);
    if (cqe.status == QHCA_WC_SUCCESS) {
        vhca_count(e, QHCA_CNT_ETH_RX_PKTS);
        e->cnt[QHCA_CNT_ETH_RX_BYTES] += len;
    } else {
        vhca_count(e, QHCA_CNT_BAD_WQE);
        vhca_guest_error(e, "Ethernet buffer %u for %u bytes: status %u",
                         q->ci - 1, (unsigned)len, cqe.status);
    }
    push_cqe(e, q, &cqe);
}
