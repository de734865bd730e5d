#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of machines of several architectures that need no machine: vm --arch."""

import types
import unittest
from unittest import mock

import composed
from vmlib import arch, build, runner

VM = composed.load_vm()


def parse(*words):
    return composed.parse(VM, *words)


class Options(unittest.TestCase):
    def test_roles(self):
        self.assertEqual(parse('run', '--', 'x').arch, 'amd64')
        opts = parse('pair', '--arch', 'b:s390x', '--', 'x', '--', 'y')
        self.assertEqual([arch.for_role(opts, role).arch for role in 'ab'], ['amd64', 's390x'])
        opts = parse('net', '-n', '3', '--arch', 'arm64', '--arch', 'c:amd64', '--', 'x')
        self.assertEqual([arch.for_role(opts, role).arch for role in 'abc'],
                         ['arm64', 'arm64', 'amd64'])

    def test_nobody(self):
        """An option that no machine would take is refused."""
        for words, machine in ((['run', '--arch', 'b:s390x', '--', 'x'], 'b'),
                               (['shell', '--arch', 'b:s390x'], 'b'),
                               (['lab', '-n', '2', '--arch', 'c:arm64'], 'c'),
                               (['pair', '--arch', 'B:s390x', '--', 'x', '--', 'y'], 'B'),
                               (['pair', '--arch', 'ab:s390x', '--', 'x', '--', 'y'], 'ab'),
                               (['build', '--arch', '2:s390x'], '2')):
            self.assertIn(f'there is no machine {machine}', parse(*words))

    def test_names(self):
        for name in 'vax', '', 's390', 'b:':
            self.assertIn('is none of amd64, arm64', parse('pair', '--arch', name, '--',
                                                           'x', '--', 'y'))

    def test_not_with(self):
        for option in ['--iommu'], ['--kernel', '7'], ['--debug-kernel'], ['--keep', 'x']:
            self.assertIn(f'--arch s390x: not with {option[0]}',
                          parse('pair', '--arch', 'b:s390x', *option, '--', 'x', '--', 'y'))


class Build(unittest.TestCase):
    def built(self, *words):
        with mock.patch.object(build, 'everything', return_value={'qemu': '/q'}) as made, \
                mock.patch.object(VM.machine, 'choose_accel', return_value=('tcg', '')), \
                mock.patch.object(VM, 'note'):
            found = VM.build_all(parse(*words))
        self.assertEqual([call.args[0].arch for call in made.call_args_list], list(found))
        return list(found)

    def test_each_once(self):
        self.assertEqual(self.built('net', '-n', '4', '--arch', 'b:s390x', '--arch', 'd:s390x',
                                    '--', 'x'), ['amd64', 's390x'])
        self.assertEqual(self.built('run', '--arch', 'arm64', '--', 'x'), ['arm64'])

    def test_build(self):
        """It does not know how many machines there will be."""
        self.assertEqual(self.built('build', '--arch', 'b:s390x'), ['amd64', 's390x'])
        self.assertEqual(self.built('build'), ['amd64'])


class Accelerator(unittest.TestCase):
    """KVM is given up for good only because of a machine that it has not started."""

    def boot(self, role):
        opts = parse('pair', '--arch', 'b:s390x', '-q', '--', 'x', '--', 'y')
        built = {'amd64': ({}, 'kvm'), 's390x': ({}, 'tcg')}
        machines = [types.SimpleNamespace(role=name, accel=accel, tail=lambda *_: '',
                                          up_after=None if name == role else 1)
                    for name, accel in (('a', 'kvm'), ('b', 'tcg'))]
        tried = []

        def attempt(opts, built):
            tried.append({name: accel for name, (_, accel) in built.items()})
            if len(tried) == 1:
                runner.check_boot(opts, machines, 1000)
            return 0

        with mock.patch.object(VM, 'attempt', attempt), mock.patch.object(VM, 'note'), \
                mock.patch('builtins.open') as marked:
            return VM.boot(opts, built), tried, marked.called

    def test_kvm(self):
        self.assertEqual(self.boot('a'), (0, [{'amd64': 'kvm', 's390x': 'tcg'},
                                              {'amd64': 'tcg', 's390x': 'tcg'}], True))

    def test_other(self):
        self.assertEqual(self.boot('b'), (125, [{'amd64': 'kvm', 's390x': 'tcg'}], False))


if __name__ == '__main__':
    unittest.main()
