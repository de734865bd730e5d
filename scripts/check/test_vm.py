#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of lib.sh and vmlib that need no machine; check-vm.py has those that do."""

import contextlib
import io
import json
import os
import socket
import subprocess
import tarfile
import tempfile
import threading
import types
import unittest
import xml.etree.ElementTree as ET
from unittest import mock

from vmlib import junit, logs, machine, payload, requests, runner, session, splat

HERE = os.path.dirname(os.path.abspath(__file__))


class Root(unittest.TestCase):
    """Who may build, and how: lib.sh with other programs in its PATH."""

    def setUp(self):
        self.top = tempfile.TemporaryDirectory()
        self.addCleanup(self.top.cleanup)
        self.program('id', '[ "$1" != -un ] || { echo somebody; exit; }; echo 1000')
        self.program('unshare', 'exit 1')

    def program(self, name, text):
        path = os.path.join(self.top.name, name)
        with open(path, 'w', encoding='ascii') as file:
            file.write(f'#!/bin/sh\n{text}\n')
        os.chmod(path, 0o755)

    def run_lib(self, text, sudo=True, **env):
        if sudo:
            self.program('sudo', 'echo "sudo $*"; case "$1" in -n) exit 1;; esac')
        path = self.top.name + (':/usr/bin:/bin' if sudo else ':' + self.without_sudo())
        env = {'PATH': path, 'HOME': self.top.name, **env}
        done = subprocess.run(['bash', '-c', f'. {HERE}/../lib.sh; {text}'], env=env, check=False,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def without_sudo(self):
        """Links to all programs but that."""
        path = os.path.join(self.top.name, 'bin')
        os.mkdir(path)
        for name in os.listdir('/usr/bin'):
            if name != 'sudo':
                os.symlink(os.path.join('/usr/bin', name), os.path.join(path, name))
        return path

    def test_namespace(self):
        self.program('unshare', 'while [ "$1" != -- ]; do shift; done; shift; echo in >&2\n'
                                'exec "$@"')
        status, out = self.run_lib('as_root echo it; own_ids; ask_root')
        self.assertEqual((status, out), (0, 'in\nit\n0:0\n'))

    def test_sudo(self):
        status, out = self.run_lib('as_root echo it; own_ids')
        self.assertEqual((status, out), (0, 'sudo -E echo it\n1000:1000\n'))

    def test_asks_in_front(self):
        """Before a step, which runs in the background."""
        status, out = self.run_lib('run_step step as_root true; cat "$STEP_LOG"')
        self.assertEqual(status, 0)
        self.assertLess(out.index('sudo -v'), out.index(': step'))
        self.assertIn('/etc/subuid', out)

    def test_never_behind(self):
        status, out = self.run_lib('run_step step as_root true', QHCA_BACKGROUND='1')
        self.assertEqual(status, 1)
        self.assertIn('sudo wants a password', out)
        self.assertNotIn('sudo -v\n', out)

    def test_none(self):
        status, out = self.run_lib('ask_root', sudo=False)
        self.assertEqual(status, 1)
        self.assertIn('user namespaces', out)


class Splat(unittest.TestCase):
    def test_boot(self):
        self.assertIsNone(splat.find('[1.0] DMA-API: preallocated 65536 debug entries\n'
                                     '[1.1] DMA-API: debugging enabled by kernel config\n'
                                     '[1.1] DMA-API: debugging disabled on kernel command line\n'
                                     '[1.2] kasan: KernelAddressSanitizer initialized\n'))

    def test_overlap(self):
        start, end = '[1.0] ------------[ cut here ]------------\n', '[1.4] ---[ end trace 0 ]---\n'
        report = (start + '[1.1] DMA-API: qhca 0000:01:00.0: cacheline tracking EEXIST, x\n'
                  '[1.2] WARNING: CPU: 0 PID: 1 at kernel/dma/debug.c:601 x\n'
                  '[1.3] Call Trace:\n' + end)
        other = (start + '[1.1] DMA-API: exceeded 7 overlapping mappings of cacheline 0x4448000\n'
                 '[1.2] WARNING: CPU: 1 PID: 2 at kernel/dma/debug.c:463 x\n' + end)
        for text in (report, other, report.replace('[1.3]', start + '[1.3]') + end,
                     report + '[1.5] DMA-API: Mapped at:\n[1.6]  map+0x43/0x70\n[1.7] fine\n'):
            self.assertIsNone(splat.find(text))
        for warning in ('[1.5] WARNING: CPU: 0 PID: 1 at y\n', start + '[1.5] WARNING: CPU: y\n'):
            self.assertIn(' y', splat.find(report + warning + other))
            self.assertIn(' y', splat.find(report.replace('[1.3]', warning + '[1.3]')))

    def test_core_lock(self):
        report = ('[1.0] ------------[ cut here ]------------\n'
                  '[1.1] DEBUG_LOCKS_WARN_ON(lock->magic != lock)\n'
                  '[1.2] WARNING: CPU: 1 PID: 2 at kernel/locking/mutex.c:588 x\n'
                  '[1.3] Call Trace:\n[1.4]  ? y+0x1/0x2\n[1.5]  mutex_lock_nested+0x1/0x2\n'
                  '[1.6]  ib_uverbs_attach_mcast+0x1/0x2\n[1.7] ---[ end trace 0 ]---\n')
        self.assertIsNone(splat.find(report))
        self.assertIn('mine', splat.find(report.replace('ib_uverbs_attach_mcast', 'mine')))
        other = report.replace('[1.3]', '[1.3] WARNING: CPU: 0 at z\n[1.3]')
        self.assertIn('at z', splat.find(other))

    def test_race(self):
        report = (f'[1.0] {"=" * 66}\n[1.1] BUG: KCSAN: data-race in a / b\n[1.2] \n'
                  '[1.3] write to 0x1 of 4 bytes by task 1 on cpu 0:\n[1.4]  a+0x1/0x2\n'
                  '[1.5]  x+0x1/0x2\n[1.6]  y+0x1/0x2 [qhca]\n'
                  f'[1.7] Reported by Kernel Concurrency Sanitizer\n[1.8] {"=" * 66}\n')
        self.assertIsNone(splat.find(report))
        for name in 'ax':
            mine = report.replace(f' {name}+0x1/0x2', f' {name}+0x1/0x2 [qhca_ib]')
            self.assertIn('a / b', splat.find(report + mine))

    def test_locks(self):
        report = (f'[1.0] {"=" * 54}\n[1.1] WARNING: possible circular locking dependency\n'
                  '[1.2] x/1 is trying to acquire lock:\n'
                  '[1.3] a (b), at: uverbs_user_mmap_disassociate+0x1/0x2\n'
                  '[1.4] rdma_umap_open+0x1/0x2\n[1.5] Call Trace:\n[1.6]  </TASK>\n')
        self.assertIsNone(splat.find(report))
        self.assertIn('mine', splat.find(report.replace('rdma_umap_open', 'mine')))

    def test_sanitizers(self):
        race = ('WARNING: ThreadSanitizer: data race (pid=1)\n'
                '  Write of size 8 at 0x1 by thread T1:\n'
                '    #0 memcpy ../../src/libsanitizer/a.cpp:1 (q)\n    #1 b /s/x.c:1 (q)\n'
                '    #2 c ../hw/net/qhca/y.c:2 (q)\n\n'
                '  Previous read of size 8 at 0x1 by main thread:\n    #0 d ../s/x.c:3 (q)\n'
                '    #1 e ../s/z.c:3 (q)\n\n'
                '  Thread T1 created by main thread at:\n    #0 e ../hw/net/qhca/z.c:4 (q)\n'
                f'SUMMARY: ThreadSanitizer: data race\n{"=" * 18}\n')
        self.assertEqual(splat.sanitizer(race), '')
        for ours in ('/s/x.c:1', '../s/x.c:3', '../s/z.c:3'):
            mine = race.replace(ours, '../hw/net/qhca/x.c:9')
            self.assertEqual(splat.sanitizer(race + mine) + '\n', mine)
        guest = race.replace('../s/x.c:3', '../accel/tcg/x.c:3').replace('/s/x.c:1', '/a/qhca/x.c')
        self.assertEqual(splat.sanitizer(guest), '')
        undefined = '../hw/net/qhca/x.c:1:2: runtime error: shift exponent\n    #0 a\n'
        self.assertIn('#0 a', splat.sanitizer(undefined))
        self.assertEqual(splat.sanitizer(undefined.replace('qhca', 'e1000')), '')

    def test_leaks(self):
        def leak(where):
            return (f'[1.1] unreferenced object 0x1 (size 8):\n[1.2]   comm "x"\n'
                    f'[1.3]   backtrace (crc 1):\n[1.4]     kmemleak_alloc+0x1/0x2\n'
                    f'[1.5]     {where}+0x1/0x2\n')
        said = '[1.0] kmemleak: 2 new suspected memory leaks (see x)\n'
        task = leak('copy_process')
        for other in ('prepare_creds', 'setup_port', 'flow_resources_alloc'):
            self.assertIsNone(splat.find(said + task + leak(other)))
        note = '[1.3] hrtimer: interrupt took 57296428 ns\n'
        self.assertIsNone(splat.find(said + task.replace('[1.5]', note + '[1.5]')))
        for others in ('', task + leak('a'), leak('a') + task):
            text = said + others + '[1.6] x\n[1.7] copy_process+0x1/0x2\n'
            self.assertIn('2 new', splat.find(text))

    def test_complaint(self):
        for line in ('DMA-API: qhca 0000:01:00.0: device driver frees DMA memory',
                     'BUG: KASAN: slab-use-after-free in x', 'WARNING: CPU: 0 PID: 1 at x'):
            self.assertIn(line, splat.find(f'[1.0] fine\n[1.1] {line}\n'))


class Accelerator(unittest.TestCase):
    def choose(self, flags='vmx', exists=True, usable=True, marker=False):
        info = mock.mock_open(read_data=f'flags : fpu {flags}\n')
        with mock.patch('builtins.open', info), \
                mock.patch('os.access', return_value=usable), \
                mock.patch('os.path.exists', side_effect=lambda path:
                           exists if path == '/dev/kvm' else marker):
            return machine.choose_accel('auto')

    def test_reasons(self):
        self.assertEqual(self.choose()[0], 'kvm')
        for expect, args in (('no virtualization', {'flags': ''}),
                             ('modprobe kvm_intel', {'exists': False}),
                             ('modprobe kvm_amd', {'exists': False, 'flags': 'svm'}),
                             ('sudo usermod -aG kvm', {'usable': False}),
                             ('rm ', {'marker': True})):
            accel, why = self.choose(**args)
            self.assertEqual(accel, 'tcg')
            self.assertIn(expect, why)


NICS = [machine.Nic('qhca', 0, 0, 1, 'user'), machine.Nic('virtio', 1, 0, 1, 'user')]
DEVICE = '/machine/peripheral/qhca0'


def asked(name, /, **arguments):
    return json.dumps({'execute': name, 'arguments': arguments})


class Requests(unittest.TestCase):
    """A guest that wants a file of the host, a program on it, or just a lot."""

    def refused(self, text):
        with self.assertRaises(requests.Refused):
            requests.command(text, NICS)

    def test_allowed(self):
        for text in (asked('query-status'), '{"execute": "query-status"}',
                     asked('set_link', name='n1', up=False), asked('device_del', id='qhca0'),
                     asked('qom-get', path=DEVICE, property='objects'),
                     asked('qom-set', path=DEVICE, property='faults', value='cmd once hang')):
            sent = json.loads(requests.command(text, NICS))
            self.assertEqual(sent['execute'], json.loads(text)['execute'])

    def test_other_commands(self):
        for name, arguments in (
                ('migrate', {'uri': 'exec:touch /tmp/x'}),
                ('human-monitor-command', {'command-line': 'pmemsave 0 10 "/tmp/x"'}),
                ('screendump', {'filename': '/tmp/x'}), ('quit', {}), ('stop', {}),
                ('chardev-add', {'id': 'x', 'backend': {'type': 'file', 'data': {'out': 'x'}}}),
                ('blockdev-add', {'driver': 'file', 'filename': '/etc/shadow'}),
                ('object-add', {'qom-type': 'filter-dump', 'id': 'x', 'file': '/tmp/x'}),
                ('trace-event-set-state', {'name': '*', 'enable': True})):
            self.refused(asked(name, **arguments))

    def test_other_arguments(self):
        for text in (asked('device_add', driver='qhca', id='qhca0', bus='rp0'),
                     asked('device_del', id='rp0'), asked('set_link', name='n2', up=True),
                     asked('set_link', name='n0', up=1), asked('set_link', name='n0'),
                     asked('qom-get', path='/machine', property='kernel'),
                     asked('qom-set', path=DEVICE, property='loopback-capture', value='/tmp/x'),
                     asked('qom-set', path=DEVICE, property='faults', value={'a': []})):
            self.refused(text)

    def test_other_text(self):
        for text in ('', 'quit', '[]', '7', 'null', '{}', '{"execute": ["quit"]}', '[' * 100000,
                     '{"execute": "query-status", "id": 1}', '{"execute": {}}',
                     '{"execute": "query-status", "arguments": 7}'):
            self.refused(text)

    def test_named_twice(self):
        """The text that is judged is the text that is sent."""
        text = '{"execute": "quit", "execute": "query-status"}'
        self.assertEqual(json.loads(requests.command(text, NICS)),
                         {'execute': 'query-status', 'arguments': {}})

    def test_snapshot(self):
        self.assertEqual(requests.seconds('2'), 2)
        for text in ('', 'x', '-1', 'nan', 'inf', '1e9'):
            with self.assertRaises(requests.Refused):
                requests.seconds(text)

    def test_session(self):
        with tempfile.TemporaryDirectory() as top:
            one = session.Session('a', 'tcg', os.path.join(top, 'r'), os.path.join(top, 's'))
            one.nics = NICS
            for line in ('qmp {"execute": "quit"}', 'snapshot soon', 'what', '', 'server kill'):
                self.assertIn('error', json.loads(one.request(line)))
            one.control('exit soon')
            self.assertEqual(one.status, 1)
            for _ in range(8):          # a line that never ends
                one.receive('host', b'x' * 60000)
                self.assertLessEqual(len(one.buffers['host']), requests.LONGEST_LINE)

    def test_plug(self):
        """The guest has no say in what is plugged in."""
        with tempfile.TemporaryDirectory() as top, mock.patch.object(session, 'qmp') as qmp:
            one = session.Session('a', 'tcg', os.path.join(top, 'r'), os.path.join(top, 's'))
            one.nics = NICS
            qmp.execute.return_value = '{"return": {}}'
            for line in ('plug {"driver": "virtio-blk-pci"}', 'plug 1', 'plug 00', 'plug -1'):
                self.assertIn('error', json.loads(one.request(line)))
            qmp.execute.assert_not_called()
            one.request('plug')
            self.assertEqual(json.loads(qmp.execute.call_args[0][1]), {
                'execute': 'device_add', 'arguments': {
                    'driver': 'qhca', 'id': 'qhca0', 'bus': 'rp0', 'netdev': 'n0',
                    'mac': NICS[0].mac}})
            with mock.patch.object(NICS[0], 'socket', '/x'):
                for number in (1, 2):
                    one.request('plug')
                    sent = json.loads(qmp.execute.call_args[0][1])['arguments']
                    self.assertEqual((sent['bus'], sent['socket']['path']),
                                     (f'rp{number}', '/x'))
                self.refused(asked('device_del', id='qhca0'))

    def test_deaf(self):
        """One that asks and does not listen, while the launcher has others to serve."""
        ours, theirs = socket.socketpair()
        with tempfile.TemporaryDirectory() as top, ours, theirs, \
                mock.patch.object(session, 'PATIENCE', 0.1):
            one = session.Session('a', 'tcg', os.path.join(top, 'r'), os.path.join(top, 's'))
            one.host = ours
            answers = threading.Thread(target=lambda: [one.answer('x' * 4000)
                                                       for _ in range(1000)], daemon=True)
            answers.start()
            answers.join(20)
            self.assertFalse(answers.is_alive())
            self.assertEqual(ours.recv(1), b'')         # _serve() takes it off its list


class Logs(unittest.TestCase):
    def setUp(self):
        top = tempfile.TemporaryDirectory()
        self.addCleanup(top.cleanup)
        self.path = os.path.join(top.name, 'log')

    def read(self):
        with open(self.path, 'rb') as file:
            return file.read()

    def test_limit(self):
        log = logs.Log(self.path, 10)
        for _ in range(5):
            log.write(b'1234')
        self.assertEqual(self.read(), b'1234123412' + log.note)

    def test_pipe(self):
        """The child neither waits at the limit nor gets a signal there."""
        log = logs.Pipe(self.path, 1000)
        with subprocess.Popen(['sh', '-c', f'head -c 1000000 /dev/zero >{log.name}; exit 3'],
                              pass_fds=[log.fd]) as child:
            log.start()
        log.finish()
        self.assertEqual(child.returncode, 3)
        self.assertEqual(self.read(), bytes(1000) + log.note)

    def test_holes(self):
        """A file of the guest's that is nearly all holes, and small as an archive."""
        info = tarfile.TarInfo('x')
        info.size = payload.LIMIT + 1
        with open(self.path, 'wb') as file:
            file.write(info.tobuf())
        with open(self.path, 'r+b') as file:
            file.truncate(payload.LIMIT + 4096)
        with self.assertRaises(tarfile.TarError):
            payload.unpack_results(self.path, {'/x': self.path + '.x'})
        self.assertFalse(os.path.exists(self.path + '.x'))


class Command(unittest.TestCase):
    def test_log_has_limit(self):
        """QEMU's log of its guest goes through a pipe of ours, not to a file."""
        opts = types.SimpleNamespace(console=False, iommu=False, smp=1, mem=1024, kernel_arg=[],
                                     allow_splat=True, internet=False, mounts=[], trace=[],
                                     gdb=False, qemu_arg=[], server=False, arch='amd64')
        with tempfile.TemporaryDirectory() as top:
            one = session.Session('a', 'tcg', os.path.join(top, 'r'), os.path.join(top, 's'))
            one.image, one.payload = top, os.path.join(top, 'payload')
            args = machine.command(opts, {'qemu': 'true', 'kernel': None, 'userspace': None}, one)
            self.assertEqual(args[args.index('-D') + 1], one.pipes[0].name)
            self.assertEqual(one.pipes[0].left, logs.LIMIT)
            for pipe in one.pipes:
                pipe.start()
                pipe.finish()


class LastWords(unittest.TestCase):
    """A QEMU that ends at its start."""

    def run_qemu(self, mode, text):
        opts = types.SimpleNamespace(mode=mode, timeout=20, gdb=False, debug_kernel=None,
                                     kdir=None, quiet=False, trace=[], allow_splat=False)
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as top, contextlib.redirect_stderr(said), \
                mock.patch.object(machine, 'command', return_value=['sh', '-c', text]):
            one = session.Session('a', 'tcg', os.path.join(top, 'r'), os.path.join(top, 's'))
            one.gets = {}
            one.opts = opts
            return runner.run(opts, [one]), said.getvalue()

    def test_run(self):
        status, said = self.run_qemu('run', 'echo my last words >&2; exit 3')
        self.assertEqual(status, runner.DIED)
        self.assertIn('my last words', said)
        self.assertIn('QEMU status 3', said)
        self.assertIn('init after never', said)

    def test_shell(self):
        status, said = self.run_qemu('shell', 'echo my last words >&2; exit 3')
        self.assertEqual(status, runner.DIED)
        self.assertIn('my last words', said)
        self.assertEqual(self.run_qemu('shell', 'exit 0')[0], 0)


class Junit(unittest.TestCase):
    def suite(self, output, status=0, verdict=0):
        with tempfile.TemporaryDirectory() as top:
            for name, text in ('output', output), ('console.log', 'the end of it'):
                with open(os.path.join(top, name), 'w', encoding='utf-8') as file:
                    file.write(text)
            session = types.SimpleNamespace(role='a', seconds=1.25, status=status,
                                            verdict=verdict)
            session.path = lambda name: os.path.join(top, name)
            session.tail = lambda name, _: output if name == 'output' else 'the end of it'
            junit.write(os.path.join(top, 'j'), [session])
            root = ET.parse(os.path.join(top, 'j')).getroot()
        return {case.get('name'): next((child.tag for child in case), 'passed')
                for case in root.iter('testcase')}, root

    def test_plain(self):
        self.assertEqual(self.suite('hello\n')[0], {'command': 'passed'})
        cases, root = self.suite('hello\n', 3, 3)
        self.assertEqual(cases, {'command': 'failure'})
        self.assertIn('hello', root.find('.//failure').text)

    def test_tap(self):
        cases, _ = self.suite('1..3\nok 1 - x\nnot ok 2 - y\nok 3 - z # SKIP no\n', 1, 1)
        self.assertEqual(cases, {'x': 'passed', 'y': 'failure', 'z': 'skipped',
                                 'command': 'failure'})

    def test_plan(self):
        self.assertEqual(self.suite('1..3\nok 1 - x\n')[0]['plan'], 'failure')

    def test_died(self):
        """Not the command failed, but its machine."""
        cases, root = self.suite('1..1\nok 1 - x\n', None, runner.DIED)
        self.assertEqual(cases['command'], 'failure')
        self.assertIn('the end of it', root.find('.//failure').text)


if __name__ == '__main__':
    unittest.main()
