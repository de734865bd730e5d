/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca cluster: what a switch reads in a frame, RoCEv2 over IPv4. */
#ifndef QHCA_SIM_FRAME_H
#define QHCA_SIM_FRAME_H

#include <cstdint>

#include "ns3/packet.h"

namespace qhca
{

/* Hosts are counted from 0; the address of the first is 10.0.0.1. */
struct Headers
{
    uint32_t src = 0, dst = 0;
    uint16_t sport = 0;
    uint8_t dscp = 0, ecn = 0;
};

/* False for frames that are not from host to host. */
bool ReadHeaders(ns3::Ptr<const ns3::Packet> frame, Headers *h);
/* Return a copy of a frame that ReadHeaders() knows, with the CE mark. */
ns3::Ptr<ns3::Packet> Marked(ns3::Ptr<const ns3::Packet> frame);

/* Mix bits (splitmix64), for choices among paths and for digests. */
inline uint64_t Mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

} // namespace qhca

#endif /* QHCA_SIM_FRAME_H */
