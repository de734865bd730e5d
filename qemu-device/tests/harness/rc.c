/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: nodes and RC queue pairs.
 */
#include "rc.h"
#include "tables.h"

/* ---- nodes ---- */

void node_gid(const struct node *n, uint8_t *gid, uint8_t *mac)
{
    memset(gid, 0, 16);
    if (n->ipv6) {
        gid[0] = 0xfd;
    } else {
        gid[10] = gid[11] = 0xff;
        gid[12] = 10;
    }
    memcpy(mac, test_mac, 6);
    mac[5] = 0;
    for (unsigned i = 0; i < 3; i++) {
        gid[15 - i] = (uint8_t)(n->host >> 8 * i);
        mac[5 - i] ^= gid[15 - i];
    }
}

void node_set_gid(struct node *n, bool ipv6, uint16_t vlan)
{
    uint8_t gid[16], mac[6];

    n->ipv6 = ipv6;
    n->vlan = vlan;
    node_gid(n, gid, mac);
    CHECK_EQ(gid_set(n->g, 0, gid, mac, vlan), QHCA_OK);
    CHECK_EQ(gid_allow(n->g, 1, 0, 1), QHCA_OK);
}

struct node node_on(struct guest *g, unsigned host)
{
    struct node n = { .g = g, .host = host, .vlan = QHCA_NO_VLAN };
    uint8_t gid[16], mac[6];

    node_gid(&n, gid, mac);
    port_enable(g, mac, 0, 9000);
    node_set_gid(&n, false, QHCA_NO_VLAN);
    n.async = eq_create(g, 0, 7, QHCA_EQ_ASYNC);
    n.comp = eq_create(g, 1, 7, 0);
    n.pdn = pd_create(g);
    n.mr = mr_create(g, n.pdn, NODE_MEM,
                     REMOTE_ALL | QHCA_ACCESS_LOCAL_WRITE |
                     QHCA_ACCESS_MW_BIND);
    return n;
}

struct node node_new(struct net *net, unsigned host)
{
    struct guest *g = guest_new_seed(host);

    if (net) {
        net_attach(net, g);
    }
    guest_enable(g, 5);
    return node_on(g, host);
}

/* ---- queue pairs ---- */

int rc_create_raw(struct guest *g, const struct qhca_create_qp *c,
                  uint32_t *qpn)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_CREATE_QP) };

    return guest_cmd_mbox(g, &cmd, c, sizeof(*c), NULL, 0, qpn);
}

static unsigned log2_of(size_t n, unsigned min)
{
    unsigned log = min;

    while (1ull << log < n) {
        log++;
    }
    return log;
}

static void create(struct rc_qp *q)
{
    const struct rc_opts *o = &q->o;
    struct guest *g = q->n->g;
    size_t data = MAX_OF(o->sges * sizeof(struct qhca_sge), o->max_inline);
    struct qhca_create_qp c = {
        .type = o->type, .flags = (uint8_t)o->qp_flags,
        .max_inline = htole32(o->max_inline), .srqn = htole32(o->srqn),
        .sq_log_size = (uint8_t)o->sq_log, .rq_log_size = (uint8_t)o->rq_log,
    };

    q->sq_stride = log2_of(sizeof(struct qhca_sq_wqe) + data, 7);
    q->rq_stride = log2_of(sizeof(struct qhca_rq_wqe) +
                           o->sges * sizeof(struct qhca_sge), 5);
    q->sq = guest_buf(g, 1ull << (o->sq_log + q->sq_stride), 12, 1);
    q->rq = rq_ring(g, o->rq_log + q->rq_stride, 1);
    if (o->type == QHCA_QPT_XRC_TGT) {
        c.xrcdn = htole32(o->xrcdn);
    } else {
        c.sq = q->sq.desc;
        c.pdn = htole32(q->n->pdn);
        c.send_cqn = htole32(q->scq.cqn);
    }
    if (o->type != QHCA_QPT_XRC_TGT && o->type != QHCA_QPT_XRC_INI) {
        c.recv_cqn = htole32(q->rcq.cqn);
        if (!o->srqn) {
            c.rq = q->rq.desc;
            c.flags |= g->dbrecs ? QHCA_QP_FLAG_RQ_DBREC : 0;
        }
    }
    c.uar = htole32(o->uar);
    c.sq_log_stride = (uint8_t)q->sq_stride;
    c.rq_log_stride = (uint8_t)q->rq_stride;
    c.max_send_sge = c.max_recv_sge = htole32(o->sges);
    REQUIRE(rc_create_raw(g, &c, &q->qpn) == QHCA_OK);
}

struct rc_qp rc_create(struct node *n, const struct rc_opts *o)
{
    struct rc_qp q = { .n = n, .o = *o };

    q.scq = cq_create(n->g, &n->comp, o->uar, o->cq_log);
    q.rcq = cq_create(n->g, &n->comp, o->uar, o->cq_log);
    create(&q);
    return q;
}

struct rc_qp rc_create_shared(const struct rc_qp *with, const struct rc_opts *o)
{
    struct rc_qp q = {
        .n = with->n, .o = *o, .scq = with->scq, .rcq = with->rcq,
    };

    create(&q);
    return q;
}

int rc_destroy(struct rc_qp *q)
{
    return guest_cmd_obj(q->n->g, QHCA_CMD_DESTROY_QP, q->qpn);
}

