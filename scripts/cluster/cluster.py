#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Run adapters by the hundred in a simulated network, see Documentation/clusters.rst.

  cluster.py [--hosts N] [--workload NAME] [--ranks N] [--out DIR] [NAME=VALUE…]
  cluster.py --shrink …

NAME=VALUE are options of the simulator: `cluster.py help=` lists them. Prints what has
happened; --out writes tables, plots and a page. --shrink looks for the smallest cluster
with which a run that fails still does. Exit status 1 if not everything has come through,
2 if there is no such option or cluster.
"""

import argparse
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path += [os.path.join(os.path.dirname(os.path.abspath(__file__)), *part)
             for part in (('..',), ('..', 'bench'))]
# pylint: disable=wrong-import-position
import draw             # noqa: E402
import simulator        # noqa: E402
from vmlib.build import SCRIPTS     # noqa: E402

DEFAULTS = {'hosts': 16, 'workload': 'incast', 'bytes': 1 << 20, 'window': 4, 'hollow': 1}


def parse(argv):
    parser = argparse.ArgumentParser(
        prog='cluster.py', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add('--hosts', type=int, metavar='N', help='adapters')
    add('--workload', metavar='NAME', help='what they send each other')
    add('--ranks', type=int, default=1, metavar='N', help='processes that share the work')
    add('--out', metavar='DIR', help='where tables and plots go')
    add('--shrink', action='store_true', help='find the smallest run that fails')
    add('more', nargs='*', metavar='NAME=VALUE')
    opts = parser.parse_args(argv)
    opts.all = dict(DEFAULTS)
    for text in opts.more:
        name, equals, value = text.partition('=')
        if not equals:
            parser.error(f'{text} is not NAME=VALUE')
        opts.all[name.removeprefix('--')] = value
    for name in ('hosts', 'workload'):
        if getattr(opts, name) is not None:
            opts.all[name] = getattr(opts, name)
    if 'pcap' in opts.all and not opts.out:
        parser.error('pcap is for --out')
    return opts


def failed(options, ranks=1):
    try:
        return not simulator.run(options, ranks).ok
    except simulator.Broken as err:
        return not err.refused


def show(run):
    for name, value in run.values.items():
        print(f'{name:28} {value if name == "digest" else format(value, ",.10g")}')


def main():
    opts = parse(sys.argv[1:])
    if 'help' in opts.all:
        return subprocess.run([os.path.join(SCRIPTS, 'build/cluster.sh'), '--run', '1', '--help'],
                              check=False).returncode
    if opts.shrink and failed(opts.all, opts.ranks):
        opts.all = simulator.shrink(opts.all, lambda less: failed(less, opts.ranks))
        print('the smallest that fails: ' +
              ' '.join(f'{name}={value}' for name, value in opts.all.items()), flush=True)
    if opts.out:
        os.makedirs(opts.out, exist_ok=True)
    run = simulator.run(opts.all, opts.ranks, quiet=opts.shrink, keep=opts.out)
    show(run)
    if opts.out:
        draw.report(opts.out, run)
        print(f'the results are in {opts.out}')
    return 0 if run.ok else 1


if __name__ == '__main__':
    try:
        sys.exit(main())
    except simulator.Broken as err:
        print(f'cluster.py: {err}', file=sys.stderr)
        sys.exit(2 if err.refused else 1)
    except KeyboardInterrupt:
        sys.exit(130)
