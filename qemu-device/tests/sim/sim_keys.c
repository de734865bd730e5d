/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: keys that are valid for one request of the simulator's RC
 * QPs: fast registration before a WR and invalidation after it, or by it if it
 * is a READ; windows of the peer, which a SEND_WITH_INV invalidates.
 */
#include "harness/debug.h"
#include "harness/keys.h"
#include "sim.h"

static void keep(struct sim *s, struct guest *g, uint32_t key)
{
    REQUIRE(s->num_keys < SIM_MAX_KEYS);
    s->keys[s->num_keys++] = (struct sim_key) { .g = g, .key = key };
}

/* Each QP has one region of type FAST, which is registered again each time. */
static uint32_t fast_key(struct sim *s, struct sim_qp *q)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_REG_MR) };

    if (!q->fast_key) {
        cmd.reg_mr.type = QHCA_MR_FAST;
        cmd.reg_mr.length = htole64(SIM_FAST_BLOCKS);
        cmd.reg_mr.pdn = htole32(q->q.n->pdn);
        q->fast_key = guest_create(q->q.n->g, &cmd);
        keep(s, q->q.n->g, q->fast_key);
    }
    q->fast_key = next_key(q->fast_key);
    return q->fast_key;
}

static void memop(struct sim_qp *q, unsigned i, uint8_t opcode)
{
    struct sim_wr *w = &q->wr[i];

    w->memop = true;
    w->wr.opcode = opcode;
    w->wr.wr_id = (uint64_t)q->q.qpn << 32 | i;
}

/* Plans REG_MR for the local data of WR @w, cut up into pieces of any size. */
static void plan_pieces(struct sim *s, struct sim_qp *q, struct rc_wr *reg,
                        const struct sim_wr *w)
{
    uint64_t len = MAX_OF(w->len, 1u), from = 0, end;
    uint32_t n = 1 + sim_rand(s, SIM_FAST_BLOCKS / 2);
    uint64_t *list;

    reg->num_blocks = 2 * n;
    reg->table = (sim_alloc(s, q->q.n, n * 16 + 7) + 7) & ~7ull;
    list = guest_ptr(q->q.n->g, reg->table, n * 16);
    for (uint32_t i = 0; i < n; i++, from = end) {
        end = i + 1 == n ? len : from + sim_rand(s, (uint32_t)(len - from));
        list[2 * i] = htole64(w->local + from);
        list[2 * i + 1] = htole64(end);
    }
    reg->length = len;
}

/* Plans REG_MR for the blocks that hold the local data of WR @w. */
static void plan_blocks(struct sim *s, struct sim_qp *q, struct rc_wr *reg,
                        const struct sim_wr *w)
{
    struct guest *g = q->q.n->g;
    uint64_t first = w->local & ~4095ull, len = MAX_OF(w->len, 1u);
    uint64_t *list;

    reg->num_blocks = (uint32_t)((w->local + len - 1) / 4096 -
                                 first / 4096 + 1);
    REQUIRE(reg->num_blocks <= SIM_FAST_BLOCKS);
    reg->table = (sim_alloc(s, q->q.n, reg->num_blocks * 8 + 7) + 7) & ~7ull;
    list = guest_ptr(g, reg->table, reg->num_blocks * 8);
    for (uint32_t i = 0; i < reg->num_blocks; i++) {
        list[i] = htole64(first + i * 4096ull);
    }
    reg->length = len;
    reg->offset = (uint32_t)(w->local - first);
    reg->block_shift = 12;
}

static void plan_reg(struct sim *s, struct sim_qp *q, struct rc_wr *reg,
                     const struct sim_wr *w)
{
    if (sim_rand(s, 2)) {
        plan_pieces(s, q, reg, w);
    } else {
        plan_blocks(s, q, reg, w);
    }
    reg->addr = (uint64_t)sim_rand(s, 1u << 30) << 20 | sim_rand(s, 1u << 20);
    reg->access = QHCA_ACCESS_LOCAL_WRITE;
}

void sim_plan_fast(struct sim *s, struct sim_qp *q, unsigned i)
{
    struct sim_wr *w = &q->wr[i + 1];
    struct rc_wr *reg = &q->wr[i].wr;
    uint32_t key = fast_key(s, q);

    memop(q, i, QHCA_WR_REG_MR);
    plan_reg(s, q, reg, w);
    reg->key = key;
    for (unsigned k = 0; k < w->wr.num_sge && !w->bad; k++) {
        w->wr.sge[k].addr += reg->addr - w->local;
        w->wr.sge[k].lkey = key;
    }
    if (w->wr.opcode == QHCA_WR_RDMA_READ && !w->bad && sim_rand(s, 2)) {
        w->wr.opcode = QHCA_WR_RDMA_READ_WITH_INV;
        w->wr.imm = htole32(key);
    }
    memop(q, i + 2, QHCA_WR_LOCAL_INV);
    q->wr[i + 2].wr.imm = htole32(key);
    for (unsigned k = 0; k < 3; k += 2) {
        q->wr[i + k].wr.flags = sim_rand(s, 3) ? 0 : QHCA_WQE_SIGNALED;
    }
}

