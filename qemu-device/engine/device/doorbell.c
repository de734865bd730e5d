/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: doorbells. A page of BAR2 rings only what was created for it:
 * the objects check that, this file finds them.
 */
#include "device.h"

/* struct doorbell - a doorbell; @ring returns false if it is refused */
struct doorbell {
    const char *name;
    bool (*ring)(struct qhca_engine *e, unsigned page, uint32_t obj,
                 uint64_t val);
    bool page0_only;
};

static uint32_t index_of(uint64_t val)
{
    return (uint32_t)QHCA_GET(QHCA_DB_INDEX, val);
}

static bool ring_sq(struct qhca_engine *e, unsigned page, uint32_t obj,
                    uint64_t val)
{
    return vhca_qp_doorbell_sq(e, page, obj, index_of(val));
}

static bool ring_rq(struct qhca_engine *e, unsigned page, uint32_t obj,
                    uint64_t val)
{
    return vhca_qp_doorbell_rq(e, page, obj, index_of(val));
}

static bool ring_srq(struct qhca_engine *e, unsigned page, uint32_t obj,
                     uint64_t val)
{
    return vhca_srq_doorbell(e, page, obj, index_of(val));
}

static bool ring_cq_arm(struct qhca_engine *e, unsigned page, uint32_t obj,
                        uint64_t val)
{
    return vhca_cq_doorbell_arm(e, page, obj, val & QHCA_DB_SOLICITED,
                                index_of(val));
}

static bool ring_eq(struct qhca_engine *e, unsigned page, uint32_t obj,
                    uint64_t val)
{
    (void)page;
    return vhca_eq_doorbell(e, obj, index_of(val));
}

static bool ring_cmd(struct qhca_engine *e, unsigned page, uint32_t obj,
                     uint64_t val)
{
    (void)page;
    if (obj != 0) {
        return false;
    }
    vhca_cmdq_doorbell(e, index_of(val));
    return true;
}

static bool ring_eth(struct qhca_engine *e, unsigned page, uint32_t obj,
                     uint64_t val)
{
    (void)page;
    return vhca_eth_doorbell(e, obj, index_of(val));
}

static const struct doorbell doorbells[] = {
    [QHCA_DB_SQ / 8] = { "SQ", ring_sq, false },
    [QHCA_DB_RQ / 8] = { "RQ", ring_rq, false },
    [QHCA_DB_SRQ / 8] = { "SRQ", ring_srq, false },
    [QHCA_DB_CQ_ARM / 8] = { "CQ_ARM", ring_cq_arm, false },
    [QHCA_DB_EQ / 8] = { "EQ", ring_eq, true },
    [QHCA_DB_CMD / 8] = { "CMD", ring_cmd, true },
    [QHCA_DB_ETH / 8] = { "ETH", ring_eth, true },
};

static const struct doorbell *find_doorbell(const struct qhca_engine *e,
                                            unsigned page, unsigned off)
{
    const struct doorbell *db;

    if (off % 8 || off / 8 >= ARRAY_SIZE(doorbells) ||
        page >= e->cfg.num_uars) {
        return NULL;
    }
    db = &doorbells[off / 8];
    return db->ring && (page == 0 || !db->page0_only) ? db : NULL;
}

void vhca_doorbell(struct qhca_engine *e, unsigned page, unsigned off,
                   uint64_t val)
{
    const struct doorbell *db = find_doorbell(e, page, off);

    if (e->state == QHCA_STATE_FATAL) {
        return;         /* users need not know yet that the device stopped */
    }
    vhca_trace_doorbell(e, page, off, val);
    if (e->state == QHCA_STATE_RUNNING && db &&
        db->ring(e, page, (uint32_t)(val & QHCA_DB_OBJ), val)) {
        return;
    }
    vhca_count(e, QHCA_CNT_BAD_DOORBELL);
    vhca_guest_error(e, "doorbell %s, page %u, offset 0x%x, value 0x%llx",
                     db ? db->name : "?", page, off, (unsigned long long)val);
}
