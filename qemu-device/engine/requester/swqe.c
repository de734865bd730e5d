/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: requester, the work request opcodes (conformance B.1), and
 * reading send WQEs. Each is copied from guest memory in one read, and only the
 * copy is checked, so the guest cannot change it in between.
 */
#include "requester.h"

/* ---- opcodes: a row each, for everything that asks what an opcode is ---- */

#define KIND_SEND   (VHCA_WR_INLINE | VHCA_WR_TAKES_WR)
#define KIND_WRITE  VHCA_WR_INLINE
#define FETCHES     (VHCA_WR_RD_ATOMIC | VHCA_WR_HAS_RESULT)
#define KIND_READ   (FETCHES | VHCA_WR_READ)
#define KIND_CAS    (FETCHES | VHCA_WR_8_BYTES | VHCA_WR_ATOMIC | \
                     VHCA_WR_BARE)
#define KIND_ADD    KIND_CAS
#define KIND_FLUSH  (VHCA_WR_RD_ATOMIC | VHCA_WR_NO_DATA | VHCA_WR_BARE)
#define KIND_STORE  (VHCA_WR_INLINE | VHCA_WR_8_BYTES | VHCA_WR_RD_ATOMIC)
#define KIND_BIND   (VHCA_WR_NO_DATA | VHCA_WR_MEMOP)
#define KIND_INV    KIND_BIND
#define KIND_REG    (KIND_BIND | VHCA_WR_KERNEL)

#define WORD_NONE   0
#define WORD_IMM    VHCA_WR_TAKES_WR
#define WORD_KEY    VHCA_WR_KEY

/* Packets by place: middle, first, last, only. */
#define SEND(last)  { RC_SEND_MIDDLE, RC_SEND_FIRST, RC_SEND_LAST##last, \
                      RC_SEND_ONLY##last }
#define WRITE(last) { RC_WRITE_MIDDLE, RC_WRITE_FIRST, RC_WRITE_LAST##last, \
                      RC_WRITE_ONLY##last }
#define ONLY(op)    { 0, 0, 0, RC_##op }
#define NONE        { 0 }

#define QHCA_WR(id, number, cqe, kind, word, types, packets) \
    [number] = { \
        QHCA_TYPES_##types, KIND_##kind | WORD_##word, QHCA_CQE_##cqe, packets \
    },
const struct vhca_wr_info vhca_wr_infos[256] = {
#include "qhca/opcodes.def"
};

/* ---- WQEs ---- */

static bool opcode_ok(const struct vhca_qp *qp, const struct vhca_wr_info *info)
{
    return (info->types & 1u << qp->type) &&
           (!(info->rules & VHCA_WR_KERNEL) || qp->user.reserved);
}

static enum vhca_wqe_result bad_wqe(struct qhca_engine *e, struct vhca_qp *qp,
                                    struct vhca_swr *wr, uint8_t status,
                                    const char *why)
{
    vhca_count(e, QHCA_CNT_BAD_WQE);
    vhca_guest_error(e, "QP 0x%x: send WQE with %s", qp->qpn, why);
    wr->fail = status;
    wr->length = 0;             /* @wr has been used before */
    wr->num_seg = 0;
    return VHCA_WQE_BAD;
}

static void parse_send_header(const struct qhca_sq_wqe *w, struct vhca_swr *wr)
{
    wr->wr_id = le64toh(w->wr_id);
    wr->opcode = w->opcode;
    wr->flags = w->flags;
    wr->length = wr->flush_len = 0;     /* @wr has been used before */
    wr->flush_type = wr->flush_level = 0;
    wr->imm = w->imm;
    wr->inv_key = le32toh(w->inv_key);
    wr->fail = 0;
    wr->executed = wr->paged = false;
    wr->raddr = le64toh(w->rdma.addr);
    wr->rkey = le32toh(w->rdma.rkey);
    wr->srqn = le32toh(w->rdma.srqn) & QHCA_OBJ_MASK;
    wr->swap_add = le64toh(w->atomic.swap_add);
    wr->compare = le64toh(w->atomic.compare);
    wr->ud.av = w->ud.av;
    wr->ud.qpn = le32toh(w->ud.qpn) & QHCA_OBJ_MASK;
    wr->ud.qkey = le32toh(w->ud.qkey);
}

/*
 * Whether the AV is for this port, was made in the QP's PD (B-031, I-046), and
 * has a GID that the QP's page may use. A GID that is gone is noticed when the
 * packet is sent, as for QPs of any type (G-015).
 */
static bool address_ok(const struct qhca_engine *e, const struct vhca_qp *qp,
                       const struct qhca_av *av)
{
    return av->port == 1 && av->sgid_index < VHCA_MAX_GID &&
           le32toh(av->pdn) == qp->pd->number &&
           (!e->port->gid[av->sgid_index].valid ||
            vhca_gid_allowed(e, qp->uar, av->sgid_index));
}

static enum vhca_wqe_result fetch_flush(struct qhca_engine *e,
                                        struct vhca_qp *qp,
                                        const struct qhca_sq_wqe *w,
                                        struct vhca_swr *wr)
{
    wr->flush_type = w->flush.type;
    wr->flush_level = w->flush.level;
    wr->flush_len = le32toh(w->flush.length);
    if (!vhca_flush_kind_ok(wr->flush_type, wr->flush_level)) {
        return bad_wqe(e, qp, wr, QHCA_WC_LOC_QP_OP_ERR, "a bad kind of FLUSH");
    }
    if (wr->flush_len > VHCA_MAX_MSG) {
        return bad_wqe(e, qp, wr, QHCA_WC_LOC_LEN_ERR, "a bad length");
    }
    return VHCA_WQE_OK;
}

