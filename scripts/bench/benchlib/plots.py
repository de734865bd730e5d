# SPDX-License-Identifier: GPL-2.0
"""The plots, by gnuplot, and the page that shows all of it."""

import html
import json
import math
import os
import shutil
import subprocess
import tempfile
import textwrap
from dataclasses import dataclass

from vmlib.build import CACHE, SCRIPTS

from .tables import LATENCIES, ONE, TWO

TERMINALS = (('svg', "svg size 840,520 font 'sans,13' background '#ffffff'"),
             ('png', "pngcairo size 840,520 font 'sans,11'"))
PER_DECADE = 40     # points of a distribution
# Plots of Documentation/performance.rst, and the file with their data, here and in the results of a
# run.
SHOWN = ('one-write', 'one-lat-read', 'one-qps', 'two-write')
KEPT = 'performance.json'
DOCUMENTS = os.path.join(os.path.dirname(SCRIPTS), 'Documentation/results')


@dataclass(frozen=True)
class Line:
    """The medians of one series; a single value is a level for all x."""
    label: str
    measurement: str
    subject: str
    series: str
    scale: float = 1


@dataclass(frozen=True)
class Plot:
    name: str
    title: str
    where: str
    lines: tuple
    xlabel: str
    ylabel: str
    sizes: bool = False     # x are sizes in bytes


@dataclass(frozen=True)
class Latency:
    """Percentiles of all latencies that have been measured; lines: (label, measurement,
    subject)."""
    name: str
    title: str
    where: str
    lines: tuple


def bandwidth(series):
    return Plot(f'one-{series}', f'{series.upper()} by size, one VM', ONE, (
        Line('qhca', 'sizes', 'qhca', series), Line('rdma_rxe', 'sizes', 'rxe', series),
        Line('limit: memcpy in the guest', 'sizes', 'machine', 'memcpy'),
        Line('limit: a system call for each 4 KiB', 'sizes', 'machine', 'syscall')),
        'bytes of a message', 'MiB/s', True)


def rate(name, title, xlabel):
    return Plot(f'one-{name}', title, ONE, (
        Line('qhca', name, 'qhca', name), Line('rdma_rxe', name, 'rxe', name),
        Line('limit: doorbells that do nothing', 'sizes', 'machine', 'doorbell')),
        xlabel, 'messages/s')


def pair_bandwidth(tool):
    return Plot(f'two-{tool}', f'{tool.upper()} by size, two VMs', TWO, (
        Line('qhca', f'{tool}-sizes', 'qhca', 'bandwidth'),
        Line('rdma_rxe over virtio-net', f'{tool}-sizes', 'rxe', 'bandwidth'),
        Line("TCP over qhca's network card", 'tcp', 'qhca', 'bandwidth'),
        Line('TCP over virtio-net', 'tcp', 'rxe', 'bandwidth')),
        'bytes of a message', 'MiB/s', True)


def latency(where, tool):
    """Polling, and with events where that is measured."""
    lines = tuple((label + name.removeprefix(tool).replace('-', ', '), f'lat-{name}', subject)
                  for name in LATENCIES[where] if name.startswith(tool)
                  for label, subject in (('qhca', 'qhca'), ('rdma_rxe', 'rxe')))
    return Latency(f'{where.split()[0]}-lat-{tool}', f'{tool.upper()} of 8 bytes, latency, {where}',
                   where, lines)


PLOTS = (
    *(bandwidth(series) for series in ('write', 'read', 'send')),
    rate('qps', 'WRITEs of 8 bytes by number of QPs, one VM', 'QPs that send in turn'),
    rate('mrs', 'WRITEs of 8 bytes by number of MRs, one VM', 'MRs used in turn'),
    rate('sges', 'WRITEs by number of SGEs of 64 bytes, one VM', 'SGEs of a message'),
    *(latency(ONE, tool) for tool in ('write', 'read', 'send')),
    Plot('one-registration', 'MRs registered and deregistered, one VM', ONE, (
        Line('qhca', 'registration', 'qhca', 'registration'),
        Line('rdma_rxe', 'registration', 'rxe', 'registration')), 'bytes of an MR', 'MRs/s', True),
    *(pair_bandwidth(tool) for tool in ('write', 'read', 'send')),
    *(latency(TWO, tool) for tool in ('write', 'send')),
)


def size_label(size):
    for unit, factor in (('MiB', 1 << 20), ('KiB', 1 << 10)):
        if size >= factor:
            return f'{size // factor} {unit}'
    return str(size)


def percentiles(values):
    """(1 / share of all that exceed it, value): 2 is p50, 100 is p99, 1000 is p99.9. Evenly
    spaced on a logarithmic axis, up to the largest value but one."""
    values, count = sorted(values), len(values)
    steps = range(int(PER_DECADE * math.log10(count)) + 1 if count else 0)
    exceed = {round(count / 10 ** (step / PER_DECADE)) for step in steps} - {count}
    return [(count / left, values[count - left - 1]) for left in sorted(exceed, reverse=True)]


def data(results, plot):
    """(label, points) of each line that has some."""
    out = []
    for line in plot.lines:
        if isinstance(plot, Latency):
            out.append((line[0], percentiles(results.samples(plot.where, *line[1:]))))
        else:
            points = results.series(plot.where, line.measurement, line.subject, line.series)
            out.append((line.label, [(x, value * line.scale) for x, value in points]))
    out = [(label, points) for label, points in out if points]
    return out if any(len(points) > 1 for _, points in out) else []


