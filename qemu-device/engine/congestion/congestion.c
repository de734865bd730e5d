/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the parameters of congestion control; and rates in a saved
 * state, which are in the section of the QPs.
 */
#include "../save/save.h"
#include "congestion.h"

#define QHCA_CC(id, name, min, max, value)  { min, max, value },
static const struct {
    uint32_t min, max, value;
} params[] = {
#include "qhca/congestion.def"
};

int vhca_do_set_congestion(struct qhca_engine *e, struct vhca_cmd_ctx *ctx)
{
    struct qhca_congestion c;
    uint32_t value;

    memcpy(&c, ctx->mbox, sizeof(c));
    for (unsigned i = 0; i < QHCA_CC_MAX; i++) {
        value = le32toh(c.value[i]);
        if (value < params[i].min || value > params[i].max) {
            return QHCA_ERR_PARAM;
        }
    }
    for (unsigned i = 0; i < QHCA_CC_MAX; i++) {
        e->congestion->value[i] = le32toh(c.value[i]);
    }
    return QHCA_OK;
}

static void congestion_reset(struct qhca_engine *e)
{
    for (unsigned i = 0; i < QHCA_CC_MAX; i++) {
        e->congestion->value[i] = params[i].value;
    }
}

const struct vhca_room vhca_congestion_room = {
    .reset = congestion_reset,
};

/* ---- saved state ---- */

void vhca_congestion_walk(struct vhca_snap *s)
{
    for (unsigned i = 0; i < QHCA_CC_MAX && !s->bad; i++) {
        uint32_t *value = &s->e->congestion->value[i];

        *value = vhca_snap_u32(s, "parameter", *value, params[i].max);
        vhca_snap_check(s, s->bad || *value >= params[i].min, "parameter");
    }
}

static const struct vhca_snap_field rp_fields[] = {
    VHCA_SNAP_MAX(struct vhca_rp, VHCA_KBIT_MAX, rate, target),
    VHCA_SNAP_MAX(struct vhca_rp, VHCA_ALPHA_ONE, alpha),
    VHCA_SNAP_ANY(struct vhca_rp, times, laps, bytes),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_rp, 48);

/* No packet closes a gate for longer: 70,000 bytes take as much at 1 kbit/s. */
#define GATE_MAX_NS     (70000ull * 8 * 1000000)

static const struct vhca_snap_field gate_fields[] = {
    VHCA_SNAP_ANY(struct vhca_gate, rest),
    VHCA_SNAP_FLAG(struct vhca_gate, cnp_owed),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_gate, 104);

/* Walk over a time that is at most @most away. */
static uint64_t walk_near(struct vhca_snap *s, const char *field, uint64_t t,
                          uint64_t most)
{
    t = vhca_snap_time(s, field, t);
    vhca_snap_check(s, t <= s->e->now + most, field);
    return t;
}

void vhca_gate_walk(struct vhca_snap *s, struct vhca_gate *g)
{
    struct vhca_rp *rp = &g->rp;

    vhca_snap_fields(s, gate_fields, g);
    g->next = walk_near(s, "gate.next", g->next, GATE_MAX_NS);
    g->quiet = walk_near(s, "gate.quiet", g->quiet,
                         VHCA_CC_US * params[QHCA_CC_NP_MIN_TIME].max);
    vhca_snap_fields(s, rp_fields, rp);
    if (rp->rate && !s->bad) {
        rp->timed = walk_near(s, "timed", rp->timed, 0);
        rp->shrunk = walk_near(s, "shrunk", rp->shrunk, 0);
        rp->cut = walk_near(s, "cut", rp->cut, 0);
    }
    vhca_snap_check(s, rp->rate || vhca_is_zero((const uint8_t *)rp,
                                                sizeof(*rp)), "rate");
}
