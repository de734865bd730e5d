/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: work requests of queue pairs, and their completions.
 */
#include "rc.h"
#include "tables.h"

struct rc_wr rc_wr(const struct rc_qp *q, uint8_t opcode, uint64_t off,
                   uint32_t len)
{
    struct rc_wr wr = {
        .wr_id = 0x1000u + q->sq_pi, .opcode = opcode,
        .flags = QHCA_WQE_SIGNALED, .num_sge = 1,
        .sge = { { q->n->mr.addr + off, len, q->n->mr.key } },
        .av = rc_attr(q).av, .qpn = q->peer_qpn, .qkey = q->o.qkey,
    };

    wr.av.pdn = htole32(q->n->pdn);
    return wr;
}

void rc_aim(struct rc_wr *wr, const struct node *n, uint64_t off)
{
    wr->raddr = n->mr.addr + off;
    wr->rkey = n->mr.key;
}

static void put_sges(uint8_t *dst, const struct qhca_seg_le *src, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct qhca_sge s = {
            .addr = htole64(src[i].addr), .length = htole32(src[i].length),
            .lkey = htole32(src[i].lkey),
        };

        memcpy(dst + i * sizeof(s), &s, sizeof(s));
    }
}

/* Copies to a ring entry, which never crosses a block. */
static void put_entry(struct guest *g, const struct gbuf *b, uint32_t index,
                      unsigned log_size, unsigned stride, const uint8_t *src)
{
    uint64_t off = (uint64_t)(index & ((1u << log_size) - 1)) << stride;

    memcpy(guest_ptr(g, gbuf_addr(b, off), 1u << stride), src, 1u << stride);
}

static void put_body(struct qhca_sq_wqe *w, const struct rc_wr *wr)
{
    switch (wr->opcode) {
    case QHCA_WR_REG_MR:
        w->reg.iova = htole64(wr->addr);
        w->reg.length = htole64(wr->length);
        w->reg.table = htole64(wr->table);
        w->reg.key = htole32(wr->key);
        w->reg.num_blocks = htole32(wr->num_blocks);
        w->reg.offset = htole32(wr->offset);
        w->reg.access = htole16((uint16_t)wr->access);
        w->reg.block_shift = (uint8_t)wr->block_shift;
        break;
    case QHCA_WR_BIND_MW:
        w->bind.addr = htole64(wr->addr);
        w->bind.length = htole64(wr->length);
        w->bind.mw_key = htole32(wr->key);
        w->bind.mr_key = htole32(wr->mr_key);
        w->bind.access = htole16((uint16_t)wr->access);
        break;
    case QHCA_WR_FLUSH:
        w->flush.addr = htole64(wr->raddr);
        w->flush.rkey = htole32(wr->rkey);
        w->flush.length = htole32(wr->flush_len);
        w->flush.type = wr->flush_type;
        w->flush.level = wr->flush_level;
        break;
    default:
        w->atomic.addr = htole64(wr->raddr);
        w->atomic.rkey = htole32(wr->rkey);
        w->atomic.srqn = htole32(wr->srqn);
        w->atomic.swap_add = htole64(wr->swap_add);
        w->atomic.compare = htole64(wr->compare);
        break;
    }
}

void rc_put(struct rc_qp *q, const struct rc_wr *wr)
{
    uint8_t raw[QHCA_SQ_STRIDE_MAX] = { 0 };
    struct qhca_sq_wqe w = {
        .wr_id = htole64(wr->wr_id), .opcode = wr->opcode, .flags = wr->flags,
        .imm = wr->imm,
    };
    unsigned n = wr->num_sge < 8 ? wr->num_sge : 8;

    w.count = htole16((uint16_t)wr->num_sge);
    if (rc_is_datagram(q)) {
        w.ud.av = wr->av;
        w.ud.qpn = htole32(wr->qpn);
        w.ud.qkey = htole32(wr->qkey);
    } else {
        put_body(&w, wr);
    }
    if (wr->flags & QHCA_WQE_INLINE) {
        w.count = htole16((uint16_t)wr->inline_len);
        if (wr->inline_data) {
            memcpy(raw + sizeof(w), wr->inline_data, wr->inline_len);
        }
    } else {
        put_sges(raw + sizeof(w), wr->sge, n);
    }
    memcpy(raw, &w, sizeof(w));
    put_entry(q->n->g, &q->sq, q->sq_pi++, q->o.sq_log, q->sq_stride, raw);
}

