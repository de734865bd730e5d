#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of guest/result.sh and guest/skips.sh: a skip that no list expects is a failure."""

import os
import subprocess
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GUEST = os.path.join(TOP, 'selftests/guest')
LIST = """# a comment
kselftest/mr: F-001 *\t| dm-size=0 | no device memory
pyverbs/odp/*\t\t| | 'ODP is not supported*'
kselftest/*: *\t| !guest-faults=on maybe\t| no faults
others/x | | fails: a.cc:7
kselftest/flush: * | kernel<1.0 | never so old
kselftest/ud: * | !kernel<1.0 | newer
"""


class Skips(unittest.TestCase):
    def run_script(self, script, variant='', device='qhca0'):
        """Its output, without the totals, and those."""
        with tempfile.TemporaryDirectory() as directory:
            os.mkdir(os.path.join(directory, 'skips'))
            with open(os.path.join(directory, 'skips', 'list'), 'w', encoding='utf-8') as file:
                file.write(LIST)
            env = dict(os.environ, SKIPS_DIR=f'{directory}/skips', LOGS=f'{directory}/logs',
                       QHCA_VARIANT=variant, QHCA_DEV=device, GUEST=GUEST)
            out = subprocess.run(['bash', '-c', '. "$GUEST/result.sh"\n' + script
                                  + '\nsummary'], env=env, text=True, check=False,
                                 stdout=subprocess.PIPE).stdout.splitlines()
        return out[:-1], out[-1]

    def test_result(self):
        self.assertEqual(self.run_script("result skip pyverbs/odp/x \"'ODP is not supported'\""),
                         (["ok pyverbs/odp/x # SKIP 'ODP is not supported'"],
                          '0 passed, 0 failed, 1 skipped'))

    def test_unexpected(self):
        for skip in ('pyverbs/mr/x "\'ODP is not supported\'"', 'pyverbs/odp/x other', 'x'):
            out, totals = self.run_script(f'result skip {skip}')
            self.assertRegex(out[0], '^not ok .* # unexpected skip: ')
            self.assertEqual(totals, '0 passed, 1 failed, 0 skipped')

    def test_patience(self):
        """A step with patience of its own that fails gets another try, and leaves it as it was."""
        script = """PATIENCE=8 n=0
            tries() { n=$((n + 1)); sleep "$PATIENCE"; [ $n = 2 ]; }
            until_true tries && result ok "$n tries, $PATIENCE"
            PATIENCE=1; until_true false || result ok ends"""
        self.assertEqual(self.run_script(script)[0], ['ok 2 tries, 8', 'ok ends'])

    def test_ktap(self):
        log = ['TAP version 13', '1..6', 'ok 1 ping.v4', 'ok 2 ping.v6 # SKIP no IPv6',
               'ok 3 ping.sim # XFAIL only on netdevsim',
               '# Exception| lib.py.CmdExitFailure: Command failed',
               '# Exception|   STDERR: no such context', 'not ok 4 rss.ctx',
               '# Exception| Traceback', '# Exception|   File "a.py"', '# Exception| ValueError: 7',
               'not ok 5 rss.key', '# Check failed 1 != 2', 'not ok 6 rss.set # SKIP half']
        out = subprocess.run(['bash', '-c', f'. {GUEST}/ktap.sh\nktap_verdicts'], check=True,
                             input='\n'.join(log) + '\n', text=True,
                             stdout=subprocess.PIPE).stdout
        self.assertEqual([line.rstrip() for line in out.splitlines()],
                         ['ok ping.v4', 'skip ping.v6 no IPv6',
                          'skip ping.sim only on netdevsim', 'fail rss.ctx no such context',
                          'fail rss.key ValueError: 7', 'fail rss.set Check failed 1 != 2',
                          'plan 6 6'])

    def tap(self, points, variant=''):
        lines = '\n'.join(points)
        return self.run_script(f'printf "%s\\n" "{lines}" "1..{len(points)}" >"$LOGS/tap"\n'
                               'tap kselftest/mr "$LOGS/tap" 0', variant)

    def test_tap(self):
        points = ['ok 1 F-001 a # SKIP no device memory', 'ok 2 F-002 b', 'not ok 3 F-003 c',
                  'ok 4 - F-004 d # SKIP no faults']
        self.assertEqual(self.tap(points, 'iommu dm-size=0'),
                         ([f'kselftest/mr: {point}' for point in points],
                          '1 passed, 1 failed, 2 skipped'))

    def test_tap_unexpected(self):
        for variant in ('', 'dm-size=01', 'dm-size=0 guest-faults=on'):
            out, totals = self.tap(['ok 1 F-001 a # SKIP no device memory',
                                    'ok 2 - F-004 d # SKIP no faults'], variant)
            bad = [line.split(': ', 1)[1] for line in out if ': not ok ' in line]
            want = {'dm-size=0 guest-faults=on':
                    ['not ok 2 F-004 d # unexpected skip: no faults']}.get(
                        variant, ['not ok 1 F-001 a # unexpected skip: no device memory'])
            self.assertEqual(bad, want)
            self.assertEqual(totals, '0 passed, 1 failed, 1 skipped')

    def test_stale(self):
        out, totals = self.tap(['ok 1 F-001 a', 'ok 2 F-002 b'], 'dm-size=0')
        self.assertEqual([line for line in out if ': not ok' in line],
                         ['kselftest/mr: not ok 1 F-001 a # passes, which skips/ does not expect'])
        self.assertEqual(totals, '1 passed, 1 failed, 0 skipped')
        self.assertEqual(self.run_script('result ok pyverbs/odp/x'),
                         (['not ok pyverbs/odp/x # passes, which skips/ does not expect'],
                          '0 passed, 1 failed, 0 skipped'))

    def test_foreign(self):
        for where, totals in (('a.cc:7', '0 passed, 0 failed, 1 skipped'),
                              ('a.cc:8', '0 passed, 1 failed, 0 skipped')):
            out, sums = self.run_script(f'foreign others/x {where}')
            self.assertEqual(sums, totals)
        self.assertEqual(out, ['not ok others/x # a.cc:8'])
        self.assertEqual(self.run_script('result ok others/x')[0][0][:6], 'not ok')

    def test_kernel(self):
        self.assertEqual(self.run_script('result skip "kselftest/flush: F" "never so old"')[1],
                         '0 passed, 1 failed, 0 skipped')
        self.assertEqual(self.run_script('result skip "kselftest/ud: F" newer')[1],
                         '0 passed, 0 failed, 1 skipped')


if __name__ == '__main__':
    unittest.main()
