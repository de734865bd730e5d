/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture.h"

#include <stdexcept>

#include "number.h"

#include "ns3/boolean.h"

using namespace ns3;

namespace qhca
{

static const uint32_t ETHERNET = 1;     /* LINKTYPE_ETHERNET */

Capture::Capture(const Topology &topology, const std::string &which,
                 const std::string &folder, uint32_t most)
    : m_folder(folder), m_most(most)
{
    std::size_t from = 0, to = 0;

    for (; !which.empty() && to != std::string::npos; from = to + 1) {
        to = which.find(',', from);
        Named(topology, which.substr(from, to - from));
    }
}

void Capture::Host(const Topology &topology, uint64_t host)
{
    Begin(topology.HostPort(static_cast<uint32_t>(host)),
          "host-" + std::to_string(host));
}

void Capture::Named(const Topology &topology, const std::string &end)
{
    std::size_t dot = end.find('.');
    uint64_t node, number;

    if (end == "hosts") {
        for (node = 0; node < topology.Hosts(); node++) {
            Host(topology, node);
        }
    } else if (dot == std::string::npos && ParseWhole(end, &node) &&
        node < topology.Hosts()) {
        Host(topology, node);
    } else if (dot != std::string::npos &&
               ParseWhole(end.substr(0, dot), &node) &&
               ParseWhole(end.substr(dot + 1), &number) &&
               node < topology.Switches() && number < topology.Ports(node)) {
        Begin(topology.SwitchPort(node, number), "switch-" +
              std::to_string(node) + "-" + std::to_string(number));
    } else {
        throw std::runtime_error("no such end of a cable: " + end);
    }
}

/* Ports of other ranks are theirs to capture. */
void Capture::Begin(Ptr<Port> port, const std::string &name)
{
    Ptr<PcapFileWrapper> file = CreateObject<PcapFileWrapper>();
    std::string path = m_folder + "/" + name + ".pcap";

    if (!port->HasOwner()) {
        return;
    }
    for (const auto &other : m_file) {
        if (other.first == path) {
            throw std::runtime_error(name + " is to be captured twice");
        }
    }
    file->SetAttribute("NanosecMode", BooleanValue(true));
    file->Open(path, std::ios::out | std::ios::binary);
    if (file->Fail()) {
        throw std::runtime_error("cannot write " + path);
    }
    file->Init(ETHERNET, m_most);
    port->SetCapture(file);
    m_file.emplace_back(path, file);
}

void Capture::Finish()
{
    for (const auto &entry : m_file) {
        entry.second->Close();
        if (entry.second->Fail()) {
            throw std::runtime_error("cannot write " + entry.first);
        }
    }
    m_file.clear();
}

} // namespace qhca
