/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "workload.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "frame.h"
#include "number.h"

namespace qhca
{

uint32_t Flow::Messages() const
{
    return static_cast<uint32_t>((bytes + message - 1) / message);
}

uint32_t Flow::Length(uint32_t k) const
{
    return static_cast<uint32_t>(
        std::min<uint64_t>(message, bytes - static_cast<uint64_t>(k) * message));
}

namespace
{

const double MAX_START = 1e9;           /* us */

struct Wanted
{
    uint32_t hosts;
    uint64_t bytes;
    uint32_t message;
    uint64_t seed;
};

Flow Plain(const Wanted &w, uint32_t src, uint32_t dst, uint64_t bytes)
{
    Flow f;

    f.src = src;
    f.dst = dst;
    f.bytes = bytes;
    f.message = static_cast<uint32_t>(std::min<uint64_t>(w.message, bytes));
    return f;
}

/* All others send to the first. */
std::vector<Flow> Incast(const Wanted &w)
{
    std::vector<Flow> flows;

    for (uint32_t i = 1; i < w.hosts; i++) {
        flows.push_back(Plain(w, i, 0, w.bytes));
    }
    return flows;
}

/* Everybody sends to another, and gets from another: one cycle (Sattolo). */
std::vector<Flow> Permutation(const Wanted &w)
{
    std::vector<uint32_t> to(w.hosts);
    std::vector<Flow> flows;
    uint64_t random = w.seed;

    std::iota(to.begin(), to.end(), 0);
    for (uint32_t i = w.hosts - 1; i > 0; i--) {
        random = Mix(random);
        std::swap(to[i], to[random % i]);
    }
    for (uint32_t i = 0; i < w.hosts; i++) {
        flows.push_back(Plain(w, i, to[i], w.bytes));
    }
    return flows;
}

/* Everybody sends each other its part of the data, to the next one first. */
std::vector<Flow> AllToAll(const Wanted &w)
{
    uint64_t part = std::max<uint64_t>(w.bytes / w.hosts, 1);
    std::vector<Flow> flows;

    if (w.hosts > MAX_FLOWS / 2) {
        throw std::runtime_error("too many hosts for all-to-all");
    }
    for (uint32_t i = 0; i < w.hosts; i++) {
        for (uint32_t step = 1; step < w.hosts; step++) {
            flows.push_back(Plain(w, i, (i + step) % w.hosts, part));
        }
    }
    return flows;
}

/*
 * All-reduce in a ring: in each of 2 (n - 1) steps everybody passes on the part
 * of the data that came in the step before.
 */
std::vector<Flow> RingAllReduce(const Wanted &w)
{
    uint64_t part = std::max<uint64_t>(w.bytes / w.hosts, 1);
    std::vector<Flow> flows;

    if (part > w.message) {
        throw std::runtime_error("a step's part must fit into a message");
    }
    for (uint32_t i = 0; i < w.hosts; i++) {
        Flow f = Plain(w, i, (i + 1) % w.hosts, part * 2 * (w.hosts - 1));

        f.message = static_cast<uint32_t>(part);
        f.after[0] = (i + w.hosts - 1) % w.hosts;
        f.lag = 1;
        flows.push_back(f);
    }
    return flows;
}

/*
 * All-reduce in a binary tree: each message goes up when it has come from both
 * children, and from the root down again.
 */
std::vector<Flow> TreeAllReduce(const Wanted &w)
{
    uint32_t n = w.hosts;
    std::vector<Flow> flows;

    /* Flow i - 1 goes up from host i, and n - 1 + i - 1 down to it. */
    for (uint32_t i = 1; i < n; i++) {
        Flow f = Plain(w, i, (i - 1) / 2, w.bytes);

        for (uint32_t c = 0; c < 2; c++) {
            f.after[c] = 2 * i + 1 + c < n ? 2 * i + c : Flow::NONE;
        }
        flows.push_back(f);
    }
    for (uint32_t i = 1; i < n; i++) {
        uint32_t parent = (i - 1) / 2;
        Flow f = Plain(w, parent, i, w.bytes);

        if (parent) {
            f.after[0] = n - 1 + parent - 1;
        } else {
            f.after[0] = 0;
            f.after[1] = n > 2 ? 1 : Flow::NONE;
        }
        flows.push_back(f);
    }
    return flows;
}

const std::map<std::string, std::vector<Flow> (*)(const Wanted &)> makers = {
    { "incast", Incast },
    { "permutation", Permutation },
    { "all-to-all", AllToAll },
    { "ring-allreduce", RingAllReduce },
    { "tree-allreduce", TreeAllReduce },
};

/* A line is: time in us, source, destination, bytes; # begins a comment. */
std::vector<Flow> Trace(const std::string &path, const Wanted &w)
{
    std::ifstream file(path);
    std::vector<Flow> flows;
    std::string line;

    if (!file) {
        throw std::runtime_error("no workload " + path + "; there are: " +
                                 WorkloadNames() + ", and traces in files");
    }
    for (unsigned number = 1; std::getline(file, line); number++) {
        std::istringstream words(line.substr(0, line.find('#')));
        std::string us, word, more;
        uint64_t number_of[3] = {};
        const uint64_t &src = number_of[0], &dst = number_of[1];
        const uint64_t &bytes = number_of[2];
        double start;
        bool good;

        if (!(words >> us)) {
            continue;
        }
        good = ParseDecimal(us, &start) && start <= MAX_START;
        for (uint64_t &value : number_of) {
            good = words >> word && ParseWhole(word, &value) && good;
        }
        if (!good || words >> more || src >= w.hosts || dst >= w.hosts ||
            src == dst || !bytes || bytes > MAX_BYTES) {
            throw std::runtime_error(path + ": line " + std::to_string(number));
        }
        flows.push_back(Plain(w, static_cast<uint32_t>(src),
                              static_cast<uint32_t>(dst), bytes));
        flows.back().start = static_cast<uint64_t>(start * 1000);
    }
    if (!file.eof() || flows.empty()) {
        throw std::runtime_error(path + ": there is nothing to send");
    }
    return flows;
}

/* Check that the flows can be counted, and that hosts have QPs for them. */
void Check(const std::vector<Flow> &flows, uint32_t hosts)
{
    std::vector<uint32_t> ends(hosts);
    uint64_t bytes = 0;

    for (const Flow &f : flows) {
        bytes += std::min(f.bytes, MAX_BYTES + 1);
        if (bytes > MAX_BYTES || f.bytes / f.message >= UINT32_MAX) {
            throw std::runtime_error("too many bytes");
        }
        if (++ends[f.src] > MAX_FLOWS || ++ends[f.dst] > MAX_FLOWS) {
            throw std::runtime_error("more than " + std::to_string(MAX_FLOWS) +
                                     " flows at a host");
        }
    }
}

} // namespace

std::string WorkloadNames()
{
    std::string names;

    for (const auto &maker : makers) {
        names += (names.empty() ? "" : ", ") + maker.first;
    }
    return names;
}

std::vector<Flow> MakeWorkload(const std::string &name, uint32_t hosts,
                               uint64_t bytes, uint32_t message, uint64_t seed)
{
    const Wanted wanted = { hosts, bytes, message, seed };
    auto maker = makers.find(name);

    if (name == "idle") {
        return {};
    }
    if (hosts < 2 || !bytes || !message) {
        throw std::runtime_error("a workload needs two hosts, and bytes");
    }
    std::vector<Flow> flows = maker != makers.end() ? maker->second(wanted) :
                                                      Trace(name, wanted);

    Check(flows, hosts);
    return flows;
}

} // namespace qhca
