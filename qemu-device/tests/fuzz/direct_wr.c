/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: work requests of test_fuzz_direct. */
#include "direct.h"

/* ---- receive WRs ---- */

static void post_recv(uint64_t wr_id, unsigned num_sge,
                      const struct qhca_seg_le *sge)
{
    if (scene.shared) {
        srq_put(&srq, wr_id, num_sge, sge);
        srq_ring(&srq);
    } else {
        rc_recv_raw(&peer, wr_id, num_sge, sge);
    }
}

/* One to four SGEs, with room for any message unless the peer is to fail. */
static void draw_recv(uint64_t wr_id)
{
    struct qhca_seg_le sge[4] = { 0 };
    unsigned n = 1 + draw(ARRAY_SIZE(sge));
    uint32_t len = 0;

    for (unsigned i = 0; i < n; i++) {
        uint32_t part = one_in(4) ? draw(200) : draw(NEXT);

        if (scene.trouble != PEER && i == n - 1) {
            part = MAX_LEN - MIN_OF(len, MAX_LEN);
        }
        sge[i].addr = there_at(DST) + len + draw(20000);
        sge[i].length = part;
        sge[i].lkey = scene.to->mr.key;
        len += part;
    }
    if (peer_one_in(10)) {
        sge[n - 1].lkey = BAD_KEY;
    }
    if (peer_one_in(10)) {
        n = one_in(2) ? 0 : 60;         /* no SGE, or too many */
    }
    post_recv(wr_id, n, sge);
}

void draw_recvs(uint64_t wr_id)
{
    unsigned n = scene.trouble == PEER ? draw(MAX_RECVS / 2) : MAX_RECVS;

    for (unsigned i = 0; i < n; i++) {
        draw_recv(wr_id + i);
    }
    if (g->dbrecs && !scene.shared && peer_one_in(20)) {
        rq_posted(scene.to->g, &peer.rq, peer.o.rq_log + peer.rq_stride,
                  peer.rq_pi + 1000);
    }
}

/* ---- send WRs ---- */

static uint8_t draw_opcode(void)
{
    /* UC has the first 4, XRC the first 7. */
    static const uint8_t opcodes[] = {
        QHCA_WR_SEND, QHCA_WR_SEND_WITH_IMM, QHCA_WR_RDMA_WRITE,
        QHCA_WR_RDMA_WRITE_WITH_IMM, QHCA_WR_RDMA_READ,
        QHCA_WR_ATOMIC_CMP_AND_SWP, QHCA_WR_ATOMIC_FETCH_AND_ADD,
        QHCA_WR_FLUSH, QHCA_WR_ATOMIC_WRITE, QHCA_WR_SEND_WITH_INV,
    };
    static const uint8_t number[] = {
        [QHCA_QPT_UC] = 4, [QHCA_QPT_XRC_INI] = 7,
        [QHCA_QPT_RC] = ARRAY_SIZE(opcodes),
    };
    uint8_t opcode = opcodes[draw(number[scene.type])];

    /* Later WRs may need the key that is invalidated. */
    return opcode == QHCA_WR_SEND_WITH_INV && scene.trouble != PEER ?
           QHCA_WR_SEND : opcode;
}

/* Up to three SGEs of data to send, or of the buffer for a response. */
static void draw_sges(struct rc_wr *wr, uint32_t len)
{
    uint64_t addr = le64toh(wr->sge[0].addr);

    wr->num_sge = wr->opcode == QHCA_WR_RDMA_READ || len < 10 ? 1 :
                  1 + draw(3);
    for (unsigned i = 0; i < wr->num_sge; i++) {
        uint32_t part = i == wr->num_sge - 1 ? len : draw(len);

        wr->sge[i] = (struct qhca_seg_le) { addr, part, node.mr.key };
        addr += NEXT;
        len -= part;
    }
}

static void draw_keys(struct rc_wr *wr)
{
    bool writes = wr->opcode == QHCA_WR_RDMA_WRITE ||
                  wr->opcode == QHCA_WR_RDMA_WRITE_WITH_IMM;

    if (writes && one_in(4)) {
        wr->rkey = scene.window[draw(WINDOWS)];
        wr->rkey = wr->rkey ? wr->rkey : scene.to->mr.key;
    }
    if (peer_one_in(15)) {
        wr->rkey ^= 1;
    }
    if (one_in(20)) {
        wr->sge[0].lkey = VHCA_NULL_LKEY;
    }
    if (wr->opcode == QHCA_WR_SEND_WITH_INV) {
        /* No READ may be using the window. */
        wr->flags |= QHCA_WQE_FENCE;
        wr->imm = htole32(one_in(3) ? BAD_KEY : scene.window[draw(WINDOWS)]);
    }
}

struct rc_wr draw_wr(void)
{
    static const uint8_t flags[] = {
        QHCA_WQE_SIGNALED, QHCA_WQE_SIGNALED | QHCA_WQE_FENCE,
        QHCA_WQE_SIGNALED | QHCA_WQE_SOLICITED, 0,
    };
    uint8_t opcode = draw_opcode();
    uint32_t len = one_in(3) ? draw(300) : draw(MAX_LEN);
    struct rc_wr wr = rc_wr(&qp, opcode, SRC + draw(50000), len);

    rc_aim(&wr, scene.to, DST + draw(50000));
    wr.srqn = srq.srqn;
    wr.imm = draw(1u << 30);
    wr.flags = flags[draw(ARRAY_SIZE(flags))];
    if (opcode == QHCA_WR_FLUSH) {
        wr.num_sge = 0;
        wr.flush_type = QHCA_FLUSH_GLOBAL;
        wr.flush_len = len;
    } else if (is_atomic(opcode) || opcode == QHCA_WR_ATOMIC_WRITE) {
        wr.raddr &= ~7ull;
        wr.sge[0].length = 8;
        wr.sge[0].addr = at(opcode == QHCA_WR_ATOMIC_WRITE ? SRC : BACK);
        wr.swap_add = draw(1u << 30);
    } else {
        if (opcode == QHCA_WR_RDMA_READ) {
            wr.raddr = there_at(SRC) + draw(50000);
            wr.sge[0].addr = at(BACK);
        }
        draw_sges(&wr, len);
    }
    draw_keys(&wr);
    return wr;
}
