/* SPDX-License-Identifier: GPL-2.0 */
/* The reaction points of the DCQCN paper's simulator, whose source authors.inc is. */
#include <array>

#include "ns3.h"
#include "rp.h"

/*
 * The parameters are the device's defaults. One hop per flow: the limit that a switch sets there.
 */
class QbbNetDevice
{
  public:
    static const unsigned maxHop = 1;
    template <typename T> using Each = std::vector<std::array<T, maxHop>>;

    double m_g = 4 / 1024.0, m_alpha_resume_interval = 55, m_rpgTimeReset = 55;
    uint32_t m_rpgThreshold = 5;
    int64_t m_bc = 10485760;
    bool m_EcnClampTgtRate = true, m_EcnClampTgtRateAfterTimeInc = false;
    DataRate m_minRate = 10000000, m_rai = 40000000, m_rhai = 200000000, m_bps;
    std::vector<DataRate> m_rate;
    Each<DataRate> m_rateAll, m_targetRate;
    Each<uint32_t> m_rpByteStage, m_rpTimeStage, m_rpStage;
    Each<int64_t> m_txBytes;
    Each<double> m_alpha, m_rpWhile;
    Each<EventId> m_rptimer, m_resumeAlpha;

    void rpr_adjust_rates(uint32_t fIndex, uint32_t hop);
    void rpr_fast_recovery(uint32_t fIndex, uint32_t hop);
    void rpr_active_increase(uint32_t fIndex, uint32_t hop);
    void rpr_active_byte(uint32_t fIndex, uint32_t hop);
    void rpr_active_time(uint32_t fIndex, uint32_t hop);
    void rpr_fast_byte(uint32_t fIndex, uint32_t hop);
    void rpr_fast_time(uint32_t fIndex, uint32_t hop);
    void rpr_hyper_byte(uint32_t fIndex, uint32_t hop);
    void rpr_hyper_time(uint32_t fIndex, uint32_t hop);
    void rpr_active_select(uint32_t fIndex, uint32_t hop);
    void rpr_hyper_increase(uint32_t fIndex, uint32_t hop);
    void AdjustRates(uint32_t fIndex, uint32_t hop, DataRate increase);
    void rpr_cnm_received(uint32_t findex, uint32_t hop, double fraction);
    void rpr_timer_wrapper(uint32_t fIndex, uint32_t hop);
    void ResumeAlpha(uint32_t fIndex, uint32_t hop);
};

#include "authors.inc"

static QbbNetDevice device;

void rp_start(unsigned flows, unsigned mbit)
{
    QbbNetDevice &d = device;

    d.m_bps = 1000000ull * mbit;
    d.m_rate.assign(flows, d.m_bps);
    d.m_rateAll.assign(flows, {d.m_bps});
    d.m_targetRate.assign(flows, {d.m_bps});
    d.m_txBytes.assign(flows, {d.m_bc});
    d.m_alpha.assign(flows, {1});
    d.m_rpWhile.assign(flows, {0});
    for (auto *each : {&d.m_rpByteStage, &d.m_rpTimeStage, &d.m_rpStage}) {
        each->assign(flows, {0});
    }
    for (auto *each : {&d.m_rptimer, &d.m_resumeAlpha}) {
        each->assign(flows, {0});
    }
}

void rp_cnp(unsigned which, uint64_t now)
{
    Simulator::Run(now);
    device.rpr_cnm_received(which, 0, 1);
    device.m_rate[which] = device.m_rateAll[which][0];
}

/* A packet has left: do the same as TransmitStart() there. */
uint64_t rp_sent(unsigned which, uint64_t now, uint32_t bytes)
{
    using By = void (QbbNetDevice::*)(uint32_t, uint32_t);
    static const By by_bytes[] = {nullptr, &QbbNetDevice::rpr_fast_byte,
                                  &QbbNetDevice::rpr_active_byte, &QbbNetDevice::rpr_hyper_byte};
    By by;

    Simulator::Run(now);
    by = by_bytes[device.m_rpStage[which][0]];
    if (by && (device.m_txBytes[which][0] -= bytes) < 0) {
        (device.*by)(which, 0);
    }
    return device.m_rate[which].GetBitRate() / 1000;
}
