#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of the runner: parts that run beside each other, their processes, and its output."""

import concurrent.futures
import fcntl
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock
import xml.etree.ElementTree as ET

import kinds
import plugin
import running
import test_results

BAD, GOOD = 'why\nnot ok x\nok y\n1 passed, 1 failed, 0 skipped\n', 'ok x\nok y\n2 passed, ' \
            '0 failed, 0 skipped\n'


class Schedule(unittest.TestCase):
    def test_fits(self):
        """Pairs one at a time, idle ones always, what runs alone alone."""
        for kind, beside, fits in (
                ('pair', ['one'], True), ('pair', ['pair'], False), ('one', ['pair'], True),
                ('one', ['one', 'one'], False), ('idle', ['one', 'one'], True),
                ('one', ['idle', 'one'], True), ('all', ['idle'], False), ('all', [], True),
                ('one', ['all'], False), ('idle', ['all'], False)):
            self.assertEqual(running.fits(kind, beside, 2), fits, (kind, beside))


class Runs(unittest.TestCase):
    """Functions in processes of their own."""

    def run_of(self, *functions, jobs=2):
        """The runs, which have ended."""
        runs = [running.Run(f'p{i}', 'one', mock.Mock(run=function), None)
                for i, function in enumerate(functions)]
        with tempfile.TemporaryDirectory() as folder:
            running.Schedule(list(runs), jobs, folder, *[lambda *_: None] * 3).run()
        return runs

    def whole(self, *functions):
        return [' '.join(result.reason for result in run.failures())
                for run in self.run_of(*functions)]

    def test_no_status(self):
        """A part that returns none, or raises, has failed, and is not a second runner."""
        def raises(_):
            raise SystemExit(0)
        pid = os.getpid()
        reasons = self.whole(lambda _: print(GOOD), lambda _: None, raises, lambda _: 256)
        self.assertEqual(os.getpid(), pid)
        self.assertTrue(all('status' in reason for reason in reasons), reasons)

    def test_group(self):
        """All processes of a part are in its group, however early they began."""
        def ours(_):
            print(f'ok group # {os.getpgrp() == os.getpid()}\n1 passed, 0 failed, 0 skipped')
            return 0
        with mock.patch.object(running.os, 'setpgid', slow(os.setpgid)):
            run, = self.run_of(ours)
        self.assertEqual(run.report.results[0].reason, 'True')

    def test_left_behind(self):
        """A process that a part leaves with its output does not hold up the others."""
        def leaves(_):
            print(GOOD, end='', flush=True)
            subprocess.Popen(['setsid', 'sleep', '60'])     # pylint: disable=consider-using-with
            return 0
        with mock.patch.object(running, 'LEFT', 1):
            reason, = self.whole(leaves)
        self.assertIn('left', reason)

    def test_ignored_hangup(self):
        """Under nohup, a hangup stays without effect, here and in parts."""
        def hangup(_):
            os.kill(os.getppid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGHUP)
            print(GOOD)
            return 0
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            running.heed_signals()
            self.assertEqual(self.whole(hangup), [''])
        finally:
            signal.signal(signal.SIGHUP, before)


def slow(function):
    """The parent comes late."""
    def wait(pid, group):
        if pid:
            time.sleep(0.3)
        function(pid, group)
    return wait


class Led(unittest.TestCase):
    def test_interrupted(self):
        """All processes of a command end, however the interrupt comes."""
        def interrupt(*_):
            raise KeyboardInterrupt
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            with tempfile.NamedTemporaryFile('r', encoding='ascii') as file:
                signal.setitimer(signal.ITIMER_REAL, 2)
                with self.assertRaises(KeyboardInterrupt):
                    running.led('sh', '-c', f'sleep 60 & echo $! >{file.name}; wait')
                pid = int(file.read())
            for _ in range(50):
                with open(f'/proc/{pid}/stat', encoding='ascii') as file:
                    if file.read().split()[2] == 'Z':
                        break
                time.sleep(0.1)
            else:
                self.fail('it goes on')
        except FileNotFoundError:
            pass        # There is no such process any more.
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        self.assertEqual(running.led('false'), 1)


