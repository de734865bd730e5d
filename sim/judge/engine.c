/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The engine's reaction points. */
#include <stdlib.h>

#include "congestion/congestion.h"
#include "rp.h"

static struct vhca_congestion parameters = {
    .value = {
#define QHCA_CC(id, name, min, max, value) value,
#include "qhca/congestion.def"
    },
};
static struct qhca_engine engine = { .congestion = &parameters };
static struct vhca_rp *flow;

void rp_start(unsigned flows, unsigned mbit)
{
    flow = calloc(flows, sizeof(*flow));
    if (!flow) {
        abort();
    }
    parameters.value[QHCA_CC_RP_MAX_RATE] = mbit;
}

void rp_cnp(unsigned which, uint64_t now)
{
    engine.now = now;
    vhca_rp_cut(&engine, &flow[which]);
}

uint64_t rp_sent(unsigned which, uint64_t now, uint32_t bytes)
{
    engine.now = now;
    vhca_rp_catch_up(&engine, &flow[which]);
    vhca_rp_sent(&engine, &flow[which], bytes);
    return flow[which].rate;
}
