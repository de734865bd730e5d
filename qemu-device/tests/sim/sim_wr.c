/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: planning, posting and checking the simulator's work
 * requests, and what RC guarantees for them.
 */
#include "harness/debug.h"
#include "sim.h"

/* ---- planning ---- */

static uint32_t random_len(struct sim *s, uint32_t mtu)
{
    switch (sim_rand(s, 8)) {
    case 0:
        return sim_rand(s, 3);
    case 1:
    case 2:
        return mtu * sim_rand(s, 4);
    case 3:
        return mtu + 1 - sim_rand(s, 3);
    case 4:
        return sim_rand(s, 16 * mtu);
    default:
        return sim_rand(s, 3 * mtu);
    }
}

#define FIRST_READ  6u

/* From FIRST_READ on they are READs and atomics, the last two for RC alone. */
static uint8_t random_op(struct sim *s, const struct sim_qp *q)
{
    static const uint8_t ops[] = {
        QHCA_WR_SEND, QHCA_WR_SEND, QHCA_WR_SEND_WITH_IMM, QHCA_WR_RDMA_WRITE,
        QHCA_WR_RDMA_WRITE, QHCA_WR_RDMA_WRITE_WITH_IMM, QHCA_WR_RDMA_READ,
        QHCA_WR_RDMA_READ, QHCA_WR_ATOMIC_CMP_AND_SWP,
        QHCA_WR_ATOMIC_FETCH_AND_ADD, QHCA_WR_FLUSH, QHCA_WR_ATOMIC_WRITE,
    };

    unsigned n = ARRAY_SIZE(ops) - (q->q.o.type == QHCA_QPT_RC ? 0 : 2);
    unsigned first = s->untimed && sim_rand(s, 2) ? FIRST_READ : 0;

    return ops[first + sim_rand(s, n - first)];
}

static bool is_read(uint8_t op)
{
    return vhca_wr_info(op)->rules & VHCA_WR_READ;
}

static bool is_atomic(uint8_t op)
{
    return vhca_wr_info(op)->rules & VHCA_WR_ATOMIC;
}

bool sim_takes_rr(uint8_t op)
{
    return vhca_wr_info(op)->rules & VHCA_WR_TAKES_WR;
}

void sim_plan_sges(struct sim *s, struct sim_wr *w, uint32_t key)
{
    unsigned n = is_atomic(w->wr.opcode) ? 1 : 1 + sim_rand(s, 3);
    uint64_t addr = w->local;
    uint32_t left = w->len;

    for (unsigned i = 0; i < n; i++) {
        uint32_t part = i == n - 1 ? left : sim_rand(s, left + 1);

        w->wr.sge[i] = (struct qhca_seg_le) { addr, part, key };
        addr += part;
        left -= part;
    }
    w->wr.num_sge = n;
}

/* @value is the value of the peer's word when @w will be executed. */
static void plan_atomic(struct sim *s, struct sim_wr *w, uint64_t *value)
{
    uint64_t v = test_random(&s->rng);

    w->old = *value;
    w->wr.swap_add = v;
    if (w->wr.opcode == QHCA_WR_ATOMIC_FETCH_AND_ADD) {
        *value += v;
    } else {
        w->wr.compare = sim_rand(s, 3) ? *value : *value + 1;
        *value = w->wr.compare == *value ? v : *value;
    }
}

