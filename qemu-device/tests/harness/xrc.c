/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: an XRC domain with two SRQs, and QPs that send to them.
 */
#include "xrc.h"

struct rc_qp xrc_ini(const struct rc_opts *o)
{
    struct rc_opts opts = *o;

    opts.type = QHCA_QPT_XRC_INI;
    return rc_create(&node, &opts);
}

struct rc_qp xrc_tgt(struct xrc *x, const struct rc_opts *o)
{
    struct rc_opts opts = *o;

    opts.type = QHCA_QPT_XRC_TGT;
    opts.xrcdn = x->xrcdn;
    return rc_create(&node, &opts);
}

struct xrc *xrc_new(const struct rc_opts *o)
{
    static struct xrc x;

    start_node();
    x.xrcdn = xrcd_create(g);
    for (unsigned i = 0; i < 2; i++) {
        x.pdn[i] = pd_create(g);
        x.mr[i] = mr_create(g, x.pdn[i], 4096,
                            REMOTE_ALL | QHCA_ACCESS_LOCAL_WRITE |
                            QHCA_ACCESS_MW_BIND);
        x.srq[i] = srq_create_xrc(&node, x.pdn[i], 3, 2, x.xrcdn);
    }
    x.ini = xrc_ini(o);
    x.tgt = xrc_tgt(&x, o);
    return &x;
}

struct xrc *xrc_loop(void)
{
    struct xrc *x = xrc_new(&RC_OPTS);

    rc_connect(&x->ini, &x->tgt);
    return x;
}

void xrc_alone(struct rc_qp *q)
{
    rc_set_peer(q, &far, 0x77);
    rc_bring_up(q, QHCA_QPS_RTS);
}

void xrc_recv(struct xrc *x, unsigned i, uint64_t wr_id, uint32_t len)
{
    const struct qhca_seg_le sge = { x->mr[i].addr, len, x->mr[i].key };

    srq_put(&x->srq[i], wr_id, 1, &sge);
    srq_ring(&x->srq[i]);
}

struct rc_wr xrc_wr(struct xrc *x, unsigned i, uint8_t opcode, uint32_t len)
{
    struct rc_wr wr = rc_wr(&x->ini, opcode, 0, len);

    wr.srqn = x->srq[i].srqn;
    wr.raddr = x->mr[i].addr;
    wr.rkey = x->mr[i].key;
    return wr;
}

struct roce_packet xrc_packet(struct xrc *x, unsigned i, uint8_t opcode,
                              uint32_t psn, uint32_t dma_len)
{
    struct roce_packet p = peer_packet(&x->tgt, XRC(opcode), psn);

    p.srqn = x->srq[i].srqn;
    p.va = x->mr[i].addr;
    p.rkey = x->mr[i].key;
    p.dma_len = dma_len;
    return p;
}
