/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: QPs in all states, and what commands do to them. */
#include "debug.h"
#include "scene.h"

/* ---- QPs of each type in each state ---- */

static void post_some(struct rc_qp *q, uint32_t srqn)
{
    static const uint32_t lengths[] = { 40, 9000, 0, 100000, 600 };

    for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++) {
        bool ud = q->o.type == QHCA_QPT_UD || q->o.type == QHCA_QPT_RAW;
        struct rc_wr wr = rc_wr(q, QHCA_WR_SEND, 0, ud ? 40 : lengths[i]);

        wr.srqn = srqn;
        if (!lengths[i]) {
            wr.num_sge = 0;
            wr.flags |= QHCA_WQE_INLINE;
            wr.inline_data = "inline";
            wr.inline_len = 6;
        }
        rc_put(q, &wr);
    }
    rc_ring(q);
}

/* Posts a WR that fails: the send queue of an unreliable QP stops. */
static void post_bad(struct rc_qp *q)
{
    struct rc_wr wr = rc_wr(q, 0x77, 0, 8);

    rc_post(q, &wr);
}

static void add_in(uint8_t type, unsigned state, uint32_t xrcdn, uint32_t srqn)
{
    struct rc_opts o = opts_of(type);
    struct rc_qp q;

    o.mtu = 1;
    o.xrcdn = type == QHCA_QPT_XRC_TGT ? xrcdn : 0;
    q = rc_create(&node, &o);
    rc_set_peer(&q, &far, 0x77);
    rc_bring_up(&q, state == QHCA_QPS_SQD || state == QHCA_QPS_SQE ?
                    QHCA_QPS_RTS : state);
    if (state == QHCA_QPS_SQE) {
        post_bad(&q);
    }
    if (type != QHCA_QPT_XRC_TGT && state >= QHCA_QPS_RTS) {
        post_some(&q, srqn);
    }
    if (type != QHCA_QPT_XRC_TGT && type != QHCA_QPT_XRC_INI) {
        rc_recv(&q, 5, 0, 100);
    }
    if (state == QHCA_QPS_SQD) {
        REQUIRE(rc_set_state(&q, state) == QHCA_OK);
        post_some(&q, srqn);
    }
}

void scene_states(void)
{
    static const struct {
        uint8_t type, state;
    } which[] = {
        { QHCA_QPT_RC, QHCA_QPS_RESET }, { QHCA_QPT_RC, QHCA_QPS_INIT },
        { QHCA_QPT_RC, QHCA_QPS_RTR }, { QHCA_QPT_RC, QHCA_QPS_SQD },
        { QHCA_QPT_RC, QHCA_QPS_ERR }, { QHCA_QPT_UC, QHCA_QPS_RTR },
        { QHCA_QPT_UC, QHCA_QPS_RTS }, { QHCA_QPT_UC, QHCA_QPS_SQD },
        { QHCA_QPT_UC, QHCA_QPS_SQE }, { QHCA_QPT_UD, QHCA_QPS_INIT },
        { QHCA_QPT_UD, QHCA_QPS_RTS }, { QHCA_QPT_UD, QHCA_QPS_SQE },
        { QHCA_QPT_GSI, QHCA_QPS_RTR }, { QHCA_QPT_XRC_INI, QHCA_QPS_RTS },
        { QHCA_QPT_XRC_TGT, QHCA_QPS_RTR }, { QHCA_QPT_RAW, QHCA_QPS_RTR },
        { QHCA_QPT_RAW, QHCA_QPS_SQD }, { QHCA_QPT_RAW, QHCA_QPS_SQE },
    };
    uint32_t xrcdn = xrcd_create(g);
    struct gsrq xsrq = srq_create_xrc(&node, node.pdn, 4, 2, xrcdn);

    for (unsigned i = 0; i < ARRAY_SIZE(which); i++) {
        add_in(which[i].type, which[i].state, xrcdn, xsrq.srqn);
    }
}

/* ---- commands ---- */

static uint32_t below(uint64_t *rng, uint32_t n)
{
    return (uint32_t)(test_random(rng) >> 33) % n;
}

/* Any object of the table, or NULL. */
static void *pick(const struct vhca_table *t, uint64_t *rng)
{
    void *obj, *picked = NULL;
    uint32_t n = 0;

    vhca_table_each(t, obj) {
        if (below(rng, ++n) == 0) {
            picked = obj;
        }
    }
    return picked;
}

