/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Flows into one queue, whose rates are those of the engine's reaction points, or of the model of
 * the HPCC paper's simulator, whose source mlx.inc is; see scripts/cluster/by_rdma_hw.py. The
 * classes before that are what it needs of ns-3.
 *
 * judge FLOWS engine|model: prints the share of marked packets, CNPs of a flow and second, and
 * the mean queue in bytes.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include "rp.h"

static uint64_t now;

/* ---- ns-3 ---- */

template <typename T> using Ptr = T *;
using Time = uint64_t;
using EventId = uint64_t;

static Time MicroSeconds(double us)
{
    return static_cast<Time>(us * 1000);
}

static Time NanoSeconds(uint64_t ns)
{
    return ns;
}

class DataRate
{
  public:
    DataRate(uint64_t bps = 0) : m_bps(bps) {}
    uint64_t GetBitRate() const { return m_bps; }
    DataRate operator*(double by) const { return static_cast<uint64_t>(m_bps * by); }
    DataRate operator/(double by) const { return static_cast<uint64_t>(m_bps / by); }
    DataRate operator+(DataRate other) const { return m_bps + other.m_bps; }
    DataRate &operator+=(DataRate other) { return *this = *this + other; }
    bool operator<(DataRate other) const { return m_bps < other.m_bps; }
    bool operator>(DataRate other) const { return m_bps > other.m_bps; }

  private:
    uint64_t m_bps;
};

static DataRate operator*(double by, DataRate rate)
{
    return rate * by;
}

struct Simulator
{
    static std::map<std::pair<Time, EventId>, std::function<void()>> events;
    static EventId last;

    template <typename T, typename A>
    static EventId Schedule(Time in, void (T::*what)(A), T *on, A with)
    {
        events[{now + in, ++last}] = [=] { (on->*what)(with); };
        return last;
    }
    static void Cancel(EventId id)
    {
        for (auto at = events.begin(); at != events.end(); ++at) {
            if (at->first.second == id) {
                events.erase(at);
                return;
            }
        }
    }
    static void Run(Time until)
    {
        while (!events.empty() && events.begin()->first.first <= until) {
            auto work = events.begin()->second;

            now = events.begin()->first.first;
            events.erase(events.begin());
            work();
        }
        now = until;
    }
};
std::map<std::pair<Time, EventId>, std::function<void()>> Simulator::events;
EventId Simulator::last;

struct QbbNetDevice
{
    DataRate rate;
    DataRate GetDataRate() const { return rate; }
};

struct RdmaQueuePair
{
    DataRate m_rate;
    struct {
        DataRate m_targetRate;
        EventId m_eventUpdateAlpha;
        double m_alpha;
        bool m_alpha_cnp_arrived, m_first_cnp = true;
        EventId m_eventDecreaseRate;
        bool m_decrease_cnp_arrived;
        uint32_t m_rpTimeStage;
        EventId m_rpTimer;
    } mlx;
};

/* The parameters are the device's defaults; increases by time alone never leap there. */
class RdmaHw
{
  public:
    double m_g = 4 / 1024.0, m_rateOnFirstCNP = 1, m_alpha_resume_interval = 55;
    double m_rpgTimeReset = 55, m_rateDecreaseInterval = 4;
    uint32_t m_rpgThreshold = 5;
    bool m_EcnClampTgtRate = true;
    DataRate m_minRate = 10000000, m_rai = 40000000, m_rhai = 40000000;
    struct Nic { Ptr<QbbNetDevice> dev; };
    std::vector<Nic> m_nic;

