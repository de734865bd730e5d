/* SPDX-License-Identifier: GPL-2.0 */
/* The reaction points of the HPCC paper's simulator, whose source hpcc.inc is. */
#include "ns3.h"
#include "rp.h"

static Time NanoSeconds(uint64_t ns)
{
    return ns;
}

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

/*
 * The parameters are the device's defaults, but for two: an increase counts after it, so the fifth
 * needs threshold 4; and increases by time alone would leap.
 */
class RdmaHw
{
  public:
    double m_g = 4 / 1024.0, m_rateOnFirstCNP = 1, m_alpha_resume_interval = 55;
    double m_rpgTimeReset = 55, m_rateDecreaseInterval = 4;
    uint32_t m_rpgThreshold = 4;
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

#include "hpcc.inc"

static QbbNetDevice device;
static RdmaHw hw;
static std::vector<RdmaQueuePair> flow;

void rp_start(unsigned flows, unsigned mbit)
{
    device.rate = 1000000ull * mbit;
    hw.m_nic.push_back({&device});
    flow.resize(flows);
    for (RdmaQueuePair &one : flow) {
        one.m_rate = one.mlx.m_targetRate = device.rate;
    }
}

void rp_cnp(unsigned which, uint64_t now)
{
    Simulator::Run(now);
    hw.cnp_received_mlx(&flow[which]);
}

uint64_t rp_sent(unsigned which, uint64_t now, uint32_t)
{
    Simulator::Run(now);
    return flow[which].m_rate.GetBitRate() / 1000;
}
