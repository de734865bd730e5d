/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca cluster: a switch with shared memory, which marks by the length of the
 * queue (RED), and pauses by what has come in at a port (PFC).
 */
#ifndef QHCA_SIM_SWITCH_H
#define QHCA_SIM_SWITCH_H

#include <vector>

#include "frame.h"
#include "port.h"
#include "report.h"

namespace qhca
{

/*
 * struct SwitchConfig - what all switches of a cluster have
 * @kmin, @kmax: bytes in a queue from which on some frames are marked, and all
 * @ppm: chance of a mark just below @kmax, in a million; 0: no marks
 * @xoff, @xon: bytes from a port at which it is paused, and goes on; 0: never
 * @memory: bytes in the switch; frames for which there is no room are lost
 * @loss: chance of a frame to be lost, in a million
 * @seed: of what chance decides
 */
struct SwitchConfig
{
    uint32_t kmin = 5000, kmax = 200000, ppm = 10000;
    uint32_t xoff = 0, xon = 0;
    uint64_t memory = 32000000;
    uint32_t loss = 0;
    uint64_t seed = 1;
};

/*
 * struct Route - a switch's place in a tree
 * @first, @end: hosts below it: from @first to before @end
 * @span: how many of them are below each of its first ports
 * @up: ports behind those, to all of which the others can be sent
 */
struct Route
{
    uint32_t first = 0, end = 0, span = 1, up = 0;
    uint32_t Down() const { return (end - first) / span; }
    uint32_t Ports() const { return Down() + up; }
};

class Switch : public PortOwner
{
public:
    Switch(uint32_t id, const SwitchConfig &cfg, const Route &route,
           Report &report);
    /* In the order of their numbers. */
    void Add(ns3::Ptr<Port> port);
    void Arrived(Port &port, ns3::Ptr<ns3::Packet> frame) override;
    void Left(Port &port, uint32_t from, uint32_t len) override;

private:
    bool Chance(uint32_t ppm);
    bool ToMark(uint32_t queued);
    uint32_t PathOf(const Headers &h) const;
    void Account(uint32_t from);

    uint32_t m_id;
    const SwitchConfig &m_cfg;
    Route m_route;
    Report &m_report;
    uint64_t m_random, m_used = 0;
    std::vector<ns3::Ptr<Port>> m_port;
    std::vector<uint32_t> m_from;       /* bytes in the switch, by port */
    std::vector<bool> m_pausing;
};

} // namespace qhca

#endif /* QHCA_SIM_SWITCH_H */