static void fetch_memop(const struct qhca_sq_wqe *w, struct vhca_swr *wr)
{
    struct vhca_memop *op = &wr->memop;

    memset(op, 0, sizeof(*op));
    switch (w->opcode) {
    case QHCA_WR_REG_MR:
        op->key = le32toh(w->reg.key);
        op->addr = le64toh(w->reg.iova);
        op->length = le64toh(w->reg.length);
        op->table = le64toh(w->reg.table);
        op->num_blocks = le32toh(w->reg.num_blocks);
        op->offset = le32toh(w->reg.offset);
        op->block_shift = w->reg.block_shift;
        op->access = le16toh(w->reg.access);
        break;
    case QHCA_WR_BIND_MW:
        op->key = le32toh(w->bind.mw_key);
        op->mr_key = le32toh(w->bind.mr_key);
        op->addr = le64toh(w->bind.addr);
        op->length = le64toh(w->bind.length);
        op->access = le16toh(w->bind.access);
        break;
    default:
        op->key = le32toh(w->inv_key);
        break;
    }
}

static enum vhca_wqe_result fetch_no_data(struct qhca_engine *e,
                                          struct vhca_qp *qp,
                                          const struct qhca_sq_wqe *w,
                                          struct vhca_swr *wr)
{
    if (w->count || (w->flags & QHCA_WQE_INLINE)) {
        return bad_wqe(e, qp, wr, QHCA_WC_LOC_QP_OP_ERR, "data it cannot have");
    }
    wr->length = 0;
    wr->num_seg = 0;
    if (w->opcode == QHCA_WR_FLUSH) {
        return fetch_flush(e, qp, w, wr);
    }
    fetch_memop(w, wr);
    return VHCA_WQE_OK;
}

enum vhca_wqe_result vhca_wqe_fetch_send(struct qhca_engine *e,
                                         struct vhca_qp *qp, uint32_t index,
                                         struct vhca_swr *wr)
{
    uint8_t raw[QHCA_SQ_STRIDE_MAX];
    struct qhca_sq_wqe w;

    if (!vhca_mem_read(e, &qp->sq.mem, vhca_wq_offset(&qp->sq, index), raw,
                       1u << qp->sq.log_stride)) {
        return VHCA_WQE_UNREADABLE;
    }
    memcpy(&w, raw, sizeof(w));
    parse_send_header(&w, wr);
    const struct vhca_wr_info *info = vhca_wr_info(w.opcode);

    vhca_trace_wqe(e, qp->qpn, index, w.opcode);
    if (!opcode_ok(qp, info)) {
        return bad_wqe(e, qp, wr, QHCA_WC_LOC_QP_OP_ERR, "a bad opcode");
    }

    if (vhca_qp_is(qp, VHCA_DATAGRAM) && !address_ok(e, qp, &wr->ud.av)) {
        return bad_wqe(e, qp, wr, QHCA_WC_LOC_QP_OP_ERR, "a bad address");
    }

    uint16_t rules = info->rules;
    unsigned count = le16toh(w.count);
    uint64_t length = count;

    if ((rules & VHCA_WR_RD_ATOMIC) && !qp->attr.max_rd_atomic) {
        return bad_wqe(e, qp, wr, QHCA_WC_LOC_QP_OP_ERR,
                       "an opcode that needs max_rd_atomic");
    }
    if (rules & VHCA_WR_NO_DATA) {
        return fetch_no_data(e, qp, &w, wr);
    }
    if (w.flags & QHCA_WQE_INLINE) {
        /* Every stride has room for the 8 bytes of an ATOMIC WRITE. */
        uint32_t room = rules & VHCA_WR_8_BYTES ? 8 : qp->max_inline;

        if (!(rules & VHCA_WR_INLINE) || count > room) {
            return bad_wqe(e, qp, wr, QHCA_WC_LOC_QP_OP_ERR, "bad inline data");
        }
        memcpy(wr->inline_data, raw + sizeof(w), count);
        wr->num_seg = 0;
    } else {
        if (count > qp->sq.max_sge) {
            return bad_wqe(e, qp, wr, QHCA_WC_LOC_QP_OP_ERR, "too many SGEs");
        }
        length = vhca_segs_parse(wr->seg, raw + sizeof(w), count);
        wr->num_seg = (uint16_t)count;
    }
    if (length > VHCA_MAX_MSG || ((rules & VHCA_WR_8_BYTES) && length != 8)) {
        return bad_wqe(e, qp, wr, QHCA_WC_LOC_LEN_ERR, "a bad length");
    }
    wr->length = (uint32_t)length;
    return VHCA_WQE_OK;
}

enum vhca_mem_result vhca_swr_gather(struct qhca_engine *e, struct vhca_qp *qp,
                                     const struct vhca_swr *wr, uint64_t off,
                                     uint8_t *dst, size_t len)
{
    if (wr->flags & QHCA_WQE_INLINE) {
        memcpy(dst, wr->inline_data + off, len);
        return VHCA_MEM_OK;
    }
    return vhca_segs_read(e, &qp->user, wr->seg, wr->num_seg, off, dst, len);
}
