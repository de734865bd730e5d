# SPDX-License-Identifier: GPL-2.0
"""Faults of the adapters of a run, and when: vm --faults FILE. The language is in
Documentation/faults.rst, "Schedules"."""

import collections
import csv
import json
import os
import random
import re
import threading
import time

from . import requests, verdict
from .build import TOP, note

TIME = r'(\d+(?:\.\d+)?)(us|ms|s)'
UNITS = {'us': 1e-6, 'ms': 1e-3, 's': 1}
WHEN = re.compile(rf'(?:(?P<event>[a-z][a-z0-9-]*)(?:\+(?={TIME})|$))?'
                  rf'(?:(?P<delay>{TIME})(?:~(?P<spread>{TIME}))?)?$')
LINE = re.compile(r'(\S+)\s+([a-z])/(\d+):\s*(.*)$')
START = 'ready'             # the event that every run has: the jobs of all machines begin
CARRYING = 'carrying'       # and one that happens by itself: all adapters of machine a have moved
ENOUGH = 4 << 20            # so many bytes
PLUG = 'plug'               # an entry that has to wait until the guest has let the adapter go
LETS_GO = 20                # seconds for that
SAMPLE = 0.25               # seconds between two lines of the report
COUNTERS = ('tx_bytes', 'rx_bytes', 'retransmit')
COLUMNS = ('seconds', 'machine', 'rail', *COUNTERS, 'what')


class BadSchedule(Exception):
    """A line that means nothing."""


Entry = collections.namedtuple('Entry', 'event delay role rail what commands')
# @start: the event that times count from that have none.
Schedule = collections.namedtuple('Schedule', 'entries expectations start')
NOTHING = Schedule([], [], START)


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
    if what == 'unplug':
        return 'device_del', {}
    if what == PLUG:
        return PLUG, {}
    return put('faults', '' if what == 'none' else what)


def _adapter(name, roles, hcas):
    role, rail = name.split('/')
    if role not in roles or int(rail) >= hcas:
        raise BadSchedule(f'there is no adapter {name}')


def _expectation(text, roles, hcas):
    found = verdict.parse(text)
    for name in sorted(verdict.rails(found)):
        _adapter(name, roles, hcas)
    return found


def _entry(line, roles, hcas, start, rng):
    found = LINE.match(line)
    when = found and WHEN.match(found[1])
    if not found or not when or not found[4]:
        raise BadSchedule('not "WHEN MACHINE/RAIL: WHAT"')
    _adapter(f'{found[2]}/{found[3]}', roles, hcas)
    delay = seconds(when['delay']) if when['delay'] else 0
    if when['spread']:
        delay += rng.uniform(0, seconds(when['spread']))
    return Entry(when['event'] or start, delay, found[2], int(found[3]), found[4],
                 commands(found[4]))


def parse(text, roles, hcas):
    """The schedule for these machines; its entries are in the order of the text."""
    rng, start, entries, expectations = random.Random(1), START, [], []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition('#')[0].strip()
        word, _, rest = line.partition(' ')
        try:
            if not line:
                continue
            if seed := re.fullmatch(r'seed\s+(\d+)', line):
                rng = random.Random(int(seed[1]))
            elif begin := re.fullmatch(r'start\s+([a-z][a-z0-9-]*)', line):
                start = begin[1]
            elif word == 'expect':
                expectations.append(_expectation(rest, roles, hcas))
            else:
                entries.append(_entry(line, roles, hcas, start, rng))
        except (BadSchedule, verdict.BadExpectation) as err:
            raise BadSchedule(f'line {number}: {err}') from err
    return Schedule(entries, expectations, start)


def read(path, roles, hcas):
    try:
        with open(path, encoding='utf-8') as file:
            return parse(file.read(), roles, hcas)
    except (OSError, UnicodeError, BadSchedule) as err:
        raise BadSchedule(f'{path}: {err}') from err


def scenario(name):
    """The path of the scenario of that name."""
    top, end = os.path.join(TOP, 'selftests/scenarios'), '.faults'
    names = sorted(file.removesuffix(end) for file in os.listdir(top) if file.endswith(end))
    if name not in names:
        raise BadSchedule(f'{name} is none of {", ".join(names)}')
    return os.path.join(top, name + end)


def choose(opts, roles):
    """The schedule of --faults or --scenario, which is for two adapters or more."""
    if opts.scenario and opts.faults:
        raise BadSchedule('--scenario: not with --faults')
    option = '--scenario' if opts.scenario else '--faults'
    try:
        if opts.scenario:
            opts.faults = scenario(opts.scenario)
            opts.hcas = max(opts.hcas, 2)
        return read(opts.faults, roles, opts.hcas) if opts.faults else NOTHING
    except BadSchedule as err:
        raise BadSchedule(f'{option}: {err}') from err


