/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca cluster: what a run is to be, by the words of its command line. */
#ifndef QHCA_SIM_OPTIONS_H
#define QHCA_SIM_OPTIONS_H

#include <cstdint>
#include <string>

#include "adapter.h"
#include "topology.h"

namespace qhca
{

/* ns-3 counts femtoseconds with 63 bits: no run lasts longer, in ns. */
static const uint64_t LAST_TIME = 9000000000000ull;

/*
 * struct Options - a run
 * @stop: when it ends at the latest, ns
 * @width: of a line of the table over time, ns
 */
struct Options
{
    TopologyConfig topology;
    SwitchConfig switches;
    adapter_config adapter = {};
    std::string workload = "incast", out, pcap, congestion;
    uint64_t bytes = 1 << 20, seed = 1, width = 10000, stop = LAST_TIME;
    bool progress = false, mpi = false;

    Options() = default;
    Options(const Options &) = delete;      /* @adapter points to @congestion */
    Options &operator=(const Options &) = delete;
    /* Does not return if there is something wrong: ends with status 2. */
    void Parse(int argc, char **argv);

private:
    void Check() const;
};

} // namespace qhca

#endif /* QHCA_SIM_OPTIONS_H */
