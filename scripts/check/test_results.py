#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of the runner: output of a part that is no success, and the programs of parts."""

import subprocess
import tempfile
import unittest
from unittest import mock

import kinds
import parts
import results


class Results(unittest.TestCase):
    @staticmethod
    def part(text, status=0, clock=()):
        """One part that has printed text: what its failures say, and the counts."""
        report = results.Report()
        for i, line in enumerate(text.splitlines()):
            report.read(line, clock[i] if clock else 0.0)
        report.end(status, 7)
        return [r.reason or r.name for r in report.results if r.kind == 'failed'], report.count()

    def test_forms(self):
        text = ('ok 1 - C-001 of the engine\nok eth/x\nkselftest/mw: ok 3 F-035 a # b\n'
                'a| pair_cm (server): ok 2 K-009 x\nb| ok pair/y (client)\n'
                'ok z # SKIP not here\nok perftest/x # SKIP none\n'
                '5 passed, 0 failed, 0 skipped\na| 0 passed, 0 failed, 2 skipped\n')
        self.assertEqual(self.part(text), ([], [5, 0, 2]))

    def test_untitled(self):
        """A skip without a title is none of a result called "# skip"."""
        text = 'ok 2 # skip\nok # SKIP no room\nnot ok 1 # why\n0 passed, 1 failed, 2 skipped\n'
        self.assertEqual(self.part(text), (['why'], [0, 1, 2]))

    def test_returns(self):
        """A carriage return in a title makes no second result of it, for conformance.py."""
        with tempfile.NamedTemporaryFile('w', newline='') as file:
            file.write('not ok - p: x\rok D-054 y\n')
            file.flush()
            self.assertEqual([kind for _, kind in results.read_tap(file.name)], ['failed'])

    def test_no_results(self):
        text = 'oktober\nokay now\n# ok 1\n    ok 1\nthis is ok now\n'
        self.assertEqual(self.part(text + '5 passed, 0 failed, 0 skipped\n')[1], [0, 1, 0])

    def test_no_sum(self):
        self.assertEqual(self.part('ok x\n# y begins\n', clock=(2.0, 5.0))[0],
                         ['no sum, status 0; the last result, after 2 of 7 s: x; '
                          'the last line: # y begins'])
        self.assertEqual(self.part('killed\n')[0],
                         ['no sum, status 0; no result; the last line: killed'])

    def test_wrong_sum(self):
        self.assertIn('its results are', self.part('ok x\n2 passed, 0 failed, 0 skipped\n')[0][0])

    def test_status(self):
        self.assertEqual(self.part('ok x\n1 passed, 0 failed, 0 skipped\n', 123)[0], ['status 123'])

    def test_nothing(self):
        self.assertEqual(self.part('0 passed, 0 failed, 0 skipped\n')[0], ['nothing has run'])

    def test_failure(self):
        self.assertEqual(self.part('    why\nnot ok 2 - y\n0 passed, 1 failed, 0 skipped\n', 1),
                         (['y'], [0, 1, 0]))

    def test_plan(self):
        plan = '# plan kselftest: mw ud\n'
        mw, ud = 'kselftest/mw: ok 1 x\n', 'kselftest/ud: ok 1 y\n'
        self.assertEqual(self.part(plan + mw + ud + '2 passed, 0 failed, 0 skipped\n')[0], [])
        self.assertEqual(self.part(plan + mw + '1 passed, 0 failed, 0 skipped\n')[0],
                         ['kselftest/ud was announced and has no result'])
        other = 'kselftest/mw_race: ok 1 x\n' + ud
        self.assertEqual(self.part(plan + other + '2 passed, 0 failed, 0 skipped\n')[0],
                         ['kselftest/mw was announced and has no result'])

    def test_plan_of_each_machine(self):
        text = ('a| # plan consumers: rds\nb| # plan consumers: rds\na| ok consumers/rds/data\n'
                '1 passed, 0 failed, 0 skipped\n')
        self.assertEqual(self.part(text)[0], ['b| consumers/rds was announced and has no result'])

    def test_times(self):
        """Each machine has its own."""
        report = results.Report()
        for now, line in ((1.0, 'hello'), (2.0, 'a| ok x'), (2.5, 'b| ok y'), (5.0, 'b| not ok z')):
            report.read(line, now)
        self.assertEqual([r.seconds for r in report.results], [2.0, 2.5, 2.5])


