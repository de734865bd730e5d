/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: QPs of type RAW, flow rules and spreads.
 */
#include "flows.h"

struct rc_qp flow_qp(struct node *n)
{
    struct rc_opts o = RC_OPTS;
    struct rc_qp q;

    o.type = QHCA_QPT_RAW;
    q = rc_create(n, &o);
    rc_bring_up(&q, QHCA_QPS_RTS);
    return q;
}

struct qhca_cqe flow_send(struct rc_qp *q, const struct frame *f,
                          unsigned flags, unsigned status)
{
    struct rc_wr wr = rc_wr(q, QHCA_WR_SEND, FLOW_SEND, (uint32_t)f->len);

    memcpy(guest_ptr(q->n->g, q->n->mr.addr + FLOW_SEND, f->len), f->data,
           f->len);
    wr.flags |= (uint8_t)flags;
    return rc_finish(q, &wr, status);
}

void flow_recv(struct rc_qp *q, unsigned i, uint32_t len)
{
    rc_recv(q, 100 + i, FLOW_RECV + i * FLOW_STEP, len);
}

bool flow_got(struct rc_qp *q, unsigned i, const struct frame *f)
{
    uint64_t at = q->n->mr.addr + FLOW_RECV + i * FLOW_STEP;
    struct qhca_cqe cqe;

    return cq_poll(&q->rcq, &cqe) && le64toh(cqe.wr_id) == 100 + i &&
           cqe.status == QHCA_WC_SUCCESS && cqe.opcode == QHCA_CQE_RECV &&
           le32toh(cqe.qpn) == q->qpn && le32toh(cqe.byte_len) == f->len &&
           !memcmp(guest_ptr(q->n->g, at, f->len), f->data, f->len);
}

bool flow_none(struct rc_qp *q)
{
    struct qhca_cqe cqe;

    return !cq_poll(&q->rcq, &cqe);
}

struct qhca_flow flow_rule(const struct rc_qp *q)
{
    return (struct qhca_flow) {
        .target = htole32(q ? q->qpn : 0),
        .action = q ? QHCA_FLOW_QP : QHCA_FLOW_DROP,
    };
}

void flow_match_dmac(struct qhca_flow *r, const struct frame *f)
{
    memcpy(r->key.dmac, f->data, 6);
    memset(r->mask.dmac, 0xff, 6);
}

void flow_match_udp(struct qhca_flow *r, unsigned dport)
{
    r->key.headers = r->mask.headers |= QHCA_FLOW_HAS_UDP;
    r->key.dport = htobe16((uint16_t)dport);
    r->mask.dport = 0xffff;
}

int flow_create(struct guest *g, const struct qhca_flow *r, uint32_t *number)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_CREATE_FLOW) };

    return guest_cmd_mbox(g, &cmd, r, sizeof(*r), NULL, 0, number);
}

uint32_t flow_add(struct guest *g, const struct qhca_flow *r)
{
    uint32_t number = 0;

    REQUIRE(flow_create(g, r, &number) == QHCA_OK);
    return number;
}

int flow_replace(struct guest *g, const struct qhca_flow *r, uint32_t number)
{
    struct qhca_cmd cmd = {
        .opcode = htole16(QHCA_CMD_CREATE_FLOW), .obj.obj = htole32(number),
    };
    uint32_t got = 0;
    int status = guest_cmd_mbox(g, &cmd, r, sizeof(*r), NULL, 0, &got);

    CHECK_EQ(got, status == QHCA_OK ? number : 0);
    return status;
}

struct qhca_flow_counts flow_counts(struct guest *g, uint32_t number)
{
    struct qhca_flow_counts c = { 0 };

    CHECK_EQ(guest_query(g, QHCA_CMD_QUERY_FLOW, number, &c, sizeof(c)),
             QHCA_OK);
    return c;
}

int flow_destroy(struct guest *g, uint32_t number)
{
    return guest_cmd_obj(g, QHCA_CMD_DESTROY_FLOW, number);
}

int spread_create(struct guest *g, const struct qhca_spread *s,
                  uint32_t *number)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_CREATE_SPREAD) };

    return guest_cmd_mbox(g, &cmd, s, sizeof(*s), NULL, 0, number);
}
