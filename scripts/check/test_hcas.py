#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of machines with several HCAs that need no machine: vm --hcas."""

import contextlib
import json
import os
import tempfile
import types
import unittest
from unittest import mock

import composed
from vmlib import build, cable, job, machine, requests, session

VM = composed.load_vm()


def asked(name, /, **arguments):
    return json.dumps({'execute': name, 'arguments': arguments})


class Options(unittest.TestCase):
    def parse(self, *words):
        return composed.parse(VM, *words)

    def test_count(self):
        for count in 1, 8:
            self.assertEqual(self.parse('run', '--hcas', str(count), '--', 'x').hcas, count)
        for count in '0', '9', '-1':
            self.assertIn(f'a machine has 1 to 8, not {count}',
                          self.parse('run', f'--hcas={count}', '--', 'x'))
        self.assertIn('invalid int', self.parse('run', '--hcas', 'two', '--', 'x'))

    def test_put(self):
        """A file without a name in the machine: it used to end a boot."""
        for put in 'file', 'file:', ':name':
            self.assertIn(f'--put {put}: not HOST:NAME',
                          self.parse('run', '--put', put, '--', 'x'))
        self.assertEqual(self.parse('run', '--put', 'a:b', '--', 'x').put, ['a:b'])

    def test_not_with(self):
        for option in (['--no-device'], ['--both-ends'], ['--mortal-server'],
                       ['--rxe-peer', 'b'], ['--nic-b', 'virtio']):
            self.assertIn(f'--hcas: not with {option[0]}',
                          self.parse('run', '--hcas', '2', *option, '--', 'x'))
            self.assertNotIsInstance(self.parse('pair', '--hcas', '1', '--nic-b', 'virtio', '--',
                                                'x', '--', 'y'), str)

    def test_unplug(self):
        """Not of a server, and before anything is built."""
        self.assertIn('stay plugged in',
                      self.parse('run', '--scenario', 'unplug', '--server', '--', 'x'))
        self.assertEqual(self.parse('run', '--scenario', 'flap', '--server', '--', 'x').hcas, 2)

    def test_modes(self):
        for words in (['shell'], ['lab', '-n', '3'], ['pair', '--', 'x', '--', 'y'],
                      ['net', '-n', '3', '--', 'x'], ['run', '--server', '--', 'x']):
            self.assertEqual(self.parse(words[0], '--hcas', '2', *words[1:]).hcas, 2)


class Machines(unittest.TestCase):
    """The parts of two machines with so many HCAs."""

    def nics(self, hcas, *words, index=1):
        with mock.patch.object(build, 'choose_device'):
            opts = VM.parse(['pair', '--hcas', str(hcas), *words, '--', 'x', '--', 'y'])
        cables = [types.SimpleNamespace(backends=[f'end{number}a', f'end{number}b'])
                  for number in range(hcas + 1)]
        return opts, VM.make_nics(opts, index, cables)

    def test_all_differ(self):
        _, nics = self.nics(8, '--virtio')
        self.assertEqual([nic.kind for nic in nics], ['qhca'] * 8 + ['virtio'])
        args = [nic.args() for nic in nics]
        for what in ([nic.mac for nic in nics], [nic.ip for nic in nics],
                     [nic.backend for nic in nics], [one[1] for one in args],
                     [one[3] for one in args[:8]], [one[5] for one in args[:8]]):
            self.assertEqual(len(set(what)), len(what))
        for number, one in enumerate(args[:8]):
            self.assertEqual(one[1], f'end{number}b,id=n{number}')
            self.assertIn(f'id=rp{number},', one[3])
            self.assertIn(f'id=qhca{number},bus=rp{number},netdev=n{number},', one[5])

    def test_same_network(self):
        """An HCA and its peer have the same network, and no other two have."""
        ends = [self.nics(8, index=index)[1] for index in (0, 1)]
        networks = [[nic.ip.rsplit('.', 1)[0] for nic in nics] for nics in ends]
        self.assertEqual(*networks)
        self.assertEqual(len(set(networks[0])), 8)
        for ours, theirs in zip(*ends):
            self.assertEqual((ours.peers[0], ours.ip), (theirs.ip, theirs.peers[0]))

    def test_first_only(self):
        _, nics = self.nics(2, '--fault', 'cmd once hang', '--pcap-loopback', '/x',
                            '--device-arg', 'vectors=4', index=0)
        self.assertEqual(nics[0].device_args, ['vectors=4', 'faults=cmd once hang',
                                               'loopback-capture=/x'])
        self.assertEqual(nics[1].device_args, ['vectors=4'])

    def test_environment(self):
        opts, nics = self.nics(3, '--virtio')
        one = types.SimpleNamespace(role='b', nics=nics, interactive=False, accel='tcg', disk=None)
        env = job.environment(opts, one)
        self.assertEqual(env['QHCA_IPS'], '192.168.77.2 192.168.78.2 192.168.79.2')
        self.assertEqual(env['QHCA_RAIL_PEERS'], '192.168.77.1 192.168.78.1 192.168.79.1')
        self.assertEqual(env['QHCA_MACS'].split()[0], env['QHCA_MAC'])
        self.assertEqual(env['QHCA_VIRTIO_IP'], '192.168.80.2')

    def test_one(self):
        """Nothing has changed for a machine with one."""
        self.assertEqual(machine.Nic('qhca', 0, 0, 1, cable.user(0)).args()[2:], [
            '-device', 'pcie-root-port,id=rp0,chassis=1,slot=1', '-device',
            'driver=qhca,id=qhca0,bus=rp0,netdev=n0,mac=52:54:00:00:4d:01'])


