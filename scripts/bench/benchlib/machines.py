# SPDX-License-Identifier: GPL-2.0
"""Run the steps in machines, and collect what they print."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

from vmlib.build import SCRIPTS

from . import figures
from .results import Key
from .tables import BOOT, ONE, SERVED, TWO

TICKS = os.sysconf('SC_CLK_TCK')
# The user's options for scripts/vm. With a server machines have no frames to collect.
FLAGS = shlex.split(os.environ.get('VMFLAGS', ''))
COLLECT = () if '--server' in FLAGS else ('--device-arg', 'aggregate=on')
# Twice as many QPs as the largest measurement uses, since the kernel also has some.
OPTIONS = {
    ONE: ('run', '--rxe', '--device-arg', 'max-qp=8192'),
    TWO: ('pair', '--rxe', '-n', '2', '--env', 'BENCH_PAIR=1', *COLLECT),
    SERVED[ONE]: ('run', '--server', '--rxe', '--device-arg', 'max-qp=8192'),
    SERVED[TWO]: ('pair', '--server', '--rxe', '-n', '2', '--env', 'BENCH_PAIR=1'),
}


def note(text):
    print(f'[{time.monotonic() - STARTED:4.0f}s] bench: {text}', file=sys.stderr, flush=True)


STARTED = time.monotonic()


def cpu_time():
    """The host's, since it was started: idle, stolen by its own host, and in all."""
    with open('/proc/stat', encoding='ascii') as file:
        numbers = [int(word) for word in file.readline().split()[1:9]]
    return numbers[3] + numbers[4], numbers[7], sum(numbers)


def busy(seconds=1):
    """The share of the host's CPU time that is in use before there are any machines."""
    before = cpu_time()
    time.sleep(seconds)
    idle, _, total = (now - then for now, then in zip(cpu_time(), before))
    return 1 - idle / total


class Steal:
    """The share of the host's CPU time that has been stolen since this was made."""

    def __init__(self):
        self.before = cpu_time()

    def share(self):
        _, stolen, total = (now - then for now, then in zip(cpu_time(), self.before))
        return stolen / total if total else 0


def schedule(measurements, setup=()):
    """(measurement, round, step) in the order in which they run; setup has no measurement.
    The rounds of each are spread over the whole run."""
    steps = [(None, 0, step) for step in setup]
    for number in range(max((m.rounds for m in measurements), default=0)):
        for measurement in measurements:
            if number < measurement.rounds:
                steps += [(measurement, number, step) for step in measurement.order(number)]
    return steps


class Reader:
    """Takes the output of guest/bench.sh line by line, step by step."""

    def __init__(self, results, where, steps):
        self.results, self.where, self.steps = results, where, steps
        self.done, self.round = 0, None
        self.text, self.steal, self.began = None, None, 0

    def line(self, line):
        if line == '@begin':
            self.text, self.steal, self.began = [], Steal(), time.monotonic()
            self._announce()
        elif self.text is None:
            if line:
                note(f'{self.where}: {line}')
        elif match := re.fullmatch(r'@end (\d+) (\d+)', line):
            self._end(int(match[1]), int(match[2]), '\n'.join(self.text))
            self.text = None
        else:
            self.text.append(line)

    def _announce(self):
        measurement, number, _ = self.steps[self.done]
        if measurement and number != self.round:
            self.round = number
            note(f'{self.where}: round {number + 1}')

    def _end(self, status, guest_ticks, text):
        measurement, number, step = self.steps[self.done]
        seconds = time.monotonic() - self.began
        self.done += 1
        try:
            if status:
                raise figures.NoFigure(f'{text} status {status}')
            if measurement:
                self._keep(measurement, number, step, text)
                stolen = self.steal.share() + guest_ticks / TICKS / max(seconds, .01)
                self.results.steal(self.where, measurement.name, number, stolen)
        except figures.NoFigure as err:
            self._no_figure(measurement, number, step, f'{step.line}: {err}')

    def _no_figure(self, measurement, number, step, why):
        note(f'{self.where}: {why}')
        if not step.is_rival:
            self.results.failures.append(f'{self.where}: {why}')
        elif measurement:
            self.results.lose(self.where, measurement.name, step.subject, number, why)

    def _keep(self, measurement, number, step, text):
        for series, x, value in figures.parse(step.command.split()[0], text):
            key = Key(self.where, measurement.name, step.subject, series, x)
            self.results.add(key, number, value)
        self.results.add_samples(self.where, measurement.name, step.subject, number,
                                 figures.samples(text))


def run(results, where, measurements, setup=()):
    """In one machine, or in two."""
    steps = schedule(measurements, setup)
    reader = Reader(results, where, steps)
    with tempfile.NamedTemporaryFile('w', suffix='.steps') as file:
        file.writelines(f'{step.line}\n' for _, _, step in steps)
        file.flush()
        command = '/opt/qhca/guest/bench.sh'
        status = _vm(*OPTIONS[where], '--timeout', '7200', '--put', f'{file.name}:bench.steps',
                     commands=[command] * (2 if 'pair' in OPTIONS[where] else 1), take=reader.line)
    if status or reader.done != len(steps):
        results.failures.append(f'{where}: {reader.done} of {len(steps)} steps, status {status}')


def boot(results, rounds):
    """From power-on to the end of the first program that has used the device."""
    for number in range(rounds):
        steal, lines = Steal(), []
        status = _vm('run', '--stamp', commands=['ibv_devinfo'], take=lines.append)
        if status or not any('hca_id' in line for line in lines):
            results.failures.append(f'{BOOT}: status {status}')
            continue
        seconds = float([line for line in lines if line][-1].split()[0])
        results.add(Key(BOOT, 'boot', 'qhca', 'boot', 0), number, seconds)
        results.steal(BOOT, 'boot', number, steal.share())


def _vm(*options, commands, take):
    """scripts/vm; take is called with each line that the last machine prints."""
    argv = [os.path.join(SCRIPTS, 'vm'), *options, '--quiet', '--strict',
            *FLAGS]
    for command in commands:
        argv += ['--', command]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          errors='replace') as child:
        for line in child.stdout:
            take(line.rstrip('\n').removeprefix('b| '))
    return child.returncode