    uint32_t GetNicIdxOfQp(Ptr<RdmaQueuePair>) { return 0; }
    void UpdateAlphaMlx(Ptr<RdmaQueuePair> q);
    void ScheduleUpdateAlphaMlx(Ptr<RdmaQueuePair> q);
    void cnp_received_mlx(Ptr<RdmaQueuePair> q);
    void CheckRateDecreaseMlx(Ptr<RdmaQueuePair> q);
    void ScheduleDecreaseRateMlx(Ptr<RdmaQueuePair> q, uint32_t delta);
    void RateIncEventTimerMlx(Ptr<RdmaQueuePair> q);
    void RateIncEventMlx(Ptr<RdmaQueuePair> q);
    void FastRecoveryMlx(Ptr<RdmaQueuePair> q);
    void ActiveIncreaseMlx(Ptr<RdmaQueuePair> q);
    void HyperIncreaseMlx(Ptr<RdmaQueuePair> q);
};

#include "mlx.inc"

/* ---- the network: that of scripts/cluster/test_dcqcn.py ---- */

static const double LINK = 40e9, KMIN = 5000, KMAX = 400000, MOST = 0.05;
static const uint32_t PACKET = 1082, WIRE = PACKET + 24;
static const Time MS = 1000000, BEGIN = 100 * MS, END = 600 * MS;
static const Time INTERVAL = 50000, WAY = 4000;

struct Flow
{
    Time next = 0, quiet = 0, cnp = UINT64_MAX;
    RdmaQueuePair qp{};
};

/* Return when the flow may send behind a packet at @at. */
static double Gap(RdmaHw *model, Flow &flow, unsigned number, Time at)
{
    uint64_t kbit = rp_sent(number, at, PACKET);
    double rate = model ? static_cast<double>(flow.qp.m_rate.GetBitRate()) : 1000.0 * kbit;

    return 8e9 * WIRE / (rate > 0 ? std::min(rate * WIRE / PACKET, LINK) : LINK);
}

int main(int argc, char **argv)
{
    unsigned flows = argc > 2 ? static_cast<unsigned>(std::atoi(argv[1])) : 0, marked = 0, cnps = 0;
    QbbNetDevice device{static_cast<uint64_t>(LINK)};
    RdmaHw hw, *model = argc > 2 && !std::strcmp(argv[2], "model") ? &hw : nullptr;
    std::vector<Flow> flow(flows);
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> chance(0, 1);
    double queue = 0, area = 0, packets = 0;
    Time last = 0;

    hw.m_nic.push_back({&device});
    rp_start(static_cast<unsigned>(LINK / 1e6));
    for (Flow &one : flow) {
        one.qp.m_rate = one.qp.mlx.m_targetRate = static_cast<uint64_t>(LINK);
    }
    while (flows && last < END) {
        unsigned which = 0;
        Time at;

        for (unsigned i = 1; i < flows; i++) {
            which = flow[i].next < flow[which].next ? i : which;
        }
        at = flow[which].next;
        for (unsigned i = 0; i < flows; i++) {
            if (flow[i].cnp <= at) {
                Simulator::Run(flow[i].cnp);
                model ? hw.cnp_received_mlx(&flow[i].qp) : rp_cnp(i, flow[i].cnp);
                flow[i].cnp = UINT64_MAX;
            }
        }
        Simulator::Run(at);
        queue = std::max(0.0, queue - static_cast<double>(at - last) * LINK / 8e9);
        if (at >= BEGIN) {
            area += queue * static_cast<double>(at - std::max(last, BEGIN));
            packets++;
        }
        last = at;
        if (queue >= KMAX || (queue > KMIN &&
                              chance(random) < MOST * (queue - KMIN) / (KMAX - KMIN))) {
            marked += at >= BEGIN;
            if (at >= flow[which].quiet) {
                flow[which].quiet = at + INTERVAL;
                flow[which].cnp = at + WAY;
                cnps += at >= BEGIN;
            }
        }
        queue += WIRE;
        flow[which].next = at + static_cast<Time>(Gap(model, flow[which], which, at));
    }
    std::printf("%g %g %g\n", marked / packets, 1e9 * cnps / (END - BEGIN) / std::max(flows, 1u),
                area / (END - BEGIN));
    return flows ? 0 : 2;
}
