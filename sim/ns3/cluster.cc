/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cluster.h"

#include <mpi.h>

#include "ns3/mpi-interface.h"
#include "ns3/simulator.h"

using namespace ns3;

namespace qhca
{

Cluster::Cluster(const adapter_config &cfg, const Topology &topology,
                 const std::vector<Flow> &flows, Report &report)
    : m_cfg(cfg), m_topology(topology), m_flow(flows), m_report(report),
      m_state(flows.size()), m_hca(topology.Hosts()), m_at(topology.Hosts()),
      m_end(2 * flows.size())
{
    for (uint32_t f = 0; f < flows.size(); f++) {
        m_at[flows[f].src].push_back(f);
        m_at[flows[f].dst].push_back(f);
        for (uint32_t other : flows[f].after) {
            if (other != Flow::NONE) {
                m_state[other].wake.push_back(f);
            }
        }
    }
    for (uint32_t h = 0; h < topology.Hosts(); h++) {
        if (topology.IsMine(h)) {
            m_hca[h] = std::make_unique<Hca>(
                m_cfg, h, static_cast<unsigned>(m_at[h].size()),
                topology.HostPort(h), *this, report);
        }
    }
}

/* Create the QPs; ends of other ranks stay empty. */
void Cluster::Open()
{
    for (uint32_t h = 0; h < m_hca.size(); h++) {
        for (uint32_t f : m_at[h]) {
            bool sends = m_flow[f].src == h;
            unsigned at;

            if (!m_hca[h]) {
                break;
            }
            at = adapter_open(m_hca[h]->Adapter(), &m_end[2 * f + !sends]);
            (sends ? m_state[f].tx : m_state[f].rx) = at;
        }
    }
}

/* Let the ranks tell each other about their ends: bits that one has set. */
static void Exchange(std::vector<adapter_end> &ends)
{
    if (MpiInterface::IsEnabled()) {
        MPI_Allreduce(MPI_IN_PLACE, ends.data(),
                      static_cast<int>(ends.size() * sizeof(ends[0])),
                      MPI_BYTE, MPI_BOR, MpiInterface::GetCommunicator());
    }
}

void Cluster::Start()
{
    Open();
    Exchange(m_end);
    for (uint32_t f = 0; f < m_flow.size(); f++) {
        const Flow &flow = m_flow[f];

        if (m_hca[flow.src]) {
            adapter_connect(m_hca[flow.src]->Adapter(), m_state[f].tx, flow.dst,
                            &m_end[2 * f + 1], true);
            Simulator::ScheduleWithContext(
                m_topology.HostPort(flow.src)->GetNode()->GetId(),
                NanoSeconds(flow.start), &Cluster::Post, this, f);
        }
        if (m_hca[flow.dst]) {
            adapter_connect(m_hca[flow.dst]->Adapter(), m_state[f].rx, flow.src,
                            &m_end[2 * f], false);
        }
    }
}

/* Post what may be posted. */
void Cluster::Post(uint32_t f)
{
    const Flow &flow = m_flow[f];
    State &state = m_state[f];
    uint32_t end = flow.Messages();

    for (uint32_t other : flow.after) {
        if (other != Flow::NONE) {
            end = std::min(end, m_state[other].received + flow.lag);
        }
    }
    while (state.posted < end && state.posted - state.acked < m_cfg.window) {
        m_report.Posted(f);
        m_hca[flow.src]->Write(state.tx, flow.Length(state.posted++));
    }
}

void Cluster::Completed(uint32_t host, const adapter_done &done)
{
    uint32_t f = m_at[host][done.flow];
    State &state = m_state[f];

    if (done.status) {
        m_report.Count(Report::ERRORS);
    } else if (done.received) {
        m_report.Received(f, m_flow[f].Length(state.received++));
        for (uint32_t next : state.wake) {
            Post(next);
        }
    } else {
        state.acked++;
        Post(f);
    }
}

void Cluster::Finish()
{
    static const char *const counters[] = {
        "tx_pkts", "retransmit", "timeout", "tx_nak_seq", "tx_rnr_nak",
        "np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled",
    };

    for (const auto &hca : m_hca) {
        for (const char *name : counters) {
            m_report.Host(name, hca ? adapter_counter(hca->Adapter(), name) : 0);
        }
        if (hca) {
            m_report.Digest(hca->Digest());
        }
    }
    for (uint32_t f = 0; f < m_flow.size(); f++) {
        const auto &hca = m_hca[m_flow[f].dst];

        if (hca && m_state[f].received &&
            !adapter_intact(hca->Adapter(), m_flow[f].Length(0))) {
            m_report.Count(Report::ERRORS);
        }
    }
    for (unsigned i = adapter_failures(); i > 0; i--) {
        m_report.Count(Report::ERRORS);
    }
}

} // namespace qhca
