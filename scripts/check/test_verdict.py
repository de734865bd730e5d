#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of the verdicts on programs that need no machine: vm --scenario."""

import contextlib
import io
import os
import tempfile
import types
import unittest

from vmlib import junit, schedule, verdict

FLAP = '''start carrying
4s a/1: link down
8s a/1: link up
expect a/0 5s..8s >= 60% of 1s..4s: it goes on
expect a/1 12s..16s >= 40% of 1s..4s: it comes back
expect all 12s..16s >= 90% of 5s..8s: it is not slower
expect all 1s..16s pauses <= 3s: it does not stand still
'''


def report(rates, start=2.0, end=20.0, event='carrying', step=0.25):
    """A report of two rails; rates(seconds since the event) are what they carry, in MB/s."""
    rows = ['seconds,machine,rail,tx_bytes,rx_bytes,retransmit,what']
    moved, now = [0.0, 0.0], 0.0
    while now <= end:
        if event and abs(now - start) < step / 2:
            rows.append(f'{start},,,,,,event {event}')
        for rail in range(2):
            rows.append(f'{now},a,{rail},{int(moved[rail])},{int(moved[rail])},0,')
            moved[rail] += rates(now - start)[rail] * step * 1e6 / 2
        now += step
    return io.StringIO('\n'.join(rows + [f'{end},,,,,,end']))


def judge(rates, text=FLAP, status=0, **how):
    found = schedule.parse(text, 'a', 2)
    return verdict.judge(found.expectations, found.start, report(rates, **how), status)


def well(now):
    return 20, 0 if 4 <= now < 8 else 20


class Language(unittest.TestCase):
    def test_words(self):
        one = verdict.parse('a/1 12s..16.5s  >= 40% of a/0 1s..4s: it comes back')
        self.assertEqual(one, ('a/1', (12, 16.5), '>=', 40, 'a/0', (1, 4), None, 'it comes back'))
        self.assertEqual(verdict.parse('all 1s..2s <= 5% of 0s..1s: x').other, 'all')
        self.assertEqual(verdict.parse('all 1s..2s pauses <= 0.5s: x').pause, 0.5)
        self.assertEqual(verdict.parse('failure: it says so'), verdict.FAILURE)
        self.assertEqual(verdict.parse('failure'), verdict.FAILURE)

    def test_nonsense(self):
        for text in ('a/1 1s..2s >= 5% of 0s..1s', 'a 1s..2s >= 5% of 0s..1s: x', 'all: x', ': x',
                     'all 1s..2s: x', 'all 1s..2s > 5% of 0s..1s: x', 'all 1..2 pauses <= 1s: x',
                     'all 2s..1s pauses <= 1s: x', 'all 1s..2s >= 5% of 1s..1s: x', 'success: x'):
            with self.assertRaises(verdict.BadExpectation, msg=text):
                verdict.parse(text)

    def test_seconds(self):
        def seconds(text):
            return verdict.seconds(schedule.parse(text, 'a', 2))
        self.assertEqual(seconds(FLAP), 16 + verdict.SPARE)
        # Not before the last thing has happened, or a program ends well that must not.
        self.assertEqual(seconds(FLAP + '20s a/0: link down'), 20 + verdict.SPARE)
        self.assertEqual(seconds(FLAP + 'ready+20s a/0: none'), 16 + verdict.SPARE)
        self.assertEqual(seconds('20s a/0: link down'), 0)


