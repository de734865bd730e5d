/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "frame.h"

#include "adapter.h"

using namespace ns3;

namespace qhca
{

/* Lengths of headers, and where in them a field is. */
enum
{
    ETH_LEN = 14, ETH_TYPE = 12,
    IPV4_LEN = 20, IPV4_TOS = 1, IPV4_SRC = 12, IPV4_DST = 16,
    UDP_LEN = 8, UDP_SPORT = 0,
};
static const uint16_t TYPE_IPV4 = 0x0800;

static uint16_t Get16(const uint8_t *at)
{
    return static_cast<uint16_t>(at[0] << 8 | at[1]);
}

static uint32_t HostOf(const uint8_t *address)
{
    return (address[1] << 16 | address[2] << 8 | address[3]) - 1u;
}

bool ReadHeaders(Ptr<const Packet> frame, Headers *h)
{
    uint8_t head[ETH_LEN + IPV4_LEN + UDP_LEN];
    const uint8_t *ip = head + ETH_LEN;

    if (frame->CopyData(head, sizeof(head)) < sizeof(head) ||
        Get16(head + ETH_TYPE) != TYPE_IPV4) {
        return false;
    }
    h->dscp = ip[IPV4_TOS] >> 2;
    h->ecn = ip[IPV4_TOS] & 3;
    h->src = HostOf(ip + IPV4_SRC);
    h->dst = HostOf(ip + IPV4_DST);
    h->sport = Get16(ip + IPV4_LEN + UDP_SPORT);
    return true;
}

Ptr<Packet> Marked(Ptr<const Packet> frame)
{
    uint8_t head[ETH_LEN + IPV4_LEN];
    Ptr<Packet> marked;

    frame->CopyData(head, sizeof(head));
    adapter_mark(head);
    marked = Create<Packet>(head, sizeof(head));
    marked->AddAtEnd(frame->CreateFragment(sizeof(head),
                                           frame->GetSize() - sizeof(head)));
    return marked;
}

} // namespace qhca
