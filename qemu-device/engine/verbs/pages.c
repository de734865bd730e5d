/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: page faults of QPs: what the driver asks for, and its answer. */
#include "../save/save.h"
#include "verbs.h"

static uint64_t first_page(const struct vhca_miss *m)
{
    return m->off >> m->shift;
}

int vhca_do_query_page_faults(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    struct qhca_page_faults *out = (void *)c->mbox;
    struct vhca_qp *qp = vhca_qp_get(e, le32toh(c->cmd->obj.obj));

    if (!qp) {
        return QHCA_ERR_OBJ;
    }
    for (unsigned i = 0; i < QHCA_PAGE_KINDS; i++) {
        const struct vhca_page_fault *f = &qp->fault[i];

        if (f->open) {
            out->fault[i] = (struct qhca_page_fault) {
                .first = htole64(first_page(&f->miss)),
                .num = htole64(((f->miss.off + f->miss.len - 1) >>
                                f->miss.shift) - first_page(&f->miss) + 1),
                .key = htole32(f->miss.key), .sn = htole32(f->sn),
                .open = 1, .write = f->miss.write,
            };
        }
    }
    return QHCA_OK;
}

int vhca_do_resume_qp(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    static void (*const resume[])(struct qhca_engine *e, struct vhca_qp *qp,
                                  bool deny) = {
        [QHCA_PAGE_SEND] = vhca_requester_resume,
        [QHCA_PAGE_REQUEST] = vhca_responder_resume,
        [QHCA_PAGE_RESPONSE] = vhca_response_resume,
    };
    const struct qhca_cmd_resume_qp *r = &c->cmd->resume_qp;
    struct vhca_qp *qp = vhca_qp_get(e, le32toh(r->qpn));

    if (!qp) {
        return QHCA_ERR_OBJ;
    }
    if (r->kind >= QHCA_PAGE_KINDS || r->deny > 1) {
        return QHCA_ERR_PARAM;
    }
    if (!qp->fault[r->kind].open ||
        qp->fault[r->kind].sn != le32toh(r->sn)) {
        return QHCA_ERR_STATE;
    }
    qp->fault[r->kind].open = false;
    resume[r->kind](e, qp, r->deny);
    return QHCA_OK;
}

/* ---- saved states ---- */

static const struct vhca_snap_field fault_fields[] = {
    VHCA_SNAP_ANY(struct vhca_page_fault, miss.off),
    VHCA_SNAP_MAX(struct vhca_page_fault, QHCA_ODP_SIZE_MAX, miss.len),
    VHCA_SNAP_ANY(struct vhca_page_fault, miss.key),
    VHCA_SNAP_MAX(struct vhca_page_fault, QHCA_BLOCK_SHIFT_MAX, miss.shift),
    VHCA_SNAP_FLAG(struct vhca_page_fault, miss.write),
    VHCA_SNAP_ANY(struct vhca_page_fault, sn, at, why),
    VHCA_SNAP_FLAG(struct vhca_page_fault, open),
    VHCA_SNAP_MAX(struct vhca_page_fault, VHCA_PAGE_REPEATS, repeats),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_page_fault, 48);
VHCA_SNAP_KNOWS(struct vhca_miss, 24);

/* Whether a fault of @kind can become @why if its page is denied. */
static bool why_ok(unsigned kind, uint8_t why)
{
    switch (kind) {
    case QHCA_PAGE_SEND:
        return why == QHCA_WC_LOC_PROT_ERR;
    case QHCA_PAGE_REQUEST:
        return why == VHCA_RX_BUFFER || why == VHCA_RX_ACCESS;
    default:
        return !why;
    }
}

void vhca_page_faults_walk(struct vhca_snap *s, struct vhca_qp *qp)
{
    for (unsigned i = 0; i < QHCA_PAGE_KINDS && !s->bad; i++) {
        struct vhca_page_fault *f = &qp->fault[i];

        vhca_snap_fields(s, fault_fields, f);
        f->told = vhca_snap_time(s, "told", f->told);
        vhca_snap_check(s, !f->open || (f->miss.len && why_ok(i, f->why)),
                        "page fault");
    }
}
