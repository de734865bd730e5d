/* SPDX-License-Identifier: GPL-2.0 */
/* The parts of ns-3 that the models need; each model is a program of its own. */
#ifndef QHCA_SIM_JUDGE_NS3_H
#define QHCA_SIM_JUDGE_NS3_H

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

template <typename T> using Ptr = T *;
using Time = uint64_t;
using EventId = uint64_t;

static Time MicroSeconds(double us)
{
    return static_cast<Time>(us * 1000);
}

class DataRate
{
  public:
    DataRate(uint64_t bps = 0) : m_bps(bps) {}
    DataRate(const char *) {}       // the only one is 0bps
    uint64_t GetBitRate() const { return m_bps; }
    DataRate operator*(double by) const { return static_cast<uint64_t>(m_bps * by); }
    DataRate operator/(double by) const { return static_cast<uint64_t>(m_bps / by); }
    DataRate operator+(DataRate other) const { return m_bps + other.m_bps; }
    DataRate &operator+=(DataRate other) { return *this = *this + other; }
    DataRate &operator/=(double by) { return *this = *this / by; }
    bool operator<(DataRate other) const { return m_bps < other.m_bps; }
    bool operator>(DataRate other) const { return m_bps > other.m_bps; }

  private:
    uint64_t m_bps = 0;
};

static inline DataRate operator*(double by, DataRate rate)
{
    return rate * by;
}

struct Simulator
{
    template <typename T, typename... A>
    static EventId Schedule(Time in, void (T::*what)(A...), T *on, A... with)
    {
        auto work = [=] { (on->*what)(with...); };

        due[++last] = now + in;
        events[{now + in, last}] = work;
        return last;
    }
    static void Cancel(EventId id)
    {
        auto at = due.find(id);

        if (at != due.end()) {
            events.erase({at->second, id});
            due.erase(at);
        }
    }
    static void Run(Time until)
    {
        while (!events.empty() && events.begin()->first.first <= until) {
            auto first = events.begin();
            auto work = first->second;

            now = first->first.first;
            due.erase(first->first.second);
            events.erase(first);
            work();
        }
        now = until;
    }

  private:
    static Time now;
    static std::map<std::pair<Time, EventId>, std::function<void()>> events;
    static std::unordered_map<EventId, Time> due;
    static EventId last;
};
Time Simulator::now;
std::map<std::pair<Time, EventId>, std::function<void()>> Simulator::events;
std::unordered_map<EventId, Time> Simulator::due;
EventId Simulator::last;

#endif
