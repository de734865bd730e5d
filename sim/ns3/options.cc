/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "options.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <vector>

#include "number.h"
#include "workload.h"

namespace qhca
{

static const double KB = 1000, PPM_OF_PERCENT = 10000, MS = 1e6;
static const uint64_t SECOND = 1000000000, GB = 1000000000;
static const unsigned MAX_HOSTS = 1000000, MAX_PORTS = 4096;
/* Of a send queue, and of the table of a region. */
static const unsigned MAX_WINDOW = 1 << 14, MAX_MESSAGE = 32 << 20;
static const unsigned MAX_CONTROLLED = 100000;  /* Mbit/s that DCQCN knows */

/* Takes the text of an option. Returns false if it is nonsense. */
using Reader = std::function<bool(const std::string &)>;

template <typename T> static Reader Whole(T &value, uint64_t min, uint64_t max)
{
    return [&value, min, max](const std::string &text) {
        uint64_t number;

        if (!ParseWhole(text, &number) || number < min || number > max) {
            return false;
        }
        value = static_cast<T>(number);
        return true;
    };
}

static Reader Text(std::string &value)
{
    return [&value](const std::string &text) {
        value = text;
        return true;
    };
}

/* A decimal number, in units of @unit. */
template <typename T> static Reader Scaled(T &value, double unit, double max)
{
    return [&value, unit, max](const std::string &text) {
        double number;

        if (!ParseDecimal(text, &number) || number > max) {
            return false;
        }
        value = static_cast<T>(number * unit);
        return true;
    };
}

/* A reader for each of the parts between colons. */
static Reader Parts(const std::vector<Reader> &part)
{
    return [part](const std::string &text) {
        std::size_t from = 0, to = 0, i = 0;

        for (; i < part.size() && to != std::string::npos; i++, from = to + 1) {
            to = text.find(':', from);
            if (!part[i](text.substr(from, to - from))) {
                return false;
            }
        }
        return i == part.size() && to == std::string::npos;
    };
}

[[noreturn]] static void Refuse(const std::string &why)
{
    std::fprintf(stderr, "cluster: %s\n", why.c_str());
    std::exit(2);
}

/* All options, with what reads them. */
struct Row
{
    const char *name;
    std::string help;
    Reader read;
};

static std::vector<Row> Network(Options &o)
{
    TopologyConfig &t = o.topology;
    SwitchConfig &s = o.switches;
    const double percent = 100, most = 4e6;     /* KB: of 32 bits */

    return {
        { "hosts", "adapters", Whole(t.hosts, 1, MAX_HOSTS) },
        { "topology", "star, leaf-spine or fat-tree", Text(t.name) },
        { "radix", "hosts at a leaf, or ports of a switch of a fat tree",
          Whole(t.radix, 0, MAX_PORTS) },
        { "uplinks", "spines, if not as many as hosts at a leaf",
          Whole(t.uplinks, 0, MAX_PORTS) },
        { "rate", "of links, Mbit/s", Whole(t.mbit, 1, 100000000) },
        { "delay", "of links, ns", Whole(t.delay, 1, 10 * SECOND) },
        { "red", "KMIN:KMAX:PERCENT of marks, KB; 0:0:0: none",
          Parts({ Scaled(s.kmin, KB, most), Scaled(s.kmax, KB, most),
                  Scaled(s.ppm, PPM_OF_PERCENT, percent) }) },
        { "pfc", "XOFF:XON of pauses, KB; 0:0: none",
          Parts({ Scaled(s.xoff, KB, most), Scaled(s.xon, KB, most) }) },
        { "grey", "HOST:MBIT: a host at a cable of another speed",
          Parts({ Whole(t.grey, 0, MAX_HOSTS),
                  Whole(t.grey_mbit, 1, 100000000) }) },
        { "memory", "of a switch, bytes", Whole(s.memory, 0, 4 * GB) },
        { "loss", "percent of frames that a switch loses",
          Scaled(s.loss, PPM_OF_PERCENT, percent) },
    };
}

static std::vector<Row> Hosts(Options &o)
{
    adapter_config &a = o.adapter;

    return {
        { "workload", WorkloadNames() + ", idle, or a file", Text(o.workload) },
        { "bytes", "of a flow, or of a host's data",
          Whole(o.bytes, 1, MAX_BYTES) },
        { "message", "bytes of a message at most",
          Whole(a.message, 1, MAX_MESSAGE) },
        { "window", "messages of a flow under way",
          Whole(a.window, 1, MAX_WINDOW) },
        { "mtu", "path MTU: 1 is 256, 5 is 4096", Whole(a.mtu, 1, 5) },
        { "timeout", "of ACKs, 4.096 us * 2^N; 0: none",
          Whole(a.timeout, 0, 24) },
        { "retries", "after timeouts", Whole(a.retries, 0, 7) },
        { "dcqcn", "congestion control", Whole(a.dcqcn, 0, 1) },
        { "congestion", "its parameters, as devlink has them: NAME=N,...",
          Text(o.congestion) },
        { "hollow", "move a sample of what messages carry",
          Whole(a.hollow, 0, 1) },
    };
}

static std::vector<Row> General(Options &o)
{
    return {
        { "seed", "of all that is random", Whole(o.seed, 0, UINT64_MAX) },
        { "stop", "end after so many ms",
          Scaled(o.stop, MS, static_cast<double>(LAST_TIME) / MS) },
        { "width", "ns for a line of the table over time",
          Whole(o.width, 1, SECOND) },
        { "out", "folder for tables", Text(o.out) },
        { "pcap", "captures in it: HOST,SWITCH.PORT,... or hosts for all of them",
          Text(o.pcap) },
        { "progress", "say how far it is", Whole(o.progress, 0, 1) },
        { "mpi", "one of several ranks", Whole(o.mpi, 0, 1) },
    };
}

static void Help(const std::vector<Row> &rows)
{
    std::printf("cluster --NAME=VALUE...\n");
    for (const Row &row : rows) {
        std::printf("  %-12s %s\n", row.name, row.help.c_str());
    }
    std::exit(0);
}

/* Let the row that has its name read one of the arguments. */
static void Read(const std::vector<Row> &rows, const std::string &argument)
{
    std::size_t equals = argument.find('=');
    std::string name = argument.substr(0, equals);

    if (name == "--help") {
        Help(rows);
    }
    for (const Row &row : rows) {
        if (name != "--" + std::string(row.name)) {
            continue;
        }
        if (equals == std::string::npos || !row.read(argument.substr(equals + 1))) {
            Refuse(argument + ": " + row.help);
        }
        return;
    }
    Refuse(argument + " is not an option");
}

void Options::Parse(int argc, char **argv)
{
    std::vector<Row> rows = Network(*this);

    adapter.mtu = 5;
    adapter.timeout = 10;
    adapter.retries = 7;
    adapter.window = 4;
    adapter.message = 65536;
    for (const auto &more : { Hosts(*this), General(*this) }) {
        rows.insert(rows.end(), more.begin(), more.end());
    }
    for (int i = 1; i < argc; i++) {
        Read(rows, argv[i]);
    }
    switches.seed = adapter.seed = seed;
    adapter.mbit = topology.mbit;
    adapter.congestion = congestion.c_str();
    if (!stop) {
        stop = LAST_TIME;
    }
    Check();
}

/* Options that do not go together. */
void Options::Check() const
{
    const struct {
        bool wrong;
        const char *why;
    } rules[] = {
        { switches.kmax < switches.kmin ||
          (switches.ppm && switches.kmax <= switches.kmin),
          "--red=KMIN:KMAX:PERCENT: KMAX has to be more than KMIN" },
        { switches.xoff ? switches.xoff <= switches.xon : switches.xon > 0,
          "--pfc=XOFF:XON: XOFF has to be more than XON" },
        { topology.grey_mbit && topology.grey >= topology.hosts,
          "--grey=HOST:MBIT: there is no such host" },
        { adapter.dcqcn && adapter.mbit > MAX_CONTROLLED,
          "--dcqcn=1: congestion control ends at 100000 Mbit/s" },
        { !pcap.empty() && out.empty(), "--pcap is for --out=DIR" },
        { !congestion.empty() && !adapter.dcqcn,
          "--congestion is for --dcqcn=1" },
    };
    const char *wrong = adapter.dcqcn ? adapter_wrong(adapter.congestion) : nullptr;

    for (const auto &rule : rules) {
        if (rule.wrong) {
            Refuse(rule.why);
        }
    }
    if (wrong) {
        Refuse("--congestion: no such parameter or value: " + std::string(wrong));
    }
}

} // namespace qhca
