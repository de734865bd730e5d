#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compare where DCQCN comes to rest with its papers' fluid model, and with its cycles; prints TAP.
--numbers: more flows and parameters."""

import os
import sys

sys.dont_write_bytecode = True
sys.path += [os.path.join(os.path.dirname(os.path.abspath(__file__)), *part)
             for part in (('..',), ('..', 'bench'))]
# pylint: disable=wrong-import-position
import dcqcn            # noqa: E402
import judge            # noqa: E402
import simulator        # noqa: E402
from test_cluster import check, tap         # noqa: E402

# The papers' links and packets. Their switch marks 1 % at 200 KB and everything beyond: the queue
# of eight flows would come to rest at half of that, and swings over the edge instead.
MTU, MBIT = 3, 40000
PAYLOAD, HEADERS, GAP = 1024, 58, 24
RED = 5000, 400000, 0.05
LONG = 5000, 7905000, 1     # that line, on to where all are marked
STEEP = '5:400:100'
BEGIN, END = 30, 90         # ms, of what is measured


def at_rest(flows, congestion, red='5:400:5'):
    """Share of marked packets, CNPs of a flow and second, mean queue, share of the link."""
    packet = PAYLOAD + HEADERS
    options = {'hosts': flows + 1, 'topology': 'star', 'rate': MBIT, 'mtu': MTU, 'dcqcn': 1,
               'hollow': 1, 'bytes': 2 * MBIT * 125 * END // flows, 'width': 1000,
               'memory': 64000000, 'red': red, 'congestion': congestion}
    runs = [simulator.run({**options, 'stop': stop}) for stop in (BEGIN, END)]
    lines = [row for row in runs[1].series if BEGIN * 1e6 < row['end_ns'] <= END * 1e6]
    seconds = (END - BEGIN) / 1000
    packets = sum(row['gbit_per_s'] for row in lines) * 1000 / 8 / PAYLOAD
    cnps = [run.values['np_cnp_sent'] for run in runs]
    check(len(lines) == (END - BEGIN) * 1000, len(lines))
    # A line has the longest queue with the packet that it is for, which a switch does not count.
    return (dcqcn.Rest(sum(row['marked'] for row in lines) / packets,
                       (cnps[1] - cnps[0]) / seconds / flows),
            sum(row['queue'] for row in lines) / len(lines) - packet,
            packets * (packet + GAP) / seconds / (MBIT * 125000))


def share_of(flows):
    packet = PAYLOAD + HEADERS
    return MBIT * 125000 * packet / (packet + GAP) / flows


def compare(model, flows, most, congestion='', **fields):
    """No figure is further from the model than that."""
    expected = model(dcqcn.Flow(share_of(flows), PAYLOAD + HEADERS, **fields))
    rest, queue, share = at_rest(flows, congestion)
    ratios = (rest.marked / expected.marked, rest.cnps / expected.cnps,
              queue / expected.queue(RED))
    print(f'# {flows} flows {congestion}: {rest.marked:.2%} of packets marked, {rest.cnps:.0f} '
          f'CNPs per second, {queue / 1000:.1f} KB; {model.__name__} {expected.marked:.2%}, '
          f'{expected.cnps:.0f}, {expected.queue(RED) / 1000:.1f}; {share:.1%} of the link')
    check(all(abs(ratio - 1) < most for ratio in ratios), f'{flows} flows: {ratios}')
    check(share > 0.985, f'{flows} flows: {share:.1%} of the link')


SHORT = {'congestion': 'np_min_time_between_cnps=4', 'interval': 4e-6}


def as_the_papers_say():
    """With CNPs for nearly all marks, which is what the fluid model has."""
    compare(dcqcn.fluid, 8, 0.10, **SHORT)


def as_cycles_say():
    compare(dcqcn.cycles, 8, 0.10)


def few_flows():
    compare(dcqcn.fluid, 4, 0.10, **SHORT)
    compare(dcqcn.cycles, 2, 0.10)
    compare(dcqcn.cycles, 4, 0.10)


def many_flows():
    compare(dcqcn.fluid, 16, 0.15, **SHORT)
    compare(dcqcn.cycles, 16, 0.15)


def up_to_256_flows():
    """Reaction points alone, which hear of marks without delay, so that nothing swings."""
    many = 4, 16, 64, 256
    for flows, (rest,) in zip(many, judge.run([f'{flows} 7905 100 soon' for flows in many])):
        expected = dcqcn.cycles(dcqcn.Flow(share_of(flows), PAYLOAD + HEADERS))
        model = judge.Outcome(expected.marked, expected.cnps, expected.queue(LONG), 1, 1)
        print(f'# {flows} flows: {rest}; cycles {model}')
        check(rest.apart(model) < 0.05, f'{flows} flows: {rest}, cycles {model}')
        check(rest.share > 0.99 and rest.fairness > 0.999, f'{flows} flows: {rest}')


def adapters_swing_like_that():
    """Whole adapters, and reaction points alone in a queue that takes its time."""
    many = 32, 64, 128
    for flows, (alone,) in zip(many, judge.run([f'{flows} 400 100' for flows in many])):
        rest, queue, share = at_rest(flows, '', STEEP)
        whole = judge.Outcome(rest.marked, rest.cnps, queue, share, 1)
        print(f'# {flows} flows: {whole}; alone {alone}; {share:.1%} and {alone.share:.1%}')
        check(whole.apart(alone) < 0.15, f'{flows} flows: {whole}, alone {alone}')


def parameters():
    compare(dcqcn.cycles, 4, 0.15, 'rp_ai_rate=10', step=10e6 / 8)
    compare(dcqcn.cycles, 4, 0.15, 'rp_time_reset=110', time=110e-6)
    compare(dcqcn.cycles, 4, 0.15, 'rp_threshold=3', stages=3)
    compare(dcqcn.cycles, 4, 0.15, 'rp_dce_tcp_g=16', gain=16 / dcqcn.GAIN)
    compare(dcqcn.fluid, 8, 0.10, 'np_min_time_between_cnps=4,rp_ai_rate=20', interval=4e-6,
            step=20e6 / 8)


def models_agree():
    """Of each other, where the interval of CNPs is short; and they move as they should."""
    flow = dcqcn.Flow(0.5e9, 1082, interval=1e-6)
    fluid, cycles = dcqcn.fluid(flow), dcqcn.cycles(flow)
    check(0.8 < fluid.marked / cycles.marked < 1, f'{fluid} {cycles}')
    for model in (dcqcn.fluid, dcqcn.cycles):
        marked = [model(dcqcn.Flow(4e9 / flows, 1082)).marked for flows in (2, 4, 8, 16)]
        check(marked == sorted(marked) and 2 < marked[1] / marked[0] < 3, marked)
        faster = model(dcqcn.Flow(1e9, 1082, step=2 * dcqcn.Flow.step)).cnps
        check(faster > 1.15 * model(dcqcn.Flow(1e9, 1082)).cnps, f'{model.__name__}: {faster}')


TESTS = (models_agree, as_the_papers_say, as_cycles_say, up_to_256_flows)
NUMBERS = (few_flows, many_flows, adapters_swing_like_that, parameters)


if __name__ == '__main__':
    sys.exit(tap(NUMBERS if '--numbers' in sys.argv else TESTS))
