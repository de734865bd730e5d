/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca cluster: a host: an adapter at a port, and the program that uses it. */
#ifndef QHCA_SIM_HCA_H
#define QHCA_SIM_HCA_H

#include "adapter.h"
#include "port.h"
#include "report.h"

#include "ns3/event-id.h"

namespace qhca
{

/* Receives completions. */
class Program
{
public:
    virtual ~Program() = default;
    virtual void Completed(uint32_t host, const adapter_done &done) = 0;
};

class Hca : public PortOwner
{
public:
    /* @flows: ends of flows at this host. */
    Hca(const adapter_config &cfg, uint32_t host, unsigned flows,
        ns3::Ptr<Port> port, Program &program, Report &report);
    ~Hca() override;
    Hca(const Hca &) = delete;
    Hca &operator=(const Hca &) = delete;

    adapter *Adapter() { return m_adapter; }
    void Write(unsigned flow, uint32_t bytes);
    void Arrived(Port &port, ns3::Ptr<ns3::Packet> frame) override;
    void Left(Port &port, uint32_t from, uint32_t len) override;
    uint64_t Digest() const { return m_digest; }
    /* Seconds in which engines have worked, of all hosts. */
    static double EngineTime();

private:
    ns3::Ptr<ns3::Packet> Pack(const uint8_t *frame, uint32_t len) const;
    static bool Send(void *opaque, const uint8_t *frame, size_t len);
    template <typename Work> void Engine(Work work);
    void Settle();
    void Arm();
    void Fire();

    const uint32_t m_host;
    const bool m_hollow;
    ns3::Ptr<Port> m_port;
    Program &m_program;
    Report &m_report;
    adapter *m_adapter;
    uint64_t m_digest;
    ns3::EventId m_timer;
    uint64_t m_armed = UINT64_MAX;
    bool m_refused = false, m_busy = false;
};

} // namespace qhca

#endif /* QHCA_SIM_HCA_H */
