# SPDX-License-Identifier: GPL-2.0
"""pytest: the programs of parts.py as items, and each result that they print as a report.

    pytest -m check                     what `make check` runs; also quick, full
    pytest -m 'pair or kselftest/mw'    parts, their groups, and programs of theirs
    pytest -k D-054                     of `make check`, what names this statement
    pytest --collect-only -q -m full    what there is

With --full parts run in their long form, with --rxe consumers over rdma_rxe. JOBS parts run at a
time (one for each CPU, at most 4). Of several parts, programs of those in which one or two
results have failed run again when nothing else does, if that takes no more than SECOND (1800)
seconds in all; 0: none. A result that passes then counts as passed, and is listed as unsteady.

QHCA_CACHE/results/last has the output of each part, and results.tap. QHCA_PATIENCE is how many
times longer than usual tests may take; patience.py measures it. VMFLAGS goes to scripts/vm,
COUNT and SEED to soak, MINUTES to soak-guest, churn and churn-kcsan.
"""

import collections
import contextlib
import fcntl
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

import conformance
import kinds
import results
import running

FEW = 2             # failures of a part that runs again
KEPT = 20           # folders of results
PARTS = os.path.join(kinds.SCRIPTS, 'check', 'parts.py')


def pytest_addoption(parser):
    group = parser.getgroup('qhca')
    group.addoption('--full', action='store_true', help='parts in their long form')
    group.addoption('--rxe', action='store_true', help='consumers over rdma_rxe')


def pytest_configure(config):
    config.addinivalue_line('markers', 'NAME: a run, a group, a part, or PART/PROGRAM')


def pytest_pycollect_makemodule(module_path, parent):
    if os.path.samefile(module_path, PARTS):
        return Table.from_parent(parent, path=module_path)
    return None


class Table(pytest.File):
    def collect(self):
        import parts                # pylint: disable=import-outside-toplevel
        for name, kind, runs, group, part in parts.PARTS:
            yield Node.from_parent(self, name=name, row=(kind, runs, group, part))


class Node(pytest.Collector):
    """A part."""

    def __init__(self, row, **kwargs):
        super().__init__(**kwargs)
        self.kind, self.runs, self.group, self.part = row

    def collect(self):
        for program in self.part.programs():
            item = Item.from_parent(self, name=program.name, program=program)
            marks = {*(self.runs if program.runs is None else program.runs), self.name,
                     self.group, f'{self.name}/{program.name}'} - {''}
            for mark in marks:
                item.add_marker(getattr(pytest.mark, mark))
            item.extra_keyword_matches.update(conformance.expand(program.words()))
            yield item


class Item(pytest.Item):
    """A program that can run by itself, or with others of its part in one process."""

    def __init__(self, program, **kwargs):
        super().__init__(**kwargs)
        self.program = program

    def runtest(self):
        raise NotImplementedError('its part runs it')

    def reportinfo(self):
        return self.path, None, f'{self.parent.name}/{self.name}'


