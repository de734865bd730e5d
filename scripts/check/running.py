# SPDX-License-Identifier: GPL-2.0
"""Several parts at a time, each in a process group of its own; which may run beside which."""

import os
import select
import selectors
import signal
import subprocess
import sys
import time
import traceback

import results

# Machines that have a peer keep their priority; those that run alone need none.
NICE = {'one': 10, 'idle': 19, 'pair': 0, 'all': 10}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LEFT = 60           # seconds for processes of a part to end when it has, or is told to


class Run:
    """One run of a part.

    @programs: the names of those to run, or None for all. @first: the run before, if that
    failed on a busy machine: then this one is to say more about its failures. @stopped: it was
    not to end by itself.
    """

    def __init__(self, name, kind, part, programs, first=None):
        self.name, self.kind, self.part, self.programs = name, kind, part, programs
        self.first, self.report = first, results.Report()
        self.pid = self.pipe = self.watch = self.log = None
        self.start = self.seconds = self.cpu = self.gone = 0.0
        self.rest, self.stopped = b'', False

    def begin(self, folder):
        self.start = time.monotonic()
        self.log = open(os.path.join(folder, self.name + ('.again' if self.first else '') + '.log'),
                        'wb', buffering=0)
        self.pipe, theirs = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            self.child(theirs)
        set_group(self.pid)
        self.watch = os.pidfd_open(self.pid)
        os.close(theirs)

    def child(self, out):
        """In the process of the part."""
        status = 1
        try:
            set_group(0)
            for number in SIGNALS:
                if signal.getsignal(number) != signal.SIG_IGN:
                    signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            with open(os.devnull, encoding='ascii') as nothing:
                os.dup2(nothing.fileno(), 0)
            os.dup2(out, 1)
            os.dup2(out, 2)
            sys.stdout = os.fdopen(1, 'w', closefd=False)
            if os.getpriority(os.PRIO_PROCESS, 0) < NICE[self.kind]:
                os.setpriority(os.PRIO_PROCESS, 0, NICE[self.kind])
            status = min(abs(self.part.run(self.programs)), 255)
            sys.stdout.flush()
        except BaseException:  # pylint: disable=broad-except # it is a result, not ours
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(status)

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
        if self.is_late():
            self.kill()
        os.close(self.pipe)
        os.close(self.watch)
        self.log.close()
        _, status, usage = os.wait4(self.pid, 0)
        self.pid = None
        self.seconds = time.monotonic() - self.start
        self.cpu = usage.ru_utime + usage.ru_stime
        self.report.end(os.waitstatus_to_exitcode(status), self.seconds)
        if self.is_late():
            self.report.fail('it has left processes behind that hold its output')

    def kill(self, number=signal.SIGTERM):
        if self.pid:
            os.killpg(self.pid, number)

    def drain(self, late):
        """Read until its processes have ended, as they were told; @late: the others are killed."""
        while (wait := late - time.monotonic()) > 0:
            if select.select([self.pipe], [], [], wait)[0] and not os.read(self.pipe, 1 << 16):
                return
        self.kill(signal.SIGKILL)

    def is_late(self):
        return self.gone and time.monotonic() - self.gone > LEFT

    def failures(self):
        return [result for result in self.report.results if result.kind == 'failed']

    def line(self):
        return (f'{self.name}: {results.text_of(self.report.count())}, {self.seconds:.0f} s, '
                f'{self.cpu:.0f} s of CPU')


def heed_signals():
    """Those that are ignored stay so, as under nohup."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def led(*command):
    """The status of a command that is no part; an interrupt ends all of it."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr,
                          preexec_fn=os.setpgrp) as process:
        try:
            return process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            raise


def set_group(pid):
    """Both processes do it, so each finds the group there."""
    os.setpgid(pid, pid)


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
            # A signal comes before there is a process, or when stop() knows of it.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
            try:
                run.begin(self.folder)
                self.running.append(run)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            for file in run.pipe, run.watch:
                self.selector.register(file, selectors.EVENT_READ, run)
        self.waiting = later

    def run(self):
        try:
            while self.waiting or self.running:
                self.begin()
                gone = any(run.gone for run in self.running)
                for key, _ in self.selector.select(0.2 if gone else None):
                    if key.data not in self.running:
                        continue        # it has ended just now
                    if key.fd == key.data.pipe:
                        self.read(key.data)
                    else:
                        self.selector.unregister(key.fd)
                        key.data.gone = time.monotonic()
                for run in [run for run in self.running if run.is_late()]:
                    self.finish(run)
        finally:
            self.stop()

    def read(self, run):
        lines = run.read()
        for line in lines or ():
            self.said(run, line)
        if lines is None:
            self.finish(run)

    def finish(self, run):
        self.selector.unregister(run.pipe)
        if not run.gone:
            self.selector.unregister(run.watch)
        self.running.remove(run)
        run.end()
        self.ended(run)

    def stop(self):
        """An interrupted session leaves nothing behind."""
        for run in self.running:
            run.kill()
        late = time.monotonic() + LEFT
        for run in self.running:
            run.drain(late)
            run.end()
        self.selector.close()