static void modify(uint32_t qpn, uint64_t *rng)
{
    static const struct {
        uint8_t type, to;
    } steps[] = {
        { QHCA_QPT_RC, QHCA_QPS_SQD }, { QHCA_QPT_RC, QHCA_QPS_INIT },
        { QHCA_QPT_RC, QHCA_QPS_RTR }, { QHCA_QPT_RC, QHCA_QPS_RTS },
        { QHCA_QPT_UD, QHCA_QPS_INIT }, { QHCA_QPT_UC, QHCA_QPS_RTR },
        { QHCA_QPT_XRC_TGT, QHCA_QPS_RTS }, { QHCA_QPT_UC, QHCA_QPS_RTS },
        { QHCA_QPT_RAW, QHCA_QPS_INIT },
    };
    const struct vhca_qp *q = vhca_qp_get(g->e, qpn);
    struct qhca_cmd c = { .opcode = htole16(QHCA_CMD_MODIFY_QP) };
    struct qhca_qp_attr a = rc_attr(&qp);
    uint32_t state, step;

    if (!q) {
        return;
    }
    state = below(rng, 3) ? q->state + 1u : below(rng, QHCA_QPS_ERR + 1);
    a.state = (uint8_t)(state % (QHCA_QPS_ERR + 1));
    c.modify_qp.qpn = htole32(qpn);
    step = below(rng, ARRAY_SIZE(steps));
    c.modify_qp.attr_mask = htole32(rc_step_mask(steps[step].type,
                                                 steps[step].to));
    guest_cmd_mbox(g, &c, &a, sizeof(a), NULL, 0, NULL);
}

static void modify_some(uint64_t *rng)
{
    for (unsigned i = below(rng, 40); i > 0; i--) {
        const struct vhca_qp *q = pick(&g->e->qps->table, rng);

        for (unsigned j = 0; q && j < 3; j++) {
            if (dev_state(g) != QHCA_STATE_RUNNING) {
                return;
            }
            modify(q->qpn, rng);
        }
    }
}

static void destroy_one(uint64_t *rng)
{
    const struct vhca_qp *q = pick(&g->e->qps->table, rng);
    const struct vhca_srq *s = pick(&g->e->rqs->srq, rng);
    const struct vhca_cq *c = pick(&g->e->events->cq, rng);
    const struct vhca_mr *m = pick(&g->e->memory->mr, rng);
    const struct vhca_flow *f = pick(&g->e->raw->flow, rng);
    const struct vhca_spread *p = pick(&g->e->raw->spread, rng);

    switch (below(rng, 10)) {
    case 5:
        guest_cmd_obj(g, QHCA_CMD_DESTROY_FLOW, f ? f->number : 0);
        break;
    case 6:
        guest_cmd_obj(g, QHCA_CMD_DESTROY_SPREAD, p ? p->number : 0);
        break;
    case 0:
        guest_cmd_obj(g, QHCA_CMD_DESTROY_SRQ, s ? s->srqn : 0);
        break;
    case 1:
        guest_cmd_obj(g, QHCA_CMD_DESTROY_CQ, c ? c->cqn : 0);
        break;
    case 2:
        guest_cmd_obj(g, m && m->window ? QHCA_CMD_DEALLOC_MW :
                                          QHCA_CMD_DEREG_MR, m ? m->key : 0);
        break;
    case 3:
        guest_cmd_obj(g, QHCA_CMD_DESTROY_EQ, 1 + below(rng, 3));
        break;
    case 4:
        guest_cmd_obj(g, QHCA_CMD_DESTROY_ETHQ, 1 + below(rng, 2));
        break;
    default:
        guest_cmd_obj(g, QHCA_CMD_DESTROY_QP, q ? q->qpn : 0);
        break;
    }
}

void scene_commands(uint64_t *rng)
{
    if (below(rng, 2)) {
        modify_some(rng);
    }
    if (below(rng, 2)) {
        return;
    }
    for (unsigned i = below(rng, 12); i > 0; i--) {
        if (dev_state(g) != QHCA_STATE_RUNNING) {
            return;
        }
        destroy_one(rng);
    }
}
