/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: shared receive queues.
 */
#include "srq.h"

static struct gsrq create(struct node *n, uint32_t pdn, unsigned log,
                          unsigned sges, uint32_t uar, uint32_t xrcdn,
                          uint32_t cqn)
{
    struct gsrq q = {
        .n = n, .uar = uar, .log = log, .stride = 5, .sges = sges,
    };
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_CREATE_SRQ) };

    while (1u << q.stride < sizeof(struct qhca_rq_wqe) +
                            sges * sizeof(struct qhca_sge)) {
        q.stride++;
    }
    q.ring = rq_ring(n->g, log + q.stride, log + q.stride > 20 ? 0 : 1);
    cmd.create_srq.buf = q.ring.desc;
    cmd.create_srq.pdn = htole32(pdn);
    cmd.create_srq.uar = htole32(uar);
    cmd.create_srq.max_sge = htole32(sges);
    cmd.create_srq.log_size = (uint8_t)log;
    cmd.create_srq.log_stride = (uint8_t)q.stride;
    cmd.create_srq.flags = n->g->dbrecs ? QHCA_SRQ_DBREC : 0;
    cmd.create_srq.xrcdn = htole32(xrcdn);
    cmd.create_srq.cqn = htole32(cqn);
    q.srqn = guest_create(n->g, &cmd);
    return q;
}

struct gsrq srq_create(struct node *n, uint32_t pdn, unsigned log,
                       unsigned sges)
{
    return create(n, pdn, log, sges, 1, 0, 0);
}

struct gsrq srq_create_on(struct node *n, uint32_t pdn, unsigned log,
                          unsigned sges, uint32_t uar)
{
    return create(n, pdn, log, sges, uar, 0, 0);
}

struct gsrq srq_create_xrc(struct node *n, uint32_t pdn, unsigned log,
                           unsigned sges, uint32_t xrcdn)
{
    struct gcq cq = cq_create(n->g, &n->comp, 1, 8);
    struct gsrq q = create(n, pdn, log, sges, 1, xrcdn, cq.cqn);

    q.cq = cq;
    return q;
}

uint32_t xrcd_create(struct guest *g)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_ALLOC_XRCD) };

    return guest_create(g, &cmd);
}

void srq_put(struct gsrq *q, uint64_t wr_id, unsigned num_sge,
             const struct qhca_seg_le *sge)
{
    uint64_t off = (uint64_t)(q->pi & ((1u << q->log) - 1)) << q->stride;
    uint8_t *to = guest_ptr(q->n->g, gbuf_addr(&q->ring, off), 1u << q->stride);
    struct qhca_rq_wqe w = {
        .wr_id = htole64(wr_id), .num_sge = htole16((uint16_t)num_sge),
    };

    memcpy(to, &w, sizeof(w));
    for (unsigned i = 0; i < num_sge && i < q->sges; i++) {
        struct qhca_sge s = {
            .addr = htole64(sge[i].addr), .length = htole32(sge[i].length),
            .lkey = htole32(sge[i].lkey),
        };

        memcpy(to + sizeof(w) + i * sizeof(s), &s, sizeof(s));
    }
    q->pi++;
}

void srq_ring(struct gsrq *q)
{
    struct guest *g = q->n->g;

    if (rq_posted(g, &q->ring, q->log + q->stride, q->pi)) {
        ring(g, q->uar, QHCA_DB_SRQ, q->srqn, q->pi);
    }
}

void srq_post(struct gsrq *q, uint64_t wr_id, uint64_t off, uint32_t len)
{
    const struct qhca_seg_le sge = {
        q->n->mr.addr + off, len, q->n->mr.key,
    };

    srq_put(q, wr_id, 1, &sge);
    srq_ring(q);
}

void srq_fill(struct gsrq *q, unsigned n, uint32_t len)
{
    for (unsigned i = 0; i < n; i++) {
        srq_post(q, i, 0, len);
    }
}

int srq_limit(struct gsrq *q, uint32_t limit)
{
    struct qhca_cmd cmd = {
        .opcode = htole16(QHCA_CMD_MODIFY_SRQ),
        .modify_srq = { .srqn = htole32(q->srqn), .limit = htole32(limit) },
    };

    return guest_cmd(q->n->g, &cmd, NULL);
}

int srq_query(struct gsrq *q, struct qhca_srqc *c)
{
    return guest_query(q->n->g, QHCA_CMD_QUERY_SRQ, q->srqn, c, sizeof(*c));
}

int srq_resize(struct gsrq *q, unsigned log, unsigned flags, uint32_t limit)
{
    struct gbuf ring = rq_ring(q->n->g, log + q->stride, 1);
    struct qhca_cmd cmd = {
        .opcode = htole16(QHCA_CMD_RESIZE_SRQ),
        .create_srq = {
            .buf = ring.desc, .srqn = htole32(q->srqn),
            .limit = htole32(limit), .log_size = (uint8_t)log,
            .flags = (uint8_t)flags,
        },
    };
    int status;

    (void)rq_posted(q->n->g, &ring, log + q->stride, q->pi);
    status = guest_cmd(q->n->g, &cmd, NULL);
    if (status == QHCA_OK) {
        q->ring = ring;
        q->log = log;
    }
    return status;
}

int srq_destroy(struct gsrq *q)
{
    return guest_cmd_obj(q->n->g, QHCA_CMD_DESTROY_SRQ, q->srqn);
}
