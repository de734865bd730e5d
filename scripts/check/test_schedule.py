#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of schedules of faults that need no machine: vm --faults."""

import contextlib
import csv
import io
import json
import os
import tempfile
import time
import types
import unittest

from vmlib import machine, schedule


def entries(text, roles='ab', hcas=2):
    return schedule.parse(text, roles, hcas)


class Language(unittest.TestCase):
    def test_lines(self):
        first, second, third = entries('''
            # a comment, and nothing
            2s       a/0: port bandwidth=500; tx prob=1% drop  # the first rail
            gone     b/1: link down
            gone+1.5ms a/1: speed 1000''')
        self.assertEqual(first, ('ready', 2, 'a', 0, 'port bandwidth=500; tx prob=1% drop', (
            'qom-set', {'property': 'faults', 'value': 'port bandwidth=500; tx prob=1% drop'})))
        self.assertEqual(second, ('gone', 0, 'b', 1, 'link down', ('set_link', {'up': False})))
        self.assertEqual((third.event, third.delay, third.commands), (
            'gone', 0.0015, ('qom-set', {'property': 'bandwidth', 'value': 1000})))

    def test_what(self):
        for what, (name, arguments) in {
                'none': ('qom-set', {'property': 'faults', 'value': ''}),
                'link up': ('set_link', {'up': True}),
                'fatal': ('qom-set', {'property': 'inject-fatal', 'value': True}),
        }.items():
            self.assertEqual(entries(f'1s a/0: {what}')[0].commands, (name, arguments))

    def test_seed(self):
        """Times that are drawn are those of the seed."""
        def drawn(seed):
            return [one.delay for one in entries(f'seed {seed}\n' + '1s~2s a/0: none\n' * 9)]
        self.assertEqual(drawn(3), drawn(3))
        self.assertNotEqual(drawn(3), drawn(4))
        self.assertTrue(all(1 <= delay <= 3 for delay in drawn(3)))
        self.assertGreater(len(set(drawn(3))), 5)

    def test_nonsense(self):
        for line in ('2s a/0', '2s a/0:', '2 a/0: none', 'a/0: none', '2s a: none', '-1s a/0: none',
                     '2s~ a/0: none', '~2s a/0: none', 'gone+ a/0: none', 'Gone a/0: none',
                     'seed x', '2s a/-1: none', '+2s a/0: none', 'gone2s~1s+ a/0: none'):
            with self.assertRaisesRegex(schedule.BadSchedule, 'line 2: not', msg=line):
                entries('1s a/0: none\n' + line)
        for line in '2s c/0: none', '2s a/2: none':
            with self.assertRaisesRegex(schedule.BadSchedule, 'line 1: there is no adapter'):
                entries(line)

    def test_files(self):
        with tempfile.TemporaryDirectory() as top:
            with self.assertRaises(schedule.BadSchedule):
                schedule.read(top, 'a', 1)
            path = os.path.join(top, 'x')
            with open(path, 'wb') as file:
                file.write(b'\xff\xfe')
            with self.assertRaises(schedule.BadSchedule):
                schedule.read(path, 'a', 1)


class Machine:
    """Answers as a session does, and keeps what it was asked."""

    def __init__(self, role, refuses=''):
        self.role, self.refuses, self.asked = role, refuses, []
        self.ready, self.status, self.player = True, None, None
        self.nics = [machine.Nic('qhca', n, 0, 1, 'user') for n in range(2)]

    def command(self, text):
        asked = json.loads(text)
        if asked['execute'] == 'qom-get':
            return json.dumps({'return': {'tx_bytes': 7, 'rx_bytes': 8, 'retransmit': 9}})
        self.asked.append((time.monotonic(), asked['execute'], asked['arguments']))
        if self.refuses and self.refuses in text:
            return json.dumps({'error': {'desc': 'no such word'}})
        return '{"return": {}}'


class Playing(unittest.TestCase):
    def play(self, text, seconds, *machines, report=None, act=lambda player: None):
        said = io.StringIO()
        player = schedule.Player(entries(text), machines, report)
        with contextlib.redirect_stderr(said):
            with player:
                time.sleep(0.05)
                act(player)
                time.sleep(seconds)
        return player, said.getvalue()

    def test_order(self):
        one, two = Machine('a'), Machine('b')
        start = time.monotonic()
        player, said = self.play('200ms b/1: none\n50ms a/0: link down\nmark+100ms a/1: fatal\n'
                                 'never a/0: none', 0.5, one, two,
                                 act=lambda player: player.event('mark'))
        self.assertEqual([(name, list(what.values())) for _, name, what in one.asked], [
            ('set_link', ['qhca0', False]),
            ('qom-set', ['/machine/peripheral/qhca1', 'inject-fatal', True])])
        self.assertEqual(len(two.asked), 1)
        self.assertGreaterEqual(two.asked[0][0] - start, 0.2)
        self.assertGreaterEqual(one.asked[1][0] - start, 0.15)
        self.assertFalse(player.failed)
        self.assertIn('a/0: none: its time has not come', said)

    def test_ready(self):
        """Nothing happens before all machines have begun, or after one has ended."""
        for late, ended in ((True, None), (False, 0)):
            one, two = Machine('a'), Machine('b')
            two.ready, two.status = not late, ended
            _, said = self.play('1ms a/0: none', 0.1, one, two)
            self.assertEqual(one.asked, [])
            self.assertIn('has not come', said)

    def test_refused(self):
        player, said = self.play('1ms a/0: tx dorp', 0.1, Machine('a', 'dorp'), Machine('b'))
        self.assertTrue(player.failed)
        self.assertIn('a/0: tx dorp: no such word', said)

    def test_report(self):
        with tempfile.TemporaryDirectory() as top:
            path = os.path.join(top, 'report.csv')
            self.play('10ms a/1: none', 0.4, Machine('a'), Machine('b'), report=path)
            with open(path, encoding='utf-8', newline='') as file:
                rows = list(csv.DictReader(file))
        self.assertEqual([row['what'] for row in rows if row['what']], ['none'])
        moved = [row for row in rows if row['tx_bytes']]
        self.assertEqual({(row['machine'], row['rail']) for row in moved},
                         {('a', '0'), ('a', '1'), ('b', '0'), ('b', '1')})
        self.assertEqual((moved[0]['tx_bytes'], moved[0]['rx_bytes'], moved[0]['retransmit']),
                         ('7', '8', '9'))
        self.assertGreaterEqual(len(moved), 8)


class Events(unittest.TestCase):
    def test_request(self):
        from vmlib import session       # pylint: disable=import-outside-toplevel
        with tempfile.TemporaryDirectory() as top:
            one = session.Session('a', 'tcg', os.path.join(top, 'r'), os.path.join(top, 's'))
            self.assertEqual(one.request('event x'), '{"return": {}}')
            happened = []
            one.player = types.SimpleNamespace(event=happened.append)
            one.request('event resumed-2')
            for name in '', '2', 'A', 'a' * 40, 'a b', 'a\x00':
                self.assertIn('error', json.loads(one.request(f'event {name}')))
            self.assertEqual(happened, ['resumed-2'])


if __name__ == '__main__':
    unittest.main()
