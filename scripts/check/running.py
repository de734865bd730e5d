# SPDX-License-Identifier: GPL-2.0
"""Several parts at a time, each in a process group of its own; which may run beside which."""

import os
import selectors
import signal
import sys
import time
import traceback

import results

# Machines that have a peer keep their priority; those that run alone need none.
NICE = {'one': 10, 'idle': 19, 'pair': 0, 'all': 10}


class Run:
    """One run of a part.

    @programs: the names of those to run, or None for all. @first: the run before, if that
    failed on a busy machine: then this one is to say more about its failures.
    """

    def __init__(self, name, kind, part, programs, first=None):
        self.name, self.kind, self.part, self.programs = name, kind, part, programs
        self.first, self.report = first, results.Report()
        self.pid = self.pipe = self.log = None
        self.start = self.seconds = self.cpu = 0.0
        self.rest = b''

    def begin(self, folder):
        self.start = time.monotonic()
        self.log = open(os.path.join(folder, self.name + ('.again' if self.first else '') + '.log'),
                        'wb')
        self.pipe, theirs = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            self.child(theirs)
        os.setpgid(self.pid, self.pid)
        os.close(theirs)

    def child(self, out):
        """In the process of the part."""
        status = 1
        try:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            with open(os.devnull, encoding='ascii') as nothing:
                os.dup2(nothing.fileno(), 0)
            os.dup2(out, 1)
            os.dup2(out, 2)
            sys.stdout = os.fdopen(1, 'w', closefd=False)
            if os.getpriority(os.PRIO_PROCESS, 0) < NICE[self.kind]:
                os.setpriority(os.PRIO_PROCESS, 0, NICE[self.kind])
            status = self.part.run(self.programs)
            sys.stdout.flush()
        except BaseException:  # pylint: disable=broad-except # it is a result, not ours
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(min(abs(status), 255))

    def read(self):
        """Read new output. Returns its lines, or None at the end."""
        data = os.read(self.pipe, 1 << 16)
        self.log.write(data)
        *lines, rest = (self.rest + data).split(b'\n')
        if not data:
            lines = [rest] if rest else []
        self.rest = rest if data else b''
        now = time.monotonic() - self.start
        out = [line.decode(errors='replace') for line in lines]
        for line in out:
            self.report.read(line, now)
        return out if data or out else None

    def end(self):
        os.close(self.pipe)
        self.log.close()
        _, status, usage = os.wait4(self.pid, 0)
        self.pid = None
        self.seconds = time.monotonic() - self.start
        self.cpu = usage.ru_utime + usage.ru_stime
        self.report.end(os.waitstatus_to_exitcode(status), self.seconds)

    def kill(self):
        if self.pid:
            os.killpg(self.pid, signal.SIGTERM)

    def failures(self):
        return [result for result in self.report.results if result.kind == 'failed']

    def line(self):
        return (f'{self.name}: {results.text_of(self.report.count())}, {self.seconds:.0f} s, '
                f'{self.cpu:.0f} s of CPU')


def fits(kind, running, jobs):
    """May one more run of that kind begin beside the kinds that are running?"""
    used = sum(other != 'idle' for other in running)
    if 'all' in running or kind == 'all' and running:
        return False
    return kind in ('idle', 'all') or used < jobs and (kind != 'pair' or 'pair' not in running)


class Schedule:
    """@began, @ended: called with a run; @said: with a run and a line of it."""

    def __init__(self, runs, jobs, folder, began, said, ended):
        self.waiting, self.running = list(runs), []
        self.jobs, self.folder = jobs, folder
        self.began, self.said, self.ended = began, said, ended
        self.selector = selectors.DefaultSelector()

    def add(self, run):
        """Before those that run alone anyway, which read the results of all others."""
        at = next((i for i, other in enumerate(self.waiting) if other.kind == 'all'),
                  len(self.waiting))
        self.waiting.insert(at, run)

    def begin(self):
        """All that fit, in their order; what runs alone waits for all before it."""
        later = []
        for run in self.waiting:
            kinds = [other.kind for other in self.running]
            if any(other.kind == 'all' for other in later) or not fits(run.kind, kinds, self.jobs):
                later.append(run)
                continue
            self.began(run)
            run.begin(self.folder)
            self.running.append(run)
            self.selector.register(run.pipe, selectors.EVENT_READ, run)
        self.waiting = later

    def run(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.default_int_handler)
        try:
            while self.waiting or self.running:
                self.begin()
                for key, _ in self.selector.select():
                    self.read(key.data)
        finally:
            self.stop()

    def read(self, run):
        pipe = run.pipe
        lines = run.read()
        for line in lines or ():
            self.said(run, line)
        if lines is None:
            self.selector.unregister(pipe)
            self.running.remove(run)
            run.end()
            self.ended(run)

    def stop(self):
        """An interrupted session leaves nothing behind."""
        for run in self.running:
            run.kill()
        for run in self.running:
            while run.read() is not None:
                pass
            run.end()
        self.selector.close()
