/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca cluster: the hosts of this rank, and a workload on them. */
#ifndef QHCA_SIM_CLUSTER_H
#define QHCA_SIM_CLUSTER_H

#include <memory>
#include <vector>

#include "hca.h"
#include "topology.h"
#include "workload.h"

namespace qhca
{

class Cluster : public Program
{
public:
    Cluster(const adapter_config &cfg, const Topology &topology,
            const std::vector<Flow> &flows, Report &report);
    /* Connect all flows, and let them begin. */
    void Start();
    void Completed(uint32_t host, const adapter_done &done) override;
    /* After the run: count what hosts have counted; check what has come in. */
    void Finish();

private:
    struct State
    {
        unsigned tx = 0, rx = 0;        /* indices at the hosts */
        uint32_t posted = 0, acked = 0, received = 0;
        std::vector<uint32_t> wake;     /* flows that wait for this one */
    };

    void Open();
    void Post(uint32_t flow);

    const adapter_config m_cfg;
    const Topology &m_topology;
    const std::vector<Flow> &m_flow;
    Report &m_report;
    std::vector<State> m_state;
    std::vector<std::unique_ptr<Hca>> m_hca;        /* empty: not of this rank */
    std::vector<std::vector<uint32_t>> m_at;        /* flows of a host's ends */
    std::vector<adapter_end> m_end;                 /* two for each flow */
};

} // namespace qhca

#endif /* QHCA_SIM_CLUSTER_H */
