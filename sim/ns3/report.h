/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca cluster: what has happened, and when. */
#ifndef QHCA_SIM_REPORT_H
#define QHCA_SIM_REPORT_H

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "port.h"
#include "workload.h"

namespace qhca
{

class Report
{
public:
    enum Counter { MARKED, LOST, PAUSED, RESUMED, FRAMES, ERRORS, NUM_COUNTERS };

    /* @width: ns of a line in the table over time; twice that if it gets long. */
    Report(uint64_t width, bool progress);
    void Start(const std::vector<Flow> &flows);

    void Count(Counter which);
    /* A queue has this many bytes. */
    void Queue(uint32_t bytes);
    void Posted(uint32_t flow);
    void Received(uint32_t flow, uint32_t bytes);
    /* A host's share of the digest, in which the order of hosts is none. */
    void Digest(uint64_t value) { m_digest += value; }
    void Host(const std::string &name, uint64_t value);

    /*
     * Sum up over the ranks; the first prints it, and writes tables to folder
     * @out, if that is set. Returns whether all flows have come through; throws
     * std::runtime_error if a table cannot be written.
     */
    bool Finish(const std::string &out, double wall, double engine);

private:
    struct Line
    {
        uint64_t count[NUM_COUNTERS] = {}, bytes = 0, queue = 0;
    };

    Line &Current();
    void Widen();
    void Gather();
    void Write(const std::string &folder) const;
    void WriteFlows(std::ostream &file) const;
    void WriteSeries(std::ostream &file) const;
    void Progress();

    uint64_t m_width;
    const bool m_progress;
    std::vector<Flow> m_flows;
    std::vector<uint64_t> m_begin, m_end, m_got;
    std::vector<Line> m_lines;
    uint64_t m_total[NUM_COUNTERS] = {}, m_bytes = 0, m_wanted = 0;
    uint64_t m_queue = 0, m_digest = 0;
    std::vector<std::pair<std::string, uint64_t>> m_host;
    std::chrono::steady_clock::time_point m_shown;
};

} // namespace qhca

#endif /* QHCA_SIM_REPORT_H */
