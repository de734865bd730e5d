/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca cluster: what the hosts send each other. A workload is a list of flows,
 * each from one host to another, in messages that wait for others where a
 * collective does.
 */
#ifndef QHCA_SIM_WORKLOAD_H
#define QHCA_SIM_WORKLOAD_H

#include <cstdint>
#include <string>
#include <vector>

namespace qhca
{

/* Of all flows of a run together. */
static const uint64_t MAX_BYTES = 1ull << 50;
/* Ends of flows at a host: an adapter of the tests has 1,024 QPs. */
static const uint32_t MAX_FLOWS = 1000;

/*
 * struct Flow - messages from one host to another
 * @bytes: of all messages, which have @message bytes but for the last
 * @start: when the first may leave, ns
 * @after: flows to @src, or NONE: message k waits for their message k - @lag
 */
struct Flow
{
    static const uint32_t NONE = UINT32_MAX;

    uint32_t src = 0, dst = 0;
    uint64_t bytes = 0;
    uint32_t message = 0;
    uint64_t start = 0;
    uint32_t after[2] = { NONE, NONE };
    uint32_t lag = 0;

    uint32_t Messages() const;
    uint32_t Length(uint32_t k) const;
};

/*
 * MakeWorkload - the flows of a workload
 * @name: one of WorkloadNames(), or the path of a trace, see README
 * @bytes: of each flow of incast and permutation; else of each host's data
 * @message: bytes of a message; collectives cut theirs by the hosts' number
 *
 * Throws std::runtime_error if there is no such workload for @hosts.
 */
std::vector<Flow> MakeWorkload(const std::string &name, uint32_t hosts,
                               uint64_t bytes, uint32_t message, uint64_t seed);
std::string WorkloadNames();

} // namespace qhca

#endif /* QHCA_SIM_WORKLOAD_H */