/* Binds the window without a WR: it only has to be bound in time. */
void sim_plan_window(struct sim *s, struct sim_qp *a, unsigned i)
{
    struct sim_qp *b = a->peer;
    struct guest *g = b->q.n->g;
    struct sim_wr *w = &a->wr[i];
    uint32_t key = mw_create(g, b->q.n->pdn, QHCA_MW_2B);
    const struct vhca_memop op = {
        .key = next_key(key), .mr_key = b->q.n->mr.key, .addr = w->remote,
        .length = w->len,
        .access = w->wr.opcode == QHCA_WR_RDMA_READ ? QHCA_ACCESS_REMOTE_READ :
                                                      QHCA_ACCESS_REMOTE_WRITE,
    };

    keep(s, g, op.key);
    s->keys[s->num_keys - 1].user = a;
    s->num_windows++;
    REQUIRE(vhca_mw_bind(g->e, &vhca_qp_get(g->e, b->q.qpn)->user, &op) ==
            QHCA_WC_SUCCESS);
    w->wr.rkey = op.key;
    /* The peer may still be reading when the invalidation arrives. */
    a->wr[i + 1].wr.flags |= QHCA_WQE_FENCE;
    a->wr[i + 1].wr.imm = htole32(op.key);
}

static bool key_lives(const struct sim_key *k)
{
    const struct vhca_mr *mr = vhca_mr_get(k->g->e, k->key);

    return mr && mr->valid;
}

void sim_judge_inv(struct sim *s, struct sim_qp *q, const struct sim_wr *w,
                   const struct qhca_cqe *c)
{
    const struct sim_key k = {
        .g = q->q.n->g, .key = le32toh(c->inv_key),
    };

    if (!(le16toh(c->flags) & QHCA_CQE_INV) || c->inv_key != w->wr.imm) {
        sim_fail(s, "CQE without the key that was invalidated");
    } else if (key_lives(&k)) {
        sim_fail(s, "key 0x%x lives on", k.key);
    }
}

void sim_judge_read_inv(struct sim *s, struct sim_qp *q, unsigned i)
{
    const struct sim_key k = {
        .g = q->q.n->g, .key = le32toh(q->wr[i].wr.imm),
    };

    if (key_lives(&k)) {
        sim_fail(s, "READ %u: key 0x%x lives on", i, k.key);
    }
}

uint32_t sim_second_key(struct sim *s, struct sim_qp *q)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_REG_MR) };
    const struct node *n = q->q.n;
    uint32_t key;

    cmd.reg_mr.buf.addr = htole64(n->mr.addr);
    cmd.reg_mr.buf.num_blocks = htole32(SIM_REGION >> 12);
    cmd.reg_mr.buf.block_shift = 12;
    cmd.reg_mr.iova = htole64(n->mr.addr);
    cmd.reg_mr.length = htole64(SIM_REGION);
    cmd.reg_mr.pdn = htole32(n->pdn);
    key = guest_create(n->g, &cmd);
    keep(s, n->g, key);
    return key;
}

static void forget(struct sim *s, struct guest *g, uint32_t key)
{
    for (unsigned i = 0; i < s->num_keys; i++) {
        if (s->keys[i].g == g && s->keys[i].key == key) {
            s->keys[i] = s->keys[--s->num_keys];
            return;
        }
    }
}

/*
 * A WR that is posted and not known to be complete may still need its buffer;
 * one that is not posted yet must fail.
 */
void sim_strike_key(struct sim *s, struct sim_qp *q)
{
    struct guest *g = q->q.n->g;

    if (q->key == q->q.n->mr.key || !q->key) {
        return;
    }
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, q->key), 0);
    forget(s, g, q->key);
    q->key = 0;
    for (unsigned i = q->done; i < q->num_wr; i++) {
        if (q->wr[i].len > 0) {
            q->wr[i].doomed = true;
            q->wr[i].bad = q->wr[i].bad || i >= q->posted;
        }
    }
}

void sim_strike_windows(struct sim *s)
{
    for (unsigned i = 0; i < s->num_keys; i++) {
        struct vhca_mr *mr = vhca_mr_get(s->keys[i].g->e, s->keys[i].key);

        if (mr && mr->window && mr->valid && sim_rand(s, 2)) {
            struct sim_qp *user = s->keys[i].user;

            user->may_fail = user->peer->may_fail = true;
            vhca_mw_unbind(mr);
            s->saw[SIM_SAW_UNBOUND]++;
        }
    }
}

static bool is_gone(const struct sim *s, const struct guest *g)
{
    unsigned i = 0;

    while (s->node[i].g != g) {
        i++;
    }
    return sim_node_gone(s, &s->node[i]);
}

void sim_free_keys(struct sim *s)
{
    for (unsigned i = 0; i < s->num_keys; i++) {
        struct guest *g = s->keys[i].g;

        if (is_gone(s, g)) {
            continue;
        }
        if (guest_cmd_obj(g, QHCA_CMD_DEALLOC_MW, s->keys[i].key) != QHCA_OK) {
            CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, s->keys[i].key), 0);
        }
    }
    s->num_keys = 0;
}
