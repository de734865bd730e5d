/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca cluster: adapters in a simulated network. Prints what has happened, a name
 * and a value in each line; exits with 1 if not everything has come through.
 */
#include <chrono>
#include <cstdio>
#include <stdexcept>

#include <malloc.h>

#include "cluster.h"

#include "ns3/command-line.h"
#include "ns3/global-value.h"
#include "ns3/mpi-interface.h"
#include "ns3/nstime.h"
#include "ns3/simulator.h"
#include "ns3/string.h"

using namespace ns3;
using namespace qhca;

struct Options
{
    TopologyConfig topology;
    SwitchConfig switches;
    adapter_config adapter = {};
    std::string workload = "incast", out, red = "5:200:1", pfc = "0:0", grey,
        congestion;
    uint64_t bytes = 1 << 20, seed = 1, width = 10000;
    double loss = 0, stop = 0;
    bool progress = false, mpi = false;
};

static void Parse(Options &o, int argc, char **argv)
{
    CommandLine cmd(__FILE__);

    o.adapter.mtu = 5;
    o.adapter.timeout = 10;
    o.adapter.retries = 7;
    o.adapter.window = 4;
    o.adapter.message = 65536;
    cmd.AddValue("hosts", "adapters", o.topology.hosts);
    cmd.AddValue("topology", "star, leaf-spine or fat-tree", o.topology.name);
    cmd.AddValue("radix", "hosts at a leaf, or ports of a switch of a fat tree",
                 o.topology.radix);
    cmd.AddValue("uplinks", "spines, if not as many as hosts at a leaf",
                 o.topology.uplinks);
    cmd.AddValue("rate", "of links, Mbit/s", o.topology.mbit);
    cmd.AddValue("delay", "of links, ns", o.topology.delay);
    cmd.AddValue("workload", WorkloadNames() + ", idle, or a file", o.workload);
    cmd.AddValue("bytes", "of a flow, or of a host's data", o.bytes);
    cmd.AddValue("message", "bytes of a message at most", o.adapter.message);
    cmd.AddValue("window", "messages of a flow under way", o.adapter.window);
    cmd.AddValue("mtu", "path MTU: 1 is 256, 5 is 4096", o.adapter.mtu);
    cmd.AddValue("timeout", "of ACKs, 4.096 us * 2^N", o.adapter.timeout);
    cmd.AddValue("retries", "after timeouts", o.adapter.retries);
    cmd.AddValue("dcqcn", "congestion control", o.adapter.dcqcn);
    cmd.AddValue("congestion", "its parameters, as devlink has them: NAME=N,...",
                 o.congestion);
    cmd.AddValue("hollow", "move a sample of what messages carry",
                 o.adapter.hollow);
    cmd.AddValue("red", "KMIN:KMAX:PERCENT of marks, KB; 0:0:0: none", o.red);
    cmd.AddValue("pfc", "XOFF:XON of pauses, KB; 0:0: none", o.pfc);
    cmd.AddValue("grey", "HOST:MBIT: a host at a cable of another speed", o.grey);
    cmd.AddValue("memory", "of a switch, bytes", o.switches.memory);
    cmd.AddValue("loss", "percent of frames that a switch loses", o.loss);
    cmd.AddValue("seed", "of all that is random", o.seed);
    cmd.AddValue("stop", "end after so many ms", o.stop);
    cmd.AddValue("width", "ns for a line of the table over time", o.width);
    cmd.AddValue("out", "folder for tables", o.out);
    cmd.AddValue("progress", "say how far it is", o.progress);
    cmd.AddValue("mpi", "one of several ranks", o.mpi);
    cmd.Parse(argc, argv);
}

/* What the texts of options mean. */
static void Derive(Options &o)
{
    double percent = 0, kmin = 0, kmax = 0, xoff = 0, xon = 0;

    if (std::sscanf(o.red.c_str(), "%lf:%lf:%lf", &kmin, &kmax, &percent) != 3 ||
        kmin < 0 || kmax < kmin || (percent > 0 && kmax <= kmin) ||
        percent < 0 || percent > 100) {
        throw std::runtime_error("--red=KMIN:KMAX:PERCENT");
    }
    if (std::sscanf(o.pfc.c_str(), "%lf:%lf", &xoff, &xon) != 2 || xon < 0 ||
        xoff < xon || (xoff > 0 && xoff <= xon)) {
        throw std::runtime_error("--pfc=XOFF:XON");
    }
    if (!o.grey.empty() &&
        (std::sscanf(o.grey.c_str(), "%u:%u", &o.topology.grey,
                     &o.topology.grey_mbit) != 2 ||
         o.topology.grey >= o.topology.hosts || !o.topology.grey_mbit)) {
        throw std::runtime_error("--grey=HOST:MBIT");
    }
    if (!o.topology.hosts || !o.topology.mbit || !o.topology.delay ||
        !o.width || !o.adapter.window || o.adapter.message > 32 << 20) {
        throw std::runtime_error("an option is out of range");
    }
    o.switches.kmin = static_cast<uint32_t>(kmin * 1000);
    o.switches.kmax = static_cast<uint32_t>(kmax * 1000);
    o.switches.ppm = static_cast<uint32_t>(percent * 10000);
    o.switches.xoff = static_cast<uint32_t>(xoff * 1000);
    o.switches.xon = static_cast<uint32_t>(xon * 1000);
    o.switches.loss = static_cast<uint32_t>(o.loss * 10000);
    o.switches.seed = o.adapter.seed = o.seed;
    o.adapter.mbit = o.topology.mbit;
    o.adapter.congestion = o.congestion.c_str();
}

static int Run(Options &o)
{
    auto begin = std::chrono::steady_clock::now();

    Derive(o);
    std::vector<Flow> flows = MakeWorkload(o.workload, o.topology.hosts, o.bytes,
                                           o.adapter.message, o.seed);
    Report report(o.width, o.progress);
    Topology topology(o.topology, o.switches, report);
    Cluster cluster(o.adapter, topology, flows, report);

    report.Start(flows);
    cluster.Start();
    if (o.stop > 0) {
        Simulator::Stop(MicroSeconds(static_cast<uint64_t>(o.stop * 1000)));
    }
    Simulator::Run();
    cluster.Finish();
    std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    return report.Finish(o.out, wall.count(), Hca::EngineTime()) ? 0 : 1;
}

int main(int argc, char **argv)
{
    Options o;
    int status = 2;

    /*
     * Mappings of their own for tables would be more than a process may have. A
     * heap that grows by no more than it needs does not clear them.
     */
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TOP_PAD, 0);
    Time::SetResolution(Time::FS);
    GlobalValue::Bind("SchedulerType",
                      StringValue("ns3::PriorityQueueScheduler"));
    Parse(o, argc, argv);
    if (o.mpi) {
        GlobalValue::Bind("SimulatorImplementationType",
                          StringValue("ns3::DistributedSimulatorImpl"));
        MpiInterface::Enable(&argc, &argv);
    }
    try {
        status = Run(o);
    } catch (const std::runtime_error &e) {
        std::fprintf(stderr, "cluster: %s\n", e.what());
    }
    Simulator::Destroy();
    if (o.mpi) {
        MpiInterface::Disable();
    }
    return status;
}
