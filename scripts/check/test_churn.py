#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of the part churn, guest/churn.sh and guest/eth-storm.sh: the churn takes as long as it is
asked for, does something in that time, and is judged by what is left."""

import os
import subprocess
import tempfile
import unittest
from unittest import mock

import kinds
import parts

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The surroundings of churn(). A round takes a second; in the round BAD something fails.
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
        env = {} if minutes is None else {'MINUTES': minutes}
        with mock.patch.object(kinds, 'call') as call, mock.patch.dict(os.environ, env):
            parts.churn('--kcsan')
        words = call.call_args.args
        self.assertEqual(words[-3:], ('--', kinds.CHECK, 'churn'))
        told = [word for word in words if word.startswith('CHURN_SECONDS=')]
        return int(words[words.index('--timeout') + 1]), int(told[0].partition('=')[2])

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


class Storm(unittest.TestCase):
    def script(self, functions, command):
        return bash(f'{functions}\n. "$TOP/selftests/guest/result.sh"\n'
                    '. "$TOP/selftests/guest/eth-queues.sh"\n'
                    f'. "$TOP/selftests/guest/eth-storm.sh"\n{command}', LOGS='/tmp')

    def test_complaints(self):
        """Those since the mark; of a log that has forgotten it, all."""
        old, mark, new = 'qhca 0: device failed: x', 'storm 1.5', 'qhca 0: restart failed'
        for log, count in (([old, mark], 0), ([old, mark, new, 'other', new], 2),
                           ([mark], 0), ([old, new], 2), ([old, 'storm 115', mark, new], 1)):
            lines = ' '.join(f"'{line}'" for line in log)
            self.assertEqual(self.script(f"dmesg() {{ printf '%s\\n' {lines}; }}",
                                         f"storm_complaints '{mark}'"), [str(count)])

    def test_settings(self):
        """A refused setting does not pass for the one from before."""
        shown = {'-l': 'Combined: 4\nCombined: {0}',
                 '-c': 'Adaptive RX: {1}  TX: off\nrx-usecs: {2}',
                 '-g': 'RX: 4096\nTX: 4096\nRX: {3}\nRX Mini: n/a\nTX: {4}\nTX push: 1'}
        good = ['4', 'off', '0', '1024', '512']
        for which, wrong in (None, ''), (0, '2'), (1, 'on'), (2, '7'), (3, '64'), (4, '64'):
            now = [wrong if number == which else value for number, value in enumerate(good)]
            cases = ' '.join(f"{option}) echo '{text.format(*now)}' ;;"
                             for option, text in shown.items())
            said = self.script(f'ethtool() {{ case $1 in {cases} esac; }}\n'
                               'QHCA_IF=x', 'storm_restored >/dev/null; echo $?')
            self.assertEqual(said, ['0' if which is None else '1'], now)


if __name__ == '__main__':
    unittest.main()
