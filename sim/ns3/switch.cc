/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "switch.h"

using namespace ns3;

namespace qhca
{

static const uint8_t CONTROL_DSCP = 48;     /* and above: CNPs */
enum { ECN_CE = 3 };

Switch::Switch(uint32_t id, const SwitchConfig &cfg, const Route &route,
               Report &report)
    : m_id(id), m_cfg(cfg), m_route(route), m_report(report),
      m_random(Mix(cfg.seed) ^ Mix(id)), m_from(route.Ports()),
      m_pausing(route.Ports())
{
}

void Switch::Add(Ptr<Port> port)
{
    m_port.push_back(port);
}

bool Switch::Chance(uint32_t ppm)
{
    return ppm && (m_random = Mix(m_random)) % 1000000 < ppm;
}

bool Switch::ToMark(uint32_t queued)
{
    if (!m_cfg.ppm || queued <= m_cfg.kmin || queued >= m_cfg.kmax) {
        return m_cfg.ppm && queued >= m_cfg.kmax;
    }
    return Chance(static_cast<uint32_t>(
        static_cast<uint64_t>(m_cfg.ppm) * (queued - m_cfg.kmin) /
        (m_cfg.kmax - m_cfg.kmin)));
}

/* Return the port to the destination; packets of a flow take one path. */
uint32_t Switch::PathOf(const Headers &h) const
{
    if (h.dst >= m_route.first && h.dst < m_route.end) {
        return (h.dst - m_route.first) / m_route.span;
    }
    return m_route.Down() +
           static_cast<uint32_t>(Mix(Mix(static_cast<uint64_t>(h.src) << 32 |
                                         h.dst) ^ h.sport ^
                                     static_cast<uint64_t>(m_id) << 20) %
                                 m_route.up);
}

void Switch::Arrived(Port &port, Ptr<Packet> frame)
{
    uint32_t len = frame->GetSize();
    Headers h;

    if (!ReadHeaders(frame, &h) || Chance(m_cfg.loss) ||
        m_used + len > m_cfg.memory) {
        m_report.Count(Report::LOST);
        return;
    }
    unsigned cls = h.dscp >= CONTROL_DSCP ? CLASS_CONTROL : CLASS_DATA;
    Port &out = *m_port[PathOf(h)];
    uint32_t queued = out.Queued();

    if (h.ecn && h.ecn != ECN_CE && ToMark(queued)) {
        frame = Marked(frame);
        m_report.Count(Report::MARKED);
    }
    m_used += len;
    m_from[port.Number()] += len;
    m_report.Queue(queued + len);
    out.Enqueue(frame, cls, port.Number());
    Account(port.Number());
}

void Switch::Left(Port &, uint32_t from, uint32_t len)
{
    m_used -= len;
    m_from[from] -= len;
    Account(from);
}

/* Pause the other end of a port, or let it go on. */
void Switch::Account(uint32_t from)
{
    bool on = m_pausing[from] ? m_from[from] > m_cfg.xon :
                                m_from[from] > m_cfg.xoff;

    if (!m_cfg.xoff || on == m_pausing[from]) {
        return;
    }
    m_pausing[from] = on;
    m_port[from]->Pause(CLASS_DATA, on);
    m_report.Count(on ? Report::PAUSED : Report::RESUMED);
}

} // namespace qhca
