/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca front ends: the properties that the operator sets. */
#include <string.h>

#include "link.h"
#include "props.h"

#define QHCA_MAX_VECTORS 64     /* the engine has as many event queues */
#define QHCA_MAX_UARS 32768
#define QHCA_MAX_CMD_TIMEOUT_MS (10 * 60 * 1000)
#define QHCA_MAX_DM (1u << 30)
#define QHCA_MAX_BANDWIDTH 100000   /* the port's speed */
#define TIMER_SLACK_NS 200000  /* a busy host is often later than that */

_Static_assert(QHCA_LINK_MBIT >= QHCA_MAX_BANDWIDTH, "link below port");

static bool is_power_of_two(uint64_t value)
{
    return value && !(value & (value - 1));
}

static bool is_between(uint64_t value, uint64_t low, uint64_t high)
{
    return value >= low && value <= high;
}

const char *qhca_props_bandwidth_wrong(uint64_t mbit)
{
    return mbit <= QHCA_MAX_BANDWIDTH ? NULL :
           "'bandwidth' must be between 1 and 100000, or 0 for no limit";
}

const char *qhca_props_wrong(const struct qhca_props *p, const uint8_t mac[6])
{
    const struct {
        bool ok;
        const char *what;
    } rules[] = {
        { is_between(p->vectors, 2, QHCA_MAX_VECTORS),
          "'vectors' must be between 2 and 64" },
        { is_between(p->uars, 2, QHCA_MAX_UARS) && is_power_of_two(p->uars),
          "'uars' must be a power of two between 2 and 32768" },
        { is_between(p->db_stride, QHCA_PAGE_SIZE,
                     1u << QHCA_DB_LOG_STRIDE_MAX) &&
          is_power_of_two(p->db_stride),
          "'db-stride' must be a power of two between 4K and 64K" },
        { p->max_qp >= 2, "'max-qp' must be at least 2" },
        { is_between(p->eth_queues, 1, VHCA_MAX_ETH_PAIRS) &&
          is_power_of_two(p->eth_queues),
          "'eth-queues' must be a power of two between 1 and 8" },
        { is_between(p->cmd_timeout_ms, 1, QHCA_MAX_CMD_TIMEOUT_MS),
          "'cmd-timeout-ms' must be between 1 and 600000" },
        { !p->dm_size || (is_between(p->dm_size, QHCA_PAGE_SIZE, QHCA_MAX_DM) &&
                          is_power_of_two(p->dm_size)),
          "'dm-size' must be 0 or a power of two between 4K and 1G" },
        { is_between(p->cpu_share, 1, 100),
          "'cpu-share' must be between 1 and 100" },
        { !(mac[0] & 1), "'mac' must be a unicast address" },
    };

    for (unsigned i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (!rules[i].ok) {
            return rules[i].what;
        }
    }
    return qhca_props_bandwidth_wrong(p->bandwidth);
}

struct qhca_engine_config qhca_props_config(const struct qhca_props *p,
                                            const uint8_t mac[6])
{
    struct qhca_engine_config cfg = {
        .num_vectors = p->vectors,
        .num_uars = p->uars,
        .log_db_stride = (unsigned)__builtin_ctzll(p->db_stride),
        .max_qp = p->max_qp,
        .eth_queues = p->eth_queues,
        .cmd_timeout_ms = p->cmd_timeout_ms,
        .cpu_share = p->cpu_share < 100 ? p->cpu_share : 0,
        .bandwidth = p->bandwidth,
        .timer_slack = TIMER_SLACK_NS,
        .frames = p->frames || p->loopback_capture,
        .guest_faults = p->guest_faults,
        .shadow = p->shadow_doorbells,
    };

    memcpy(cfg.mac, mac, sizeof(cfg.mac));
    return cfg;
}

uint64_t qhca_props_serial(const uint8_t mac[6])
{
    const uint8_t eui[8] = { mac[0], mac[1], mac[2], 0xff, 0xfe,
                             mac[3], mac[4], mac[5] };
    uint64_t serial = 0;

    for (unsigned i = 0; i < sizeof(eui); i++) {
        serial = serial << 8 | eui[i];
    }
    return serial;
}