static void plan_one(struct sim *s, struct sim_qp *a, struct sim_qp *b,
                     unsigned i, uint8_t opcode, uint64_t *value)
{
    struct sim_wr *w = &a->wr[i], *before = i ? &a->wr[i - 1] : NULL;

    w->wr.opcode = opcode;
    w->wr.wr_id = (uint64_t)a->q.qpn << 32 | i;
    w->wr.imm = (uint32_t)test_random(&s->rng);
    w->wr.flags = sim_rand(s, 4) ? QHCA_WQE_SIGNALED : 0;
    w->wr.flags |= sim_rand(s, 6) ? 0 : QHCA_WQE_FENCE;
    w->wr.rkey = b->q.n->mr.key;
    w->seed = s->seed * 31 + i * 7 + a->q.qpn;
    w->len = random_len(s, 128u << a->q.o.mtu);
    if (s->mbit && sim_rand(s, 2)) {
        w->len = sim_rand(s, 16 * (128u << a->q.o.mtu));    /* queues form */
    }
    if (is_atomic(w->wr.opcode) || w->wr.opcode == QHCA_WR_ATOMIC_WRITE) {
        w->len = 8;
    }
    w->local = sim_alloc(s, a->q.n, w->len);
    w->remote = sim_alloc(s, b->q.n, w->len);
    if (is_atomic(w->wr.opcode)) {
        w->remote = a->word;
        plan_atomic(s, w, value);
    } else if (w->wr.opcode == QHCA_WR_RDMA_READ && before && !before->bad &&
               before->wr.opcode == QHCA_WR_RDMA_WRITE && sim_rand(s, 2)) {
        w->remote = before->remote;                     /* B-067 */
        w->seed = before->seed;
        w->len = before->len;
        w->local = sim_alloc(s, a->q.n, w->len);
    } else if (w->wr.opcode == QHCA_WR_RDMA_READ) {
        guest_fill(b->q.n->g, w->remote, w->len, w->seed);
    } else {
        guest_fill(a->q.n->g, w->local, w->len, w->seed);
    }
    if (w->wr.opcode == QHCA_WR_ATOMIC_WRITE) {
        sim_plan_store(s, a, i);
    }
    w->wr.raddr = w->remote;
    sim_plan_sges(s, w, a->q.n->mr.key);
    if (w->wr.opcode == QHCA_WR_FLUSH) {
        sim_plan_flush(s, a, i);
    }
    if (sim_errs(s->kind) && !sim_rand(s, 20)) {
        sim_plan_bad(s, a, w);
        a->may_fail = b->may_fail = true;
    }
    if (sim_takes_rr(w->wr.opcode)) {
        b->rr_addr[b->num_rr] = w->wr.opcode == QHCA_WR_RDMA_WRITE_WITH_IMM ?
                                sim_alloc(s, b->q.n, 0) : w->remote;
        b->taker[b->num_rr++] = i;
        sim_plan_bad_recv(s, a, b, w);
    }
}

static void plan(struct sim *s, struct sim_qp *a, struct sim_qp *b)
{
    bool keys = a->q.o.type == QHCA_QPT_RC;     /* both ends create some */
    uint64_t value = 0;

    a->word = sim_alloc(s, b->q.n, 8 + 7);
    a->word = (a->word + 7) & ~7ull;
    memset(guest_ptr(b->q.n->g, a->word, 8), 0, 8);
    sim_place_setup(s, a, b);
    for (unsigned i = 0; i < a->num_wr; i++) {
        unsigned left = a->num_wr - i, what = sim_rand(s, 8);

        what = s->has & SIM_HAS(WINDOWS) && what > 4 ? 1 : what;

        if (keys && what == 0 && left >= 3) {
            plan_one(s, a, b, i + 1, random_op(s, a), &value);
            sim_plan_fast(s, a, i);
            i += 2;
        } else if (keys && what == 1 && left >= 2) {
            plan_one(s, a, b, i, sim_rand(s, 2) ? QHCA_WR_RDMA_WRITE :
                                                  QHCA_WR_RDMA_READ, &value);
            if (a->wr[i].len && !a->wr[i].bad) {
                plan_one(s, a, b, i + 1, QHCA_WR_SEND_WITH_INV, &value);
                sim_plan_window(s, a, i++);
            }
        } else {
            plan_one(s, a, b, i, random_op(s, a), &value);
        }
    }
}

/* One WR per queue size must be signaled, or no slot would be freed. */
static void plan_signals(struct sim_qp *q)
{
    unsigned size = 1u << q->q.o.sq_log, quiet = 0;

    for (unsigned i = 0; i < q->num_wr; i++) {
        struct rc_wr *wr = &q->wr[i].wr;

        if (++quiet == size || i == q->num_wr - 1) {
            wr->flags |= QHCA_WQE_SIGNALED;
        }
        if (wr->flags & QHCA_WQE_SIGNALED) {
            quiet = 0;
        }
    }
}

void sim_plan(struct sim *s, struct sim_qp *a, struct sim_qp *b)
{
    a->peer = b;
    a->num_wr = 1 + sim_rand(s, SIM_MAX_WR);
    a->num_wr = a->idle ? 0 : MIN_OF(a->num_wr, sim_limits.wr);
    a->model->plan(s, a, b);
    plan_signals(a);
}

/* ---- posting ---- */

void sim_post_send(struct sim *s, struct sim_qp *q, unsigned max)
{
    uint32_t size = 1u << q->q.o.sq_log;
    bool any = false;

    (void)s;
    while (max-- > 0 && !q->gone && q->posted < q->num_wr &&
           q->q.sq_pi - q->freed < size) {
        struct sim_wr *w = &q->wr[q->posted++];

        rc_put(&q->q, &w->wr);
        any = true;
    }
    if (any) {
        rc_ring(&q->q);
    }
}

