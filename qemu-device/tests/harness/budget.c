/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "budget.h"

uint64_t dma_calls(void)
{
    return g->reads + g->writes;
}

void check_call(uint64_t before)
{
    CHECK(dma_calls() - before <= CALL + STEP);
    CHECK(g->e->spent <= CALL + STEP);
}

unsigned settle(void)
{
    unsigned calls = 0;
    uint64_t before;

    for (; g->host.todo; calls++) {
        REQUIRE(calls < 100000);
        g->host.todo = 0;
        before = dma_calls();
        qhca_engine_run(g->e, *g->clock);
        check_call(before);
    }
    return calls;
}

void let_pass(uint64_t ns, unsigned calls)
{
    uint64_t end = *g->clock + ns;

    while (*g->clock < end) {
        if (g->host.todo) {
            g->host.todo = 0;
            qhca_engine_run(g->e, *g->clock);
        } else if (g->host.deadline <= end) {
            REQUIRE(calls-- > 0);
            *g->clock = MAX_OF(g->host.deadline, *g->clock);
            qhca_host_tick(&g->host, *g->clock);
        } else {
            *g->clock = end;
        }
    }
}

void limit_cpu(struct guest *guest, unsigned share)
{
    guest->limited = true;
    guest->e->cfg.cpu_share = share;
    vhca_run_init(guest->e);
}

void start_limited(unsigned cpu_share, unsigned bandwidth,
                   const struct rc_opts *o)
{
    harness_cleanup();
    g = guest_new_limited(1, cpu_share, bandwidth);
    guest_enable(g, 5);
    node = node_on(g, 1);
    qp = rc_create(&node, o);
    peer = rc_create(&node, o);
    rc_connect(&qp, &peer);
    guest_advance(g, 1000000000);
}

void push_cqe(const struct gcq *cq, uint64_t wr_id)
{
    struct qhca_cqe cqe = { .wr_id = htole64(wr_id) };

    vhca_cq_push(g->e, vhca_cq_get(g->e, cq->cqn), &cqe, false);
}

const uint8_t full_group[16] = { [10] = 255, 255, 239, 1, 2, 3 };

struct rc_qp *start_group(unsigned recvs)
{
    static struct rc_qp member[VHCA_MAX_MCAST_QP];
    struct rc_opts o = opts_of(QHCA_QPT_UD);
    struct qhca_seg_le seg[QHCA_MAX_RECV_SGE];

    o.sges = QHCA_MAX_RECV_SGE;
    o.rq_log = 7;
    start_node();
    for (unsigned j = 0; j < ARRAY_SIZE(seg); j++) {
        seg[j] = (struct qhca_seg_le) {
            node.mr.addr + j * 8192, j < 31 ? 128 : 8192, node.mr.key,
        };
    }
    for (unsigned i = 0; i < ARRAY_SIZE(member); i++) {
        member[i] = rc_scripted(&node, &o, &far);
        CHECK_EQ(rc_mcast(&member[i], QHCA_CMD_ATTACH_MCAST, full_group),
                 QHCA_OK);
        for (unsigned n = 0; n < recvs; n++) {
            rc_recv_raw(&member[i], i, ARRAY_SIZE(seg), seg);
        }
    }
    qp = member[0];
    return &member[ARRAY_SIZE(member) - 1];
}

static struct qhca_buf huge_buf(uint32_t blocks)
{
    uint64_t leaf = guest_alloc(g, 4096, 4096), data;
    uint64_t mid = guest_alloc(g, 4096, 4096);
    uint64_t root = guest_alloc(g, 4096, 4096);
    uint64_t *l = guest_ptr(g, leaf, 4096), *m = guest_ptr(g, mid, 4096);
    uint64_t *r = guest_ptr(g, root, 4096);

    data = guest_alloc(g, 4096, 4096);
    for (unsigned i = 0; i < 512; i++) {
        l[i] = htole64(data);
        m[i] = htole64(leaf);
        r[i] = htole64(mid);
    }
    return (struct qhca_buf) {
        .addr = htole64(root), .num_blocks = htole32(blocks), .depth = 3,
        .block_shift = 12,
    };
}

struct qhca_cmd huge_region(uint32_t blocks)
{
    return (struct qhca_cmd) {
        .opcode = htole16(QHCA_CMD_REG_MR),
        .reg_mr.buf = huge_buf(blocks),
        .reg_mr.length = htole64((uint64_t)blocks << 12),
        .reg_mr.pdn = htole32(node.pdn),
    };
}