def refuse_typos(expression, items):
    """A word that selects nothing would go unnoticed beside one that does."""
    known = {'quick', 'check', 'full', 'and', 'or', 'not'}
    known.update(mark.name for item in items for mark in item.own_markers)
    unknown = [word for word in re.findall(r'[^\s()]+', expression) if word not in known]
    if unknown:
        raise pytest.UsageError(f'-m: no part, group or program is called {" or ".join(unknown)}')


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Without -m select the parts of `make check`."""
    if config.getoption('markexpr'):
        if any(isinstance(item, Item) for item in items):
            refuse_typos(config.getoption('markexpr'), items)
        return
    # Since pytest 8 the names of folders are keywords, too.
    out = [item for item in items
           if isinstance(item, Item) and not item.get_closest_marker('check')]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


def pytest_runtestloop(session):
    ours = [item for item in session.items if isinstance(item, Item)]
    if not ours or session.config.option.collectonly:
        return None
    if session.testsfailed:
        raise session.Interrupted('not all parts could be collected')
    if len(ours) != len(session.items):
        raise pytest.UsageError('parts, and tests that are functions, run in sessions of their own')
    capture = session.config.pluginmanager.getplugin('capturemanager')
    with capture.global_and_fixture_disabled():
        session.config.closing = closing = Session(session, ours)
        closing.run()
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    return True


def pytest_sessionfinish(session, exitstatus):
    """Nothing but skips is no success."""
    closing = getattr(session.config, 'closing', Nothing)
    if not exitstatus and closing.complete and not results.count(closing.results)[0]:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    for name, result in getattr(config, 'closing', Nothing).unsteady:
        terminalreporter.write_line(result.tap(name).replace('not ok -', 'unsteady', 1))


def in_use(folder):
    """Whether a session that still runs has this folder."""
    try:
        with open(os.path.join(folder, 'results.tap'), encoding='utf-8') as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    """The last line of all, if nothing has interrupted them."""
    closing = getattr(config, 'closing', Nothing)
    if closing.complete:
        print(results.text_of(results.count(closing.results)), flush=True)


def pytest_report_teststatus(report):
    """Reports of results are counted, and shown with their part."""
    return (report.outcome, '', '') if hasattr(report, 'result') else None


class Nothing:
    """Of a session without parts."""

    unsteady, complete = (), False


class Session:
    """All runs of a session: their output, their results as pytest's reports."""

    def __init__(self, session, items):
        self.session, self.config = session, session.config
        self.terminal = self.config.pluginmanager.getplugin('terminalreporter')
        self.results, self.unsteady, self.complete = [], [], False
        self.again = float(os.environ.get('SECOND', '1800'))
        self.items = {}
        for item in items:
            self.items.setdefault(item.parent, []).append(item)
        self.live, self.shown = sys.stdout.isatty(), 0.0

    def run(self):
        """Parts that run alone come last, for they read results; pytest may have another order."""
        sys.stdout.reconfigure(errors='replace')
        running.heed_signals()
        self.prepare()
        runs = [running.Run(node.name, node.kind, node.part, self.chosen(node))
                for node in sorted(self.items, key=lambda node: node.kind == 'all')]
        jobs = max(1, int(os.environ.get('JOBS') or min(os.cpu_count() or 1, 4)))
        self.alone = len(runs) == 1
        self.schedule = running.Schedule(runs, jobs, self.folder, self.began, self.said, self.ended)
        try:
            self.schedule.run()
            self.complete = True
        finally:
            self.tap.close()
            self.keep()

    def chosen(self, node):
        names = [item.name for item in self.items[node]]
        return None if len(names) == len(node.part.programs()) else names

    # ---- before and after

    def prepare(self):
        env, option = os.environ, self.config.option
        if subprocess.run([kinds.script('build/host-deps.sh'), '--ask'], check=False).returncode:
            raise pytest.UsageError('host-deps.sh has not found all packages')
        env['QHCA_BACKGROUND'] = '1'        # From now on there is nobody to ask.
        # Options and plugins of the user's are for this pytest, not for those in parts.
        env.update(PYTEST_ADDOPTS='', PYTEST_DISABLE_PLUGIN_AUTOLOAD='1')
        env.setdefault('QHCA_STARTED', str(int(time.time())))
        if option.full:
            env['FULL'] = 'full'
            env['VMFLAGS'] = env.get('VMFLAGS', '') + ' --env FULL=1'
        if option.rxe:
            env['RXE'] = '1'
        if not env.get('QHCA_PATIENCE'):
            env['QHCA_PATIENCE'] = kinds.output(kinds.script('check/patience.py')) or '1'
            if env['QHCA_PATIENCE'] != '1':
                self.log(f'this machine is slow or busy: time limits times {env["QHCA_PATIENCE"]}')
        os.makedirs(os.path.join(kinds.CACHE, 'results'), exist_ok=True)
        os.makedirs(os.path.join(kinds.CACHE, 'tmp'), exist_ok=True)
        self.folder = tempfile.mkdtemp(prefix=time.strftime('%m%d-%H%M%S.'),
                                       dir=os.path.join(kinds.CACHE, 'results'))
        self.tap = open(os.path.join(self.folder, 'results.tap'), 'w', encoding='utf-8')
        fcntl.flock(self.tap, fcntl.LOCK_EX)
        os.environ['QHCA_RESULTS'] = self.folder
        if len(self.items) > 1:
            self.build()

    def build(self):
        """Build what parts need, so that none of them waits for it. A failure here happens again,
        and counts, in the part that needs it.
        """
        names = {node.name for node in self.items}
        tools = [option for option, users in {
            '--extra': {'lint', 'msan', 'fuzz'}, '--valgrind': {'instructions'},
            '--tshark': {'wire', 'rxe-wire', 'tour', 'cluster-captures'}}.items() if names & users]
        for command in (['build/buildroot.sh', *tools, '--path'], ['vm', 'build', '--strict',
                                                                   *kinds.vmflags()]):
            if running.led(kinds.script(command[0]), *command[1:]):
                self.log('warning: not everything builds')

    def keep(self):
        """The newest folders, and a name for the last one."""
        top = os.path.join(kinds.CACHE, 'results')
        new = os.path.join(self.folder, 'last')
        # Other sessions do the same, and may have taken this one's folder for an old one.
        with contextlib.suppress(FileNotFoundError):
            os.symlink(os.path.basename(self.folder), new)
            os.replace(new, os.path.join(top, 'last'))
        old = []
        for name in glob.glob(os.path.join(top, '*')):
            with contextlib.suppress(FileNotFoundError):
                old.append((os.lstat(name).st_mtime, name))
        for _, name in sorted(old)[:-KEPT]:
            if not os.path.islink(name) and not in_use(name):
                shutil.rmtree(name, ignore_errors=True)

    # ---- what is shown

    def log(self, text):
        self.show(f'[{int(time.time()) - int(os.environ["QHCA_STARTED"]):4}s] check: {text}')

    def show(self, text):
        self.terminal.ensure_newline()
        print(('\r\x1b[K' if self.live else '') + text, flush=True)

    def began(self, run):
        self.log(run.name + (': again, alone' if run.first else ''))

    def said(self, run, line):
        if self.alone:
            print(line, flush=True)
        elif self.live and time.monotonic() - self.shown > 0.5:
            self.shown = time.monotonic()
            text = ', '.join(f'{one.name} {len(one.report.results)}'
                             for one in self.schedule.running)
            width = shutil.get_terminal_size().columns - 1
            print(f'\r\x1b[K{text[:width]}', end='', flush=True)

    # ---- what has ended

    def ended(self, run):
        others = ' '.join(other.name for other in self.schedule.running)
        if self.config.option.verbose > 0 and not self.alone:
            with open(run.log.name, encoding='utf-8', errors='replace') as file:
                self.show(file.read().rstrip('\n'))
        self.log(run.line() + (f' (running: {others})' if others else ''))
        node = self.node(run)
        if not run.stopped:
            self.forget(node, run)
        if run.first:
            self.settle(node, run)
        else:
            held = self.held_back(node, run)
            for result in run.report.results:
                if result not in held and not (run.stopped and result.name == results.WHOLE):
                    self.report(node, result)

    def held_back(self, node, run):
        """The failures of which a second run may say more; nothing else then runs."""
        failures = run.failures()
        if self.alone or run.kind == 'all' or not 1 <= len(failures) <= FEW \
                or run.seconds > self.again or self.session.shouldfail:
            return []
        for failure in failures:
            self.remember(node, failure)
        names = {self.owner(node, failure) for failure in failures}
        self.again -= run.seconds
        self.schedule.add(running.Run(run.name, 'all', node.part,
                                      self.chosen(node) if None in names else sorted(names), run))
        return failures

    @staticmethod
    def owner(node, result):
        """The program that a result is of, or None."""
        return node.part.owner(f'{result.group} {result.name}')

    def settle(self, node, run):
        """Take what has failed in the run before this one into account."""
        told = collections.Counter(result.title() for result in run.first.report.results
                                   if result.kind != 'failed')
        before = run.first.failures()
        for result in run.report.results:
            if result.kind != 'failed' and told[result.title()]:
                told[result.title()] -= 1
                continue
            first = next((one for one in before if one.title() == result.title()), None)
            if first:
                before.remove(first)
            if first and result.kind == 'passed':
                self.unsteady.append((node.name, first))
            # A skip says nothing of the failure.
            self.report(node, first if first and result.kind == 'skipped' else result)
        for failure in before:
            # As a whole it has not failed again.
            if failure.name == results.WHOLE:
                self.unsteady.append((node.name, failure))
                failure = results.Result('passed', '', failure.name)
            self.report(node, failure)

    def report(self, node, result):
        self.results.append(result)
        self.tap.write(result.tap(node.name) + '\n')
        self.tap.flush()
        where = '::'.join(filter(None, [node.name, result.group.replace('::', ':')]))
        title = f'{node.name}: {result.title()}'
        report = pytest.TestReport(
            nodeid=f'{where}::{result.name.replace("::", ":")}', location=(PARTS, None, title),
            keywords={node.name: 1}, outcome=result.kind, when='call', duration=result.seconds,
            longrepr={'passed': None, 'skipped': (PARTS, 0, result.reason),
                      'failed': '\n'.join([*result.context, result.tap(node.name)])}[result.kind])
        report.result = result
        if result.kind == 'failed':
            self.show('\n'.join([*result.context[-2:], result.tap(node.name)]))
        self.session.ihook.pytest_runtest_logreport(report=report)
        if result.kind == 'failed':
            self.remember(node, result, report.nodeid)
        if self.session.shouldfail:
            self.stop()

    def stop(self):
        """With -x: parts that wait for a second run have failed, those that stop now have not."""
        waiting, self.schedule.waiting = self.schedule.waiting, []
        for run in self.schedule.running:
            run.stopped = True
            run.kill()
        for first in [run.first for run in waiting if run.first]:
            for failure in first.failures():
                self.report(self.node(first), failure)

    def node(self, run):
        return next(node for node in self.items if node.name == run.name)

    def remember(self, node, result, nodeid=None):
        """--lf is to know items, not their results."""
        last = self.config.pluginmanager.getplugin('lfplugin')
        if last:
            last.lastfailed.pop(nodeid, None)
        name = self.owner(node, result)
        for item in self.items[node]:
            if last and name in (None, item.name):
                last.lastfailed[item.nodeid] = True

    def forget(self, node, run):
        """Let --lf know nothing of programs that have run now."""
        if last := self.config.pluginmanager.getplugin('lfplugin'):
            for item in self.items[node]:
                if run.programs is None or item.name in run.programs:
                    last.lastfailed.pop(item.nodeid, None)
