# SPDX-License-Identifier: GPL-2.0
"""Expectations of a schedule, and whether the report of a run meets them. Only what every program
shows from outside counts: the load of each adapter over time, and how the program ends. The
language is in Documentation/faults.rst, "Scenarios"."""

import collections
import csv
import os
import re

from .build import note

RAIL = r'all|[a-z]/\d+'
TIME = r'(?:\d+(?:\.\d+)?)s'
CARRIED = re.compile(rf'(?P<rail>{RAIL}) (?P<window>{TIME}\.\.{TIME}) '
                     rf'(?:(?P<sign>[<>]=) (?P<percent>\d+)% of (?:(?P<other>{RAIL}) )?'
                     rf'(?P<base>{TIME}\.\.{TIME})|pauses <= (?P<pause>{TIME}))$')
FAILURE = 'failure'         # the program has to end with an error
TIMEOUT = 124               # what timeout(1) and vm say of a program that does not end
SIGNALS = 128               # a shell says so much more than the signal that has ended a program
SPARE = 10                  # seconds until the schedule starts, on a host with a lot to do
LATE = 0.5                  # seconds that the last sample may be before the end of a window
STILL = 0.05                # of what it carries on average, all in all, is a pause
LEAST = 0.1                 # MB/s with which something can be compared; what is less is nothing
EVENT = 'event '            # begins what the report says of one


class BadExpectation(Exception):
    """An expectation that means nothing."""


Window = collections.namedtuple('Window', 'start end')
# @window of @rail against @percent of @base of @other; or the longest @pause in it.
Expectation = collections.namedtuple('Expectation', 'rail window sign percent other base pause why')
Verdict = collections.namedtuple('Verdict', 'good text')


def _window(text):
    start, end = (float(word[:-1]) for word in text.split('..'))
    if start >= end:
        raise BadExpectation(f'{text}: ends before it begins')
    return Window(start, end)


def parse(text):
    """The expectation behind the word `expect`; FAILURE if it is that."""
    what, _, why = (part.strip() for part in text.partition(':'))
    if what == FAILURE:
        return FAILURE
    found = CARRIED.match(' '.join(what.split()))
    if not found or not why:
        raise BadExpectation(f'not "expect RAIL WINDOW …: WHY": {text}')
    return Expectation(found['rail'], _window(found['window']), found['sign'],
                       int(found['percent'] or 0), found['other'] or found['rail'],
                       _window(found['base']) if found['base'] else None,
                       float(found['pause'][:-1]) if found['pause'] else None, why)


def rails(expectation):
    """Those adapters that it names."""
    named = () if expectation == FAILURE else (expectation.rail, expectation.other)
    return {rail for rail in named if rail != 'all'}


def seconds(schedule):
    """How long a program has to move data, from its beginning on: until everything has happened
    that counts from the start of the schedule, and the last window is over."""
    if not schedule.expectations:
        return 0
    windows = [one.window.end for one in schedule.expectations if one != FAILURE]
    entries = [one.delay for one in schedule.entries if one.event == schedule.start]
    return max([*windows, *entries], default=0) + SPARE


class Report:
    """The file of vm --report: curves of each adapter's load, in both directions, and events; times
    are since @start."""

    def __init__(self, file, start):
        self.curves, self.events, self.end = {}, {'ready': 0.0}, 0.0
        last = {}
        for row in csv.DictReader(file):
            now = self.end = float(row['seconds'])
            if row['what'].startswith(EVENT):
                self.events.setdefault(row['what'].removeprefix(EVENT), now)
            if not row['tx_bytes']:
                continue
            rail = f'{row["machine"]}/{row["rail"]}'
            count = int(row['tx_bytes']) + int(row['rx_bytes'])
            # The counters of an adapter that has come back begin anew.
            more = count - last[rail] if count >= last.get(rail, count + 1) else \
                count if rail in last else 0
            last[rail] = count
            points = self.curves.setdefault(rail, [])
            points.append((now, (points[-1][1] if points else 0) + more))
        self.start = self.events.get(start)

    def _until(self, rail, when):
        """Bytes carried until @when."""
        before = 0.0, 0
        for point in self.curves.get(rail, ()):
            if point[0] >= when:
                share = (when - before[0]) / (point[0] - before[0]) if point[0] > before[0] else 1
                return before[1] + share * (point[1] - before[1])
            before = point
        return before[1]

    def carried(self, rail, window):
        """MB/s of a rail, or of all of them."""
        rails = self.curves if rail == 'all' else [rail]
        total = sum(self._until(one, self.start + window.end) -
                    self._until(one, self.start + window.start) for one in rails)
        return total / (window.end - window.start) / 1e6

    def pause(self, rail, window):
        """The longest time in it with next to nothing carried."""
        times = sorted({now - self.start for points in self.curves.values() for now, _ in points
                        if window.start < now - self.start < window.end})
        still = STILL * self.carried(rail, window)
        longest, since = 0.0, window.start
        for start, end in zip([window.start, *times], [*times, window.end]):
            if self.carried(rail, Window(start, end)) > still:
                since = end
            longest = max(longest, end - since)
        return longest

    def totals(self):
        return ', '.join(f'{rail} {points[-1][1] / 1e6:.1f} MB'
                         for rail, points in sorted(self.curves.items()))


