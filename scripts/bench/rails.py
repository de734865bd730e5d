#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Draw what each adapter of a run has sent and when: rails.svg and rails.png.

  rails.py REPORT [DIR]     REPORT is from vm --report; a vertical line is an entry of --faults
"""

import csv
import os
import sys

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
# pylint: disable=wrong-import-position
from benchlib import plots      # noqa: E402


def read(path):
    """(machine/rail -> [(seconds, Mbit/s)], [(seconds, what)]) of a report."""
    rails, happened, before = {}, [], {}
    with open(path, encoding='utf-8', newline='') as file:
        for row in csv.DictReader(file):
            name, now = f'{row["machine"]}/{row["rail"]}', float(row['seconds'])
            if row['what']:
                happened.append((now, f'{name}: {row["what"]}' if row['rail'] else row['what']))
            if not row['tx_bytes']:     # not plugged in
                before.pop(name, None)
                continue
            sent = int(row['tx_bytes'])
            then, last = before.get(name, (now, sent))
            # The counters of an adapter that has come back begin anew.
            if now > then and sent >= last:
                rails.setdefault(name, []).append((now, (sent - last) * 8e-6 / (now - then)))
            before[name] = now, sent
    return rails, happened


def script(rails, happened):
    out = ['set title "What each adapter sends"', 'set grid', 'set key above',
           'set xlabel "s"', 'set ylabel "Mbit/s"', 'set yrange [0:*]']
    for number, (now, what) in enumerate(happened, 1):
        text = what.replace('"', "'")
        out += [f'set arrow from {now:g}, graph 0 to {now:g}, graph 1 nohead dashtype 2',
                f'set label "{text}" at {now:g}, graph {1 - 0.05 * (number % 9):g} noenhanced']
    for number, points in enumerate(rails.values()):
        out += [f'$rail{number} << EOD', *(f'{x:g} {y:g}' for x, y in points), 'EOD']
    lines = ', \\\n     '.join(f'$rail{number} using 1:2 with lines linewidth 2 title "{name}"'
                               for number, name in enumerate(rails))
    for suffix, terminal in plots.TERMINALS:
        out += [f'set terminal {terminal}', f'set output "rails.{suffix}"', 'plot ' + lines,
                'unset output']
    return '\n'.join(out) + '\n'


def main():
    if not 2 <= len(sys.argv) <= 3:
        print(__doc__, file=sys.stderr)
        return 2
    rails, happened = read(sys.argv[1])
    if not rails:
        print(f'{sys.argv[1]}: nothing has been moved', file=sys.stderr)
        return 1
    plots.gnuplot(sys.argv[2] if len(sys.argv) == 3 else '.', [script(rails, happened)])
    return 0


if __name__ == '__main__':
    sys.exit(main())