def takes_out(plan):
    """Whether an adapter is taken out of its slot."""
    return any(one.what in ('unplug', PLUG) for one in plan.entries)


def plugs(plan, role):
    """Whether a machine gets an adapter back."""
    return any(one.role == role and one.what == PLUG for one in plan.entries)


class Player(threading.Thread):
    """Plays a schedule to the machines, and writes what each rail has moved to @report, if that
    is a path; leaving the context ends it. @failed: something could not be done."""

    def __init__(self, schedule, sessions, report):
        super().__init__(daemon=True)
        self.waiting = list(schedule.entries)
        self.sessions = {session.role: session for session in sessions}
        self.happened = {}          # event -> when, the first time
        self.told = {START}         # those that the report has
        self.moved = {}             # rail of machine a -> bytes at first, and now
        self.rules = {}             # machine and rail -> the rules that it has
        self.over = threading.Event()
        self.failed = False
        self.file = self.table = None
        self.sampling = bool(report) or any(one.event == CARRYING for one in self.waiting)
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
            if self.sampling and time.monotonic() >= sample:
                sample = time.monotonic() + SAMPLE
                self._sample()
            self._tell()
        if self.table and START in self.happened:
            self._row('', '', {}, time.monotonic(), 'end')

    def _ended(self):
        return any(session.status is not None for session in self.sessions.values())

    def _act(self):
        now = time.monotonic()
        due = [entry for entry in self.waiting if entry.event in self.happened and
               self.happened[entry.event] + entry.delay <= now]
        for entry in sorted(due, key=lambda one: self.happened[one.event] + one.delay):
            name, arguments = entry.commands
            reply = self._ask(entry.role, entry.rail, name, arguments)
            late = now - self.happened[entry.event] - entry.delay
            if 'error' in reply and name == PLUG and late < LETS_GO:
                continue
            self.waiting.remove(entry)
            if 'error' in reply and not self._ended():
                note(f'{entry.role}/{entry.rail}: {entry.what}: {reply["error"]["desc"]}')
                self.failed = True
            self._row(entry.role, entry.rail, {}, now, entry.what)

    def _ask(self, role, rail, name, arguments):
        session = self.sessions[role]
        nic = session.nics[rail]
        if nic.socket and name in ('device_del', PLUG):
            # QEMU 11.1 aborts.
            return {'error': {'desc': 'the adapter of a server stays plugged in'}}
        if name == PLUG:
            return self._plug(role, nic)
        if arguments.get('property') == 'faults':
            self.rules[role, rail] = arguments
        where = ({'name': requests.device(nic)} if name == 'set_link' else
                 {'id': requests.device(nic)} if name == 'device_del' else
                 {'path': requests.path(nic)})
        return json.loads(session.command(json.dumps(
            {'execute': name, 'arguments': {**where, **arguments}})))

    def _plug(self, role, nic):
        """A new adapter; it is to behave as the one before."""
        reply = json.loads(self.sessions[role].plug(nic))
        rules = self.rules.get((role, nic.index))
        if 'error' in reply or not rules:
            return reply
        return self._ask(role, nic.index, 'qom-set', rules)

    def _row(self, role, rail, counters, now, what=''):
        if self.table:
            elapsed = now - self.happened[START]
            self.table.writerow([f'{elapsed:.3f}', role, rail,
                                 *(counters.get(name, '') for name in COUNTERS), what])

    def _tell(self):
        for name in set(self.happened) - self.told:
            self.told.add(name)
            self._row('', '', {}, self.happened[name], verdict.EVENT + name)

    def _sample(self):
        for role, session in self.sessions.items():
            for nic in session.nics:
                if nic.kind == 'qhca':
                    reply = self._ask(role, nic.index, 'qom-get', {'property': 'counters'})
                    # An adapter that is not plugged in has moved nothing.
                    counters = reply.get('return') or {}
                    self._row(role, nic.index, counters, time.monotonic())
                    if role == 'a':
                        self._carry(nic.index, counters)
        if self.moved and all(now - first >= ENOUGH for first, now in self.moved.values()):
            self.event(CARRYING)

    def _carry(self, rail, counters):
        count = sum(counters.get(name, 0) for name in ('tx_bytes', 'rx_bytes'))
        self.moved[rail] = self.moved.get(rail, (count, 0))[0], count