int rc_modify(struct rc_qp *q, const struct qhca_qp_attr *a, uint32_t mask)
{
    struct qhca_cmd cmd = {
        .opcode = htole16(QHCA_CMD_MODIFY_QP),
        .modify_qp = { .qpn = htole32(q->qpn), .attr_mask = htole32(mask) },
    };

    return guest_cmd_mbox(q->n->g, &cmd, a, sizeof(*a), NULL, 0, NULL);
}

int rc_set_state(struct rc_qp *q, unsigned state)
{
    struct qhca_qp_attr a = { .state = (uint8_t)state };

    if (state == QHCA_QPS_RESET) {
        q->sq_pi = q->rq_pi = 0;
    }
    return rc_modify(q, &a, QHCA_QP_STATE);
}

struct qhca_qpc rc_query(struct rc_qp *q)
{
    struct qhca_qpc c;

    REQUIRE(guest_query(q->n->g, QHCA_CMD_QUERY_QP, q->qpn, &c,
                        sizeof(c)) == QHCA_OK);
    return c;
}

unsigned rc_state(struct rc_qp *q)
{
    return rc_query(q).attr.state;
}

bool rc_is_datagram(const struct rc_qp *q)
{
    return q->o.type == QHCA_QPT_UD || q->o.type == QHCA_QPT_GSI;
}

struct qhca_qp_attr rc_attr(const struct rc_qp *q)
{
    const struct rc_opts *o = &q->o;
    struct qhca_qp_attr a = {
        .rq_psn = htole32(o->rq_psn), .sq_psn = htole32(o->sq_psn),
        .dest_qpn = htole32(q->peer_qpn), .access = htole16(o->access),
        .path_mtu = o->mtu, .max_rd_atomic = o->rd_atomic,
        .max_dest_rd_atomic = o->dest_rd_atomic, .min_rnr_timer = o->min_rnr,
        .timeout = o->timeout, .retry_cnt = o->retry,
        .rnr_retry = o->rnr_retry, .port = 1,
    };

    if (rc_is_datagram(q)) {
        a.qkey = htole32(o->qkey);
    }
    memcpy(a.av.dgid, q->peer_gid, 16);
    memcpy(a.av.dmac, q->peer_mac, 6);
    a.av.hop_limit = 64;
    a.av.port = 1;
    a.av.static_rate = 1;       /* kept, but not a rate */
    return a;
}

const struct table_a3 *rc_a3(unsigned type, unsigned from, unsigned to)
{
    for (size_t i = 0; i < ARRAY_SIZE(table_a3); i++) {
        const struct table_a3 *row = &table_a3[i];

        if (row->type == type && row->from == from && row->to == to) {
            return row;
        }
    }
    return NULL;
}

uint32_t rc_step_mask(uint8_t type, unsigned to)
{
    const struct table_a3 *row = rc_a3(type, to - 1, to);

    /* A.3 has no RAW QPs. */
    return QHCA_QP_STATE | (row ? row->required :
                            to == QHCA_QPS_INIT ? QHCA_QP_PORT : 0);
}

void rc_bring_up(struct rc_qp *q, unsigned state)
{
    struct qhca_qp_attr a = rc_attr(q);

    for (unsigned s = QHCA_QPS_INIT; s <= state && s <= QHCA_QPS_SQD; s++) {
        if (s == QHCA_QPS_SQD && state != s) {
            continue;
        }
        a.state = (uint8_t)s;
        REQUIRE(rc_modify(q, &a, rc_step_mask(q->o.type, s)) == QHCA_OK);
    }
    if (state == QHCA_QPS_ERR) {
        REQUIRE(rc_set_state(q, state) == QHCA_OK);
    }
}

void rc_set_peer(struct rc_qp *q, const struct node *n, uint32_t qpn)
{
    node_gid(n, q->peer_gid, q->peer_mac);
    q->peer_qpn = qpn;
}

struct rc_qp rc_scripted(struct node *n, const struct rc_opts *o,
                         const struct node *far)
{
    struct rc_qp q = rc_create(n, o);

    rc_set_peer(&q, far, 0x77);
    rc_bring_up(&q, QHCA_QPS_RTS);
    return q;
}

void rc_connect(struct rc_qp *a, struct rc_qp *b)
{
    rc_set_peer(a, b->n, b->qpn);
    rc_set_peer(b, a->n, a->qpn);
    b->o.sq_psn = a->o.rq_psn;
    b->o.rq_psn = a->o.sq_psn;
    rc_bring_up(a, QHCA_QPS_RTS);
    if (a != b) {
        rc_bring_up(b, QHCA_QPS_RTS);
    }
}

void rc_pair(struct node *n, const struct rc_opts *o, struct rc_qp *a,
             struct rc_qp *b)
{
    *a = rc_create(n, o);
    *b = rc_create(n, o);
    rc_connect(a, b);
}

int rc_drain(struct rc_qp *q)
{
    const struct qhca_qp_attr a = {
        .state = QHCA_QPS_SQD, .en_sqd_async_notify = 1,
    };

    return rc_modify(q, &a, QHCA_QP_STATE | QHCA_QP_EN_SQD_ASYNC_NOTIFY);
}

int rc_mcast(const struct rc_qp *q, unsigned opcode, const uint8_t *gid)
{
    struct qhca_cmd cmd = {
        .opcode = htole16((uint16_t)opcode), .mcast.qpn = htole32(q->qpn),
    };

    memcpy(cmd.mcast.gid, gid, 16);
    return guest_cmd(q->n->g, &cmd, NULL);
}
