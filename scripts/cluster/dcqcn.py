# SPDX-License-Identifier: GPL-2.0
"""Where DCQCN should come to rest, by its papers and by the course of a flow between two cuts.

All rates in bytes per second, all times in seconds.
"""

import math
from dataclasses import dataclass

GAIN = 1024         # of which rp_dce_tcp_g is a part
SAMPLES = 1000      # of the time between two notifications


@dataclass(frozen=True)
class Flow:
    """One of those that share a link, by rp_ and np_ parameters; rate: its share."""
    rate: float
    packet: int
    interval: float = 50e-6     # np_min_time_between_cnps
    alpha_time: float = 55e-6   # rp_dce_tcp_rtt
    time: float = 55e-6         # rp_time_reset
    bytes: int = 10485760       # rp_byte_reset
    stages: int = 5             # rp_threshold
    step: float = 40e6 / 8      # rp_ai_rate
    gain: float = 4 / GAIN      # rp_dce_tcp_g


@dataclass(frozen=True)
class Rest:
    """marked: share of the packets; cnps: of a flow, per second."""
    marked: float
    cnps: float

    def queue(self, red):
        """Bytes with which a switch marks that many; red: KMIN, KMAX, share at KMAX."""
        kmin, kmax, most = red
        return kmin + self.marked / most * (kmax - kmin)


def root(function):
    """Where a function that rises from below 0 to above it, in (0, 1), is 0."""
    low, high = 1e-7, 0.99
    for _ in range(50):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return low


def fluid(flow):
    """The fixed point of the fluid model of Zhu et al. (SIGCOMM 2015; ECN or Delay, 2016). It lets
    marks, not CNPs, end increases, so it has fewer of those if the interval is long."""
    rate = flow.rate / flow.packet

    def increases(p, packets):
        """Increases of a counter, for a packet, and how many of them raise the target."""
        none = packets * math.log1p(-p)     # of the chance that there is no mark
        each = p / math.expm1(-none) if none > -500 else 0
        return each, each * math.exp(flow.stages * none)

    def excess(p):
        marked = -math.expm1(flow.interval * rate * math.log1p(-p))
        alpha = -math.expm1(flow.alpha_time * rate * math.log1p(-p))
        by_bytes, by_time = (increases(p, packets)
                             for packets in (flow.bytes / flow.packet, flow.time * rate))
        both = [sum(pair) for pair in zip(by_bytes, by_time)]
        step = flow.step / flow.packet
        return alpha * marked ** 2 - flow.interval ** 2 * step * rate * both[0] * both[1]
    p = root(excess)
    return Rest(p, -math.expm1(flow.interval * rate * math.log1p(-p)) / flow.interval)


def climb(flow, start, alpha, length):
    """The rate after a cut and so much time, and the bytes sent in it."""
    target, rate, sent = start, start * (1 - alpha / 2), 0
    ticks = int(length / flow.time)
    for tick in range(1, ticks + 1):
        sent += rate * flow.time
        target += flow.step * (tick >= flow.stages)
        rate = (rate + target) / 2
    return rate, sent + rate * (length - ticks * flow.time)


def cycles(flow):
    """Where the cut and the climb after it are the same, on average: the time between two CNPs is
    the interval and, marks being independent, an exponential one. Without bytes as a counter."""
    def times(p):
        wait = -flow.packet / (math.log1p(-p) * flow.rate)
        return [flow.interval - math.log((at + 0.5) / SAMPLES) * wait for at in range(SAMPLES)]

    def gained(p):
        lengths = times(p)
        kept = sum((1 - flow.gain) ** (1 + int(length / flow.alpha_time))
                   for length in lengths) / SAMPLES
        # Just before a CNP; it adds the gain.
        alpha = flow.gain * kept / (1 - kept) / (1 - flow.gain)
        start = flow.rate
        for _ in range(4):      # until the mean is the share
            ends = [climb(flow, start, alpha, length) for length in lengths]
            change = sum(rate for rate, _ in ends) / SAMPLES - start
            start *= flow.rate * sum(lengths) / sum(sent for _, sent in ends)
        return -change
    p = root(gained)
    return Rest(p, SAMPLES / sum(times(p)))
