/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: counts in an engine that must add up after any input.
 */
#include "harness/debug.h"
#include "fuzz.h"

static uint64_t check_qp(const struct vhca_qp *qp)
{
    REQUIRE(qp->sq.pi - qp->sq.ci <= vhca_wq_size(&qp->sq));
    REQUIRE(qp->rq.pi - qp->rq.ci <= vhca_wq_size(&qp->rq));
    REQUIRE(qp->sq.next - qp->sq.ci <= qp->sq.pi - qp->sq.ci);
    return (qp->sq.mem.block ? qp->sq.mem.num_blocks : 0) +
           (qp->rq.mem.block ? qp->rq.mem.num_blocks : 0);
}

/* Adds up @check of all objects; their number must be the table's count. */
#define FOR_ALL(table, type, check, sum) \
    do { \
        uint32_t left = (table)->used; \
        type *obj; \
        \
        vhca_table_each(table, obj) { \
            sum += check(obj); \
            left--; \
        } \
        REQUIRE(left == 0); \
    } while (0)

static uint64_t check_cq(const struct vhca_cq *cq)
{
    REQUIRE(cq->pi - cq->ci <= 1u << cq->log_size);
    return cq->mem.block ? cq->mem.num_blocks : 0;
}

static uint64_t check_srq(const struct vhca_srq *srq)
{
    REQUIRE((uint64_t)(srq->wq.pi - srq->wq.ci) + srq->held <=
            vhca_wq_size(&srq->wq));
    return srq->wq.mem.block ? srq->wq.mem.num_blocks : 0;
}

static uint64_t check_mr(const struct vhca_mr *mr)
{
    if (!mr->window && mr->type == QHCA_MR_ODP) {
        REQUIRE(!mr->pages.root == !mr->pages.nodes);
        return (uint64_t)mr->pages.nodes * QHCA_NODE_BLOCKS;
    }
    return mr->mem.block ? mr->mem.num_blocks : 0;
}

static unsigned length(const struct vhca_list *l)
{
    unsigned n = 0;

    for (const struct vhca_list *i = l->next; i != l; i = i->next) {
        n++;
    }
    return n;
}

/* Every bound window is counted at its region and, if of type 2, at its QP. */
static void check_windows(struct qhca_engine *e)
{
    uint64_t bound = 0, on_qps = 0, at_regions = 0, at_qps = 0;
    const struct vhca_mr *mr;
    const struct vhca_qp *qp;

    vhca_table_each(&e->memory->mr, mr) {
        if (mr->window && mr->valid) {
            REQUIRE(vhca_mr_get(e, mr->region->key) == mr->region);
            bound++;
            on_qps += mr->window != QHCA_MW_1;
        }
        at_regions += mr->windows;
    }
    vhca_table_each(&e->qps->table, qp) {
        at_qps += length(&qp->user.windows);
    }
    REQUIRE(bound == at_regions && on_qps == at_qps);
}

/*
 * A domain counts the objects in it, and an SRQ the WRs that QPs have taken
 * from it.
 */
static void check_domains(struct qhca_engine *e)
{
    uint64_t users = 0, in_one = 0, held = 0, taken = 0;
    const struct vhca_holder *xrcd;
    const struct vhca_srq *srq;
    const struct vhca_qp *qp;

    vhca_table_each(&e->rqs->xrcd, xrcd) {
        users += xrcd->users;
    }
    vhca_table_each(&e->rqs->srq, srq) {
        in_one += srq->xrcd != NULL;
        held += srq->held;
        REQUIRE(!srq->xrcd == !srq->cq);
    }
    vhca_table_each(&e->qps->table, qp) {
        in_one += qp->xrcd != NULL;
        taken += qp->srq && qp->rsp.rwr.taken;
        REQUIRE(!qp->srq || vhca_srq_get(e, qp->srq->srqn) == qp->srq);
    }
    REQUIRE(users == in_one);
    REQUIRE(held == taken);
}

/* A QP counts what names it, and so does a spread. */
static void check_flows(struct qhca_engine *e)
{
    uint64_t at_qps = 0, at_spreads = 0, on_qps = 0, on_spreads = 0;
    const struct vhca_spread *spread;
    const struct vhca_flow *flow;
    const struct vhca_qp *qp;

    vhca_table_each(&e->qps->table, qp) {
        at_qps += qp->groups;
    }
    for (uint32_t i = 0; i < e->port->num_groups; i++) {
        on_qps += e->port->group[i]->num_qps;
    }
    vhca_table_each(&e->raw->spread, spread) {
        at_spreads += spread->users;
        on_qps += UINT64_C(1) << spread->log_size;
    }
    vhca_table_each(&e->raw->flow, flow) {
        on_qps += flow->qp != NULL;
        on_spreads += flow->spread != NULL;
    }
    REQUIRE(at_qps == on_qps && at_spreads == on_spreads);
}

static uint64_t blocks_of(bool used, const struct vhca_mem *mem)
{
    return used && mem->block ? mem->num_blocks : 0;
}

void fuzz_check_books(const struct guest *g)
{
    struct qhca_engine *e = g->e;
    uint64_t blocks = 0;

    REQUIRE(!e->inside);
    REQUIRE(g->dma_after_stop == 0);
    REQUIRE(e->timers.used <= e->timers.size);
    FOR_ALL(&e->events->cq, struct vhca_cq, check_cq, blocks);
    FOR_ALL(&e->memory->mr, struct vhca_mr, check_mr, blocks);
    FOR_ALL(&e->rqs->srq, struct vhca_srq, check_srq, blocks);
    FOR_ALL(&e->qps->table, struct vhca_qp, check_qp, blocks);
    for (unsigned i = 0; i < VHCA_MAX_EQ; i++) {
        blocks += blocks_of(e->events->eq[i].used, &e->events->eq[i].mem);
    }
    for (unsigned i = 0; i < VHCA_MAX_ETHQ; i++) {
        blocks += blocks_of(e->eth->queue[i].used, &e->eth->queue[i].mem);
    }
    for (unsigned i = 0; e->shadows->page && i < e->cfg.num_uars; i++) {
        const struct vhca_shadow *s = e->shadows->page[i];

        blocks += s ? blocks_of(true, &s->mem) : 0;
    }
    check_windows(e);
    check_domains(e);
    check_flows(e);
    REQUIRE(blocks == e->table_blocks);
}