static void put_recv(struct sim *s, struct sim_qp *q)
{
    unsigned i = q->rr_posted++;
    const struct sim_wr *w = &q->peer->wr[q->taker[i]];
    bool imm_only = w->wr.opcode == QHCA_WR_RDMA_WRITE_WITH_IMM;
    uint32_t len = imm_only ? 0 : w->len, cut = sim_rand(s, len + 1);
    struct qhca_seg_le sge[QHCA_MAX_RECV_SGE] = {
        { q->rr_addr[i], cut, q->q.n->mr.key },
        { 0, 0, 0 },
        { q->rr_addr[i] + cut, len - cut, q->q.n->mr.key },
    };

    rc_recv_raw(&q->q, i, w->refused ? SIM_BAD_SGES : imm_only ? 0 : 3, sge);
}

void sim_post_recv(struct sim *s, struct sim_qp *q, unsigned max)
{
    if (sim_shares_rq(q)) {
        sim_srq_post(s, q, max);
        return;
    }
    while (max-- > 0 && !q->gone && q->rr_posted < q->num_rr &&
           q->rr_posted - q->rr_done < 1u << q->q.o.rq_log) {
        q->model->put_recv(s, q);
    }
}

/* ---- judging ---- */

static void judge_data(struct sim *s, struct sim_qp *q, unsigned i)
{
    const struct sim_wr *w = &q->wr[i];
    uint64_t old;

    if (w->bad || w->refused) {
        sim_fail(s, "bad WR %u succeeded", i);
    } else if (w->memop) {
        return;                 /* other WRs show its effect */
    } else if (w->wr.opcode == QHCA_WR_ATOMIC_WRITE) {
        sim_judge_store(s, q, i);
    } else if (is_atomic(w->wr.opcode)) {
        memcpy(&old, guest_ptr(q->q.n->g, w->local, 8), 8);
        if (le64toh(old) != w->old) {
            sim_fail(s, "atomic %u found 0x%llx, not 0x%llx", i,
                     (unsigned long long)le64toh(old),
                     (unsigned long long)w->old);
        }
    } else if (is_read(w->wr.opcode) &&
               !guest_is_filled(q->q.n->g, w->local, w->len, w->seed)) {
        sim_fail(s, "READ %u has wrong data", i);
    } else if (w->wr.opcode == QHCA_WR_RDMA_READ_WITH_INV) {
        sim_judge_read_inv(s, q, i);
    } else if (sim_shares_rq(q->peer) && sim_takes_rr(w->wr.opcode)) {
        return;                 /* the receiver checks it */
    } else if (!is_read(w->wr.opcode) && !q->peer->gone) {
        sim_judge_write(s, q, i);
    }
}

/* Judge the success of WR @i, and what it says about those before it. */
static void judge_done(struct sim *s, struct sim_qp *q, unsigned i)
{
    const struct sim_wr *w = &q->wr[i];

    judge_data(s, q, i);
    if (w->wr.opcode != QHCA_WR_RDMA_WRITE &&
        (!w->memop || w->wr.opcode == QHCA_WR_FLUSH)) {
        sim_judge_late(s, q, i);
    }
}

bool sim_send_in_order(struct sim *s, struct sim_qp *q,
                       const struct qhca_cqe *c, unsigned *i)
{
    *i = (unsigned)le64toh(c->wr_id) & 0xffffff;
    if (le64toh(c->wr_id) >> 32 == q->q.qpn && *i >= q->done &&
        *i < q->posted && le32toh(c->wqe_index) == *i) {
        return true;
    }
    sim_fail(s, "CQE of WR %u, %u posted, %u done", *i, q->posted, q->done);
    return false;
}

bool sim_recv_in_order(struct sim *s, struct sim_qp *q,
                       const struct qhca_cqe *c, unsigned *i)
{
    *i = (unsigned)le64toh(c->wr_id);
    if (*i == q->rr_done && *i < q->rr_posted) {
        return true;
    }
    sim_fail(s, "CQE of receive WR %u, %u posted, %u done", *i, q->rr_posted,
             q->rr_done);
    return false;
}

