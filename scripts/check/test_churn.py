#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of check/debug.sh and guest/churn.sh: the churn takes as long as it is asked for, and does
something in that time."""

import os
import subprocess
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# What is around churn(). A round takes a second; in the round BAD something fails.
STUBS = """
unset SECONDS     # it is a clock no more
SECONDS=0 LOGS=$DIR/logs
. "$GUEST/result.sh"
life_prepare() { :; }
life_works() { SECONDS=$((SECONDS + 3)); }     # as slow as a debug kernel
storm() { [ $n != "$BAD" ] || echo broken; [ $n != "$BAD" ]; }
life_ways() { SECONDS=$((SECONDS + 1)); result ok "life/$1"; }
device_recovers() { :; }
. "$GUEST/churn.sh"
CHURN_DIR=$DIR
for name in $CHURN_PROGRAMS; do
    [ "$name" = "$MISSING" ] || { echo >"$DIR/$name"; chmod +x "$DIR/$name"; }
done
churn
summary
"""


def bash(script, **env):
    return subprocess.run(['bash', '-c', script], env={**os.environ, 'TOP': TOP, **env},
                          text=True, check=False, stdout=subprocess.PIPE).stdout.splitlines()


class Part(unittest.TestCase):
    def part(self, minutes):
        """The time limit of its machine, and what the machine is told."""
        words = bash('. "$TOP/scripts/lib.sh"; . "$TOP/scripts/check/parts.sh"\n'
                     'one_guest() { echo "$@"; }; churn --kcsan',
                     **({} if minutes is None else {'MINUTES': minutes}))[0].split()
        self.assertEqual(words[-2:], ['--', 'churn'])
        told = [word for word in words if word.startswith('CHURN_SECONDS=')]
        return int(words[0]), int(told[0].partition('=')[2])

    def test_limit(self):
        for minutes, seconds in (None, 600), ('10', 600), ('600', 36000), ('0', 0):
            limit, told = self.part(minutes)
            self.assertEqual(told, seconds)
            self.assertGreaterEqual(limit, seconds + 3600)
        self.assertGreater(limit, 1 << 29)      # no end


class Guest(unittest.TestCase):
    def churn(self, seconds, bad='', missing=''):
        with tempfile.TemporaryDirectory() as top:
            out = bash(STUBS, GUEST=os.path.join(TOP, 'selftests/guest'), DIR=top, BAD=bad,
                       MISSING=missing, CHURN_SECONDS=seconds, QHCA_DEV='qhca0')
        return [line for line in out if 'not ok' in line], out[-1]

    def test_rounds(self):
        self.assertEqual(self.churn('5'), ([], '11 passed, 0 failed, 0 skipped'))
        self.assertEqual(self.churn('3', '2'),
                         (['not ok churn/2: queues of the network card'],
                          '6 passed, 1 failed, 0 skipped'))

    def test_endless(self):
        """Until something fails."""
        self.assertEqual(self.churn('0', '40'),
                         (['not ok churn/40: queues of the network card'],
                          '80 passed, 1 failed, 0 skipped'))

    def test_missing(self):
        """A program that is not there would fail all the time, as one may."""
        self.assertEqual(self.churn('3', missing='dm'),
                         (['not ok churn/before # no program dm'], '0 passed, 1 failed, 0 skipped'))


if __name__ == '__main__':
    unittest.main()
