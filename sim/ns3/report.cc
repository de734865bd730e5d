/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report.h"

#include <mpi.h>
#include <sys/resource.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include "ns3/mpi-interface.h"
#include "ns3/simulator.h"

using namespace ns3;

namespace qhca
{

static const char *const names[] = {
    "marked", "lost", "paused", "resumed", "frames", "errors",
};

static const std::size_t MAX_LINES = 1 << 18;

Report::Report(uint64_t width, bool progress)
    : m_width(width), m_progress(progress),
      m_shown(std::chrono::steady_clock::now())
{
}

void Report::Start(const std::vector<Flow> &flows)
{
    m_flows = flows;
    m_begin.assign(flows.size(), 0);
    m_end.assign(flows.size(), 0);
    m_got.assign(flows.size(), 0);
    for (const Flow &f : flows) {
        m_wanted += f.bytes;
    }
}

/* Make one line of two. */
void Report::Widen()
{
    std::size_t n = (m_lines.size() + 1) / 2;

    for (std::size_t i = 0; i < m_lines.size(); i++) {
        Line from = m_lines[i];
        Line &to = m_lines[i / 2];

        if (i % 2 == 0) {
            to = Line();
        }
        for (unsigned k = 0; k < NUM_COUNTERS; k++) {
            to.count[k] += from.count[k];
        }
        to.bytes += from.bytes;
        to.queue = std::max(to.queue, from.queue);
    }
    m_lines.resize(n);
    m_width *= 2;
}

Report::Line &Report::Current()
{
    while (Now() / m_width >= MAX_LINES) {
        Widen();
    }
    std::size_t at = static_cast<std::size_t>(Now() / m_width);

    if (at >= m_lines.size()) {
        m_lines.resize(at + 1);
    }
    return m_lines[at];
}

void Report::Count(Counter which)
{
    m_total[which]++;
    Current().count[which]++;
    if (which == FRAMES && m_progress && m_total[FRAMES] % 8192 == 0) {
        Progress();
    }
}

void Report::Queue(uint32_t bytes)
{
    Line &line = Current();

    line.queue = std::max<uint64_t>(line.queue, bytes);
    m_queue = std::max<uint64_t>(m_queue, bytes);
}

void Report::Posted(uint32_t flow)
{
    if (!m_begin[flow]) {
        m_begin[flow] = Now() + 1;          /* 0: not yet */
    }
}

void Report::Received(uint32_t flow, uint32_t bytes)
{
    m_got[flow] += bytes;
    m_bytes += bytes;
    Current().bytes += bytes;
    if (m_got[flow] == m_flows[flow].bytes) {
        m_end[flow] = Now() + 1;
    }
}

void Report::Host(const std::string &name, uint64_t value)
{
    for (auto &entry : m_host) {
        if (entry.first == name) {
            entry.second += value;
            return;
        }
    }
    m_host.emplace_back(name, value);
}

void Report::Progress()
{
    auto now = std::chrono::steady_clock::now();

    if (now - m_shown < std::chrono::seconds(1)) {
        return;
    }
    m_shown = now;
    std::fprintf(stderr, "%10.3f ms simulated, %3.0f %% of %" PRIu64 " MB\n",
                 static_cast<double>(qhca::Now()) / 1e6,
                 100.0 * static_cast<double>(m_bytes) /
                 static_cast<double>(std::max<uint64_t>(m_wanted, 1)),
                 m_wanted / 1000000);
}

/* ---- the end ---- */

static void Reduce(uint64_t *values, std::size_t n, MPI_Op op)
{
    MPI_Allreduce(MPI_IN_PLACE, values, static_cast<int>(n), MPI_UINT64_T, op,
                  MpiInterface::GetCommunicator());
}

void Report::Gather()
{
    uint64_t lines, width = m_width;

    if (!MpiInterface::IsEnabled()) {
        return;
    }
    Reduce(&width, 1, MPI_MAX);
    while (m_width < width) {
        Widen();
    }
    lines = m_lines.size();
    Reduce(&lines, 1, MPI_MAX);
    m_lines.resize(lines);
    for (Line &line : m_lines) {
        Reduce(line.count, NUM_COUNTERS, MPI_SUM);
        Reduce(&line.bytes, 1, MPI_SUM);
        Reduce(&line.queue, 1, MPI_MAX);
    }
    Reduce(m_begin.data(), m_begin.size(), MPI_MAX);
    Reduce(m_end.data(), m_end.size(), MPI_MAX);
    Reduce(m_total, NUM_COUNTERS, MPI_SUM);
    Reduce(&m_bytes, 1, MPI_SUM);
    Reduce(&m_queue, 1, MPI_MAX);
    Reduce(&m_digest, 1, MPI_SUM);
    for (auto &entry : m_host) {
        Reduce(&entry.second, 1, MPI_SUM);
    }
}

void Report::WriteFlows(std::ostream &file) const
{
    file << "flow,source,destination,bytes,start_ns,end_ns\n";
    for (std::size_t i = 0; i < m_flows.size(); i++) {
        file << i << ',' << m_flows[i].src << ',' << m_flows[i].dst << ','
             << m_flows[i].bytes;
        for (uint64_t at : { m_begin[i], m_end[i] }) {
            file << ',' << (at ? std::to_string(at - 1) : "");
        }
        file << '\n';
    }
}

void Report::WriteSeries(std::ostream &file) const
{
    file << "end_ns,gbit_per_s,queue";
    for (const char *name : names) {
        file << ',' << name;
    }
    file << '\n';
    for (std::size_t i = 0; i < m_lines.size(); i++) {
        file << (i + 1) * m_width << ','
             << static_cast<double>(m_lines[i].bytes) * 8 /
                static_cast<double>(m_width)
             << ',' << m_lines[i].queue;
        for (uint64_t count : m_lines[i].count) {
            file << ',' << count;
        }
        file << '\n';
    }
}

void Report::Write(const std::string &folder) const
{
    std::ofstream flows(folder + "/flows.csv"), series(folder + "/series.csv");

    WriteFlows(flows);
    WriteSeries(series);
    if (!flows.flush() || !series.flush()) {
        throw std::runtime_error("cannot write tables to " + folder);
    }
}

bool Report::Finish(const std::string &out, double wall, double engine)
{
    uint64_t open = 0, last = 0;
    struct rusage usage;

    Gather();
    for (std::size_t i = 0; i < m_flows.size(); i++) {
        open += !m_end[i];
        last = std::max(last, m_end[i]);
    }
    getrusage(RUSAGE_SELF, &usage);
    if (MpiInterface::IsEnabled() && MpiInterface::GetSystemId()) {
        return !open && !m_total[ERRORS];
    }
    std::printf("flows %zu\nunfinished %" PRIu64 "\nbytes %" PRIu64 "\n"
                "time_ns %" PRIu64 "\nqueue %" PRIu64 "\n", m_flows.size(),
                open, m_bytes, last ? last - 1 : 0, m_queue);
    for (unsigned i = 0; i < NUM_COUNTERS; i++) {
        std::printf("%s %" PRIu64 "\n", names[i], m_total[i]);
    }
    for (const auto &entry : m_host) {
        std::printf("%s %" PRIu64 "\n", entry.first.c_str(), entry.second);
    }
    std::printf("memory_mib %ld\nwall_s %.2f\nengine_s %.2f\ndigest %016" PRIx64
                "\n", usage.ru_maxrss / 1024, wall, engine, m_digest);
    if (!out.empty()) {
        Write(out);
    }
    return !open && !m_total[ERRORS];
}

} // namespace qhca
