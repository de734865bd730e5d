#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Effects of congestion, pauses, loss and a slow host on a cluster, see Documentation/clusters.rst.

  study.py [NAME…]       run these studies, or all, and keep what is drawn of them
  study.py --draw DIR    draw what is kept

The figures are of simulated time: any machine gets the same.
"""

import json
import os
import sys

sys.dont_write_bytecode = True
sys.path += [os.path.join(os.path.dirname(os.path.abspath(__file__)), *part)
             for part in (('..',), ('..', 'bench'))]
# pylint: disable=wrong-import-position
import draw             # noqa: E402
import simulator        # noqa: E402
from benchlib import plots          # noqa: E402
from vmlib.build import SCRIPTS     # noqa: E402

KEPT = os.path.join(os.path.dirname(SCRIPTS), 'Documentation/results/clusters.json')
POINTS = 60         # of a line

# Adapters' defaults, where the device has the paper's.
ADAPTERS = 'np_min_time_between_cnps=4,rp_time_reset=300,rp_ai_rate=5,rp_hai_rate=50'
MANY = {'hosts': 257, 'topology': 'star', 'bytes': 4 << 20, 'pfc': '100:50', 'memory': 64000000,
        'width': 500000}
RING = {'hosts': 64, 'topology': 'leaf-spine', 'radix': 8, 'workload': 'ring-allreduce',
        'bytes': 4 << 20}
PAIRS = {**RING, 'workload': 'permutation'}
STREAM = {'hosts': 2, 'topology': 'star', 'bytes': 256 << 20, 'window': 16}


def run(**options):
    return simulator.run({'hollow': 1, **options})


def note(run_, *names):
    """One line of a table."""
    return {'ms': run_.values['time_ns'] / 1e6, 'complete': run_.ok,
            **{name: run_.values[name] for name in names}}


def incast():
    """256 hosts send to one: the queue, and what it takes to shorten it."""
    lines, table = [], {}
    for label, options in (('none', {'dcqcn': 0}), ("the paper's parameters", {'dcqcn': 1}),
                           ("adapters' parameters", {'dcqcn': 1, 'congestion': ADAPTERS})):
        result = run(**MANY, **options)
        lines.append((label, draw.over_time(result, 'queue')))
        late = [row for row in result.series if row['end_ns'] > 10e6]
        table[label] = {**note(result, 'np_cnp_sent'),
                        'queue after 10 ms': max(row['queue'] for row in late),
                        'pauses after 10 ms': sum(row['paused'] for row in late)}
    return table, [draw.Plot('cluster-incast', '256 to 1: the queue, by congestion control',
                             'ms simulated', 'bytes', tuple(lines))]


def storm():
    """A host with a cable of 10 Gbit/s among others with 100: what it costs bystanders."""
    lines, table = [], {}
    for pfc in ('0:0', '100:50'):
        for dcqcn in (0, 1):
            label = ('pauses' if pfc != '0:0' else 'no pauses') + (', DCQCN' if dcqcn else '')
            options = {'pfc': pfc, 'dcqcn': dcqcn}
            whole, grey = run(**PAIRS, **options), run(**PAIRS, grey='5:10000', **options)
            others = [row for row in grey.flows if 5 not in (row['source'], row['destination'])]
            before = {row['flow']: row['end_ns'] - row['start_ns'] for row in whole.flows}
            slower = sorted((row['end_ns'] - row['start_ns']) / before[row['flow']]
                            for row in others)
            table[label] = {**note(grey, 'paused'), 'bystanders slower by 5 %': sum(
                ratio > 1.05 for ratio in slower), 'worst': slower[-1]}
            lines.append((label, [(ratio, 100 * (at + 1) / len(slower))
                                  for at, ratio in enumerate(slower)]))
    return table, [draw.Plot('cluster-storm', 'Flows that have nothing to do with the slow host',
                             'time, as a multiple of that without a slow host', '% of the flows',
                             tuple(lines))]


def grey():
    """One slow cable in an all-reduce of 64 hosts."""
    speeds = (100, 75, 50, 25, 10)
    results = {speed: run(**RING, grey=f'5:{speed}000') for speed in speeds}
    points = [(speed, results[speed].values['time_ns'] / 1e6) for speed in speeds]
    return ({f'{speed} Gbit/s': note(result) for speed, result in results.items()},
            [draw.Plot('cluster-grey', 'All-reduce of 4 MiB in a ring of 64, one cable slower',
                       'Gbit/s of that cable', 'ms', (('time', points),))])


def loss():
    """Go-back-N: how much of a stream is left when frames get lost."""
    lines, table = [], {}
    for delay in (1000, 10000, 50000):
        points = []
        for percent in (0.001, 0.01, 0.1, 0.5, 1):
            result = run(**STREAM, loss=percent, delay=delay, timeout=10)
            rate = result.values['bytes'] * 8 / max(result.values['time_ns'], 1)
            points.append((percent, rate))
            table[f'{percent} %, {delay / 1000:g} us a cable'] = {
                **note(result, 'lost', 'retransmit', 'timeout'), 'Gbit/s': rate}
        lines.append((f'{delay / 1000:g} us a cable', points))
    return table, [draw.Plot('cluster-loss', 'One stream at 100 Gbit/s', '% of frames lost',
                             'Gbit/s', tuple(lines), log=True)]


STUDIES = {study.__name__: study for study in (incast, storm, grey, loss)}


def show(name, table):
    print(f'{name}: {STUDIES[name].__doc__}')
    for label, row in table.items():
        print(f'  {label}: ' + ', '.join(
            f'{key} {value:.4g}' if isinstance(value, float) else f'{key} {value}'
            for key, value in row.items()))


def kept():
    if not os.path.exists(KEPT):
        return {}
    with open(KEPT, encoding='utf-8') as file:
        return json.load(file)


def keep(drawn):
    """Lines of a plot are lines of the file."""
    out = []
    for name, plot in sorted(drawn.items()):
        lines = ',\n  '.join(json.dumps(line) for line in plot.pop('lines'))
        out.append(f' {json.dumps(name)}: {json.dumps(plot)[:-1]}, "lines": [\n  {lines}]}}')
    with open(KEPT, 'w', encoding='utf-8') as file:
        file.write('{\n' + ',\n'.join(out) + '\n}\n')


def main(argv):
    drawn = kept()
    if argv[:1] == ['--draw']:
        os.makedirs(argv[1], exist_ok=True)
        plots.gnuplot(argv[1], [draw.script(draw.Plot(name, **plot), plots.TERMINALS[:1])
                                for name, plot in drawn.items()])
        return
    for name in argv or STUDIES:
        table, figures = STUDIES[name]()
        show(name, table)
        for plot in figures:
            drawn[plot.name] = {
                'title': plot.title, 'xlabel': plot.xlabel, 'ylabel': plot.ylabel,
                'log': plot.log, 'lines': [
                    [label, [[plots.rounded(x), plots.rounded(y)]
                             for x, y in draw.thin(points, POINTS)]]
                    for label, points in plot.lines]}
    keep(drawn)


if __name__ == '__main__':
    if '--help' in sys.argv:
        print(__doc__)
    else:
        main(sys.argv[1:])
