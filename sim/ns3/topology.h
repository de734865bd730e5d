/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca cluster: hosts and switches, and the cables between them. Trees, in which
 * a switch finds its way by arithmetic, so that ten thousand hosts need no tables.
 */
#ifndef QHCA_SIM_TOPOLOGY_H
#define QHCA_SIM_TOPOLOGY_H

#include <memory>
#include <string>
#include <vector>

#include "switch.h"

namespace qhca
{

/*
 * struct TopologyConfig - which tree
 * @name: star, leaf-spine or fat-tree
 * @radix: leaf-spine: hosts at a leaf; fat-tree: ports of a switch, 0: as few as
 *         will do
 * @uplinks: leaf-spine: spines
 * @mbit, @delay: of the cables; ns
 * @grey, @grey_mbit: a host whose cable has another speed; 0: none
 */
struct TopologyConfig
{
    std::string name = "leaf-spine";
    uint32_t hosts = 16, radix = 0, uplinks = 0;
    uint32_t mbit = 100000;
    uint64_t delay = 1000;
    uint32_t grey = 0, grey_mbit = 0;
};

/* The nodes exist on all ranks; each works on one of them. */
class Topology
{
public:
    /* Throws std::runtime_error if there is no such tree. */
    Topology(const TopologyConfig &cfg, const SwitchConfig &switches,
             Report &report);
    /* The end of a host's cable, which has no owner yet. */
    ns3::Ptr<Port> HostPort(uint32_t host) const { return m_host[host]; }
    uint32_t Hosts() const { return m_cfg.hosts; }
    bool IsMine(uint32_t host) const;
    std::size_t Switches() const { return m_ports.size(); }
    std::size_t Ports(std::size_t hub) const { return m_ports[hub].size(); }
    ns3::Ptr<Port> SwitchPort(std::size_t hub, std::size_t number) const
    {
        return m_ports[hub][number];
    }

private:
    void Star();
    void LeafSpine();
    void FatTree();
    void AddHosts(uint32_t per_rack, uint32_t racks);
    uint32_t AddSwitch(const Route &route, uint32_t rank);
    ns3::Ptr<Port> AddPort(ns3::Ptr<ns3::Node> node, PortOwner *owner,
                           uint32_t number);
    void Connect(ns3::Ptr<Port> a, ns3::Ptr<Port> b);
    void ConnectHost(uint32_t host, uint32_t hub, uint32_t number);

    const TopologyConfig m_cfg;
    const SwitchConfig m_switches;
    Report &m_report;
    std::vector<ns3::Ptr<Port>> m_host;
    std::vector<std::vector<ns3::Ptr<Port>>> m_ports;   /* by switch */
    std::vector<std::unique_ptr<Switch>> m_switch;
};

} // namespace qhca

#endif /* QHCA_SIM_TOPOLOGY_H */
