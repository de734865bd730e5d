/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca cluster: cables and the ports at their ends, of adapters and of switches.
 *
 * Time is in ns; ns-3 counts femtoseconds here, and no two things that come to a
 * node from different cables come at the same one. So what a node does depends
 * on nothing but what it gets, and a run is the same on any number of ranks.
 */
#ifndef QHCA_SIM_PORT_H
#define QHCA_SIM_PORT_H

#include <cstdint>
#include <deque>

#include "ns3/channel.h"
#include "ns3/net-device.h"
#include "ns3/node.h"
#include "ns3/nstime.h"
#include "ns3/packet.h"
#include "ns3/pcap-file-wrapper.h"

namespace qhca
{

/* The time in ns. */
uint64_t Now();
/* The time at @ns and @fs, as a delay. */
ns3::Time Until(uint64_t ns, int64_t fs);
class Port;

/* A cable with two ends; "Delay" is how long light needs for it. */
class Cable : public ns3::Channel
{
public:
    static ns3::TypeId GetTypeId();
    void SetDelay(uint64_t ns);
    void Plug(Port *port);
    Port *Other(const Port *port) const;
    uint64_t Delay() const;
    std::size_t GetNDevices() const override;
    ns3::Ptr<ns3::NetDevice> GetDevice(std::size_t i) const override;

private:
    ns3::Time m_delay;
    Port *m_end[2] = {};
    unsigned m_ends = 0;
};

/* Classes of traffic: a pause is for one of them, and the last goes first. */
enum { CLASS_DATA, CLASS_CONTROL, NUM_CLASSES };

/* A node that forwards or ends the frames of a port. */
class PortOwner
{
public:
    virtual ~PortOwner() = default;
    virtual void Arrived(Port &port, ns3::Ptr<ns3::Packet> frame) = 0;
    /* A frame has left the queue, into which @from had brought it. */
    virtual void Left(Port &port, uint32_t from, uint32_t len) = 0;
};

/* The end of a cable: a queue for each class, and what the cable's speed is. */
class Port : public ns3::NetDevice
{
public:
    static ns3::TypeId GetTypeId();

    Port() = default;
    Port(PortOwner *owner, uint32_t number, uint32_t mbit);
    void Connect(ns3::Ptr<Cable> cable);
    void SetOwner(PortOwner *owner) { m_owner = owner; }
    /* False: it is another rank's. */
    bool HasOwner() const { return m_owner; }
    /* Write what is sent and received here to a file. */
    void SetCapture(ns3::Ptr<ns3::PcapFileWrapper> file) { m_capture = file; }
    void SetSpeed(uint32_t mbit) { m_mbit = mbit; }

    uint32_t Number() const { return m_number; }
    /* Bytes that wait. */
    uint32_t Queued() const { return m_queued; }
    std::size_t Frames(unsigned cls) const { return m_queue[cls].size(); }

    void Enqueue(ns3::Ptr<ns3::Packet> frame, unsigned cls, uint32_t from);
    /* Ask the other end to pause class @cls, or to go on (802.1Qbb). */
    void Pause(unsigned cls, bool on);

    void SetIfIndex(const uint32_t index) override { m_index = index; }
    uint32_t GetIfIndex() const override { return m_index; }
    ns3::Ptr<ns3::Channel> GetChannel() const override;
    ns3::Ptr<ns3::Node> GetNode() const override { return m_node; }
    void SetNode(ns3::Ptr<ns3::Node> node) override { m_node = node; }
    bool IsPointToPoint() const override { return true; }

    /* A host's network stack would use these; there is none. */
    void SetAddress(ns3::Address) override {}
    ns3::Address GetAddress() const override { return {}; }
    bool SetMtu(const uint16_t) override { return false; }
    uint16_t GetMtu() const override { return 9000; }
    bool IsLinkUp() const override { return true; }
    void AddLinkChangeCallback(ns3::Callback<void>) override {}
    bool IsBroadcast() const override { return false; }
    ns3::Address GetBroadcast() const override { return {}; }
    bool IsMulticast() const override { return false; }
    ns3::Address GetMulticast(ns3::Ipv4Address) const override { return {}; }
    ns3::Address GetMulticast(ns3::Ipv6Address) const override { return {}; }
    bool IsBridge() const override { return false; }
    bool Send(ns3::Ptr<ns3::Packet>, const ns3::Address &, uint16_t) override
    {
        return false;
    }
    bool SendFrom(ns3::Ptr<ns3::Packet>, const ns3::Address &,
                  const ns3::Address &, uint16_t) override
    {
        return false;
    }
    bool NeedsArp() const override { return false; }
    void SetReceiveCallback(ReceiveCallback) override {}
    void SetPromiscReceiveCallback(PromiscReceiveCallback) override {}
    bool SupportsSendFrom() const override { return false; }

private:
    struct Item
    {
        ns3::Ptr<ns3::Packet> frame;
        uint32_t len, from;
    };

    uint64_t Takes(uint64_t bytes) const;
    bool Next(unsigned *cls) const;
    void Note(ns3::Ptr<const ns3::Packet> frame) const;
    void Kick();
    void Rested();
    void Carry(ns3::Ptr<ns3::Packet> frame, uint64_t ns, bool pause);
    void Receive(ns3::Ptr<ns3::Packet> frame);

    PortOwner *m_owner = nullptr;
    uint32_t m_number = 0, m_mbit = 0, m_index = 0;
    ns3::Ptr<Cable> m_cable;
    ns3::Ptr<ns3::Node> m_node;
    ns3::Ptr<ns3::PcapFileWrapper> m_capture;
    std::deque<Item> m_queue[NUM_CLASSES];
    uint32_t m_queued = 0;
    unsigned m_paused = 0;          /* classes, a bit each */
    uint64_t m_busy = 0;            /* until then a frame is leaving */
    bool m_waiting = false;         /* for that */
};

} // namespace qhca

#endif /* QHCA_SIM_PORT_H */
