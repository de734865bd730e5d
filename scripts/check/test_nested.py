#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of `vm nested` that need no machine: its options, and what it builds for those in it."""

import json
import os
import tempfile
import threading
import time
import tty
import types
import unittest
from unittest import mock

import composed
from vmlib import build, job, nested, patience, requests, runner, session

VM = composed.load_vm()
INSIDE = {patience.INSIDE: '1', 'QHCA_PATIENCE': '2'}
WISHES = dict.fromkeys(nested.WISHES, None) | {'arch': 'amd64'}


def parse(*words):
    return composed.parse(VM, *words)


def here(path):
    return mock.patch('os.getcwd', return_value=path)


class Options(unittest.TestCase):
    def setUp(self):
        patch = mock.patch.dict(os.environ, QHCA_PATIENCE='1')
        patch.start()
        self.addCleanup(patch.stop)

    def test_command(self):
        opts = parse('nested', '--', 'scripts/vm', 'pair', '--', 'x', '--', 'y')
        self.assertEqual((opts.mode, opts.accel, opts.mem, opts.setup, opts.timeout),
                         ('run', 'tcg', 6144, 'net nested', 600 * patience.NESTED))
        self.assertEqual(opts.commands, [['scripts/vm', 'pair', '--', 'x', '--', 'y']])
        self.assertTrue(opts.no_device and opts.no_selftests)

    def test_prompt(self):
        self.assertEqual(parse('nested').mode, 'shell')

    def test_own(self):
        opts = parse('nested', '--mem', '8G', '--smp', '3', '--accel', 'kvm', '--timeout', '10',
                     '--', 'x')
        self.assertEqual((opts.mem, opts.smp, opts.accel, opts.timeout),
                         (8192, 3, 'kvm', 10 * patience.NESTED))

    def test_others(self):
        """Options for the machines in it would be lost."""
        for words in (['--server'], ['--hcas', '2'], ['--fault', 'cmd once hang'], ['-n', '3'],
                      ['--iommu'], ['--nic-b', 'virtio'], ['--arch', 's390x'], ['--no-insmod'],
                      ['--device-arg', 'vectors=3'], ['--loss', '1'], ['--no-device']):
            self.assertIn(f'nested: {words[0]} is for the machines in it',
                          parse('nested', *words, '--', 'x'))

    def test_usual(self):
        opts = parse('run', '--mount', '/tmp', '--', 'x')
        self.assertEqual((opts.nested, opts.mem, opts.smp, opts.timeout, opts.mounts),
                         (False, 2048, 2, 600, [('/tmp', '/mnt')]))

    def test_inside(self):
        """The launcher in the outer machine, which is slow."""
        with mock.patch.dict(os.environ, INSIDE):
            self.assertIn('this is the machine of vm nested', parse('nested', '--', 'x'))
            self.assertEqual(parse('run', '--', 'x').timeout, 600 * 2 * patience.NESTED)


class Mounts(unittest.TestCase):
    def environment(self, *words, where):
        opts = parse('nested', *words, '--', 'x')
        with here(where):
            return dict(opts.mounts), nested.environment(opts)

    def test_own_paths(self):
        cache = os.path.abspath(build.CACHE)
        dirs, env = self.environment(where=os.path.join(build.TOP, 'scripts'))
        for path in build.TOP, cache:
            self.assertTrue(any(path == one or path.startswith(one + '/') for one in dirs))
        self.assertTrue(all(one == path for one, path in dirs.items()))
        self.assertEqual((env['QHCA_WHERE'], env['QHCA_CACHE'], env['QHCA_ACCEL']),
                         (os.path.join(build.TOP, 'scripts'), cache, 'kvm'))

    def test_further(self):
        with tempfile.TemporaryDirectory() as top:
            dirs, env = self.environment('--mount', top, where='/usr')
            self.assertEqual((dirs[top], env['QHCA_WHERE']), (top, top))
            dirs, env = self.environment('--mount', f'{top}:/x', where=top)
            self.assertEqual((dirs[top], env['QHCA_WHERE']), ('/x', '/x'))

    def test_of_guest(self):
        for words in (['nested', '--mount', '/tmp'], ['run', '--mount', '/usr:/tmp/', '--', 'x'],
                      ['shell', '--mount', '/usr:/']):
            self.assertIn("a file system of the machine's own", parse(*words))

    def test_once(self):
        """A directory below another one is there already."""
        above = os.path.dirname(build.TOP)
        dirs, _ = self.environment('--mount', above, where=build.TOP)
        self.assertNotIn(build.TOP, dirs)

    def test_usual(self):
        self.assertEqual(nested.environment(parse('run', '--', 'x')), {})