class Folders(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = folder.name
        patch = mock.patch.object(kinds, 'CACHE', self.top)
        patch.start()
        self.addCleanup(patch.stop)

    def test_password(self):
        """There is a question for it at first, and none later."""
        background = []

        def run(*_, **__):
            background.append(os.environ.get('QHCA_BACKGROUND'))
            return mock.Mock(returncode=0)
        with mock.patch.dict(os.environ, QHCA_PATIENCE='1'), \
                mock.patch.object(plugin.subprocess, 'run', run):
            os.environ.pop('QHCA_BACKGROUND', None)
            session = mock.Mock(items=[1])
            plugin.Session.prepare(session)
            session.tap.close()
            self.assertEqual((background, os.environ['QHCA_BACKGROUND']), ([None], '1'))

    def test_sessions_together(self):
        """Several that end at a time keep their folders, and leave one last."""
        def keep(number):
            for i in range(40):
                folder = f'{self.top}/results/{number}.{i}'
                os.makedirs(folder)
                plugin.Session.keep(mock.Mock(folder=folder))
            return True
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            self.assertTrue(all(pool.map(keep, range(4))))
        self.assertTrue(os.path.isdir(f'{self.top}/results/last'))
        self.assertLess(len(os.listdir(f'{self.top}/results')), plugin.KEPT + 5)

    def test_session_goes_on(self):
        """However many end in the meantime, one that still runs keeps its folder."""
        for name in ['long', *map(str, range(plugin.KEPT + 1))]:
            folder = f'{self.top}/results/{name}'
            os.makedirs(folder)
            os.utime(folder, (1000 + len(os.listdir(f'{self.top}/results')),) * 2)
            if name == 'long':
                tap = self.enterContext(open(f'{folder}/results.tap', 'w', encoding='utf-8'))
                fcntl.flock(tap, fcntl.LOCK_EX)
        plugin.Session.keep(mock.Mock(folder=folder))
        left = os.listdir(f'{self.top}/results')
        self.assertIn('long', left)
        self.assertNotIn('0', left)

    def test_cache(self):
        """pytest's own is in QHCA_CACHE."""
        text = subprocess.run([sys.executable, '-m', 'pytest', '--cache-show'],
                              env={**os.environ, 'QHCA_CACHE': self.top}, cwd=kinds.TOP,
                              check=True, text=True, stdout=subprocess.PIPE).stdout
        self.assertIn(f'cachedir: {self.top}/pytest', text)


class Session(unittest.TestCase):
    """pytest itself, with parts that print what a test says."""

    def session(self, *outputs, kind='one', runs=('check',), options=(), link=False):
        """The lines that end the run, and the XML. @outputs: of each run, of each part."""
        with tempfile.TemporaryDirectory() as top:
            for i, texts in enumerate(outputs):
                for j, text in enumerate(texts):
                    with open(f'{top}/{i}.{j}', 'w', encoding='utf-8') as file:
                        file.write(text)
            with open(f'{top}/stub.py', 'w', encoding='utf-8') as file:
                file.write(STUB.format(top, [
                    (f'p{i}', kind if isinstance(kind, str) else kind[i], runs)
                    for i in range(len(outputs))]))
            junit = f'{top}/junit.xml'
            done = subprocess.run(
                [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-p', 'stub',
                 '-p', 'plugin', '--rootdir', top, '-c', '/dev/null', '--junitxml', junit, *options,
                 f'{top}/{"link" if link else "check"}/parts.py'],
                env={**os.environ, 'QHCA_CACHE': top, 'QHCA_PATIENCE': '1', 'JOBS': '2',
                     'PYTHONPATH': ':'.join([top, *sys.path])},
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            lines = done.stdout.splitlines()
            xml = ET.parse(junit).getroot() if os.path.exists(junit) else None
            return done.returncode, lines, xml

    def told(self, lines, word):
        return [line for line in lines if line.startswith(word)]

    def test_good(self):
        status, lines, xml = self.session([GOOD], [GOOD])
        self.assertEqual((status, lines[-1]), (0, '4 passed, 0 failed, 0 skipped'))
        self.assertEqual(len(list(xml.iter('testcase'))), 4)

    def test_bad(self):
        """A failure is listed with its reason, twice, and counts."""
        status, lines, xml = self.session([BAD, BAD], [GOOD])
        self.assertEqual((status, lines[-1]), (1, '3 passed, 1 failed, 0 skipped'))
        self.assertIn('not ok - p0: x', lines)
        self.assertIn('why', xml.find('.//failure').text)

    def test_unsteady(self):
        """A failure in one of two runs is listed, and counts if it is the second."""
        status, lines, _ = self.session([BAD, GOOD], [GOOD])
        self.assertEqual((status, lines[-1]), (0, '4 passed, 0 failed, 0 skipped'))
        self.assertEqual(self.told(lines, 'unsteady'), ['unsteady p0: x'])
        other = 'ok x\nnot ok y\n1 passed, 1 failed, 0 skipped\n'
        status, lines, _ = self.session([BAD, other], [GOOD])
        self.assertEqual(status, 1)
        self.assertIn('not ok - p0: y', lines)

    def test_unsteady_as_a_whole(self):
        """A part that has broken off, and one that leaves out what had failed."""
        status, lines, _ = self.session(['killed\n', GOOD], [GOOD])
        self.assertEqual(status, 0)
        self.assertEqual(len(self.told(lines, 'unsteady p0: the part as a whole # no sum')), 1)
        status, lines, _ = self.session(['not ok z\n0 passed, 1 failed, 0 skipped\n', GOOD], [GOOD])
        self.assertEqual(status, 1)

    def test_skipped_later(self):
        """A skip in the second run says nothing of the failure in the first."""
        skip = 'ok x # SKIP no room\nok y\n1 passed, 0 failed, 1 skipped\n'
        status, lines, _ = self.session([BAD, skip], [GOOD])
        self.assertEqual((status, self.told(lines, 'unsteady')), (1, []))

    def test_same_titles(self):
        """Two results of one title, and one that has it in the second run."""
        twice = 'not ok x\nnot ok x\n0 passed, 2 failed, 0 skipped\n'
        once = 'ok x\n1 passed, 0 failed, 0 skipped\n'
        status, lines, _ = self.session([twice, once], [GOOD])
        self.assertEqual((status, lines[-1]), (1, '3 passed, 1 failed, 0 skipped'))
        status, lines, _ = self.session([twice, GOOD.replace('y', 'x')], [GOOD])
        self.assertEqual((status, lines[-1]), (0, '4 passed, 0 failed, 0 skipped'))
        self.assertEqual(len(self.told(lines, 'unsteady')), 2)

    def test_no_second_run(self):
        """Many failures are no accident."""
        bad = 'not ok x\nnot ok y\nnot ok z\n0 passed, 3 failed, 0 skipped\n'
        self.assertEqual(self.session([bad, GOOD], [GOOD])[1][-1], '2 passed, 3 failed, 0 skipped')

    def test_first_failure(self):
        """-x: what has not begun does not."""
        _, lines, _ = self.session([BAD], [BAD], [BAD], kind='all', options=['-x'])
        self.assertRegex(lines[-1], '^[01] passed, 1 failed, 0 skipped$')

    def test_first_failure_of_several(self):
        """-x: parts that it stops have not failed, those that wait for a second run have."""
        bad = 'not ok x\nnot ok y\nnot ok z\n0 passed, 3 failed, 0 skipped\n'
        status, lines, _ = self.session([bad], ['ok w\nsleep'], options=['-x'])
        self.assertEqual(status, 1)
        self.assertRegex(lines[-1], '^[01] passed, 3 failed, 0 skipped$')
        _, lines, _ = self.session([BAD], ['pause\n' + bad], options=['-x'])
        self.assertEqual(lines[-1], '1 passed, 4 failed, 0 skipped')

    def test_order(self):
        """Parts that run alone come last, also if pytest has another order."""
        _, lines, _ = self.session([GOOD], [GOOD], kind=('all', 'one'))
        self.assertEqual([line.split()[-1] for line in lines if re.search(r'check: p\d$', line)],
                         ['p1', 'p0'])

    def test_last_failed(self):
        """--lf runs programs that have failed, until they pass."""
        with tempfile.TemporaryDirectory() as cache:
            options = ['-p', 'cacheprovider', '-o', f'cache_dir={cache}', '--lf', '-v']
            for outputs, ran in ((([BAD, BAD], [GOOD]), {'p0', 'p1'}), (([GOOD], [BAD]), {'p0'}),
                                 (([GOOD], [GOOD]), {'p0', 'p1'})):
                _, lines, _ = self.session(*outputs, options=options)
                self.assertEqual({name for name in ('p0', 'p1') for line in lines
                                  if line.endswith(f'check: {name}')}, ran)

    def test_default(self):
        """Without -m what is of `make check`, whatever the folder of parts.py is called."""
        self.assertEqual(self.session([GOOD], runs=('full',))[0], 5)

    def test_typo(self):
        """A word of -m that is no mark of any part, also beside one that is."""
        for marks in 'nosuch', 'p0 or nosuch', 'p0 or p0/nosuch':
            status, lines, _ = self.session([GOOD], options=['-m', marks])
            self.assertEqual(status, 4, marks)
            self.assertIn('nosuch', self.told(lines, 'ERROR')[0])
        self.assertEqual(self.session([GOOD], options=['-m', '(p0/all or p0)and not full'])[0], 0)

    def test_link(self):
        """The folder of parts.py may have another name."""
        status, lines, _ = self.session([GOOD], link=True)
        self.assertEqual((status, lines[-1]), (0, '2 passed, 0 failed, 0 skipped'))

    def test_letters(self):
        """A terminal may know fewer letters than parts do."""
        with mock.patch.dict(os.environ, PYTHONIOENCODING='ascii'):
            bad = 'not ok x \u2192\n' * 3 + '0 passed, 3 failed, 0 skipped\n'
            status, lines, _ = self.session([bad])
        self.assertEqual((status, lines[-1]), (1, '0 passed, 3 failed, 0 skipped'))

    def test_only_skips(self):
        """All skipped is no success."""
        skip = 'ok x # SKIP no room\n0 passed, 0 failed, 1 skipped\n'
        status, lines, _ = self.session([skip])
        self.assertEqual((status, lines[-1]), (1, '0 passed, 0 failed, 1 skipped'))

    def test_uncollected(self):
        """A part whose programs are not to be found: nothing runs, and nothing is summed up."""
        status, lines, _ = self.session([GOOD], [], kind='broken')
        self.assertEqual(status, 2)
        self.assertNotIn(' passed, 0 failed', lines[-1])

    def test_options_of_the_user(self):
        """They are not for pytests inside parts."""
        with mock.patch.dict(os.environ, PYTEST_ADDOPTS='--verbosity=0'):
            status, lines, _ = self.session(['addopts'])
        self.assertEqual((status, lines[-1]), (0, '1 passed, 0 failed, 0 skipped'))

    def test_interrupted_inside(self):
        """--tap sums nothing up that has broken off."""
        with tempfile.TemporaryDirectory() as top:
            with open(f'{top}/test_it.py', 'w', encoding='utf-8') as file:
                file.write('import pytest\ndef test_a():\n    """It\n    fails."""\n    assert 0\n'
                           'def test_b():\n    pytest.exit("enough", 3)\n')
            done = subprocess.run(
                [sys.executable, '-m', 'pytest', '-p', 'tapped', '--tap', '-c', '/dev/null',
                 '-p', 'no:cacheprovider', '--rootdir', top, f'{top}/test_it.py'],
                env={**os.environ, 'PYTHONPATH': ':'.join(sys.path)}, check=False, text=True,
                stdout=subprocess.PIPE)
        failures, _ = test_results.Results.part(done.stdout, done.returncode)
        self.assertIn('no sum, status 3', ' '.join(failures))
        self.assertIn('not ok 1 - it.a: It fails.\n', done.stdout)

    def test_nothing_at_all(self):
        self.assertEqual(self.session([GOOD], options=['-m', 'not p0'])[0], 5)


STUB = '''
import os, sys, time, types
import kinds, plugin
where, rows = {!r}, {!r}

class Part(kinds.Part):
    def __init__(self, number):
        self.number = number
    def programs(self):
        return None if rows[self.number][1] == 'broken' and self.number else super().programs()
    def run(self, chosen):
        for i in range(9):
            name = f'{{where}}/{{self.number}}.{{i}}'
            if os.path.exists(name):
                with open(name) as file:
                    text = file.read()
                os.remove(name)
                if text == 'addopts':
                    bad = 'not ' * bool(os.environ['PYTEST_ADDOPTS'])
                    text = bad + 'ok x\\n' + ('0 passed, 1' if bad else '1 passed, 0')
                    text += ' failed, 0 skipped\\n'
                head, _, tail = text.partition('pause\\n')
                if tail:
                    time.sleep(2)
                print(head + tail, end='', flush=True)
                if text.endswith('sleep'):
                    time.sleep(60)
                return 'not ok' in text

plugin.PARTS = where + '/check/parts.py'
os.mkdir(where + '/check')
os.symlink('check', where + '/link')
open(plugin.PARTS, 'w').close()
sys.modules['parts'] = types.SimpleNamespace(PARTS=[
    (name, kind, runs, '', Part(i)) for i, (name, kind, runs) in enumerate(rows)])
plugin.Session.build = lambda self: None
'''


if __name__ == '__main__':
    unittest.main()
