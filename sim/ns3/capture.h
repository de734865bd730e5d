/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca cluster: what passes some ends of cables, in files for tshark. */
#ifndef QHCA_SIM_CAPTURE_H
#define QHCA_SIM_CAPTURE_H

#include <string>
#include <utility>
#include <vector>

#include "topology.h"

#include "ns3/pcap-file-wrapper.h"

namespace qhca
{

class Capture
{
public:
    /*
     * Begin to write, in @folder, a file for each end of a cable in @which: HOST
     * or SWITCH.PORT, or "hosts" for all of those, with commas between them. A
     * file has the first @most bytes of each frame, which is sent when its first
     * bit leaves and received when its last has come. Throws
     * std::runtime_error if there is no such end, or a file cannot be written.
     */
    Capture(const Topology &topology, const std::string &which,
            const std::string &folder, uint32_t most);
    /* Close the files. Throws std::runtime_error if they are not complete. */
    void Finish();

private:
    void Host(const Topology &topology, uint64_t host);
    void Named(const Topology &topology, const std::string &end);
    void Begin(ns3::Ptr<Port> port, const std::string &name);

    const std::string m_folder;
    const uint32_t m_most;
    std::vector<std::pair<std::string, ns3::Ptr<ns3::PcapFileWrapper>>> m_file;
};

} // namespace qhca

#endif /* QHCA_SIM_CAPTURE_H */
