#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of results.py: what must not look like a success."""

import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ET

import results

HERE = os.path.dirname(os.path.abspath(__file__))


class Results(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def part(self, text, status=0):
        """One part that has printed text: what its failures say, and the counts."""
        self.write('p.log', text)
        self.write('parts', f'p {status} 7 11\n')
        part = results.load(self.directory.name)[0]
        return [r.reason or r.name for r in part.results if r.kind == 'failed'], part.count()

    def write(self, name, text):
        with open(os.path.join(self.directory.name, name), 'w', encoding='utf-8') as file:
            file.write(text)

    def test_forms(self):
        text = ('ok 1 - C-001 of the engine\nok eth/x\nkselftest/mw: ok 3 F-035 a # b\n'
                'a| pair_cm (server): ok 2 K-009 x\nb| ok pair/y (client)\n'
                'ok z # SKIP not here\nok perftest/x # SKIP none\n'
                '5 passed, 0 failed, 0 skipped\na| 0 passed, 0 failed, 2 skipped\n')
        self.assertEqual(self.part(text), ([], [5, 0, 2]))

    def test_no_results(self):
        text = 'oktober\nokay now\n# ok 1\n    ok 1\nthis is ok now\n'
        self.assertEqual(self.part(text + '5 passed, 0 failed, 0 skipped\n')[1], [0, 1, 0])

    def test_no_sum(self):
        self.write('p.clock', '2.0\n5.0\n')
        self.assertEqual(self.part('ok x\n# y begins\n')[0],
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
        other = 'kselftest/mw_key: ok 1 x\n' + ud
        self.assertEqual(self.part(plan + other + '2 passed, 0 failed, 0 skipped\n')[0],
                         ['kselftest/mw was announced and has no result'])

    def test_plan_of_each_machine(self):
        text = ('a| # plan consumers: rds\nb| # plan consumers: rds\na| ok consumers/rds/data\n'
                '1 passed, 0 failed, 0 skipped\n')
        self.assertEqual(self.part(text)[0], ['b| consumers/rds was announced and has no result'])

    def test_times(self):
        """Each machine has its own."""
        self.write('p.clock', '1.0\n2.0\n2.5\n5.0\n7.0\n')
        self.part('hello\na| ok x\nb| ok y\nb| not ok z\na| 1 passed, 1 failed, 0 skipped\n')
        part = results.load(self.directory.name)[0]
        self.assertEqual([r.seconds for r in part.results[:3]], [2.0, 2.5, 2.5])
        junit = os.path.join(self.directory.name, 'junit.xml')
        results.write_junit(junit, [part])
        self.assertEqual([case.get('time') for case in ET.parse(junit).iter('testcase')][:3],
                         ['2.0', '2.5', '2.5'])

    def run_end(self, *options):
        return subprocess.run([sys.executable, os.path.join(HERE, 'results.py'),
                               self.directory.name, 'end', *options],
                              stdout=subprocess.PIPE, text=True, check=False)

    def test_end(self):
        """A part that has not run counts, what failed is there with its reason."""
        self.write('plan', 'p\nq\n')
        self.part('    because\na| not ok y # at once\nx: ok z\n1 passed, 1 failed, 0 skipped\n', 1)
        junit = os.path.join(self.directory.name, 'junit.xml')
        end = self.run_end('--junit', junit)
        self.assertEqual(end.stdout.splitlines(), [
            'p:     because', 'not ok p: a| y # at once',
            'not ok q: the part as a whole # it has not run', '1 passed, 2 failed, 0 skipped'])
        self.assertEqual(end.returncode, 1)
        with open(os.path.join(self.directory.name, 'results.tap'), encoding='utf-8') as file:
            lines = file.readlines()
        self.assertIn('ok - p: x: z\n', lines)
        self.assertIn('# p: 1 passed, 1 failed, 0 skipped, 7 s, 11 s of CPU\n', lines)
        suites = ET.parse(junit).getroot()
        self.assertEqual([(s.get('name'), s.get('tests'), s.get('failures')) for s in suites],
                         [('p', '2', '1'), ('q', '1', '1')])
        self.assertEqual(suites.find('.//failure').get('message'), 'at once')

    def run_again(self, first, second):
        """What the end says of a part that has run twice."""
        self.write('plan', 'p\n')
        self.part(first, 1)
        again = subprocess.run([sys.executable, os.path.join(HERE, 'results.py'),
                                self.directory.name, 'again', 'p'], check=False)
        if again.returncode == 0:
            self.write('p.log', second)
            with open(os.path.join(self.directory.name, 'parts'), 'a', encoding='utf-8') as file:
                file.write('p 0 7 11\n')
        junit = os.path.join(self.directory.name, 'junit.xml')
        lines = self.run_end('--junit', junit).stdout.splitlines()
        return lines, len(ET.parse(junit).findall('.//flakyFailure'))

    def test_unsteady(self):
        """What fails in one of two runs is told, and counts if it is the second."""
        good = 'ok x\nok y\n2 passed, 0 failed, 0 skipped\n'
        bad = 'why\nnot ok x\nok y\n1 passed, 1 failed, 0 skipped\n'
        self.assertEqual(self.run_again(bad, good), (
            ['p: why', 'unsteady p: x', '2 passed, 0 failed, 0 skipped'], 1))
        self.assertEqual(self.run_again(bad, bad), (
            ['p: why', 'not ok p: x', '1 passed, 1 failed, 0 skipped'], 0))
        other = 'ok x\nwhere\nnot ok y\n1 passed, 1 failed, 0 skipped\n'
        self.assertEqual(self.run_again(bad, other), (
            ['p: why', 'unsteady p: x', 'p: where', 'not ok p: y',
             '1 passed, 1 failed, 0 skipped'], 1))

    def test_unsteady_as_a_whole(self):
        """A part that has broken off, and one that leaves out what had failed."""
        good = 'ok x\n1 passed, 0 failed, 0 skipped\n'
        lines, count = self.run_again('killed\n', good)
        self.assertRegex(lines[0], '^unsteady p: the part as a whole # no sum')
        self.assertEqual((lines[1:], count), (['2 passed, 0 failed, 0 skipped'], 1))
        self.assertEqual(self.run_again('not ok z\n0 passed, 1 failed, 0 skipped\n', good), (
            ['not ok p: z', '1 passed, 1 failed, 0 skipped'], 0))

    def test_no_second_run(self):
        """Many failures are no accident."""
        bad = 'not ok x\nnot ok y\nnot ok z\n0 passed, 3 failed, 0 skipped\n'
        self.assertEqual(self.run_again(bad, '')[0][-1], '0 passed, 3 failed, 0 skipped')

    def test_nothing_at_all(self):
        self.assertEqual(self.run_end().returncode, 1)


if __name__ == '__main__':
    unittest.main()