class Limits(unittest.TestCase):
    def test_factor(self):
        with mock.patch.dict(os.environ, QHCA_PATIENCE='2'):
            usual = patience.boot_limit('kvm', False)
            self.assertEqual(patience.for_guest({}),
                             {'QHCA_PATIENCE': 2, 'PATIENCE': 240, 'KSELFTEST_PATIENCE': 2})
        with mock.patch.dict(os.environ, INSIDE):
            self.assertEqual(patience.for_guest({'PATIENCE': '10'})['PATIENCE'],
                             20 * patience.NESTED)
            self.assertGreater(patience.boot_limit('kvm', False), usual)

    def test_boot(self):
        """A machine that takes its time is given up in the outer machine later than elsewhere."""
        slow = types.SimpleNamespace(role='a', accel='kvm', up_after=None, tail=lambda *_: '')
        opts = parse('run', '--', 'x')
        with self.assertRaises(runner.NoBoot):
            runner.check_boot(opts, [slow], 60)
        with mock.patch.dict(os.environ, INSIDE):
            runner.check_boot(opts, [slow], 60)


class Memory(unittest.TestCase):
    def said(self, there, *words, inside=False):
        with mock.patch.dict(os.environ, INSIDE if inside else {}), \
                mock.patch.object(nested, '_available', return_value=there):
            try:
                return nested.check_memory(parse(*words))
            except build.BuildError as err:
                return str(err)

    def test_host(self):
        self.assertIn('takes 6400 MiB, and 6399 are available here',
                      self.said(6399, 'nested', '--', 'x'))
        self.assertIsNone(self.said(6400, 'nested'))

    def test_outer(self):
        pair = 'pair', '--', 'x', '--', 'y'
        self.assertIsNone(self.said(4608, *pair, inside=True))
        self.assertIn('take 4608 MiB, and 4607 are available in the outer',
                      self.said(4607, *pair, inside=True))
        self.assertIn('vm nested --mem 8G',
                      self.said(5700, 'net', '-n', '3', '--', 'x', inside=True))
        self.assertIsNone(self.said(100, 'build', inside=True))

    def test_elsewhere(self):
        """A host may have swap, and its user other reasons."""
        self.assertIsNone(self.said(100, 'net', '-n', '9', '--', 'x'))