class Servers(unittest.TestCase):
    """One qhca-server for each rail."""

    def test_servers(self):
        with tempfile.TemporaryDirectory() as top, mock.patch.object(build, 'choose_device'), \
                mock.patch.object(VM.server.Server, 'start'):
            opts = VM.parse(['pair', '--server', '--hcas', '2', '--', 'x', '--', 'y'])
            sessions = []
            for index, role in enumerate('ab'):
                one = session.Session(role, 'tcg', os.path.join(top, 'r'), os.path.join(top, 's'))
                one.nics = VM.make_nics(opts, index, [types.SimpleNamespace(backends='ab')] * 2)
                sessions.append(one)
            with contextlib.ExitStack() as stack:
                with mock.patch.object(VM.server, 'end', return_value=0), \
                        mock.patch.object(VM.server.logs.Pipe, 'finish'):
                    VM.server.start_all(opts, {'server': '/p'}, sessions, top, top, stack)
                    stack.close()
            args = [one.args for one in sessions[0].servers]
            self.assertEqual(sessions[0].servers, sessions[1].servers)
        self.assertEqual(len(args), 2)
        self.assertNotEqual(args[0][3], args[1][3])                     # where it is controlled
        for rail, words in enumerate(args):
            sockets = [word for word in words if ',id=' in word]
            self.assertEqual(len(sockets), 2)
            for one, word in zip(sessions, sockets):
                self.assertTrue(word.startswith(f'{one.nics[rail].socket},id={one.role},'
                                                f'mac={one.nics[rail].mac}'))
        self.assertEqual(len({nic.socket for one in sessions for nic in one.nics}), 4)

    def test_requests(self):
        """Each goes to the server that has the adapter."""
        nics = [machine.Nic('qhca', n, 0, 1, 'user') for n in range(2)]
        for nic in nics:
            nic.socket = f'/{nic.index}'
        for rail in 0, 1:
            path = f'/machine/peripheral/qhca{rail}'
            for text in (asked('qom-get', path=path, property='counters'),
                         asked('set_link', name=f'n{rail}', up=False),
                         asked('set_link', name=f'qhca{rail}', up=False)):
                sent, where = requests.for_server(requests.command(text, nics), 'b', nics)
                self.assertEqual(where, rail)
                self.assertIn('b', json.loads(sent)['arguments'].values())
        self.assertIsNone(requests.for_server(requests.command(asked('query-status'), nics),
                                              'b', nics))


class Requests(unittest.TestCase):
    """A guest may take away and plug in each of its own adapters."""

    NICS = [machine.Nic(kind, n, 0, 1, 'user') for n, kind in enumerate(['qhca'] * 2 + ['virtio'])]

    def test_allowed(self):
        for text in (asked('device_del', id='qhca1'), asked('set_link', name='n2', up=True),
                     asked('qom-get', path='/machine/peripheral/qhca1', property='objects')):
            requests.command(text, self.NICS)
        for text in (asked('device_del', id='qhca2'), asked('device_del', id='rp1'),
                     asked('set_link', name='n3', up=True),
                     asked('qom-get', path='/machine/peripheral/qhca2', property='objects')):
            with self.assertRaises(requests.Refused):
                requests.command(text, self.NICS)

    def test_plug(self):
        self.assertEqual(requests.plug(requests.adapter('1', self.NICS)), {
            'driver': 'qhca', 'id': 'qhca1', 'bus': 'rp1', 'netdev': 'n1',
            'mac': self.NICS[1].mac})
        self.assertEqual(requests.adapter('', self.NICS), self.NICS[0])
        for text in '2', '3', '-1', '01', '1 1', '{}':
            with self.assertRaises(requests.Refused):
                requests.adapter(text, self.NICS)


if __name__ == '__main__':
    unittest.main()
