/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca cluster: adapters in a simulated network. Prints what has happened, a name
 * and a value in each line; exits with 1 if not everything has come through, and
 * with 2 if there is no such cluster.
 */
#include <chrono>
#include <cstdio>
#include <exception>

#include <malloc.h>

#include <mpi.h>

#include "capture.h"
#include "cluster.h"
#include "options.h"

#include "ns3/global-value.h"
#include "ns3/mpi-interface.h"
#include "ns3/nstime.h"
#include "ns3/simulator.h"
#include "ns3/string.h"

using namespace ns3;
using namespace qhca;

static int Run(Options &o)
{
    auto begin = std::chrono::steady_clock::now();

    std::vector<Flow> flows = MakeWorkload(o.workload, o.topology.hosts, o.bytes,
                                           o.adapter.message, o.seed);
    Report report(o.width, o.progress);
    Topology topology(o.topology, o.switches, report);
    Cluster cluster(o.adapter, topology, flows, report);
    Capture capture(topology, o.pcap, o.out,
                    o.adapter.hollow ? ADAPTER_SAMPLE : UINT16_MAX);

    report.Start(flows);
    cluster.Start();
    Simulator::Stop(NanoSeconds(o.stop));
    Simulator::Run();
    cluster.Finish();
    capture.Finish();
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
    o.Parse(argc, argv);
    if (o.mpi) {
        GlobalValue::Bind("SimulatorImplementationType",
                          StringValue("ns3::DistributedSimulatorImpl"));
        MpiInterface::Enable(&argc, &argv);
    }
    try {
        status = Run(o);
    } catch (const std::exception &e) {
        std::fprintf(stderr, "cluster: %s\n", e.what());
        if (o.mpi) {            /* others may not have failed, and would wait */
            MPI_Abort(MpiInterface::GetCommunicator(), status);
        }
    }
    Simulator::Destroy();
    if (o.mpi) {
        MpiInterface::Disable();
    }
    return status;
}
