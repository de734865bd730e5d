/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: sending the Ethernet frames of QPs; and the room. */
#include <stdlib.h>

#include "steering.h"
#include "../wire/wire.h"

/* ---- sending ---- */

/* Finish the frame of a WR; returns how the WR ends. */
static enum qhca_cqe_status finish(struct qhca_engine *e,
                                   const struct vhca_swr *wr, uint8_t *frame,
                                   uint32_t *len)
{
    if (wr->flags & QHCA_WQE_CSUM) {
        vhca_csum_fill(frame, *len);
    }
    if (!vhca_eth_fit(e, frame, len)) {
        return QHCA_WC_LOC_LEN_ERR;
    }
    return vhca_eth_speaks_for_qp(e, frame, *len) ? QHCA_WC_LOC_QP_OP_ERR :
                                                    QHCA_WC_SUCCESS;
}

/*
 * A port with a rule for a frame that it sends is where the frame goes; frames
 * to groups go to the network as well.
 */
static void send(struct qhca_engine *e, const struct vhca_qp *qp,
                 const uint8_t *frame, uint32_t len)
{
    bool here = vhca_flow_wants(e, frame, len);

    if (here) {
        vhca_tx(e, frame, len, VHCA_FROM_RAW);
    }
    if (!here || frame[0] & 1) {
        vhca_tx(e, frame, len, 0);
    }
    vhca_count_qp(e, qp, QHCA_CNT_ETH_TX_PKTS, 1);
    vhca_count_qp(e, qp, QHCA_CNT_ETH_TX_BYTES, len);
}

/* Send the frame of the WR at the cursor; false: it fails, or waits. */
static bool send_frame(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_swr *wr = vhca_swr_at(qp, qp->req.snd_wqe);
    struct roce_packet p = { .psn = qp->req.snd_psn, .num_psn = 1 };
    enum qhca_cqe_status status = QHCA_WC_LOC_LEN_ERR;
    enum vhca_mem_result got = VHCA_MEM_OK;
    uint8_t *frame = e->raw->frame;
    uint32_t len = wr->length;

    if (len >= ETH_LEN && len <= VHCA_MAX_FRAME) {
        got = vhca_swr_gather(e, qp, wr, 0, frame, len);
        status = got == VHCA_MEM_OK ? finish(e, wr, frame, &len) :
                                      QHCA_WC_LOC_PROT_ERR;
    }
    if (got == VHCA_MEM_FAULT) {
        vhca_requester_park(e, qp);
        return false;
    }
    if (status != QHCA_WC_SUCCESS) {
        vhca_count(e, QHCA_CNT_ETH_TX_ERR);
        vhca_sq_fail_wr(e, qp, wr, status);
        return false;
    }
    send(e, qp, frame, len);
    if (vhca_qp_paced(qp, 0)) {
        vhca_qp_charge(e, qp, 0, len);
    }
    vhca_requester_sent(e, qp, &p);
    return true;
}

void vhca_raw_turn(struct qhca_engine *e, struct vhca_qp *qp)
{
    while (vhca_requester_poll(e, qp)) {
        /* There must be room wherever the frame goes; if not, wait for it. */
        if (!vhca_qp_gate_open(e, qp) ||
            !vhca_qp_tx_room(e, qp, true, true, 0, VHCA_TX_RESERVE) ||
            !send_frame(e, qp)) {
            break;
        }
    }
}

/* ---- the room ---- */

static bool steering_init(struct qhca_engine *e)
{
    return vhca_table_init(&e->raw->flow, e, QHCA_FLOW_MAX) &&
           vhca_table_init(&e->raw->spread, e, QHCA_SPREAD_MAX);
}

/* Their QPs are freed before. */
static void steering_reset(struct qhca_engine *e)
{
    struct vhca_spread *spread;
    struct vhca_flow *flow;

    vhca_table_each(&e->raw->flow, flow) {
        vhca_table_del(&e->raw->flow, flow->number);
        free(flow);
    }
    vhca_table_each(&e->raw->spread, spread) {
        vhca_table_del(&e->raw->spread, spread->number);
        free(spread);
    }
    memset(e->raw->end, 0, sizeof(e->raw->end));
    vhca_table_forget(&e->raw->flow);
    vhca_table_forget(&e->raw->spread);
}

static void steering_fini(struct qhca_engine *e)
{
    vhca_table_free(&e->raw->flow);
    vhca_table_free(&e->raw->spread);
}

static unsigned steering_holdings(const struct qhca_engine *e,
                                  struct qhca_holding *h)
{
    const struct vhca_raw *raw = e->raw;

    h[0] = (struct qhca_holding) {
        "flow rule", true, sizeof(struct vhca_flow), QHCA_FLOW_MAX,
        raw->flow.used
    };
    h[1] = (struct qhca_holding) {
        "spread", true, sizeof(struct vhca_spread), QHCA_SPREAD_MAX,
        raw->spread.used
    };
    h[2] = vhca_table_holding(&raw->flow, "flow rule numbers");
    h[3] = vhca_table_holding(&raw->spread, "spread numbers");
    return 4;
}

const struct vhca_room vhca_raw_room = {
    .init = steering_init, .reset = steering_reset, .fini = steering_fini,
    .holdings = steering_holdings,
};
