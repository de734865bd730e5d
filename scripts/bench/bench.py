#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Measure the device against rdma_rxe, TCP and what the machine can do.

  bench.py [--quick] [options]
  bench.py --draw DIR

--quick measures only the headline: its rows have targets. Without it there are more
rounds, and all of the plots. --draw measures nothing, but draws what the documentation
shows, from the data it keeps. Documentation/performance.rst says how it is measured and how
to read it. VMFLAGS goes to scripts/vm. Exit status 1 if the device could not be measured;
a target that is missed is no failure, nor is a rival that gives no figures.
"""

import argparse
import os
import platform
import sys
import time

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
# pylint: disable=wrong-import-position
from benchlib import machines, plots, report, tables    # noqa: E402
from benchlib.results import Results                    # noqa: E402
from vmlib import build, machine                        # noqa: E402


WHERE = {'one': (tables.ONE,), 'two': (tables.TWO,), 'boot': (tables.BOOT,),
         'server': tuple(tables.SERVED.values())}


def parse(argv):
    parser = argparse.ArgumentParser(
        prog='bench.py', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add('--quick', action='store_true', help='only the headline')
    add('--out', metavar='DIR', help='where the results go (default: a new directory in the cache)')
    add('--rounds', type=int, metavar='N', help='of the headline (9; 5 with --quick)')
    add('--brief', type=int, default=1, metavar='N',
        help='a part of N of all iterations and durations: to try the scripts, not to measure')
    add('--draw', metavar='DIR', help='draw the plots of the documentation there')
    add('--only', metavar='LIST', help=f'of {",".join(WHERE)} (all; no server with --quick)')
    opts = parser.parse_args(argv)
    opts.only = opts.only.split(',') if opts.only else list(WHERE)[:3 if opts.quick else 4]
    if not set(opts.only) <= set(WHERE):
        parser.error(f'--only takes a list of {", ".join(WHERE)}')
    opts.rounds = opts.rounds or (5 if opts.quick else 9)
    return opts


def directory(opts):
    """Where the results go; `last` is a link to it if it is one of ours."""
    if opts.out:
        os.makedirs(opts.out, exist_ok=True)
        return opts.out
    base = os.path.join(build.CACHE, 'bench')
    name = time.strftime('%m%d-%H%M%S')
    os.makedirs(os.path.join(base, name))
    link = os.path.join(base, 'last')
    if os.path.islink(link):
        os.unlink(link)
    os.symlink(name, link)
    return os.path.join(base, name)


def conditions(opts, busy):
    """The line below the table."""
    with open('/proc/cpuinfo', encoding='utf-8') as file:
        model = next((line.partition(':')[2].strip() for line in file
                      if line.startswith('model name')), platform.machine())
    accel, _ = machine.choose_accel(os.environ.get('QHCA_ACCEL', 'auto'))
    flags = os.environ.get('VMFLAGS', '').strip()
    text = (f'Medians of up to {opts.rounds} rounds; -accel {accel}, {flags or "2 CPUs"} for each '
            f'VM; host: {os.cpu_count()} × {model}, {busy:.0%} busy before.')
    if busy > 0.1:
        text += '\nTHE HOST WAS BUSY: DO NOT RELY ON THESE FIGURES.'
    return text if opts.brief == 1 else f'{text}\nBRIEF {opts.brief}: THESE ARE NO FIGURES.'


def measure(opts):
    results, plan = Results(), tables.Tables(opts.rounds, opts.brief)
    if 'boot' in opts.only:
        machines.boot(results, 3)
    if 'one' in opts.only:
        sweeps = () if opts.quick else plan.sweeps_one()
        disks = tables.NVME[:2] if opts.quick else tables.NVME
        machines.run(results, tables.ONE, plan.headline_one() + sweeps, disks)
    if 'two' in opts.only:
        sweeps = () if opts.quick else plan.sweeps_two()
        machines.run(results, tables.TWO, plan.headline_two() + sweeps)
    if 'server' in opts.only:
        one, two = tables.SERVED.values()
        sweeps = () if opts.quick else plan.control()
        machines.run(results, one, plan.headline_one() + sweeps, tables.NVME[:2])
        machines.run(results, two, plan.headline_two())
    return results


def main():
    opts = parse(sys.argv[1:])
    if opts.draw:
        plots.draw(opts.draw, plots.kept(), plots.TERMINALS[:1])
        return 0
    busy, out = machines.busy(), directory(opts)
    if not opts.quick:      # rather than after 20 minutes
        build.script('build/buildroot.sh', '--gnuplot', '--path')
    results = measure(opts)
    where = [name for key in opts.only for name in WHERE[key]]
    rows = [row for row in tables.ROWS + (() if opts.quick else tables.MORE)
            if row.where in where]
    text = report.write(out, results, rows, conditions(opts, busy))
    print(text)
    if not opts.quick:
        drawn = plots.measured(results)
        plots.keep(out, drawn)
        plots.page(out, text, plots.draw(out, drawn))
    machines.note(f'the results are in {out}')
    return 1 if results.failures else 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except build.BuildError as err:
        sys.exit(str(err))
    except KeyboardInterrupt:
        sys.exit(130)
