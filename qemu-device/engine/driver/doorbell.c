/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: doorbells. A page of BAR2 rings only what was created for it:
 * the objects check that, this file finds them.
 */
#include "driver.h"

/*
 * struct doorbell - a doorbell
 * @ring: returns false if it is refused
 * @page0_only: other pages do not have it
 * @in_memory: can be rung by struct qhca_shadow: comes late, and the last one
 *             stands for those before it
 */
struct doorbell {
    const char *name;
    bool (*ring)(struct qhca_engine *e, const struct vhca_db *db);
    bool page0_only, in_memory;
};

static const struct doorbell doorbells[] = {
    [QHCA_DB_SQ / 8] = { "SQ", vhca_qp_doorbell_sq, false, true },
    [QHCA_DB_RQ / 8] = { "RQ", vhca_qp_doorbell_rq, false, true },
    [QHCA_DB_SRQ / 8] = { "SRQ", vhca_srq_doorbell, false, true },
    [QHCA_DB_CQ_ARM / 8] = { "CQ_ARM", vhca_cq_doorbell_arm, false, false },
    [QHCA_DB_SHADOW / 8] = { "SHADOW", vhca_shadow_doorbell, false, false },
    [QHCA_DB_EQ / 8] = { "EQ", vhca_eq_doorbell, true, true },
    [QHCA_DB_CMD / 8] = { "CMD", vhca_cmdq_doorbell, true, false },
    [QHCA_DB_ETH / 8] = { "ETH", vhca_eth_doorbell, true, true },
};

static const struct doorbell *find_doorbell(const struct qhca_engine *e,
                                            unsigned page, unsigned off)
{
    const struct doorbell *bell;

    if (off % 8 || off / 8 >= ARRAY_SIZE(doorbells) ||
        page >= e->cfg.num_uars) {
        return NULL;
    }
    bell = &doorbells[off / 8];
    return bell->ring && (page == 0 || !bell->page0_only) ? bell : NULL;
}

static void ring(struct qhca_engine *e, const struct doorbell *bell,
                 unsigned page, unsigned off, uint64_t val)
{
    const struct vhca_db db = {
        .page = page, .obj = (uint32_t)(val & QHCA_DB_OBJ),
        .index = (uint32_t)QHCA_GET(QHCA_DB_INDEX, val),
        .solicited = val & QHCA_DB_SOLICITED,
    };

    if (e->state == QHCA_STATE_FATAL) {
        return;         /* users need not know yet that the device stopped */
    }
    vhca_trace_doorbell(e, page, off, val);
    if (e->state == QHCA_STATE_RUNNING && bell && bell->ring(e, &db)) {
        return;
    }
    vhca_count(e, QHCA_CNT_BAD_DOORBELL);
    vhca_guest_error(e, "doorbell %s, page %u, offset 0x%x, value 0x%llx",
                     bell ? bell->name : "?", page, off,
                     (unsigned long long)val);
}

void vhca_doorbell(struct qhca_engine *e, unsigned page, unsigned off,
                   uint64_t val)
{
    ring(e, find_doorbell(e, page, off), page, off, val);
}

void vhca_doorbells_in_memory(struct qhca_engine *e)
{
    uint64_t val[64];
    uint32_t page;
    unsigned n;

    while (vhca_may_go_on(e) && vhca_shadow_busy(e)) {
        e->cmdq->steps += vhca_shadow_owes(e);
        n = vhca_shadow_take(e, &page, val);
        for (unsigned i = 0; i < n && vhca_running(e); i++) {
            unsigned off = 8 * (unsigned)QHCA_GET(QHCA_DB_KIND, val[i]);
            const struct doorbell *bell = find_doorbell(e, page, off);

            ring(e, bell && bell->in_memory ? bell : NULL, page, off, val[i]);
        }
    }
}
