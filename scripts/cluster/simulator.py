# SPDX-License-Identifier: GPL-2.0
"""Run the cluster simulator, and read what it says."""

import csv
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

from vmlib.build import CACHE, SCRIPTS


# What depends on the machine that runs it.
COSTS = ('memory_mib', 'wall_s', 'engine_s')


class Broken(Exception):
    """The simulator could not be run with these options."""


@dataclass
class Run:
    """values: of what it prints, by name; flows and series: its tables."""
    options: dict
    ok: bool
    values: dict = field(default_factory=dict)
    flows: list = field(default_factory=list)
    series: list = field(default_factory=list)

    def time(self):
        """Completion times of the flows that have come through, in ns, in order."""
        return sorted(row['end_ns'] - row['start_ns'] for row in self.flows
                      if row['end_ns'] is not None)

    def share(self, name, quantile):
        times = getattr(self, name)()
        return times[min(int(quantile * len(times)), len(times) - 1)] if times else None


def table(path):
    with open(path, encoding='ascii', newline='') as file:
        return [{name: float(text) if text else None for name, text in row.items()}
                for row in csv.DictReader(file)]


def parse(text):
    """Numbers, but for the digest."""
    words = (line.split() for line in text.splitlines())
    return {pair[0]: pair[1] if pair[0] == 'digest' else float(pair[1])
            for pair in words if len(pair) == 2}


def run(options, ranks=1, quiet=True):
    """options: what the simulator calls them, without dashes."""
    os.makedirs(os.path.join(CACHE, 'tmp'), exist_ok=True)
    work = tempfile.mkdtemp(prefix='cluster.', dir=os.path.join(CACHE, 'tmp'))
    try:
        args = [f'--{name}={value}' for name, value in options.items()]
        # The cache is /qhca-cache there.
        args.append('--out=' + os.path.join('/qhca-cache', os.path.relpath(work, CACHE)))
        done = subprocess.run([os.path.join(SCRIPTS, 'build/cluster.sh'), '--run', str(ranks),
                               *args, f'--progress={int(not quiet)}'], text=True, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE if quiet else None)
        values = parse(done.stdout)
        if 'digest' not in values:
            if quiet:
                sys.stderr.write(done.stderr)
            raise Broken(f'the simulator ended with status {done.returncode}')
        return Run(options, done.returncode == 0, values, table(os.path.join(work, 'flows.csv')),
                   table(os.path.join(work, 'series.csv')))
    finally:
        shutil.rmtree(work)


# What a failure is looked for with less of, and how little makes sense.
LESS = (('hosts', 2), ('bytes', 1), ('window', 1))


def smaller(options):
    for name, least in LESS:
        value = int(options[name])
        for less in {max(value // 2, least), value - 1}:
            if least <= less < value:
                yield {**options, name: less}


def shrink(options, fails):
    """The smallest options with which fails(options) is still true."""
    while True:
        for less in smaller(options):
            if fails(less):
                options = less
                break
        else:
            return options
