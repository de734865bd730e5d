/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "budget.h"

uint64_t dma_calls(void)
{
    return g->reads + g->writes;
}

unsigned settle(void)
{
    unsigned calls = 0;
    uint64_t before;

    for (; g->scheduled; calls++) {
        REQUIRE(calls < 100000);
        g->scheduled = false;
        before = dma_calls();
        qhca_engine_run(g->e, *g->clock);
        CHECK(dma_calls() - before <= CALL + STEP);
    }
    return calls;
}

void push_cqe(const struct gcq *cq, uint64_t wr_id)
{
    struct qhca_cqe cqe = { .wr_id = htole64(wr_id) };

    qhca_cq_push(g->e, qhca_cq_get(g->e, cq->cqn), &cqe, false);
}
