/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hca.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "frame.h"

#include "ns3/simulator.h"

using namespace ns3;

namespace qhca
{

/* Frames in the port beside the one that leaves; others stay in the engine. */
static const std::size_t QUEUE = 2;
/* The digest is of that much of a frame. */
static const std::size_t HEADERS = 64, ICRC = 4;

static std::chrono::steady_clock::duration spent;

double Hca::EngineTime()
{
    return std::chrono::duration<double>(spent).count();
}

Hca::Hca(const adapter_config &cfg, uint32_t host, unsigned flows,
         Ptr<Port> port, Program &program, Report &report)
    : m_host(host), m_hollow(cfg.hollow), m_port(port), m_program(program), m_report(report),
      m_digest(Mix(host))
{
    static const adapter_ops ops = { Send };

    m_adapter = adapter_new(&cfg, host, flows, &ops, this);
    port->SetOwner(this);
}

Hca::~Hca()
{
    m_timer.Cancel();
    adapter_free(m_adapter);
}

/* Only the front of a hollow frame is in memory. */
Ptr<Packet> Hca::Pack(const uint8_t *frame, uint32_t len) const
{
    uint32_t front = m_hollow ? std::min(len, ADAPTER_SAMPLE) : len;
    Ptr<Packet> packet = Create<Packet>(frame, front);

    packet->AddPaddingAtEnd(len - front);
    return packet;
}

bool Hca::Send(void *opaque, const uint8_t *frame, size_t len)
{
    Hca *hca = static_cast<Hca *>(opaque);
    uint64_t digest = hca->m_digest ^ Now(), word;

    if (hca->m_port->Frames(CLASS_DATA) >= QUEUE) {
        hca->m_refused = true;
        return false;
    }
    for (size_t at = 0; at + 8 <= len - ICRC && at < HEADERS; at += 8) {
        std::memcpy(&word, frame + at, 8);
        digest = Mix(digest ^ word);
    }
    hca->m_digest = Mix(digest ^ len);
    hca->m_report.Count(Report::FRAMES);
    hca->m_port->Enqueue(hca->Pack(frame, static_cast<uint32_t>(len)),
                         CLASS_DATA, 0);
    return true;
}

/* Let the engine work, and the program on what is complete. */
template <typename Work> void Hca::Engine(Work work)
{
    auto begin = std::chrono::steady_clock::now();

    NS_ABORT_IF(m_busy);
    m_busy = true;
    work();
    m_busy = false;
    spent += std::chrono::steady_clock::now() - begin;
}

void Hca::Settle()
{
    adapter_done done;
    bool more;

    do {
        Engine([&] { more = adapter_poll(m_adapter, Now(), &done); });
        if (more) {
            m_digest = Mix(m_digest ^ done.flow << 8 ^ done.status);
            m_program.Completed(m_host, done);
        }
    } while (more);
    Arm();
}

void Hca::Write(unsigned flow, uint32_t bytes)
{
    Engine([&] { adapter_write(m_adapter, Now(), flow, bytes); });
    Arm();
}

void Hca::Arrived(Port &, Ptr<Packet> frame)
{
    uint32_t len = frame->GetSize();
    uint8_t bytes[9216];

    frame->CopyData(bytes, m_hollow ? std::min(len, ADAPTER_SAMPLE) : len);
    if (m_hollow && len > ADAPTER_SAMPLE) {
        std::memset(bytes + len - ICRC, 0, ICRC);
    }

    Engine([&] { adapter_receive(m_adapter, Now(), bytes, len); });
    Settle();
}

/* There is room in the port; the engine may be the one that has made it. */
void Hca::Left(Port &, uint32_t, uint32_t)
{
    if (m_refused && !m_busy) {
        m_refused = false;
        Engine([&] { adapter_ready(m_adapter, Now()); });
        Settle();
    }
}

/* The deadline mostly moves on with each packet; the event need not. */
void Hca::Arm()
{
    uint64_t deadline = adapter_deadline(m_adapter), now = Now();

    if (deadline >= m_armed) {
        return;
    }
    m_timer.Cancel();
    m_armed = std::max(deadline, now);
    /* Not when a frame may come: ranks could put the two in different orders. */
    m_timer = Simulator::Schedule(m_armed > now ? Until(m_armed, 0) : Time(),
                                  &Hca::Fire, this);
}

void Hca::Fire()
{
    m_armed = UINT64_MAX;
    if (adapter_deadline(m_adapter) <= Now()) {
        Engine([&] { adapter_tick(m_adapter, Now()); });
    }
    Settle();
}

} // namespace qhca