class Programs(unittest.TestCase):
    def test_all(self):
        """Each part has programs of different names, and each kselftest is in the one for it."""
        for name, _, _, _, part in parts.PARTS:
            names = [program.name for program in part.programs()]
            self.assertEqual(len(names), len(set(names)), name)
            self.assertTrue(names, name)
        self.assertIn('mw', kinds.Guest.kselftests())
        self.assertNotIn('bench', kinds.Guest.kselftests())
        self.assertEqual(kinds.Guest.kselftests()[-1], 'undone')

    def test_chosen(self):
        """The sections that the guest is told to run."""
        guest = kinds.Guest(9, '', 'claims eth kselftest')
        self.assertEqual(guest.words(None), ['claims', 'eth', 'kselftest'])
        self.assertEqual(guest.words(['eth', 'mw']), ['eth', 'kselftest', 'mw'])
        self.assertEqual(kinds.Guest(9, '', 'cm pyverbs').words(['pyverbs']), ['pyverbs'])
        self.assertEqual(kinds.Guest(9, '', 'kverbs kselftest mw').words(['kverbs']), ['kverbs'])

    def test_owner(self):
        owns = kinds.Program('mw').owns
        self.assertTrue(owns('kselftest/mw F-035 x') and owns('kselftest/mw: x'))
        self.assertFalse(owns('kselftest/mw_bind x'))

    def test_owner_of_several(self):
        """The program a title begins with, not one its words mention."""
        kselftest = kinds.Guest(9, '', 'eth kselftest')
        for title, name in (('kselftest/ud K-001 both events come', 'ud'), ('eth/mcast x', 'eth'),
                            ('a| kselftest/mw_race: mw of a QP', 'mw_race'),
                            (' dmesg/clean behind eth', None)):
            self.assertEqual(kselftest.owner(title), name)
        self.assertEqual(kinds.Consumers(1, 'ucx', 'ucx-gtest').owner('consumers/ucx-gtest/x'),
                         'ucx-gtest')

    def test_sanitized(self):
        """A part with a sanitizer has no programs that conftest.py leaves out there."""
        for part, there in ((kinds.QTest(server=[]), True), (kinds.QTest(server=['--asan']), False),
                            (kinds.QTest(('build/qemu.sh', '--debug')), False),
                            (kinds.QTest(), True)):
            names = [program.name for program in part.programs()]
            self.assertEqual('leaks.reset' in names, there)
            self.assertIn('regs.bases', names)

    def test_qtest(self):
        """pytest knows all options in the command of a part with a server."""
        with tempfile.TemporaryDirectory() as top, \
                mock.patch.object(kinds, 'output', lambda *_: top), \
                mock.patch.object(kinds, 'call') as call:
            for name in 'qemu-qtest', 'qhca-server':
                with open(f'{top}/{name}', 'w', encoding='utf-8'):
                    pass
            kinds.QTest(server=[]).run(['regs.bases'])
            done = subprocess.run([*call.call_args[0], '--collect-only'], check=False, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertNotIn('unrecognized', done.stdout)

    def test_counted(self):
        """The sum of a script that prints none has its skips."""
        text = 'ok a\nok b # SKIP no room\nnot ok c\n'
        with mock.patch('builtins.print') as told:
            kinds.counted('x', 'printf', text)
        self.assertEqual(told.call_args[0], ('1 passed, 1 failed, 1 skipped',))

    def test_engine(self):
        tests = kinds.Engine('check').tests()
        self.assertIn('test_rc_data in frames', tests['test_rc_data'])
        self.assertIn('sim-fast both', tests['sim'])
        self.assertFalse(any('today' in name for names in tests.values() for name in names))


if __name__ == '__main__':
    unittest.main()
