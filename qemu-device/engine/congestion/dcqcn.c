/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the reaction point of DCQCN: equations 1 to 4 of the paper, in
 * integers.
 */
#include "congestion.h"

/* The most increases that one loop makes up for: from the bottom to the top. */
#define MAX_STEPS       64u

/* Return the rate at which a QP is as fast as it would be without limit. */
static uint32_t top(const struct qhca_engine *e)
{
    uint32_t max = vhca_cc(e, QHCA_CC_RP_MAX_RATE), speed = vhca_port_speed(e);

    return VHCA_KBIT * (max ? MIN_OF(max, speed) : speed);
}

/* Return @a * @b, as fractions. */
static uint32_t times(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b / VHCA_ALPHA_ONE);
}

/* Equation 2, @n times: alpha = (1 - g) alpha. */
static uint32_t shrink(uint32_t alpha, uint32_t gain, uint64_t n)
{
    for (uint32_t keep = VHCA_ALPHA_ONE - gain; n; n >>= 1) {
        if (n & 1) {
            alpha = times(alpha, keep);
        }
        keep = times(keep, keep);
    }
    return alpha;
}

static uint32_t gain(const struct qhca_engine *e)
{
    return vhca_cc(e, QHCA_CC_RP_GAIN) * (VHCA_ALPHA_ONE / 1024);
}

/*
 * Equations 3 and 4: halve the distance to the target, and after the first
 * increases, which only undo the cut, raise the target before.
 */
static void increase(const struct qhca_engine *e, struct vhca_rp *rp)
{
    uint32_t stages = vhca_cc(e, QHCA_CC_RP_STAGES), line = top(e);
    uint32_t most = MAX_OF(rp->times, rp->laps);
    uint32_t least = MIN_OF(rp->times, rp->laps);
    uint64_t target = rp->target;

    if (least > stages) {
        target += (uint64_t)(least - stages) * VHCA_KBIT *
                  vhca_cc(e, QHCA_CC_RP_LEAP);
    } else if (most >= stages) {
        target += VHCA_KBIT * vhca_cc(e, QHCA_CC_RP_STEP);
    }
    rp->target = (uint32_t)MIN_OF(target, line);
    rp->rate = (uint32_t)(((uint64_t)rp->rate + rp->target + 1) / 2);
    if (rp->rate >= line) {
        memset(rp, 0, sizeof(*rp));     /* as fast as without a limit */
    }
}

void vhca_rp_catch_up(const struct qhca_engine *e, struct vhca_rp *rp)
{
    uint64_t each = VHCA_CC_US * vhca_cc(e, QHCA_CC_RP_ALPHA_TIME);
    uint64_t step = VHCA_CC_US * vhca_cc(e, QHCA_CC_RP_TIME);
    uint64_t n = (e->now - rp->shrunk) / each;

    if (!rp->rate) {
        return;
    }
    rp->alpha = shrink(rp->alpha, gain(e), n);
    rp->shrunk += n * each;
    for (n = 0; rp->rate && n < MAX_STEPS && e->now - rp->timed >= step; n++) {
        rp->timed += step;
        rp->times++;
        increase(e, rp);
    }
}

void vhca_rp_sent(const struct qhca_engine *e, struct vhca_rp *rp,
                  uint32_t bytes)
{
    uint32_t lap = vhca_cc(e, QHCA_CC_RP_BYTES);

    if (!rp->rate) {
        return;
    }
    rp->bytes += bytes;
    for (unsigned n = 0; rp->bytes >= lap && n < MAX_STEPS; n++) {
        rp->bytes -= lap;
        rp->laps++;
        increase(e, rp);
    }
    rp->bytes %= lap;           /* another lap was longer */
}

/* Equation 1: the rate falls by half of alpha, and alpha rises. */
static uint32_t cut(const struct qhca_engine *e, const struct vhca_rp *rp)
{
    uint32_t least = (uint32_t)((uint64_t)rp->rate *
                                vhca_cc(e, QHCA_CC_RP_MIN_FACTOR) / 100);
    uint32_t rate = rp->rate - times(rp->rate, rp->alpha / 2);

    rate = MAX_OF(rate, least);
    return MAX_OF(rate, vhca_cc(e, QHCA_CC_RP_MIN_RATE) * VHCA_KBIT);
}

bool vhca_rp_cut(const struct qhca_engine *e, struct vhca_rp *rp)
{
    vhca_rp_catch_up(e, rp);
    if (!rp->rate) {
        *rp = (struct vhca_rp) {
            .rate = top(e),
            .alpha = vhca_cc(e, QHCA_CC_RP_ALPHA) * (VHCA_ALPHA_ONE / 1024),
        };
    } else if (e->now - rp->cut <
               VHCA_CC_US * vhca_cc(e, QHCA_CC_RP_MIN_CUT)) {
        return false;
    }
    *rp = (struct vhca_rp) {
        .rate = cut(e, rp),
        .target = rp->rate,
        .alpha = shrink(rp->alpha, gain(e), 1) + gain(e),
        .timed = e->now, .shrunk = e->now, .cut = e->now,
    };
    return true;
}
