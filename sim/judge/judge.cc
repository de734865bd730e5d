/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Flows into one queue, which are as fast as reaction points let them; see
 * scripts/cluster/by_models.py. The network is the same as in scripts/cluster/test_dcqcn.py.
 *
 * judge FLOWS KMAX PERCENT [soon]: a packet is marked by the queue that it meets, from 5 KB on, up
 * to PERCENT of them at KMAX KB. soon: senders hear of it as if the queue had no length.
 * Prints the share of marked packets, CNPs of a flow and second, the mean queue in bytes, the share
 * of the link that is used, and Jain's index of what the flows have sent.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <queue>
#include <random>
#include <tuple>
#include <vector>

#include "rp.h"

using Time = uint64_t;

static const double LINK = 40e9, KMIN = 5000;
static const uint32_t PACKET = 1082, WIRE = PACKET + 24;
static const Time MS = 1000000, BEGIN = 100 * MS;
static const Time INTERVAL = 50000, WAY = 4000;
static const unsigned WINDOW = 64;

/* A future event: a packet of a flow, or a CNP, which at the same time is before it. */
struct Event
{
    Time at;
    bool packet;
    unsigned flow;
    bool operator<(const Event &other) const
    {
        return std::tie(other.at, other.packet, other.flow) < std::tie(at, packet, flow);
    }
};

struct Flow
{
    Time quiet = 0;
    uint64_t all = 0;
    Time acked[WINDOW] = {};
    double sent = 0;
};

/* Counters from BEGIN on. */
struct Sums
{
    double area = 0, packets = 0, marked = 0, cnps = 0;
};

class Judge
{
  public:
    Judge(unsigned flows, double kmax, double most, bool soon)
        : m_kmax(kmax), m_most(most), m_soon(soon), m_end(BEGIN + (500 + 8000 / flows) * MS),
          m_flow(flows)
    {
        rp_start(flows, static_cast<unsigned>(LINK / 1e6));
        for (unsigned i = 0; i < flows; i++) {
            m_events.push({0, true, i});
        }
    }
    void Run()
    {
        while (m_last < m_end) {
            Event event = m_events.top();

            m_events.pop();
            if (event.packet) {
                Packet(event.at, event.flow);
            } else {
                rp_cnp(event.flow, event.at);
            }
        }
    }
    void Print() const
    {
        double seconds = (m_end - BEGIN) / 1e9, sum = 0, squares = 0;

        for (const Flow &flow : m_flow) {
            sum += flow.sent;
            squares += flow.sent * flow.sent;
        }
        std::printf("%g %g %g %g %g\n", m_sums.marked / m_sums.packets,
                    m_sums.cnps / seconds / m_flow.size(), m_sums.area / (m_end - BEGIN),
                    m_sums.packets * WIRE * 8 / LINK / seconds,
                    sum * sum / squares / m_flow.size());
    }

  private:
    void Packet(Time at, unsigned which);
    bool Marks()
    {
        return m_queue >= m_kmax || (m_queue > KMIN &&
                                   m_chance(m_random) < m_most * (m_queue - KMIN) / (m_kmax - KMIN));
    }

    double m_kmax, m_most, m_queue = 0;
    bool m_soon;
    Time m_end;     // later with few flows, which have fewer cuts
    Time m_last = 0;
    std::vector<Flow> m_flow;
    std::priority_queue<Event> m_events;
    std::mt19937_64 m_random{1};
    std::uniform_real_distribution<double> m_chance{0, 1};
    Sums m_sums;
};

void Judge::Packet(Time at, unsigned which)
{
    bool counts = at >= BEGIN;
    Flow &flow = m_flow[which];
    Time heard, next;
    double rate;

    m_queue = std::max(0.0, m_queue - static_cast<double>(at - m_last) * LINK / 8e9);
    if (counts) {
        m_sums.area += m_queue * static_cast<double>(at - std::max(m_last, BEGIN));
        m_sums.packets++;
        flow.sent++;
    }
    m_last = at;
    heard = at + WAY + (m_soon ? 0 : static_cast<Time>(m_queue * 8e9 / LINK));
    if (Marks()) {
        m_sums.marked += counts;
        if (at >= flow.quiet) {
            flow.quiet = at + INTERVAL;
            m_events.push({heard, false, which});
            m_sums.cnps += counts;
        }
    }
    m_queue += WIRE;
    rate = 1000.0 * rp_sent(which, at, PACKET);
    rate = rate > 0 ? std::min(rate * WIRE / PACKET, LINK) : LINK;
    next = at + static_cast<Time>(8e9 * WIRE / rate);
    flow.acked[flow.all++ % WINDOW] = heard;
    m_events.push({std::max(next, flow.acked[flow.all % WINDOW]), true, which});
}

int main(int argc, char **argv)
{
    int flows = argc == 4 || argc == 5 ? std::atoi(argv[1]) : 0;

    if (flows <= 0) {
        return 2;
    }
    Judge judge(static_cast<unsigned>(flows), 1000 * std::atof(argv[2]),
                std::atof(argv[3]) / 100, argc == 5);

    judge.Run();
    judge.Print();
    return 0;
}
