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

from vmlib import build, machine, schedule


def entries(text, roles='ab', hcas=2):
    return schedule.parse(text, roles, hcas).entries


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
                'unplug': ('device_del', {}),
                'plug': ('plug', {}),
        }.items():
            self.assertEqual(entries(f'1s a/0: {what}')[0].commands, (name, arguments))

    def test_seed(self):
        """Times are drawn by the seed."""
        def drawn(seed):
            return [one.delay for one in entries(f'seed {seed}\n' + '1s~2s a/0: none\n' * 9)]
        self.assertEqual(drawn(3), drawn(3))
        self.assertNotEqual(drawn(3), drawn(4))
        self.assertTrue(all(1 <= delay <= 3 for delay in drawn(3)))
        self.assertGreater(len(set(drawn(3))), 5)

    def test_start(self):
        """Bare times count from the event that the schedule starts with."""
        found = schedule.parse('1s a/0: none\nstart go\n2s a/0: none\nready a/0: none\n'
                               'expect a/0 1s..2s >= 50% of 0s..1s: x', 'a', 1)
        self.assertEqual([(one.event, one.delay) for one in found.entries],
                         [('ready', 1), ('go', 2), ('ready', 0)])
        self.assertEqual((found.start, len(found.expectations)), ('go', 1))
        for line in 'expect', 'expect a/0', 'start', 'start 2s', 'start Go':
            with self.assertRaisesRegex(schedule.BadSchedule, 'line 1: not', msg=line):
                entries(line)

    def test_scenarios(self):
        """Each is for two adapters, says where it comes from and what it expects."""
        for name in sorted(os.listdir(os.path.join(build.TOP, 'selftests/scenarios'))):
            path = schedule.scenario(name.removesuffix('.faults'))
            found = schedule.read(path, 'a', 2)
            self.assertTrue(found.entries and found.expectations, msg=name)
            self.assertEqual(found.start, schedule.CARRYING, msg=name)
        with self.assertRaisesRegex(schedule.BadSchedule, 'flop is none of dark, .*flap'):
            schedule.scenario('flop')

    def test_nonsense(self):
        for line in ('2s a/0', '2s a/0:', '2 a/0: none', 'a/0: none', '2s a: none', '-1s a/0: none',
                     '2s~ a/0: none', '~2s a/0: none', 'gone+ a/0: none', 'Gone a/0: none',
                     'seed x', '2s a/-1: none', '+2s a/0: none', 'gone2s~1s+ a/0: none'):
            with self.assertRaisesRegex(schedule.BadSchedule, 'line 2: not', msg=line):
                entries('1s a/0: none\n' + line)
        for line in ('2s c/0: none', '2s a/2: none', 'expect a/2 1s..2s >= 50% of 0s..1s: x',
                     'expect all 1s..2s >= 50% of c/0 0s..1s: x',
                     'expect c/0 1s..2s pauses <= 1s: x'):
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

    def __init__(self, role, refuses='', speed=0):
        self.role, self.refuses, self.asked = role, refuses, []
        self.count, self.speed = 0, speed
        self.ready, self.status, self.player = True, None, None
        self.nics = [machine.Nic('qhca', n, 0, 1, 'user') for n in range(2)]

    def command(self, text):
        asked = json.loads(text)
        if asked['execute'] == 'qom-get':
            self.count += self.speed
            return json.dumps({'return': {'tx_bytes': 7 + self.count, 'rx_bytes': 8,
                                          'retransmit': 9}})
        self.asked.append((time.monotonic(), asked['execute'], asked['arguments']))
        if self.refuses and self.refuses in text:
            return json.dumps({'error': {'desc': 'no such word'}})
        return '{"return": {}}'

    def plug(self, nic):
        """The guest takes its time."""
        self.asked.append((time.monotonic(), 'plug', nic.index))
        slow = len(self.asked) < 5
        return '{"error": {"desc": "Duplicate device ID"}}' if slow else '{"return": {}}'


class Playing(unittest.TestCase):
    def play(self, text, seconds, *machines, report=None, act=lambda player: None):
        said = io.StringIO()
        player = schedule.Player(schedule.parse(text, 'ab', 2), machines, report)
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

    def test_plug(self):
        """It waits until the guest has let the adapter go; a server's cannot go."""
        one = Machine('a')
        text = '1ms a/1: port ce=1%\n2ms a/1: unplug\n3ms a/1: plug'
        player, _ = self.play(text, 0.3, one)
        rules = ('qom-set', {'path': '/machine/peripheral/qhca1', 'property': 'faults',
                             'value': 'port ce=1%'})
        self.assertEqual([(name, what) for _, name, what in one.asked],
                         [rules, ('device_del', {'id': 'qhca1'})] + 3 * [('plug', 1)] + [rules])
        self.assertFalse(player.failed)
        plan = schedule.parse(text, 'ab', 2)
        self.assertEqual([schedule.plugs(plan, role) for role in 'ab'], [True, False])
        one = Machine('a')
        one.nics[1].socket = 'x'
        player, said = self.play('1ms a/1: unplug', 0.1, one)
        self.assertTrue(player.failed and not one.asked)
        self.assertIn('stays plugged in', said)

    def test_report(self):
        with tempfile.TemporaryDirectory() as top:
            path = os.path.join(top, 'report.csv')
            self.play('10ms a/1: none', 0.4, Machine('a'), Machine('b'), report=path)
            with open(path, encoding='utf-8', newline='') as file:
                rows = list(csv.DictReader(file))
        self.assertEqual([row['what'] for row in rows if row['what']], ['none', 'end'])
        moved = [row for row in rows if row['tx_bytes']]
        self.assertEqual({(row['machine'], row['rail']) for row in moved},
                         {('a', '0'), ('a', '1'), ('b', '0'), ('b', '1')})
        self.assertEqual((moved[0]['tx_bytes'], moved[0]['rx_bytes'], moved[0]['retransmit']),
                         ('7', '8', '9'))
        self.assertGreaterEqual(len(moved), 8)

    def test_carrying(self):
        """It happens when all adapters of machine a have moved data, with or without a report."""
        text = 'carrying a/1: fatal'
        for speed, times in ((schedule.ENOUGH, 1), (0, 0)):
            one = Machine('a', speed=speed)
            self.play(text, 0.8, one, Machine('b'))
            self.assertEqual(len(one.asked), times)
        with tempfile.TemporaryDirectory() as top:
            path = os.path.join(top, 'report.csv')
            self.play(text, 0.8, Machine('a', speed=schedule.ENOUGH), report=path)
            with open(path, encoding='utf-8', newline='') as file:
                said = [row['what'] for row in csv.DictReader(file) if row['what']]
        self.assertEqual(sorted(said), ['end', 'event carrying', 'fatal'])


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
