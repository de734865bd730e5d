# SPDX-License-Identifier: GPL-2.0
"""Run the cluster simulator, and read what it says."""

import csv
import glob
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

from vmlib.build import CACHE, SCRIPTS


# Figures that depend on the machine that runs it.
COSTS = ('memory_mib', 'wall_s', 'engine_s')


class Broken(Exception):
    """The simulator could not be run with these options; refused: it has said why."""
    def __init__(self, status):
        super().__init__(f'the simulator ended with status {status}')
        self.refused = status == 2


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


def folder():
    """A temporary one that the simulator sees."""
    os.makedirs(os.path.join(CACHE, 'tmp'), exist_ok=True)
    return tempfile.TemporaryDirectory(prefix='cluster.', dir=os.path.join(CACHE, 'tmp'))


def inside(path):
    """Return the simulator's name for a path in the cache."""
    return os.path.join('/qhca-cache', os.path.relpath(path, CACHE))


def run(options, ranks=1, quiet=True, keep=None):
    """options: what the simulator calls them, without dashes; keep: where captures go."""
    with folder() as work:
        args = [f'--{name}={value}' for name, value in options.items()]
        args.append('--out=' + inside(work))
        done = subprocess.run([os.path.join(SCRIPTS, 'build/cluster.sh'), '--run', str(ranks),
                               *args, f'--progress={int(not quiet)}'], text=True, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE if quiet else None)
        for path in glob.glob(os.path.join(work, '*.pcap')) if keep else ():
            shutil.move(path, keep)
        values = parse(done.stdout)
        if 'digest' not in values:
            sys.stderr.write((done.stderr if quiet else '') + done.stdout)
            raise Broken(done.returncode)
        return Run(options, done.returncode == 0, values, table(os.path.join(work, 'flows.csv')),
                   table(os.path.join(work, 'series.csv')))


# Numbers to reduce while a failure stays, and how little makes sense.
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