static void judge_send(struct sim *s, struct sim_qp *q,
                       const struct qhca_cqe *c)
{
    unsigned i;

    if (!sim_send_in_order(s, q, c, &i)) {
        return;
    }
    /*
     * WRs before this one without a CQE must be unsignaled, and have succeeded.
     */
    for (; q->done < i; q->done++) {
        if ((q->wr[q->done].wr.flags & QHCA_WQE_SIGNALED) || q->failed) {
            sim_fail(s, "no CQE of WR %u", q->done);
        }
        judge_done(s, q, q->done);
    }
    q->done = q->freed = i + 1;
    if (c->status == QHCA_WC_SUCCESS) {
        if (q->failed || !(q->wr[i].wr.flags & QHCA_WQE_SIGNALED) ||
            c->opcode != rc_cqe_opcode(&q->wr[i].wr)) {
            sim_fail(s, "success of WR %u, opcode %u", i, c->opcode);
        }
        judge_done(s, q, i);
    } else if (!q->may_fail ||
               (q->failed && c->status != QHCA_WC_WR_FLUSH_ERR)) {
        sim_fail(s, "WR %u opcode %u status %u", i, q->wr[i].wr.opcode,
                 c->status);
    }
    q->failed = q->failed || c->status != QHCA_WC_SUCCESS;
}

void sim_judge_message(struct sim *s, struct sim_qp *q, const struct sim_wr *w,
                       const struct qhca_cqe *c, uint64_t addr)
{
    if (le32toh(c->byte_len) != w->len ||
        !guest_is_filled(q->q.n->g, addr, w->len, w->seed)) {
        sim_fail(s, "receive WR %u has wrong data", q->rr_done - 1);
    }
    if (w->wr.opcode == QHCA_WR_SEND_WITH_INV) {
        sim_judge_inv(s, q, w, c);
    } else if (w->wr.opcode != QHCA_WR_SEND &&
        (c->imm != w->wr.imm || !(le16toh(c->flags) & QHCA_CQE_IMM))) {
        sim_fail(s, "receive WR %u has wrong immediate data", q->rr_done - 1);
    }
}

static void judge_recv(struct sim *s, struct sim_qp *q,
                       const struct qhca_cqe *c)
{
    const struct sim_wr *w;
    unsigned i;

    if (!sim_recv_in_order(s, q, c, &i)) {
        return;
    }
    w = &q->peer->wr[q->taker[i]];
    q->rr_done++;
    sim_judge_bad_recv(s, w->refused, c);
    if (c->status != QHCA_WC_SUCCESS) {
        if (!q->may_fail) {
            sim_fail(s, "receive WR %u status %u", i, c->status);
        }
        return;
    }
    sim_judge_message(s, q, w, c, w->remote);
}

static bool complete(const struct sim_qp *q)
{
    return q->failed || (q->done == q->num_wr && !q->held &&
                         (q->may_fail || q->rr_done == q->num_rr));
}

/* The byte after the data of each WR must not be written. */
static void check_memory(struct sim *s, struct sim_qp *q)
{
    for (unsigned i = 0; i < q->num_wr; i++) {
        const struct sim_wr *w = &q->wr[i];

        if (w->bad || w->memop || is_atomic(w->wr.opcode)) {
            continue;
        }
        sim_check_refused(s, q, i);
        if (*(uint8_t *)guest_ptr(q->q.n->g, w->local + w->len, 1) ||
            *(uint8_t *)guest_ptr(q->peer->q.n->g, w->remote + w->len, 1)) {
            sim_fail(s, "WR %u has touched what is behind its data", i);
        }
    }
    sim_judge_late(s, q, q->num_wr);
    sim_check_store(s, q);
}

const struct sim_model sim_rc = {
    .plan = plan,
    .put_recv = put_recv,
    .judge_send = judge_send,
    .judge_recv = judge_recv,
    .complete = complete,
    .check_memory = check_memory,
};

void sim_poll(struct sim *s, struct sim_qp *q)
{
    struct qhca_cqe c;

    sim_arm_events(s, q->q.n);
    while (cq_poll(&q->q.scq, &c)) {
        sim_arm_check(s, &q->q.scq, &c);
        sim_see_cqe(s, 2 * (q - s->qp), &c);
        if (c.status == QHCA_WC_WR_FLUSH_ERR) {
            s->saw[SIM_SAW_FLUSH]++;
        } else if (c.status != QHCA_WC_SUCCESS) {
            s->saw[SIM_SAW_ERROR]++;
        }
        q->model->judge_send(s, q, &c);
    }
    while (cq_poll(&q->q.rcq, &c)) {
        sim_arm_check(s, &q->q.rcq, &c);
        sim_see_cqe(s, 2 * (q - s->qp) + 1, &c);
        q->model->judge_recv(s, q, &c);
    }
    sim_arm(s, &q->q.scq);
    sim_arm(s, &q->q.rcq);
    if (q->q.o.type == QHCA_QPT_XRC_TGT) {
        sim_xrc_poll(s, q->q.n);
    }
}