class Builds(unittest.TestCase):
    """The outer machine's launcher asks, this one builds."""

    def test_others_ask(self):
        with tempfile.TemporaryDirectory() as top:
            one = session.Session('a', 'tcg', os.path.join(top, 'r'), os.path.join(top, 's'))
            with mock.patch.object(build, 'everything') as made:
                for opts in None, parse('run', '--', 'x'):
                    one.opts = opts
                    self.assertIn('error', json.loads(one.request('build ' + json.dumps(WISHES))))
                made.assert_not_called()
                one.opts = parse('nested', '--', 'x')
                made.return_value = {'qemu': '/q', 'kernel': None}
                self.assertEqual(json.loads(one.request('build ' + json.dumps(WISHES))),
                                 {'return': {'qemu': '/q', 'kernel': None}})

    def test_limit(self):
        """It does not count how long that takes."""
        def slow(_):
            time.sleep(0.2)
            return {}

        with tempfile.TemporaryDirectory() as top:
            one = session.Session('a', 'tcg', os.path.join(top, 'r'), os.path.join(top, 's'))
            one.opts = parse('nested', '--', 'x')
            with mock.patch.object(build, 'everything', slow):
                one.request('build ' + json.dumps(WISHES))
        self.assertGreaterEqual(one.built, 0.2)
        selector = types.SimpleNamespace(get_map=lambda: True)
        one.process = types.SimpleNamespace(poll=lambda: None)
        for timeout, ends in ((one.built + 1, False), (0.1, True)):
            opts = types.SimpleNamespace(timeout=timeout, gdb=False)
            with mock.patch.object(runner, 'check_boot'), \
                    mock.patch.object(runner, '_serve', side_effect=InterruptedError):
                start = time.monotonic() - one.built - 0.5
                if ends:
                    self.assertFalse(runner._loop(opts, [one], selector, start))
                else:
                    with self.assertRaises(InterruptedError):
                        runner._loop(opts, [one], selector, start)

    def serve(self, text):
        return nested.serve(parse('nested', '--', 'x'), text)

    def test_refused(self):
        for text in ('', '[]', '{}', json.dumps(WISHES | {'arch': 'vax'})):
            with self.assertRaises(requests.Refused):
                self.serve(text)

    def test_failed(self):
        with mock.patch.object(build, 'everything', side_effect=build.BuildError('no space')):
            self.assertEqual(json.loads(self.serve(json.dumps(WISHES)))['error']['desc'],
                             'no space')

    def ask(self, reply, *words):
        """The outer machine's launcher gets this reply; its result, and the request."""
        ours, theirs = os.openpty()
        tty.setraw(theirs)
        asked = []

        def answer():
            line = b''
            while not line.endswith(b'\n'):
                line += os.read(ours, 4096)
            asked.append(line.decode())
            os.write(ours, json.dumps(reply).encode() + b'\n')

        with tempfile.TemporaryDirectory() as top, \
                mock.patch.object(nested, 'HOST', os.ttyname(theirs)), \
                mock.patch.object(nested, 'LOCK', os.path.join(top, 'lock')):
            launcher = threading.Thread(target=answer)
            launcher.start()
            try:
                return nested.everything(parse(*words)), asked[0]
            finally:
                launcher.join()
                os.close(ours)
                os.close(theirs)

    def test_ask(self):
        dirs, asked = self.ask({'return': {'qemu': '/', 'kernel': None}}, 'run', '--server',
                               '--kdir', 'x', '--', 'x')
        self.assertEqual(dirs, {'qemu': '/', 'kernel': None})
        word, _, text = asked.partition(' ')
        self.assertEqual((word, json.loads(text)['server'], json.loads(text)['kdir']),
                         ('build', True, os.path.abspath('x')))
        with mock.patch.object(build, 'everything') as made:
            self.serve(text)
            self.assertEqual(made.call_args[0][0].kdir, os.path.abspath('x'))

    def test_own_qemu(self):
        """It is the outer machine's, which has built none."""
        self.assertEqual(self.ask({'return': {'qemu': '/other'}}, 'run', '--qemu', '/', '--',
                                  'x')[0]['qemu'], '/')

    def test_not_there(self):
        with self.assertRaisesRegex(build.BuildError, '/not/there is not in the outer machine'):
            self.ask({'return': {'qemu': '/not/there'}}, 'run', '--', 'x')

    def test_error(self):
        with self.assertRaisesRegex(build.BuildError, 'no space'):
            self.ask({'error': {'desc': 'no space'}}, 'run', '--', 'x')

    def test_build_all(self):
        """Nothing else is built in there."""
        with mock.patch.dict(os.environ, INSIDE), \
                mock.patch.object(nested, 'everything', return_value={'qemu': '/q'}) as asked, \
                mock.patch.object(build, 'script') as made:
            VM.build_all(parse('run', '--accel', 'kvm', '-q', '--', 'x'))
            asked.assert_called_once()
            made.assert_not_called()


class Guest(unittest.TestCase):
    def test_environment(self):
        """The job gets to know that KVM is what machines in it are to take."""
        with tempfile.TemporaryDirectory() as top:
            opts = parse('nested', '--', 'x')
            one = session.Session('a', 'tcg', os.path.join(top, 'r'), os.path.join(top, 's'))
            one.nics = VM.make_nics(opts, 0, [])
            env = job.environment(opts, one)
        self.assertEqual((env['QHCA_ACCEL'], env['QHCA_NESTED'], env['QHCA_SETUP'],
                          env['QHCA_INSMOD']), ('kvm', 1, 'net nested', 0))


if __name__ == '__main__':
    unittest.main()
