/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "port.h"

#include "ns3/mpi-interface.h"
#include "ns3/mpi-receiver.h"
#include "ns3/nstime.h"
#include "ns3/simulator.h"

using namespace ns3;

namespace qhca
{

NS_OBJECT_ENSURE_REGISTERED(Cable);
NS_OBJECT_ENSURE_REGISTERED(Port);

static const int64_t FS = 1000000;      /* of a nanosecond */
/* Bytes that a frame takes on a cable besides its own: FCS, preamble, gap. */
static const uint32_t OVERHEAD = 24;

/* A frame of 802.1Qbb. */
enum { PAUSE_LEN = 60, PAUSE_TYPE = 0x8808, PAUSE_OPCODE = 0x0101 };

uint64_t Now()
{
    return static_cast<uint64_t>(Simulator::Now().GetTimeStep() / FS);
}

Time Until(uint64_t ns, int64_t fs)
{
    return TimeStep(static_cast<uint64_t>(static_cast<int64_t>(ns) * FS + fs -
                                          Simulator::Now().GetTimeStep()));
}

/* ---- cables ---- */

TypeId Cable::GetTypeId()
{
    static TypeId tid =
        TypeId("qhca::Cable").SetParent<Channel>()
            .AddConstructor<Cable>()
            .AddAttribute("Delay", "Time from one end to the other",
                          TimeValue(NanoSeconds(1000)),
                          MakeTimeAccessor(&Cable::m_delay),
                          MakeTimeChecker());
    return tid;
}

/* The constructor cannot do that: attributes get their defaults after it. */
void Cable::SetDelay(uint64_t ns)
{
    m_delay = NanoSeconds(ns);
}

void Cable::Plug(Port *port)
{
    NS_ABORT_UNLESS(m_ends < 2);
    m_end[m_ends++] = port;
}

Port *Cable::Other(const Port *port) const
{
    return m_end[m_end[0] == port];
}

std::size_t Cable::GetNDevices() const
{
    return m_ends;
}

Ptr<NetDevice> Cable::GetDevice(std::size_t i) const
{
    return m_end[i];
}

uint64_t Cable::Delay() const
{
    return static_cast<uint64_t>(m_delay.GetTimeStep() / FS);
}

/* ---- ports ---- */

TypeId Port::GetTypeId()
{
    static TypeId tid = TypeId("qhca::Port").SetParent<NetDevice>()
                            .AddConstructor<Port>();
    return tid;
}

Port::Port(PortOwner *owner, uint32_t number, uint32_t mbit)
    : m_owner(owner), m_number(number), m_mbit(mbit)
{
}

void Port::Connect(Ptr<Cable> cable)
{
    m_cable = cable;
    cable->Plug(this);
    if (MpiInterface::IsEnabled()) {
        Ptr<MpiReceiver> receiver = CreateObject<MpiReceiver>();

        receiver->SetReceiveCallback(MakeCallback(&Port::Receive, this));
        AggregateObject(receiver);
    }
}

Ptr<Channel> Port::GetChannel() const
{
    return m_cable;
}

/* How many ns @bytes need to leave. */
uint64_t Port::Takes(uint64_t bytes) const
{
    return ((bytes + OVERHEAD) * 8000 + m_mbit - 1) / m_mbit;
}

void Port::Enqueue(Ptr<Packet> frame, unsigned cls, uint32_t from)
{
    uint32_t len = frame->GetSize();

    m_queue[cls].push_back({ frame, len, from });
    m_queued += len;
    Kick();
}

/* Find a class that has a frame and may send it. */
bool Port::Next(unsigned *cls) const
{
    for (*cls = NUM_CLASSES; (*cls)-- > 0; ) {
        if (!m_queue[*cls].empty() && !(m_paused & 1u << *cls)) {
            return true;
        }
    }
    return false;
}

void Port::Note(Ptr<const Packet> frame) const
{
    if (m_capture) {
        m_capture->Write(Simulator::Now(), frame);
    }
}

/* Send the next frame, or see to it that it is sent. */
void Port::Kick()
{
    uint64_t now = Now();
    unsigned cls;

    if (m_waiting || !Next(&cls)) {
        return;
    }
    if (now < m_busy) {
        m_waiting = true;
        Simulator::Schedule(Until(m_busy, 0), &Port::Rested, this);
        return;
    }
    Item item = m_queue[cls].front();

    m_queue[cls].pop_front();
    m_queued -= item.len;
    m_busy = now + Takes(item.len);
    Note(item.frame);
    Carry(item.frame, m_busy, false);
    m_owner->Left(*this, item.from, item.len);
    Kick();
}

void Port::Rested()
{
    m_waiting = false;
    Kick();
}

/*
 * Bring a frame whose last bit leaves at @ns to the other end. A pause does not
 * come at the same time as a frame.
 */
void Port::Carry(Ptr<Packet> frame, uint64_t ns, bool pause)
{
    Port *to = m_cable->Other(this);
    int64_t order = 1 + 2 * static_cast<int64_t>(to->m_number) + pause;
    Time delay = Until(ns + m_cable->Delay(), order);

    if (to->m_owner) {
        Simulator::ScheduleWithContext(to->m_node->GetId(), delay,
                                       &Port::Receive, to, frame);
    } else {
        MpiInterface::SendPacket(frame, Simulator::Now() + delay,
                                 to->m_node->GetId(), to->m_index);
    }
}

static void Put16(uint8_t *at, unsigned value)
{
    at[0] = static_cast<uint8_t>(value >> 8);
    at[1] = static_cast<uint8_t>(value);
}

void Port::Pause(unsigned cls, bool on)
{
    uint8_t frame[PAUSE_LEN] = { 0x01, 0x80, 0xc2, 0, 0, 1 };
    Ptr<Packet> packet;

    Put16(frame + 12, PAUSE_TYPE);
    Put16(frame + 14, PAUSE_OPCODE);
    Put16(frame + 16, 1u << cls);
    Put16(frame + 18 + 2 * cls, on ? 0xffff : 0);
    packet = Create<Packet>(frame, sizeof(frame));
    Note(packet);
    /* It need not wait for the frame that is leaving: a simplification. */
    Carry(packet, Now() + Takes(sizeof(frame)), true);
}

void Port::Receive(Ptr<Packet> frame)
{
    uint8_t head[18 + 2 * NUM_CLASSES];

    Note(frame);
    if (frame->CopyData(head, sizeof(head)) == sizeof(head) &&
        head[12] == PAUSE_TYPE >> 8 && head[13] == (PAUSE_TYPE & 0xff)) {
        for (unsigned cls = 0; cls < NUM_CLASSES; cls++) {
            unsigned bit = head[17] & 1u << cls;

            m_paused &= ~bit;
            m_paused |= head[18 + 2 * cls] ? bit : 0;
        }
        Kick();
        return;
    }
    m_owner->Arrived(*this, frame);
}

} // namespace qhca