class Judging(unittest.TestCase):
    def bad(self, *args, **how):
        return [one.text for one in judge(*args, **how) if not one.good]

    def test_good(self):
        self.assertEqual(self.bad(well), [])
        self.assertEqual(len(judge(well)), 5)
        self.assertIsNone(verdict.reason(judge(well)))

    def test_never_back(self):
        verdicts = judge(lambda now: (20, 20 if now < 4 else 0))
        self.assertEqual([one.good for one in verdicts], [True, True, False, True, True])
        self.assertEqual(verdict.reason(verdicts),
                         'it comes back: a/1 carried 0.0 MB/s from 12 s to 16 s, >= 8.0 is '
                         'expected (40% of a/1 from 1 s to 4 s)')

    def test_nothing_to_compare(self):
        """A program that has left an adapter alone before anything happened to it is not judged by
        what that carried then: nothing is not as much as nothing."""
        bad = self.bad(lambda now: (20, 20 if now < 0.5 else 0))
        self.assertEqual(bad, ['it comes back: a/1 carried 0.0 MB/s from 1 s to 4 s, '
                               'that is nothing to compare with'])

    def test_slower(self):
        bad = self.bad(lambda now: (20, 20) if now < 4 else (20, 0) if now < 8 else (2, 9))
        self.assertEqual(len(bad), 1)
        self.assertIn('it is not slower: all carried 11.0 MB/s', bad[0])

    def test_pause(self):
        bad = self.bad(lambda now: (0, 0) if 8 <= now < 11.5 else well(now))
        self.assertEqual(len(bad), 1)
        self.assertRegex(bad[0], r'the longest pause of all was 3\.[3-7] s, <= 3 is expected')
        self.assertEqual(self.bad(lambda now: (0, 0) if 8 <= now < 10 else well(now)), [])

    def test_ends_early(self):
        bad = self.bad(well, end=9.0)
        self.assertEqual(len(bad), 4)
        self.assertIn('it goes on: the program has ended 7.0 s after carrying, give it something '
                      'to do for 8 s', bad[0])
        # An error is the reason, and no other is looked for.
        self.assertEqual(self.bad(well, end=9.0, status=3),
                         ['the program has ended with status 3'])

    def test_never_begins(self):
        bad = self.bad(well, event=None)
        self.assertEqual(len(bad), 1)
        self.assertRegex(bad[0], 'carrying has not happened.* a/0 4.*MB, a/1 3.*MB')

    def test_ends(self):
        self.assertIn('had not ended', self.bad(well, status=None)[0])
        self.assertIn('had not ended', self.bad(well, status=124)[0])
        text = FLAP + 'expect failure\n'
        self.assertEqual(self.bad(well, text, status=1), [])
        self.assertIn('status 0, nothing could', self.bad(well, text, status=0)[0])
        self.assertIn('crashed, status 139', self.bad(well, text, status=139)[0])
        self.assertIn('had not ended', self.bad(well, text, status=124)[0])

    def test_counters_begin_anew(self):
        """As if the adapter was taken out."""
        rows = ['seconds,machine,rail,tx_bytes,rx_bytes,retransmit,what', '0,,,,,,event carrying',
                '0,a,0,5000000,0,0,', '1,a,0,6000000,0,0,', '2,a,0,,,,', '3,a,0,2000000,0,0,']
        found = verdict.Report(io.StringIO('\n'.join(rows)), 'carrying')
        self.assertEqual(found.carried('a/0', verdict.Window(0, 1)), 1)
        self.assertEqual(found.carried('all', verdict.Window(0, 3)), 1)
        self.assertEqual(found.carried('a/1', verdict.Window(0, 3)), 0)


class Run(unittest.TestCase):
    """The exit status of a run, and what is said."""

    def run_of(self, rates, *states, text=FLAP):
        sessions = [types.SimpleNamespace(status=status, verdict=judged)
                    for status, judged in states]
        self.sessions, said = sessions, io.StringIO()
        with tempfile.TemporaryDirectory() as top:
            path = os.path.join(top, 'report.csv')
            with open(path, 'w', encoding='utf-8') as file:
                file.write(report(rates).getvalue())
            verdicts = verdict.of_run(schedule.parse(text, 'ab', 2), path, sessions)
            with contextlib.redirect_stderr(said):
                status = verdict.pronounce('/x/flap.faults', verdicts, path, sessions)
        return status, said.getvalue()

    def test_status(self):
        status, said = self.run_of(well, (0, 0))
        self.assertEqual(status, 0)
        self.assertIn('flap: PASS', said)
        status, said = self.run_of(lambda now: (20, 0 if now > 4 else 20), (0, 0), (0, 0))
        self.assertEqual(status, 1)
        self.assertIn('flap: FAIL: it comes back: a/1 carried 0.0', said)
        self.assertIn('flap: not ok: it comes back', said)
        self.assertEqual(self.run_of(well, (0, 0), (3, 3))[0], 1)
        self.assertEqual(self.sessions[1].verdict, 3)
        self.assertEqual(self.run_of(well, (0, 0), (3, 3), text=FLAP + 'expect failure')[0], 0)
        self.assertEqual(self.sessions[1].verdict, 0)
        # The kernel complains; a machine dies; the time of the run is over.
        self.assertEqual(self.run_of(well, (0, 123))[0], 123)
        self.assertEqual(self.run_of(well, (0, 0), (None, 125))[0], 125)

    def test_junit(self):
        """There is a test for each expectation, and one for the end."""
        suite = junit.Scenario(judge(lambda now: (20, 0 if now > 4 else 20)))
        self.assertEqual([(one.kind, one.name) for one in suite.results], [
            ('passed', 'the program has ended with status 0'), ('passed', 'it goes on'),
            ('failed', 'it comes back'), ('passed', 'it is not slower'),
            ('passed', 'it does not stand still')])


if __name__ == '__main__':
    unittest.main()