void rc_ring(struct rc_qp *q)
{
    ring(q->n->g, q->o.uar, QHCA_DB_SQ, q->qpn, q->sq_pi);
}

void rc_post(struct rc_qp *q, const struct rc_wr *wr)
{
    rc_put(q, wr);
    rc_ring(q);
}

void rc_do(struct rc_qp *q, const struct rc_wr *wr)
{
    rc_post(q, wr);
    guest_settle(q->n->g);
}

const struct table_b1 *rc_b1(uint8_t opcode)
{
    for (size_t i = 0; i < ARRAY_SIZE(table_b1); i++) {
        if (table_b1[i].wr == opcode) {
            return &table_b1[i];
        }
    }
    return NULL;
}

uint8_t rc_cqe_opcode(const struct rc_wr *wr)
{
    const struct table_b1 *row = rc_b1(wr->opcode);

    REQUIRE(row);
    return row->cqe;
}

struct qhca_cqe rc_finish(struct rc_qp *q, const struct rc_wr *wr,
                          unsigned status)
{
    struct qhca_cqe cqe;

    rc_do(q, wr);
    cqe = rc_expect(&q->scq, wr->wr_id, status);
    if (status == QHCA_WC_SUCCESS && cqe.status == status) {
        CHECK_EQ(cqe.opcode, rc_cqe_opcode(wr));
    }
    return cqe;
}

void rc_send(struct rc_qp *q, uint32_t len)
{
    struct rc_wr wr = rc_wr(q, QHCA_WR_SEND, 0, len);

    rc_do(q, &wr);
}

void rc_recv_raw(struct rc_qp *q, uint64_t wr_id, unsigned num_sge,
                 const struct qhca_seg_le *sge)
{
    uint8_t raw[QHCA_RQ_STRIDE_MAX] = { 0 };
    struct qhca_rq_wqe w = {
        .wr_id = htole64(wr_id), .num_sge = htole16((uint16_t)num_sge),
    };

    memcpy(raw, &w, sizeof(w));
    put_sges(raw + sizeof(w), sge, num_sge < q->o.sges ? num_sge : q->o.sges);
    put_entry(q->n->g, &q->rq, q->rq_pi++, q->o.rq_log, q->rq_stride, raw);
    if (rq_posted(q->n->g, &q->rq, q->o.rq_log + q->rq_stride, q->rq_pi)) {
        ring(q->n->g, q->o.uar, QHCA_DB_RQ, q->qpn, q->rq_pi);
    }
}

void rc_recv(struct rc_qp *q, uint64_t wr_id, uint64_t off, uint32_t len)
{
    const struct qhca_seg_le sge = { q->n->mr.addr + off, len, q->n->mr.key };

    rc_recv_raw(q, wr_id, 1, &sge);
}

struct qhca_cqe rc_expect(struct gcq *cq, uint64_t wr_id, unsigned status)
{
    struct qhca_cqe cqe = { 0 };

    if (!cq_poll(cq, &cqe)) {
        tap_note("no CQE, expected WR 0x%llx with status %u",
                 (unsigned long long)wr_id, status);
        tap_fail(__FILE__, __LINE__, "CQE");
        return cqe;
    }
    CHECK_EQ(le64toh(cqe.wr_id), wr_id);
    CHECK_EQ(cqe.status, status);
    return cqe;
}

void rc_expect_none(struct gcq *cq)
{
    struct qhca_cqe cqe;

    if (cq_poll(cq, &cqe)) {
        tap_note("CQE of WR 0x%llx, status %u",
                 (unsigned long long)le64toh(cqe.wr_id), cqe.status);
        tap_fail(__FILE__, __LINE__, "no CQE");
    }
}
