#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of vmlib/build.py, what machines get where there are packages and no sources, and of
machines that are no PCs."""

import os
import tempfile
import types
import unittest
from unittest import mock

import composed
from vmlib import build, machine


class Installed(unittest.TestCase):
    def setUp(self):
        self.bin, tree = tempfile.TemporaryDirectory(), tempfile.TemporaryDirectory()
        self.addCleanup(self.bin.cleanup)
        self.addCleanup(tree.cleanup)
        for patch in (mock.patch.dict(os.environ, PATH=self.bin.name),
                      mock.patch.object(build, 'TOP', tree.name),
                      mock.patch.object(build, 'note')):
            patch.start()
            self.addCleanup(patch.stop)

    def install(self, name):
        path = os.path.join(self.bin.name, name)
        with open(path, 'w', encoding='ascii'):
            os.chmod(path, 0o755)

    def chosen(self, **options):
        opts = types.SimpleNamespace(**{'no_device': False, 'server': False, 'debug_qemu': None,
                                        'arch': 'amd64', **options})
        build.choose_device(opts)
        return opts

    def test_qemu(self):
        self.install('qemu-system-x86_64-qhca')
        self.install('qhca-server')
        opts = self.chosen()
        self.assertFalse(opts.server or opts.no_device)

    def test_server(self):
        self.install('qhca-server')
        opts = self.chosen()
        self.assertTrue(opts.server and not opts.no_device)
        self.assertEqual(build.server_dir(opts), self.bin.name)
        self.assertFalse(self.chosen(no_device=True).server)

    def test_none(self):
        self.assertTrue(self.chosen().no_device)
        with self.assertRaises(build.BuildError):
            build.server_dir(self.chosen(server=True))

    def test_any_qemu(self):
        """A machine without the device takes what is there, else Debian's QEMU."""
        with mock.patch.object(build, 'script', side_effect=self.script):
            opts = self.chosen(no_device=True, qemu=None, hostile=False)
            self.assertEqual(build.qemu_program(opts), '/stock/qemu-system-x86_64')
            self.install('qemu-system-x86_64-qhca')
            self.assertEqual(build.qemu_program(opts),
                             os.path.join(self.bin.name, 'qemu-system-x86_64-qhca'))
            opts.debug_qemu = 'debug'
            with self.assertRaises(build.BuildError):
                build.qemu_program(opts)

    @staticmethod
    def script(name, *_):
        return '/stock' if name == 'build/stock-qemu.sh' else None

    def test_old_qemu(self):
        """The user's QEMU has to know vfio-user-pci, if it is for a server."""
        path = os.path.join(self.bin.name, 'qemu')
        for model, server, good in (('qhca', True, False), ('vfio-user-pci', True, True),
                                    ('qhca', False, True)):
            with open(path, 'w', encoding='ascii') as file:
                os.chmod(path, 0o755)
                file.write(f'#!/bin/sh\necho \'name "{model}", bus PCI\'\n')
            opts = self.chosen(server=server, qemu=path)
            if good:
                self.assertEqual(build.qemu_program(opts), path)
            else:
                with self.assertRaisesRegex(build.BuildError, 'needs QEMU 10.1'):
                    build.qemu_program(opts)

    def test_sanitizer(self):
        """A program without a sanitizer does not pass for one with it."""
        self.install('qhca-server')
        with self.assertRaises(build.BuildError):
            build.server_dir(self.chosen(server=True, debug_qemu='debug'))

    def test_source(self):
        source = os.path.join(build.TOP, build.SOURCES['build/beside.sh'])
        os.makedirs(os.path.dirname(source))
        with open(source, 'w', encoding='ascii'):
            pass
        self.install('qhca-server')
        opts = self.chosen()
        self.assertFalse(opts.server or opts.no_device)


class Architectures(unittest.TestCase):
    """Another board, CPU and serial port; KVM only where such a machine runs."""

    def command(self, name, **options):
        return composed.command(types.SimpleNamespace(
            console=False, iommu=False, smp=1, mem=1024, kernel_arg=[], allow_splat=True,
            internet=False, mounts=[], trace=[], gdb=False, qemu_arg=[], arch=name, **options))

    def test_arm64(self):
        args = self.command('arm64', server=True)
        self.assertEqual(args[args.index('-machine') + 1],
                         'virt,gic-version=max,memory-backend=ram')
        self.assertTrue(args[args.index('-append') + 1].startswith('console=ttyAMA0 '))

    def test_s390x(self):
        """Virtio on channels; no ROM, no root port."""
        args = self.command('s390x', server=False)
        self.assertIn('virtio-blk-ccw,drive=root', args)
        self.assertFalse([word for word in args if '-pci' in word])
        nic = machine.Nic('qhca', 1, 0, 1, 'user', (), 's390x').args()
        self.assertIn('zpci,uid=2,fid=1,target=qhca1', nic)
        self.assertFalse([word for word in nic if 'bus=' in word or 'root-port' in word])
        other = machine.Nic('virtio', 0, 0, 1, 'user', (), 's390x').args()
        self.assertFalse([word for word in other if 'romfile' in word])

    def test_accelerator(self):
        with mock.patch.object(machine.platform, 'machine', return_value='x86_64'):
            self.assertEqual(machine.choose_accel('auto', 'arm64')[0], 'tcg')


if __name__ == '__main__':
    unittest.main()
