# SPDX-License-Identifier: GPL-2.0
"""Tables, plots and pages of cluster runs."""

import csv
import os
from dataclasses import dataclass

from benchlib import plots


@dataclass(frozen=True)
class Plot:
    """lines: (label, points); y is logarithmic with log."""
    name: str
    title: str
    xlabel: str
    ylabel: str
    lines: tuple
    log: bool = False


def script(plot, terminals=plots.TERMINALS):
    out = ['reset', f'set title "{plot.title}"', 'set grid', 'set key above',
           f'set xlabel "{plot.xlabel}"', f'set ylabel "{plot.ylabel}"', 'set format y "%.0s%c"']
    out += ['set logscale x'] if plot.log else ['set yrange [0:*]']
    drawn = []
    for number, (label, points) in enumerate(plot.lines):
        name = f'${plot.name.replace("-", "_")}_{number}'
        out += [f'{name} << EOD', *(f'{x:g} {y:g}' for x, y in points), 'EOD']
        drawn.append(f'{name} using 1:2 with lines linewidth 2 title "{label}"')
    for suffix, terminal in terminals:
        out += [f'set terminal {terminal} noenhanced', f'set output "{plot.name}.{suffix}"',
                'plot ' + ', \\\n     '.join(drawn), 'unset output']
    return '\n'.join(out) + '\n'


def thin(points, most=400):
    """The largest of so many neighbours that few points are left."""
    step = max(1, -(-len(points) // most))
    return [(points[at][0], max(y for _, y in points[at:at + step]))
            for at in range(0, len(points), step)]


def over_time(run, name):
    return thin([(row['end_ns'] / 1e6, row[name]) for row in run.series])


def completion(run):
    """Per cent of the flows that have come through by then, us."""
    times = run.time()
    return [(time / 1000, 100 * (at + 1) / len(times)) for at, time in enumerate(times)]


def plots_of(run):
    ms = 'ms simulated'
    all_plots = (
        Plot('goodput', 'Messages received', ms, 'Gbit/s',
             (('all hosts', over_time(run, 'gbit_per_s')),)),
        Plot('queue', 'The longest queue in a switch', ms, 'bytes',
             (('bytes', over_time(run, 'queue')),)),
        Plot('signals', 'What switches do about it', ms, 'frames',
             tuple((name, over_time(run, name)) for name in ('marked', 'lost', 'paused'))),
        Plot('flows', 'Flows that are complete', 'us after their start', '%',
             (('flows', thin(completion(run))),), log=True),
    )
    return [plot for plot in all_plots if any(points for _, points in plot.lines)]


def save(path, rows):
    with open(path, 'w', encoding='ascii', newline='') as file:
        writer = csv.DictWriter(file, rows[0] if rows else [], lineterminator='\n')
        writer.writeheader()
        writer.writerows(rows)


def report(directory, run):
    """flows.csv, series.csv, plots, index.html."""
    save(os.path.join(directory, 'flows.csv'), run.flows)
    save(os.path.join(directory, 'series.csv'), run.series)
    drawn = plots_of(run)
    if drawn:
        plots.gnuplot(directory, [script(plot) for plot in drawn])
    text = '\n'.join(f'{name} {value}' for name, value in (run.options | run.values).items())
    plots.page(directory, text, drawn, 'a cluster')
