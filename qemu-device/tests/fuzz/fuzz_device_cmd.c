/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a guest's commands as inputs.
 */
#include "harness/debug.h"
#include "fuzz_device.h"

uint32_t device_one_of(const struct fuzz *f, unsigned kind, uint32_t which)
{
    return f->num[kind] ? f->pool[kind][which % f->num[kind]] : which;
}

#define BUF     FUZZ_KINDS      /* a field that is a struct qhca_buf */
#define OPTION  0x80            /* 0 stands for no object and is valid */

/* struct field - names an object or buffer; @off: 64 and up: in the mailbox */
static const struct field {
    uint8_t opcode, kind, off;
} fields[] = {
#define IN_CMD(op, member, kind) \
    { QHCA_CMD_##op, kind, offsetof(struct qhca_cmd, member) }
#define IN_MBOX(op, type, member, kind) \
    { QHCA_CMD_##op, kind, 64 + offsetof(type, member) }
    IN_CMD(CREATE_EQ, create_eq.buf, BUF),
    IN_CMD(DESTROY_EQ, obj.obj, EQ),
    IN_CMD(CREATE_ETHQ, create_ethq.buf, BUF),
    IN_CMD(CREATE_ETHQ, create_ethq.cqn, CQ),
    IN_CMD(DESTROY_ETHQ, obj.obj, ETHQ),
    IN_CMD(DEALLOC_PD, obj.obj, PD),
    IN_CMD(DEALLOC_XRCD, obj.obj, XRCD),
    IN_CMD(REG_MR, reg_mr.buf, BUF),
    IN_CMD(REG_MR, reg_mr.pdn, PD),
    IN_CMD(REREG_MR, reg_mr.buf, BUF),
    IN_CMD(REREG_MR, reg_mr.pdn, PD),
    IN_CMD(REREG_MR, reg_mr.key, MR),
    IN_CMD(DEREG_MR, obj.obj, MR),
    IN_CMD(SET_PAGES, pages.key, MR),
    IN_CMD(CLEAR_PAGES, pages.key, MR),
    IN_CMD(ALLOC_MW, alloc_mw.pdn, PD),
    IN_CMD(DEALLOC_MW, obj.obj, MR),
    IN_CMD(CREATE_CQ, create_cq.buf, BUF),
    IN_CMD(CREATE_CQ, create_cq.eqn, EQ),
    IN_CMD(DESTROY_CQ, obj.obj, CQ),
    IN_CMD(QUERY_CQ, obj.obj, CQ),
    IN_CMD(RESIZE_CQ, create_cq.buf, BUF),
    IN_CMD(RESIZE_CQ, create_cq.cqn, CQ),
    IN_CMD(MODIFY_CQ, modify_cq.cqn, CQ),
    IN_CMD(CREATE_SRQ, create_srq.buf, BUF),
    IN_CMD(CREATE_SRQ, create_srq.pdn, PD),
    IN_CMD(CREATE_SRQ, create_srq.xrcdn, XRCD | OPTION),
    IN_CMD(CREATE_SRQ, create_srq.cqn, CQ),
    IN_CMD(DESTROY_SRQ, obj.obj, SRQ),
    IN_CMD(MODIFY_SRQ, modify_srq.srqn, SRQ),
    IN_CMD(QUERY_SRQ, obj.obj, SRQ),
    IN_CMD(RESIZE_SRQ, create_srq.buf, BUF),
    IN_CMD(RESIZE_SRQ, create_srq.srqn, SRQ),
    IN_MBOX(CREATE_QP, struct qhca_create_qp, sq, BUF),
    IN_MBOX(CREATE_QP, struct qhca_create_qp, rq, BUF | OPTION),
    IN_MBOX(CREATE_QP, struct qhca_create_qp, pdn, PD),
    IN_MBOX(CREATE_QP, struct qhca_create_qp, send_cqn, CQ),
    IN_MBOX(CREATE_QP, struct qhca_create_qp, recv_cqn, CQ),
    IN_MBOX(CREATE_QP, struct qhca_create_qp, srqn, SRQ | OPTION),
    IN_MBOX(CREATE_QP, struct qhca_create_qp, xrcdn, XRCD | OPTION),
    IN_CMD(MODIFY_QP, modify_qp.qpn, QP),
    IN_CMD(QUERY_QP, obj.obj, QP),
    IN_CMD(DESTROY_QP, obj.obj, QP),
    IN_CMD(QUERY_PAGE_FAULTS, obj.obj, QP),
    IN_CMD(RESUME_QP, resume_qp.qpn, QP),
    IN_CMD(ATTACH_MCAST, mcast.qpn, QP),
    IN_CMD(DETACH_MCAST, mcast.qpn, QP),
    IN_CMD(DESTROY_FLOW, obj.obj, FLOW),
    IN_CMD(QUERY_FLOW, obj.obj, FLOW),
    IN_CMD(CREATE_FLOW, obj.obj, FLOW | OPTION),
    IN_MBOX(CREATE_FLOW, struct qhca_flow, target, QP),
    IN_CMD(DESTROY_SPREAD, obj.obj, SPREAD),
    IN_MBOX(CREATE_SPREAD, struct qhca_spread, qpn, QP),
    IN_CMD(DEALLOC_CNTSET, obj.obj, CNTSET),
    IN_CMD(QUERY_CNTSET, obj.obj, CNTSET | OPTION),
    IN_CMD(BIND_CNTSET, bind_cntset.qpn, QP),
    IN_CMD(BIND_CNTSET, bind_cntset.cntset, CNTSET | OPTION),
};

unsigned device_opcode(unsigned n)
{
#define QHCA_COMMAND(id, ...)   QHCA_CMD_##id,
    static const uint8_t opcode[] = {
#include "qhca/commands.def"
    };

    return opcode[n % sizeof(opcode)];
}

static void put_field(const struct device *d, const struct record *r,
                      const struct field *field, uint8_t *image)
{
    unsigned kind = field->kind & ~OPTION;
    uint32_t v;

    memcpy(&v, image + field->off, sizeof(v));
    if (!v && field->kind & OPTION) {
        return;
    }
    if (kind == BUF && r->fix & DEVICE_FIX_BUF) {
        memcpy(image + field->off, &d->f.mem[v % 4].desc,
               sizeof(d->f.mem[0].desc));
    } else if (kind != BUF && r->fix & DEVICE_FIX_OBJ) {
        v = htole32(device_one_of(&d->f, kind, le32toh(v)));
        memcpy(image + field->off, &v, sizeof(v));
    }
}

/* Lets entries of SET_PAGES point to pages that the guest has. */
static void fix_pages(const struct device *d, uint8_t *mbox, size_t num)
{
    uint64_t entry;

    for (size_t i = 0; i < num; i++) {
        memcpy(&entry, mbox + i * sizeof(entry), sizeof(entry));
        entry = le64toh(entry);
        if (entry) {
            entry = htole64((d->pages + (entry >> 2) % DEVICE_PAGES * 4096) |
                            (entry & 3));
        }
        memcpy(mbox + i * sizeof(entry), &entry, sizeof(entry));
    }
}

void device_command(struct device *d, const struct record *r,
                    const uint8_t *data, size_t len)
{
    uint8_t image[64 + 256] = { 0 };
    struct guest *g = d->f.n.g;
    struct qhca_cmd c;

    memcpy(image, data, len < sizeof(image) ? len : sizeof(image));
    memcpy(&c, image, sizeof(c));
    if (r->fix & DEVICE_FIX_OPCODE) {
        c.opcode = htole16((uint16_t)device_opcode(le16toh(c.opcode)));
        memcpy(image, &c, sizeof(c));
    }
    for (unsigned i = 0; i < ARRAY_SIZE(fields); i++) {
        if (fields[i].opcode == le16toh(c.opcode)) {
            put_field(d, r, &fields[i], image);
        }
    }
    memcpy(&c, image, sizeof(c));
    if (r->fix & DEVICE_FIX_ADDR) {
        c.mailbox = htole64(g->mbox);
    }
    if (r->fix & DEVICE_FIX_ADDR && le16toh(c.opcode) == QHCA_CMD_SET_PAGES) {
        fix_pages(d, image + 64, (sizeof(image) - 64) / 8);
    }
    memset(guest_ptr(g, g->mbox, 4096), 0, 4096);
    memcpy(guest_ptr(g, g->mbox, sizeof(image) - 64), image + 64,
           sizeof(image) - 64);
    fuzz_command(&d->f, &c);
}