def rounded(value):
    """With five digits; a whole number keeps all."""
    return int(value) if value == int(value) else float(f'{value:.5g}')


def keep(directory, drawn):
    """Write the data of the plots that the documentation shows, a few points a line."""
    out = []
    for plot, lines in drawn:
        if plot.name in SHOWN:
            series = [textwrap.fill(
                f'{json.dumps(label)}: {json.dumps([[*map(rounded, point)] for point in points])}',
                95, initial_indent='  ', subsequent_indent='   ', break_on_hyphens=False)
                for label, points in lines]
            out.append(f' {json.dumps(plot.name)}: {{\n' + ',\n'.join(series) + '\n }')
    with open(os.path.join(directory, KEPT), 'w', encoding='utf-8') as file:
        file.write('{\n' + ',\n'.join(out) + '\n}\n')


def kept(directory=DOCUMENTS):
    """Return the data that keep() has written, for draw()."""
    with open(os.path.join(directory, KEPT), encoding='utf-8') as file:
        data_of = json.load(file)
    return [(plot, list(data_of[plot.name].items())) for plot in PLOTS if plot.name in data_of]


def script(plot, lines, terminals=TERMINALS):
    """Commands for one plot; its data is part of them."""
    out = ['reset', f'set title "{plot.title}"', 'set grid', 'set logscale xy 10', 'set key above']
    if isinstance(plot, Latency):
        out += ['set xlabel "% of all messages take at most"', 'set ylabel "µs"',
                'set xtics ("0" 1, "50" 2, "90" 10, "99" 100, "99.9" 1000, "99.99" 10000)']
    else:
        xs = sorted({x for _, points in lines for x, _ in points if len(points) > 1})
        tics = xs[::max(1, len(xs) // 8)] if plot.sizes else xs
        text = ', '.join(f'"{size_label(x) if plot.sizes else x}" {x}' for x in tics)
        out += [f'set xlabel "{plot.xlabel}"', f'set ylabel "{plot.ylabel}"',
                'set format y "%.0s%c"']
        out += [f'set xtics ({text})', f'set xrange [{xs[0]}:{xs[-1]}]']
    drawn = []
    for number, (label, points) in enumerate(lines):
        if len(points) == 1:
            drawn.append(f'{points[0][1]:g} with lines dashtype 2 title "{label}"')
            continue
        name = f'${plot.name.replace("-", "_")}_{number}'
        out += [f'{name} << EOD', *(f'{x:g} {y:g}' for x, y in points), 'EOD']
        style = 'steps' if isinstance(plot, Latency) else 'linespoints'
        drawn.append(f'{name} using 1:2 with {style} linewidth 2 title "{label}"')
    for suffix, terminal in terminals:
        out += [f'set terminal {terminal} noenhanced', f'set output "{plot.name}.{suffix}"',
                'plot ' + ', \\\n     '.join(drawn), 'unset output']
    return '\n'.join(out) + '\n'


def measured(results):
    """The plots that there are figures for, with their data."""
    return [(plot, lines) for plot in PLOTS if (lines := data(results, plot))]


def draw(directory, drawn, terminals=TERMINALS):
    """Draw plots with their data; returns the plots."""
    if drawn:
        gnuplot(directory, [script(plot, lines, terminals) for plot, lines in drawn])
    return [plot for plot, _ in drawn]


def gnuplot(directory, scripts):
    """Run scripts, and put them and what they have made there."""
    work = tempfile.mkdtemp(prefix='plots.', dir=os.path.join(CACHE, 'tmp'))
    try:
        with open(os.path.join(work, 'plots.gp'), 'w', encoding='utf-8') as file:
            file.writelines(scripts)
        # The cache is /qhca-cache there.
        subprocess.run([os.path.join(SCRIPTS, 'build/buildroot.sh'), '--gnuplot', '--', 'sh', '-c',
                        'cd "$1" && exec gnuplot plots.gp', 'sh',
                        os.path.join('/qhca-cache', os.path.relpath(work, CACHE))],
                       check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for name in os.listdir(work):
            shutil.copyfile(os.path.join(work, name), os.path.join(directory, name))
    finally:
        shutil.rmtree(work)


PAGE = '''<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>qhca: {title}</title>
<style>body {{ font-family: sans-serif; max-width: 56em; margin: 2em auto }}
pre {{ overflow-x: auto }} img {{ width: 100%; margin: 1em 0 }}</style></head><body>
<h1>qhca: {title}</h1>
<pre>{text}</pre>
<p>{links}</p>
{figures}
</body></html>
'''


def page(directory, text, plots, title='measurements'):
    """index.html: the tables, then the plots."""
    files = sorted(name for name in os.listdir(directory) if name.endswith(('.csv', '.gp')))
    figures = [f'<a href="{plot.name}.png"><img src="{plot.name}.svg" '
               f'alt="{html.escape(plot.title)}"></a>' for plot in plots]
    with open(os.path.join(directory, 'index.html'), 'w', encoding='utf-8') as file:
        file.write(PAGE.format(
            title=title, text=html.escape(text), figures='\n'.join(figures),
            links=' · '.join(f'<a href="{name}">{name}</a>' for name in files)))