def _ended(expectations, status):
    """The verdict on how the program has ended."""
    if status is None or status == TIMEOUT:
        return Verdict(False, 'the program had not ended when its time was over')
    if FAILURE not in expectations:
        return Verdict(status == 0, f'the program has ended with status {status}')
    if status >= SIGNALS:
        return Verdict(False, f'the program has crashed, status {status}')
    return Verdict(status != 0, f'the program has ended with status {status}, nothing could '
                   'work any more')


def _compared(one, report):
    now, base = report.carried(one.rail, one.window), report.carried(one.other, one.base)
    if base < LEAST:
        return Verdict(False, f'{one.why}: {one.other} carried {base:.1f} MB/s from '
                       f'{one.base.start:g} s to {one.base.end:g} s, that is nothing to compare '
                       'with')
    least = one.percent / 100 * base
    good = now >= least if one.sign == '>=' else now <= least
    return Verdict(good, f'{one.why}: {one.rail} carried {now:.1f} MB/s from '
                   f'{one.window.start:g} s to {one.window.end:g} s, {one.sign} {least:.1f} is '
                   f'expected ({one.percent}% of {one.other} from {one.base.start:g} s to '
                   f'{one.base.end:g} s)')


def _paused(one, report):
    longest = report.pause(one.rail, one.window)
    return Verdict(longest <= one.pause, f'{one.why}: the longest pause of {one.rail} was '
                   f'{longest:.1f} s, <= {one.pause:g} is expected')


def judge(expectations, start, file, status):
    """The verdicts on a program that has ended with @status (None: it had not) while the report
    in @file was written: how it has ended, and one for each expectation that it got to."""
    report = Report(file, start)
    verdicts = [_ended(expectations, status)]
    if report.start is None:
        return verdicts + [Verdict(False, f'{start} has not happened, so nothing else has; '
                                   f'carried: {report.totals()}')]
    for one in expectations:
        if one == FAILURE:
            continue
        if report.end - report.start < one.window.end - LATE:
            # An end with an error is reason enough.
            if verdicts[0].good:
                verdicts.append(Verdict(False, f'{one.why}: the program has ended '
                                        f'{report.end - report.start:.1f} s after {start}, give '
                                        f'it something to do for {one.window.end:g} s'))
            continue
        verdicts.append(_paused(one, report) if one.pause is not None else _compared(one, report))
    return verdicts


def reason(verdicts):
    """In a line: what the first of them that is bad says, or None."""
    return next((one.text for one in verdicts if not one.good), None)


def of_run(schedule, report, sessions):
    """The verdicts on the jobs of these machines."""
    states = [session.status for session in sessions]
    status = None if None in states else next((one for one in states if one), 0)
    with open(report, encoding='utf-8', newline='') as file:
        verdicts = judge(schedule.expectations, schedule.start, file, status)
    # Where a job had to fail, that it has is no failure.
    for session in sessions if verdicts[0].good else ():
        if session.verdict == session.status:
            session.verdict = 0
    return verdicts


def pronounce(path, verdicts, report, sessions):
    """Say what the verdicts of the schedule at @path are; the exit status of the run."""
    name, bad = os.path.basename(path).removesuffix('.faults'), reason(verdicts)
    for one in verdicts:
        note(f'{name}: {"ok" if one.good else "not ok"}: {one.text}')
    note(f'{name}: FAIL: {bad}' if bad else f'{name}: PASS')
    note(f'{name}: what each adapter has carried is in {report}')
    # Trouble of a machine that is not its job's.
    trouble = next((one.verdict for one in sessions if one.verdict not in (0, one.status)), 0)
    return trouble or int(bad is not None)
