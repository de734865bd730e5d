/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "topology.h"

#include <algorithm>
#include <stdexcept>

#include "ns3/mpi-interface.h"

using namespace ns3;

namespace qhca
{

static uint32_t Ranks()
{
    return MpiInterface::IsEnabled() ? MpiInterface::GetSize() : 1;
}

static uint32_t Rank()
{
    return MpiInterface::IsEnabled() ? MpiInterface::GetSystemId() : 0;
}

/* Return the rank of item @i of @n, of which neighbours stay together. */
static uint32_t Share(uint32_t i, uint32_t n)
{
    return static_cast<uint32_t>(static_cast<uint64_t>(i) * Ranks() / n);
}

/* Ports are told apart by the femtosecond, see port.h. */
static const uint64_t MAX_SWITCH = 400000, MAX_PORTS = 1 << 24;

/* @ports: of all switches together; @largest: of one of them. */
static void Limit(uint64_t ports, uint64_t largest)
{
    if (ports > MAX_PORTS || largest > MAX_SWITCH) {
        throw std::runtime_error("too many ports");
    }
}

Topology::Topology(const TopologyConfig &cfg, const SwitchConfig &switches,
                   Report &report)
    : m_cfg(cfg), m_switches(switches), m_report(report)
{
    if (cfg.name == "star") {
        Star();
    } else if (cfg.name == "leaf-spine") {
        LeafSpine();
    } else if (cfg.name == "fat-tree") {
        FatTree();
    } else {
        throw std::runtime_error("topologies: star, leaf-spine, fat-tree");
    }
}

bool Topology::IsMine(uint32_t host) const
{
    return m_host[host]->GetNode()->GetSystemId() == Rank();
}

Ptr<Port> Topology::AddPort(Ptr<Node> node, PortOwner *owner, uint32_t number)
{
    Ptr<Port> port = CreateObject<Port>(owner, number, m_cfg.mbit);

    node->AddDevice(port);
    return port;
}

/* Hosts of a rack are on one rank. */
void Topology::AddHosts(uint32_t per_rack, uint32_t racks)
{
    for (uint32_t i = 0; i < m_cfg.hosts; i++) {
        Ptr<Node> node = CreateObject<Node>(Share(i / per_rack, racks));

        m_host.push_back(AddPort(node, nullptr, 0));
    }
}

uint32_t Topology::AddSwitch(const Route &route, uint32_t rank)
{
    Ptr<Node> node = CreateObject<Node>(rank);
    Switch *owner = nullptr;

    if (rank == Rank()) {
        m_switch.push_back(std::make_unique<Switch>(
            m_ports.size(), m_switches, route, m_report));
        owner = m_switch.back().get();
    }
    m_ports.emplace_back();
    for (uint32_t i = 0; i < route.Ports(); i++) {
        m_ports.back().push_back(AddPort(node, owner, i));
        if (owner) {
            owner->Add(m_ports.back().back());
        }
    }
    return static_cast<uint32_t>(m_ports.size() - 1);
}

void Topology::Connect(Ptr<Port> a, Ptr<Port> b)
{
    Ptr<Cable> cable = CreateObject<Cable>();

    cable->SetDelay(m_cfg.delay);
    a->Connect(cable);
    b->Connect(cable);
}

void Topology::ConnectHost(uint32_t host, uint32_t hub, uint32_t number)
{
    Connect(m_host[host], m_ports[hub][number]);
    if (m_cfg.grey_mbit && host == m_cfg.grey) {
        m_host[host]->SetSpeed(m_cfg.grey_mbit);
        m_ports[hub][number]->SetSpeed(m_cfg.grey_mbit);
    }
}

void Topology::Star()
{
    uint32_t n = m_cfg.hosts, hub;

    Limit(n, n);
    AddHosts(1, n);
    hub = AddSwitch({ 0, n, 1, 0 }, 0);
    for (uint32_t i = 0; i < n; i++) {
        ConnectHost(i, hub, i);
    }
}

void Topology::LeafSpine()
{
    uint32_t n = m_cfg.hosts, rack = m_cfg.radix ? m_cfg.radix : 16;
    uint32_t racks = (n + rack - 1) / rack;
    uint32_t spines = m_cfg.uplinks ? m_cfg.uplinks : rack;

    Limit(static_cast<uint64_t>(racks) * (rack + 2 * spines), racks);
    AddHosts(rack, racks);
    for (uint32_t l = 0; l < racks; l++) {
        AddSwitch({ l * rack, (l + 1) * rack, 1, spines }, Share(l, racks));
    }
    for (uint32_t s = 0; s < spines; s++) {
        uint32_t spine = AddSwitch({ 0, racks * rack, rack, 0 },
                                   Share(s, spines));

        for (uint32_t l = 0; l < racks; l++) {
            Connect(m_ports[l][rack + s], m_ports[spine][l]);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        ConnectHost(i, i / rack, i % rack);
    }
}

/*
 * k ports at each switch: pods of k/2 edge and k/2 aggregation switches, and
 * (k/2)^2 cores, each with a cable to each pod. Only pods with hosts are built.
 */
void Topology::FatTree()
{
    uint64_t n64 = m_cfg.hosts, half64 = m_cfg.radix / 2;

    for (; !m_cfg.radix && half64 * half64 * half64 * 2 < n64; half64++) {
        continue;
    }
    if (!half64 || half64 * half64 * half64 * 2 < n64 || m_cfg.radix % 2) {
        throw std::runtime_error("a fat tree of k ports, even, has k^3/4 hosts");
    }
    uint32_t n = m_cfg.hosts, half = static_cast<uint32_t>(half64);
    uint32_t pod = half * half, pods = (n + pod - 1) / pod, first;

    Limit(5ull * pod * pods + pod, 2 * half);
    AddHosts(pod, pods);
    for (uint32_t p = 0; p < pods; p++) {
        for (uint32_t i = 0; i < half; i++) {
            uint32_t host = p * pod + i * half;

            AddSwitch({ host, host + half, 1, half }, Share(p, pods));
        }
        for (uint32_t i = 0; i < half; i++) {
            AddSwitch({ p * pod, (p + 1) * pod, half, half }, Share(p, pods));
        }
        first = p * 2 * half;
        for (uint32_t i = 0; i < half * half; i++) {
            Connect(m_ports[first + i / half][half + i % half],
                    m_ports[first + half + i % half][i / half]);
        }
    }
    for (uint32_t c = 0; c < pod; c++) {
        uint32_t core = AddSwitch({ 0, pods * pod, pod, 0 }, Share(c, pod));

        for (uint32_t p = 0; p < pods; p++) {
            Connect(m_ports[p * 2 * half + half + c / half][half + c % half],
                    m_ports[core][p]);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        ConnectHost(i, i / pod * 2 * half + i % pod / half, i % half);
    }
}

} // namespace qhca
