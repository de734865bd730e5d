# SPDX-License-Identifier: GPL-2.0
"""What happens to the adapters of a run, and when: vm --faults FILE. The language is in
Documentation/faults.rst, "Schedules"."""

import collections
import csv
import json
import random
import re
import threading
import time

from . import requests
from .build import note

TIME = r'(\d+(?:\.\d+)?)(us|ms|s)'
UNITS = {'us': 1e-6, 'ms': 1e-3, 's': 1}
WHEN = re.compile(rf'(?:(?P<event>[a-z][a-z0-9-]*)(?:\+(?={TIME})|$))?'
                  rf'(?:(?P<delay>{TIME})(?:~(?P<spread>{TIME}))?)?$')
LINE = re.compile(r'(\S+)\s+([a-z])/(\d+):\s*(.*)$')
START = 'ready'             # the event that every run has: the jobs of all machines begin
SAMPLE = 0.25               # seconds between two lines of the report
COUNTERS = ('tx_bytes', 'rx_bytes', 'retransmit')
COLUMNS = ('seconds', 'machine', 'rail', *COUNTERS, 'what')


class BadSchedule(Exception):
    """A line that means nothing."""


Entry = collections.namedtuple('Entry', 'event delay role rail what commands')


def seconds(text):
    number, unit = re.fullmatch(TIME, text).groups()
    return float(number) * UNITS[unit]


def commands(what):
    """The QMP commands for @what, each with {} for the path of the device or its id."""
    def put(name, value):
        return 'qom-set', {'property': name, 'value': value}
    word, _, rest = what.partition(' ')
    if what in ('link up', 'link down'):
        return 'set_link', {'up': rest == 'up'}
    if word == 'speed' and rest.isdecimal():
        return put('bandwidth', int(rest))
    if what == 'fatal':
        return put('inject-fatal', True)
    return put('faults', '' if what == 'none' else what)


def parse(text, roles, hcas):
    """The entries of a schedule for these machines, in the order of the text."""
    rng, entries = random.Random(1), []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition('#')[0].strip()
        if not line:
            continue
        if seed := re.fullmatch(r'seed\s+(\d+)', line):
            rng = random.Random(int(seed[1]))
            continue
        found = LINE.match(line)
        when = found and WHEN.match(found[1])
        if not found or not when or not found[4]:
            raise BadSchedule(f'line {number}: not "WHEN MACHINE/RAIL: WHAT"')
        if found[2] not in roles or int(found[3]) >= hcas:
            raise BadSchedule(f'line {number}: there is no adapter {found[2]}/{found[3]}')
        delay = seconds(when['delay']) if when['delay'] else 0
        if when['spread']:
            delay += rng.uniform(0, seconds(when['spread']))
        entries.append(Entry(when['event'] or START, delay, found[2], int(found[3]), found[4],
                             commands(found[4])))
    return entries


def read(path, roles, hcas):
    try:
        with open(path, encoding='utf-8') as file:
            return parse(file.read(), roles, hcas)
    except (OSError, UnicodeError, BadSchedule) as err:
        raise BadSchedule(f'{path}: {err}') from err


class Player(threading.Thread):
    """Plays @entries to the machines, and writes what each rail has moved to @report, if that is
    a path; leaving the context ends it. @failed: something could not be done."""

    def __init__(self, entries, sessions, report):
        super().__init__(daemon=True)
        self.waiting = list(entries)
        self.sessions = {session.role: session for session in sessions}
        self.happened = {}          # event -> when, the first time
        self.over = threading.Event()
        self.failed = False
        self.file = self.table = None
        if report:
            self.file = open(report, 'w', encoding='utf-8', newline='')
            self.table = csv.writer(self.file)
            self.table.writerow(COLUMNS)

    def __enter__(self):
        for session in self.sessions.values():
            session.player = self
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()
        for entry in self.waiting:
            note(f'{entry.role}/{entry.rail}: {entry.what}: its time has not come')
        if self.file:
            self.file.close()

    def event(self, name):
        """A guest says that this has happened."""
        self.happened.setdefault(name, time.monotonic())

    def run(self):
        sample = 0
        while not self.over.wait(0.01) and not self._ended():
            if START not in self.happened:
                if all(session.ready for session in self.sessions.values()):
                    self.event(START)
                continue
            self._act()
            if self.table and time.monotonic() >= sample:
                sample = time.monotonic() + SAMPLE
                self._sample()

    def _ended(self):
        return any(session.status is not None for session in self.sessions.values())

    def _act(self):
        now = time.monotonic()
        due = [entry for entry in self.waiting if entry.event in self.happened and
               self.happened[entry.event] + entry.delay <= now]
        for entry in sorted(due, key=lambda one: self.happened[one.event] + one.delay):
            self.waiting.remove(entry)
            name, arguments = entry.commands
            reply = self._ask(entry.role, entry.rail, name, arguments)
            if 'error' in reply and not self._ended():
                note(f'{entry.role}/{entry.rail}: {entry.what}: {reply["error"]["desc"]}')
                self.failed = True
            self._row(entry.role, entry.rail, {}, entry.what)

    def _ask(self, role, rail, name, arguments):
        session = self.sessions[role]
        nic = session.nics[rail]
        where = ({'name': requests.device(nic)} if name == 'set_link' else
                 {'path': requests.path(nic)})
        return json.loads(session.command(json.dumps(
            {'execute': name, 'arguments': {**where, **arguments}})))

    def _row(self, role, rail, counters, what=''):
        if self.table:
            elapsed = time.monotonic() - self.happened[START]
            self.table.writerow([f'{elapsed:.3f}', role, rail,
                                 *(counters.get(name, '') for name in COUNTERS), what])

    def _sample(self):
        for role, session in self.sessions.items():
            for nic in session.nics:
                if nic.kind == 'qhca':
                    reply = self._ask(role, nic.index, 'qom-get', {'property': 'counters'})
                    # An adapter that is not plugged in has moved nothing.
                    self._row(role, nic.index, reply.get('return') or {})
